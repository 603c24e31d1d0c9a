"""An audit finds what was changed behind the back of the service, in the store or in the archive; and nothing else."""

import json
import shutil

import polars
import pytest

from budgetbandits.errors import Disagreement
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.rollups import roll_up

DAY = 86_400.0
ARMS = {"search": 1.0, "mail": 0.5}


@pytest.fixture
def pruned(store, engine, clock, tmp_path):
    """The folder of the archive of a campaign of twelve days that was pruned twice, by month."""
    engine.create("ads", "bts", budget=100.0, arms=ARMS)
    clock.now = 26.0 * DAY
    folder = tmp_path / "archive"
    for number in range(24):
        clock.now += DAY / 2
        made = engine.decide("ads", f"key {number}")
        if number % 4:
            engine.feedback(made.decision, reward=float(number % 2), cost=0.25)
        if number in (15, 23):
            assert engine.retention.prune("ads", folder, days=2.0).events > 5
    roll_up(store)
    return folder


# --- in the archive --------------------------------------------------------------------------------------------------


def files(folder, table):
    return sorted(folder.glob(f"*/*/{table}-*.parquet"))


def rewrite(table, change):
    """A tampering that writes the first file of a table again."""

    def tamper(folder):
        path = files(folder, table)[0]
        frame = polars.read_parquet(path)
        change(frame).write_parquet(path)

    return tamper


def set_first(table, column, value):
    def change(frame):
        return frame.with_columns(polars.Series(column, [value, *frame[column][1:]], dtype=frame[column].dtype))

    return rewrite(table, change)


def add_decision(frame):
    return polars.concat([frame, frame[:1].with_columns(id=polars.lit("0" * 32), key=polars.lit("another"))])


def swap(table):
    def tamper(folder):
        one, other = files(folder, table)[:2]
        kept = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(kept)

    return tamper


IN_THE_ARCHIVE = {
    "a decision added": rewrite("decisions", add_decision),
    "a decision removed": rewrite("decisions", lambda frame: frame[1:]),
    "a decision doubled": rewrite("decisions", lambda frame: polars.concat([frame, frame[:1]])),
    "decisions in another order": rewrite("decisions", lambda frame: frame[::-1]),
    "a decision's key": set_first("decisions", "key", "another"),
    "a decision's request_digest": set_first("decisions", "request_digest", "0" * 32),
    "a decision's expires_at": set_first("decisions", "expires_at", 5.0),
    "a decision's arm_name": set_first("decisions", "arm_name", "shop"),
    "a decision's charge": set_first("decisions", "charged", 1),
    "two files of decisions swapped": swap("decisions"),
    "an event's arm_name": set_first("events", "arm_name", "shop"),
    "an event's actor": set_first("events", "actor", "nobody"),
    "an event's time": set_first("events", "at", 5.0),
    "an event removed": rewrite("events", lambda frame: frame[:-1]),
    "two files of events swapped": swap("events"),
}


def test_what_is_changed_in_the_archive_is_found(store, pruned, tmp_path):
    assert verify(store, "ads", archive=pruned) == []
    missed = []
    for name, tamper in IN_THE_ARCHIVE.items():
        folder = tmp_path / name
        shutil.copytree(pruned, folder)
        tamper(folder)
        if verify(store, "ads", archive=folder) == []:
            missed.append(name)
    assert missed == []
    assert verify(store, "ads", archive=pruned) == []


# --- in the store ----------------------------------------------------------------------------------------------------


def head(change):
    """A tampering of the first part of the checkpoint."""

    def tamper(tx, id):
        seq = tx.pruning().checkpoint(id)
        kept = tx.pruning().part(id, seq, 0)
        values = json.loads(kept)
        change(values)
        where = (id, seq)
        tx.change("UPDATE checkpoint SET content = ? WHERE campaign = ? AND seq = ? AND part = 0",
                  (json.dumps(values), *where))  # fmt: skip
        return [("UPDATE checkpoint SET content = ? WHERE campaign = ? AND seq = ? AND part = 0", (kept, *where))]

    return tamper


