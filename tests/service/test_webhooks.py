"""Webhooks on both stores: what is notified, signed and sent again; addresses that fail, servers that are killed."""

import asyncio
import hashlib
import hmac
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from budgetbandits.client import Client, check_signature
from budgetbandits.errors import BadParameter, NotAllowed
from budgetbandits.service import deliveries, webhooks
from budgetbandits.service.service import DecisionService
from budgetbandits.service.standing import outlooks
from called import Service
from servers import admin_key, free_port, serving

ARMS = {"search": 1.0, "mail": 0.5}


class Address:
    """An address that answers with these statuses in turn, and then with 200."""

    def __init__(self, *statuses):
        self.statuses, self.got = list(statuses), []

    def answer(self, request):
        self.got.append((request, json.loads(request.content)))
        status = self.statuses.pop(0) if self.statuses else 200
        if status is None:
            raise httpx.ConnectError("nobody there")
        return httpx.Response(status)

    @property
    def bodies(self):
        return [body for _, body in self.got]


def sender(address):
    return deliveries.Sender(httpx.MockTransport(address.answer))


def delivered(store, address):
    """Send all that is due; how many notifications were accepted, and how many tries were not."""
    with sender(address) as opened:
        sending = deliveries.Deliveries(store, opened)
        sending.start()
        sending.wait()
        sending.raise_error()
        return sending.results()


def overrun(engine, name, key, cost=3.0):
    made = engine.decide(name, key)
    engine.feedback(made.decision, cost=made.hold + cost)


def later(store, seconds):
    """As if this much time had passed for what waits in the outbox."""
    store.write(lambda tx: tx.change("UPDATE webhook_delivery SET due_at = due_at - ?", (seconds,)))


def paused(store, *urls, count=1):
    """This many campaigns that were paused, of which webhooks at these addresses are to be notified."""
    for url in urls or ["http://example.com"]:
        webhooks.make_webhook(store, url)
    engine = DecisionService(store)
    for number in range(count):
        engine.create(f"ads {number}", "bts", 10.0, ARMS)
        engine.set_status(f"ads {number}", "paused")
    webhooks.look(store)


def test_a_change_of_standing_and_an_overrun_are_notified_once(store):
    engine, address = DecisionService(store), Address()
    engine.create("ads", "bts", 10.0, ARMS)
    engine.create("other", "bts", 10.0, ARMS)
    overrun(engine, "other", "1")
    assert webhooks.look(store) == 0  # nobody wants to hear of it
    hook = webhooks.make_webhook(store, "https://example.com/hook")
    webhooks.look(store)
    assert delivered(store, address) == (0, 0)  # what was so before is no news
    overrun(engine, "ads", "1")
    assert (webhooks.look(store), webhooks.look(store)) == (1, 0)
    assert delivered(store, address) == (2, 0)
    first, second = address.bodies
    assert {each["type"]: each["standing"] for each in address.bodies} == {"overrun": "frozen", "standing": "frozen"}
    assert first["id"] != second["id"]
    for request, body in address.got:
        assert (body["campaign"], body["before"]) == ("ads", "running")
        assert (body["overrun_before"], body["overrun"]) == (0.0, 3.0)
        assert request.headers["budgetbandits-delivery"] == body["id"]
        at, signed = request.headers["budgetbandits-signature"].removeprefix("t=").split(",v1=")
        wanted = hmac.new(hook.secret.encode(), f"{at}.".encode() + request.content, hashlib.sha256).hexdigest()
        assert signed == wanted
        check_signature(hook.secret, request.headers["budgetbandits-signature"], request.content)
    engine.set_status("ads", "paused")
    webhooks.look(store)
    delivered(store, address)
    assert [(body["type"], body["before"], body["standing"]) for body in address.bodies[2:]] == [
        ("standing", "frozen", "paused")
    ]


def test_what_changes_before_a_server_has_looked_is_notified(store):
    engine, address = DecisionService(store), Address()
    engine.create("ads", "bts", 10.0, ARMS)
    for status, before in (("paused", "running"), ("active", "paused")):  # the first webhook, and the first again
        hook = webhooks.make_webhook(store, "http://example.com")
        engine.set_status("ads", status)
        assert webhooks.look(store) == 1
        delivered(store, address)
        assert (address.bodies[-1]["before"], len(address.bodies)) == (before, 1 if status == "paused" else 2)
        webhooks.drop_webhook(store, hook.id)


