"""A real server on real sockets: TLS, a Unix socket that a killed server has left, a stop that loses nothing."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from budgetbandits.client import Client
from budgetbandits.errors import BadParameter
from budgetbandits.service.http.server import check_tls
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.web.servers import listening_file
from deployed import certificate as new_certificate
from deployed import until
from servers import admin_key, free_port, running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return new_certificate(tmp_path_factory.mktemp("tls"))


@contextlib.contextmanager
def started(folder, *options, **environment):
    """A server with these options; ready when its socket answers is the caller's to find out."""
    command = [sys.executable, "-m", "budgetbandits", "serve", *map(str, options)]
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored where the tests run under nohup
    try:
        with (folder / "said").open("a") as said:
            server = subprocess.Popen(
                command, cwd=folder, stdout=said, stderr=said, env=os.environ | environment, start_new_session=True
            )
    finally:
        signal.signal(signal.SIGHUP, inherited)
    try:
        yield server
    finally:
        server.kill()
        server.wait()


def test_tls_is_served_and_cookies_are_for_tls_alone(tmp_path, certificate):
    port, trust = free_port(), ssl.create_default_context(cafile=certificate[0])
    options = ("--port", port, "--tls-cert", certificate[0], "--tls-key", certificate[1])
    with (
        started(tmp_path, *options) as server,
        httpx.Client(base_url=f"https://localhost:{port}", verify=trust) as client,
    ):
        until(lambda: client.get("/readyz").status_code == 200, server)
        answer = client.post("/sign-in", data={"key": admin_key(tmp_path)})
        assert "; Secure" in answer.headers["set-cookie"]
        assert client.get("/").status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"https://localhost:{port}/healthz")  # signed by nobody that is trusted
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://localhost:{port}/healthz")
        assert f"on https://127.0.0.1:{port}" in (tmp_path / "said").read_text()


def test_files_that_are_no_certificate_and_key_are_refused_with_the_remedy(tmp_path, certificate):
    check_tls(*certificate)
    cert, key = certificate
    (tmp_path / "empty.pem").touch()
    locked = tmp_path / "locked.pem"
    subprocess.run(["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:x", "-out", locked], check=True,
                   capture_output=True)  # fmt: skip
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", other], check=True)
    for bad in ((cert, other), (cert, tmp_path / "empty.pem"), (key, cert), (cert, locked)):
        with pytest.raises(BadParameter, match="give PEM files that belong together"):
            check_tls(*bad)
    with pytest.raises(BadParameter, match="No such file or directory; the server's user"):
        check_tls(cert, tmp_path / "none.pem")


def answers(client, path):
    with socket.socket(socket.AF_UNIX) as first:  # httpx leaves sockets open that could not connect
        first.connect(str(path))
    return client.get("/readyz").status_code == 200


def on_file(path):
    return httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://service")