def lower(tx, id):
    """What was spent, in the campaign's row and in the checkpoint alike."""

    def change(values):
        values["account"]["spent"] -= 500_000

    tx.change("UPDATE campaign SET spent = spent - 500000 WHERE id = ?", (id,))
    return [*head(change)(tx, id), ("UPDATE campaign SET spent = spent + 500000 WHERE id = ?", (id,))]


def unlist(values):
    del values["pieces"][0]


def swap_listed(values):
    listed = values["pieces"][0]["files"]
    listed[0], listed[1] = listed[1], listed[0]


def change_digest(values):
    values["pieces"][-1]["digest"] = "0" * 32


def change_digest_of_first(values):
    values["pieces"][0]["digest"] = "0" * 32


def forget_learned(tx, id):
    """What an arm had learned, in its row and in the checkpoint alike."""
    seq = tx.pruning().checkpoint(id)
    kept = tx.pruning().part(id, seq, 1)
    kind, rows = json.loads(kept)
    assert kind == "counts" or rows
    rows[0][-1] = {} if isinstance(rows[0][-1], dict) else 5.0
    update = "UPDATE checkpoint SET content = ? WHERE campaign = ? AND seq = ? AND part = 1"
    tx.change(update, (json.dumps([kind, rows]), id, seq))
    return [(update, (kept, id, seq))]


def statement(change, undo):
    def tamper(tx, id):
        tx.change(change, (id,))
        return [(undo, (id,))]

    return tamper


IN_THE_STORE = {
    "checkpoint and row lowered together": lower,
    "a file that is not listed": head(unlist),
    "two files listed in another order": head(swap_listed),
    "the digest of the archive": head(change_digest),
    "the digest of what was archived first": head(change_digest_of_first),
    "another part of the checkpoint": forget_learned,
    "until when decisions take no feedback": head(lambda values: values.update(closed_before=5.0)),
    "the row": statement(
        "UPDATE campaign SET spent = spent - 1 WHERE id = ?", "UPDATE campaign SET spent = spent + 1 WHERE id = ?"
    ),
    "the event of a pruning": statement(
        "UPDATE event SET kind = 'paused' WHERE campaign = ? AND kind = 'pruned'",
        "UPDATE event SET kind = 'pruned' WHERE campaign = ? AND kind = 'paused'",
    ),
}


@pytest.mark.parametrize("with_archive", [False, True], ids=["without the archive", "with the archive"])
def test_what_is_changed_in_a_pruned_store_is_found(store, pruned, with_archive):
    id, folder = store.read(lambda tx: tx.campaign("ads").id), pruned if with_archive else None
    assert verify(store, "ads", archive=folder) == []
    missed = []
    for name, tamper in IN_THE_STORE.items():
        undo = store.write(lambda tx, tamper=tamper: tamper(tx, id))
        if verify(store, "ads", archive=folder) == []:
            missed.append(name)
        store.write(lambda tx, undo=undo: [tx.change(*each) for each in undo])
    assert missed == []
    assert verify(store, "ads", archive=folder) == []


def test_a_pruning_does_not_go_on_from_a_checkpoint_that_was_changed(store, engine, clock, pruned):
    """It would write another one, which its own event confirms."""
    id = store.read(lambda tx: tx.campaign("ads").id)
    undo = store.write(lambda tx: head(lambda values: values["account"].update(spent=500_000))(tx, id))
    clock.now += 5 * DAY
    engine.decide("ads", "later")
    with pytest.raises(Disagreement, match="nothing was archived"):
        engine.retention.prune("ads", pruned, days=1.0)
    store.write(lambda tx: [tx.change(*each) for each in undo])
    assert engine.retention.prune("ads", pruned, days=1.0).events > 0
    assert verify(store, "ads", archive=pruned) == []
