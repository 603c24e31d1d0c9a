"""The paper's simulations and the verdict on each thing it says about them.

Two studies: *calibrated*, the four panels at 500 runs on a problem that agrees with the paper's numbers
(`calibration`), and *ensemble*, a hundred random problems of each kind at fewer runs. Every claim is measured on both.

All figures are of the pseudo-regret, which has the same mean as the regret (Lemma 2) and only the policy's own scatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from budgetbandits.errors import StudyError
from budgetbandits.experiments import calibration, proven
from budgetbandits.experiments.claims import Claim, claim
from budgetbandits.experiments.plan import Experiment
from budgetbandits.experiments.proven import PanelBounds
from budgetbandits.experiments.results import BTS, Results, wilson
from budgetbandits.experiments.runner import Progress, Workers, run

EPSILON_FIRST = "epsilon-first"
NAMES = {"bts": "BTS", "epsilon-first": "ε-first", "pd-bwk": "PD-BwK", "ucb-bv1": "UCB-BV1", "kube": "KUBE"}
CALIBRATED, ENSEMBLE = "calibrated", "ensemble"


@dataclass(frozen=True)
class Findings:
    """Both studies, and what follows from them; each is worked out once, when it is asked for."""

    calibrated: Results
    ensemble: Results

    @cached_property
    def bounds(self) -> list[PanelBounds]:
        """What is proven of BTS on each of the four panels."""
        return proven.panel_bounds(self.calibrated)

    @cached_property
    def claims(self) -> list[Claim]:
        """Everything the paper observes and proves, in its order."""
        both = self.calibrated, self.ensemble
        return [
            _lowest(*both),
            _stable(*both),
            _more_arms(*both),
            _epsilon_first_scatters(*both),
            _logarithmic(*both),
            proven.theorem_one(*both, self.bounds),
            proven.remark_one(*both),
        ]

    @property
    def is_full(self) -> bool:
        """Whether these are the studies as shipped, and not a quick look."""
        found = {CALIBRATED: self.calibrated, ENSEMBLE: self.ensemble}
        return all(
            found[name].record["runs"] >= whole.runs
            and found[name].budgets == list(whole.budgets)
            and len(found[name].record["problems"]) == len(whole.problems)
            for name, whole in experiments().items()
        )


def experiments(runs: int | None = None, quick: bool = False) -> dict[str, Experiment]:
    """The two studies; ``quick`` is for a look at the machinery, not at the paper."""
    calibrated, ensemble = Experiment.load_shipped("paper"), Experiment.load_shipped("uniform-ensemble")
    if quick:
        few = [problem for place, problem in enumerate(ensemble.problems) if place % 100 < 4]
        ensemble = ensemble.changed(problems=tuple(few), runs=4)
        calibrated = calibrated.changed(runs=20, budgets=tuple(b for b in calibrated.budgets if b <= 10_000))
    if runs is not None:
        calibrated = calibrated.changed(runs=runs)
    return {CALIBRATED: calibrated, ENSEMBLE: ensemble}


def reproduce(
    out: str | Path,
    runs: int | None = None,
    quick: bool = False,
    workers: Workers | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> Findings:
    """Run both studies into ``out``, as far as they are not there already."""
    for name, experiment in experiments(runs, quick).items():
        run(experiment, Path(out) / name, workers, progress, command)
    return load(out)


def load(out: str | Path) -> Findings:
    try:
        return Findings(Results.load(Path(out) / CALIBRATED), Results.load(Path(out) / ENSEMBLE))
    except StudyError as error:
        raise StudyError(f"{error} (for the paper's two studies: budgetbandits paper --out {out})") from None


def is_paper(folder: str | Path) -> bool:
    """Whether a folder holds the two studies of the paper."""
    return (Path(folder) / CALIBRATED / "study.json").exists()


# --- the claims --------------------------------------------------------------------------------------------------


def _lowest(calibrated: Results, ensemble: Results) -> Claim:
    measured, holds = [], []
    summary = at_largest(calibrated)
    for panel in calibrated.groups:
        rivals = summary.filter((pl.col("group") == panel) & (pl.col("policy") != BTS)).sort("mean")
        rival = rivals["policy"][0]
        row = calibrated.differences(BTS, rival).filter(pl.col("group") == panel).row(0, named=True)
        measured.append(
            f"{panel}: BTS {row['first']:,.0f}, {NAMES[rival]} {row['second']:,.0f}; difference "
            f"{row['difference']:+,.0f} [{row['low']:+,.0f}, {row['high']:+,.0f}]"
        )
        holds.append(row["high"] < 0.0)
    best = per_problem(ensemble).sort("mean").group_by("problem", maintain_order=True).first()
    return claim(
        "BTS has the lowest regret in all four panels.",
        f"At B = {calibrated.largest():,.0f} BTS minus the best other policy has a 95 % interval below 0.",
        measured,
        holds,
        (best["policy"] == BTS).to_numpy(),
        _random_problems(ensemble),
    )


def _stable(calibrated: Results, ensemble: Results) -> Claim:
    measured, holds = [], []
    summary = at_largest(calibrated)
    for panel in calibrated.groups:
        rows = summary.filter(pl.col("group") == panel)
        spread = dict(zip(rows["policy"], rows["std"], strict=True))
        middle = float(np.median(list(spread.values())))
        others = ", ".join(f"{NAMES[policy]} {spread[policy]:,.0f}" for policy in calibrated.policies if policy != BTS)
        mean = rows.filter(pl.col("policy") == BTS)["mean"][0]
        measured.append(f"{panel}: BTS {spread[BTS]:,.0f} ({spread[BTS] / mean:.0%} of its mean); {others}")
        holds.append(spread[BTS] < middle)
    wide = per_problem(ensemble).pivot("policy", index="problem", values="std")
    spreads = wide.select(ensemble.policies).to_numpy()
    return claim(
        "The standard deviation of BTS over the runs is small.",
        "It is below the median of the five policies' standard deviations.",
        measured,
        holds,
        spreads[:, ensemble.policies.index(BTS)] < np.median(spreads, axis=1),
        _random_problems(ensemble),
    )


def _more_arms(calibrated: Results, ensemble: Results) -> Claim:
    measured, holds = [], []
    summary = at_largest(calibrated)
    for few, many in _pairs(calibrated.groups):
        parts = []
        for policy in calibrated.policies:
            of = summary.filter(pl.col("policy") == policy)
            first = of.filter(pl.col("group") == few).row(0, named=True)
            second = of.filter(pl.col("group") == many).row(0, named=True)
            error = 1.96 * math.hypot(first["sem"], second["sem"])
            parts.append(f"{NAMES[policy]} {first['mean']:,.0f} → {second['mean']:,.0f}")
            holds.append(second["mean"] - first["mean"] > error)
        measured.append(f"{few} → {many}: " + ", ".join(parts))
    means = per_problem(ensemble)
    rises = []
    for few, many in _pairs(ensemble.groups):
        # the two groups run through the same seeds, so they are compared place by place
        ten = means.filter(pl.col("group") == few).pivot("policy", index="problem", values="mean")
        hundred = means.filter(pl.col("group") == many).pivot("policy", index="problem", values="mean")
        rises.append(
            (hundred.select(ensemble.policies).to_numpy() > ten.select(ensemble.policies).to_numpy()).all(axis=1)
        )
    return claim(
        "From 10 to 100 arms the regret of every policy rises.",
        "At the largest budget, for every policy and both laws, by more than 1.96 standard errors. Random problems: "
        "pairs with the same seed, 10 and 100 arms, on which all five rise.",
        measured,
        holds,
        np.concatenate(rises),
        _random_pairs(ensemble),
    )


def _epsilon_first_scatters(calibrated: Results, ensemble: Results) -> Claim:
    measured, holds = [], []
    summary = at_largest(calibrated)
    for panel in calibrated.groups:
        rows = summary.filter(pl.col("group") == panel).sort("std", descending=True)
        first, second = rows.row(0, named=True), rows.row(1, named=True)
        measured.append(
            f"{panel}: largest {NAMES[first['policy']]} {first['std']:,.0f}, "
            f"then {NAMES[second['policy']]} {second['std']:,.0f}"
        )
        holds.append(first["policy"] == EPSILON_FIRST)
    measured.append(misses(calibrated)["text"])
    widest = per_problem(ensemble).sort("std", descending=True).group_by("problem", maintain_order=True).first()
    return claim(
        "ε-first has by far the largest standard deviation, because it settles on a wrong arm now and then "
        "(in 13 of 500 runs).",
        "Its standard deviation is the largest of the five.",
        measured,
        holds,
        (widest["policy"] == EPSILON_FIRST).to_numpy(),
        _random_problems(ensemble),
    )


def misses(calibrated: Results) -> dict[str, Any]:
    """The paper's analysis of ε-first on panel (a), ours beside it. This one is of the regret itself."""
    budget = calibrated.largest()
    rows = calibrated.table.filter(
        (pl.col("group") == calibrated.groups[0]) & (pl.col("policy") == EPSILON_FIRST) & (pl.col("budget") == budget)
    )
    missed, hit = rows.filter(~pl.col("identified"))["regret"], rows.filter(pl.col("identified"))["regret"]
    low, high = wilson(len(missed), len(rows))
    text = (
        f"{calibrated.groups[0]}, ε-first at B = {budget:,.0f}: best arm missed in {len(missed)} of {len(rows)} runs "
        f"[{low:.1%}, {high:.1%}], mean regret then {_mean(missed)}, otherwise {_mean(hit)}"
    )
    if budget == calibration.BUDGET:
        text += (
            f". The paper: {calibration.MISSED} of {calibration.RUNS}, {calibration.REGRET_MISSED:,.0f} and "
            f"{calibration.REGRET_IDENTIFIED:,.1f}"
        )
    return {"text": text, "missed": len(missed), "runs": len(rows), "regret_missed": missed, "regret_identified": hit}


