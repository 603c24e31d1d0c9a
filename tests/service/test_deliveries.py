"""Addresses of webhooks that are slow or send a byte now and then: no neighbour and no server waits for them."""

import asyncio
import json
import signal
import socket
import socketserver
import threading
import time

import httpx
import pytest

from budgetbandits.client import Client
from budgetbandits.service import deliveries, webhooks
from budgetbandits.service.service import DecisionService
from servers import admin_key, free_port, running

ARMS = {"search": 1.0, "mail": 0.5}


class Trickle(socketserver.BaseRequestHandler):
    """Sends the head of an answer byte by byte, without an end."""

    def handle(self):
        self.request.recv(1 << 16)
        self.server.begun.set()
        try:
            self.request.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not self.server.over.wait(0.05):
                self.request.sendall(b"x")
        except OSError:
            self.server.left.set()


@pytest.fixture
def trickling():
    """A server that trickles; its events say that it has ``begun`` an answer, and that a client has hung up."""
    receiver = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Trickle)
    receiver.begun, receiver.left, receiver.over = (threading.Event() for _ in range(3))
    receiver.url = f"http://127.0.0.1:{receiver.server_address[1]}/"
    thread = threading.Thread(target=receiver.serve_forever, daemon=True)
    thread.start()
    yield receiver
    receiver.over.set()
    receiver.shutdown()
    thread.join()
    receiver.server_close()


def paused(store, *urls):
    """Three campaigns that were paused, of which webhooks at these addresses are to be notified."""
    hooks = [webhooks.make_webhook(store, url) for url in urls]
    engine = DecisionService(store)
    for number in range(3):
        engine.create(f"ads {number}", "bts", 10.0, ARMS)
        engine.set_status(f"ads {number}", "paused")
    webhooks.look(store)
    return hooks


def send_until(sending, done):
    """Begin to send what is due, again and again, as a server does."""
    end = time.monotonic() + 60.0
    while not done():
        assert time.monotonic() < end, sending.results()
        sending.start()
        time.sleep(0.01)


def test_a_receiver_that_trickles_does_not_delay_the_neighbour(store):
    """The slow one answers when the neighbour has got all that there was, and what comes while the slow one is slow."""
    slow, quick = "http://slow.example/", "http://quick.example/"
    paused(store, slow, quick)
    got, over = [], threading.Event()

    async def answer(request):
        while request.url == slow and not over.is_set():
            await asyncio.sleep(0.01)
        got.append(str(request.url))
        return httpx.Response(200)

    with deliveries.Sender(httpx.MockTransport(answer)) as sender:
        sending = deliveries.Deliveries(store, sender)
        send_until(sending, lambda: got.count(quick) == 3)
        DecisionService(store).set_status("ads 0", "closed")
        webhooks.look(store)
        send_until(sending, lambda: got.count(quick) == 4)
        assert slow not in got
        over.set()
        send_until(sending, lambda: sending.results() == (8, 0))
    assert (got.count(slow), got.count(quick)) == (4, 4)


def test_a_delivery_as_a_whole_has_a_limit_and_the_list_of_webhooks_says_that_it_was_met(store, trickling, monkeypatch):
    monkeypatch.setattr(deliveries, "TRY_SECONDS", 0.1)
    paused(store, trickling.url)
    with deliveries.Sender() as sender:
        sending = deliveries.Deliveries(store, sender)
        sending.start()
        sending.wait()
        assert trickling.left.wait(60)
    assert sending.results() == (0, 3)
    [hook] = store.read(webhooks.listed)
    assert (hook.problem, hook.waiting, hook.tries) == ("no answer within 0.1 seconds", 3, 1)
    assert hook.tried_at is not None


def test_a_test_of_a_receiver_that_trickles_ends(store, trickling, monkeypatch):
    monkeypatch.setattr(deliveries, "TRY_SECONDS", 0.1)
    hook = webhooks.make_webhook(store, trickling.url)
    assert deliveries.send_test(store, hook.id) == "no answer within 0.1 seconds"
    assert trickling.left.wait(60)


def test_names_that_are_looked_up_for_ever_delay_no_other(store, monkeypatch):
    """A resolver may think for longer than a delivery may take, and about as many names as there are webhooks."""
    over, asked, closed = threading.Event(), [], free_port()

    def resolve(host, port, *_, **__):
        asked.append(host)
        if host not in ("quick.example", b"quick.example"):
            over.wait()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    delivery = deliveries.Delivery("1", "1", "{}", 0.0, 0.0)
    threads = threading.active_count()
    with deliveries.Sender() as sender:
        for number in range(webhooks.WEBHOOKS_MAX):
            monkeypatch.setattr(deliveries, "TRY_SECONDS", 0.01)
            hook = webhooks.Webhook("1", f"http://name{number}.example", "secret", 0.0)
            assert sender.send(hook, delivery) == "no answer within 0.01 seconds"
        monkeypatch.setattr(deliveries, "TRY_SECONDS", 60.0)
        hook = webhooks.Webhook("1", f"http://quick.example:{closed}", "secret", 0.0)
        assert "Connect call failed" in sender.send(hook, delivery)
    assert len(asked) == webhooks.WEBHOOKS_MAX + 1
    over.set()
    while threading.active_count() > threads:
        time.sleep(0.01)


FOR_EVER = """
import time
from budgetbandits.service import deliveries
from budgetbandits.service.http import server
deliveries.TRY_SECONDS, server.NOTIFY_SECONDS, server.JOIN_SECONDS_MAX = 1e6, 0.1, 0.5
def _expire(*_):
    time.sleep(1e6)
server._expire = _expire
"""
"""A server whose deliveries may take for ever, and whose holds take for ever to expire."""


@pytest.mark.crashes
def test_a_server_stops_though_a_receiver_trickles_and_background_work_does_not_end(tmp_path, trickling):
    with running(tmp_path, first=FOR_EVER) as (address, process), Client(address, admin_key(tmp_path)) as client:
        client.create_webhook(trickling.url)
        client.create("ads", budget=10.0, arms=ARMS)
        client.pause("ads")
        assert trickling.begun.wait(60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    said = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines() if line[0] == "{"]
    assert [entry["event"] for entry in said][-2:] == ["background work has not ended", "stopped"]
    assert said[-2]["threads"] == ["expire"]
