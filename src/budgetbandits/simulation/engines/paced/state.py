"""The record of one game with a budget and a horizon, and its arrays.

A `GAME` is one record, as in the other engines. Its arrays are held by address and kept alive by a `PacedRecord`.
The arms may change on the way, in *phases*: from a request on there are other laws, and other arms are offered. In each
phase every segment has a *part* of its own, and the parts of requests come in a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from budgetbandits.policies.paced.statistics import PRICED as SUMS
from budgetbandits.simulation.engines.runtime.records import Record
from budgetbandits.simulation.reference import TOLERANCE

SIZES = (
    "arms",
    "segments",
    "width",
    "parts",
    "chunk",
    "listed",
    "max_rounds",
    "rounds",
    "part",
    "segment",
    "planned",
)
"""Sizes: the arms, the segments that the policy tells apart, the segments that there are, and the parts; whether the
requests' parts are listed; the rounds played, the request's part and segment, and how many arms are planned for."""

CHOICE = ("leader", "last", "opened", "unpriced", "mixed", "upgrade")
"""The arm that was chosen and not pulled and the one that was pulled last (-1 if none); how many arms have had their
first pull handed out, and how many have no cost yet; the segment that mixes two arms, and the more expensive one."""

MONEY = ("budget", "horizon", "reward", "spent", "drift", "tolerance")
"""Both resources; sums so far, and what rounding has left out of the money spent."""

PACED_FIELDS = ("trials", "forget", "pooling", "reward_squares", "cost_squares", "share", "price", "price_if_short")
"""Of `bts-paced`: its parameters, the squares of the two outcomes that rewards and costs begin with, the share of the
costlier arm where two are mixed, the price on money, and what it would be if there were too little for the others."""

PRICE_FIELDS = ("log_money", "log_time", "width_of_bounds", "money_use", "time_use", "money_growth", "time_growth")
"""Of `primal-dual-bwk`: the logarithms of its prices, and what its methods of the same names say."""

ARM_ARRAYS = ("sums", "law", "shift", "scales", "rewards", "costs", "who")
"""Of segments and arms: sums of outcomes, parameters of posteriors, how far segments are apart, drawn means; of arms:
what a cost of 1 is, and the numbers of those that are planned for now."""

SEGMENT_ARRAYS = ("answered", "weight", "arm", "break_price", "break_arm")
"""How many of its requests were answered, and how often it comes by that; the arm that it has in the program, the price
at which it would have a more expensive one, and that."""

PART_ARRAYS = ("first", "list", "offer", "plan", "buffer", "used", "filled", "pulls")
"""The first request of each phase, the parts of all requests; which arms each part offers, and which are planned for
then; its arms' outcomes that were drawn ahead, and pulls."""

GAME = np.dtype(
    [(name, np.int64) for name in (*SIZES, *CHOICE)]
    + [(name, np.float64) for name in (*MONEY, *PACED_FIELDS, *PRICE_FIELDS)]
    + [(f"{name}_at", np.int64) for name in (*ARM_ARRAYS, *SEGMENT_ARRAYS, *PART_ARRAYS)]
)


class PacedRecord(Record):
    """The record of a game and its arrays: phases that begin at these requests, parts that offer these arms and for
    which is planned with those, and the number of segments that the policy tells apart."""

    def __init__(
        self, first: Sequence[int], offer: NDArray[np.bool_], plan: NDArray[np.bool_], segments: int, chunk: int
    ) -> None:
        super().__init__(GAME)
        parts, arms = offer.shape
        self.point_to(sums=np.zeros((segments, arms, SUMS)), law=np.zeros((segments, arms, 4)))
        self.point_to(shift=np.zeros((segments, arms, 4)), scales=np.ones(arms))
        self.point_to(rewards=np.zeros((segments, arms)), costs=np.zeros((segments, arms)))
        self.point_to(who=np.zeros(arms, dtype=np.int64), first=np.array([*first], dtype=np.int64))
        self.point_to(answered=np.zeros(segments), weight=np.ones(segments), break_price=np.zeros(segments))
        self.point_to(**{name: np.zeros(segments, dtype=np.int64) for name in ("arm", "break_arm")})
        self.point_to(
            offer=offer.astype(np.int64), plan=plan.astype(np.int64), buffer=np.zeros((parts * arms, chunk, 2))
        )
        self.point_to(**{name: np.zeros(parts * arms, dtype=np.int64) for name in ("used", "filled", "pulls")})
        self.point_to(list=np.zeros(0, dtype=np.int64))
        self.set(arms=arms, segments=segments, width=parts // len(first), parts=parts, chunk=chunk)
        self.set(leader=-1, last=-1, part=-1, unpriced=arms, tolerance=TOLERANCE)
        self._start = self.fields()

    def clear(self, listed: NDArray[np.int64] | None = None, **fields: float) -> None:
        """Make everything ready for a game with these fields, and with requests of the listed parts."""
        self.restart(self._start)
        if listed is not None:
            self.point_to(list=listed)
            self.set(listed=1)
        self.set(**fields)
        for name in ("sums", "answered", "used", "filled", "pulls"):
            self.arrays[name][:] = 0
