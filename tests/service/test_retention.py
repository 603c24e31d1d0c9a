"""Retention on both stores: what leaves for the archive and what stays. Wherever a pruning is interrupted, nothing is
lost and nothing is there twice."""

import asyncio
import contextlib
import random
import shutil
import sys
import threading
import time
from collections import Counter
from itertools import count
from pathlib import Path

import polars
import pytest
from structlog.testing import capture_logs

from budgetbandits.client import Client
from budgetbandits.errors import (
    BadParameter,
    BudgetBanditsError,
    Conflict,
    DecisionArchived,
    Disagreement,
    DiskFull,
    HoldRefused,
    MissingExtra,
    NotFound,
    StoreError,
    WrongClock,
)
from budgetbandits.service.audit import archive
from budgetbandits.service.audit.archive import Archive
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.checkpoint import Checkpoint
from budgetbandits.service.audit.export import archived_rows, export
from budgetbandits.service.audit.reader import Job
from budgetbandits.service.backup import back_up
from budgetbandits.service.http import server
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.retention import Retention
from budgetbandits.service.rollups import History, roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.audit import verify_shared_budget
from budgetbandits.service.stores.sql.webhooks import Delivery, Webhook
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.web.servers import listening
from called import Service
from clock import Clock
from servers import admin_key, running
from stores import all_decisions, all_events, tamper

DAY = 86_400.0
ARMS = {"search": 1.0, "mail": 0.5, "shop": 1.5}


class Interrupted(BaseException):
    """Like a kill: nobody catches it."""


def retention(store, clock, **given):
    return Retention(store, Leases(SessionCache(), clock), clock, rest=0.0, **given)


def live(engine, clock, days, per_day=6, seed=0):
    """Decisions of some days: most reported at once, some late, some never; voided, failed, expired, overrun."""
    lots, late, numbers = random.Random(seed), [], count(int(clock.now * 1000))
    for _ in range(days * per_day):
        clock.now += DAY / per_day
        engine.expire_due()
        if engine.account("ads").status == "frozen":
            engine.set_status("ads", "active")
        made = engine.decide("ads", f"key {next(numbers)}")
        what, cost = lots.random(), lots.choice([0.1, 0.25, made.hold])
        if what < 0.55:
            engine.feedback(made.decision, reward=float(lots.random() < 0.5), cost=cost)
        elif what < 0.65:
            engine.feedback(made.decision, cost=cost)  # no reward ever
        elif what < 0.8:
            engine.feedback(made.decision, cost=cost)
            late.append(made.decision)
        elif what < 0.85:
            engine.void(made.decision)
        elif what < 0.9:
            engine.feedback(made.decision, failed=True, cost=cost)
        elif what < 0.92:
            engine.feedback(made.decision, reward=1.0, cost=made.hold * 1.5)
        if late and lots.random() < 0.3:
            with contextlib.suppress(DecisionArchived):
                engine.feedback(late.pop(0), reward=0.5)


def campaign(engine, policy="bts", **terms):
    engine.create("ads", policy, budget=10_000.0, arms=ARMS, **{"hold_seconds": 5000.0} | terms)


@pytest.fixture
def lived(tmp_path, clock):
    """A SQLite store with a campaign of ten days."""
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store, clock)
        campaign(engine)
        live(engine, clock, 10)
        yield store


def archived(folder, table):
    """The rows of the archive, in the order of its files."""
    files = sorted(folder.glob(f"*/*/{table}-*.parquet"))
    return polars.read_parquet(files).rows(named=True) if files else []


def stored_decisions(store):
    """All rows of decisions, by id; also of those whose events have left."""

    def read(tx):
        return [id for (id,) in tx.ask("SELECT id FROM decision")]

    ids = store.read(read)
    return {
        made.id: made for first in range(0, len(ids), 500) for made in decisions_of(store, ids[first : first + 500])
    }


def decisions_of(store, ids):
    return store.read(lambda tx: tx.decisions_of(ids))


def check_whole(store, folder, events, decisions):
    """Each of these events and decisions is in the store or in the archive, and as it was."""
    found = archived(folder, "events")
    in_archive = {row["seq"]: row for row in found}
    assert len(in_archive) == len(found)
    in_store = {event.seq: event for event in all_events(store, "ads")}
    for event in events:
        if event.seq in in_archive:
            row = in_archive[event.seq]
            assert (event.kind, event.at, event.amount) == (row["kind"], row["at"], row["amount"])
            assert row["arm_name"] == (None if event.arm is None else list(ARMS)[event.arm])
        else:
            assert in_store[event.seq] == event
    assert len(in_store) < len(events) or not in_archive
    found, left = archived(folder, "decisions"), stored_decisions(store)
    rows = {row["id"]: row for row in found}
    assert len(rows) == len(found)
    for made in decisions.values():
        assert (made.id in rows) != (made.id in left)
        if made.id in rows:
            assert (made.hold.charged, made.reward) == (rows[made.id]["charged"], rows[made.id]["reward"])
    return rows


