"""A claim of the paper, what was measured, and the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from budgetbandits.experiments.results import wilson

BORNE_OUT, NOT_BORNE_OUT, DEPENDS = "borne out", "not borne out", "depends"
MOST, HARDLY_ANY = 0.9, 0.1
"""A claim holds in general if it does on this share of the random problems, and fails if on no more than that."""


@dataclass(frozen=True)
class Claim:
    """Something the paper says, what was measured, and the verdict."""

    says: str
    criterion: str
    measured: tuple[str, ...]
    holds: tuple[bool, ...]
    share: float
    share_low: float
    share_high: float
    problems: int
    among: str
    """What the share is a share of."""

    @property
    def verdict(self) -> str:
        """Borne out: on all panels and on most random problems. Not: on no panel and hardly any. Else it depends."""
        if all(self.holds) and self.share >= MOST:
            return BORNE_OUT
        if not any(self.holds) and self.share <= HARDLY_ANY:
            return NOT_BORNE_OUT
        return DEPENDS


def claim(
    says: str,
    criterion: str,
    measured: list[str],
    holds: list[bool],
    on_problems: np.ndarray[Any, Any],
    among: str,
) -> Claim:
    """The claim with the share of the random problems on which it holds, and Wilson's interval."""
    hits, trials = int(on_problems.sum()), len(on_problems)
    low, high = wilson(hits, trials)
    return Claim(says, criterion, tuple(measured), tuple(holds), hits / trials, float(low), float(high), trials, among)
