"""What a form says of its fields is so, and what would be refused is said before the last button."""

import pytest

from browsing import Browser, button, seen
from budgetbandits.service.dashboard.actions.terms import FIELDS, terms_now
from budgetbandits.service.http.auth import make_key

ARMS = {"a": 3.0, "b": 3.0}
RENEWED = {"period": "month", "period_budget": 20.0, "unspent": "carry", "time_zone": "Europe/Berlin"}
CAPPED = {"daily_cap": 9.0, "on_limit": "cheapest", "time_zone": "Europe/Berlin"}
OTHERS = {"pace_seconds": 864_000.0, "on_limit": "a", "horizon": 50.0, "propensity_draws": 10.0, "tags": ["one"]}


@pytest.mark.parametrize("terms", [RENEWED, CAPPED, OTHERS], ids=["renewed", "capped", "others"])
def test_a_field_that_says_what_it_does_when_it_is_empty_can_be_emptied(store, admin, terms):
    store.engine.create("ads", "bts-paced", 50.0, ARMS, **terms)
    for field in FIELDS:
        if "Empty:" in field.help and field.name in terms:
            page = admin("POST", "/campaigns/ads/change-terms", filled(store, admin) | {field.name: ""})
            assert button(page.text), (field.name, seen(page))
    if terms is RENEWED:
        emptied = filled(store, admin) | {"period": ""}
        assert admin.confirm("/campaigns/ads/change-terms", emptied).status_code == 303
        row = store.engine.describe("ads")
        assert [getattr(row, name) for name in RENEWED] == [None, None, "lapse", None]


def filled(store, admin):
    """The form as it is opened."""
    return {"code": admin.code("/"), **terms_now(store.read(lambda tx: tx.campaign("ads")))}


MISTYPED = [
    ("market", {}, "no shared budget 'market'; create it first"),
    ("marketing", {"currency": "EUR"}, "the campaign is in EUR, the shared budget 'marketing' in none"),
]


@pytest.mark.parametrize(("name", "terms", "words"), MISTYPED)
def test_a_shared_budget_that_cannot_be_joined_is_refused_before_the_last_button(store, admin, name, terms, words):
    store.engine.shared_budgets.create("marketing", 40.0)
    form = {"name": "ads", "budget": "50", "arms": "a = 3\nb = 3", "policy": "bts", "shared_budget": name, **terms}
    for page in (admin.check("/new", form), admin("POST", "/new", {"code": admin.code("/"), **form})):
        assert words.lower() in seen(page).lower()
        assert button(page.text) is None
    store.engine.create("ads", "bts", 50.0, ARMS, **terms)
    page = admin("POST", "/campaigns/ads/change-terms", {"code": admin.code("/"), "shared_budget": name})
    assert words.lower() in seen(page).lower()
    assert button(page.text) is None


def test_what_a_member_has_spent_and_holds_is_looked_at_before_the_last_button(store, admin):
    engine = store.engine
    engine.shared_budgets.create("small", 2.0)
    engine.create("ads", "bts", 50.0, ARMS)
    made = engine.decide("ads", "1")
    joining = {"code": admin.code("/"), "shared_budget": "small"}
    assert "holds 3.00, and the shared budget 'small' has 2.00 left" in seen(
        admin("POST", "/campaigns/ads/change-terms", joining)
    )
    engine.feedback(made.decision, cost=1.0, reward=1.0)
    assert admin.confirm("/campaigns/ads/change-terms", joining).status_code == 303
    engine.shared_budgets.change("small", {"budget": 9.0})
    engine.decide("ads", "2")
    page = admin("POST", "/campaigns/ads/change-terms", {**joining, "shared_budget": "", "was_shared_budget": "small"})
    assert "The campaign holds 3.00 of the shared budget 'small'" in seen(page)
    assert button(page.text) is None


def test_a_key_for_one_campaign_is_told_before_the_last_button_whose_shared_budgets_are(store):
    engine = store.engine
    engine.shared_budgets.create("small", 9.0)
    own = engine.create("ads", "bts", 50.0, ARMS)
    browser = Browser(store.app, make_key(store, ["admin"], 0.0, own))
    form = {"code": browser.code("/"), "shared_budget": "small"}
    page = browser("POST", "/campaigns/ads/change-terms", form)
    assert "sign in with one for 'all campaigns, as a shared budget is theirs'" in seen(page)
    assert button(page.text) is None
