"""A campaign that was restored from a copy, on the pages: it needs attention until it is said what was spent since."""

import pytest

from browsing import Browser, button
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.http.auth import make_key, prefix_of
from budgetbandits.service.ledger import to_units
from budgetbandits.service.webhooks import make_webhook
from served import kinds_of_events, pull
from stores import turn_on_all_keys

ARMS = {"a": 1.0, "b": 0.5}
RESUME = "/campaigns/ads/resume"
SINCE = " since the store was restored"


@pytest.fixture
def restored(store):
    """The engine, of whose campaign 0.25 of 20 was spent before it was copied."""
    store.clock.now -= 7200.0
    store.engine.create("ads", "bts", 20.0, ARMS)
    pull(store.engine, "ads", "1", cost=0.25, reward=1.0)
    store.clock.now += 3600.0
    store.engine.mark_restored()
    return store.engine


def test_it_needs_attention_and_says_why(restored, admin, reader):
    listed = reader("GET", "/?group=attention&format=json").json()
    assert [each["name"] for each in listed["campaigns"]] == ["ads"]
    assert listed["campaigns"][0]["standing"]["word"] == "Restored"
    page = admin("GET", "/campaigns/ads").text
    assert "<strong>Restored from a copy that ends at " in page
    assert "No decision is made until the campaign is resumed with that amount" in page
    assert 'class="button primary" href="/campaigns/ads/resume"' in page
    assert RESUME not in reader("GET", "/campaigns/ads").text


def test_it_is_resumed_with_what_was_spent_since_and_once(store, restored, admin):
    empty = admin("GET", RESUME).text
    assert 'name="spent_since"' in empty
    assert " required" in empty
    assert "since the copy of " in empty
    assert button(empty) is None
    shown = admin.check(RESUME, {"spent_since": "7.5"}).text
    assert ">Book 7.50 as spent and resume</button>" in shown
    assert "0.25 → <strong>7.75</strong>" in shown
    assert "19.75 → <strong>12.25</strong>" in shown
    assert "paused → <strong>running</strong>" in shown
    for _ in range(2):
        assert admin("POST", RESUME, {"code": admin.code("/"), **button(shown)}).status_code == 303
    account = restored.account("ads")
    assert (to_units(account.spent), account.status) == (7.75, "active")
    assert kinds_of_events(store, "ads")[-3:] == ["restored", "spent elsewhere", "active"]
    assert verify(store, "ads") == []
    again = admin.confirm(RESUME, {"spent_since": "7.5"})  # by a form that another person left open
    assert again.status_code == 409
    assert "booked already, as its events show" in again.text


def test_an_amount_must_be_given_and_may_be_0(restored, admin):
    for wrong, said in (("", "is empty"), ("-1", "use a number from 0"), ("much", "type a number")):
        answer = admin.confirm(RESUME, {"spent_since": wrong})
        assert answer.status_code == 422
        assert said in answer.text
    assert restored.account("ads").status == "paused"
    assert admin.confirm(RESUME, {"spent_since": "0"}).status_code == 303
    assert (restored.account("ads").status, restored.account("ads").spent) == ("active", 250_000)


def test_more_than_is_left_is_said_to_be_an_overrun(restored, admin):
    shown = admin.check(RESUME, {"spent_since": "21"}).text
    assert "19.75 → <strong>0.00</strong>" in shown
    assert "1.25 is booked apart; another overrun freezes again" in shown
    assert "none until there is money" in shown
    assert admin.confirm(RESUME, {"spent_since": "21"}).status_code == 303
    assert to_units(restored.account("ads").overrun) == 1.25


def test_a_frozen_one_is_resumed_with_it_too(store, admin):
    store.engine.create("ads", "bts", 20.0, ARMS)
    store.engine.feedback(store.engine.decide("ads", "1").decision, cost=5.0)
    store.engine.mark_restored()
    turn_on_all_keys(store)
    assert "that it was restored from." in admin("GET", "/campaigns/ads").text
    assert "frozen → <strong>running</strong>" in admin.check(RESUME, {"spent_since": "1"}).text


def test_members_of_a_shared_budget_wait_for_each_other(store, admin):
    """The preview knows of those that still have to be resumed, and of what the shared budget has left."""
    engine = store.engine
    engine.shared_budgets.create("all", 10.0)
    for name in ("ads", "other"):
        engine.create(name, "bts", 20.0, ARMS, shared_budget="all")
    engine.mark_restored()
    turn_on_all_keys(store)
    closing = admin("GET", "/campaigns/ads/close").text
    assert button(closing) is None
    assert "say what it has spent since when you resume it" in closing
    shown = admin.check(RESUME, {"spent_since": "12"}).text
    assert "0.00 → <strong>10.00</strong>" in shown
    assert "2.00 is booked apart" in shown
    assert "1 of its campaigns has spent since" in shown
    assert admin.confirm(RESUME, {"spent_since": "4"}).status_code == 303
    assert "are made again at once" in admin.check("/campaigns/other/resume", {"spent_since": "0"}).text
    assert admin.confirm("/campaigns/other/resume", {"spent_since": "0"}).status_code == 303
    engine.decide("ads", "1")


def test_keys_and_webhooks_that_are_off_have_a_button_that_turns_them_on(store):
    """A browser that was signed in before is signed out; an operator makes the first key where the store is."""
    key, hook = make_key(store, ["read"], 0.0), make_webhook(store, "https://example.org/hook").id
    before = Browser(store.app, make_key(store, ["admin"], 0.0))
    store.engine.mark_restored()
    assert before("GET", "/keys").status_code == 303
    admin = Browser(store.app, make_key(store, ["admin"], 0.0))
    page, turn_on = admin("GET", "/keys").text, f"/keys/turn-on?key={prefix_of(key)}"
    assert "<strong>2 off</strong>" in page
    assert f'href="{turn_on}"' in page
    shown = admin("GET", turn_on).text
    assert "are accepted again" in shown
    assert [admin("POST", "/keys/turn-on", button(shown)).status_code for _ in range(2)] == [303, 409]
    listed = admin("GET", "/keys?format=json").json()
    off = {each["prefix"]: each["off"] for each in listed["keys"]}
    assert (off[prefix_of(key)], sum(off.values())) == (False, 1)
    assert [each["kind"] for each in listed["events"][:2]] == ["turned on", "made"]
    assert "it may have been dropped already" in admin("GET", "/keys/turn-on?key=none").text
    assert f"off{SINCE}" in admin("GET", "/webhooks").text
    answer = admin.confirm("/webhooks/turn-on", {"id": hook})
    assert answer.status_code == 303
    assert f"off{SINCE}" not in admin("GET", "/webhooks").text
    assert "on already" in admin("GET", f"/webhooks/turn-on?id={hook}").text
