"""A database is brought up to date whole or not at all."""

import sqlite3
from pathlib import Path

import pytest

from budgetbandits.service.audit import verify
from budgetbandits.service.dashboard.campaign_view import campaign_view
from budgetbandits.service.dashboard.overview import Asked, overview
from budgetbandits.service.dashboard.wanted import Wanted
from budgetbandits.service.engine import Engine
from budgetbandits.service.rollups import History, roll_up
from budgetbandits.service.stores import schema
from budgetbandits.service.stores.sqlite import SQLiteStore


def test_a_migration_that_fails_changes_nothing(tmp_path, monkeypatch):
    SQLiteStore(tmp_path / "money.db").close()
    before = sqlite3.connect(tmp_path / "money.db")
    tables = before.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
    before.close()
    steps = schema.migrations("sqlite")
    broken = [*steps, (steps[-1][0] + 1, ["CREATE TABLE more (a INTEGER);", "CREATE TABLE campaign (a INTEGER);"])]
    monkeypatch.setattr("budgetbandits.service.stores.sqlite.migrations", lambda database: broken)
    with pytest.raises(Exception, match="already exists"):
        SQLiteStore(tmp_path / "money.db")
    after = sqlite3.connect(tmp_path / "money.db")
    assert after.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall() == tables
    assert after.execute("PRAGMA user_version").fetchone() == (steps[-1][0],)
    after.close()


def test_a_database_from_before_the_rollups_goes_on(tmp_path):
    """What was decided before is added up, and the audit agrees."""
    steps = schema.migrations("sqlite")
    path = tmp_path / "money.db"
    before = sqlite3.connect(path)
    for statement in steps[0][1]:
        before.execute(statement)
    before.execute("PRAGMA user_version = 1")
    before.commit()
    with SQLiteStore(tmp_path / "new.db") as new:  # rows as they were written then, without who did it
        engine = Engine(new)
        engine.create("ads", "bts", budget=5.0, arms={"search": 1.0, "mail": 0.5})
        for number in range(3):
            made = engine.decide("ads", key=f"{number}")
            engine.feedback(made.decision, cost=0.25, reward=1.0)
    old = sqlite3.connect(tmp_path / "new.db")
    for table in ("campaign_name", "campaign", "arm_name", "arm", "decision", "event"):
        there, now = ([row[1] for row in each.execute(f"PRAGMA table_info({table})")] for each in (before, old))
        names = [name for name in there if name in now]
        rows = old.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
        before.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", rows)
    before.commit()
    before.close()
    old.close()
    with SQLiteStore(path) as store:
        assert roll_up(store) == 1
        totals = store.read(lambda tx: History.of(tx, tx.campaign_named("ads")).totals())
        assert sum(each.spent for each in totals.values()) == 750_000
        assert verify(store, "ads") == []
        Engine(store).decide("ads", key="after")
        assert verify(store, "ads") == []
        # what the list is filtered by was not there either
        assert store.read(lambda tx: overview(tx, Asked("ADS"), None)).found == 1


def test_a_store_from_before_requests_goes_on_by_its_own_rules(tmp_path, monkeypatch):
    """Costs are shares of the largest cap there, and no arm rests for being idle: else the audit would disagree."""
    path = tmp_path / "money.db"
    old = sqlite3.connect(path)
    old.executescript((Path(__file__).parent / "store_version_3.sql").read_text(encoding="utf-8"))
    old.close()
    monkeypatch.setattr("budgetbandits.rests.IDLE_PULLS", 1)
    with SQLiteStore(path) as store:
        engine = Engine(store)
        for name in ("ads", "leased"):
            assert verify(store, name) == []
            answer = engine.decide(name, "after", exclude=["dear"])
            assert answer.arm == "cheap"
            engine.feedback(answer.decision, reward=0.0, cost=0.0)
            assert [arm["rests_until"] for arm in engine.describe(name)["arms"]] == [None, None]
            engine.feedback(engine.decide(name, "fails").decision, failed=True)
            engine.set_status(name, "paused")  # which ends leases
            assert sum(arm["failures"] for arm in engine.describe(name)["arms"]) == 1
            assert verify(store, name) == []
        engine.create("new", "bts", budget=20.0, arms={"dear": 1.0, "cheap": 0.1})
        settings = {row.name: row.settings for row in store.read(lambda tx: tx.campaigns())}
    assert ("own_scales" in settings["ads"], "own_scales" in settings["new"]) == (False, True)


