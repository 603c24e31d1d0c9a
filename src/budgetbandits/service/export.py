"""A campaign's decisions or events as a table: CSV, or Parquet for who has polars (extra lab)."""

from __future__ import annotations

import csv
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from budgetbandits.errors import BadParameter, StoreError
from budgetbandits.service.ledger import to_units
from budgetbandits.service.stores.base import Store, Transaction, all_decisions, all_events, found

Table = Literal["decisions", "events"]
Format = Literal["csv", "parquet"]

TEXT, NUMBER, COUNT = str, float, int
COLUMNS: dict[Table, dict[str, type]] = {
    "decisions": {
        "decision": TEXT, "key": TEXT, "arm": TEXT, "state": TEXT, "hold": NUMBER, "cost": NUMBER, "charged": NUMBER,
        "overrun": NUMBER, "reward": NUMBER, "created_at": NUMBER, "expires_at": NUMBER,
        "lease": TEXT,
    },
    "events": {
        "seq": COUNT, "kind": TEXT, "at": NUMBER, "decision": TEXT, "arm": TEXT, "amount": NUMBER, "reward": NUMBER,
        "lease": TEXT,
    },
}  # fmt: skip


FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that a spreadsheet would compute."""


def export(store: Store, campaign: str, path: Path, table: Table = "decisions") -> int:
    """Write a campaign's table, all of it or nothing; the format is that of the name's ending. How many rows."""
    kind = path.suffix.removeprefix(".")
    if kind not in get_args(Format):
        raise BadParameter(f"{path.name!r:.60} ends in {path.suffix or 'nothing'!r}; use .csv or .parquet")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; choose another place") from None
    partial = Path(name)
    try:
        count = store.read(lambda tx: _write(tx, campaign, table, partial, kind))
        partial.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; choose another place") from None
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write(tx: Transaction, campaign: str, table: Table, path: Path, kind: str) -> int:
    columns, rows = COLUMNS[table], _rows(tx, found(tx, campaign).id, table)
    if kind == "parquet":
        return _parquet(columns, rows, path)
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for count, row in enumerate(rows, 1):  # noqa: B007
            writer.writerow([_defused(cell) for cell in row])
    return count


def _defused(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: names and keys come from anywhere."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def _parquet(columns: dict[str, type], rows: Iterator[tuple[Any, ...]], path: Path) -> int:
    try:
        import polars
    except ImportError:
        raise BadParameter("Parquet needs polars; pip install 'budgetbandits[lab]', or export to .csv") from None
    kinds = {TEXT: polars.String(), NUMBER: polars.Float64(), COUNT: polars.Int64()}
    schema = {name: kinds[kind] for name, kind in columns.items()}
    frame = polars.DataFrame(list(rows), schema=schema, orient="row")
    frame.write_parquet(path)
    return frame.height


def _rows(tx: Transaction, campaign: str, table: Table) -> Iterator[tuple[Any, ...]]:
    names = [arm.name for arm in tx.arms(campaign)]
    if table == "events":
        for e in all_events(tx, campaign):
            arm = None if e.arm is None else names[e.arm]
            yield e.seq, e.kind, e.at, e.decision, arm, _units(e.amount), e.reward, e.lease
        return
    for d in all_decisions(tx, campaign):
        h = d.hold
        money = (to_units(h.amount), _units(d.cost), to_units(h.charged), to_units(h.overrun))
        yield d.id, d.key, names[d.arm], h.state, *money, d.reward, d.created_at, d.expires_at, d.lease


def _units(micros: int | None) -> float | None:
    return None if micros is None else to_units(micros)
