"""All of `deploy/compose.yaml` without Docker: each part by the commands and variables of its container.

PostgreSQL with a password, two processes of the service on a read-only file system without privileges, nginx with TLS,
Prometheus with the rules, and a page in a real Chromium.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import httpx
import psutil
import pytest

from budgetbandits.client import Client
from deployed import (
    DEPLOY,
    certificate,
    compose,
    image_command,
    image_environment,
    nginx,
    postgresql,
    process,
    program,
    replaced,
    until,
)
from servers import free_port

pytestmark = pytest.mark.browser

PATH = compose()["services"]["service"]["environment"]["BUDGETBANDITS_ROOT_PATH"]


@pytest.fixture(scope="module")
def stack():
    with tempfile.TemporaryDirectory(prefix="budgetbandits-stack-") as name, contextlib.ExitStack() as parts:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL and nginx run as other users
        secrets, data = folder / "secrets", folder / "data"
        for each in (secrets, data):
            each.mkdir()
        (secrets / "database_password").write_text("per cent % and : and /\n")
        cert, _ = certificate(secrets)
        ports = {name: free_port() for name in ("database", "service", "proxy", "prometheus")}
        places = {
            "/run/secrets/": f"{secrets}/", "/data/": f"{data}/", "database:5432": f"127.0.0.1:{ports['database']}",
            "service:8000": f"127.0.0.1:{ports['service']}", "/etc/prometheus/": f"{folder}/",
            "listen 443 ssl": f"listen 127.0.0.1:{ports['proxy']} ssl", "_interval: 15s": "_interval: 1s",
        }  # fmt: skip
        services = compose()["services"]

        def variables(service):
            return {name: replaced(value, places) for name, value in services[service]["environment"].items()}

        parts.enter_context(postgresql(folder, ports["database"], variables("database")))
        own = {name: replaced(value, places) for name, value in image_environment().items() if name != "PATH"}
        environment = {**os.environ, **own, **variables("service"), "BUDGETBANDITS_PORT": str(ports["service"])}
        server = parts.enter_context(
            process(*contained(data), log=folder / "service.log", env=environment, cwd=data, start_new_session=True)
        )

        def ready():
            assert server.poll() is None, (folder / "service.log").read_text()
            with contextlib.suppress(httpx.HTTPError):
                return httpx.get(f"http://127.0.0.1:{ports['service']}/readyz").status_code == 200

        until(ready)
        site = replaced((DEPLOY / "nginx.conf").read_text(), places)
        proxy = parts.enter_context(nginx(folder, ports["proxy"], site))
        yield SimpleNamespace(
            folder=folder, ports=ports, places=places, server=server, base=f"{proxy}{PATH}", certificate=cert,
            environment=environment, key=(data / "admin.key").read_text().strip(),
        )  # fmt: skip


def contained(data):
    """The command of the container, on a file system that is read-only but for its volume, without capabilities."""
    command = [sys.executable, "-m", *image_command("ENTRYPOINT"), *image_command("CMD")]
    if os.geteuid() != 0 or not Path("/usr/bin/setpriv").exists():
        return command
    steps = [
        "mount --make-rprivate /", f"mount --bind {data} {data}", "mount -o remount,bind,ro /", f"cd {data}",
        f"exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all {shlex.join(command)}",
    ]  # fmt: skip
    return ["unshare", "--mount", "sh", "-c", " && ".join(steps)]


@pytest.fixture
def client(stack, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(stack.certificate))
    with Client(stack.base, stack.key, timeout=60.0) as client:
        yield client


def workers(stack):
    found = psutil.Process(stack.server.pid).children(recursive=True)
    return [each for each in found if any("spawn_main" in word for word in each.cmdline())]


def test_a_page_is_live_through_nginx_below_the_path(stack, client, watched):
    client.create("ads", 20.0, {"search": 1.0, "mail": 1.0})
    browser = watched(stack.base, ignore_https_errors=True)
    browser.sign_in(stack.key)
    page, state = browser.page, browser.page.locator("#live-state")
    browser.until(lambda: state.inner_text() == "Live")
    page.locator("#q").fill("ad")
    browser.until(lambda: "q=ad" in page.url)
    assert page.url.startswith(f"{stack.base}/?")
    page.get_by_role("link", name="ads", exact=True).click()
    page.wait_for_url(f"{stack.base}/campaigns/ads")
    browser.until(lambda: state.inner_text() == "Live")
    client.decide("ads").settle(cost=0.5, reward=1.0)
    page.wait_for_selector("text=0.50 of 20.00", timeout=20_000)
    assert state.inner_text() == "Live"
    page.get_by_role("link", name="Top up").first.click()
    page.get_by_label("Amount").fill("5")
    page.locator("[data-confirm] button").click()
    page.wait_for_url(f"{stack.base}/campaigns/ads")
    page.wait_for_selector("text=0.50 of 25.00")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{stack.base}/sign-in")
    browser.sound()
    assert {cookie["path"] for cookie in browser.context.cookies()} <= {PATH}


def test_the_containers_check_finds_the_server_well(stack):
    command = [sys.executable, *image_command("HEALTHCHECK")[1:]]
    assert subprocess.run(command, env=stack.environment, check=False).returncode == 0
    elsewhere = {**stack.environment, "BUDGETBANDITS_PORT": str(free_port())}
    assert subprocess.run(command, env=elsewhere, check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_commands_in_the_container_find_the_store_and_its_password(stack):
    command = [sys.executable, "-m", "budgetbandits", "key", "create", "--scope", "read", "--name", "prometheus"]
    made = subprocess.run(command, env=stack.environment, capture_output=True, text=True, check=True).stdout
    assert made.startswith("bb_")
    without = {n: v for n, v in stack.environment.items() if n != "BUDGETBANDITS_STORE_PASSWORD_FILE"}
    refused = subprocess.run(command, env=without, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "password" in refused.stderr


def test_prometheus_sees_all_processes_and_what_becomes_of_them(stack, client):
    """Last: it ends with an outage of the whole service."""
    (stack.folder / "secrets/prometheus_key").write_text(stack.key)
    for name in ("prometheus.yml", "prometheus-rules.yml"):
        (stack.folder / name).write_text(replaced((DEPLOY / name).read_text(), stack.places))
    command = [program("prometheus"), f"--config.file={stack.folder}/prometheus.yml",
               f"--storage.tsdb.path={stack.folder}/tsdb",
               f"--web.listen-address=127.0.0.1:{stack.ports['prometheus']}"]  # fmt: skip
    with (
        process(*command, log=stack.folder / "prometheus.log"),
        httpx.Client(base_url=f"http://127.0.0.1:{stack.ports['prometheus']}/api/v1") as prometheus,
    ):

        def ask(query):
            with contextlib.suppress(httpx.TransportError):
                answer = prometheus.get("/query", params={"query": query})
                if answer.status_code == 200:
                    return [(each["metric"], float(each["value"][1])) for each in answer.json()["data"]["result"]]
            return []

        until(lambda: [value for _, value in ask("up")] == [1.0])
        assert len(prometheus.get("/rules").json()["data"]["groups"]) == 2
        until(lambda: {labels["worker"] for labels, _ in ask("process_start_time_seconds")} == {"0", "1"})
        client.create("watched", 50.0, {"search": 1.0, "mail": 1.0})
        before = workers(stack)
        assert len(before) == 2
        for each in before:
            os.kill(each.pid, signal.SIGKILL)  # all at once: the next decision waits for a new one
            client.decide("watched").settle(cost=0.5, reward=1.0)
        until(lambda: len(workers(stack)) == 2)
        assert not {each.pid for each in workers(stack)} & {each.pid for each in before}
        until(lambda: ask('budgetbandits_campaign_spent{campaign="watched"}')[:1] and
              ask('budgetbandits_campaign_spent{campaign="watched"}')[0][1] == 1.0)  # fmt: skip
        assert client.verify("watched") == []
        os.killpg(stack.server.pid, signal.SIGKILL)
        until(lambda: ("ServerDown", "pending") in {
            (each["labels"]["alertname"], each["state"]) for each in prometheus.get("/alerts").json()["data"]["alerts"]
        })  # fmt: skip
