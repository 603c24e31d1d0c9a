"""The commands for operators, on a store that a server could be using at the same time."""

import csv
import json
import re
import subprocess
import sys
import time

import polars
import pytest
from typer.testing import CliRunner

from budgetbandits.cli import app
from budgetbandits.errors import BadParameter, OutcomeUnknown
from budgetbandits.service.http.auth import KeyRing, prefix_meant
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from served import pull
from servers import free_port
from stores import tamper

ADS = ["campaign", "create", "ads", "--budget", "500", "--arm", "search=2.5", "--arm", "mail=0.5"]


def test_a_campaigns_life(say, store, engine):
    assert "No campaigns yet" in say("campaign", "list")
    assert "left 500.00" in say(*ADS)
    pull(engine, "ads", "one", cost=0.25, reward=1.0)
    shown = say("campaign", "show", "ads")
    assert "spent 0.25" in shown
    assert re.search(r"(search|mail) +[\d.]+ +1 +0 +0.25 +1.0 +4 ", shown)
    assert json.loads(say("campaign", "show", "ads", "--json"))["spent"] == 0.25
    assert "budget 520.50" in say("campaign", "top-up", "ads", "20.5")
    assert "ads is paused" in say("campaign", "pause", "ads")
    assert "paused" in say("campaign", "list")
    assert "ads is active" in say("campaign", "resume", "ads")
    assert "tv" in say("campaign", "add-arm", "ads", "tv=2")
    assert "retired" in say("campaign", "retire-arm", "ads", "mail")
    assert "retired" not in say("campaign", "bring-back-arm", "ads", "mail")
    said = say("campaign", "change", "ads", "daily-cap=50", "hold_seconds=90")
    assert "daily cap 50.00" in said
    assert "wait for feedback 1 min 30 s" in said
    assert "daily cap" not in say("campaign", "change", "ads", "daily_cap=none")
    assert json.loads(say("campaign", "change", "ads", "tags=zoo, team a", "--json"))["tags"] == ["team a", "zoo"]
    assert json.loads(say("campaign", "change", "ads", "tags=none", "--json"))["tags"] is None
    say("campaign", "change", "ads", "horizon=300", fails="leave horizon out, or use bts-paced")
    say("campaign", "change", "ads", "lease=3", fails="write TERM=VALUE with one of name, policy, budget, daily_cap")
    said = say("campaign", "change", "ads", "budget=40", "name=Ads", "daily_cap=9", "time_zone=UTC", "--cap", "mail=3")
    for words in ("Ads  running", "budget 40.00", "time zone UTC", "3.00"):
        assert words in said
    said = say("campaign", "change", "Ads", "daily_cap=none", "time_zone=none", "name=ads", "budget=0.3")
    assert "ads  exhausted  bts" in said
    assert "0.0500 left, the smallest cap is 2.0000" in said
    say("campaign", "change", "ads", "budget=40")
    say("campaign", "change", "ads", fails="these are the terms already")
    say("campaign", "change", "ads", "daily_cap=much", fails="'much' is no number")
    assert "1 decisions in made.csv" in say("campaign", "export", "ads", "made.csv")
    assert polars.read_csv("made.csv")["cost"].to_list() == [0.25]
    say("campaign", "export", "ads", "all.parquet", "--table", "events")
    assert polars.read_parquet("all.parquet")["kind"].to_list()[:3] == ["created", "decided", "settled"]
    ahead = DecisionService(store, lambda: time.time() + 400 * 86_400.0)
    ahead.void(ahead.decide("ads", "far ahead").decision)
    assert "ads continues today" in say("campaign", "reset-clock", "ads")
    assert "agrees with its events" in say("campaign", "verify", "ads")
    assert "ads is closed" in say("campaign", "close", "ads")
    assert [row["name"] for row in json.loads(say("campaign", "list", "--json"))] == ["ads"]


def test_verify_says_what_is_wrong_and_exits_with_1(say, tmp_path):
    say(*ADS)
    tamper(tmp_path / "budgetbandits.db", "UPDATE campaign SET budget = budget + 1")
    said = say("campaign", "verify", "ads", code=1)
    assert "1 difference between" in said
    assert "500000001" in said


