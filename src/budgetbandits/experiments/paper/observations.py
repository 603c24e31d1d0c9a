"""Observations of the paper about mean regrets and standard deviations, each as a claim that could fail.

The means are of the pseudo-regret, which has only the policy's own scatter. On Bernoulli problems it has the same mean
as the regret; on others Lemma 2 bounds the difference.

For standard deviations over the runs the paper does not say which regret it means. Here it is ρ*B less the reward of
the run, which scatters with rewards and costs as well as with the policy; the standard deviation of the pseudo-regret,
which scatters with the policy alone, is given next to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from budgetbandits.experiments.growth import beside_root, games_at, growth_budgets, root_growth, slope_ratio
from budgetbandits.experiments.paper import calibration
from budgetbandits.experiments.paper.claims import MUCH, Claim, ComparisonCounts, count_comparisons, percent
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.statistics import (
    RESAMPLES,
    SampleMoments,
    against_rivals,
    bootstrap_interval,
    moments,
    resampled_std,
    surely,
    welch,
)
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.numerics.intervals import half_width, wilson
from budgetbandits.policies import label

# --- means ------------------------------------------------------------------------------------------------------------


def lowest(calibrated: Results, ensemble: Results) -> Claim:
    """The claim that BTS has the lowest regret."""
    best = ensemble.best()
    sure = best.filter(pl.col("sure"))["policy"].to_list()
    counts = ", ".join(f"{label(policy)} {sure.count(policy)}" for policy in ensemble.policies)
    return Claim(
        "BTS has the lowest regret in all four panels.",
        f"At B = {calibrated.largest():,.0f} the mean regret of BTS is surely below that of each of the four others "
        "(Welch's test, Holm over the four); it fails where one of them is surely below BTS. The interval shown is "
        "that of the best other alone.",
        (
            *_panel_differences(calibrated),
            f"Random problems: which policy is lowest is sure on {len(sure)} of {best.height} ({counts})",
        ),
        count_comparisons(*bts_against_others(calibrated)),
        count_comparisons(*bts_against_others(ensemble)),
        f"random problems at B = {ensemble.largest():,.0f}",
    )


def bts_against_others(results: Results, budget: float | None = None, factor: float = 1.0) -> tuple[AnyArray, AnyArray]:
    """Problem by problem: BTS, its regret taken ``factor`` times, is (surely lower than every other policy, surely
    higher than some other)."""
    of, own = moments(results.values("pseudo_regret", budget)), results.policies.index(BTS)
    of.mean[:, own] *= factor
    of.std[:, own] *= factor
    lower, higher = against_rivals(of, np.full(len(of.mean), own))
    return np.asarray(lower.all(axis=1)), np.asarray(higher.any(axis=1))


def _panel_differences(calibrated: Results) -> list[str]:
    means = calibrated.values().mean(axis=-1)
    means[:, calibrated.policies.index(BTS)] = np.inf
    yes, no = np.array([bts_against_others(calibrated, budget) for budget in calibrated.budgets]).sum(axis=0)
    lines = []
    for place, panel in enumerate(calibrated.groups):
        rival = calibrated.policies[int(means[place].argmin())]
        row = calibrated.differences(BTS, rival).row(place, named=True)
        lines.append(
            f"{panel}: BTS {row['first']:,.0f}, {label(rival)} {row['second']:,.0f}; difference "
            f"{row['difference']:+,.0f} [{row['low']:+,.0f}, {row['high']:+,.0f}]. BTS is surely the lowest at "
            f"{yes[place]} of {len(calibrated.budgets)} budgets, surely not at {no[place]}"
        )
    return lines


def much_better(calibrated: Results, ensemble: Results) -> Claim:
    """The claim that BTS is much better than the other policies."""
    on_panels, on_random = (bts_against_others(results, factor=MUCH) for results in (calibrated, ensemble))
    means = calibrated.values().mean(axis=-1)
    own = calibrated.policies.index(BTS)
    measured = []
    for place, panel in enumerate(calibrated.groups):
        others = {policy: means[place, column] for column, policy in enumerate(calibrated.policies) if column != own}
        ratios = ", ".join(f"{label(policy)} {mean / means[place, own]:.2f}" for policy, mean in others.items())
        measured.append(f"{panel}: {ratios} times the mean regret of BTS")
    return Claim(
        "BTS is much better than the baselines, with a clear advantage over each.",
        f"Much better: at B = {calibrated.largest():,.0f} the mean regret of each of the four others is surely at "
        f"least {MUCH:g} times that of BTS (Welch's test, Holm over the four); it fails where one is surely less.",
        tuple(measured),
        count_comparisons(*on_panels),
        count_comparisons(*on_random),
        f"random problems at B = {ensemble.largest():,.0f}",
    )


def more_arms(calibrated: Results, ensemble: Results) -> Claim:
    """The claim that regret grows with the number of arms."""
    falls, rises = _from_few_to_many(calibrated)
    random_falls, random_rises = _from_few_to_many(ensemble)
    means = calibrated.values().mean(axis=-1)
    measured = []
    for few, many in ((0, 1), (2, 3)):
        parts = (
            f"{label(policy)} {means[few, place]:,.0f} → {means[many, place]:,.0f}"
            for place, policy in enumerate(calibrated.policies)
        )
        measured.append(f"{calibrated.groups[few]} → {calibrated.groups[many]}: " + ", ".join(parts))
    return Claim(
        "From 10 to 100 arms the regret of every policy rises, the budget being the same.",
        f"At B = {calibrated.largest():,.0f} it surely rises, for each policy and both laws (Welch's test, Holm over "
        "the five). Random problems: pairs with the same seed, 10 and 100 arms; it holds where all five policies "
        "surely rise and fails where one surely falls.",
        tuple(measured),
        count_comparisons(rises, falls),
        count_comparisons(random_rises.all(axis=1), random_falls.any(axis=1)),
        f"random pairs at B = {ensemble.largest():,.0f}",
    )


def _from_few_to_many(results: Results) -> tuple[AnyArray, AnyArray]:
    """(surely falls, surely rises), pair × policy. The groups run through the same seeds: they pair place by place."""
    of = moments(results.values())
    groups = np.array([problem["group"] for problem in results.record["problems"]])
    few, many = (
        SampleMoments(*(np.concatenate([part[groups == results.groups[place]] for place in places]) for part in of))
        for places in ((0, 2), (1, 3))
    )
    return surely(welch(many, few))


def logarithmic(calibrated: Results, ensemble: Results) -> Claim:
    """The claim that the regret of BTS grows like the logarithm of the budget."""
    budgets = growth_budgets(calibrated.budgets)
    early, middle, late = budgets
    games = games_at(calibrated, budgets)
    measured = []
    for place, panel in enumerate(calibrated.groups):
        ratio, low, high = slope_ratio(games[place], budgets)
        measured.append(f"{panel}: {ratio:.2f} [{low:.2f}, {high:.2f}]")
    on_panels = beside_root(games, budgets)
    others = growth_budgets(ensemble.budgets)
    on_random = beside_root(games_at(ensemble, others), others)
    return Claim(
        "The regret of BTS is O(ln B) (Theorem 1). Tested: it grows more slowly than √B.",
        f"The slope against ln B from {middle:,.0f} to {late:,.0f}, by that from {early:,.0f} to {middle:,.0f}: "
        f"1 is logarithmic growth, {root_growth(*budgets):.2f} is growth like √B. Holds where it is surely below that "
        "of √B: that tells ln B from √B, not from a small power of B, and O(ln B) is about budgets without end.",
        tuple(measured),
        count_comparisons(on_panels.high < 0.0, on_panels.low > 0.0),
        count_comparisons(on_random.high < 0.0, on_random.low > 0.0),
        f"random problems at B = {ensemble.largest():,.0f}",
    )


# --- standard deviations ----------------------------------------------------------------------------------------------


EPSILON_FIRST = "epsilon-first"
"""The paper's ε-first policy."""