def _logarithmic(calibrated: Results, ensemble: Results) -> Claim:
    early, middle, late = growth_budgets(calibrated.budgets)
    bar = root_growth(early, middle, late)
    measured, holds = [], []
    for panel in calibrated.groups:
        values = _by_run(calibrated, panel, (early, middle, late))
        ratio, low, high = slope_ratio(values, early, middle, late)
        measured.append(f"{panel}: {ratio:.2f} [{low:.2f}, {high:.2f}]")
        holds.append(high < bar)
    early_, middle_, late_ = growth_budgets(ensemble.budgets)
    wide = ensemble.summary().filter(pl.col("policy") == BTS).pivot("budget", index="problem", values="mean")
    values = wide.select([str(b) for b in (early_, middle_, late_)]).to_numpy()
    slow = np.diff(values, axis=1) / np.diff(np.log([early_, middle_, late_]))
    slopes = slow[:, 1] / np.where(slow[:, 0] > 0, slow[:, 0], np.nan)
    return claim(
        "The regret of BTS grows like ln B (Theorem 1: it is O(ln B)).",
        f"The slope against ln B from {middle:,.0f} to {late:,.0f}, by that from {early:,.0f} to {middle:,.0f}: "
        f"1 is logarithmic growth, {bar:.2f} is growth like √B. Holds if the interval lies below {bar:.2f}: that "
        "tells ln B from √B, not from a small power of B.",
        measured,
        holds,
        slopes < root_growth(early_, middle_, late_),
        _random_problems(ensemble),
    )