TERMS = [{}, {"policy": "bts-paced", "horizon": 5000.0}, {"lease": 20.0}, {"daily_cap": 30.0, "on_expire": "release"}]


@pytest.mark.parametrize("terms", TERMS)
def test_what_is_old_leaves_and_both_audits_agree(store, engine, clock, tmp_path, terms):
    campaign(engine, **terms)
    live(engine, clock, 20, per_day=4)
    events, decisions, totals = all_events(store, "ads"), stored_decisions(store), engine.totals("ads")
    result = retention(store, clock).prune("ads", tmp_path, days=10.0)
    assert result.events > 60
    assert verify(store, "ads") == []
    assert verify(store, "ads", archive=tmp_path) == []
    rows = check_whole(store, tmp_path, events, decisions)
    assert result.decisions == len(rows) > 30
    cutoff = clock.now - 10.0 * DAY
    assert all(decisions[id].created_at < cutoff for id in rows)
    # an event of before that stays is an operator's, or the latest overrun
    id = engine.describe("ads").id
    last = store.read(lambda tx: tx.pruning().checkpoint(id))
    overrun = store.read(lambda tx: tx.rollups().watermark(id).last_overrun_event)
    stayed = [event for event in all_events(store, "ads") if event.seq <= last and event.seq != overrun]
    left = stored_decisions(store)
    assert all(event.decision in left if event.decision else event.lease is None for event in stayed)
    for table, moved in (("events", result.events), ("decisions", result.decisions)):  # an export has the rest
        there = export(store, "ads", tmp_path / f"{table}.csv", table)
        assert moved == archived_rows(store, "ads", table)
        exported = Service(store)("GET", f"/v1/campaigns/ads/export?table={table}")
        assert int(exported.headers["budgetbandits-archived"]) == moved > 0
        assert moved + there == {"events": all_events(store, "ads")[-1].seq, "decisions": len(decisions)}[table]
    assert sum(event.at < cutoff and event.seq > last for event in events) < 10  # while a lease was open
    for name, total in engine.totals("ads").items():
        assert (total.cost, total.reward) == pytest.approx((totals[name].cost, totals[name].reward))
    for _ in range(3):  # it goes on, and is pruned again and again
        live(engine, clock, 9, per_day=4, seed=1)
        assert retention(store, clock).prune("ads", tmp_path, days=10.0).events > 0
        roll_up(store)
        assert verify(store, "ads") == []
        assert verify(store, "ads", archive=tmp_path) == []
    assert len({path.parent.name for path in tmp_path.glob("*/*/*.parquet")}) > 1  # by month


def test_a_policy_with_features_and_segments_goes_on_from_its_checkpoint(store, engine, clock, tmp_path):
    campaign(engine, "bts-linear", features=("length",), propensity_draws=3.0)
    for number in range(40):
        clock.now += DAY / 4
        made = engine.decide("ads", f"{number}", segment=f"kind {number % 3}", features={"length": number / 7})
        engine.feedback(made.decision, reward=float(number % 2), cost=0.25)
        if number == 5:
            engine.change_terms("ads", {"horizon": 500.0})
            engine.add_arm("ads", "radio", 0.75)
            engine.retire_arm("ads", "mail")
    retention(store, clock).prune("ads", tmp_path, days=5.0)
    assert verify(store, "ads") == []
    assert verify(store, "ads", archive=tmp_path) == []
    export(store, "ads", tmp_path / "left.csv")
    assert "radio" in (tmp_path / "left.csv").read_text()


