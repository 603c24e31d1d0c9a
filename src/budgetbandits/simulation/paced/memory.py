"""One game for so much money and so many requests: where it stands, and where its arrays are.

A `GAME` is one record, as in the other engines. Its arrays are held by their addresses and kept alive by a `Memory`.
The arms may change on the way, in *phases*: from a request on there are other laws, and other arms are offered.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.policies.paced import PRICED as SUMS
from budgetbandits.simulation.compiled.records import Record
from budgetbandits.simulation.reference import TOLERANCE

WHOLE = ("arms", "phases", "chunk", "max_rounds", "rounds", "phase", "offered", "leader", "last", "opened")
"""Sizes; the rounds played, the phase and how many arms it offers; the arm that was chosen and not pulled and the one
that was pulled last (-1 if none); how many arms have had their first pull handed out."""

MONEY = ("budget", "horizon", "reward", "spent", "drift", "tolerance")
"""Both resources; sums so far, and what rounding has left out of the money spent."""

PACED = ("trials", "forget", "reward_square", "cost_square")
"""Of `bts-paced`: its parameters, and the mean squares of the outcomes that rewards and costs begin with."""

PRICES = ("log_money", "log_time", "width", "money_use", "time_use", "money_growth", "time_growth")
"""Of `primal-dual-bwk`: the logarithms of its prices, and what its methods of the same names say."""

ARRAYS = ("sums", "law", "scales", "rewards", "costs", "who", "first", "offer", "buffer", "used", "filled", "pulls")
"""Of arms: sums of outcomes, parameters of posteriors, what a cost of 1 is, drawn means; the arms on offer now; the
first request of each phase and what it offers; outcomes of each phase and arm that were drawn ahead, and pulls."""

GAME = np.dtype(
    [(name, np.int64) for name in WHOLE]
    + [(name, np.float64) for name in (*MONEY, *PACED, *PRICES)]
    + [(f"{name}_at", np.int64) for name in ARRAYS]
)


class Memory(Record):
    """The record of a game and its arrays, for phases that begin at these requests and offer these arms."""

    def __init__(self, first: Sequence[int], offer: NDArray[np.bool_], chunk: int) -> None:
        super().__init__(GAME)
        phases, arms = offer.shape
        self.point_to(sums=np.zeros((arms, SUMS)), law=np.zeros((arms, 4)), scales=np.ones(arms))
        self.point_to(rewards=np.zeros(arms), costs=np.zeros(arms))
        self.point_to(who=np.zeros(arms, dtype=np.int64), first=np.array([*first], dtype=np.int64))
        self.point_to(offer=offer.astype(np.int64), buffer=np.zeros((phases * arms, chunk, 2)))
        self.point_to(**{name: np.zeros(phases * arms, dtype=np.int64) for name in ("used", "filled", "pulls")})
        self.set(arms=arms, phases=phases, chunk=chunk, leader=-1, last=-1, phase=-1, tolerance=TOLERANCE)
        self._start = self.fields()

    def clear(self, **fields: float) -> None:
        """Make everything ready for a game with these fields."""
        self.restart(self._start)
        self.set(**fields)
        for name in ("sums", "used", "filled", "pulls"):
            self.arrays[name][:] = 0