def test_verify_finds_the_same_where_python_leaves_assertions_out(say, engine, tmp_path):
    say(*ADS)
    for number in range(4):
        engine.decide("ads", str(number))
    tamper(tmp_path / "budgetbandits.db", "UPDATE event SET arm = 1 - arm WHERE kind = 'decided'")
    command = [sys.executable, "-O", "-m", "budgetbandits", "campaign", "verify", "ads"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (say("campaign", "verify", "ads", code=1), 1)
    assert done.stdout.count("the policy would have chosen arm") == 4


def test_money_is_never_cut_off_in_the_list(say):
    say(*ADS, "--policy", "epsilon-first:epsilon=0.25")
    say("campaign", "create", "x" * 60, "--budget", "123456789.25", "--arm", "a=1", "--arm", "b=1")
    said = say("campaign", "list")
    assert said.count("123,456,789.25") == 2
    assert max(len(line) for line in said.splitlines()) <= 80


def test_small_money_is_shown_as_it_is(say, engine):
    say("campaign", "create", "llm", "--budget", "0.05", "--arm", "small=0.00005", "--arm", "large=0.0004")
    pull(engine, "llm", "one", cost=0.000021, reward=0.04)
    held = engine.decide("llm", "two").hold
    shown, listed = say("campaign", "show", "llm"), say("campaign", "list")
    left = 0.05 - 0.000021 - held
    assert f"budget 0.050000  spent 0.000021  held {held:.6f}  left {left:.6f}  overrun 0.000000" in shown
    assert re.search(r"small +0.00005 ", shown)
    assert re.search(r" 0.000021 +0.04 +1,905", shown)
    assert re.search(rf"llm +running +0.050000 +0.000021 +{held:.6f} +{left:.6f} +0.000000", listed)
    assert max(len(line) for line in (shown + listed).splitlines()) <= 80


def test_money_that_is_large_and_small_is_never_cut_off(say, engine):
    arms = ["--arm", "gpt-4.1-mini-2025-04-14=12345.67", "--arm", "claude-opus-4-with-thinking=98765.43"]
    say("campaign", "create", "x" * 60, "--budget", "123456789.25", *arms)
    pull(engine, "x" * 60, "one", cost=0.000021, reward=1.0)
    shown, listed = say("campaign", "show", "x" * 60), say("campaign", "list")
    for said in (shown, listed):
        assert "budget 123,456,789.250000  spent 0.000021  held 0.000000\n" in said
        assert "left 123,456,789.249979  overrun 0.000000\n" in said
        assert max(len(line) for line in said.splitlines()) <= 80
    assert "12,345.67" in shown
    assert "…" not in shown + listed


def test_no_cell_of_an_export_is_a_formula(say, engine):
    say("campaign", "create", "ads", "--budget", "9", "--arm", "=1+1=1", "--arm", "@SUM(A1)=1")
    keys = [begins + "cmd|' /C calc'!A0" for begins in "=+-@\t\r"]
    for key in keys:
        engine.decide("ads", key)
    say("campaign", "export", "ads", "made.csv")
    say("campaign", "export", "ads", "made.parquet")
    with open("made.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["key"] for row in rows] == [f"'{key}" for key in keys]
    assert {row["arm"] for row in rows} <= {"'=1+1", "'@SUM(A1)"}
    assert polars.read_parquet("made.parquet")["key"].to_list() == keys  # which computes nothing


def test_terms(say):
    say(*ADS, "--daily-cap", "50", "--pace-seconds", "86400", "--on-expire", "release", "--hold-seconds", "60")
    said = say("campaign", "show", "ads")
    assert "daily cap 50.00" in said
    assert "without feedback released" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["campaign", "create", "x", "--budget", "5", "--arm", "a=1", "--arm", "b"], "not NAME=CAP"),
        (["campaign", "create", "x", "--budget", "5", "--arm", "a=1"], "at least two arms"),
        (["campaign", "create", "x", "--budget", "5", "--arm", "a=1", "--arm", "b=1", "--on-expire", "no"], "release"),
        (["campaign", "create", "x", "--budget", "5", "--arm", "a=1", "--arm", "b=1", "--arm", "a=2"], "given twice"),
        (["campaign", "show", "nothing"], "no campaign 'nothing'"),
        (["campaign", "show", "\udcff"], "no campaign"),
        (["campaign", "export", "nothing", "made.csv"], "no campaign"),
        (["campaign", "export", "ads", "made.txt"], "use .csv or .parquet"),
        (["campaign", "export", "ads", "nowhere/made.csv"], "choose another place"),
        (["campaign", "export", "ads", "made.csv", "--table", "keys"], "decisions or events"),
        (["campaign", "change", "ads", "dailycap=5"], "'dailycap=5' is no change; did you mean daily_cap?"),
        (["campaign", "change", "ads", "currency=EUR"], "write TERM=VALUE with one of name, policy, budget"),
        (["campaign", "list", "--store", "elsewhere.db"], "no database 'elsewhere.db'"),
        (["key", "create", "--scope", "everything"], "choose from decide"),
        (["key", "create", "--scope", "read", "--campaign", "nothing"], "no campaign"),
        (["key", "create", "--scope", "read", "--campaign", "ads", "--campaign", "b"], "for one campaign or for all"),
        (["key", "drop", "nothing"], "'budgetbandits key list' shows all keys"),
    ],
)
def test_mistakes_have_remedies(say, tmp_path, words, message):
    say(*ADS)
    before = sorted(path.name for path in tmp_path.iterdir())
    say(*words, fails=message)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("words", [["serve"], ["campaign", "list"], ["key", "list"]])