def test_feedback_that_comes_too_late_is_refused_and_moves_no_money(store, engine, clock, tmp_path):
    campaign(engine, hold_seconds=50 * DAY)
    settled, held, lost = (engine.decide("ads", key).decision for key in ("settled", "held", "lost"))
    engine.feedback(settled, cost=0.25)
    engine.void(lost)
    clock.now += 40 * DAY
    waiting = engine.decide("ads", "waiting").decision
    engine.feedback(waiting, cost=0.25)
    assert retention(store, clock).prune("ads", tmp_path, days=30.0).decisions == 2
    before = engine.account("ads")
    for report in ({"reward": 1.0}, {"cost": 0.25}, {"failed": True}):
        for where in ("ads", None):
            with pytest.raises(NotFound):  # without the campaign nobody knows whether there was such a decision
                engine.feedback(settled, campaign=where, **report)
    with pytest.raises(DecisionArchived, match="before 1970-01-11"):
        engine.feedback(settled, reward=1.0, campaign="ads")
    with pytest.raises(DecisionArchived):
        engine.void(lost, "ads")
    assert engine.account("ads") == before
    engine.feedback(held, cost=0.1)  # its money was held, so it takes its cost ...
    with pytest.raises(DecisionArchived):  # ... and then it is too old
        engine.feedback(held, reward=1.0, campaign="ads")
    engine.feedback(waiting, reward=1.0)
    assert verify(store, "ads") == []
    clock.now += 10 * DAY
    assert retention(store, clock).prune("ads", tmp_path, days=9.0).decisions == 2
    assert verify(store, "ads") == []
    assert verify(store, "ads", archive=tmp_path) == []
    assert engine.decide("ads", "settled").decision != settled  # its key is forgotten with it


def test_closed_decisions_take_no_feedback_while_their_rows_are_still_there(store, engine, clock, tmp_path):
    campaign(engine)
    made = engine.decide("ads", "one").decision
    engine.feedback(made, cost=0.25)
    clock.now += 40 * DAY

    def interrupt(step):
        raise Interrupted

    with pytest.raises(Interrupted):
        retention(store, clock, reached=interrupt).prune("ads", tmp_path, days=30.0)
    assert made in stored_decisions(store)
    with pytest.raises(DecisionArchived):
        engine.feedback(made, reward=1.0)
    assert verify(store, "ads") == []
    assert retention(store, clock).prune("ads", tmp_path, days=30.0).decisions == 1


def test_interrupted_anywhere_nothing_is_lost_or_doubled(store, engine, clock, tmp_path, monkeypatch):
    """After every transaction and file of a pruning, and in the middle of writing one."""
    monkeypatch.setattr(archive, "ROWS_PER_FILE", 15)
    monkeypatch.setattr("budgetbandits.service.retention.SLICE_EVENTS", 10)
    monkeypatch.setattr("budgetbandits.service.audit.checkpoint.DECISIONS_IN_PART", 2)
    campaign(engine, lease=20.0)
    stopped = Counter()
    for number in range(12):
        live(engine, clock, 7, per_day=3, seed=number)
        events, decisions = all_events(store, "ads"), stored_decisions(store)
        known = {row["seq"] for row in archived(tmp_path, "events")}
        budget = number

        def reached(step):
            nonlocal budget
            budget -= 1
            if budget < 0:
                stopped[step] += 1
                raise Interrupted

        with pytest.raises(Interrupted):
            retention(store, clock, reached=reached).prune("ads", tmp_path, days=2.0)
        assert verify(store, "ads") == []
        live(engine, clock, 1, per_day=3, seed=number)
        while True:  # killed again and again, each time a step later
            budget = 3 + number
            with contextlib.suppress(Interrupted):
                retention(store, clock, reached=reached).prune("ads", tmp_path, days=3.0)
                break
            number += 1
        check_whole(store, tmp_path, [each for each in events if each.seq not in known], decisions)
        assert verify(store, "ads") == []
    assert verify(store, "ads", archive=tmp_path) == []
    assert {"close", "archive", "files", "checkpoint", "delete"} <= stopped.keys()


