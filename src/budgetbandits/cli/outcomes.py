"""The command ``import``, and past outcomes in a file: what a campaign may begin with, and what the laboratory plays.

A row is one outcome: the arm, its reward and its cost; so is a row of `campaign export`. With a column ``pulls`` a row
has that number of outcomes, with their total reward and total cost. Rows from which nothing can be learned are skipped
and counted: those without a reward or a cost, say.

LiteLLM's spend logs (the table LiteLLM_SpendLogs) have a cost and no reward: that is a column which was added, a
number inside ``metadata``, or a constant for every call that succeeded.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer
from rich.markup import escape

from budgetbandits.cli.screen import AsJson, plain_table, print_json, terminal, whole_file, write_csv
from budgetbandits.errors import BadParameter, MissingExtra, install
from budgetbandits.formatting.money import decimals
from budgetbandits.validation import FileKey

Format = Literal["table", "litellm"]
MEANINGS = {
    "arm": FileKey("text", "The arm that answered."),
    "reward": FileKey("number", "What it paid."),
    "cost": FileKey("number", "What it cost."),
    "pulls": FileKey("whole number", "Of how many outcomes reward and cost are the totals.", "1"),
    "request": FileKey("text or number", "Which request the row is for.", "none"),
    "segment": FileKey("text", "The segment of the request.", "none"),
    "failed": FileKey("0 or 1", "Whether there was no answer: it is skipped, or pays 0 with --success-reward.", "0"),
}
"""Meanings that a column may have."""
COLUMNS: dict[str, dict[str, str]] = {
    "table": {},
    "litellm": {"arm": "model", "cost": "spend", "request": "request_id", "failed": "status", "cached": "cache_hit"},
}
"""The columns of each format that are called otherwise than what they stand for."""


@dataclass
class Outcomes:
    """The rows that were taken, as they are written again, and why others were skipped."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def history(self) -> dict[str, tuple[int, float, float]]:
        """The pulls, the total reward and the total cost of each arm."""
        sums: dict[str, tuple[list[float], list[float], list[float]]] = {}
        for row in self.rows:
            totals = sums.setdefault(row["arm"], ([], [], []))
            for total, value in zip(totals, (row.get("pulls", 1.0), row["reward"], row["cost"]), strict=True):
                total.append(value)
        return {
            arm: (int(math.fsum(pulls)), math.fsum(rewards), math.fsum(costs))
            for arm, (pulls, rewards, costs) in sums.items()
        }


def read_history(path: Path) -> dict[str, tuple[int, float, float]]:
    """The pulls, the total reward and the total cost of each arm in a .csv or .parquet file.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "past.csv")
    ...     _ = file.write_text("arm,reward,cost\\nmail,1,0.25\\nmail,0,0.5\\nsearch,,0.5\\n")
    ...     read_history(file)
    {'mail': (2, 1.0, 0.75)}
    """
    outcomes = read_outcomes(path)
    if not outcomes.rows:
        raise BadParameter(f"{path}: no row has an arm, a reward and a cost; leave history out")
    return outcomes.history()


def read_outcomes(
    path: Path, form: Format = "table", columns: dict[str, str] | None = None, success_reward: float | None = None
) -> Outcomes:
    """The outcomes in a .csv or .parquet file; ``columns`` maps what is meant to a column, or to a number inside a
    column of JSON (``metadata.score``)."""
    from budgetbandits.off_policy.log import table_columns

    table = table_columns(path)
    present = list(table if isinstance(table, dict) else table.columns)
    named = {meaning: meaning for meaning in MEANINGS if meaning in present} | COLUMNS[form] | (columns or {})
    if success_reward is not None and "reward" in named:
        raise BadParameter("--success-reward is for a table without rewards; leave it out, or the column of rewards")
    needed = ("arm", "cost") if success_reward is not None else ("arm", "reward", "cost")
    for meaning in needed:
        if meaning not in named:
            raise BadParameter(f"{path}: there is no column {meaning!r}; {_remedy(form, meaning)}")
    # of a format's columns, those that say more than arm and cost may be missing
    kept = {m: n for m, n in named.items() if m in needed or m in (columns or {}) or n in present}
    cells = {meaning: _cells(path, table, present, name) for meaning, name in kept.items()}
    outcomes = Outcomes()
    for number, values in enumerate(_rows(cells), 1):
        row = _outcome(path, number, values, success_reward)
        if isinstance(row, str):
            outcomes.skipped[row] += 1
        else:
            outcomes.rows.append(row)
    return outcomes


def _remedy(form: Format, meaning: str) -> str:
    if form == "litellm" and meaning == "reward":
        return "name one with --columns reward=COLUMN (or reward=metadata.NAME), or say --success-reward 1"
    return f"name columns arm, reward and cost, and pulls if any, or say which one it is: {meaning}=COLUMN"


def _cells(path: Path, table: Any, present: list[str], name: str) -> list[Any]:
    """The cells of a column, or what JSON in a column has at a path."""
    if name in present:
        return list(table[name])
    column, *inside = name.split(".")
    if not inside or column not in present:
        raise BadParameter(f"{path}: there is no column {name!r:.60}; the columns are {', '.join(map(str, present))}")
    return [_inside(cell, inside) for cell in table[column]]