class SpreadRatio(NamedTuple):
    """A ratio of standard deviations on each problem, with its interval."""

    value: AnyArray
    low: AnyArray
    high: AnyArray
    pseudo: AnyArray
    """The ratio of the standard deviations of the pseudo-regret, which decides nothing."""

    def below(self, bar: float) -> ComparisonCounts:
        """The comparisons in which the ratio is significantly below ``bar``, or above it."""
        return count_comparisons(self.high < bar, self.low > bar)

    def above(self, bar: float) -> ComparisonCounts:
        """The comparisons in which the ratio is significantly above ``bar``, or below it."""
        return count_comparisons(self.low > bar, self.high < bar)

    def text(self, place: int) -> str:
        """The ratio on one panel with its interval, as text."""
        return f"{self.value[place]:.2f} [{self.low[place]:.2f}, {self.high[place]:.2f}]"

    def pseudo_text(self, place: int) -> str:
        """The ratio for the pseudo-regret on one panel, as text."""
        return f"of the pseudo-regret {self.pseudo[place]:.2f} times"


@dataclass(frozen=True)
class Spreads:
    """The standard deviations of the regret at a study's largest budget."""

    results: Results
    std: AnyArray
    """Standard deviations of the regret, problem × policy."""
    resampled: AnyArray
    """Standard deviations of bootstrap samples of runs, sample × problem × policy, drawn for each policy apart."""
    pseudo: AnyArray
    """Standard deviations of the pseudo-regret, problem × policy."""

    @classmethod
    def of(cls, results: Results) -> Spreads:
        """The standard deviations of a study."""
        values = results.values("regret")
        return cls(results, moments(values).std, resampled_std(values), moments(results.values("pseudo_regret")).std)

    def relative(self, policy: str, others: Callable[[AnyArray], AnyArray]) -> SpreadRatio:
        """A policy's standard deviation divided by ``others`` of the others', along the last axis."""
        own = self.results.policies.index(policy)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio, resampled, pseudo = (
                values[..., own] / others(np.delete(values, own, axis=-1))
                for values in (self.std, self.resampled, self.pseudo)
            )
        return SpreadRatio(ratio, *bootstrap_interval(resampled), pseudo)

    def relative_to(self, policy: str, other: str) -> SpreadRatio:
        """The standard deviation of a policy divided by that of another."""
        rest = [name for name in self.results.policies if name != policy]
        return self.relative(policy, lambda values: values[..., rest.index(other)])

    def text(self, place: int) -> str:
        """The standard deviations of all policies on one problem, as text."""
        low, high = bootstrap_interval(self.resampled[:, place])
        return ", ".join(
            f"{label(policy)} {self.std[place, column]:,.0f} [{low[column]:,.0f}, {high[column]:,.0f}]"
            for column, policy in enumerate(self.results.policies)
        )