def test_a_file_that_cannot_be_finished_changes_nothing(store, engine, clock, tmp_path, monkeypatch):
    campaign(engine)
    live(engine, clock, 10)
    events, write = all_events(store, "ads"), archive._write

    def full(frame, file):
        write(frame, file)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_write", full)
    with pytest.raises(StoreError, match="nothing was deleted"):
        retention(store, clock).prune("ads", tmp_path, days=5.0)
    assert all_events(store, "ads")[:-1] == events
    monkeypatch.undo()
    retention(store, clock).prune("ads", tmp_path, days=5.0)
    assert not list(tmp_path.glob("*/*/*.partial"))
    assert verify(store, "ads", archive=tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full, a file without any room")
def test_an_archive_without_room_says_so():
    frame = polars.DataFrame({"at": list(range(10_000))})
    no_room = pytest.raises(DiskFull, match="no room to write")
    with no_room, Path("/dev/full").open("wb", buffering=0) as file, archive.writing(Path("archive")):
        archive._write(frame, file)


def test_whatever_happens_to_a_campaign_the_others_are_archived(store, engine, clock, tmp_path, monkeypatch):
    names = ("ads", "shop", "mail")
    for name in names:
        engine.create(name, "bts", budget=10.0, arms=ARMS)
        engine.void(engine.decide(name, "old").decision)
        clock.now += 1.0  # which is their order
    clock.now += 40 * DAY
    for name in names:
        engine.void(engine.decide(name, "new").decision)
    write, calls = archive._write, []

    def fails(frame, file):
        calls.append(file)
        if len(calls) == 1:
            raise polars.exceptions.ComputeError("no idea")
        write(frame, file)

    monkeypatch.setattr(archive, "_write", fails)
    results = retention(store, clock).prune_all(tmp_path, days=30.0)
    assert isinstance(results["ads"], BudgetBanditsError)
    assert "no idea" in str(results["ads"])
    assert [results[name].events for name in names[1:]] == [3, 3]
    assert retention(store, clock).prune_all(tmp_path, days=30.0)["ads"].events == 3


FIRST = "(SELECT {} FROM event WHERE kind = 'settled' ORDER BY seq LIMIT 1)"


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE event SET amount = amount + 1 WHERE seq = {FIRST.format('seq')}",
        f"UPDATE decision SET charged = charged + 1 WHERE id = {FIRST.format('decision')}",
    ],
)
def test_what_does_not_agree_is_not_archived(lived, tmp_path, clock, statement):
    store = lived
    assert tamper(tmp_path / "money.db", statement) == 1
    count = len(all_events(store, "ads"))
    with pytest.raises(Disagreement, match="nothing was archived"):
        retention(store, clock).prune("ads", tmp_path / "archive", days=5.0)
    assert len(all_events(store, "ads")) == count + 1  # that decisions are closed
    assert not store.read(lambda tx: tx.pruning().checkpoint(tx.campaign("ads").id))


def test_a_changed_archive_a_missing_file_and_a_changed_checkpoint_are_found(lived, tmp_path, clock):
    store, folder = lived, tmp_path / "archive"
    retention(store, clock).prune("ads", folder, days=5.0)
    for table, column in (("events", "at"), ("decisions", "charged")):
        [path] = folder.glob(f"*/*/{table}-*.parquet")
        kept, frame = path.read_bytes(), polars.read_parquet(path)
        frame.with_columns((polars.col(column) + 1).alias(column)).write_parquet(path)
        assert verify(store, "ads") == []
        assert verify(store, "ads", archive=folder) != []
        path.write_bytes(kept[:100])
        [said] = verify(store, "ads", archive=folder)
        assert all(words in said for words in (str(folder), "cannot be read", "restore an undamaged copy"))
        path.write_bytes(kept)
    assert verify(store, "ads", archive=folder) == []
    with pytest.raises(StoreError, match="is missing"):
        verify(store, "ads", archive=tmp_path / "elsewhere")
    assert tamper(
        tmp_path / "money.db",
        "UPDATE checkpoint SET content = REPLACE(content, '\"spent\":', '\"spent\":1') WHERE part = 0",
    )
    assert verify(store, "ads") != []


def test_a_damaged_campaign_does_not_keep_others_from_being_archived(lived, tmp_path, clock):
    store, engine = lived, DecisionService(lived, clock)
    retention(store, clock).prune("ads", tmp_path / "archive", days=5.0)
    engine.create("other", "bts", budget=10.0, arms=ARMS)
    engine.void(engine.decide("other", "old").decision)
    assert tamper(tmp_path / "money.db", "UPDATE checkpoint SET content = '{' WHERE part = 0")
    clock.now += 20 * DAY
    for name in ("ads", "other"):
        engine.void(engine.decide(name, "new").decision)
    results = retention(store, clock).prune_all(tmp_path / "archive", days=5.0)
    assert "restore an undamaged copy" in str(results["ads"])
    assert results["other"].events > 0


def test_an_archive_that_is_deleted_while_it_is_read_is_an_error_with_a_remedy(lived, tmp_path, clock):
    store, folder = lived, tmp_path / "archive"
    retention(store, clock).prune("ads", folder, days=5.0)
    row, base = store.read(lambda tx: (tx.campaign("ads"), Checkpoint.latest(tx, tx.campaign("ads").id)))
    found = Archive(folder, row.id)
    found.delete()
    with pytest.raises(StoreError, match="is missing; name the folder"):
        next(found.events(base.pieces[0]))
    with pytest.raises(StoreError, match="is missing; name the folder"):
        found.decisions_of(base.pieces[0], ["1"])


