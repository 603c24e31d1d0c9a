"""Decisions and events over HTTP, page by page, on both stores."""

import pytest

from budgetbandits.client import protocol
from budgetbandits.service.http.auth import make_key
from called import Service
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
    made = pull(service.engine, "ads", "1", cost=0.25, reward=0.5)
    shown = service("GET", f"{PATH}/decisions/{made.decision}").json()
    wanted = {
        "decision": made.decision, "arm": made.arm, "segment": None, "state": "settled", "failed": False,
        "hold": made.hold, "cost": 0.25, "charged": 0.25, "overrun": 0.0, "reward": 0.5, "propensity": None,
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


def test_a_client_asks_for_pages(service):
    made = pull(service.engine, "ads", "1", cost=0.25)
    for call in (protocol.decision("ads", made.decision), protocol.decisions("ads", 5, None),
                 protocol.decisions("ads", 5, 10**6), protocol.events("ads", 5, 0)):  # fmt: skip
        answer = service(call.method, call.path)
        assert answer.status_code == 200, call.path
        assert call.read(answer.json()) == answer.json()


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
    assert protocol.totals("ads").read(found)["search"].cost == 1.75
    assert service("GET", "/v1/campaigns/none/totals").status_code == 404
    assert service("GET", f"{PATH}/totals", key=make_key(service.store, ["decide"], 0.0)).status_code == 403