def test_campaigns_go_on_by_the_rules_they_were_created_with(tmp_path):
    """Failures told together, prices estimated far too low, segments and a lease, as the rules 2 had them: every choice
    is made again by the audit, also of what is decided from now on."""
    path = tmp_path / "money.db"
    old = sqlite3.connect(path)
    old.executescript((Path(__file__).parent / "store_rules_2.sql").read_text(encoding="utf-8"))
    old.close()
    now = [1.7e9 + 100.0]
    with SQLiteStore(path) as store:
        engine = Engine(store, lambda: now[0])
        for name in ("own", "leased"):
            assert verify(store, name) == []
            made = [engine.decide(name, f"after {number}", segment="code", arms=["small"]) for number in range(3)]
            rests = []
            for each in made:
                engine.feedback(each.decision, failed=True)
                rests.append(next(a for a in engine.describe(name)["arms"] if a["name"] == "small")["rests_until"])
            if name == "own":  # of a lease the campaign has not heard yet
                assert sorted(set(rests)) == rests  # by these rules each of them makes the rest longer
            priced = {"prices": {"large": 0.1, "small": 0.01}, "holds": {"large": 1.0, "small": 0.1}}
            for number in range(8):
                now[0] += 5.0
                answer = engine.decide(name, f"priced {number}", **priced)
                engine.feedback(answer.decision, reward=0.5, cost=answer.hold / 2)
            engine.set_status(name, "paused")  # which ends leases
            assert verify(store, name) == []


def test_campaigns_of_the_rules_4_go_on_by_them(tmp_path):
    """Segments, estimates with propensities, what is forgotten: every choice is repeated, before and after more."""
    path = tmp_path / "money.db"
    with sqlite3.connect(path) as old:
        old.executescript((Path(__file__).parent / "store_rules_4.sql").read_text(encoding="utf-8"))
    with SQLiteStore(path) as store:
        engine = Engine(store, lambda: 1.7e9 + 60.0)
        for name, prices in (("priced", {"large": 0.4, "small": 0.06}), ("forgets", None)):
            assert verify(store, name) == []
            made = [
                engine.decide(name, f"after {n}", segment=segment, arms=["large", "small"], prices=prices)
                for n, segment in enumerate(("code", "mail", "new", None))
            ]
            for each in made[1:]:
                engine.feedback(each.decision, reward=0.5, cost=each.hold / 2)
            assert verify(store, name) == []


def test_campaigns_of_the_rules_5_go_on_by_them(tmp_path):
    """Segments in which cheaper arms and last upgrades were tried that the rules 6 leave out."""
    path = tmp_path / "money.db"
    with sqlite3.connect(path) as old:
        old.executescript((Path(__file__).parent / "store_rules_5.sql").read_text(encoding="utf-8"))
    with SQLiteStore(path) as store:
        engine = Engine(store, lambda: 1.7e9 + 60.0)
        assert verify(store, "segments") == []
        for number, segment in enumerate(("code", "mail", "chat", "new")):
            answer = engine.decide("segments", f"after {number}", segment=segment)
            engine.feedback(answer.decision, reward=0.5, cost=answer.hold / 2)
        assert verify(store, "segments") == []


def test_campaigns_of_the_rules_3_go_on_by_them_and_have_their_rollups_made_anew(tmp_path):
    """Where costs were told and rewards not, requests were to come by these rules; and a server of that time, which
    goes on for a while, can neither spoil the rollups nor what an audit says."""
    path = tmp_path / "money.db"
    old = sqlite3.connect(path)
    old.executescript((Path(__file__).parent / "store_rules_3.sql").read_text(encoding="utf-8"))
    earlier = [row[1] for row in old.execute("PRAGMA table_info(rollup)")]
    now = [1.7e9 + 200.0]
    with SQLiteStore(path) as store:
        engine = Engine(store, lambda: now[0])
        assert roll_up(store) == 2
        [lease] = store.read(lambda tx: tx.leases(tx.campaign_named("leased").id))
        assert (engine.account("own").gone, engine.account("leased").gone, lease.account.gone) == (18, 14, 3)
        view = store.read(lambda tx: campaign_view(tx, tx.campaign_named("own"), Wanted()))
        lines = view.requests.segments  # whose requests nobody has counted: it is what the policy remembers of them
        assert [(line.remembered, 0.25 <= line.reward <= 0.5, line.cost <= 0.5) for line in lines] == [(True,) * 3] * 2
        for name in ("own", "leased"):
            assert verify(store, name) == []
            made = [engine.decide(name, f"after {number}", segment="code") for number in range(4)]
            for each in made:
                engine.feedback(each.decision, cost=each.hold / 2)
            engine.decide(name, "by the same rules")
            engine.feedback(made[0].decision, reward=0.5)
            engine.set_status(name, "paused")  # which ends leases
            old.execute("UPDATE campaign SET gone = 0")  # as who does not know of it leaves it
            old.commit()
            assert verify(store, name) == []
        engine.create("new", "bts-paced", 30.0, {"large": 1.0, "small": 0.1}, horizon=60)
        engine.feedback(engine.decide("new", "one").decision, cost=0.05, reward=0.5)
        assert verify(store, "new") == []
        totals = store.read(lambda tx: History.of(tx, tx.campaign_named("own")).totals())
        assert sum(each.failed for each in totals.values()) == 2
        assert sum(each.gone for each in totals.values()) == 18 + 4
        values = dict.fromkeys(earlier, 1) | {"campaign": "new", "span": 60}
        with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
            old.execute(
                f"INSERT INTO rollup ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})", [*values.values()]
            )
    old.close()