def test_an_overrun_is_notified_even_if_the_campaign_was_resumed_at_once(store):
    engine, address = DecisionService(store), Address()
    webhooks.make_webhook(store, "http://example.com")
    engine.create("ads", "bts", 10.0, ARMS)  # never looked at before
    overrun(engine, "ads", "1")
    engine.set_status("ads", "active")
    webhooks.look(store)
    delivered(store, address)
    assert ("overrun", 3.0) in [(body["type"], body["overrun"]) for body in address.bodies]
    overrun(engine, "ads", "2", cost=1.0)
    webhooks.look(store)
    delivered(store, address)
    sums = [(body["overrun_before"], body["overrun"]) for body in address.bodies if body["type"] == "overrun"]
    assert sums == [(0.0, 3.0), (3.0, 4.0)]


def test_an_address_that_fails_is_tried_again_later_and_later_until_it_accepts(store):
    paused(store)
    address = Address(500, None, 302, 404)
    for tries, pause in enumerate((5.0, 10.0, 20.0, 40.0)):
        assert delivered(store, address) == (0, 1)
        assert len(address.got) == tries + 1
        [hook] = store.read(webhooks.listed)
        assert hook.tries == tries + 1
        assert hook.problem == ("status 500", "nobody there", "status 302", "status 404")[tries]
        later(store, pause - 1.0)
        assert delivered(store, address) == (0, 0)  # not yet
        later(store, 1.0)
    assert delivered(store, address) == (1, 0)
    assert len({body["id"] for body in address.bodies}) == 1
    [hook] = store.read(webhooks.listed)
    assert (hook.waiting, hook.problem) == (0, None)
    assert hook.tried_at > hook.created_at


def test_a_server_that_stops_sends_no_more_and_leaves_the_rest_to_the_next(store):
    """What was being sent is broken off, so its address gets it twice."""
    paused(store, count=4)
    address = Address()

    class Leaving(Address):
        async def answer(self, request):
            answer = super().answer(request)
            if len(self.got) == 2:
                sending.close()
                await asyncio.Event().wait()
            return answer

    leaving = Leaving()
    with sender(leaving) as opened:
        sending = deliveries.Deliveries(store, opened)
        sending.start()
        sending.wait()
        sending.start()  # as the last look of a server may do
        assert sending.close() == []
    assert (sending.results(), len(leaving.got)) == ((1, 0), 2)
    assert delivered(store, address) == (0, 0)
    later(store, deliveries.CLAIM_SECONDS)
    assert delivered(store, address) == (3, 0)
    assert {body["id"] for body in leaving.bodies} & {body["id"] for body in address.bodies} == {
        leaving.bodies[1]["id"]
    }


def test_a_server_that_dies_after_sending_leaves_a_double_and_loses_nothing(store, monkeypatch):
    paused(store)
    address = Address()

    def dies(*_, **__):
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(deliveries, "_settle", dies)
        with pytest.raises(RuntimeError, match="killed"):
            delivered(store, address)
    assert delivered(store, address) == (0, 0)  # it is still the dead server's
    later(store, deliveries.CLAIM_SECONDS)
    assert delivered(store, address) == (1, 0)
    assert len(address.got) == 2
    assert len({body["id"] for body in address.bodies}) == 1


def test_two_servers_that_look_at_once_notify_once(store, opener):
    engine, address = DecisionService(store), Address()
    webhooks.make_webhook(store, "http://example.com")
    engine.create("ads", "bts", 10.0, ARMS)
    webhooks.look(store)
    engine.set_status("ads", "paused")
    [outlook] = store.read(lambda tx: outlooks(tx, tx.pages().campaign_list().ids(9)))
    before = store.read(lambda tx: tx.webhooks().notified(outlook.glance.id))
    with opener() as other:
        for each in (store, other):
            each.write(lambda tx: webhooks._note(tx, outlook, before))
        assert delivered(other, address) == (1, 0)
        assert delivered(store, address) == (0, 0)


def test_what_was_put_off_by_a_clock_that_was_ahead_is_sent_when_it_is_right(store):
    """Nothing waits for longer than an hour."""
    paused(store)
    later(store, -365 * 86_400.0)
    assert delivered(store, Address()) == (1, 0)
    DecisionService(store).set_status("ads 0", "active")
    webhooks.look(store)
    later(store, -3600.0)
    assert delivered(store, Address()) == (0, 0)


def test_a_webhook_of_one_campaign_hears_of_no_other_and_a_dropped_one_of_none(store):
    engine, address = DecisionService(store), Address()
    for name in ("ads", "mails"):
        engine.create(name, "bts", 10.0, ARMS)
    hook = webhooks.make_webhook(store, "http://example.com", "mails")
    webhooks.look(store)
    for name in ("ads", "mails"):
        engine.set_status(name, "paused")
    webhooks.look(store)
    delivered(store, address)
    assert [body["campaign"] for body in address.bodies] == ["mails"]
    engine.set_status("mails", "closed")
    webhooks.look(store)
    webhooks.drop_webhook(store, hook.id)
    assert delivered(store, address) == (0, 0)