def _inside(cell: Any, names: list[str]) -> Any:
    try:
        value = json.loads(cell) if isinstance(cell, str | bytes) else cell
    except ValueError:
        return None
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _rows(cells: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*cells.values(), strict=True):
        yield dict(zip(cells, values, strict=True))


def _outcome(path: Path, number: int, cells: dict[str, Any], success_reward: float | None) -> dict[str, Any] | str:
    """A row as an outcome, or why it is skipped."""
    if _is_missing(cells["arm"]):
        return "no arm"
    if _is_true(cells.get("cached")):
        return "answered from a cache"
    failed = _is_true(cells.get("failed"), "failure", "failed")
    if success_reward is not None:
        many = 1.0 if _is_missing(cells.get("pulls")) else _number(path, number, cells["pulls"])
        cells["reward"] = 0.0 if failed else success_reward * many
    elif failed:
        return "failed"
    for meaning in ("cost", "reward"):
        if _is_missing(cells[meaning]):
            return f"no {meaning}"
    outcome: dict[str, Any] = {name: str(cells[name]) for name in ("request", "arm") if name in cells}
    if not _is_missing(cells.get("segment")):
        outcome["segment"] = str(cells["segment"])
    for meaning in ("reward", "cost", "pulls"):
        if not _is_missing(cells.get(meaning)):
            outcome[meaning] = _number(path, number, cells[meaning])
    return outcome


def _is_missing(cell: Any) -> bool:
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def _is_true(cell: Any, *words: str) -> bool:
    return str(cell).lower() in ("true", "1", "1.0", *words)


def _number(path: Path, row: int, cell: Any) -> float:
    try:
        value = float(cell)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value) or value < 0.0:
        raise BadParameter(f"{path}, row {row}: {cell!r:.40} is no number from 0 upwards; fix that row")
    return value


# --- the command -----------------------------------------------------------------------------------------------------


def import_command(
    source: Annotated[Path, typer.Argument(help="Past outcomes: .csv or .parquet.")],
    out: Annotated[
        Path | None,
        typer.Argument(help="The table to write: .csv or .parquet. Without it, only say what would be taken."),
    ] = None,
    form: Annotated[
        str, typer.Option("--format", help="table: a row for each outcome. litellm: the spend logs of LiteLLM.")
    ] = "table",
    columns: Annotated[
        str, typer.Option(help=f"Columns that are called otherwise: MEANING=COLUMN,… with {', '.join(MEANINGS)}.")
    ] = "",
    success_reward: Annotated[
        float | None, typer.Option(min=0.0, help="The reward of every row that has not failed, and 0 for the others.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a table of past outcomes, for 'campaign create --history' and for the laboratory."""
    from budgetbandits.problems.records import parse_columns

    if form not in get_args(Format):
        raise BadParameter(f"format is {form!r:.40}; use {' or '.join(get_args(Format))}")
    which: Format = "litellm" if form == "litellm" else "table"
    outcomes = read_outcomes(source, which, parse_columns(columns, MEANINGS), success_reward)
    if out is not None:
        if not outcomes.rows:
            raise BadParameter(f"{source}: no row can be used ({_reasons(outcomes)}); nothing was written")
        _write(outcomes.rows, out)
    past, taken = outcomes.history(), len(outcomes.rows)
    if as_json:
        arms = {arm: dict(zip(("pulls", "reward", "cost"), totals, strict=True)) for arm, totals in past.items()}
        file = None if out is None else str(out)
        print_json({"file": file, "taken": taken, "skipped": dict(outcomes.skipped), "arms": arms})
        return
    reasons = f" ({_reasons(outcomes)})" if outcomes.skipped else ""
    print(f"{taken:,} rows taken, {outcomes.skipped.total():,} skipped{reasons}")
    table = plain_table("arm", numbers=("pulls", "reward", "cost"))
    rewards, costs = (decimals(totals[place] for totals in past.values()) for place in (1, 2))
    for arm, (pulls, reward, cost) in past.items():
        table.add_row(escape(arm), f"{pulls:,}", f"{reward:,.{rewards}f}", f"{cost:,.{costs}f}")
    terminal().print(table)
    if out is not None:
        print(f"{out} is written")


def _reasons(outcomes: Outcomes) -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in outcomes.skipped.most_common()) or "it has none"


def _write(rows: list[dict[str, Any]], path: Path) -> None:
    """A table of these rows, all of it or nothing."""
    if path.suffix not in (".csv", ".parquet"):
        raise BadParameter(f"{path.name!r:.60} ends in {path.suffix or 'nothing'!r}; use .csv or .parquet")
    names = [name for name in ("request", "arm", "segment", "reward", "cost", "pulls") if any(name in r for r in rows)]
    with whole_file(path) as file:
        if path.suffix == ".csv":
            write_csv(file, names, ([row.get(name, "") for name in names] for row in rows))
        else:
            _write_parquet(rows, names, file)


def _write_parquet(rows: list[dict[str, Any]], names: list[str], path: Path) -> None:
    try:
        import polars
    except ImportError:
        raise MissingExtra(f"Parquet needs polars; {install('lab')}, or write .csv") from None
    polars.DataFrame({name: [row.get(name) for row in rows] for name in names}).write_parquet(path)
