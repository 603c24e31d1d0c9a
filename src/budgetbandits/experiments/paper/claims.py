"""A claim of the paper, what was measured, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetbandits.numerics.intervals import wilson

BORNE_OUT, NOT_BORNE_OUT, DEPENDS = "borne out", "not borne out", "depends"
UNDECIDED, SAYS_NOTHING, PROVEN = "undecided", "says nothing here", "proven"
VERDICTS = (BORNE_OUT, NOT_BORNE_OUT, DEPENDS, UNDECIDED, SAYS_NOTHING, PROVEN)
"""All verdicts on a claim."""

MUCH = 2.0
"""Smallest factor that counts as 'much larger' or 'much better'."""
GENERAL_SHARE, RARE_SHARE = 0.9, 0.1
"""Shares of random problems: a claim holds in general from the first one on, and fails up to the second."""


@dataclass(frozen=True)
class ComparisonCounts:
    """The outcomes of a number of comparisons. ``silent`` are those that could not go against the claim."""

    holds: int = 0
    fails: int = 0
    undecided: int = 0
    silent: int = 0

    @property
    def could_fail(self) -> int:
        """The number of comparisons that could go against the claim."""
        return self.holds + self.fails + self.undecided

    @property
    def comparisons(self) -> int:
        """The number of all comparisons."""
        return self.could_fail + self.silent

    def text(self) -> str:
        """The counts in words, with Wilson's interval of the share that holds if there are enough of them."""
        if self.comparisons == 0:
            return "nothing was compared."
        if self.could_fail == 0:
            return f"none of {self.comparisons} comparisons could fail."
        of = f"of {self.could_fail} comparisons"
        if self.silent:
            of = f"of the {self.could_fail} comparisons that could fail, out of {self.comparisons},"
        share = ""
        if self.could_fail > 10:
            low, high = wilson(self.holds, self.could_fail)
            share = f" ({percent(self.holds / self.could_fail)} [{percent(low)}, {percent(high)}])"
        return f"{of} {self.holds} hold{share}, {self.fails} fail, {self.undecided} are undecided."


def percent(share: float, digits: int = 0) -> str:
    """A share as text in per cent."""
    return f"{100.0 * share:.{digits}f} %"


def count_comparisons(holds: Any, fails: Any, could_fail: Any = None) -> ComparisonCounts:
    """Count comparisons from arrays of truth values; without ``could_fail`` each of them could fail."""
    holds, fails = np.ravel(holds), np.ravel(fails)
    counts = np.full(holds.shape, True) if could_fail is None else np.ravel(could_fail)
    held, failed = int((holds & counts).sum()), int((fails & counts).sum())
    return ComparisonCounts(held, failed, int(counts.sum()) - held - failed, int((~counts).sum()))


@dataclass(frozen=True)
class Claim:
    """Something the paper says, what was measured, and the verdict."""

    says: str
    criterion: str
    measured: tuple[str, ...]
    panels: ComparisonCounts
    """Comparisons on the calibrated problems."""
    random: ComparisonCounts
    """Comparisons on the random problems."""
    among: str
    """The random comparisons, in words."""
    proven: bool = False
    """Whether there is a proof for every problem: then any failure is a mistake in the proof."""

    @property
    def could_fail(self) -> int:
        """The number of comparisons that could fail."""
        return self.panels.could_fail + self.random.could_fail

    @property
    def comparisons(self) -> int:
        """The number of all comparisons."""
        return self.panels.comparisons + self.random.comparisons

    @property
    def verdict(self) -> str:
        """The verdict: borne out on all panels and on most random problems, or not, or dependent on the problem.

        Only comparisons that could fail count; without any the claim is proven or says nothing here. If the verdict
        hangs on how the undecided comparisons would come out, it is undecided too.
        """
        if self.could_fail == 0:
            return PROVEN if self.proven else SAYS_NOTHING
        against = self._judged(self.panels.holds, self.random.holds)
        in_favour = self._judged(self.panels.holds + self.panels.undecided, self.random.holds + self.random.undecided)
        return against if against == in_favour else UNDECIDED

    def _judged(self, on_panels: int, on_random: int) -> str:
        if on_panels == self.panels.could_fail and on_random >= GENERAL_SHARE * self.random.could_fail:
            return BORNE_OUT
        if on_panels == 0 and on_random <= RARE_SHARE * self.random.could_fail:
            return NOT_BORNE_OUT
        return DEPENDS
