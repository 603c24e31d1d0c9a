"""Backups of a store, and what it means to go on from one.

A copy of a SQLite store is made while servers use it. A PostgreSQL is copied by its own programs (``pg_dump``).

A store that goes on from a copy has lost what happened since: decisions that were made, and money that was spent. It
cannot know how much, so no campaign goes on by itself. `mark_restored` pauses each one, as an event, and it is resumed
only together with what it has spent since the copy was made (`Campaigns.set_status`), which is booked first.

Nor does it know which keys and webhooks were dropped since, and a key that had leaked could make another. So
`mark_restored` turns all of them off, until an operator says which are still good (`auth.turn_on_keys`,
`webhooks.turn_on_webhooks`).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from budgetbandits.errors import BudgetBanditsError, StoreError
from budgetbandits.service.audit.archive import sync_folder
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.shared_budgets import members
from budgetbandits.service.stores.contract import Clock, Scope, Store, Transaction, find_campaign, isolated, moment
from budgetbandits.service.stores.records import Event, KeyEvent

PAGES_AT_ONCE = 1000
"""Pages that are copied before others have their turn."""

PAUSE_SECONDS = 0.01
"""Pause between two pieces of a copy."""


def back_up(source: Path, target: Path) -> None:
    """Copy a SQLite store as it is at one moment, all of it or nothing; servers may use it meanwhile."""
    _check_new(target)
    partial = target.with_name(f".{target.name}.partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600))  # a reader of it needs no key
        with (
            contextlib.closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as original,
            contextlib.closing(sqlite3.connect(partial)) as copy,
        ):
            original.execute("BEGIN")  # one state to the end: a copy would begin again after each change by others
            original.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
            original.backup(copy, pages=PAGES_AT_ONCE, sleep=PAUSE_SECONDS)
            if copy.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                raise StoreError(f"the copy of {source} is damaged, and so is {source}; restore an undamaged one")
            if copy.execute("SELECT name FROM sqlite_master WHERE name = 'campaign_name'").fetchone() is None:
                raise StoreError(f"{source} is no store of budgetbandits; name the file that 'backup' has written")
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(target)
        sync_folder(target.parent)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"cannot copy {source} to {target}: {error}; is it a store, and is there room?") from None
    finally:
        partial.unlink(missing_ok=True)


def _check_new(target: Path) -> None:
    if target.exists():
        raise StoreError(f"{target} is there already; give the name of a new file")
    for end in ("-wal", "-journal"):
        log = target.with_name(f"{target.name}{end}")
        if log.exists() and log.stat().st_size:  # SQLite would read it into whatever has the name of its database
            raise StoreError(f"{log} is of another database; move it away together with that one, or delete both")


@contextlib.contextmanager
def restoring(source: Path, target: Path) -> Iterator[Path]:
    """A copy of a store under another name, for a block that marks its campaigns (`mark_restored`) and closes it. It
    gets its name at the end: whenever that is interrupted, no server finds campaigns that go on by themselves."""
    _check_new(target)
    new = target.with_name(f".{target.name}.restored")
    _delete(new)  # of one that was killed
    try:
        back_up(source, new)
        yield new
        new.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise StoreError(f"cannot restore {target}: {error}; is there room, and may it be written to?") from None
    finally:
        _delete(new)


def _delete(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


def mark_restored(store: Store, leases: Leases, clock: Clock | None = None, actor: str | None = None) -> list[str]:
    """Turn off all keys and webhooks, and pause every campaign that is not closed: since the copy, some may have been
    dropped, and money may have been spent.

    The names of those campaigns. What was lent to servers is given back first. An error in one campaign does not stop
    the others.
    """
    store.write(lambda tx: _turn_off(tx, moment(tx, clock), actor))

    def work(tx: Transaction, id: str) -> str | None:
        row = find_campaign(tx, id)
        last = max((event.at for event in tx.events(id, tx.last_event(id) - 1)), default=row.created_at)
        row = leases.recalled(tx, row)
        if row.account.status == "closed" or row.settings.restored_from is not None:
            return None
        row = replace(row, settings=replace(row.settings, restored_from=last))
        tx.save_settings(row)
        members.set_unreported(tx, row, True)
        if row.account.status == "active":
            tx.save_campaign(replace(row, account=replace(row.account, status="paused")))
        tx.add_event(Event(id, "restored", moment(tx, clock), actor=actor))
        return row.name

    marked, failure = list[str](), None
    for id in store.read(lambda tx: [row.id for row in tx.campaigns()]):
        try:
            name = store.write(isolated(id, lambda tx, id=id: work(tx, id)), Scope(id))  # type: ignore[misc]
        except BudgetBanditsError as error:
            failure = error
        else:
            marked += [] if name is None else [name]
    if failure is not None:
        raise failure
    return marked


def _turn_off(tx: Transaction, now: float, actor: str | None) -> None:
    """Turn off all keys and webhooks that are on."""
    keys, hooks = tx.keys(), tx.webhooks().all()
    for key in [key for key in keys if not key.off]:
        tx.set_key_off(key.prefix, True)
        tx.add_key_event(KeyEvent("turned off", key.prefix, key.scopes, key.campaign, now, actor))
    for hook in hooks:
        tx.webhooks().set_off(hook.id, True)
