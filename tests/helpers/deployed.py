"""The files of `deploy/`, read as Docker and nginx read them, and the programs that they are for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def dockerfile():
    """The instructions of the image, as pairs, those of each stage after its FROM."""
    text = re.sub(r"\\\n\s*", " ", (DEPLOY / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(None, 1)) for line in lines]


def image_environment():
    words = [word for name, rest in dockerfile() if name == "ENV" for word in rest.split()]
    return dict(word.split("=", 1) for word in words)


def image_command(kind):
    """The words of ENTRYPOINT, CMD or HEALTHCHECK, the last of which counts."""
    [*_, rest] = [rest for name, rest in dockerfile() if name == kind]
    return json.loads(rest[rest.index("[") :])


def program(*names):
    """Where a program is; the test is skipped if it is not there."""
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.skip(f"no {names[0]}: install Debian's package {names[0]}")
    return ""


def replaced(text, places):
    for container, here in places.items():
        text = text.replace(container, str(here))
    return text


def until(true, server=None, seconds=120.0):
    """What this gives, when it is true; errors of connections count as false. The server must go on meanwhile."""
    end = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError, httpx.HTTPError):
            if answer := true():
                return answer
        assert server is None or server.poll() is None, "the server has ended"
        assert time.monotonic() < end, "not in time"
        time.sleep(0.02)


def connects(port):
    with socket.create_connection(("127.0.0.1", port), 1.0):
        return True


@contextlib.contextmanager
def process(*command, log, **more):
    """A program that runs in the block, and has stopped after it."""
    with Path(log).open("a") as said:
        running = subprocess.Popen([str(word) for word in command], stdout=said, stderr=said, **more)
    try:
        yield running
    finally:
        running.terminate()
        try:
            running.wait(30)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()


NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  include {folder}/site.conf;
}}
"""


@contextlib.contextmanager
def nginx(folder, port, site):
    """A real nginx, as it is installed, with this one file of its conf.d."""
    found = program("nginx", "/usr/sbin/nginx")
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    (folder / "site.conf").write_text(site)
    command = [found, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "nginx.log"]
    with process(*command, log=folder / "nginx.said") as running:
        until(lambda: connects(port) or running.poll() is not None)
        assert running.poll() is None, (folder / "nginx.log").read_text()
        yield f"https://127.0.0.1:{port}"


@contextlib.contextmanager
def postgresql(folder, port, environment):
    """A real PostgreSQL that wants a password, as its image makes one of these variables."""
    initdb = program("initdb", *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))))
    programs, data = Path(initdb).resolve().parent, folder / "database"  # the others are where a link leads to
    data.mkdir()
    user = {}
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        shutil.chown(data, "postgres")
        user = {"user": "postgres"}
    password, name = environment["POSTGRES_PASSWORD_FILE"], environment["POSTGRES_USER"]

    def run(command, *words):
        subprocess.run([programs / command, *map(str, words)], check=True, capture_output=True, cwd="/", **user)

    run("initdb", "-D", data / "pg", "-U", name, "--auth=scram-sha-256", f"--pwfile={password}")
    options = ["-D", data / "pg", "-p", port, "-c", "listen_addresses=127.0.0.1", "-k", data]
    with process(programs / "postgres", *options, log=folder / "postgres.log", cwd="/", **user):
        until(lambda: connects(port))
        address = f"postgresql://{name}@127.0.0.1:{port}/postgres"
        os.environ["PGPASSWORD"] = Path(password).read_text().strip()
        try:
            until(lambda: not subprocess.run([programs / "psql", address, "-c", "SELECT 1"], capture_output=True).returncode)  # fmt: skip # noqa: E501
            run("createdb", "-h", "127.0.0.1", "-p", port, "-U", name, environment["POSTGRES_DB"])
        finally:
            del os.environ["PGPASSWORD"]
        yield


def certificate(folder):
    """A certificate for this machine that signs itself, and its key, as files in this folder."""
    cert, key = folder / "tls_cert", folder / "tls_key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", cert, "-keyout",
         key],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key
