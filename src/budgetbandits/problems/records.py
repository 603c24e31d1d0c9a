"""Recorded outcomes: rewards and costs of arms, read from a CSV file or a table in memory.

A row holds one arm's outcome. With a column that says which request it was for, the rows of a request say what each arm
would have paid and cost: then a policy can be played on the records (`simulation.replay`). A column may name the
request's segment. Its features, numbers that are known before an arm is chosen, are further columns of the table, or a
second table with a row for each request.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, ProblemError
from budgetbandits.numerics.arrays import Array
from budgetbandits.validation import LARGEST_FEATURE, FileKey

MEANINGS = {
    "request": FileKey("text or number", "Which request the row is for; with it, the file can be replayed.", "none"),
    "arm": FileKey("text", "The arm that answered."),
    "reward": FileKey("number, from 0", "What it paid."),
    "cost": FileKey("number, from 0", "What it cost."),
    "segment": FileKey("text", "The segment of the request.", "one segment"),
}
"""The meanings that a column may have."""

REQUIRED_MEANINGS = tuple(meaning for meaning, about in MEANINGS.items() if not about.default)
"""The meanings that a table must have a column for."""

FLAGS = {"true": 1.0, "false": 0.0}
"""Words that stand for a feature's value, in small letters or capitals."""


def _no_features() -> Array:
    return np.zeros((0, 0))


@dataclass(frozen=True)
class Records:
    """Recorded outcomes by column, in the table's own units; arms, requests and segments are numbers.

    features  the numbers of each row's request, as (row, feature)
    """

    arms: tuple[str, ...]
    arm: NDArray[np.int64]
    reward: Array
    cost: Array
    request: NDArray[np.int64] | None
    segments: tuple[str, ...]
    segment: NDArray[np.int64] | None
    feature_names: tuple[str, ...] = ()
    features: Array = field(default_factory=_no_features)


