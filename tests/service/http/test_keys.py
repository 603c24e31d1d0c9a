"""Keys over HTTP, on both stores: name, owner, expiry, last use, a limit; made and dropped by an admin key."""

import time

import pytest
from structlog.testing import capture_logs

from budgetbandits.client import KeyAnswer
from budgetbandits.errors import BadParameter, NotAllowed, TooManyRequests
from budgetbandits.service.http import auth
from budgetbandits.service.http.auth import KeyRing, make_key, prefix_of
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service
from clock import Clock
from stores import tamper

ARMS = {"search": 1.0, "mail": 0.5}


def test_keys_are_made_listed_and_dropped(store):
    service = Service(store)
    service.engine.create("ads", "bts", 10.0, ARMS)
    expires = time.time() + 3600.0
    body = {"scopes": ["read"], "campaign": "ads", "name": "grafana", "owner": "ops@example.com", "expires_at": expires,
            "requests_per_second": 5.0}  # fmt: skip
    made = service("POST", "/v1/keys", body, Idempotency_Key="one")
    assert made.status_code == 201
    prefix, key = made.json()["prefix"], made.json()["key"]
    assert service("POST", "/v1/keys", body, Idempotency_Key="one").status_code == 409
    [mine, listed] = service("GET", "/v1/keys").json()
    assert listed.pop("created_at") == pytest.approx(time.time(), abs=60.0)
    assert listed == body | {"prefix": prefix, "last_used_at": None, "off": False}
    assert (mine["name"], mine["expires_at"]) == (None, None)
    assert KeyAnswer.read(mine).prefix == prefix_of(service.admin)
    assert service("GET", "/v1/campaigns/ads", key=key).status_code == 200
    for admin in (key, make_key(store, ["admin"], 0.0, "ads")):  # the second is for one campaign only
        assert service("GET", "/v1/keys", key=admin).status_code == 403
        assert service("POST", "/v1/keys", body, key=admin).status_code == 403
        assert service("DELETE", f"/v1/keys/{prefix}", key=admin).status_code == 403
    assert service("DELETE", f"/v1/keys/{prefix}").json() == {"prefix": prefix}
    assert service("DELETE", f"/v1/keys/{prefix}").status_code == 404
    own = service("DELETE", f"/v1/keys/{prefix_of(service.admin)}")
    assert (own.status_code, own.json()["title"]) == (409, "Conflict")
    with pytest.raises(NotAllowed, match="no such key"):
        KeyRing(store).check(key, "read", "ads")


@pytest.mark.parametrize(
    "wrong",
    [{"scopes": []}, {"scopes": ["fly"]}, {"name": " a"}, {"owner": "a\u200b"}, {"expires_at": 5.0},
     {"expires_at": 1e300}, {"requests_per_second": 0.0}, {"requests_per_second": -1.0},
     {"campaign": "nobody"}, {"more": 1}],
)  # fmt: skip
def test_a_key_that_cannot_be_is_refused(store, wrong):
    service = Service(store)
    answer = service("POST", "/v1/keys", {"scopes": ["read"]} | wrong)
    assert answer.status_code == (404 if "campaign" in wrong else 422)
    assert len(service("GET", "/v1/keys").json()) == 1


def test_a_campaigns_own_key_is_good_for_its_new_name_at_once(store):
    service = Service(store)
    service.engine.create("ads", "bts", 10.0, {"a": 1.0, "b": 1.0})
    service.engine.create("other", "bts", 10.0, {"a": 1.0, "b": 1.0})
    key = make_key(store, ["read"], 0.0, "ads")
    assert service("GET", "/v1/campaigns/ads", key=key).status_code == 200
    service.engine.change_terms("ads", {"name": "adverts"})
    for name, status in (("adverts", 200), ("ads", 200), ("other", 403), ("nobody", 403)):
        assert service("GET", f"/v1/campaigns/{name}", key=key).status_code == status, name


