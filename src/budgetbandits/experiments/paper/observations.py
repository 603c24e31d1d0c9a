"""What the paper observes about mean regrets, each as a claim that could fail.

The means are of the pseudo-regret, which has only the policy's own scatter. On Bernoulli problems its mean is that of
the regret; on others Lemma 2 bounds the difference.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from budgetbandits.experiments.paper.claims import MUCH, Claim, count_comparisons
from budgetbandits.experiments.results import BTS, Results
from budgetbandits.experiments.slopes import beside_root, games_at, growth_budgets, root_growth, slope_ratio
from budgetbandits.experiments.statistics import SampleMoments, against_rivals, moments, surely, welch
from budgetbandits.numerics.arrays import AnyArray
from budgetbandits.policies.names import NAMES


def lowest(calibrated: Results, ensemble: Results) -> Claim:
    best = ensemble.best()
    sure = best.filter(pl.col("sure"))["policy"].to_list()
    counts = ", ".join(f"{NAMES[policy]} {sure.count(policy)}" for policy in ensemble.policies)
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
            f"{panel}: BTS {row['first']:,.0f}, {NAMES[rival]} {row['second']:,.0f}; difference "
            f"{row['difference']:+,.0f} [{row['low']:+,.0f}, {row['high']:+,.0f}]. BTS is surely the lowest at "
            f"{yes[place]} of {len(calibrated.budgets)} budgets, surely not at {no[place]}"
        )
    return lines


def much_better(calibrated: Results, ensemble: Results) -> Claim:
    on_panels, on_random = (bts_against_others(results, factor=MUCH) for results in (calibrated, ensemble))
    means = calibrated.values().mean(axis=-1)
    own = calibrated.policies.index(BTS)
    measured = []
    for place, panel in enumerate(calibrated.groups):
        others = {policy: means[place, column] for column, policy in enumerate(calibrated.policies) if column != own}
        ratios = ", ".join(f"{NAMES[policy]} {mean / means[place, own]:.2f}" for policy, mean in others.items())
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
    falls, rises = _from_few_to_many(calibrated)
    random_falls, random_rises = _from_few_to_many(ensemble)
    means = calibrated.values().mean(axis=-1)
    measured = []
    for few, many in ((0, 1), (2, 3)):
        parts = (
            f"{NAMES[policy]} {means[few, place]:,.0f} → {means[many, place]:,.0f}"
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
