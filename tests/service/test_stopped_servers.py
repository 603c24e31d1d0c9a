"""Two real servers on one PostgreSQL, one of them stopped (SIGSTOP) in the middle of its work."""

import contextlib
import random
import signal
import threading
import time

import httpx
import pytest

from budgetbandits.client import Client
from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.service import DecisionService
from servers import admin_key, free_port, serving
from stores import STORES

pytestmark = pytest.mark.crashes


@pytest.mark.parametrize("terms", [{}, {"lease": 100.0}], ids=["no leases", "leases"])
def test_others_decide_while_a_postgres_server_is_stopped_and_nothing_is_overspent(tmp_path, terms):
    with STORES["postgres"](tmp_path) as opener:
        folders, ports = [tmp_path / "one", tmp_path / "two"], [free_port(), free_port()]
        for folder in folders:
            folder.mkdir()
        url, chance = opener.keywords["url"], random.Random(5)
        servers = [serving(folder, port, url) for folder, port in zip(folders, ports, strict=True)]
        addresses, key, over = [f"http://127.0.0.1:{port}" for port in ports], admin_key(folders[0]), threading.Event()
        with Client(addresses[0], key) as client:
            client.create("ads", 1e6, {"a": 1.0, "b": 0.75}, **terms)

        def work(address, name):
            with Client(address, key, timeout=30.0) as client:
                number = 0
                while not over.is_set():
                    with contextlib.suppress(BudgetBanditsError):
                        d = client.decide("ads", key=f"{name} {number}")
                        d.settle(reward=float(number % 2), cost=d.hold / 2)
                    number += 1

        workers = [threading.Thread(target=work, args=(addresses[n % 2], n)) for n in range(8)]
        for worker in workers:
            worker.start()
        try:
            with Client(addresses[1], key, timeout=30.0) as client:
                for round in range(5):
                    time.sleep(0.3 + chance.random() * 0.1)
                    servers[0].send_signal(signal.SIGSTOP)
                    before = time.monotonic()
                    client.decide("ads", key=f"during stop {round}").void()
                    assert time.monotonic() - before < 5.0
                    assert httpx.get(f"{addresses[1]}/readyz").status_code == 200
                    time.sleep(chance.random())
                    servers[0].send_signal(signal.SIGCONT)
            servers[0].send_signal(signal.SIGSTOP)
            servers[1].terminate()
            assert servers[1].wait(15.0) == 0
        finally:
            over.set()
            servers[0].send_signal(signal.SIGCONT)
            for worker in workers:
                worker.join()
            for server in servers:
                server.terminate()
                server.wait()
        with opener() as store:
            account = DecisionService(store).account("ads")
            assert account.spent > 0
            assert account.spent + account.held + account.leased <= account.budget
            assert verify(store, "ads") == []
