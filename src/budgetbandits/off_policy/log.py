"""A log of decisions, in their order: the chosen arm, its propensity, its reward and cost.

Where a column says which arms could be chosen for a request, requests of one segment may differ in that: they are of
several *situations*. Where requests have features, most are a situation of their own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadFeature, BadParameter, MissingExtra, ProblemError, install
from budgetbandits.formatting.tables import csv_text
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.records import csv_columns, named_columns, numbered, numbers
from budgetbandits.validation import FileKey, finite

MEANINGS = {
    "arm": FileKey("text", "The arm that was chosen."),
    "reward": FileKey("number", "What it paid."),
    "cost": FileKey("number", "What it cost."),
    "propensity": FileKey("number, above 0 and up to 1", "How likely the choice was."),
    "segment": FileKey("text", "The segment of the request.", "one segment"),
    "arms": FileKey("JSON list", "The arms that could be chosen; empty for all.", "all"),
    "features": FileKey("JSON object", "Numbers by name, with the same names in all rows.", "none"),
    "failed": FileKey("0 or 1", "With 1 there was no answer: a reward or cost that is missing is 0.", "0"),
}
"""Meanings of columns."""
MUST = tuple(meaning for meaning, about in MEANINGS.items() if not about.default)
"""The columns that a log must have, by their meaning."""


class Situation(NamedTuple):
    """A segment, which arms could be chosen, and the features of the request."""

    segment: int
    arms: tuple[bool, ...]
    features: tuple[float, ...] = ()


@dataclass(frozen=True)
class Log:
    """An entry for each decision, in their order; amounts in the log's own units.

    situation   the number of its situation in ``situations``
    left_out    rows whose reward, cost or propensity is not known
    """

    arms: tuple[str, ...]
    segments: tuple[str, ...]
    situations: tuple[Situation, ...]
    arm: NDArray[np.int64]
    situation: NDArray[np.int64]
    reward: Array
    cost: Array
    propensity: Array
    left_out: int = 0
    feature_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def segment(self) -> NDArray[np.int64]:
        """The number of each decision's segment; 0 if there are none."""
        return np.array([situation.segment for situation in self.situations], dtype=np.int64)[self.situation]

    @property
    def features(self) -> Array:
        """The features of each decision's request, as (decision, feature)."""
        rows = [self.situations[number].features for number in self.situation.tolist()]
        return np.array(rows, dtype=float).reshape(len(self), len(self.feature_names))

    def without_features(self) -> Log:
        """The same decisions, as if nothing but segments were known of requests."""
        seen: dict[Situation, int] = {}
        place = [seen.setdefault(situation._replace(features=()), len(seen)) for situation in self.situations]
        numbers = np.array(place, dtype=np.int64)[self.situation]
        return replace(self, situations=tuple(seen), situation=numbers, feature_names=())

    def part(self, rows: slice) -> Log:
        """Some of the decisions."""
        per_row = ("arm", "situation", "reward", "cost", "propensity")
        return replace(self, **{name: getattr(self, name)[rows] for name in per_row}, left_out=0)

    def aligned(self, other: Log) -> Log:
        """This log with the arms, segments and features of another numbered as there, and its own new arms and segments
        after them."""
        if bool(self.segments) != bool(other.segments):
            raise BadParameter("one of two logs names segments and the other none; read both with them, or without")
        if set(self.feature_names) != set(other.feature_names):
            apart = ", ".join(sorted(set(self.feature_names) ^ set(other.feature_names)))
            raise BadParameter(f"two logs have different features ({apart}); use logs with the same ones")
        order = [self.feature_names.index(name) for name in other.feature_names]
        arms, segments = (_first(*pair) for pair in ((other.arms, self.arms), (other.segments, self.segments)))
        at = np.array([arms.index(name) for name in self.arms], dtype=np.int64)
        of = [segments.index(name) for name in self.segments] or [0]
        situations = []
        for segment, could, features in self.situations:
            wide = [False] * len(arms)
            for place, can in zip(at.tolist(), could, strict=True):
                wide[place] = can
            situations.append(Situation(of[segment], tuple(wide), tuple(features[number] for number in order)))
        return replace(
            self, arms=arms, segments=segments, situations=tuple(situations), arm=at[self.arm],
            feature_names=other.feature_names,
        )  # fmt: skip


def read_log(source: str | Path | Any, columns: Mapping[str, str] | None = None) -> Log:
    """A log from a CSV or Parquet file, a mapping of columns, or a frame of polars or pandas.

    >>> log = read_log({"arm": ["a", "b"], "reward": [1, 0], "cost": [0.2, None], "propensity": [0.5, 0.5]})
    >>> len(log), log.arms, log.left_out
    (1, ('a', 'b'), 1)
    """
    if not isinstance(source, str | Path):
        return _read(source, columns)
    try:
        return _read(table_columns(Path(source)), columns)
    except ProblemError as error:
        text = str(error)
        raise ProblemError(text if str(source) in text else f"{source}: {text}") from None


