"""How ``serve`` is given its options: by the command line, the environment, a file; and what it refuses."""

import os
import re
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from budgetbandits.cli import app
from budgetbandits.cli.serve import environment_variable
from budgetbandits.errors import BadParameter, MissingExtra
from budgetbandits.service.http import server
from servers import free_port

OPTIONS = {
    "store": "money.db", "store_password_file": "password", "host": "127.0.0.1", "port": 0, "unix_socket": "here.sock",
    "root_path": "/bandits", "tls_cert": "cert.pem", "tls_key": "key.pem", "workers": 3, "key_file": "admin.key",
    "connections_per_address": 7, "campaign_metrics": "left", "metrics_campaigns": 5, "retention": 90.5,
    "archive": "old",
}  # fmt: skip
"""Every option with a value that is not its default."""


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """The options that a server would be started with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", "")
    for name in [each for each in os.environ if each.startswith("BUDGETBANDITS_")]:
        monkeypatch.delenv(name)
    seen = []
    monkeypatch.setattr(server, "serve", lambda listener, options: seen.append((options, listener.getsockname())))
    monkeypatch.setattr(server, "check_tls", lambda certificate, key: None)

    def run(*words, **environment):
        result = CliRunner().invoke(app, ["serve", *words], env=environment)
        if result.exception is not None:
            raise result.exception
        return seen.pop()

    return run


def file(text):
    Path("serve.toml").write_text(text)
    return "serve.toml"


def toml(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_every_option_has_a_value_here():
    names = {each.name for each in typer.main.get_command(app).commands["serve"].params}
    assert set(OPTIONS) == names - {"config", "help"}


def given():
    """All options that go together, with a port that is free; the other two ways to listen take their place."""
    return {**{name: OPTIONS[name] for name in OPTIONS if name not in ("unix_socket", "workers")}, "port": free_port()}


def check(options, listener, wanted):
    assert (options.address, options.root_path, options.per_address) == ("money.db", "/bandits", 7)
    assert listener == (wanted["host"], wanted["port"])
    assert options.tls == (Path("cert.pem"), Path("key.pem"))
    assert options.key_file == Path("admin.key")
    assert (options.series.names, options.series.campaigns_max) == (("left",), 5)
    assert (options.retention.archive, options.retention.days) == ("old", 90.5)
    assert os.environ["PGPASSWORD"] == "secret with spaces "


@pytest.mark.parametrize("way", ["command line", "environment", "file"])
def test_every_option_comes_by_each_way(serve, way):
    Path("password").write_text("secret with spaces \n")
    wanted = given()
    if way == "command line":
        words = [word for name, value in wanted.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        check(*serve(*words), wanted)
    elif way == "environment":
        check(*serve(**{environment_variable(f"--{name}"): str(value) for name, value in wanted.items()}), wanted)
    else:
        said = "\n".join(f"{name} = {toml(value)}" for name, value in wanted.items())
        check(*serve("--config", file(said)), wanted)
        check(*serve(BUDGETBANDITS_CONFIG=file(said)), wanted)


def test_the_command_line_comes_first_then_the_environment_then_the_file(serve):
    said, port = file('root_path = "/file"\nhost = "127.0.0.1"'), str(free_port())
    words = ("--config", said, "--port", port)
    assert serve(*words)[0].root_path == "/file"
    assert serve(*words, BUDGETBANDITS_ROOT_PATH="/environment")[0].root_path == "/environment"
    assert serve(*words, "--root-path", "/line", BUDGETBANDITS_ROOT_PATH="/environment")[0].root_path == "/line"
    assert serve("--port", port)[0].root_path == ""


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("root-path = '/x'", "there is no option 'root-path'; did you mean root_path?"),
        ("wokers = 3", "did you mean workers?"),
        ("PORT = 3", "did you mean port?"),
        ("config = 'other.toml'", "there is no option 'config'"),
        ("[serve]\nport = 3", "there is no option 'serve'"),
        ("port = '8000'", "port is '8000'; write a number"),
        ("port = true", "port is True; write a number"),
        ("port = 80.5", "port is 80.5; write a number"),
        ("port = 0", "serve.toml: port is 0; write 1 to 65535"),
        ("port = 65536", "serve.toml: port is 65536; write 1 to 65535"),
        ("retention = nan", "retention is nan; write 1 or more"),
        ("metrics_campaigns = -1", "metrics_campaigns is -1; write 0 or more"),
        ("host = 5", "host is 5; write a text in quotes"),
        ("tls_cert = ['a']", "write a text in quotes"),
        ("port 8000", "serve.toml is no TOML: "),
        ("port = 1\nport = 2", "serve.toml is no TOML: "),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_the_remedy(serve, said, words):
    with pytest.raises(BadParameter, match=re.escape(words)):
        serve("--config", file(said))


def test_a_file_that_cannot_be_read_is_refused(serve):
    with pytest.raises(BadParameter, match=r"cannot read none\.toml: No such file"):
        serve("--config", "none.toml")
    Path("bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadParameter, match=r"cannot read bytes\.toml"):
        serve("--config", "bytes.toml")
    with pytest.raises(BadParameter, match="cannot read the store's password from nothing: No such file"):
        serve("--store-password-file", "nothing")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--workers", "2"], "SQLite lets one process write at a time, .* set --store postgresql://"),
        (["--tls-cert", "cert.pem"], "--tls-cert and --tls-key go together"),
        (["--retention", "30"], "--retention and --archive go together"),
        (["--unix-socket", "here.sock", "--port", "8001"], "takes the place of --host and --port"),
        (["--root-path", "/a b"], "no path of an address"),
        (["--root-path", "/../x"], "no path of an address"),
        (["--root-path", "https://example.org/x"], "no path of an address"),
        (["--root-path", "/v1/x"], "begins like the server's own addresses"),
    ],
)
def test_options_that_cannot_be_right_are_refused(serve, words, why):
    with pytest.raises(BadParameter, match=why):
        serve(*words, *([] if "--port" in words else ["--port", str(free_port())]))


def test_retention_without_what_writes_its_files_is_refused(serve, monkeypatch):
    monkeypatch.setattr("budgetbandits.cli.serve.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'budgetbandits\[archive\]'"):
        serve("--retention", "30", "--archive", "old", "--port", str(free_port()))


def test_several_processes_need_a_database_that_takes_them(serve):
    port = str(free_port())
    options, _ = serve("--workers", "3", "--store", "postgresql://user@host/name", "--port", port)
    assert (options.workers, options.name) == (3, "postgresql://host/name")


def test_other_commands_take_the_password_from_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "")
    monkeypatch.setenv("BUDGETBANDITS_STORE_PASSWORD_FILE", str(tmp_path / "password"))
    (tmp_path / "password").write_text("one\r\n")
    CliRunner().invoke(app, ["campaign", "list", "--store", str(tmp_path / "none.db")])
    assert os.environ["PGPASSWORD"] == "one"