# --- how they are measured ---------------------------------------------------------------------------------------


def at_largest(results: Results) -> pl.DataFrame:
    return results.summary(by=("group", "policy", "budget")).filter(pl.col("budget") == results.largest())


def per_problem(results: Results) -> pl.DataFrame:
    return results.summary().filter(pl.col("budget") == results.largest())


def growth_budgets(budgets: Sequence[float]) -> tuple[float, float, float]:
    """The largest budget and those nearest to a fifth and a twenty-fifth of it."""
    late = max(budgets)
    middle = min((b for b in budgets if b < late), key=lambda b: abs(math.log(5 * b / late)))
    early = min((b for b in budgets if b < middle), key=lambda b: abs(math.log(25 * b / late)))
    return early, middle, late


def root_growth(early: float, middle: float, late: float) -> float:
    """The ratio of the two slopes against ln B if the regret grew like √B."""
    slope = [(math.sqrt(b) - math.sqrt(a)) / math.log(b / a) for a, b in ((early, middle), (middle, late))]
    return slope[1] / slope[0]


def slope_ratio(values: np.ndarray[Any, Any], early: float, middle: float, late: float) -> tuple[float, float, float]:
    """(late slope / early slope, 95 % interval) from the same runs at three budgets, by the delta method."""
    first = (values[:, 1] - values[:, 0]) / math.log(middle / early)
    second = (values[:, 2] - values[:, 1]) / math.log(late / middle)
    ratio = float(second.mean() / first.mean())
    rest = second - ratio * first
    half = stats.norm.ppf(0.975) * rest.std(ddof=1) / math.sqrt(len(rest)) / abs(first.mean())
    return ratio, float(ratio - half), float(ratio + half)


def _by_run(results: Results, panel: str, budgets: Sequence[float]) -> np.ndarray[Any, Any]:
    rows = results.table.filter((pl.col("group") == panel) & (pl.col("policy") == BTS))
    wide = rows.pivot("budget", index="run", values="pseudo_regret")
    return wide.select([str(budget) for budget in budgets]).to_numpy()


def _random_problems(ensemble: Results) -> str:
    return f"random problems at B = {ensemble.largest():,.0f}"


def _random_pairs(ensemble: Results) -> str:
    return f"random pairs at B = {ensemble.largest():,.0f}"


def _pairs(groups: Sequence[str]) -> list[tuple[str, str]]:
    return [(groups[0], groups[1]), (groups[2], groups[3])]


def _mean(values: pl.Series) -> str:
    if len(values) == 0:
        return "–"
    mean = float(values.to_numpy().mean())
    if len(values) == 1:
        return f"{mean:,.0f}"
    return f"{mean:,.1f} ± {float(values.to_numpy().std(ddof=1)) / math.sqrt(len(values)):,.1f}"
