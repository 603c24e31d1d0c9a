"""Shared budgets over HTTP, by the client, the command line's words apart: made, changed, joined, watched, audited."""

import pytest

from browsing import Browser, button
from budgetbandits.errors import BadParameter, Conflict, HoldRefused, NotFound
from budgetbandits.service.http.auth import make_key
from called import Service
from served import served

ARMS = {"search": 1.0, "mail": 0.5}


def test_a_shared_budget_by_the_client(store):
    with Service(store).client() as client:
        made = client.create_shared_budget("marketing", 2.0, currency="EUR")
        assert (made.left, made.campaigns) == (2.0, ())
        assert client.create_shared_budget("marketing", 2.0, currency="EUR") == made
        with pytest.raises(Conflict):
            client.create_shared_budget("marketing", 3.0, currency="EUR")
        for name in ("spring", "summer"):
            terms = {"currency": "EUR", "shared_budget": "marketing"}
            assert client.create(name, 5.0, ARMS, **terms).shared_budget == "marketing"
        for name in ("spring", "summer"):
            client.decide(name, arms=["search"]).settle(reward=1.0, cost=1.0)
        with pytest.raises(HoldRefused, match=r"'marketing' has 0\.00 left, 0\.50 needed; raise it") as refused:
            client.decide("spring")
        assert refused.value.reason == "exhausted"
        standing = client.standing("spring")
        assert (standing.standing, standing.left) == ("exhausted", 0.0)
        assert standing.cause == "by its shared budget marketing: 0.0000 left, the smallest cap is 0.5000"
        assert client.change_shared_budget("marketing", budget=4.0).left == 2.0
        assert client.reset_shared_clock("marketing").left == 2.0  # its clock is right
        shown = client.shared_budget("marketing")
        assert [(each.name, each.spent, each.left) for each in shown.campaigns] == [("spring", 1.0, 4.0),
                                                                                    ("summer", 1.0, 4.0)]  # fmt: skip
        assert [each.name for each in client.shared_budgets()] == ["marketing"]
        assert client.change_terms("summer", shared_budget=None).shared_budget is None
        assert client.shared_budget("marketing").spent == 2.0
        assert client.verify_shared_budget("marketing") == []
        with pytest.raises(NotFound):
            client.shared_budget("sales")
        with pytest.raises(BadParameter, match="there is no field"):
            client.change_shared_budget("marketing", currency="USD")


def test_a_key_for_one_campaign_neither_sees_nor_joins(store):
    service = Service(store)
    assert service("POST", "/v1/shared-budgets", {"name": "marketing", "budget": 5.0}).status_code == 201
    service.engine.create("ads", "bts", 10.0, ARMS, shared_budget="marketing")
    own = make_key(store, ["admin"], 0.0, "ads")
    for method, path in (("GET", "/v1/shared-budgets"), ("GET", "/v1/shared-budgets/marketing")):
        assert service(method, path, key=own).status_code == 403
    assert service("POST", "/v1/shared-budgets/marketing/terms", {"budget": 9.0}, key=own).status_code == 403
    left = service("POST", "/v1/campaigns/ads/terms", {"shared_budget": None}, key=own)
    assert (left.status_code, left.json()["title"]) == (403, "forbidden")
    assert service("POST", "/v1/campaigns/ads/terms", {"hold_seconds": 60.0}, key=own).status_code == 200
    assert service("POST", "/v1/campaigns/ads/terms", {"shared_budget": None}).json()["shared_budget"] is None


def test_what_is_left_is_a_metric(store):
    service = Service(store)
    for number in range(3):
        service.engine.shared_budgets.create(f'"{number}"', 5.0 + number)
    lines = service("GET", "/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("budgetbandits_shared_budget_left{")]
    assert found[0] == r'budgetbandits_shared_budget_left{shared_budget="\"0\""} 5.0'
    assert len(found) == 3


@pytest.fixture
def pages(tmp_path):
    with served(tmp_path) as store:
        yield store


def test_a_shared_budget_on_its_page(pages):
    admin = Browser(pages.app, make_key(pages, ["admin"], 0.0))
    assert "There is none yet" in admin("GET", "/shared-budgets").text
    made = admin.confirm("/new-shared-budget", {"name": "marketing", "budget": "2", "currency": "EUR"})
    assert (made.status_code, made.headers["location"]) == (303, "/shared-budgets/marketing")
    engine = pages.engine
    for name in ("spring", "summer"):
        engine.create(name, "bts", 5.0, ARMS, shared_budget="marketing", currency="EUR")
        engine.feedback(engine.decide(name, "1", arms=["search"]).decision, cost=1.0, reward=1.0)
    page = admin("GET", "/shared-budgets/marketing").text
    for text in ("2.0000 <span", "of 2.0000 EUR", 'href="/campaigns/spring"',
                 "by its shared budget marketing: 0.0000 left", "spring joined, having spent 0.0000"):  # fmt: skip
        assert text in page
    campaign = admin("GET", "/campaigns/spring").text
    assert 'also that of the shared budget <a href="/shared-budgets/marketing">marketing</a>' in campaign
    assert "By its shared budget marketing: 0.0000 EUR is left" in campaign
    engine.set_status("spring", "paused")
    assert (
        "none for now: the shared budget &#39;marketing&#39; has 0.00 left"
        in admin("GET", "/campaigns/spring/resume").text
    )
    changed = admin.confirm("/shared-budgets/marketing/change", {"budget": "7.50"})
    assert "are made again at once" in admin("GET", "/campaigns/spring/resume").text
    assert changed.status_code == 303
    assert engine.shared_budgets.describe("marketing").left == 5.5
    too_low = admin("POST", "/shared-budgets/marketing/change", {"code": admin.code("/"), "budget": "1"})
    assert "Budget is 1.00; use 2.00, which is spent and held" in too_low.text
    assert admin("GET", "/shared-budgets/none").status_code == 404
    assert admin("GET", "/shared-budgets/marketing?format=json").json()["campaigns"][0]["name"] == "spring"


def test_who_may_see_and_change_it(pages):
    pages.engine.shared_budgets.create("marketing", 5.0)
    pages.engine.create("ads", "bts", 5.0, ARMS, shared_budget="marketing")
    reader = Browser(pages.app, make_key(pages, ["read"], 0.0))
    assert "Change the budget" not in reader("GET", "/shared-budgets/marketing").text
    assert reader("GET", "/shared-budgets/marketing/change").status_code == 403
    own = Browser(pages.app, make_key(pages, ["admin"], 0.0, "ads"))
    for path in ("/shared-budgets", "/shared-budgets/marketing", "/new-shared-budget"):
        assert own("GET", path).status_code == 403
    fields = {"shared_budget": "", "was_shared_budget": "marketing"}
    code = own.code("/campaigns/ads/pause")
    shown = own("POST", "/campaigns/ads/change-terms", {"code": code, **fields})

    refused = own("POST", "/campaigns/ads/change-terms", button(shown.text))
    assert refused.status_code == 403
    assert pages.engine.describe("ads").shared_budget == "marketing"
