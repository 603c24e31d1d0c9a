"""The service over HTTP: what is answered, what is refused and how, and one real server."""

import asyncio
import io
import json
import signal
import socket
import sqlite3
import time
from dataclasses import replace
from urllib.parse import quote

import httpx
import polars
import pytest
from structlog.testing import capture_logs

from budgetbandits.errors import BadParameter, NotAllowed, NotFound, StoreError, TooManyWrongKeys
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.http import rate_limit
from budgetbandits.service.http.auth import KeyRing, check_header, drop_key, make_key
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service, sent
from memory_store import MemoryStore
from servers import admin_key, free_port, serving

CAMPAIGN = {"name": "ads", "budget": 10.0, "arms": {"search": 1.0, "mail": 0.5}}


def ready(service):
    return service("GET", "/readyz", key="none").status_code


@pytest.fixture
def service():
    return Service(MemoryStore())


@pytest.fixture
def campaign_path(service):
    answer = service("POST", "/v1/campaigns", CAMPAIGN)
    assert answer.status_code == 201
    return f"/v1/campaigns/{answer.json()['id']}"


NUL = "a\0b"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/campaigns", CAMPAIGN | {"name": NUL}),
        ("/v1/campaigns", CAMPAIGN | {"currency": NUL}),
        ("/v1/campaigns", CAMPAIGN | {"policy": NUL}),
        ("/v1/campaigns", CAMPAIGN | {"arms": {NUL: 1.0, "b": 1.0}}),
        ("/v1/campaigns/ads/arms", {"name": NUL, "cost_cap": 0.5}),
        ("/v1/campaigns/ads/arms/a%00b/retire", None),
        ("/v1/campaigns/a%00b/pause", None),
        ("/v1/campaigns/a%00b/decisions", {}),
        ("/v1/campaigns/ads/decisions", {"context": {"deep": [{"er": NUL}]}}),
        ("/v1/campaigns/ads/decisions", {"context": {NUL: 1}}),
        ("/v1/campaigns/ads/decisions", {"segment": NUL}),
        ("/v1/campaigns/ads/decisions", {"exclude": [NUL]}),
        ("/v1/campaigns/ads/decisions", {"holds": {NUL: 0.5}}),
        ("/v1/campaigns/ads/decisions?x=%00", {}),
        ("/v1/campaigns/ads/feedback", {"outcomes": [{"decision": NUL, "cost": 0.1}]}),
        ("/v1/campaigns/ads/decisions/a%00b/feedback", {"cost": 0.1}),
        ("/v1/campaigns/ads/decisions/a%00b/void", None),
    ],
)
def test_no_text_with_the_character_nul_gets_in(service, campaign_path, path, body):
    """PostgreSQL would refuse it, and the server would say that its database is gone."""
    events = len(service.store.events)
    answer = service("POST", path, body, Idempotency_Key="one")
    assert answer.status_code == 422
    assert "U+0000" in answer.json()["detail"]
    assert len(service.store.events) == events


def test_a_backslash_before_what_looks_like_nul_is_a_backslash(service, campaign_path):
    for number, context in enumerate((r"\u0000", r"\\u0000")):
        body = {"context": {"path": context}}
        assert service("POST", f"{campaign_path}/decisions", body, Idempotency_Key=f"{number}").status_code == 201
    raw = rb'{"context": {"path": "C:\\\u0000"}}'  # a backslash, and then the character
    assert service("POST", f"{campaign_path}/decisions", content=raw, Idempotency_Key="raw").status_code == 422


def test_null_means_that_nothing_is_said(service, campaign_path):
    nothing = dict.fromkeys(["context", "segment", "arms", "exclude", "prices", "holds"])
    made = service("POST", f"{campaign_path}/decisions", nothing, Idempotency_Key="one")
    assert made.status_code == 201
    assert service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one").json() == made.json()
    feedback = f"{campaign_path}/decisions/{made.json()['decision']}/feedback"
    assert service("POST", feedback, {"cost": 0.25, "reward": None, "failed": None}).status_code == 200
    arms = service("GET", campaign_path).json()["arms"]
    assert [(arm["failures"], arm["cooldown_until"]) for arm in arms] == [(0, None)] * 2  # said, though nothing is


def test_a_decision_from_beginning_to_end(service, campaign_path):
    made = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one")
    assert made.status_code == 201
    assert service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one").json() == made.json()
    decision = f"{campaign_path}/decisions/{made.json()['decision']}"
    assert service("GET", campaign_path).json()["held"] == made.json()["hold"]
    assert service("POST", f"{decision}/feedback", {"cost": 0.25}).status_code == 200
    assert service("POST", f"{decision}/feedback", {"reward": 1}).status_code == 200
    view = service("GET", campaign_path).json()
    assert (view["spent"], view["held"], view["left"]) == (0.25, 0.0, 9.75)
    assert sum(arm["pulls"] for arm in view["arms"]) == 1
    assert service("POST", f"{decision}/feedback", {"cost": 0.5}).status_code == 409


def test_operators(service, campaign_path):
    assert service("POST", f"{campaign_path}/top-up", {"amount": 5}).json()["budget"] == 15.0
    assert service("POST", f"{campaign_path}/pause").json()["status"] == "paused"
    paused = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one")
    assert (paused.status_code, paused.json()["title"]) == (409, "paused")
    assert service("POST", f"{campaign_path}/resume").json()["status"] == "active"
    in_order = service("POST", f"{campaign_path}/reset-clock")
    assert (in_order.status_code, in_order.json()["title"]) == (409, "Conflict")
    assert service("POST", f"{campaign_path}/arms", {"name": "radio", "cost_cap": 0.2}).status_code == 201
    retired = service("POST", f"{campaign_path}/arms/search/retire").json()
    assert [(arm["name"], arm["active"]) for arm in retired["arms"]] == [
        ("search", False), ("mail", True), ("radio", True)
    ]  # fmt: skip
    made = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="two").json()
    assert service("POST", f"{campaign_path}/decisions/{made['decision']}/void").status_code == 200
    assert service("POST", f"{campaign_path}/close").json()["status"] == "closed"
    assert [each["name"] for each in service("GET", "/v1/campaigns").json()] == ["ads"]


