"""What the paper observes about standard deviations over the runs, each as a claim that could fail.

The paper does not say of which regret. Here it is ρ*B less the reward of the run, so the scatter is that of the rewards
and costs as well as the policy's own; that of the pseudo-regret, the policy's own alone, stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from budgetbandits.experiments.paper import calibration
from budgetbandits.experiments.paper.claims import MUCH, Claim, ComparisonCounts, count_comparisons, percent
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.statistics import RESAMPLES, bootstrap_interval, moments, resampled_std
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.numerics.intervals import half_width, wilson
from budgetbandits.policies.names import NAMES

EPSILON_FIRST = "epsilon-first"


class SpreadRatio(NamedTuple):
    """A ratio of standard deviations on each problem, with its interval."""

    value: AnyArray
    low: AnyArray
    high: AnyArray
    pseudo: AnyArray
    """The ratio of the standard deviations of the pseudo-regret, which decides nothing."""

    def below(self, bar: float) -> ComparisonCounts:
        return count_comparisons(self.high < bar, self.low > bar)

    def above(self, bar: float) -> ComparisonCounts:
        return count_comparisons(self.low > bar, self.high < bar)

    def text(self, place: int) -> str:
        return f"{self.value[place]:.2f} [{self.low[place]:.2f}, {self.high[place]:.2f}]"

    def beside(self, place: int) -> str:
        return f"of the pseudo-regret {self.pseudo[place]:.2f} times"


@dataclass(frozen=True)
class Spreads:
    """The standard deviations of the regret at a study's largest budget."""

    results: Results
    std: AnyArray
    """Problem × policy."""
    again: AnyArray
    """Standard deviations of runs drawn again: sample × problem × policy, each policy by itself."""
    pseudo: AnyArray
    """Of the pseudo-regret, problem × policy."""

    @classmethod
    def of(cls, results: Results) -> Spreads:
        values = results.values("regret")
        return cls(results, moments(values).std, resampled_std(values), moments(results.values("pseudo_regret")).std)

    def beside(self, policy: str, others: Callable[[AnyArray], AnyArray]) -> SpreadRatio:
        """A policy's standard deviation by what ``others`` makes of the others', along the last axis."""
        own = self.results.policies.index(policy)
        with np.errstate(invalid="ignore", divide="ignore"):
            found, again, pseudo = (
                of[..., own] / others(np.delete(of, own, axis=-1)) for of in (self.std, self.again, self.pseudo)
            )
        return SpreadRatio(found, *bootstrap_interval(again), pseudo)

    def beside_policy(self, policy: str, other: str) -> SpreadRatio:
        rest = [each for each in self.results.policies if each != policy]
        return self.beside(policy, lambda of: of[..., rest.index(other)])

    def text(self, place: int) -> str:
        """Every policy's on one problem."""
        low, high = bootstrap_interval(self.again[:, place])
        return ", ".join(
            f"{NAMES[policy]} {self.std[place, column]:,.0f} [{low[column]:,.0f}, {high[column]:,.0f}]"
            for column, policy in enumerate(self.results.policies)
        )


def small(calibrated: Spreads, ensemble: Spreads) -> Claim:
    on_panels, on_random = (each.beside(BTS, _median) for each in (calibrated, ensemble))
    bts = calibrated.results.policies.index(BTS)
    shares = calibrated.std[:, bts] / calibrated.results.values("regret").mean(axis=-1)[:, bts]
    return Claim(
        "The standard deviation of the regret of BTS over the runs is small.",
        "The paper does not say beside what. Here: surely below the median of the four others'. " + _how(),
        tuple(
            f"{panel}: {calibrated.text(place)}; that of BTS is {on_panels.text(place)} times the median of the "
            f"others ({on_panels.beside(place)}), and {percent(shares[place])} of its mean regret"
            for place, panel in enumerate(calibrated.results.groups)
        ),
        on_panels.below(1.0),
        on_random.below(1.0),
        f"random problems at B = {ensemble.results.largest():,.0f}",
    )


def epsilon_first_scatters(calibrated: Spreads, ensemble: Spreads) -> Claim:
    on_panels, on_random = (each.beside(EPSILON_FIRST, _largest) for each in (calibrated, ensemble))
    return Claim(
        "The standard deviation of the regret of ε-first is much larger than those of the other algorithms.",
        f"Much larger: surely at least {MUCH:g} times the largest of the four others'; it fails where it is surely "
        f"less than that. {_how()}",
        (
            *(
                f"{panel}: {on_panels.text(place)} times the largest of the others ({on_panels.beside(place)})"
                for place, panel in enumerate(calibrated.results.groups)
            ),
            misses(calibrated.results),
        ),
        on_panels.above(MUCH),
        on_random.above(MUCH),
        f"random problems at B = {ensemble.results.largest():,.0f}",
    )


def steadier_than_epsilon_first(calibrated: Spreads, ensemble: Spreads) -> Claim:
    on_panels, on_random = (each.beside_policy(EPSILON_FIRST, BTS) for each in (calibrated, ensemble))
    return Claim(
        "BTS is much more stable than ε-first.",
        f"The standard deviation of the regret of ε-first is surely at least {MUCH:g} times that of BTS; it fails "
        f"where it is surely less than that. {_how()}",
        tuple(
            f"{panel}: {on_panels.text(place)} times ({on_panels.beside(place)})"
            for place, panel in enumerate(calibrated.results.groups)
        ),
        on_panels.above(MUCH),
        on_random.above(MUCH),
        f"random problems at B = {ensemble.results.largest():,.0f}",
    )


def misses(calibrated: Results) -> str:
    """The paper's analysis of ε-first on panel (a), ours beside it."""
    budget = calibrated.largest()
    rows = calibrated.table.filter(
        (pl.col("group") == calibrated.groups[0]) & (pl.col("policy") == EPSILON_FIRST) & (pl.col("budget") == budget)
    )
    missed, hit = (rows.filter(pl.col("identified") == found)["regret"].to_numpy() for found in (False, True))
    low, high = wilson(len(missed), len(rows))
    text = (
        f"{calibrated.groups[0]}, ε-first at B = {budget:,.0f}: best arm missed in {len(missed)} of {len(rows)} runs "
        f"[{percent(low, 1)}, {percent(high, 1)}], mean regret then {_mean(missed)}, otherwise {_mean(hit)}"
    )
    if budget == calibration.BUDGET:
        text += (
            f". The paper: {calibration.MISSED} of {calibration.RUNS}, {calibration.REGRET_MISSED:,.0f} and "
            f"{calibration.REGRET_IDENTIFIED:,.1f}"
        )
    return text


def _how() -> str:
    return f"Surely: the 95 % interval of the ratio says so, by a bootstrap over the runs ({RESAMPLES:,} resamples)."


def _median(of: AnyArray) -> AnyArray:
    return np.asarray(np.median(of, axis=-1))


def _largest(of: AnyArray) -> AnyArray:
    return np.asarray(of.max(axis=-1))


def _mean(values: AnyArray) -> str:
    if len(values) == 0:
        return "–"
    if len(values) == 1:
        return f"{values[0]:,.0f}"
    half = half_width(values.std(ddof=1) / math.sqrt(len(values)), len(values))
    return f"{values.mean():,.1f} ± {half:,.1f}"
