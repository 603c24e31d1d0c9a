"""One game of a sampling policy: where it stands, and where its arrays are.

A `GAME` is one record, as in the other engines. Its arrays are held by their addresses and kept alive by a `Memory`.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.simulation.engines.runtime.policy_functions import packed
from budgetbandits.simulation.engines.runtime.records import Record
from budgetbandits.simulation.reference import TOLERANCE, Game

EXTRAS = ("first", "second", "third")
"""Further arguments of `score` and `learn`; if there are more, the last stands for the rest (`extras`)."""

WHOLE = ("arms", "rows", "chunk", "budgets", "max_rounds", "horizon", "rounds", "checkpoint", "leader")
"""Sizes; how many requests there are; the rounds played, how many budgets have ended, the arm that was chosen and not
pulled (-1 if none)."""

FLOAT = ("reward", "spent", "drift", "tolerance", *EXTRAS)
"""Sums so far; what rounding has left out of the money spent."""

ARRAYS = (
    "statistics", "scores", "buffer", "used", "filled", "pulls",
    "budget", "out_pulls", "out_reward", "out_spend", "out_rounds",
)  # fmt: skip

GAME = np.dtype(
    [(name, np.int64) for name in WHOLE]
    + [(name, np.float64) for name in FLOAT]
    + [(f"{name}_at", np.int64) for name in ARRAYS]
)


class Memory(Record):
    """The record of a game and its arrays, for arms that start with these statistics, a row for each."""

    def __init__(self, first: Array, budgets: Array, chunk: int) -> None:
        super().__init__(GAME)
        arms, rows = first.shape
        self._first = first
        self.point_to(statistics=first.copy(), scores=np.zeros(arms), buffer=np.zeros((arms, chunk, 2)))
        self.point_to(**{name: np.zeros(arms, dtype=np.int64) for name in ("used", "filled", "pulls")})
        self.point_to(budget=budgets, out_pulls=np.zeros((len(budgets), arms), dtype=np.int64))
        self.point_to(out_reward=np.zeros(len(budgets)), out_spend=np.zeros(len(budgets)))
        self.point_to(out_rounds=np.zeros(len(budgets), dtype=np.int64))
        self.set(arms=arms, rows=rows, chunk=chunk, budgets=len(budgets), leader=-1, tolerance=TOLERANCE)
        self._start = self.fields()

    def clear(self, max_rounds: int, horizon: int, extras: tuple[float, ...]) -> None:
        """Make everything ready for a game."""
        self.restart(self._start)
        slots, self._rest = packed(extras, len(EXTRAS))
        self.set(max_rounds=max_rounds, horizon=horizon, **dict(zip(EXTRAS, map(float, slots), strict=False)))
        self.arrays["statistics"][:] = self._first
        for name in ("used", "filled", "pulls"):
            self.arrays[name][:] = 0

    def results(self) -> list[Game]:
        """How the game stood at the end of each budget."""
        out = [self.arrays[name].tolist() for name in ("out_reward", "out_spend", "out_rounds")]
        return list(zip(*out, self.arrays["out_pulls"].copy(), strict=True))