@pytest.mark.parametrize("folder", ["archive", None])
def test_a_campaign_that_is_deleted_while_it_is_verified_is_no_difference(store, engine, clock, tmp_path, folder):
    """Whatever the audit has read by then, and though an interrupted deletion leaves a part of it."""
    folder = folder and tmp_path / folder
    campaign(engine)
    live(engine, clock, 6)
    retention(store, clock).prune("ads", tmp_path / "archive", days=3.0)
    engine.set_status("ads", "closed")
    clock.now += DAY
    engine.expire_due()

    def delete(done, last):
        def interrupt(step):
            raise Interrupted

        with contextlib.suppress(Interrupted):
            retention(store, clock, reached=interrupt).delete("ads", tmp_path / "archive")

    for progress in (delete, lambda done, last: None):
        with pytest.raises(Conflict, match=r"is being deleted; .* campaign delete 'ads'"):
            verify(store, "ads", progress, folder)
    retention(store, clock).delete("ads", tmp_path / "archive")
    with pytest.raises(NotFound):
        verify(store, "ads", archive=folder)


def test_an_audit_of_a_shared_budget_says_that_a_member_is_being_deleted(store, engine, clock):
    engine.shared_budgets.create("marketing", 10.0)
    for name in ("ads", "mail"):
        engine.create(name, "bts", 10.0, ARMS, shared_budget="marketing")
        engine.feedback(engine.decide(name, "decision").decision, cost=0.5, reward=1.0)
    engine.set_status("ads", "closed")

    def interrupt(step):
        raise Interrupted

    with contextlib.suppress(Interrupted):
        retention(store, clock, reached=interrupt).delete("ads")
    with pytest.raises(Conflict, match=r"is being deleted; .* campaign delete 'ads'"):
        verify_shared_budget(store, "marketing")
    retention(store, clock).delete("ads")
    assert verify_shared_budget(store, "marketing") == []


def test_files_of_the_archive_that_cannot_be_opened_are_named(lived, tmp_path, clock):
    folder = tmp_path / "archive"
    retention(lived, clock).prune("ads", folder, days=2.0)
    [id], [piece] = lived.read(
        lambda tx: ([row.id for row in tx.campaigns()], Checkpoint.latest(tx, tx.campaigns()[0].id).pieces)
    )
    path = folder / id / piece.files[0].name
    assert list(Archive(folder, id).changed(piece)) == []
    path.unlink()
    with pytest.raises(StoreError, match=f"{path} is missing"):
        list(Archive(folder, id).changed(piece))
    path.mkdir()
    with pytest.raises(StoreError, match=f"cannot read {path}: Is a directory"):
        list(Archive(folder, id).changed(piece))


def test_what_a_clock_ahead_has_archived_of_a_day_is_not_counted_when_that_comes(tmp_path, clock):
    clock.now = 20 * DAY
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store, clock)
        engine.create("ads", "bts", 100.0, ARMS, daily_cap=3.0)
        clock.now = 22.5 * DAY
        engine.feedback(engine.decide("ads", "ahead", arms=["search"]).decision, cost=1.0, reward=1.0)
        clock.now += 1.0
        assert retention(store, clock).prune("ads", tmp_path / "archive", days=0.0).decisions == 1
        clock.now = 21 * DAY
        engine.reset_clock("ads")
        clock.now = 22.6 * DAY
        engine.feedback(engine.decide("ads", "again", arms=["search"]).decision, cost=1.0, reward=1.0)
        engine.change_terms("ads", {"time_zone": "Europe/Berlin"})
        assert engine.account("ads").today == 2_000_000
        assert verify(store, "ads") == verify(store, "ads", archive=tmp_path / "archive") == []
        clock.now += 60.0
        assert retention(store, clock).prune("ads", tmp_path / "archive", days=0.0).decisions > 0
        assert verify(store, "ads") == verify(store, "ads", archive=tmp_path / "archive") == []


def test_a_pruned_rollup_that_was_changed_is_found(lived, tmp_path, clock):
    store = lived
    retention(store, clock).prune("ads", tmp_path / "archive", days=2.0)
    assert verify(store, "ads") == []
    first = "(SELECT MIN(begins) FROM rollup WHERE span = 86400)"
    assert tamper(
        tmp_path / "money.db", f"UPDATE rollup SET decided = decided + 1 WHERE span = 86400 AND begins = {first}"
    )
    assert any("rollups" in text for text in verify(store, "ads"))


def test_without_the_extra_nothing_is_made_even_if_nothing_is_old(store, engine, clock, tmp_path, monkeypatch):
    campaign(engine)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtra, match=r"the archive needs polars; pip install 'budgetbandits\[archive\]'"):
        retention(store, clock).prune("ads", tmp_path / "archive", days=1.0)
    assert not list((tmp_path / "archive").glob("*/*"))


