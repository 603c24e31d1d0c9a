"""Recorded outcomes: rewards and costs of arms, read from a CSV file or a table in memory.

A row holds one arm's outcome. With a column that says which request it was for, the rows of a request say what each arm
would have paid and cost: then a policy can be played on the records (`simulation.replay`). A column may name the
request's segment.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, ProblemError
from budgetbandits.numerics.arrays import Array

MEANINGS = ("request", "arm", "reward", "cost", "segment")
"""The meanings that a column may have; arm, reward and cost must be there."""

REQUIRED_MEANINGS = ("arm", "reward", "cost")


@dataclass(frozen=True)
class Records:
    """The rows, column by column, in the table's own units; arms, requests and segments by number."""

    arms: tuple[str, ...]
    arm: NDArray[np.int64]
    reward: Array
    cost: Array
    request: NDArray[np.int64] | None
    segments: tuple[str, ...]
    segment: NDArray[np.int64] | None

    def outcomes(self, arm: int) -> tuple[Array, Array]:
        """The rewards and costs of one arm."""
        mine = self.arm == arm
        return self.reward[mine], self.cost[mine]


def parse_columns(text: str, meanings: Sequence[str] = MEANINGS) -> dict[str, str]:
    """Which column stands for what, from text.

    >>> parse_columns("arm=model, cost=cost_usd")
    {'arm': 'model', 'cost': 'cost_usd'}
    """
    columns: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        meaning, equals, name = (piece.strip() for piece in part.partition("="))
        if meaning not in meanings or not equals or not name:
            raise BadParameter(f"columns has {part!r}; write MEANING=COLUMN with one of {', '.join(meanings)}")
        if meaning in columns:
            raise BadParameter(f"columns names {meaning} twice; name it once")
        columns[meaning] = name
    return columns


def read_csv(path: str | Path, columns: Mapping[str, str] | None = None) -> Records:
    """The records of a CSV file with a header; ``columns`` maps meanings to headers that are called otherwise."""
    table = csv_columns(path)
    try:
        return read_table(table, columns)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None


def csv_columns(path: str | Path) -> dict[str, Sequence[str]]:
    """The columns of a CSV file by its header, as text."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            rows = [row for row in reader if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ProblemError(f"cannot read {str(path)!r}: {error}; name a readable CSV file") from None
    for name in header:
        if header.count(name) > 1:
            raise ProblemError(f"{path}: the header has {name!r:.40} twice; give every column a name of its own")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise ProblemError(f"{path}: line {number} has {len(row)} fields, the header {len(header)}; fix that line")
    return dict(zip(header, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(header, ())


def read_table(table: Any, columns: Mapping[str, str] | None = None) -> Records:
    """The records of a mapping of columns, or of a frame of polars or pandas.

    >>> read_table({"arm": ["a", "b"], "reward": [1, 0.5], "cost": [0.2, 3]}).arms
    ('a', 'b')
    """
    values = named_columns(table, columns, MEANINGS, REQUIRED_MEANINGS)
    if not values["arm"]:
        raise ProblemError("there are no rows; record at least one outcome of every arm")
    arms, arm = numbered(values["arm"])
    segments, segment = numbered(values["segment"]) if "segment" in values else ((), None)
    request = numbered(values["request"])[1] if "request" in values else None
    reward, cost = (numbers(values[column], column) for column in ("reward", "cost"))
    return Records(arms, arm, reward, cost, request, segments, segment)


def named_columns(
    table: Any, columns: Mapping[str, str] | None, meanings: Sequence[str], required: Sequence[str]
) -> dict[str, list[Any]]:
    """The columns of a table by what they stand for: as ``columns`` says, or by their own names."""
    present = list(getattr(table, "columns", table))
    named = dict(columns or {})
    for meaning in meanings:
        if meaning not in named and meaning in present:
            named[meaning] = meaning
    for meaning, name in named.items():
        if meaning not in meanings:
            raise BadParameter(f"columns has {meaning!r}; there is {', '.join(meanings)}")
        if name not in present:
            raise ProblemError(f"no column {name!r} for {meaning}; the columns are {', '.join(map(str, present))}")
    for meaning in required:
        if meaning not in named:
            raise ProblemError(f"no column says {meaning}; name it: columns={meaning}=COLUMN")
    return {meaning: list(table[name]) for meaning, name in named.items()}


def numbered(values: Iterable[Any]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The different values as text, in the order in which they first come, and each row's by number."""
    number: dict[str, int] = {}
    rows = [number.setdefault(str(value), len(number)) for value in values]
    return tuple(number), np.array(rows, dtype=np.int64)


def numbers(values: list[Any], column: str) -> Array:
    """The values as numbers from 0 upwards."""
    made = np.zeros(len(values))
    for row, value in enumerate(values):
        try:
            made[row] = float(value)
        except (TypeError, ValueError):
            made[row] = math.nan
        if not 0.0 <= made[row] < math.inf:
            raise ProblemError(f"{column} {value!r:.40} in row {row + 1} is not a number from 0 upwards; fix that row")
    return made


@dataclass(frozen=True)
class ReplayTable:
    """The reward and cost that every arm would have had for every request: NaN where that was not records.

    rewards, costs  as (request, arm), in the table's own units
    segment         the number of each request's segment; 0 if there are none
    """

    arms: tuple[str, ...]
    segments: tuple[str, ...]
    rewards: Array
    costs: Array
    segment: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rewards)

    @classmethod
    def from_records(cls, records: Records, arms: tuple[str, ...] = (), segments: tuple[str, ...] = ()) -> ReplayTable:
        """The records of requests; ``arms`` and ``segments`` come first, in this order, and others after them."""
        if records.request is None:
            raise ProblemError("no column says which request a row is for; name it: columns=request=COLUMN")
        arms, places = _aligned(arms, records.arms)
        shape = int(records.request.max()) + 1, len(arms)
        cells = records.request * len(arms) + places[records.arm]
        if len(np.unique(cells)) < len(cells):
            raise ProblemError("an arm is there twice for one request; keep one row for each")
        rewards, costs = np.full(shape, np.nan), np.full(shape, np.nan)
        rewards.flat[cells], costs.flat[cells] = records.reward, records.cost
        if records.segment is None:
            return cls(arms, (), rewards, costs, np.zeros(shape[0], dtype=np.int64))
        segments, numbers_of = _aligned(segments, records.segments)
        segment = np.zeros(shape[0], dtype=np.int64)
        segment[records.request] = numbers_of[records.segment]
        if (segment[records.request] != numbers_of[records.segment]).any():
            raise ProblemError("the rows of one request name different segments; give each request one")
        return cls(arms, segments, rewards, costs, segment)

    @classmethod
    def from_csv(
        cls, path: str | Path, columns: Mapping[str, str] | None = None, **first: tuple[str, ...]
    ) -> ReplayTable:
        records = read_csv(path, columns)
        try:
            return cls.from_records(records, **first)
        except ProblemError as error:
            raise ProblemError(f"{path}: {error}") from None

    def without_segments(self) -> ReplayTable:
        return ReplayTable(self.arms, (), self.rewards, self.costs, np.zeros_like(self.segment))


def _aligned(first: tuple[str, ...], names: tuple[str, ...]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    together = tuple(dict.fromkeys((*first, *names)))
    return together, np.array([together.index(name) for name in names], dtype=np.int64)