def test_what_is_never_accepted_is_given_up_after_a_week(store):
    paused(store)
    address = Address(500)
    store.write(lambda tx: tx.change("UPDATE webhook_delivery SET made_at = made_at - ?", (8 * 86_400.0,)))
    assert delivered(store, address) == (0, 1)
    assert store.read(webhooks.listed)[0].waiting == 0


def test_signatures_that_are_wrong_or_old_are_refused():
    header = deliveries.signature("secret", b"{}", time.time())
    check_signature("secret", header, b"{}")
    old = deliveries.signature("secret", b"{}", time.time() - 600.0)
    for secret, given, body in (("other", header, b"{}"), ("secret", header, b"{ }"), ("secret", old, b"{}"),
                                ("secret", "t=x,v1=y", b"{}"), ("secret", "", b"{}")):  # fmt: skip
        with pytest.raises(NotAllowed):
            check_signature(secret, given, body)


def test_webhooks_over_http(store):
    service = Service(store)
    service.engine.create("ads", "bts", 10.0, ARMS)
    made = service("POST", "/v1/webhooks", {"url": "https://example.com/a", "campaign": "ads"})
    assert made.status_code == 201
    listed = service("GET", "/v1/webhooks").json()
    assert listed == [{name: value for name, value in made.json().items() if name != "secret"}]
    assert (listed[0]["campaign"], listed[0]["waiting"]) == ("ads", 0)
    for url in (
        "ftp://example.com",
        "example.com",
        "http://",
        "http://a b",
        "http://[",
        "http://a\n",
        "http://a:x",
        "http://a:70000",
    ):
        assert service("POST", "/v1/webhooks", {"url": url}).status_code == 422, url
    assert service("POST", "/v1/webhooks", {"url": "http://x", "campaign": "nobody"}).status_code == 404
    assert service("DELETE", f"/v1/webhooks/{listed[0]['id']}").json() == {"id": listed[0]["id"]}
    assert service("DELETE", f"/v1/webhooks/{listed[0]['id']}").status_code == 404
    for _ in range(webhooks.WEBHOOKS_MAX):
        webhooks.make_webhook(store, "http://example.com")
    with pytest.raises(BadParameter, match="drop one first"):
        webhooks.make_webhook(store, "http://example.com")


class Receiver(ThreadingHTTPServer):
    """A real address on this machine that fails every other time."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.got, self.rng = {}, random.Random(5)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.rng.random() < 0.5:
            self.send_response(500)
        else:
            self.server.got[body["id"]] = body
            self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


FAST = """
from budgetbandits.service import deliveries
from budgetbandits.service.http import server
deliveries.CLAIM_SECONDS, deliveries.FIRST_PAUSE_SECONDS, deliveries.LAST_PAUSE_SECONDS = 0.5, 0.1, 0.2
server.NOTIFY_SECONDS = 0.1
"""


@pytest.mark.crashes
def test_servers_that_are_killed_lose_no_notification(tmp_path):
    """Nine campaigns freeze while the server is killed three times and the address fails every other time."""
    receiver, port = Receiver(), free_port()
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    server = serving(tmp_path, port, first=FAST)
    try:
        with Client(f"http://127.0.0.1:{port}", admin_key(tmp_path), deadline=60.0) as client:
            client.create_webhook(f"http://127.0.0.1:{receiver.server_port}/")
            names = {f"campaign {number}" for number in range(9)}
            for number, name in enumerate(sorted(names)):
                client.create(name, budget=10.0, arms=ARMS)
                with client.decide(name) as d:
                    d.settle(cost=d.hold + 1.0)
                if number % 3 == 2:
                    time.sleep(0.05 * number)
                    server.kill()
                    server.wait()
                    server = serving(tmp_path, port, first=FAST)
            end = time.monotonic() + 60.0
            wanted = {(name, kind) for name in names for kind in ("overrun", "standing")}
            while time.monotonic() < end:
                heard = [(body["campaign"], body["type"]) for body in list(receiver.got.values())]
                if set(heard) == wanted:
                    break
                time.sleep(0.1)
            assert set(heard) == wanted
            assert len(heard) == len(wanted)  # doubles have the same id
    finally:
        server.kill()
        server.wait()
        receiver.shutdown()
        receiver.server_close()