def test_a_unix_socket_that_a_killed_server_has_left_is_taken_over(tmp_path):
    path = tmp_path / "here.sock"
    with on_file(path) as client:
        with started(tmp_path, "--unix-socket", path) as server:
            until(lambda: answers(client, path), server)
            refused = subprocess.run(
                [sys.executable, "-m", "budgetbandits", "serve", "--unix-socket", path], cwd=tmp_path,
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert refused.returncode == 2
            assert f"another server listens on {path}; stop it" in refused.stderr
            assert client.get("/healthz").status_code == 200
        assert path.is_socket()  # killed
        with started(tmp_path, "--unix-socket", path) as server:
            until(lambda: answers(client, path), server)
            assert f"on unix:{path}" in (tmp_path / "said").read_text()
            server.terminate()
            assert server.wait(20) == 0
    assert [each.name for each in tmp_path.glob("here.sock*")] == []


def test_what_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "notes"
    path.write_text("mine")
    with pytest.raises(BadParameter, match="is there and is no socket; move it away"), listening_file(path):
        pass
    assert path.read_text() == "mine"
    with pytest.raises(BadParameter, match=r"cannot listen on .*none/here"), listening_file(tmp_path / "none" / "here"):
        pass
    with pytest.raises(BadParameter, match=r"cannot listen on .*too long"), listening_file(tmp_path / ("x" * 120)):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["notes"]


def test_a_server_removes_its_own_file_only(tmp_path):
    path = tmp_path / "here.sock"
    with listening_file(path):
        assert path.stat().st_mode & 0o777 == 0o666
        path.unlink()
        later = socket.socket(socket.AF_UNIX)
        later.bind(str(path))
    assert path.is_socket()
    later.close()


@pytest.mark.crashes
def test_a_restart_under_load_loses_no_decision(tmp_path):
    """Programs that go on asking while one server stops and the next one starts: each decision is answered once."""
    port = free_port()
    with running(tmp_path) as (base, _), Client(base, admin_key(tmp_path)) as client:
        client.create("ads", 1000.0, {"a": 1.0, "b": 0.5})
    key, over, answered = admin_key(tmp_path), threading.Event(), {}

    def work(name):
        with Client(f"http://127.0.0.1:{port}", key, timeout=30.0) as client:
            number = 0
            while not over.is_set():
                d = client.decide("ads", key=f"{name} {number}")
                answered[f"{name} {number}"] = d.id
                d.settle(cost=0.25, reward=1.0)
                number += 1

    workers = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    codes = []
    for each in workers:
        each.start()
    try:
        for round in range(3):
            with started(tmp_path, "--port", port) as server:
                serving = f'"pid": {server.pid}'
                until(lambda: serving in (tmp_path / "said").read_text(), server)  # noqa: B023 - called now
                enough = len(answered) + 20  # the server before has answered until its end
                until(lambda: len(answered) > enough, server)  # noqa: B023 - called now
                if round == 2:
                    over.set()
                    for each in workers:
                        each.join(30.0)
                server.send_signal(signal.SIGHUP if round == 1 else signal.SIGTERM)
                codes.append(server.wait(20))
    finally:
        over.set()
    assert codes == [0, 0, 0]
    assert not any(each.is_alive() for each in workers)
    with SQLiteStore(tmp_path / "budgetbandits.db") as store:
        account = store.read(lambda tx: tx.campaign("ads").account)
        ids = store.read(
            lambda tx: {each.decision for each in tx.events(tx.campaign("ads").id) if each.kind == "decided"}
        )
    assert account.spent == 250_000 * len(answered)
    assert account.held == 0
    assert ids == set(answered.values())
    said = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines() if line.startswith("{")]
    assert [each["event"] for each in said if each["event"] in ("serving", "stopped")] == ["serving", "stopped"] * 4
    assert not [each for each in said if each["level"] == "error"]


def test_a_server_runs_where_nothing_but_its_store_can_be_written(tmp_path_factory):
    """As in a container with a read-only file system: the home, the temporary folder and the installation are not."""
    tmp_path = tmp_path_factory.mktemp("disk")  # a part of the file system that is mounted read-only
    if os.geteuid() != 0 or not Path("/usr/bin/unshare").exists():
        pytest.skip("needs root and unshare, to mount everything read-only")
    data = tmp_path / "data"
    data.mkdir()
    port = free_port()
    script = (
        f"mount --make-rprivate / && mount --bind {data} {data} && mount -o remount,bind,ro / "
        f"&& ! touch {tmp_path}/x 2>&- && cd {data} && exec {sys.executable} -m budgetbandits serve --port {port}"
    )
    command = ["unshare", "--mount", "sh", "-c", script]
    environment = {**os.environ, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    with (
        (tmp_path / "said").open("w") as said,
        subprocess.Popen(command, stdout=said, stderr=said, env=environment) as server,
    ):
        try:
            until(lambda: httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200, server)
            with Client(f"http://127.0.0.1:{port}", admin_key(data)) as client:
                client.create("ads", 10.0, {"a": 1.0, "b": 0.5})
                client.decide("ads").settle(cost=0.25, reward=1.0)
                assert client.verify("ads") == []
        finally:
            server.terminate()
        assert server.wait(20) == 0