def parse_columns(text: str, meanings: Collection[str] = MEANINGS) -> dict[str, str]:
    """The columns of a table by their meaning, from text.

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


def read_csv(path: str | Path, columns: Mapping[str, str] | None = None, features: Any = ()) -> Records:
    """The records of a CSV file with a header; ``columns`` maps meanings to headers that are called otherwise.

    ``features`` are the columns that hold features, or the path of a second CSV file: it has a row for each request,
    which its request column names as the first file's does, and a feature in each other column.
    """
    table = csv_columns(path)
    second = csv_columns(features) if isinstance(features, str | Path) else features
    try:
        return read_table(table, columns, second)
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


def read_table(table: Any, columns: Mapping[str, str] | None = None, features: Any = ()) -> Records:
    """The records of a mapping of columns, or of a frame of polars or pandas.

    ``features`` is a sequence of columns, or a second mapping or frame.

    >>> table = {"request": [7, 7], "arm": ["a", "b"], "reward": [1, 0.5], "cost": [0.2, 3]}
    >>> records = read_table(table, features={"request": [7], "log_length": [4.5]})
    >>> records.arms, records.feature_names, records.features.tolist()
    (('a', 'b'), ('log_length',), [[4.5], [4.5]])
    """
    values = named_columns(table, columns, MEANINGS, REQUIRED_MEANINGS)
    if not values["arm"]:
        raise ProblemError("there are no rows; record at least one outcome of every arm")
    arms, arm = numbered(values["arm"])
    segments, segment = numbered(values["segment"]) if "segment" in values else ((), None)
    request = numbered(values["request"])[1] if "request" in values else None
    reward, cost = (numbers(values[column], column) for column in ("reward", "cost"))
    records = Records(arms, arm, reward, cost, request, segments, segment)
    if isinstance(features, Sequence):
        return replace(records, feature_names=tuple(features), features=_features(table, features))
    if "request" not in values:
        raise ProblemError(
            "no column says which request a row is for, and features are; name it: columns=request=COLUMN"
        )
    try:
        return replace(records, **_joined(values["request"], features, (columns or {}).get("request", "request")))
    except ProblemError as error:
        raise ProblemError(f"features: {error}") from None


def _features(table: Any, names: Sequence[str]) -> Array:
    """The values of these columns as (row, feature)."""
    present = list(getattr(table, "columns", table))
    for name in names:
        if name not in present:
            raise ProblemError(f"no column {name!r:.60}; the columns are {', '.join(map(str, present))}")
    columns = [
        numbers([FLAGS.get(str(cell).lower(), cell) for cell in table[name]], name, -LARGEST_FEATURE, LARGEST_FEATURE)
        for name in names
    ]
    return np.column_stack(columns) if columns else _no_features()


def _joined(requests: Sequence[Any], table: Any, column: str) -> dict[str, Any]:
    """The features of these requests in a table that has a row for each."""
    present = list(map(str, getattr(table, "columns", table)))
    if column not in present:
        raise ProblemError(f"no column {column!r} says the request; the columns are {', '.join(present)}")
    names = tuple(name for name in present if name != column)
    if not names:
        raise ProblemError(f"there is no column but {column!r}; give each feature one")
    keys = list(map(str, table[column]))
    place = {key: row for row, key in enumerate(keys)}
    if len(place) < len(keys):
        twice = next(row for row, key in enumerate(keys) if place[key] != row)
        raise ProblemError(f"request {keys[twice]!r:.40} is in rows {twice + 1} and {place[keys[twice]] + 1}; keep one")
    for row, key in enumerate(map(str, requests)):
        if key not in place:
            raise ProblemError(f"none for request {key!r:.40}, which row {row + 1} of the outcomes is for; add its row")
    rows = [place[str(key)] for key in requests]
    return {"feature_names": names, "features": _features(table, names)[rows]}


def named_columns(
    table: Any, columns: Mapping[str, str] | None, meanings: Collection[str], required: Sequence[str]
) -> dict[str, list[Any]]:
    """The columns of a table by their meaning: as ``columns`` says, or by their own names."""
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
    """The distinct values as text, in order of appearance, and the number of the value of each row."""
    number: dict[str, int] = {}
    rows = [number.setdefault(str(value), len(number)) for value in values]
    return tuple(number), np.array(rows, dtype=np.int64)


def numbers(values: list[Any], column: str, least: float = 0.0, bound: float = math.inf) -> Array:
    """The values as finite numbers from ``least`` to ``bound``."""
    result = np.zeros(len(values))
    for row, value in enumerate(values):
        try:
            result[row] = float(value)
        except (TypeError, ValueError):
            result[row] = math.nan
        if not (math.isfinite(result[row]) and least <= result[row] <= bound):
            wanted = f"from {least:g} upwards" if bound == math.inf else f"between {least:g} and {bound:g}"
            raise ProblemError(f"{column} {value!r:.40} in row {row + 1} is not a number {wanted}; fix that row")
    return result


@dataclass(frozen=True)
class ReplayTable:
    """The reward and cost of every arm for every request; NaN where they were not recorded.

    rewards, costs  as (request, arm), in the table's own units
    segment         the number of each request's segment; 0 if there are none
    features        the numbers of each request, as (request, feature); no columns if there are none
    """

    arms: tuple[str, ...]
    segments: tuple[str, ...]
    rewards: Array
    costs: Array
    segment: NDArray[np.int64]
    feature_names: tuple[str, ...] = ()
    features: Array = field(default_factory=_no_features)

    def __post_init__(self) -> None:
        if not self.feature_names:
            object.__setattr__(self, "features", np.zeros((len(self), 0)))
        if len(set(self.feature_names)) < len(self.feature_names):
            raise ProblemError(f"two features have one name: {', '.join(self.feature_names)}; name each once")
        wanted = len(self), len(self.feature_names)
        if self.features.shape != wanted or not np.isfinite(self.features).all():
            raise ProblemError(f"features of shape {self.features.shape}; give finite numbers of shape {wanted}")

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
        segment = np.zeros(shape[0], dtype=np.int64)
        if records.segment is not None:
            segments, numbers_of = _aligned(segments, records.segments)
            segment[records.request] = numbers_of[records.segment]
            if (segment[records.request] != numbers_of[records.segment]).any():
                raise ProblemError("the rows of one request name different segments; give each request one")
        names = records.feature_names
        features = np.zeros((shape[0], len(names)))
        if names:
            features[records.request] = records.features
            for row, column in np.argwhere(features[records.request] != records.features)[:1]:
                raise ProblemError(
                    f"{names[column]} in row {row + 1} differs from another row's of that request; fix one"
                )
        segments = () if records.segment is None else segments
        return cls(arms, segments, rewards, costs, segment, names, features)

    @classmethod
    def from_csv(
        cls, path: str | Path, columns: Mapping[str, str] | None = None, features: Any = (), **first: tuple[str, ...]
    ) -> ReplayTable:
        """The table of a CSV file; ``columns`` and ``features`` are as for `read_csv`."""
        records = read_csv(path, columns, features)
        try:
            return cls.from_records(records, **first)
        except ProblemError as error:
            raise ProblemError(f"{path}: {error}") from None

    def without_segments(self) -> ReplayTable:
        """The table with all requests in one segment."""
        return replace(self, segments=(), segment=np.zeros_like(self.segment))

    def without_features(self) -> ReplayTable:
        """The table without the features of requests."""
        return replace(self, feature_names=())


def _aligned(first: tuple[str, ...], names: tuple[str, ...]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    together = tuple(dict.fromkeys((*first, *names)))
    return together, np.array([together.index(name) for name in names], dtype=np.int64)
