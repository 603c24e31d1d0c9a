"""Commands with ``--url``: on a server they do what they do on a store, and say the same."""

import contextlib
import csv
import inspect
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from budgetbandits.cli import app, campaign_app
from budgetbandits.cli.remote import ServerAddress
from budgetbandits.client import Client, check_signature
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service
from servers import admin_key, free_port, running

ADS = ["create", "ads", "--budget", "500", "--arm", "search=2.5", "--arm", "lab/mail=0.5"]


def said(*words, **env):
    """What a command has printed, its exit code, and its error."""
    given = {"COLUMNS": "80", "BUDGETBANDITS_STORE": "", "BUDGETBANDITS_URL": "", "BUDGETBANDITS_KEY": ""} | env
    result = CliRunner().invoke(app, list(words), env={name: value or None for name, value in given.items()})
    error = result.exception if result.exit_code and not isinstance(result.exception, SystemExit) else None
    return result.stdout, result.exit_code, error


SERVICES = {}
"""By their address: servers in this process, which are asked without a network. Others are real."""


@pytest.fixture(scope="module", autouse=True)
def network():
    with pytest.MonkeyPatch.context() as patch, capture_logs():  # a server's log is not what a command prints
        client = lambda self: Client(str(self), self.key, transport=SERVICES.get(str(self)))  # noqa: E731
        patch.setattr(ServerAddress, "client", client)
        yield


