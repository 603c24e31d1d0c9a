"""A real server on a Unix socket behind a real nginx and a real Caddy, by the files of `deploy/`."""

import contextlib
import os
import ssl
import sys
import tempfile
import time
from pathlib import Path

import httpx
import pytest

from budgetbandits.cli.serve import read_config
from budgetbandits.client import Client
from deployed import DEPLOY, certificate, nginx, process, program, replaced, until
from servers import admin_key, free_port

pytestmark = pytest.mark.browser  # which has the programs

OPTIONS = read_config(DEPLOY / "serve.toml")


@contextlib.contextmanager
def open_folder():
    """A folder that all may enter: nginx runs as another user."""
    with tempfile.TemporaryDirectory(prefix="budgetbandits-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def folder():
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def server():
    """The folder of a server with the options of the unit, but for its store and where its files are."""
    with open_folder() as folder, running(folder):
        yield folder


@contextlib.contextmanager
def running(folder):
    file = folder / "http.sock"
    command = [sys.executable, "-m", "budgetbandits", "serve", "--config", folder / "serve.toml"]
    lines = [f'unix_socket = "{file}"', f'root_path = "{OPTIONS["root_path"]}"']
    (folder / "serve.toml").write_text("\n".join(lines))
    with process(*command, log=folder / "said", cwd=folder) as started:
        until(lambda: file.exists() or started.poll() is not None)
        assert started.poll() is None, (folder / "said").read_text()
        transport = httpx.HTTPTransport(uds=str(file))
        with httpx.Client(transport=transport, base_url="http://here", timeout=30.0) as client:
            assert client.get("/readyz").status_code == 200
        yield


def nginx_in_front(server, folder):
    port, (cert, key) = free_port(), certificate(folder)
    places = {
        "server service:8000;": f"server unix:{server}/http.sock;", "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "/run/secrets/tls_cert": cert, "/run/secrets/tls_key": key,
    }  # fmt: skip
    return nginx(folder, port, replaced((DEPLOY / "nginx.conf").read_text(), places))


@contextlib.contextmanager
def caddy_in_front(server, folder):
    caddy, port, (cert, key) = program("caddy"), free_port(), certificate(folder)
    said = (DEPLOY / "Caddyfile").read_text()
    places = {
        "bandits.example.org {\n": f"https://127.0.0.1:{port} {{\n\ttls {cert} {key}\n",
        OPTIONS["unix_socket"]: f"{server}/http.sock",
    }  # fmt: skip
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + replaced(said, places))
    command = [caddy, "run", "--adapter", "caddyfile", "--config", folder / "Caddyfile"]
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with process(*command, log=folder / "caddy.log", env=home) as running:
        trust = ssl.create_default_context(cafile=cert)
        base = f"https://127.0.0.1:{port}"

        def answers():
            assert running.poll() is None, (folder / "caddy.log").read_text()
            with contextlib.suppress(httpx.HTTPError):
                return httpx.get(f"{base}{OPTIONS['root_path']}/healthz", verify=trust).status_code == 200

        until(answers)
        yield base


FRONTS = {"nginx": nginx_in_front, "caddy": caddy_in_front}


@pytest.mark.parametrize("name", FRONTS)
def test_pages_and_programs_behind_a_proxy_below_its_path(server, folder, monkeypatch, name):
    path = OPTIONS["root_path"]
    with FRONTS[name](server, folder) as base:
        trust = ssl.create_default_context(cafile=folder / "tls_cert")
        with httpx.Client(base_url=base, verify=trust, timeout=30.0) as person:
            moved = person.get(path)
            assert moved.status_code in (301, 302)
            assert httpx.URL(moved.headers["location"]).path == f"{path}/"
            first = person.get(f"{path}/", follow_redirects=True)
            assert first.url.path == f"{path}/sign-in"
            answer = person.post(first.url, data={"key": admin_key(server)})
            assert answer.headers["location"] == f"{path}/"
            assert "; Secure" in answer.headers["set-cookie"]
            assert f"; Path={path};" in answer.headers["set-cookie"]
            assert person.get(f"{path}/").status_code == 200
            monkeypatch.setenv("SSL_CERT_FILE", str(folder / "tls_cert"))
            with Client(f"{base}{path}", admin_key(server)) as client:
                client.create(f"behind {name}", 10.0, {"a": 1.0, "b": 0.5})
                with person.stream("GET", f"{path}/campaigns/behind {name}/live") as stream:
                    heard = stream.iter_lines()
                    assert next(heard).startswith("event: changed")
                    began = time.monotonic()
                    client.decide(f"behind {name}").settle(cost=0.25, reward=1.0)
                    assert "event: changed" in [next(heard) for _ in range(3)]
                    assert time.monotonic() - began < 5.0  # a beat comes every ten seconds
                assert client.verify(f"behind {name}") == []
            assert person.get("/").status_code in (200, 404)  # the proxy's own


def test_the_files_name_what_is_replaced_here():
    assert Path(OPTIONS["unix_socket"]).is_absolute()
    assert "server service:8000;" in (DEPLOY / "nginx.conf").read_text()