def small_spread(calibrated: Spreads, ensemble: Spreads) -> Claim:
    """The claim that the standard deviation of BTS is small."""
    on_panels, on_random = (spreads.relative(BTS, _median) for spreads in (calibrated, ensemble))
    bts = calibrated.results.policies.index(BTS)
    shares = calibrated.std[:, bts] / calibrated.results.values("regret").mean(axis=-1)[:, bts]
    return Claim(
        "The standard deviation of the regret of BTS over the runs is small.",
        "The paper does not say compared to what. Here: surely below the median of the four others'. " + _how(),
        tuple(
            f"{panel}: {calibrated.text(place)}; that of BTS is {on_panels.text(place)} times the median of the "
            f"others ({on_panels.pseudo_text(place)}), and {percent(shares[place])} of its mean regret"
            for place, panel in enumerate(calibrated.results.groups)
        ),
        on_panels.below(1.0),
        on_random.below(1.0),
        f"random problems at B = {ensemble.results.largest():,.0f}",
    )


def epsilon_first_scatters(calibrated: Spreads, ensemble: Spreads) -> Claim:
    """The claim that ε-first has by far the largest standard deviation."""
    on_panels, on_random = (spreads.relative(EPSILON_FIRST, _largest) for spreads in (calibrated, ensemble))
    return Claim(
        "The standard deviation of the regret of ε-first is much larger than those of the other algorithms.",
        f"Much larger: surely at least {MUCH:g} times the largest of the four others'; it fails where it is surely "
        f"less than that. {_how()}",
        (
            *(
                f"{panel}: {on_panels.text(place)} times the largest of the others ({on_panels.pseudo_text(place)})"
                for place, panel in enumerate(calibrated.results.groups)
            ),
            misses(calibrated.results),
        ),
        on_panels.above(MUCH),
        on_random.above(MUCH),
        f"random problems at B = {ensemble.results.largest():,.0f}",
    )


def steadier_than_epsilon_first(calibrated: Spreads, ensemble: Spreads) -> Claim:
    """The claim that BTS is much more stable than ε-first."""
    on_panels, on_random = (spreads.relative_to(EPSILON_FIRST, BTS) for spreads in (calibrated, ensemble))
    return Claim(
        "BTS is much more stable than ε-first.",
        f"The standard deviation of the regret of ε-first is surely at least {MUCH:g} times that of BTS; it fails "
        f"where it is surely less than that. {_how()}",
        tuple(
            f"{panel}: {on_panels.text(place)} times ({on_panels.pseudo_text(place)})"
            for place, panel in enumerate(calibrated.results.groups)
        ),
        on_panels.above(MUCH),
        on_random.above(MUCH),
        f"random problems at B = {ensemble.results.largest():,.0f}",
    )


def misses(calibrated: Results) -> str:
    """The paper's analysis of ε-first on panel (a), next to ours."""
    budget = calibrated.largest()
    rows = calibrated.table.filter(
        (pl.col("group") == calibrated.groups[0]) & (pl.col("policy") == EPSILON_FIRST) & (pl.col("budget") == budget)
    )
    missed, hit = (rows.filter(pl.col("identified") == identified)["regret"].to_numpy() for identified in (False, True))
    low, high = wilson(len(missed), len(rows))
    text = (
        f"{calibrated.groups[0]}, ε-first at B = {budget:,.0f}: best arm missed in {len(missed)} of {len(rows)} runs "
        f"[{percent(low, 1)}, {percent(high, 1)}], mean regret then {_mean_text(missed)}, otherwise {_mean_text(hit)}"
    )
    if budget == calibration.BUDGET:
        text += (
            f". The paper: {calibration.MISSED} of {calibration.RUNS}, {calibration.REGRET_MISSED:,.0f} and "
            f"{calibration.REGRET_IDENTIFIED:,.1f}"
        )
    return text


def _how() -> str:
    return f"Surely: the 95 % interval of the ratio says so, by a bootstrap over the runs ({RESAMPLES:,} resamples)."


def _median(values: AnyArray) -> AnyArray:
    return np.asarray(np.median(values, axis=-1))


def _largest(values: AnyArray) -> AnyArray:
    return np.asarray(values.max(axis=-1))


def _mean_text(values: AnyArray) -> str:
    if len(values) == 0:
        return "–"
    if len(values) == 1:
        return f"{values[0]:,.0f}"
    half = half_width(values.std(ddof=1) / math.sqrt(len(values)), len(values))
    return f"{values.mean():,.1f} ± {half:,.1f}"