def test_what_nobody_may_ask_for(store, engine, clock, tmp_path):
    campaign(engine)
    live(engine, clock, 5)
    with pytest.raises(BadParameter, match="not negative"):
        retention(store, clock).prune("ads", tmp_path, days=-1.0)
    with pytest.raises(NotFound):
        retention(store, clock).prune("shop", tmp_path, days=1.0)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another"):
        retention(store, clock).prune("ads", tmp_path / "file", days=1.0)
    id = engine.describe("ads").id
    with Archive(tmp_path, id).locked(), pytest.raises(Conflict, match="another process"):
        retention(store, clock).prune("ads", tmp_path, days=1.0)
    assert retention(store, clock).prune("ads", tmp_path, days=1.0).events > 0


@pytest.mark.parametrize("terms", [{}, {"lease": 2.0}], ids=["plain", "leasing"])
def test_the_name_of_a_deleted_campaign_is_free_for_another(store, engine, terms):
    """Also for a server that has decided for the deleted one under that name, as a program asks for it."""

    async def life(number):
        engine.create("ads", "bts", budget=10.0, arms=ARMS, **terms)
        for key in ("one", "two"):
            task = engine.decision_task("ads", f"{key} {number}")
            [made] = await engine.decisions.scheduler.perform("ads", task)
            await store.perform(*engine.void_task(made.decision, "ads"))
        engine.set_status("ads", "closed")
        engine.retention.delete("ads")

    async def lives():
        for number in range(3):
            await life(number)

    asyncio.run(lives())
    assert engine.names() == []