def test_operators_changes_under_a_key_are_made_once(service, campaign_path):
    for _ in range(2):
        answer = service("POST", f"{campaign_path}/top-up", {"amount": 5}, Idempotency_Key="one")
        assert (answer.status_code, answer.json()["budget"]) == (200, 15.0)
    other = service("POST", f"{campaign_path}/top-up", {"amount": 6}, Idempotency_Key="one")
    assert (other.status_code, other.json()["title"]) == (409, "Conflict")
    assert service("POST", f"{campaign_path}/pause", Idempotency_Key="x" * 201).status_code == 422
    document = service("GET", "/openapi.json").json()["paths"]["/v1/campaigns/{campaign}/top-up"]["post"]
    assert "Idempotency-Key" in {each["name"] for each in document["parameters"]}
    answer = document["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == {"$ref": "#/components/schemas/CampaignDetailAnswer"}


def test_a_change_that_is_asked_for_again_gets_the_answer_it_had(service):
    """Byte for byte, whatever has happened since; and the first answer is what a look at the campaign shows."""
    ads = "/v1/campaigns/ads"
    changes = [
        ("/v1/campaigns", CAMPAIGN),
        (f"{ads}/top-up", {"amount": 5}),
        (f"{ads}/arms", {"name": "tv", "cost_cap": 0.75}),
        (f"{ads}/terms", {"hold_seconds": 60.0}),
        (f"{ads}/terms", {"name": "Ads", "caps": {"mail": 2}, "budget": 30, "reward_max": 4, "policy": "bts-gaussian"}),
        (f"{ads}/arms/mail/retire", None),
        (f"{ads}/arms/mail/bring-back", None),
        (f"{ads}/pause", None),
        (f"{ads}/resume", None),
        (f"{ads}/close", None),
    ]
    first = []
    for number, (path, body) in enumerate(changes):
        first.append(service("POST", path, body, Idempotency_Key=f"change {number}"))
        assert first[-1].json() == service("GET", ads).json()
        if number < len(changes) - 1:
            service("POST", f"{ads}/decisions", {}, Idempotency_Key=f"decision {number}")
    assert len({each.content for each in first}) == len(changes)
    for number, (path, body) in enumerate(changes):
        again = service("POST", path, body, Idempotency_Key=f"change {number}")
        assert (again.status_code, again.content) == (first[number].status_code, first[number].content), path
    assert first[0].status_code == first[2].status_code == 201


def test_money_that_is_gone_and_money_that_is_held(service):
    body = CAMPAIGN | {"budget": 1.0, "arms": {"a": 1.0, "b": 1.0}}
    campaign = f"/v1/campaigns/{service('POST', '/v1/campaigns', body).json()['id']}"
    made = service("POST", f"{campaign}/decisions", {}, Idempotency_Key="one").json()
    held = service("POST", f"{campaign}/decisions", {}, Idempotency_Key="two")
    assert (held.status_code, held.json()["title"], held.headers["retry-after"]) == (409, "blocked_by_holds", "1")
    service("POST", f"{campaign}/decisions/{made['decision']}/feedback", {"cost": 1, "reward": 0})
    gone = service("POST", f"{campaign}/decisions", {}, Idempotency_Key="two")
    assert (gone.status_code, gone.json()["title"]) == (402, "exhausted")
    assert gone.headers["content-type"] == "application/problem+json"
    assert "top up" in gone.json()["detail"]


def test_keys_and_scopes(service, campaign_path):
    identity = campaign_path.rsplit("/", 1)[1]
    decider = make_key(service.store, ["decide"], 0.0, campaign=identity)
    reader = make_key(service.store, ["read"], 0.0)
    other = service("POST", "/v1/campaigns", CAMPAIGN | {"name": "other"}).json()["id"]
    assert service("POST", f"{campaign_path}/decisions", {}, key=decider, Idempotency_Key="k").status_code == 201
    assert service("GET", campaign_path, key=reader).status_code == 200
    for key, method, path, status in [
        (decider, "GET", campaign_path, 403),
        (decider, "POST", f"{campaign_path}/pause", 403),
        (decider, "POST", f"/v1/campaigns/{other}/decisions", 403),
        (reader, "POST", f"{campaign_path}/decisions", 403),
        ("bb_00000000_wrong", "GET", campaign_path, 401),
        (decider[:-1] + "x", "GET", campaign_path, 401),
        ("nonsense", "GET", campaign_path, 401),
    ]:
        answer = service(method, path, {} if method == "POST" else None, key=key, Idempotency_Key="z")
        assert answer.status_code == status, (key, path)
        assert answer.headers["content-type"] == "application/problem+json"
    for header in ("", "Basic abc", service.admin):
        assert service("GET", campaign_path, Authorization=header).status_code == 401
    assert service("GET", "/healthz", Authorization="").status_code == 200
    assert service("GET", "/readyz", Authorization="").status_code == 200


def test_guessing_keys_is_slowed_down_and_good_keys_pass(service, campaign_path, monkeypatch):
    monkeypatch.setattr(rate_limit, "WINDOW_SECONDS", 30.0)
    reader, unseen = (make_key(service.store, ["read"], 0.0) for _ in range(2))
    assert service("GET", campaign_path, key=reader).status_code == 200
    for number in range(20):
        assert service("GET", campaign_path, key=f"bb_00000000_{number}").status_code == 401
    refused = service("GET", campaign_path, key=f"{unseen}x")
    assert (refused.status_code, refused.json()["title"]) == (429, "TooManyWrongKeys")
    assert 25 <= int(refused.headers["retry-after"]) <= 30
    assert service("POST", f"{campaign_path}/decisions", {}, key="bb_1_2", Idempotency_Key="k").status_code == 429
    assert service("GET", campaign_path, key=reader).status_code == 200
    assert service("GET", campaign_path, key=unseen).status_code == 200
    assert service("POST", f"{campaign_path}/decisions", {}, key=reader, Idempotency_Key="k").status_code == 403
    assert "no key was sent" in service("GET", campaign_path, Authorization="").text  # no guess


def test_guesses_are_counted_by_address_and_forgotten():
    now = [0.0]
    counted = rate_limit.KeyFailures(lambda: now[0])
    for _ in range(20):
        counted.count("here")
    with pytest.raises(TooManyWrongKeys) as caught:
        counted.count("here")
    assert caught.value.retry_after == 60.0
    assert counted.many("here")
    counted.count("there")
    assert not counted.many("there")
    now[0] = 60.0
    assert not counted.many("here")
    counted.count("here")
    for number in range(rate_limit.ADDRESSES_MAX + 5):
        counted.count(str(number))
    assert len(counted._by_address) == rate_limit.ADDRESSES_MAX


def test_an_address_that_guesses_takes_one_thread(service, campaign_path):
    """The store is slow; of many guesses at once only one asks it at a time, and a good key has its turn."""
    at_once, most, read = [0], [0], service.store.read

    def slow(work, urgent=False):
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        time.sleep(0.002)
        at_once[0] -= 1
        return read(work, urgent)

    service.store.read = slow
    ring, good = KeyRing(service.store), make_key(service.store, ["read"], 0.0)
    for _ in range(20):
        ring.failures.count("192.0.2.1")

    async def run():
        texts = [f"bb_0_{number}" for number in range(20)] + [good]
        checks = [check_header(ring, f"Bearer {text}", "read", None, ("192.0.2.1", 1)) for text in texts]
        return await asyncio.gather(*checks, return_exceptions=True)

    *guessed, passed = asyncio.run(run())
    assert all(isinstance(each, TooManyWrongKeys) for each in guessed)
    assert passed.scopes == ("read",)
    assert most == [1]


def test_a_key_for_one_campaign_sees_nothing_of_the_others(service, campaign_path):
    only = make_key(service.store, ["admin"], 0.0, campaign="ads")
    assert service("GET", campaign_path, key=only).status_code == 200
    for method, path, body in [
        ("GET", "/v1/campaigns", None),
        ("GET", "/metrics", None),
        ("POST", "/v1/campaigns", CAMPAIGN | {"name": "other"}),
    ]:
        assert service(method, path, body, key=only).status_code == 403


def test_paths_that_no_database_should_see(service, campaign_path):
    for path in (f"{campaign_path}/decisions/%0a/void", f"/v1/campaigns/{'x' * 201}/decisions"):
        assert service("POST", path, {}, Idempotency_Key="one").status_code == 422, path


def test_a_decision_is_not_found_through_another_campaign(service, campaign_path):
    other = service("POST", "/v1/campaigns", CAMPAIGN | {"name": "other"}).json()["id"]
    made = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one").json()["decision"]
    for what, body in (("feedback", {"cost": 0.1}), ("void", None)):
        assert service("POST", f"/v1/campaigns/{other}/decisions/{made}/{what}", body).status_code == 404


@pytest.mark.parametrize(
    "change",
    [
        {"budget": -1}, {"budget": 1e300}, {"budget": "10"}, {"budget": None}, {"arms": {}}, {"arms": {"one": 1}},
        {"arms": {"one": 0, "two": 1}}, {"arms": ["a", "b"]}, {"arms": {"": 1, "b": 1}}, {"policy": "none"},
        {"policy": "bts:x=1"}, {"policy": "kube-fractional"}, {"colour": "red"}, {"name": ""}, {"name": "x" * 201},
        {"hold_seconds": 0}, {"on_expire": "forget"}, {"reward_max": 0}, {"costs": {"search": 1}}, {"budget": True},
    ],
)  # fmt: skip
def test_campaigns_that_are_refused(service, change):
    answer = service("POST", "/v1/campaigns", CAMPAIGN | change)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
    assert service.store.campaigns == {}


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ({"budget": -1}, "body.budget: use 0 or more"), ({"budget": "10"}, "body.budget: use a number"),
        ({"budget": 1e300}, "body.budget: use 1e+12 or less"), ({"arms": {"one": 1}}, "body.arms: give at least 2"),
        ({"arms": ["a", "b"]}, "body.arms: use an object that maps names to values"),
        ({"on_expire": "forget"}, "body.on_expire: use 'charge' or 'release'"),
    ],
)  # fmt: skip
def test_a_body_that_is_refused_says_what_to_send(service, change, remedy):
    assert service("POST", "/v1/campaigns", CAMPAIGN | change).json()["detail"] == remedy
    assert service("POST", "/v1/campaigns", {}).json()["detail"] == "body.name: it is missing; give it"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", "NaN", '{"cost": NaN}', '{"cost": Infinity}', '{"cost": -1}', '{"cost": 1e400}',
     '{"reward": "1"}', '{"cost": 1, "extra": 2}', "{}", '{"cost": true}', "\x00", '{"cost": [1]}', '{"reward": 2}'],
)  # fmt: skip
def test_feedback_that_is_refused(service, campaign_path, text):
    made = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one").json()["decision"]
    answer = service("POST", f"{campaign_path}/decisions/{made}/feedback", content=text)
    assert answer.status_code == 422, answer.text
    assert service("GET", campaign_path).json()["spent"] == 0.0