@contextlib.contextmanager
def serving(folder):
    """The options that name a server on the store of this folder."""
    with SQLiteStore(folder / "budgetbandits.db") as opened:
        address, key = f"http://{folder.name}", folder / "admin.key"
        SERVICES[address] = Service(opened)
        key.write_text(SERVICES[address].admin)
        yield ("--url", address, "--key", str(key))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The folder of a server and the options that name it."""
    folder = tmp_path_factory.mktemp("server")
    with serving(folder) as options:
        yield folder, options


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """The folder of a store that no server uses, and the option that names it."""
    folder = tmp_path_factory.mktemp("store")
    SQLiteStore(folder / "budgetbandits.db").close()
    return folder, ("--store", str(folder / "budgetbandits.db"))


def decide(folder):
    """A decision with feedback, and another one without, on the store of this folder; the same in each."""
    with SQLiteStore(folder / "budgetbandits.db") as opened:
        service = DecisionService(opened)
        service.feedback(service.decide("ads", "one", arms=["search"]).decision, cost=0.25, reward=1.0)
        service.decide("ads", "two", arms=["lab/mail"])


def plain(text):
    """Without what differs from one store to another: ids, times, and what a server adds up every five seconds."""
    text = re.sub(r'"(id|decision)": "\w+"', '"id": ""', text)
    text = re.sub(r'"(created_at|at|last_\w+_at|median|low|high|\w+_24_hours)": ([\d.]+|null)', '"at": 0', text)
    return re.sub(r"since [\d-]+ [\d:]+|until [\d-]+ [\d:]+", "", text)


SCRIPT = [
    ["list"],
    [*ADS, "--daily-cap", "80", "--policy", "bts", "--features", "a"],  # refused: bts looks at no features
    [*ADS, "--daily-cap", "80", "--policy", "bts", "--currency", "EUR"],
    [*ADS],  # refused: there is one of this name
    ["create", "past", "--budget", "5", "--arm", "a=1", "--arm", "b=1", "--history", "HISTORY"],
    decide,
    ["show", "ads"],
    ["list"],
    ["top-up", "ads", "20.5"],
    ["add-arm", "ads", "lab/tv=2"],
    ["retire-arm", "ads", "lab/tv"],
    ["retire-arm", "ads", "none"],  # refused
    ["bring-back-arm", "ads", "lab/tv"],
    ["change", "ads", "daily-cap=50", "hold_seconds=90", "--cap", "lab/tv=3"],
    ["change", "ads", "name=Ads", "daily_cap=none"],
    ["change", "Ads", "budget=1e-6"],  # refused: more is spent
    ["change", "Ads", "budget=many"],  # refused
    ["clone", "Ads", "copy", "--budget", "50"],
    ["clone", "Ads", "bare", "--no-learned"],
    ["pause", "Ads", "--json"],
    ["pause", "none"],  # refused
    ["resume", "Ads", "--spent-since", "1"],  # refused: it was not restored
    ["resume", "Ads"],
    ["reset-clock", "Ads"],  # refused: nothing to reset
    ["export", "Ads", "FOLDER/made.csv", "--json"],
    ["export", "Ads", "FOLDER/made.parquet", "--table", "events"],
    ["export", "Ads", "FOLDER/made.txt"],  # refused
    ["verify", "Ads"],
    ["close", "Ads"],
    ["top-up", "Ads", "1"],  # refused: it is closed
    ["top-up", "Ads", "1", "--json"],
    ["list"],
    ["list", "--json"],
    ["show", "Ads"],
    ["show", "Ads", "--json"],
]


def test_the_same_commands_say_the_same(tmp_path):
    """One script, on a store and against a server on another: the same words, exit codes and errors."""
    history = tmp_path / "past.csv"
    history.write_text("arm,reward,cost\na,1,0.25\na,0,0.5\n")

    def run(folder, options):
        heard = []
        for step in SCRIPT:
            if callable(step):
                step(folder)
                continue
            words = [word.replace("FOLDER", str(folder)).replace("HISTORY", str(history)) for word in step]
            text, code, error = said("campaign", *words, *options)
            text = plain(text.replace(str(folder), ""))
            made = json.loads(text) if code == 0 and "--json" in words else text
            heard.append((step, made, code, type(error), str(error)))
        return heard

    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    SQLiteStore(here / "budgetbandits.db").close()
    local = run(here, ("--store", str(here / "budgetbandits.db")))
    with serving(there) as options:
        remote = run(there, options)
    assert (there / "made.csv").read_text().count("\n") == 3
    for one, other in zip(local, remote, strict=True):
        assert one == other, one[0]
    assert len([step for step, _, code, *_ in local if code]) == 10


def test_what_needs_the_store_says_so(server):
    folder, there = server
    with SERVICES[there[1]].client() as client:
        client.create("old", 5.0, {"a": 1.0, "b": 1.0})
    for words in (
        ["prune", "old", "--days", "1", "--archive", str(folder)],
        ["delete", "old", "--yes"],
        ["verify", "old", "--archive", str(folder)],
    ):
        _, code, error = said("campaign", *words, *there)
        assert code
        assert "works on the store itself; run it where the store is, with --store" in str(error), words


def test_every_command_of_a_campaign_can_be_sent_to_a_server():
    for command in campaign_app.registered_commands:
        assert {"url", "server_key", "store"} <= set(inspect.signature(command.callback).parameters), command.name


@pytest.fixture
def real_server(tmp_path):
    with running(tmp_path) as (address, _):
        yield tmp_path, ("--url", address, "--key", str(tmp_path / "budgetbandits-admin.key"))


def test_the_key_is_the_actor_and_may_come_from_a_file_the_environment_or_the_line(real_server):
    folder, there = real_server
    key = admin_key(folder)
    name = ["create", "whose", *ADS[2:]]
    assert said("campaign", *name, *there)[1] == 0
    for options, env in (
        (there, {}),
        ((*there[:2], "--key", key), {}),
        (there[:2], {"BUDGETBANDITS_KEY": key}),
        ((), {"BUDGETBANDITS_URL": there[1], "BUDGETBANDITS_KEY": key}),
    ):
        assert "whose" in said("campaign", "show", "whose", *options, **env)[0]
    assert said("campaign", "export", "whose", str(folder / "e.csv"), "--table", "events", *there)[1] == 0
    with (folder / "e.csv").open() as file:
        assert {row["actor"] for row in csv.DictReader(file)} == {key[:11]}


def test_a_store_and_a_server_are_not_mixed_up(server, store):
    (_, there), (_, here) = server, store
    both = {"BUDGETBANDITS_URL": there[1], "BUDGETBANDITS_KEY": there[3]}
    assert said("campaign", *["create", "here only", *ADS[2:]], *here)[1] == 0
    assert "here only" in said("campaign", "list", *here, **both)[0]  # what is written counts
    assert "here only" not in said("campaign", "list", *there, BUDGETBANDITS_STORE=here[1])[0]
    for options, env, message in (
        ((*here, *there), {}, "--store and --url are given"),
        ((), both | {"BUDGETBANDITS_STORE": here[1]}, "BUDGETBANDITS_STORE and _URL are both given"),
        ((*here, "--key", "bb_a_b"), {}, "--key is for a server"),
        (there[:2], {}, "--url needs a key"),
        ((*there[:2], "--key", "none.key"), {}, "neither a key, which begins with bb_, nor a file"),
        ((*there[:2], "--key", "bb_wrong_key"), {}, "no such key"),
        (("--url", "budget.example.com", "--key", "bb_a_b"), {}, "begins with http:// or https://"),
    ):
        _, code, error = said("campaign", "list", *options, **env)
        assert code
        assert message in str(error)


def test_keys_are_made_listed_and_dropped_on_a_server(server, tmp_path, monkeypatch):
    _, there = server
    monkeypatch.chdir(tmp_path)  # there is no store here
    made, code, _ = said("key", "create", "--scope", "read", "--name", "watch", "--days", "3", "--rate", "9", *there)
    assert code == 0
    assert re.search(rf"bb_{made[3:11]}_… +read, 9 a second +all +watch", said("key", "list", *there, COLUMNS="120")[0])
    (row,) = [each for each in json.loads(said("key", "list", "--json", *there)[0]) if each["name"] == "watch"]
    assert row["scopes"] == ["read"]
    assert "is dropped" in said("key", "drop", made[:11], *there)[0]
    assert made[3:11] not in said("key", "list", *there)[0]


def test_a_change_that_got_no_answer_may_have_been_made(monkeypatch):
    """The command does not name the key that the change was sent under: no option takes it."""
    monkeypatch.setattr(ServerAddress, "client", lambda self: Client(str(self), self.key, deadline=0.0))
    nobody = ("--url", f"http://127.0.0.1:{free_port()}", "--key", "bb_some")
    for words, remedy in (
        (("top-up", "ads", "5"), "look before you repeat the command"), (("list",), "whether the address is right"),
    ):  # fmt: skip
        _, code, error = said("campaign", *words, *nobody)
        assert code
        assert remedy in str(error)
        assert "key=" not in str(error)


class Address:
    """A server that answers with these statuses in turn, and then with 200; `got` is what was sent."""

    def __init__(self, *statuses):
        answers, self.got = list(statuses), []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.headers["Budgetbandits-Signature"], body))
                self.send_response(answers.pop(0) if answers else 200)
                self.end_headers()

            def log_message(self, *_):
                """Nothing on the screen."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize("place", ["store", "server"])
