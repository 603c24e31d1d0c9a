"""Who did what, in events and in logs: the actor of a worker's report, request ids and W3C traces."""

import pytest
import structlog
from structlog.testing import capture_logs

from budgetbandits.service.audit.audit import verify
from budgetbandits.service.http.auth import make_key, prefix_of
from called import Service
from memory_store import MemoryStore
from stores import all_events

CAMPAIGN = {"name": "ads", "budget": 10.0, "arms": {"search": 1.0, "mail": 0.5}}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize("lease", [None, 4.0])
def test_an_event_says_who_reported_it(store, lease):
    service = Service(store)
    service("POST", "/v1/campaigns", CAMPAIGN | {"lease": lease})
    key = make_key(store, ["decide", "feedback"], 0.0)
    path, actor = "/v1/campaigns/ads/decisions", f"bb_{prefix_of(key)}"

    def made(number):
        return service("POST", path, {}, key=key, Idempotency_Key=f"{number}").json()["decision"]

    one, two, three, four = map(made, range(4))
    service("POST", f"{path}/{one}/feedback", {"cost": 0.25}, key=key)
    service("POST", f"{path}/{one}/feedback", {"reward": 1.0})  # by the admin key
    service("POST", f"{path}/{two}/feedback", {"failed": True}, key=key)
    service("POST", f"{path}/{three}/void", key=key)
    service("POST", "/v1/campaigns/ads/feedback", {"outcomes": [{"decision": four, "cost": 0.1}]}, key=key)
    who = {(event.kind, event.decision): event.actor for event in all_events(store, "ads") if event.decision}
    assert who == {
        ("settled", one): actor, ("rewarded", one): f"bb_{prefix_of(service.admin)}", ("settled", two): actor,
        ("failed", two): actor, ("voided", three): actor, ("settled", four): actor,
        **{("decided", each): None for each in (one, two, three, four)},
    }  # fmt: skip
    assert verify(store, "ads") == []


def test_a_request_keeps_the_id_that_it_came_with_or_gets_one():
    service = Service(MemoryStore())
    for path in ("/healthz", "/v1/campaigns", "/nothing"):
        assert service("GET", path, X_Request_ID="abc-1").headers["x-request-id"] == "abc-1"
        first, second = (service("GET", path).headers["x-request-id"] for _ in range(2))
        assert first != second
        assert len(first) == 16
        assert service("GET", path, X_Request_ID="a b").headers["x-request-id"] != "a b"
        assert len(service("GET", path, X_Request_ID="x" * 129).headers["x-request-id"]) == 16


def test_logs_name_the_request_its_trace_and_its_actor():
    service = Service(MemoryStore())
    more = {"X_Request_ID": "abc-1", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as said:
        service("POST", "/v1/campaigns", CAMPAIGN, **more)
        made = service("POST", "/v1/campaigns/ads/decisions", {}, Idempotency_Key="1").json()
        service("POST", f"/v1/campaigns/ads/decisions/{made['decision']}/feedback", {"cost": 3.0}, **more)
    created, frozen = said
    actor = f"bb_{prefix_of(service.admin)}"
    for entry, event in ((created, "campaign created"), (frozen, "campaign frozen by overrun")):
        wanted = {"event": event, "request_id": "abc-1", "trace_id": TRACE, "parent_id": "00f067aa0ba902b7"}
        assert {name: entry[name] for name in wanted} == wanted
        assert (entry["actor"], entry["campaign"]) == (actor, "ads")
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as said:
        service("POST", "/v1/campaigns", CAMPAIGN | {"name": "other"}, traceparent="00-zz-1-01")
    assert "trace_id" not in said[0]