def test_an_expired_key_is_refused_at_once(store, monkeypatch):
    now, ticks = store.read(lambda tx: tx.now()), Clock(1000.0)
    key = make_key(store, ["read"], now, expires_at=now + 2.0)
    ring = KeyRing(store, ticks)
    ring.check(key, "read")
    ticks.now += 1.9
    assert ring.knows(key)
    ticks.now += 0.2
    assert not ring.knows(key)  # though keys are trusted for five seconds
    store.write(lambda tx: tx.change("UPDATE api_key SET expires_at = ?", (now - 1.0,)))
    with pytest.raises(NotAllowed, match="has expired; ask an operator") as refused:
        ring.check(key, "read")
    assert not refused.value.key_valid


def test_a_key_with_a_limit_has_a_second_of_requests_and_then_its_rate(store):
    ticks = Clock(1000.0)
    ring, key = KeyRing(store, ticks), make_key(store, ["read"], 0.0, requests_per_second=4.0)
    other = make_key(store, ["read"], 0.0)
    for _ in range(4):
        ring.check(key, "read")
    with pytest.raises(TooManyRequests, match="4 requests a second") as refused:
        ring.check(key, "read")
    assert refused.value.retry_after == pytest.approx(0.25)
    ring.check(other, "read")
    ticks.now += 0.5
    for _ in range(2):
        ring.check(key, "read")
    with pytest.raises(TooManyRequests):
        ring.check(key, "read")
    slow = make_key(store, ["read"], 0.0, requests_per_second=0.1)
    ring.check(slow, "read")
    ticks.now += 9.0
    with pytest.raises(TooManyRequests) as refused:
        ring.check(slow, "read")
    assert refused.value.retry_after == pytest.approx(1.0)


def test_a_limit_is_a_429_with_a_time_to_wait(store):
    service = Service(store)
    key = make_key(store, ["read"], 0.0, requests_per_second=0.01)
    assert service("GET", "/v1/campaigns", key=key).status_code == 200
    refused = service("GET", "/v1/campaigns", key=key)
    assert (refused.status_code, refused.json()["title"]) == (429, "TooManyRequests")
    assert 90 <= int(refused.headers["retry-after"]) <= 100


def test_last_use_is_written_once_a_minute_and_not_by_requests(store, monkeypatch):
    ticks, key = Clock(1000.0), make_key(store, ["read"], 0.0)
    ring = KeyRing(store, ticks)

    def used():
        return store.read(lambda tx: tx.keys()[0].last_used_at)

    ring.check(key, "read")
    assert used() is None
    ring.note_used()
    first = used()
    assert first == pytest.approx(store.read(lambda tx: tx.now()), abs=60.0)
    ticks.now += auth.KEY_CACHE_SECONDS
    ring.check(key, "read")
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", None)  # nothing is written within a minute
        ring.note_used()
    ticks.now += auth.USE_SECONDS
    ring.note_used()
    assert used() > first
    with monkeypatch.context() as patch:
        patch.setattr(store, "write", None)
        ring.note_used()  # it was not used since


def test_words_of_a_key_are_checked(store):
    with pytest.raises(BadParameter, match="name is ' a'; use 1 to 200 printable"):
        make_key(store, ["read"], 0.0, name=" a")


def test_a_key_for_a_damaged_campaign_is_answered_what_is_damaged(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        service = Service(store)
        service.engine.create("ads", "bts", 10.0, ARMS)
        key = make_key(store, ["decide", "read"], 0.0, "ads")
        tamper(tmp_path / "money.db", "UPDATE campaign SET spent = 9e18")
        with capture_logs():  # to draw the error on a screen takes seconds
            answers = [
                service("POST", "/v1/campaigns/ads/decisions", {}, key, Idempotency_Key="one"),
                service("GET", "/v1/campaigns/ads", key=key),
            ]
        for answer in answers:
            assert (answer.status_code, answer.json()["title"]) == (503, "BadState")
            assert "restore an undamaged copy" in answer.json()["detail"]
