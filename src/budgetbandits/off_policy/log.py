"""A log of decisions, in their order: the chosen arm, its propensity, its reward and cost.

Where a column says which arms could be chosen for a request, requests of one segment may differ in that: they are of
several *situations*.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, MissingExtra, ProblemError
from budgetbandits.formatting.tables import csv_text
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.recorded import csv_columns, named_columns, numbered, numbers

MEANINGS = ("arm", "reward", "cost", "propensity", "segment", "arms", "failed")
"""Meanings of columns. ``arms`` lists the arms that could be chosen, as JSON, and may be empty for all; where
``failed`` is 1 there was no answer: its reward is 0, and its cost is 0 if none was reported."""
MUST = ("arm", "reward", "cost", "propensity")
Situation = tuple[int, tuple[bool, ...]]
"""A segment, and which arms could be chosen."""


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

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def segment(self) -> NDArray[np.int64]:
        """The number of each decision's segment; 0 if there are none."""
        return np.array([segment for segment, _ in self.situations], dtype=np.int64)[self.situation]

    def part(self, rows: slice) -> Log:
        """Some of the decisions."""
        per_row = ("arm", "situation", "reward", "cost", "propensity")
        return replace(self, **{name: getattr(self, name)[rows] for name in per_row}, left_out=0)

    def aligned(self, other: Log) -> Log:
        """This log with the arms and segments of another numbered as there, and its own new ones after them."""
        if bool(self.segments) != bool(other.segments):
            raise BadParameter("one of two logs names segments and the other none; read both with them, or without")
        arms, segments = (_first(*pair) for pair in ((other.arms, self.arms), (other.segments, self.segments)))
        at = np.array([arms.index(name) for name in self.arms], dtype=np.int64)
        of = [segments.index(name) for name in self.segments] or [0]
        situations = []
        for segment, could in self.situations:
            wide = [False] * len(arms)
            for place, can in zip(at.tolist(), could, strict=True):
                wide[place] = can
            situations.append((of[segment], tuple(wide)))
        return replace(self, arms=arms, segments=segments, situations=tuple(situations), arm=at[self.arm])


def read_log(source: str | Path | Any, columns: Mapping[str, str] | None = None) -> Log:
    """A log from a CSV or Parquet file, a mapping of columns, or a frame of polars or pandas.

    >>> log = read_log({"arm": ["a", "b"], "reward": [1, 0], "cost": [0.2, None], "propensity": [0.5, 0.5]})
    >>> len(log), log.arms, log.left_out
    (1, ('a', 'b'), 1)
    """
    if not isinstance(source, str | Path):
        return _read(source, columns)
    try:
        return _read(_columns(Path(source)), columns)
    except ProblemError as error:
        text = str(error)
        raise ProblemError(text if str(source) in text else f"{source}: {text}") from None


def _columns(path: Path) -> Any:
    if path.suffix != ".parquet":
        return {name: [csv_text(cell) for cell in cells] for name, cells in csv_columns(path).items()}
    try:
        import polars
    except ImportError:
        raise MissingExtra("Parquet needs polars; pip install 'budgetbandits[lab]', or export to .csv") from None
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
    known = [not any(_missing(values[what][row]) for what in MUST[1:]) for row in range(len(values["arm"]))]
    if not any(known):
        raise ProblemError(
            "no row has a reward, a cost and a propensity; a campaign records propensities if its terms say "
            "propensity_draws, and has outcomes once they are reported"
        )
    arms, arm = numbered(values["arm"])
    listed = [_listed(cell) for cell in values.get("arms", [None] * len(arm))]
    arms = _first(arms, tuple(dict.fromkeys(name for names in listed for name in names or ())))
    reward, cost, propensity = (
        numbers([value for value, keep in zip(values[what], known, strict=True) if keep], what) for what in MUST[1:]
    )
    for row in np.flatnonzero((propensity <= 0.0) | (propensity > 1.0))[:1]:
        raise ProblemError(f"a propensity is {propensity[row]:g}; a probability above 0 and up to 1 is needed")
    names, segment = _segments(values.get("segment"), len(arm))
    could = [tuple(names is None or name in names for name in arms) for names in listed]
    seen: dict[Situation, int] = {}
    situation = np.array(
        [seen.setdefault(pair, len(seen)) for pair in zip(segment.tolist(), could, strict=True)], dtype=np.int64
    )
    for row in np.flatnonzero(known)[[not could[row][arm[row]] for row in np.flatnonzero(known)]][:1]:
        raise ProblemError(f"row {row + 1} chose {arms[arm[row]]!r}, which is not among its arms; fix that row")
    keep = np.array(known)
    return Log(arms, names, tuple(seen), arm[keep], situation[keep], reward, cost, propensity, int((~keep).sum()))


def _missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _segments(values: Sequence[Any] | None, rows: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Requests that name no segment are of one of their own, if others do."""
    if values is None or all(map(_missing, values)):
        return (), np.zeros(rows, dtype=np.int64)
    return numbered(["" if _missing(value) else value for value in values])


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
