"""The files of `deploy/` name options, paths and extras that there are, and the programs they are for take them."""

import os
import re
import subprocess
import sys
import tomllib

import typer

from budgetbandits.cli import app
from budgetbandits.cli.serve import read_config
from deployed import DEPLOY, ROOT, compose, dockerfile, image_command, image_environment, program

VARIABLES = {each.envvar for each in typer.main.get_command(app).commands["serve"].params} - {None}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_image_is_made_of_files_that_are_there_and_of_extras_that_exist():
    copied = [rest.split()[:-1] for name, rest in dockerfile() if name == "COPY" and not rest.startswith("--from")]
    files = [file for files in copied for file in files]
    assert all((ROOT / file).exists() for file in files)
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    assert {f"!{file}" for file in files} == {line for line in ignored if line.startswith("!")}
    [extras] = [rest.removeprefix("EXTRAS=") for name, rest in dockerfile() if name == "ARG"]
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    bases = {rest.split()[0] for name, rest in dockerfile() if name == "FROM"}
    [version] = {base.removeprefix("python:").removesuffix("-slim") for base in bases}
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_image_is_not_roots_and_serves():
    names = [name for name, _ in dockerfile()]
    final = dockerfile()[len(names) - 1 - names[::-1].index("FROM") :]
    [user] = [rest for name, rest in final if name == "USER"]
    assert int(user) > 0
    assert image_command("ENTRYPOINT") + image_command("CMD") == ["budgetbandits", "serve"]
    options = {name for name in image_environment() if name.startswith("BUDGETBANDITS_")}
    assert options
    assert options <= VARIABLES


def test_the_stack_uses_options_and_files_that_there_are():
    services = compose()["services"]
    service = services["service"]
    assert set(service["environment"]) <= VARIABLES
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    for each in services.values():
        for volume in each.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose()["volumes"]
        assert set(each.get("secrets", ())) <= set(compose()["secrets"])
    used = {name for each in services.values() for name in each.get("secrets", ())}
    assert used == set(compose()["secrets"])
    for file in ("nginx.conf", "prometheus.yml"):
        assert set(re.findall(r"/run/secrets/(\w+)", (DEPLOY / file).read_text())) <= used
    grace = int(service["stop_grace_period"].removesuffix("s"))
    assert grace > 20  # what a stopping server may take


def test_every_file_is_about_the_same_path():
    path = compose()["services"]["service"]["environment"]["BUDGETBANDITS_ROOT_PATH"]
    assert f"location {path}/ {{" in (DEPLOY / "nginx.conf").read_text()
    assert f"handle {path}/* {{" in (DEPLOY / "Caddyfile").read_text()
    assert f"metrics_path: {path}/metrics" in (DEPLOY / "prometheus.yml").read_text()
    assert read_config(DEPLOY / "serve.toml")["root_path"] == path


def test_the_unit_and_the_proxies_are_about_the_same_socket():
    socket = read_config(DEPLOY / "serve.toml")["unix_socket"]
    assert f"unix:{socket};" in (DEPLOY / "nginx.conf").read_text()
    assert f"unix/{socket} {{" in (DEPLOY / "Caddyfile").read_text()
    unit = (DEPLOY / "budgetbandits.service").read_text()
    assert f"RuntimeDirectory={socket.split('/')[2]}\n" in unit
    assert "--config /etc/budgetbandits/serve.toml\n" in unit


def test_systemd_accepts_the_unit_and_finds_it_hardened(tmp_path):
    analyze = program("systemd-analyze")
    unit = tmp_path / "budgetbandits.service"
    said = (DEPLOY / "budgetbandits.service").read_text()
    assert "/opt/budgetbandits/bin/budgetbandits " in said
    unit.write_text(said.replace("/opt/budgetbandits/bin/budgetbandits", sys.executable))
    done = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    unit.write_text(said.replace("ProtectHome=yes", "ProtectHome=perhaps"))
    assert subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False).stderr != ""
    unit.write_text(said)
    command = [analyze, "security", "--offline=true", "--threshold=25", unit]  # of 100
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PAGER": "cat"})
    assert done.returncode == 0, done.stdout[-500:]