def table_columns(path: Path) -> Any:
    """The columns of a CSV or Parquet file, as `named_columns` takes them."""
    if path.suffix != ".parquet":
        return {name: [csv_text(cell) for cell in cells] for name, cells in csv_columns(path).items()}
    try:
        import polars
    except ImportError:
        raise MissingExtra(f"Parquet needs polars; {install('lab')}, or export to .csv") from None
    try:
        return polars.read_parquet(path)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise ProblemError(f"cannot read {str(path)!r}: {error!s:.200}; name a Parquet file") from None


def _read(table: Any, columns: Mapping[str, str] | None) -> Log:
    values = named_columns(table, columns, MEANINGS, MUST)
    for row, failed in enumerate(values.get("failed", ())):
        if str(failed).lower() in ("1", "1.0", "true"):
            for what in ("reward", "cost"):
                values[what][row] = 0.0 if _missing(values[what][row]) else values[what][row]
    rows = [row for row in range(len(values["arm"])) if not any(_missing(values[what][row]) for what in MUST[1:])]
    if not rows:
        raise ProblemError(
            "no row has a reward, a cost and a propensity; a campaign records propensities if its terms say "
            "propensity_draws, and has outcomes once they are reported"
        )
    arms, arm = numbered(values["arm"])
    listed = [_listed(cell) for cell in values.get("arms", [None] * len(arm))]
    arms = _first(arms, tuple(dict.fromkeys(name for names in listed for name in names or ())))
    reward, cost, propensity = (numbers([values[what][row] for row in rows], what) for what in MUST[1:])
    for row in np.flatnonzero((propensity <= 0.0) | (propensity > 1.0))[:1]:
        raise ProblemError(f"a propensity is {propensity[row]:g}; a probability above 0 and up to 1 is needed")
    names, segment = _segments(values.get("segment"), len(arm))
    could = [tuple(names is None or name in names for name in arms) for names in listed]
    feature_names, features = _features(values.get("features"), rows)
    seen: dict[Situation, int] = {}
    situation = []
    for row, its_features in zip(rows, features, strict=True):
        if not could[row][arm[row]]:
            raise ProblemError(f"row {row + 1} chose {arms[arm[row]]!r}, which is not among its arms; fix that row")
        situation.append(seen.setdefault(Situation(int(segment[row]), could[row], its_features), len(seen)))
    return Log(
        arms,
        names,
        tuple(seen),
        arm[rows],
        np.array(situation, dtype=np.int64),
        reward,
        cost,
        propensity,
        len(arm) - len(rows),
        feature_names,
    )


def _missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _segments(values: Sequence[Any] | None, rows: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Requests that name no segment are of one of their own, if others do."""
    if values is None or all(map(_missing, values)):
        return (), np.zeros(rows, dtype=np.int64)
    return numbered(["" if _missing(value) else value for value in values])


def _features(cells: Sequence[Any] | None, rows: Sequence[int]) -> tuple[tuple[str, ...], list[tuple[float, ...]]]:
    """The names of the features, and their numbers in each of these rows."""
    if cells is None or all(map(_missing, cells)):
        return (), [()] * len(rows)
    rows_read = []
    names: tuple[str, ...] | None = None
    for row in rows:
        cell = cells[row]
        if _missing(cell):
            raise ProblemError(f"row {row + 1} has no features, as other rows have; fix that row")
        try:
            values = finite("features", json.loads(cell) if isinstance(cell, str) else cell)
        except (ValueError, BadFeature) as error:
            raise ProblemError(f"row {row + 1}: {error}; write features as a JSON object of numbers") from None
        names = tuple(values) if names is None else names
        if values.keys() != set(names):
            apart = ", ".join(sorted(values.keys() ^ set(names)))
            raise ProblemError(f"row {row + 1} has other features than the rows before it ({apart}); fix that row")
        rows_read.append(tuple(values[name] for name in names))
    return names or (), rows_read


def _listed(cell: Any) -> tuple[str, ...] | None:
    """The arms that could be chosen; None for all."""
    if _missing(cell):
        return None
    try:
        names = json.loads(cell) if isinstance(cell, str) else cell
        return tuple(map(str, names))
    except (TypeError, ValueError):
        raise ProblemError(f"arms is {cell!r:.60}; write a list of names as JSON, or nothing for all") from None


def _first(first: tuple[str, ...], then: tuple[str, ...]) -> tuple[str, ...]:
    return first + tuple(name for name in then if name not in first)