@pytest.mark.parametrize("name", ["\ud800", "line\nbreak", "a\tb", "b\n", " a"])
def test_names_that_no_database_should_see_are_refused_in_words(service, name):
    for body in ({"name": name}, {"arms": {name: 1.0, "other": 1.0}}):
        answer = service("POST", "/v1/campaigns", content=json.dumps(CAMPAIGN | body))
        assert answer.status_code == 422
        said = answer.json()["detail"]
        assert name == "\ud800" or "use 1 to 200 printable characters with no space at either end" in said
    slash = service("POST", "/v1/campaigns", CAMPAIGN | {"name": "a/b"})  # which arms may have
    assert "use 1 to 200 printable characters" in slash.json()["detail"]


def test_campaigns_go_by_their_names_as_well(service, campaign_path):
    made = service("POST", "/v1/campaigns/ads/decisions", {}, Idempotency_Key="one").json()
    assert service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one").json() == made
    path = f"/v1/campaigns/ads/decisions/{made['decision']}/feedback"
    assert service("POST", path, {"cost": 0.1, "reward": 0.5}).json() == {"decision": made["decision"], "overrun": 0.0}
    assert service("GET", "/v1/campaigns/ads").json() == service("GET", campaign_path).json()
    only = make_key(service.store, ["decide"], 0.0, campaign="ads")
    assert service("POST", "/v1/campaigns/ads/decisions", {}, key=only, Idempotency_Key="2").status_code == 201
    assert service("POST", f"{campaign_path}/decisions", {}, key=only, Idempotency_Key="3").status_code == 201
    service("POST", "/v1/campaigns", CAMPAIGN | {"name": "other name, with ünicode?"})
    path = "/v1/campaigns/other%20name%2C%20with%20%C3%BCnicode%3F/decisions"
    assert service("POST", path, {}, Idempotency_Key="4").status_code == 201
    assert service("POST", path, {}, key=only, Idempotency_Key="5").status_code == 403


