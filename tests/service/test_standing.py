"""How campaigns do, over HTTP: standing, cause, pace, projected end and reward, on both stores."""

import re
from collections import Counter
from typing import get_args

import httpx
import pytest

from budgetbandits.answers import StandingName
from budgetbandits.client import Client
from budgetbandits.errors import HoldRefused
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.standing import outlooks
from budgetbandits.service.stores.records import Counts, Rank, Watermark
from called import Service
from served import pull
from stores import turn_on_all_keys

ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture
def service(store):
    return Service(store)


def standing(service, name="ads", **more):
    answer = service("GET", f"/v1/campaigns/{name}/standing", **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def spending(store, campaign, hours, reward=0.0):
    """Have spent this much in each of these hours, the latest of which is over; by rollups alone."""

    def work(tx):
        hour = int(tx.now()) // 3600 * 3600
        counts = [
            Counts(hour - 3600 * back, 0, spent=round(1e6 * spent), reward=reward, rewards_reported=1)
            for back, spent in enumerate(reversed(hours), 1)
        ]
        tx.rollups().add(campaign, counts, Watermark(tx.last_event(campaign)), 0.0)
        tx.change("UPDATE campaign SET created_at = ? WHERE id = ?", (hour - 3600.0 * len(hours), campaign))

    store.write(work)


def with_spent(store, campaign, spent):
    values = round(1e6 * spent), campaign
    store.write(lambda tx: tx.change("UPDATE campaign SET spent = ? WHERE id = ?", values))


def test_what_a_campaign_does_is_told_to_a_key_that_may_read(service):
    engine, store = service.engine, service.store
    campaign = engine.create("ads", "bts", 10.0, ARMS, pace_seconds=864_000.0)
    engine.create("other", "bts", 10.0, ARMS)
    pull(engine, "ads", "1", cost=0.25, reward=0.75)
    roll_up(store)
    key = make_key(store, ["read"], 0.0, "ads")
    seen = standing(service, key=key)
    assert seen | {"at": 0, "pace": 0, "last_decision_at": 0, "last_feedback_at": 0} == {
        "id": campaign, "campaign": "ads", "at": 0, "standing": "running", "cause": "", "needs_attention": False,
        "runs_out": None, "pace": 0, "spent": 0.25, "left": 9.75, "spent_24_hours": 0.25, "rewards_24_hours": 1,
        "reward_24_hours": 0.75, "last_decision_at": 0, "last_feedback_at": 0,
    }  # fmt: skip
    assert seen["at"] - 60 < seen["last_decision_at"] <= seen["last_feedback_at"] <= seen["at"]
    assert seen["pace"] | {"plan": 0, "behind": 0, "behind_share": 0} == {
        "plan": 0, "behind": 0, "behind_share": 0, "verdict": "Just begun",
    }  # fmt: skip
    assert seen["pace"]["behind"] == pytest.approx(seen["pace"]["plan"] - 0.25)
    assert service("GET", "/v1/campaigns/other/standing", key=key).status_code == 403
    assert service("GET", "/v1/standings", key=key).status_code == 403
    assert service("GET", "/v1/standings", key=make_key(store, ["decide"], 0.0)).status_code == 403
    assert service("GET", "/v1/standings", Authorization="").status_code == 401
    assert service("GET", "/v1/campaigns/nobody/standing").status_code == 404


def test_a_campaign_whose_money_ends_within_a_day_is_running_out(service):
    """2 an hour, evenly: 20 left are ten hours, 80 left forty."""
    for name, budget, word in (("soon", 32.0, "running_out"), ("late", 92.0, "running")):
        campaign = service.engine.create(name, "bts", budget, ARMS)
        spending(service.store, campaign, [2.0] * 6, reward=0.5)
        with_spent(service.store, campaign, 12.0)
        seen = standing(service, name)
        assert (seen["standing"], seen["needs_attention"]) == (word, False)
        hours = (budget - 12.0) / 2.0
        assert seen["runs_out"]["median"] == pytest.approx(seen["at"] + 3600.0 * hours, abs=1.0)
        assert (seen["spent_24_hours"], seen["rewards_24_hours"], seen["reward_24_hours"]) == (12.0, 6, 3.0)


def test_members_of_a_shared_budget_run_out_with_it(service):
    """30 at 4 an hour together: 7.5 hours, where their own 500 would last for ten days."""
    service.engine.shared_budgets.create("all", 30.0)
    for name in ("spring", "summer"):
        campaign = service.engine.create(name, "bts", 500.0, ARMS, shared_budget="all")
        spending(service.store, campaign, [2.0] * 6)
    for seen in (standing(service, "spring"), *service("GET", "/v1/standings").json()):
        assert (seen["standing"], seen["left"], seen["runs_out"]["limit"]) == ("running_out", 30.0, "shared_budget")
        assert seen["runs_out"]["median"] == pytest.approx(seen["at"] + 3600.0 * 7.5, abs=2.0)


@pytest.mark.parametrize("on_limit", ["refuse", "cheapest"])
def test_a_campaign_that_has_spent_the_money_of_the_day_says_so(service, on_limit):
    engine = service.engine
    engine.create("ads", "bts", 10.0, ARMS, daily_cap=1.2, on_limit=on_limit)
    assert standing(service)["cause"] == ""
    pull(engine, "ads", "1", cost=0.5, reward=1.0)
    seen = standing(service)
    assert (seen["standing"], seen["needs_attention"]) == ("running", False)
    if on_limit == "refuse":
        assert re.fullmatch(r"0\.70 of the day's 1\.20 left; the next day begins in .+", seen["cause"])
        with pytest.raises(HoldRefused, match=r"0\.70 of the day's 1\.20 left"):
            engine.decide("ads", "2")
    else:  # the cheapest arm answers
        assert seen["cause"] == ""
        assert engine.decide("ads", "2").arm == "mail"


def test_each_standing_has_its_name(service):
    engine, store = service.engine, service.store
    for name in ("restored", "frozen", "exhausted", "blocked", "nearly", "paused", "closed"):
        engine.create(name, "bts", 1.0, ARMS)
        if name == "restored":
            engine.mark_restored()
            turn_on_all_keys(store)
    made = engine.decide("frozen", "1")
    engine.feedback(made.decision, cost=made.hold + 3.0)
    engine.set_status("paused", "paused")
    engine.set_status("closed", "closed")
    while engine.account("blocked").left >= 500_000:
        engine.decide("blocked", f"{engine.account('blocked').held}")
    for name, spent in (("exhausted", 0.9), ("nearly", 0.3)):
        with_spent(store, engine.describe(name).id, spent)
    words = {each["campaign"]: each["standing"] for each in service("GET", "/v1/standings").json()}
    assert words == {
        "restored": "restored", "frozen": "frozen", "exhausted": "exhausted", "blocked": "blocked_by_holds",
        "nearly": "nearly_exhausted",
        "paused": "paused", "closed": "closed",
    }  # fmt: skip
    assert set(words.values()) <= set(get_args(StandingName))
    # exhausted long ago is exhausted; running_out is the list's running
    assert len(get_args(StandingName)) == len(Rank)
    engine.set_status("frozen", "active")
    roll_up(store)
    store.write(lambda tx: tx.change("UPDATE campaign SET budget = 9000000 WHERE name = ?", ("frozen",)))
    overran = standing(service, "frozen")
    assert (overran["standing"], overran["needs_attention"]) == ("overran", True)
    assert "3.0000 booked apart as overrun" in overran["cause"]


def test_a_restored_campaign_needs_attention_until_it_is_said_what_was_spent_since(service):
    """Also where an operator had paused it, or its terms are changed meanwhile; a frozen one says both."""
    engine, store = service.engine, service.store
    for name in ("ads", "paused", "frozen", "closed"):
        engine.create(name, "bts", 10.0, ARMS)
    engine.set_status("paused", "paused")
    engine.set_status("closed", "closed")
    made = engine.decide("frozen", "1")
    engine.feedback(made.decision, cost=made.hold + 3.0)
    engine.mark_restored()
    turn_on_all_keys(store)
    engine.change_terms("ads", {"hold_seconds": 60.0})

    def listed():
        """Each with its standing, and in the list that the store orders by the same ranks."""
        ids = {each.glance.id: each for each in store.read(lambda tx: outlooks(tx, tx.pages().campaign_list().ids(9)))}
        page = store.read(lambda tx: tx.pages().campaign_list().listed(tx.now(), "", "all", "alarm", 10, 0))
        assert [ids[id].standing.rank for id in page.ids] == sorted(each.standing.rank for each in ids.values())
        assert page.counts == Counter(each.standing.rank for each in ids.values())
        return {each.glance.name: each.name for each in ids.values()}

    assert listed() == {"ads": "restored", "paused": "restored", "frozen": "frozen", "closed": "closed"}
    seen = standing(service)
    assert (seen["standing"], seen["needs_attention"], seen["runs_out"]) == ("restored", True, None)
    assert re.fullmatch(
        r"from a copy that ends at [\d-]+ [\d:]+ UTC; resume it with what was spent since", seen["cause"]
    )
    assert "booked apart as overrun; restored from a copy that ends at" in standing(service, "frozen")["cause"]
    engine.set_status("ads", "active", spent_since=1.0)
    engine.set_status("paused", "active", spent_since=0.0)
    engine.set_status("paused", "paused")
    assert listed() == {"ads": "running", "paused": "paused", "frozen": "frozen", "closed": "closed"}


def test_standings_come_in_pages_and_leave_out_what_is_damaged(service, monkeypatch):
    engine, store = service.engine, service.store
    ids = [engine.create(f"campaign {number}", "bts", 10.0, ARMS) for number in range(7)]
    all_of_them = service("GET", "/v1/standings").json()
    assert sorted(each["id"] for each in all_of_them) == sorted(ids)
    order = [each["id"] for each in all_of_them]
    store.write(lambda tx: tx.change("UPDATE campaign SET settings = '{}' WHERE id = ?", (order[3],)))
    monkeypatch.setattr("budgetbandits.service.campaigns.OUTLOOKS_AT_ONCE", 2)
    left = [id for id in order if id != order[3]]
    assert [each["id"] for each in service("GET", "/v1/standings").json()] == left
    page = service("GET", f"/v1/standings?limit=3&after={order[1]}").json()
    assert [each["id"] for each in page] == [order[2], order[4], order[5]]
    assert service("GET", f"/v1/standings?limit=3&after={order[3]}").json()[0]["id"] == order[4]
    damaged = service("GET", f"/v1/campaigns/{order[3]}/standing")
    assert (damaged.status_code, damaged.json()["title"]) == (503, "BadState")


def test_clients_read_standings(service):
    service.engine.create("ads", "bts", 10.0, ARMS)
    shown = standing(service)

    def handle(request):
        return httpx.Response(200, json=[shown] if request.url.path == "/v1/standings" else shown | {"new": 1})

    with Client("http://x", "k", transport=httpx.MockTransport(handle)) as client:
        assert client.standing("ads") == client.standings()[0]
        assert client.standing("ads").standing == "running"


def test_a_service_without_http_says_it_too(store):
    engine = DecisionService(store)
    engine.create("ads", "bts", 10.0, ARMS)
    assert engine.standing("ads").standing == "running"
    assert [each.campaign for each in engine.standings()] == ["ads"]