def test_webhooks_are_made_listed_tested_and_dropped(place, request):
    _, where = request.getfixturevalue(place)
    assert said("campaign", "create", "watched", *ADS[2:], *where)[1] == 0
    with Address(500) as address:
        made = json.loads(said("webhook", "create", address.url, "--campaign", "watched", "--json", *where)[0])
        (row,) = json.loads(said("webhook", "list", "--json", *where)[0])
        assert (row["id"], row["url"], row["campaign"]) == (made["id"], address.url, "watched")
        assert (row["waiting"], "secret" in row) == (0, False)
        assert made["id"] in said("webhook", "list", *where)[0]
        text, code, _ = said("webhook", "test", made["id"], *where)
        assert (text, code) == (f"{made['id']} has not accepted a test: status 500\n", 1)
        assert said("webhook", "test", made["id"], *where)[:2] == (f"{made['id']} has accepted a test\n", 0)
    (_, first), (signature, second) = address.got
    check_signature(made["secret"], signature, second)
    assert json.loads(second)["type"] == "test"
    assert json.loads(first)["id"] != json.loads(second)["id"]
    text, code, _ = said("webhook", "test", made["id"], *where)  # nobody listens there any more
    assert code == 1
    assert "has not accepted a test: " in text
    assert "is dropped" in said("webhook", "drop", made["id"], *where)[0]
    for word in ("drop", "test"):
        _, code, error = said("webhook", word, made["id"], *where)
        assert code
        assert "no webhook" in str(error)
    for wrong in ("ftp://example.com", "example.com"):
        assert "begins with http" in str(said("webhook", "create", wrong, *where)[2])