def test_batches(service, campaign_path):
    ask = {"count": 3, "context": {"page": "home"}}
    made = service("POST", f"{campaign_path}/decisions/batch", ask, Idempotency_Key="one")
    assert (made.status_code, len(made.json()["decisions"])) == (201, 3)
    assert service("POST", f"{campaign_path}/decisions/batch", ask, Idempotency_Key="one").json() == made.json()
    assert (
        service("POST", f"{campaign_path}/decisions/batch", ask | {"count": 2}, Idempotency_Key="one").status_code
        == 409
    )
    for count in (0, -1, 1001, 1.5, "3", None):
        assert (
            service("POST", f"{campaign_path}/decisions/batch", {"count": count}, Idempotency_Key="x").status_code
            == 422
        )
    held = service("GET", campaign_path).json()["held"]
    refused = service("POST", f"{campaign_path}/decisions/batch", {"count": 100}, Idempotency_Key="two")
    assert (refused.status_code, refused.json()["title"]) == (409, "blocked_by_holds")
    assert "of 100 fit" in refused.json()["detail"]
    assert service("GET", campaign_path).json()["held"] == held
    ids = [each["decision"] for each in made.json()["decisions"]]
    told = [
        {"decision": ids[0], "cost": 0.25, "reward": 1}, {"decision": ids[1], "reward": 2},
        {"decision": "none", "cost": 1},
    ]  # fmt: skip
    results = service("POST", f"{campaign_path}/feedback", {"outcomes": told}).json()["results"]
    assert [each["problem"] and each["problem"]["title"] for each in results] == [None, "RewardOutOfRange", "NotFound"]
    assert service("GET", campaign_path).json()["spent"] == 0.25
    assert service("POST", f"{campaign_path}/feedback", {"outcomes": []}).status_code == 422
    over = [{"decision": ids[1], "cost": 1.75, "reward": 0}]
    assert service("POST", f"{campaign_path}/feedback", {"outcomes": over}).json()["results"][0]["overrun"] >= 0.75
    assert service("GET", campaign_path).json()["status"] == "frozen"


@pytest.mark.parametrize("content", ["{", "[" * 500, '{"name": 5, "unknown": 1}'])
@pytest.mark.parametrize("path", ["/v1/campaigns", "/v1/campaigns/ads/top-up", "/v1/campaigns/ads/arms"])
def test_the_key_is_checked_before_the_body_is_read(service, campaign_path, path, content):
    reader = make_key(service.store, ["read"], 0.0)
    for key, status in (("bb_no_key", 401), (reader, 403), (service.admin, 422)):
        answer = service("POST", path, content=content, key=key)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/v1/campaigns/", "/v1/campaigns/ads/decisions/", "/healthz/"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_is_sent_to_another_host(service, campaign_path, method, path):
    answer = service(method, path, {} if method == "POST" else None, Host="elsewhere.example")
    assert answer.status_code in (404, 405)
    assert "location" not in answer.headers


@pytest.mark.parametrize(
    ("length", "status"), [("0" * 5000, 200), ("0" * 5000 + "1", 200), ("9" * 5000, 413), ("²", 413)]
)
def test_lengths_that_are_long_themselves(service, length, status):
    assert service("GET", "/healthz", Content_Length=length.encode()).status_code == status


def test_a_reward_out_of_range_says_that_its_cost_is_booked(service, campaign_path):
    made = [
        service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key=key).json() for key in ("one", "two", "three")
    ]
    path = f"{campaign_path}/decisions/{made[0]['decision']}/feedback"
    refused = service("POST", path, {"cost": 0.25, "reward": 7})
    assert (refused.status_code, refused.json()["title"]) == (422, "RewardOutOfRange")
    assert "the cost that came with it is booked" in refused.json()["detail"]
    outcomes = {"outcomes": [{"decision": made[1]["decision"], "cost": 0.25, "reward": -1}]}
    told = service("POST", f"{campaign_path}/feedback", outcomes).json()["results"][0]
    assert "is booked" in told["problem"]["detail"]
    endless = '{"cost": 0.25, "reward": 1e999}'
    path = f"{campaign_path}/decisions/{made[2]['decision']}/feedback"
    assert service("POST", path, content=endless).status_code == 422
    view = service("GET", campaign_path).json()
    assert (view["spent"], view["held"], view["status"]) == (0.75, 0.0, "active")


def test_an_overrun_is_told_counted_and_freezes(service, campaign_path):
    made = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one").json()
    told = service("POST", f"{campaign_path}/decisions/{made['decision']}/feedback", {"cost": made["hold"] + 0.5})
    assert told.json()["overrun"] == 0.5
    view = service("GET", campaign_path).json()
    assert (view["status"], view["overrun"], view["spent"]) == ("frozen", 0.5, made["hold"])
    again = service("POST", f"{campaign_path}/decisions/{made['decision']}/feedback", {"cost": made["hold"] + 0.5})
    assert again.json() == told.json()
    assert "budgetbandits_overruns_total 1.0" in service("GET", "/metrics").text


def test_metrics_count(service, campaign_path):
    service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one")
    service("POST", f"{campaign_path}/pause")
    service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="two")
    page = service("GET", "/metrics").text
    assert "budgetbandits_decisions_total 1.0" in page
    assert 'budgetbandits_refusals_total{reason="paused"} 1.0' in page
    route = 'route="/v1/campaigns/{campaign}/decisions"'
    assert f'budgetbandits_requests_total{{{route},status="201"}} 1.0' in page
    assert f'budgetbandits_requests_total{{{route},status="409"}} 1.0' in page
    assert f"budgetbandits_request_duration_seconds_count{{{route}}} 2.0" in page
    assert f'budgetbandits_request_duration_seconds_bucket{{le="10.0",{route}}} 2.0' in page
    assert f'budgetbandits_request_duration_seconds_bucket{{le="+Inf",{route}}} 2.0' in page
    assert service("GET", "/metrics", Authorization="").status_code == 401


