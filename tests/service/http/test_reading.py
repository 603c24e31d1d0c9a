"""Decisions and events over HTTP, page by page, on both stores."""

import time
from dataclasses import asdict

import pytest

from budgetbandits.answers import DecisionPageAnswer
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.service import DecisionService
from called import Service
from clock import Clock
from served import pull

ARMS = {"search": 1.0, "openai/small": 0.5}
PATH = "/v1/campaigns/ads"


@pytest.fixture
def service(store):
    service = Service(store)
    service.engine.create("ads", "bts", 100.0, ARMS)
    service.engine.create("other", "bts", 100.0, ARMS)
    return service


def pages(service, path, name, cursor, limit):
    """All rows of a list, page by page."""
    found, said = [], ""
    while True:
        page = service("GET", f"{path}limit={limit}{said}").json()
        found.append(page[name])
        if page[cursor] is None or not page[name]:
            return found
        said = f"&{cursor}={page[cursor]}"


def test_a_decision_is_read(service):
    notes = {"user": "u-17", "prompt": 3}
    made = pull(service.engine, "ads", "order 1", cost=0.25, reward=0.5, metadata=notes)
    shown = service("GET", f"{PATH}/decisions/{made.decision}").json()
    wanted = {
        "decision": made.decision, "key": "order 1", "arm": made.arm, "segment": None, "metadata": notes,
        "state": "settled", "failed": False, "hold": made.hold, "cost": 0.25, "charged": 0.25, "overrun": 0.0,
        "reward": 0.5, "propensity": None,
    }  # fmt: skip
    assert {name: shown[name] for name in wanted} == wanted
    assert shown["expires_at"] == made.expires_at
    for path in (f"/v1/campaigns/other/decisions/{made.decision}", f"{PATH}/decisions/nothing"):
        assert service("GET", path).status_code == 404
    assert service("GET", f"{PATH}/decisions", key=make_key(service.store, ["decide"], 0.0)).status_code == 403


@pytest.mark.parametrize("lease", [None, 30.0])
def test_all_decisions_and_events_are_found_page_by_page(service, lease):
    engine = service.engine
    if lease:
        engine.create("leased", "bts", 100.0, ARMS, lease=lease)
    name = "leased" if lease else "ads"
    ids = [pull(engine, name, f"{number}", cost=0.25).decision for number in range(7)]
    open_one = engine.decide(name, "open").decision
    path = f"/v1/campaigns/{name}"
    found = pages(service, f"{path}/decisions?", "decisions", "before", 3)
    assert [len(page) for page in found] == [3, 3, 2]
    assert [each["decision"] for page in found for each in page] == [open_one, *reversed(ids)]
    held = service("GET", f"{path}/decisions?kind=held").json()
    assert ([each["decision"] for each in held["decisions"]], held["before"]) == ([open_one], None)
    small = service("GET", f"{path}/decisions?arm=openai%2Fsmall&limit=1000").json()["decisions"]
    assert {each["arm"] for each in small} <= {"openai/small"}
    assert service("GET", f"{path}/decisions?arm=nobody").status_code == 404
    assert service("GET", f"{path}/decisions?limit=0").status_code == 422

    events = pages(service, f"{path}/events?", "events", "after", 4)
    listed = [each for page in events for each in page]
    seqs = [each["seq"] for each in listed]
    assert seqs == sorted(set(seqs))
    own = [(each["kind"], each["decision"]) for each in listed if each["decision"]]
    wanted = [pair for id in ids for pair in (("decided", id), ("settled", id))] + [("decided", open_one)]
    assert own == wanted[: len(own)]  # the latest events of a lease may wait until none can come before them
    assert len(own) == len(wanted) or lease
    cursor = service("GET", f"{path}/events?limit=1000").json()["after"]
    assert service("GET", f"{path}/events?after={cursor}").json() == {"events": [], "after": cursor}
    engine.set_status(name, "paused", actor="me")
    later = service("GET", f"{path}/events?after={cursor}").json()["events"]
    assert (later[-1]["kind"], later[-1]["actor"]) == ("paused", "me")
    assert [(e["kind"], e["decision"]) for e in [*listed, *later] if e["decision"]] == wanted


