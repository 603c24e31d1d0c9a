"""One game of a sampling policy: where it stands, and where its arrays are.

A `GAME` is one record, as in the other engines. Its arrays are held by their addresses and kept alive by the
`SamplingState`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.simulation.engines.runtime.records import RESULTS, Record
from budgetbandits.simulation.reference import TOLERANCE

WHOLE = ("arms", "rows", "chunk", "budgets", "max_rounds", "horizon", "rounds", "checkpoint", "leader")
"""Sizes; how many requests there are; the rounds played, how many budgets have ended, the arm that was chosen and not
pulled (-1 if none)."""

FLOAT = ("reward", "spent", "drift", "tolerance", "reward_unit", "cost_unit")
"""Sums so far; what rounding has left out of the money spent; units, which are 1 here."""

ARRAYS = ("statistics", "extras", "scores", "buffer", "used", "filled", "pulls", "budget", *RESULTS)
"""``extras`` are the further arguments of `score` and `learn`."""

GAME = np.dtype(
    [(name, np.int64) for name in WHOLE]
    + [(name, np.float64) for name in FLOAT]
    + [(f"{name}_at", np.int64) for name in ARRAYS]
)


class SamplingState(Record):
    """The record of a game and its arrays, for arms that start with these statistics, a row for each."""

    def __init__(self, first: Array, budgets: Array, chunk: int, extras: Sequence[float]) -> None:
        super().__init__(GAME)
        arms, rows = first.shape
        self._first = first
        self.point_to(statistics=first.copy(), scores=np.zeros(arms), buffer=np.zeros((arms, chunk, 2)))
        self.point_to(**{name: np.zeros(arms, dtype=np.int64) for name in ("used", "filled", "pulls")})
        self.point_to(budget=budgets, extras=np.array(extras, dtype=float))
        self.keep_results(arms, len(budgets))
        self.set(arms=arms, rows=rows, chunk=chunk, budgets=len(budgets), leader=-1, tolerance=TOLERANCE)
        self.set(reward_unit=1.0, cost_unit=1.0)
        self._start = self.fields()

    def clear(self, max_rounds: int, horizon: int) -> None:
        """Make everything ready for a game."""
        self.restart(self._start)
        self.set(max_rounds=max_rounds, horizon=horizon)
        self.arrays["statistics"][:] = self._first
        for name in ("used", "filled", "pulls"):
            self.arrays[name][:] = 0