@pytest.mark.parametrize("table", ["decisions", "events"])
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_export(service, campaign_path, table, format):
    for number in range(3):
        made = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key=str(number)).json()
    service("POST", f"{campaign_path}/decisions/{made['decision']}/feedback", {"cost": 0.25, "reward": 1})
    answer = service("GET", f"{campaign_path}/export?table={table}&format={format}")
    assert answer.status_code == 200
    frame = (polars.read_csv if format == "csv" else polars.read_parquet)(io.BytesIO(answer.content))
    if table == "events":
        assert frame["kind"].to_list() == ["created", "decided", "decided", "decided", "settled"]
        assert frame["amount"].to_list()[-1] == 0.25
    else:
        assert frame["key"].cast(str).to_list() == ["0", "1", "2"]
        assert frame["state"].to_list() == ["pending", "pending", "settled"]
        assert frame["cost"].to_list() == [None, None, 0.25]
        assert frame["arm"].to_list()[-1] == made["arm"]
    assert service("GET", f"{campaign_path}/export?table=secrets").status_code == 422
    assert service("GET", "/v1/campaigns/none/export").status_code == 404


def test_verify_over_http(service, campaign_path):
    made = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one").json()
    assert service("GET", f"{campaign_path}/verify").json() == {"agrees": True, "differences": []}
    row = service.store.decisions[made["decision"]]
    service.store.decisions[made["decision"]] = replace(row, reward=0.5)
    verdict = service("GET", f"{campaign_path}/verify").json()
    assert not verdict["agrees"]
    assert made["decision"] in verdict["differences"][0]


def test_limits_in_time(service):
    body = CAMPAIGN | {"daily_cap": 1.0}
    service("POST", "/v1/campaigns", body)
    made = [service("POST", "/v1/campaigns/ads/decisions", {}, Idempotency_Key=str(n)) for n in range(3)]
    assert made[0].status_code == 201
    assert (made[-1].status_code, made[-1].json()["title"]) == (409, "daily_cap")
    assert 0 < int(made[-1].headers["retry-after"]) <= 86_400
    service("POST", "/v1/campaigns", CAMPAIGN | {"name": "slow", "pace_seconds": 1000.0})
    made = [service("POST", "/v1/campaigns/slow/decisions", {}, Idempotency_Key=str(n)) for n in range(3)]
    assert (made[0].status_code, made[-1].json()["title"]) == (201, "paced")
    view = service("GET", "/v1/campaigns/slow").json()
    assert (view["pace_seconds"], view["daily_cap"]) == (1000.0, None)


def test_a_mistake_of_ours_is_a_problem_and_not_a_stack_trace(service, campaign_path, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("our mistake")

    monkeypatch.setattr(Campaigns, "describe", broken)
    monkeypatch.setattr(Decisions, "decision_task", broken)
    for method, path in (("GET", campaign_path), ("POST", f"{campaign_path}/decisions")):
        with capture_logs() as logged:
            answer = service(method, path, {} if method == "POST" else None, Idempotency_Key="one")
        assert (answer.status_code, answer.json()["title"]) == (500, "internal_error")
        assert "our mistake" not in answer.text
        assert "error" in [entry["log_level"] for entry in logged]


def test_a_dropped_key_stops_working(service, campaign_path):
    key = make_key(service.store, ["read"], 0.0)
    assert service("GET", campaign_path, key=key).status_code == 200
    drop_key(service.store, key.split("_")[1])
    ring = KeyRing(service.store, clock=lambda: 0.0)
    with pytest.raises(NotAllowed):
        ring.check(key, "read")
    with pytest.raises(NotFound, match="eight characters"):
        drop_key(service.store, "nothing")


def test_a_key_is_remembered_for_five_seconds(service):
    now = [100.0]
    ring, key = KeyRing(service.store, clock=lambda: now[0]), make_key(service.store, ["read"], 0.0)
    ring.check(key, "read")
    drop_key(service.store, key.split("_")[1])
    now[0] += 4.9
    assert ring.check(key, "read").scopes == ("read",)
    now[0] += 0.2
    with pytest.raises(NotAllowed):
        ring.check(key, "read")


def test_a_key_with_another_secret_is_refused_though_its_prefix_is_known(service):
    ring, key = KeyRing(service.store), make_key(service.store, ["read"], 0.0)
    ring.check(key, "read")
    for text in (key[:-1], key + "x", key[:-1] + ("a" if key[-1] != "a" else "b"), "bb_", ""):
        assert not ring.knows(text)
        with pytest.raises(NotAllowed):
            ring.check(text, "read")
    assert ring.knows(key)


def test_ids_that_are_none(service):
    assert service("GET", "/v1/campaigns/%00").status_code == 422
    assert service("GET", f"/v1/campaigns/{'0' * 32}").status_code == 404
    assert service("GET", "/v1/nothing").status_code == 404
    answer = service("DELETE", "/v1/campaigns")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, POST")


def test_a_worker_route_with_another_method(service, campaign_path):
    answer = service("GET", f"{campaign_path}/feedback")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.headers["content-type"] == "application/problem+json"
    route = 'route="/v1/campaigns/{campaign}/feedback"'
    assert f'budgetbandits_requests_total{{{route},status="405"}} 1.0' in service("GET", "/metrics").text


def test_bodies_that_are_too_large(service, campaign_path):
    answer = service("POST", f"{campaign_path}/decisions", {"context": {"x": "y" * 10_000_000}}, Idempotency_Key="one")
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


MANY = {f"field {number}": 1 for number in range(50_000)}


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("", MANY, 422, "there is no field 'field 0'; use "),
        ("", CAMPAIGN | {"arms": dict.fromkeys(MANY, "1")}, 422, "arms: 'field 0' is '1'; give"),
        ("", CAMPAIGN | {"costs": {"x" * 201: 1} | MANY}, 422, "costs: 'xxx"),
        ("/ads/top-up", MANY, 413, "may have 8,000 bytes here"),
        ("/ads/arms", MANY, 413, "may have 8,000 bytes here"),
        ("/ads/pause", MANY, 413, "may have 1,000 bytes here"),
        ("/ads/decisions", MANY, 413, "may have 64,000 bytes here"),
        ("/ads/decisions", dict(list(MANY.items())[:1000]), 422, "there is no field 'field 0'; use context"),
        ("/ads/decisions/batch", MANY, 413, "may have 64,000 bytes here"),
        ("/ads/decisions/d/feedback", MANY, 413, "may have 8,000 bytes here"),
        ("/ads/feedback", MANY, 413, "may have 300,000 bytes here"),
        ("/ads/feedback", {"outcomes": [{}] * 50_000}, 422, "outcomes: 50,000 at once"),
        ("/ads/feedback", {"outcomes": [{"cost": 1}, {"outcome": 1, "more": "x" * 9000}]}, 422, "no field 'outcome'"),
    ],
)  # fmt: skip
def test_bodies_with_very_many_mistakes(service, campaign_path, path, body, status, said):
    answer = service("POST", f"/v1/campaigns{path}", body, Idempotency_Key="one")
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert said in answer.json()["detail"]