@pytest.mark.parametrize(
    "address", ["postgresql://me:s3cret@127.0.0.1:1/x", "postgresql://127.0.0.1:1/x?password=s3cret"]
)
def test_a_password_on_the_command_line_is_refused(tmp_path, words, address):
    result = CliRunner().invoke(app, [*words, "--store", address])
    assert "set PGPASSWORD, PGPASSFILE or" in str(result.exception)
    assert "s3cret" not in str(result.exception) + result.output


@pytest.mark.parametrize("address", ["postgresql://me:s3cret@127.0.0.1:1/x", "postgresql:///x?password=s3cret"])
def test_a_password_in_the_environment_is_used(monkeypatch, address):
    given = []
    monkeypatch.setattr("budgetbandits.service.http.server.serve", lambda *all: given.extend(all))
    CliRunner().invoke(app, ["serve", "--port", str(free_port())], env={"BUDGETBANDITS_STORE": address})
    assert given[1].address == address
    assert "s3cret" not in repr(given[1])  # its name too, which the server says


def test_keys(say, store):
    say(*ADS)
    key = say("key", "create", "--scope", "decide", "--scope", "feedback", "--campaign", "ads").strip()
    assert KeyRing(store).check(key, "decide", "ads").scopes == ("decide", "feedback")
    listed = say("key", "list")
    assert key.split("_")[1] in listed
    assert key.split("_", 2)[2] not in listed
    say("key", "drop", key.split("_")[1])
    assert key.split("_")[1] not in say("key", "list")


def test_keys_of_a_damaged_campaign_are_listed(say, tmp_path):
    say("campaign", "create", "ads", "--budget", "10", "--arm", "search=1", "--arm", "mail=0.5")
    say("key", "create", "--scope", "read", "--campaign", "ads")
    tamper(tmp_path / "budgetbandits.db", "UPDATE campaign SET settings = '{}'")
    assert json.loads(say("key", "list", "--json"))[0]["campaign"] == "ads"


def test_a_key_is_dropped_as_it_is_listed(say):
    keys = [say("key", "create", "--scope", "read").strip() for _ in range(5)]
    listed = re.findall(r"bb_\w+_…", say("key", "list"))
    assert sorted(name.removesuffix("…") for name in listed) == sorted(key[:12] for key in keys)
    assert f"bb_{keys[0][3:11]}_… is dropped" in say("key", "drop", f"bb_{keys[0][3:11]}_…")
    say("key", "drop", keys[1])  # the whole key
    say("key", "drop", keys[2][:11])
    say("key", "drop", keys[3][3:11])
    rest = [key[3:11] for key in keys[4:]]
    assert sorted(re.findall(r"bb_(\w+)_…", say("key", "list"))) == sorted(rest)
    say("key", "drop", "bb_none_…", fails="no key bb_none; 'budgetbandits key list' shows")
    say("key", "drop", "bb_", fails="no key bb_;")


def test_a_beginning_that_several_keys_have_names_them():
    keys = ["1a2b3c4d", "1a2b0000", "99999999"]
    assert prefix_meant(keys, "bb_99") == "99999999"
    with pytest.raises(
        BadParameter, match="bb_1a2b may be any of 2 keys: bb_1a2b0000, bb_1a2b3c4d; give more characters"
    ):
        prefix_meant(keys, "1a2b")


def test_a_change_of_which_nobody_knows_whether_it_was_made_is_made_once(say, monkeypatch):
    say(*ADS)
    write, troubles = SQLiteStore.write, [OutcomeUnknown("lost"), OutcomeUnknown("lost")]

    def lost(*given):
        answer = write(*given)
        if troubles:
            raise troubles.pop()
        return answer

    monkeypatch.setattr(SQLiteStore, "write", lost)
    monkeypatch.setattr("budgetbandits.cli.service.RETRY_PAUSES", (0.0, 0.0))
    assert "budget 502.50" in say("campaign", "top-up", "ads", "2.5")
    troubles += [OutcomeUnknown("lost")] * 3
    say("campaign", "top-up", "ads", "2.5", fails="lost")
    assert "budget 505.00" in say("campaign", "show", "ads")