def test_a_closed_campaign_is_deleted_with_its_archive(store, engine, clock, tmp_path):
    campaign(engine)
    engine.create("other", "bts", budget=10.0, arms=ARMS)
    kept = engine.decide("other", "kept").decision
    live(engine, clock, 10)
    held = engine.decide("ads", "held").decision
    make_key(store, ["decide"], clock.now, "ads")
    engine.change_terms("ads", {"name": "adverts"})
    engine.change_terms("adverts", {"name": "ads"})
    hook = Webhook("hook", "https://example.org", "secret", clock.now, engine.describe("ads").id)
    store.write(lambda tx: tx.webhooks().add(hook))
    store.write(lambda tx: tx.webhooks().add_deliveries([Delivery("one", "hook", "{}", clock.now, clock.now)]))
    retention(store, clock).prune("ads", tmp_path, days=5.0)
    with pytest.raises(Conflict, match="close it first"):
        retention(store, clock).delete("ads", tmp_path)
    engine.set_status("ads", "closed")
    with pytest.raises(Conflict, match="are open"):
        retention(store, clock).delete("ads", tmp_path)
    engine.void(held)

    def interrupt(step):
        raise Interrupted

    with pytest.raises(Interrupted):
        retention(store, clock, reached=interrupt).delete("ads", tmp_path)
    retention(store, clock).delete("ads", tmp_path)
    assert engine.names() == ["other"]
    assert store.read(lambda tx: tx.webhooks().all()) == []
    assert store.read(lambda tx: tx.webhooks().waiting()) == {}
    assert not [each for each in tmp_path.iterdir() if each.is_dir()]
    with pytest.raises(NotFound):
        engine.describe("ads")

    def rows(tx):
        tables = ("campaign", "arm", "arm_name", "rollup", "checkpoint", "api_key")
        return {table: tx.ask(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables}

    assert store.read(rows) == {"campaign": 1, "arm": 3, "arm_name": 3, "rollup": 0, "checkpoint": 0, "api_key": 0}
    assert list(stored_decisions(store)) == [kept]
    assert verify(store, "other") == []
    engine.create("ads", "bts", budget=10.0, arms=ARMS)  # the names are free again
    engine.create("adverts", "bts", budget=10.0, arms=ARMS)
    engine.decide("ads", "one")
    assert verify(store, "ads") == []


def test_pages_of_a_pruned_campaign_have_its_whole_history(store, engine, clock, tmp_path):
    campaign(engine)
    live(engine, clock, 10)
    roll_up(store)

    def history(tx):
        made = History.of(tx, tx.campaign("ads"))
        return made.by(86_400), made.totals(), made.fine_slots(15)

    days, totals, _ = store.read(history)
    retention(store, clock).prune("ads", tmp_path, days=5.0)
    assert store.read(history) == (days, totals, None)


@pytest.mark.parametrize("terms", [{}, {"lease": 20.0}])
def test_a_clock_that_is_ahead_archives_nothing_that_is_young_beside_what_the_campaign_did_last(
    store, engine, clock, tmp_path, terms
):
    """Also when holds have expired by that clock, and after a pruning that has closed a part."""
    campaign(engine, **terms)
    live(engine, clock, 10)
    made = engine.decide("ads", "late").decision
    engine.feedback(made, cost=0.25)
    engine.decide("ads", "expires")
    true, last = clock.now, all_events(store, "ads")[-1].at
    clock.now += 365 * DAY
    engine.expire_due()
    assert retention(store, clock).prune_all(tmp_path, days=30.0) == {}
    assert retention(store, clock).prune_all(tmp_path, days=5.0)["ads"].events > 30
    assert all(each.events == 0 for each in retention(store, clock).prune_all(tmp_path, days=5.0).values())
    closed = store.read(lambda tx: tx.campaign("ads").settings.archived_before)
    assert last - 6 * DAY < closed <= last - 5 * DAY
    clock.now = true
    engine.feedback(made, reward=1.0)
    assert verify(store, "ads") == []
    assert verify(store, "ads", archive=tmp_path) == []


def test_a_clock_that_is_right_again_takes_back_what_one_ahead_has_closed(store, engine, clock, tmp_path):
    """The campaign has decided in that future, so all that came before was archived, today's decisions too: as today's
    costs are not known any more, a daily cap takes all costs for today's."""
    campaign(engine, daily_cap=4.0)
    live(engine, clock, 10, per_day=2)
    clock.now = (clock.now // DAY + 1.5) * DAY
    engine.feedback(engine.decide("ads", "noon", arms=["mail"]).decision, cost=0.25, reward=0.0)
    waiting = engine.decide("ads", "waiting", arms=["mail"]).decision
    true = clock.now
    clock.now += 365 * DAY
    engine.feedback(engine.decide("ads", "ahead", arms=["mail"]).decision, cost=0.25, reward=0.0)
    ahead = engine.decide("ads", "ahead, too", arms=["mail"]).decision
    engine.feedback(ahead, cost=0.25)
    assert retention(store, clock).prune_all(tmp_path, days=30.0)["ads"].events >= 50
    clock.now = true + 60.0
    with pytest.raises(WrongClock):
        engine.decide("ads", "one")
    engine.reset_clock("ads")
    assert verify(store, "ads") == []
    with pytest.raises(HoldRefused, match=r"of the day's 4\.00 left"):
        engine.decide("ads", "one")
    clock.now += DAY
    made = engine.decide("ads", "one", arms=["mail"]).decision
    engine.feedback(made, cost=0.25)
    engine.feedback(made, reward=1.0)
    engine.feedback(ahead, reward=1.0)
    engine.feedback(waiting, cost=0.25)  # its money was held
    with pytest.raises(DecisionArchived):
        engine.feedback(waiting, reward=1.0)
    for folder in (None, tmp_path):
        assert verify(store, "ads", archive=folder) == []
    live(engine, clock, 40, per_day=2)
    assert retention(store, clock).prune_all(tmp_path, days=30.0) == {}  # events leave in order, and some are of then
    clock.now += 365 * DAY
    engine.void(engine.decide("ads", "a year later").decision)
    assert retention(store, clock).prune_all(tmp_path, days=30.0)["ads"].events > 100
    for folder in (None, tmp_path):
        assert verify(store, "ads", archive=folder) == []


def test_what_is_closed_ahead_is_taken_back_though_nothing_was_decided_there(store, engine, clock, tmp_path):
    """But not for decisions that a pruning which was interrupted may have archived as they were."""
    campaign(engine)
    live(engine, clock, 3)
    left = engine.decide("ads", "left").decision
    engine.feedback(left, cost=0.25)
    with pytest.raises(Conflict, match="nothing to reset"):
        engine.reset_clock("ads")
    true = clock.now

    def interrupt(step):
        if step == "checkpoint":
            raise Interrupted

    clock.now += 365 * DAY
    with pytest.raises(Interrupted):
        retention(store, clock, reached=interrupt).prune("ads", tmp_path, days=30.0)
    clock.now = true - 60.0
    engine.reset_clock("ads")
    with pytest.raises(DecisionArchived):
        engine.feedback(left, reward=1.0)
    clock.now += 120.0
    made = engine.decide("ads", "one").decision
    engine.feedback(made, cost=0.25)
    engine.feedback(made, reward=1.0)
    assert verify(store, "ads") == []
    retention(store, clock).prune("ads", tmp_path, days=0.0)
    for folder in (None, tmp_path):
        assert verify(store, "ads", archive=folder) == []


def test_a_server_that_starts_archives_nothing_before_its_time(store, monkeypatch):
    """Its clock may be wrong, and somebody may see that."""
    pruned, swept = [], threading.Semaphore(0)

    class Served:
        def __init__(self, *_):
            pass

        def run(self, sockets):
            assert swept.acquire(timeout=60.0)
            assert swept.acquire(timeout=60.0)

    def prune(*_):
        pruned.append(time.time())

    def sweep(*_):
        swept.release()

    for name, value in (("_Server", Served), ("_prune", prune), ("_expire", sweep), ("EXPIRE_SECONDS", 0.05)):
        monkeypatch.setattr(server, name, value)
    with listening("127.0.0.1", 0) as listener:
        server._serve(listener, server.ServerOptions("", "", retention=Job("prune")), store)
    assert pruned == []


ANSWER = """
import json, sys
sys.stdin.readline()
print("{}")
print(json.dumps([{"campaign": f"campaign {n}", "events": 1, "decisions": 1, "files": 1} for n in range(5000)]))
"""


def test_a_server_reads_what_was_archived_of_very_many_campaigns(tmp_path, monkeypatch):
    """More than a pipe holds, which keeps a process from its end until somebody reads it."""
    monkeypatch.setattr(server, "PROGRAM", (sys.executable, "-c", ANSWER))
    with SQLiteStore(tmp_path / "money.db") as store, capture_logs() as logged:
        work = threading.Thread(target=server._prune, args=(store, Job("prune"), threading.Event()), daemon=True)
        work.start()
        work.join(60.0)
    assert not work.is_alive()
    assert len(logged) == 5000


def test_a_server_archives_by_itself(tmp_path):
    clock = Clock(time.time() - 120 * DAY)
    with SQLiteStore(tmp_path / "budgetbandits.db") as store:
        engine = DecisionService(store, clock)
        campaign(engine)
        live(engine, clock, 115, per_day=2)
        DecisionService(store).create("young", "bts", budget=10.0, arms=ARMS)
    soon = "from budgetbandits.service.http import server; server.PRUNE_SECONDS = 1.0"
    with running(tmp_path, first=soon, options=["--retention", "90", "--archive", "archive"]) as (address, _):
        with Client(address, admin_key(tmp_path)) as client, client.decide("ads") as made:
            made.settle(cost=0.1, reward=1.0)
        while '"events": ' not in (tmp_path / "said").read_text():
            time.sleep(0.05)
    folder = tmp_path / "archive"
    with SQLiteStore(tmp_path / "budgetbandits.db") as store:
        [kept] = {folder.name for folder in folder.iterdir()}
        assert kept == store.read(lambda tx: tx.campaign("ads").id)
        assert verify(store, "ads") == []
        assert verify(store, "ads", archive=folder) == []
        oldest = min(each.created_at for each in all_decisions(store, "ads"))
        assert 90 * DAY < time.time() - oldest < 91.1 * DAY
        assert DecisionService(store).retention.prune_all(folder, 90.0) == {}  # until the next day


def test_a_copy_of_a_store_deletes_nothing_that_the_store_has_archived_since(lived, clock, tmp_path):
    """Nor the store what its copy has archived: each is refused where the other has been."""
    folder, engine = tmp_path / "archive", DecisionService(lived, clock)
    retention(lived, clock).prune("ads", folder, 7.0)
    back_up(tmp_path / "money.db", tmp_path / "copy.db")
    retention(lived, clock).prune("ads", folder, 3.0)
    files = sorted(folder.rglob("*"))
    with SQLiteStore(tmp_path / "copy.db") as copy:
        with pytest.raises(Conflict, match=r"was archived by another store, or .*name another folder"):
            retention(copy, clock).prune("ads", folder, 5.0)
        assert sorted(folder.rglob("*")) == files
        assert verify(lived, "ads", archive=folder) == []
        shutil.copytree(folder, tmp_path / "own")
        [latest] = (tmp_path / "own").glob("*/latest")
        latest.unlink()
        assert retention(copy, clock).prune("ads", tmp_path / "own", 5.0).events > 0
        assert verify(copy, "ads", archive=tmp_path / "own") == []
        copied = DecisionService(copy, clock)
        copied.expire_due()
        copied.set_status("ads", "closed")
        with pytest.raises(Conflict, match="by another store"):
            retention(copy, clock).delete("ads", folder)
    live(engine, clock, 2)
    assert retention(lived, clock).prune("ads", folder, 3.0).events > 0
    with pytest.raises(Conflict, match="by another store"):
        retention(lived, clock).prune("ads", tmp_path / "own", 0.0)