def test_a_body_that_is_nested_deeply(service, campaign_path):
    for path in ("", "/ads/decisions", "/ads/arms"):
        for deep in ("[" * 3000, '{"context": ' + "[" * 3000 + "]" * 3000 + "}"):
            answer = service("POST", f"/v1/campaigns{path}", content=deep, Idempotency_Key="one")
            assert answer.status_code == 422, path


def test_a_body_in_very_many_pieces(service, campaign_path):
    body = json.dumps({"context": {"x": "y" * 3000}}).encode()
    pieces = [{"type": "http.request", "body": body[at : at + 1], "more_body": True} for at in range(len(body))]
    pieces.append({"type": "http.request", "body": b""})
    headers = [("authorization", f"Bearer {service.admin}"), ("idempotency-key", "one")]
    answer, *_ = sent(service.app, "POST", f"{campaign_path}/decisions", *pieces, headers=headers)
    assert answer["status"] == 201


def test_a_body_that_is_longer_than_it_says(service, campaign_path):
    answer = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one", Transfer_Encoding="chunked")
    assert (answer.status_code, answer.headers["content-type"]) == (411, "application/problem+json")


def test_a_link_to_a_file_that_is_not_there_yet(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "money.db")
    SQLiteStore(tmp_path / "link.db").close()
    assert (tmp_path / "money.db").stat().st_mode & 0o777 == 0o600


def test_a_key_with_another_context_is_a_conflict(service, campaign_path):
    service("POST", f"{campaign_path}/decisions", {"context": {"visitor": 1}}, Idempotency_Key="one")
    answer = service("POST", f"{campaign_path}/decisions", {"context": {"visitor": 2}}, Idempotency_Key="one")
    assert answer.status_code == 409
    assert service("POST", f"{campaign_path}/decisions", {}).status_code == 422  # no key at all


def test_a_decision_needs_no_body(service, campaign_path):
    assert service("POST", f"{campaign_path}/decisions", Idempotency_Key="one").status_code == 201


def test_not_ready_while_somebody_else_keeps_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("budgetbandits.service.http.worker_routes.READY_SECONDS_MAX", 0.2)
    with SQLiteStore(tmp_path / "money.db") as store:
        service, other = Service(store), sqlite3.connect(tmp_path / "money.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        assert ready(service) == 503
        other.execute("ROLLBACK")
        other.close()
        assert ready(service) == 200
    assert (tmp_path / "money.db").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "BREW"])
@pytest.mark.parametrize("path", ["", "*", "//", "/v1/.", "/v1/%2e", "/a\nb", "no slash", "http://x/y", "/x" * 3000])
def test_whatever_is_asked_for_the_error_has_one_body(service, method, path):
    """Servers hand on such paths as they come: decoded, and without a slash at the beginning."""
    body = {"type": "http.request", "body": b"", "more_body": False}
    begun, ended = sent(service.app, method, path, body, headers=[("host", "service")])
    problem = json.loads(ended["body"])
    assert dict(begun["headers"])[b"content-type"] == b"application/problem+json"
    assert (begun["status"], problem["status"], problem["title"]) == (404, 404, "not_found")
    assert "/openapi.json" in problem["detail"]


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"user": None}, "metadata"),
        ({"user": True}, "metadata"),
        ({"a=b": 1}, "without ="),
        ({"x" * 65: 1}, "at most 64"),
        ({str(n): 1 for n in range(17)}, "give 16 at most"),
        ({str(n): "long" for n in range(3000)}, "give 16 at most"),
        ("user", "use an object"),
    ],
)
def test_metadata_that_is_refused(service, campaign_path, metadata, says):
    answer = service("POST", f"{campaign_path}/decisions", {"metadata": metadata}, Idempotency_Key="one")
    assert answer.status_code == 422
    assert says in answer.json()["detail"]


def test_metadata_is_part_of_what_a_key_is_for(service, campaign_path):
    asked = {"metadata": {"user": "u-1", "tokens": 350, "share": 0.5}}
    first = service("POST", f"{campaign_path}/decisions", asked, Idempotency_Key="one")
    assert (first.status_code, service("POST", f"{campaign_path}/decisions", asked, Idempotency_Key="one").json()) == (
        201, first.json(),
    )  # fmt: skip
    other = service("POST", f"{campaign_path}/decisions", {"metadata": {"user": "u-2"}}, Idempotency_Key="one")
    assert (other.status_code, other.json()["title"]) == (409, "Conflict")
    rows = service("GET", f"{campaign_path}/export").text
    assert '""tokens"": 350' in rows


def test_arms_are_called_as_models_are(service):
    """With slashes, colons, dots and spaces: created, chosen, retired by their address and brought back."""
    arms = {"openai/gpt-4o-mini": 1.0, "a b/retire": 1.0, "https://x.y/z?q=1#f": 0.5, "ollama:llama3.1:8b": 0.5}
    models = "/v1/campaigns/models"
    made = service("POST", "/v1/campaigns", {"name": "models", "budget": 9.0, "arms": arms, "policy": "bts-paced"})
    assert made.status_code == 201
    asked = {"arms": ["openai/gpt-4o-mini"], "segment": "chat/long"}
    assert service("POST", f"{models}/decisions", asked, Idempotency_Key="one").json()["arm"] == "openai/gpt-4o-mini"
    for arm in arms:
        for word, active in (("retire", False), ("bring-back", True)):
            answer = service("POST", f"{models}/arms/{quote(arm, safe='')}/{word}")
            assert {each["name"]: each["active"] for each in answer.json()["arms"]}[arm] == active
    assert service("POST", f"{models}/arms/openai/gpt-4o-mini/retire").status_code == 200


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/json"])
def test_a_body_is_json_whatever_its_content_type_says(service, campaign_path, kind):
    """As curl sends it without a header, and as programs send it that forget the header."""

    def send(path, body, **headers):
        return service("POST", path, content=json.dumps(body).encode(), Content_Type=kind, **headers)

    for path, body, status in (
        ("/v1/campaigns", CAMPAIGN | {"name": "other"}, 201), (f"{campaign_path}/top-up", {"amount": 1}, 200),
        (f"{campaign_path}/arms", {"name": "tv", "cost_cap": 0.5}, 201),
        (f"{campaign_path}/terms", {"hold_seconds": 9}, 200),
        (f"{campaign_path}/decisions", {}, 201), (f"{campaign_path}/decisions/batch", {"count": 2}, 201),
    ):  # fmt: skip
        answer = send(path, body, Idempotency_Key=path)
        assert answer.status_code == status, (path, answer.text)
    wrong = send(f"{campaign_path}/top-up", {"amount": "1"})
    assert (wrong.status_code, wrong.json()["title"]) == (422, "invalid")