def test_requests_and_failures_are_shown(say, engine):
    models = ["--arm", "small=0.1", "--arm", "large=2", "--policy", "bts-paced", "--horizon", "400"]
    say("campaign", "create", "models", "--budget", "50", *models, "--propensity-draws", "5")
    for number in range(5):
        told = {"failed": True} if number else {"reward": 1.0, "cost": 0.5}
        pull(engine, "models", f"{number}", **told, segment="code", arms=["large"])
    shown = " ".join(say("campaign", "show", "models").split())
    for words in ("requests expected 400", "draws for propensities 5", "1 requests answered, 5 used", "segments code"):
        assert words in shown
    assert re.search(r"large .* 4 failed, down since \d\d:\d\d:\d\d", shown)
    assert "requests expected 500" in " ".join(say("campaign", "change", "models", "horizon=500").split())
    assert "agrees with its events" in say("campaign", "verify", "models")


def test_a_campaign_begins_with_a_table_or_another_campaign(say, tmp_path):
    (tmp_path / "past.csv").write_text("arm,reward,cost\nmail,1,0.25\nmail,0,0.25\n")
    say("campaign", "create", "known", *ADS[3:], "--history", "past.csv")
    say("campaign", "clone", "known", "copy", "--budget", "3")
    copied = json.loads(say("campaign", "clone", "known", "empty", "--no-learned", "--json"))
    assert [arm["pulls"] for arm in copied["arms"]] == [0, 0]
    assert [arm["pulls"] for arm in json.loads(say("campaign", "show", "copy", "--json"))["arms"]] == [0, 2]
    assert "agrees with its events" in say("campaign", "verify", "copy")


def test_a_restore_says_first_that_keys_and_webhooks_are_off_and_how_they_are_turned_on(say):
    say("campaign", "create", "ads", "--budget", "10", "--arm", "search=1", "--arm", "mail=0.5")
    keys = [say("key", "create", "--scope", "admin")[:11] for _ in range(3)]
    hook = json.loads(say("webhook", "create", "https://example.org", "--json"))["id"]
    say("backup", "copy.db")
    said = say("restore", "copy.db", "--store", "other.db").splitlines()
    assert said[0].startswith("all keys and webhooks are off (3 keys and 1 webhook): ")
    assert "  budgetbandits key turn-on KEY --store other.db" in said
    assert said[-1] == "paused until resumed: ads"
    here = ("--store", "other.db")
    assert say("key", "list", *here).count(" off ") == 3
    assert say("webhook", "list", *here).count(" off ") == 1
    assert say("key", "turn-on", keys[1], *here) == f"{keys[1]}_… is on\n"
    assert json.loads(say("key", "turn-on", keys[1], *here, "--json")) == {"on": []}
    assert say("key", "list", *here).count(" off ") == 2
    say("key", "turn-on", *here, fails="or pass --all")
    say("key", "turn-on", keys[0], "--all", *here, fails="or pass --all")
    say("webhook", "turn-on", "nothing", *here, fails="no webhook 'nothing'")
    assert sorted(say("key", "turn-on", "--all", *here).split()[::3]) == sorted(f"{keys[n]}_…" for n in (0, 2))
    assert say("webhook", "turn-on", "--all", *here) == f"{hook} is on\n"
    assert say("webhook", "turn-on", "--all", *here) == "no webhook is off\n"
    assert not any(
        each["off"] for kind in ("key", "webhook") for each in json.loads(say(kind, "list", *here, "--json"))
    )
    say("key", "turn-on", "--all", "--url", "http://localhost:1", "--key", "bb_a_b", fails="--store")


def test_a_campaign_may_name_features(say):
    said = say(*ADS, "--features", "log_length, code", "--horizon", "100")
    assert "bts-linear" in said
    assert "features log_length, code" in " ".join(said.split())
    assert json.loads(say("campaign", "show", "ads", "--json"))["features"] == ["log_length", "code"]
    say(*(["campaign", "create", "mail", *ADS[3:]]), "--features", "code,code", fails="give each a name of its own")


def test_a_store_is_copied_and_restored(say, tmp_path):
    say("campaign", "create", "ads", "--budget", "10", "--arm", "search=1", "--arm", "mail=0.5")
    say("backup", "copy.db")
    say("restore", "copy.db", fails="budgetbandits.db is there already")
    assert "paused until resumed: ads" in say("restore", "copy.db", "--store", "other.db")
    again = json.loads(say("restore", "--store", "other.db", "--json"))
    assert again == {"store": "other.db", "paused": [], "keys_off": 0, "webhooks_off": 0}
    say("campaign", "resume", "ads", "--store", "other.db", fails="say what it has spent since")
    say("campaign", "resume", "ads", "--store", "other.db", "--spent-since", "2.5")
    assert json.loads(say("campaign", "show", "ads", "--store", "other.db", "--json"))["spent"] == 2.5
    say("restore", "copy.db", "--store", "postgresql://localhost/name", fails="pg_restore")
    say("backup", "x.db", "--store", "postgresql://localhost/name", fails="pg_dump")