def test_pages_begin_at_a_time(store):
    """Give or take a few seconds, by which clocks may differ."""
    clock, service = Clock(now := time.time()), Service(store)
    engine = DecisionService(store, clock)
    engine.create("ads", "bts", 100.0, ARMS)
    for number in range(6):
        clock.now = now + 60.0 * number
        engine.decide("ads", f"{number}")
    with service.client() as client:
        for number in range(7):
            at = now + 60.0 * number - 30.0
            later = client.events("ads", since=at).events
            earlier = client.decisions("ads", until=at).decisions
            assert [each.kind for each in later] == ["created"] * (number == 0) + ["decided"] * (6 - number)
            assert [each.key for each in earlier] == [f"{each}" for each in reversed(range(number))]
        page = client.decisions("ads", until=now + 150.0, limit=2)
        assert [each.key for each in page.decisions] == ["2", "1"]
        for cursors in ({"before": page.before}, {"before": page.before, "until": now + 150.0}):
            assert [each.key for each in client.decisions("ads", **cursors).decisions] == ["0"]
        cursor = client.events("ads", limit=3).after
        assert len(client.events("ads", after=cursor, since=now).events) == 4
    for query in ("events?since=nan", "events?since=-1", "decisions?until=1e400"):
        assert service("GET", f"{PATH}/{query}").status_code == 422


def test_a_client_asks_for_pages(service):
    made = pull(service.engine, "ads", "1", cost=0.25)
    with service.client() as client:
        one = client.decision("ads", made.decision)
        assert asdict(one) == service("GET", f"{PATH}/decisions/{made.decision}").json()
        assert client.decisions("ads", limit=5) == DecisionPageAnswer((one,), None)
        assert client.decisions("ads", limit=5, before=10**6).decisions == (one,)
        assert client.decisions("ads", kind="settled", arm=one.arm).decisions == (one,)
        assert client.decisions("ads", kind="voided").decisions == ()
        assert [each.kind for each in client.events("ads").events] == ["created", "decided", "settled"]


def test_totals_are_of_each_arm_that_was_chosen(service):
    """Also by the client's method, and with what is not reported yet."""
    assert service("GET", f"{PATH}/totals").json() == []
    for number in range(3):
        made = service.engine.decide("ads", f"{number}", arms=["search"])
        service.engine.feedback(made.decision, cost=1.25 if number == 2 else 0.25, reward=0.5)
    service.engine.set_status("ads", "active")  # it has overrun
    service.engine.decide("ads", "open", arms=["openai/small"])
    found = service("GET", f"{PATH}/totals").json()
    assert found == [
        {"arm": "search", "open": 0, "cost": 1.75, "reward": 1.5},
        {"arm": "openai/small", "open": 1, "cost": 0.0, "reward": 0.0},
    ]
    with service.client() as client:
        assert client.totals("ads")["search"].cost == 1.75
    assert service("GET", "/v1/campaigns/none/totals").status_code == 404
    assert service("GET", f"{PATH}/totals", key=make_key(service.store, ["decide"], 0.0)).status_code == 403


def test_an_event_says_which_terms_changed(service):
    """Money in the user's unit, caps by the names of arms."""
    changes = {"budget": 80.0, "tags": ("a", "b"), "daily_cap": 9.5, "caps": {"openai/small": 0.75}, "name": "adverts"}
    service.engine.change_terms("ads", changes, actor="me")
    created, changed = service("GET", "/v1/campaigns/adverts/events").json()["events"]
    assert created["changes"] is None
    said = [tuple(each[name] for name in ("term", "arm", "before", "after")) for each in changed["changes"]]
    assert sorted(said) == [
        ("budget", None, 100.0, 80.0), ("cap", "openai/small", 0.5, 0.75), ("daily_cap", None, None, 9.5),
        ("name", None, "ads", "adverts"), ("tags", None, None, ["a", "b"]),
    ]  # fmt: skip