def test_campaigns_come_in_pages(service):
    names = [f"campaign {number}" for number in range(5)]
    for name in names:
        service("POST", "/v1/campaigns", CAMPAIGN | {"name": name})
    found, after = [], ""
    while page := service("GET", f"/v1/campaigns?limit=2{after}").json():
        assert len(page) <= 2
        found += [each["name"] for each in page]
        after = f"&after={page[-1]['id']}"
    assert sorted(found) == names
    assert [each["name"] for each in service("GET", "/v1/campaigns").json()] == found
    assert service("GET", "/v1/campaigns?after=nobody").status_code == 404
    for wrong in ("limit=0", "limit=1001", "limit=x"):
        assert service("GET", f"/v1/campaigns?{wrong}").status_code == 422


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", "/v1/campaigns?limit=1&limit=2", "the parameter 'limit' is given twice; give it once"),
        ("GET", "/v1/campaigns?limti=2", "there is no parameter 'limti'; use limit, after"),
        ("GET", "/v1/campaigns/ads?arms=no", "there is no parameter 'arms'; leave it out"),
        ("GET", "/v1/campaigns/ads/export?format=csv&tabel=events", "'tabel'; use table, format"),
        ("POST", "/v1/campaigns/ads/decisions?key=one", "there is no parameter 'key'; leave it out"),
    ],
)
def test_a_parameter_that_nobody_looks_at_is_a_mistake(service, campaign_path, method, path, words):
    answer = service(method, path, Idempotency_Key="one")
    assert answer.status_code == 422
    assert words in answer.json()["detail"]


def test_no_amount_is_larger_than_the_bound_whichever_way_it_comes_in(service, campaign_path):
    """One bound for the API, the commands and pages: these two ask the engine."""
    for too_much in (1e12 + 1, 4e12):
        assert service("POST", f"{campaign_path}/top-up", {"amount": too_much}).status_code == 422
        with pytest.raises(BadParameter, match="from 0 to 1,000,000,000,000"):
            service.engine.top_up("ads", too_much)
        with pytest.raises(BadParameter, match="from 0 to 1,000,000,000,000"):
            service.engine.create("large", "bts", too_much, {"a": 1.0, "b": 1.0})
    with pytest.raises(BadParameter, match="no more than 1,000,000,000,000 in all"):
        service.engine.top_up("ads", 1e12)
    assert service("POST", f"{campaign_path}/top-up", {"amount": 1e12 - 10.0}).status_code == 200


def test_not_ready_when_a_decision_finds_no_room(tmp_path):
    """A disk that gets full: what readiness writes finds no room before decisions find none."""
    with SQLiteStore(tmp_path / "money.db") as store:
        service = Service(store)
        service.engine.create("ads", "bts", budget=1e6, arms=CAMPAIGN["arms"])
        assert (ready(service), ready(service)) == (200, 200)
        (pages,) = store._writer._connection.execute("PRAGMA page_count").fetchone()
        store._writer._connection.execute(f"PRAGMA max_page_count = {pages + 5}")
        assert ready(service) == 200  # in the room that the one before has left
        full = False
        for number in range(100):
            try:
                service.engine.decide_many("ads", f"{number}", 10)
            except StoreError:
                full = True
            assert ready(service) == 503 or not full
            if full:
                break
        assert full


def test_nobody_gets_a_decision_when_the_store_cannot_write(service, campaign_path):
    service.store.breaks = "before"
    answer = service("POST", f"{campaign_path}/decisions", {}, Idempotency_Key="one")
    assert (answer.status_code, answer.json()["title"]) == (503, "StoreError")
    ready = service("GET", "/readyz", Authorization="")
    assert ready.status_code == 503
    assert "disk" not in ready.text  # what is wrong is not for strangers
    service.store.breaks = None
    assert service("GET", campaign_path).json()["held"] == 0.0


KNOCK = """
import importlib.abc, socket, sys
class Knock(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "starlette":  # most of what takes time is still to come
            sys.early = socket.create_connection(("127.0.0.1", PORT))
            sys.early.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n")
sys.meta_path.insert(0, Knock())
import atexit
atexit.register(lambda: print("answered:", sys.early.recv(15)))
"""
"""Statements of a server that connects to itself when most of what it imports is still to come."""


def test_a_real_server_keeps_everything_over_a_restart_and_ends_though_a_socket_is_left_open(tmp_path):
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    process = serving(tmp_path, port)
    headers = {"Authorization": f"Bearer {admin_key(tmp_path)}"}
    campaign = httpx.post(f"{address}/v1/campaigns", json=CAMPAIGN, headers=headers).json()["id"]
    path = f"{address}/v1/campaigns/{campaign}"
    made = httpx.post(f"{path}/decisions", json={}, headers=headers | {"Idempotency-Key": "one"}).json()
    process.kill()
    process.wait()
    process = serving(tmp_path, port, first=KNOCK.replace("PORT", str(port)))
    assert httpx.get(path, headers=headers).json()["held"] == made["hold"]
    assert httpx.post(f"{path}/decisions", json={}, headers=headers | {"Idempotency-Key": "one"}).json() == made
    assert made["arm"] in CAMPAIGN["arms"]
    upgrade = "GET /healthz HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    upgrade += "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port)) as left_open:
        left_open.sendall(upgrade.encode())
        answer = left_open.recv(100)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert answer.startswith(b"HTTP/1.1 200")
    said = (tmp_path / "said").read_text()
    assert [json.loads(line)["event"] for line in said.splitlines() if line[0] == "{"] == ["serving", "stopped"]
    assert "request failed" not in said
    assert "shown this once" not in said
    assert "answered: b'HTTP/1.1 200 OK'" in said  # to a client that came while it started


