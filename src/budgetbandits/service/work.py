"""The work of a choice, and its bounds: what one campaign asks for must not keep the others waiting.

Work is counted in units of about a microsecond of one core, and each policy says its own (`Policy.work`). For
``bts-linear`` it grows with arms × columns² (the regressions; columns are features and segments), and with draws × arms
× recent requests; for ``bts-paced`` with draws × arms × segments; for policies that draw scores with draws × arms. The
draws are those for propensities.

A choice of more than `AT_ONCE_MAX` is made by another process, before the transaction that writes it down
(`choice_processes`). One of more than `WORK_MAX` is not made at all: terms, features, arms and segments that would lead
to it are refused. A campaign with a lease decides at once or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from budgetbandits.errors import TooMuchWork
from budgetbandits.policies.base import ChoiceWork, Policy
from budgetbandits.terms import Terms

AT_ONCE_MAX = 3_000.0
"""The work of a choice that is made in the server's own process, between two requests of others."""

WORK_MAX = 200_000.0
"""The work of the largest choice."""

BATCH_WORK_MAX = 20e6
"""The work of a batch of decisions."""

COOLING_DRAWS = 20
"""Draws that a draw for propensities counts for while an arm cools down: each asks what answers in its place."""


@dataclass(frozen=True)
class ChoiceSize:
    """The sizes that the work of a choice follows from.

    columns  features and segments, and one more: 1 without either
    draws    further choices for its propensity
    priced   whether prices have been estimated, which matters for policies with features
    """

    policy: Policy
    arms: int
    columns: int = 1
    draws: int = 0
    priced: bool = False

    @property
    def _work(self) -> ChoiceWork:
        return self.policy.work(self.arms, self.columns, self.draws, self.priced)

    @property
    def work(self) -> float:
        """The work of the first choice, in microseconds, about; 0 for policies that only look at their arms."""
        return sum(self._work)

    @property
    def again(self) -> float:
        """The work of a further choice before anything is learned: what was prepared is there."""
        return self._work.chosen

    @property
    def draws_max(self) -> int:
        """The most draws within the bound; 0 if it is the rest that is too much."""
        least = replace(self, draws=0).work
        return max(int((WORK_MAX - least) / max(replace(self, draws=1).work - least, 1e-9)), 0)


def size_of(policy: Policy, terms: Terms, arms: int, segments: int = 0, priced: bool = False) -> ChoiceSize:
    """The size of a choice by this policy and these terms, once this many segments have been named."""
    columns = 1 + len(terms.features or ()) + max(segments - 1, 0) if policy.uses_features else max(segments, 1)
    return ChoiceSize(policy, arms, columns, int(terms.propensity_draws or 0), priced)


def check_work(policy: Policy, terms: Terms, arms: int, segments: int = 0, priced: bool = False) -> None:
    """Refuse what would make choices too large."""
    size = size_of(policy, terms, arms, segments, priced)
    most = WORK_MAX if terms.lease is None else AT_ONCE_MAX
    if size.work <= most:
        return
    figures = f"{arms:,} arms" + (f", {len(terms.features)} features" if terms.features else "")
    figures += (f", {segments} segments" if segments else "") + (
        f", {size.draws:,} propensity_draws" if size.draws else ""
    )
    lower = "have fewer arms, features or segments"
    if terms.lease is not None:
        lower = "lower them, or leave lease out, which allows " + f"{WORK_MAX / 1e3:g} ms"
    elif size.draws_max:
        lower = f"lower propensity_draws to {size.draws_max:,}, or {lower}"
    raise TooMuchWork(
        f"a choice with {figures} would take some {size.work / 1e3:,.3g} ms, and {most / 1e3:g} ms is the most: {lower}"
    )


def check_batch(size: ChoiceSize, count: int) -> None:
    """Refuse a batch of this many choices that would take too long."""
    most = int(BATCH_WORK_MAX / max(size.again, 1.0))
    if count > most:
        raise TooMuchWork(
            f"a batch of {count:,} would take some {count * size.again / 1e6:,.3g} s in this campaign, and "
            f"{BATCH_WORK_MAX / 1e6:g} s is the most: ask for {most:,} at most, or lower its propensity_draws"
        )