def test_a_request_over_http(service):
    service("POST", "/v1/campaigns", CAMPAIGN | {"policy": "bts-paced", "horizon": 50})
    path = "/v1/campaigns/ads/decisions"
    said = {"segment": "code", "exclude": ["mail"], "prices": {"search": 0.2}, "holds": {"search": 0.25}}
    made = service("POST", path, said, Idempotency_Key="one")
    assert (made.status_code, made.json()["arm"], made.json()["hold"]) == (201, "search", 0.25)
    assert service("POST", path, said, Idempotency_Key="one").json() == made.json()
    assert service("POST", path, {}, Idempotency_Key="one").status_code == 409
    for body, status, title in (
        ({"arms": ["tv"]}, 404, "UnknownArm"), ({"arms": []}, 409, "NoArmLeft"),
        ({"prices": {"mail": 0.1}}, 422, "MissingKnowledge"), ({"segment": " code"}, 422, "BadParameter"),
        ({"segment": 3}, 422, "invalid"), ({"holds": {"mail": -1.0}}, 422, "invalid"),
        ({"arm": "mail"}, 422, "invalid"),
    ):  # fmt: skip
        answer = service("POST", path, body, Idempotency_Key="two")
        assert (answer.status_code, answer.json()["title"]) == (status, title), body
    many = {"prices": {f"arm {number}": "x" for number in range(3000)}}
    assert "give a name of 1 to 200 characters and a number" in service("POST", path, many, Idempotency_Key="two").text
    many = {"exclude": list(range(9000))}
    assert "give names of 1 to 200" in service("POST", path, many, Idempotency_Key="two").text
    decision = made.json()["decision"]
    for _ in range(2):
        told = service("POST", f"{path}/{decision}/feedback", {"failed": True, "cost": 0.125})
        assert (told.status_code, told.json()["overrun"]) == (200, 0.0)
    batch = service("POST", "/v1/campaigns/ads/feedback", {"outcomes": [{"decision": decision, "failed": True}]})
    assert batch.json()["results"][0]["problem"] is None
    shown = service("GET", "/v1/campaigns/ads").json()
    money = {"spent": 0.125, "requests_answered": 0, "segments": ["code"], "horizon": 50.0}
    assert {name: shown[name] for name in money} == money
    assert shown["arms"][0]["failures"] == 1
    assert (shown["arms_down"], shown["arms"][0]["cooldown_until"], shown["arms"][0]["down_since"]) == (0, None, None)
    assert "budgetbandits_failures_total 1.0" in service("GET", "/metrics").text


def test_features_that_are_missing_unknown_or_no_numbers_are_refused_with_a_remedy():
    service = Service(MemoryStore())
    made = service("POST", "/v1/campaigns", CAMPAIGN | {"features": ["length", "code"]})
    assert (made.status_code, made.json()["policy"], made.json()["features"]) == (201, "bts-linear", ["length", "code"])
    for content, title, said in (
        ("{}", "BadFeature", "give every request"),
        ('{"features": {"length": 1, "code": 0, "day": 2}}', "BadFeature", "the features are 'length', 'code'"),
        ('{"features": {"length": NaN, "code": 0}}', "BadFeature", "use a number between"),
        ('{"features": {"length": 1e70, "code": 0}}', "BadFeature", "use a number between"),
        ('{"features": {"length": "1", "code": 0}}', "invalid", "features"),
    ):
        for path, body in (("decisions", content), ("decisions/batch", content.replace("{", '{"count": 2, ', 1))):
            body = body.replace(", }", "}")
            answer = service("POST", f"/v1/campaigns/ads/{path}", content=body, Idempotency_Key="k")
            assert (answer.status_code, answer.json()["title"]) == (422, title), body
            assert said in answer.json()["detail"]
    good = service("POST", "/v1/campaigns/ads/decisions", {"features": {"length": 1, "code": 0.5}}, Idempotency_Key="k")
    assert good.status_code == 201
    for features in (["a"] * 2, [f"x{number}" for number in range(65)], "length", []):
        refused = service("POST", "/v1/campaigns", CAMPAIGN | {"name": "more", "features": features})
        assert refused.status_code == 422


def test_a_campaign_from_history_and_from_another(service):
    past = {"search": [4, 2, 1.5], "mail": [2, 0, 0.5]}
    made = service("POST", "/v1/campaigns", CAMPAIGN | {"history": past})
    assert [arm["pulls"] for arm in made.json()["arms"]] == [4, 2]
    for wrong in ({"mail": [1, 2]}, {"mail": [1, "a", 2]}, {"mail": {}}, {"mail": [1, 5, 0.1]}, {"nobody": [1, 0, 0]}):
        assert service("POST", "/v1/campaigns", CAMPAIGN | {"name": "x", "history": wrong}).status_code in (404, 422)
    for learned, pulls in ((True, [4, 2]), (False, [0, 0])):
        body = {"name": f"copy {learned}", "budget": 3, "learned": learned}
        copied = service("POST", "/v1/campaigns/ads/clone", body, Idempotency_Key="one")
        assert (copied.status_code, copied.json()["budget"]) == (201, 3.0)
        assert [arm["pulls"] for arm in copied.json()["arms"]] == pulls
        assert service("POST", "/v1/campaigns/ads/clone", body, Idempotency_Key="one").content == copied.content
    assert service("POST", "/v1/campaigns/nobody/clone", {"name": "y"}).status_code == 404
    # who may change one campaign alone may not create others
    key = make_key(service.store, ["admin"], 0.0, "ads")
    assert service("POST", "/v1/campaigns/ads/clone", {"name": "y"}, key=key).status_code == 403
    assert service("POST", "/v1/campaigns/ads/terms", {"budget": 8, "caps": {"mail": 0.75}}, key=key).status_code == 200
    assert service("POST", "/v1/campaigns/ads/terms", {"name": None}, key=key).status_code == 422
