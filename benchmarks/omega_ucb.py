"""The published study of ω-UCB played again, and what the defects of its code change.

    budgetbandits run omega-ucb --out out/omega-ucb
    python benchmarks/omega_ucb.py out/omega-ucb           # the figure and the tables
    python benchmarks/omega_ucb.py                         # the effects of the defects alone

The public code is github.com/heymarco/OmegaUCB, commit cfb22de. Nothing of it is run here: each defect is written
down as a rule or a number, and compared with the published rule.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import matplotlib as mpl
import numpy as np

from budgetbandits import family, simulate
from budgetbandits.experiments import Results
from budgetbandits.experiments.statistics import student
from budgetbandits.figures.style import figure_spec, series_styles, settings
from budgetbandits.formatting.numbers import estimate, number
from budgetbandits.policies import PAPER_POLICIES, label
from budgetbandits.policies.general_costs import UCBB2, rate_bound
from budgetbandits.policies.index import where

mpl.use("Agg")
import matplotlib.pyplot as plt

FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "omega-ucb.png"
LIMITS = {"Bernoulli": (2_500, 8_000, 14_000), "Five values": (2_000, 4_000, 4_000), "Beta": (1_000, 7_000, 12_000)}
"""Upper ends of the published figures' axes for 10, 50 and 100 arms."""
PROBLEMS, ROUNDS = 100, 15_000
"""Size of the comparisons of rules with and without a defect: problems, and B divided by the smallest mean cost."""


# --- the study ------------------------------------------------------------------------------------------------------


def draw(results: Results, path: Path) -> None:
    """Mean regret against the share of the budget, on the axes of the published figures, a panel for each group."""
    on = figure_spec(10.0)
    styles = series_styles(results.policies, PAPER_POLICIES)
    rows = -(-len(results.groups) // 3)
    with plt.rc_context(settings(on)):
        figure, grid = plt.subplots(rows, 3, figsize=(on.width, 2.6 * rows + 0.9), layout="constrained", squeeze=False)
        for axes, group in zip(grid.flat, results.groups, strict=False):
            _panel(axes, results, group, styles)
            axes.set_title(group)
            axes.set_ylim(0, highest(group))
            axes.set_xscale("log")
            axes.set_xlim(0.095, 1.03)
            axes.set_xticks([0.1, 0.2, 0.4, 0.7, 1.0], ["0.1", "0.2", "0.4", "0.7", "1"])
            axes.minorticks_off()
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        for axes in grid[-1]:
            axes.set_xlabel("share of the budget")
        for axes in grid[:, 0]:
            axes.set_ylabel("pseudo-regret")
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
        figure.savefig(path, dpi=160)


def highest(group: str) -> int:
    """The upper end of the published axis of a group, such as "Beta, 50 arms"."""
    law, arms = group.removesuffix(" arms").split(", ")
    return LIMITS[law][(10, 50, 100).index(int(arms))]


def _panel(axes: Any, results: Results, group: str, styles: Any) -> None:
    member = np.array([problem["group"] == group for problem in results.record["problems"]])
    shares = np.array(results.budgets) / max(results.budgets)
    for place, policy in enumerate(results.policies):
        difference = student(np.stack([results.values(budget=b)[member, place, 0] for b in results.budgets]))
        style = styles[place]
        colour = figure_spec(10.0).colour(style)
        axes.plot(
            shares,
            difference.value,
            color=colour,
            linestyle=style.line,
            marker=style.marker,
            label=label(policy),
            markersize=2.6,
        )
        if difference.value[-1] < highest(group):  # the bands of the others would hide everything
            axes.fill_between(shares, difference.low, difference.high, color=colour, alpha=0.1, linewidth=0)


def table(results: Results) -> None:
    """Mean ± half its interval, median and largest at the whole budget, as Markdown."""
    groups = np.array([problem["group"] for problem in results.record["problems"]])
    values = results.values()[:, :, 0]
    print("| policy | " + " | ".join(results.groups) + " |")
    print("|---" * (len(results.groups) + 1) + "|")
    for place, policy in enumerate(results.policies):
        cells = []
        for group in results.groups:
            of = values[groups == group, place]
            difference = student(of[None])
            mean, half = estimate(float(difference.value[0]), float(difference.high[0] - difference.value[0]))
            cells.append(f"{mean} ± {half} ({number(float(np.median(of)))}, {number(float(of.max()))})")
        print(f"| {label(policy)} | " + " | ".join(cells) + " |")


# --- the defects ----------------------------------------------------------------------------------------------------


def wilson_lower(mean: float, pulls: float, z: float) -> float:
    """The lower end as the public code computes it: the middle less the half width."""
    successes, squared = mean * pulls, z * z
    middle = (successes + 0.5 * squared) / (pulls + squared)
    half = z / (pulls + squared) * np.sqrt(successes * (pulls - successes) / pulls + squared / 4)
    return float(middle - half)


def negative_lower_ends(rho: float = 0.25, most: int = 1_000) -> tuple[float, float]:
    """The shares of states in which the lower end of an arm's cost is below 0, and exactly 0. The arm has cost nothing
    in n pulls, and t goes from n to 150,000."""
    rng = np.random.default_rng(0)
    pulls = rng.integers(1, most, 100_000)
    rounds = np.exp(rng.uniform(np.log(pulls + 1), np.log(150_000))).astype(int)
    ends = np.array(
        [
            wilson_lower(0.0, float(n), float(np.sqrt(2 * rho * np.log(t + 1))))
            for n, t in zip(pulls, rounds, strict=True)
        ]
    )
    return float((ends < 0.0).mean()), float((ends == 0.0).mean())


def ucb_b2_wrong_gate(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any,
    covariance: Any, alpha: Any,
) -> Any:  # fmt: skip
    """UCB-B2 whose gate asks whether the width of the cost is below the mean reward."""
    share = alpha * np.log(np.maximum(rounds, 1.0)) / pulls
    reward_width = np.sqrt(2.0 * reward_variance * share) + 3.0 * share
    cost_width = np.sqrt(2.0 * cost_variance * share) + 3.0 * share
    price = np.maximum(mean_cost, 1e-10)
    ratio = mean_reward / price
    return where(cost_width < mean_reward, ratio + 1.4 * (reward_width + ratio * cost_width) / price, np.inf)


@dataclass(frozen=True)
class WrongGate(UCBB2):
    """UCB-B2 with the gate of the public code."""

    name: ClassVar[str] = "ucb-b2-wrong-gate"
    index = staticmethod(ucb_b2_wrong_gate)


def compared(first: Any, second: Any, rounds: int = ROUNDS) -> str:
    """Mean regret of two policies on the same Bernoulli problems of ten arms, and the first less the second."""
    problems = [family("heyden-bernoulli", 10, seed) for seed in range(7_000, 7_000 + PROBLEMS)]
    games = np.array([[_regret(problem, policy, rounds) for problem in problems] for policy in (first, second)])
    gap = student((games[0] - games[1])[None])
    means = [number(float(mean)) for mean in games.mean(axis=1)]
    return f"{means[0]} against {means[1]}, difference {gap.value[0]:.0f} [{gap.low[0]:.0f}, {gap.high[0]:.0f}]"


def _regret(problem: Any, policy: Any, rounds: int) -> float:
    budget = rounds * float(problem.cost_means.min())
    return float(simulate(problem, policy, [budget], 1, seed=1).pseudo_regret[0, 0])


def defects() -> None:
    below, exactly = negative_lower_ends()
    print(
        f"Wilson's lower end at a mean cost of 0: negative in {100 * below:.0f} %, 0 in {100 * exactly:.0f} % of states"
    )
    for rounds in (10, 100, 1_000):
        print(f"ln(t + 1) / ln t at t = {rounds}: {np.log(rounds + 1) / np.log(rounds):.4f}")
    for rounds in (15_000, 150_000):
        differences = compared(WrongGate(alpha=2.01), "ucb-b2:alpha=2.01", rounds)
        print(f"UCB-B2, gate on the reward against gate on the cost, N = {rounds:,}: {differences}")
    print(
        "Budget-UCB given min mu_c against given 0.01:",
        compared("budget-ucb:width=2", "budget-ucb:width=2,cost_floor=0.01"),
    )
    assert rate_bound(0.5, 0.5, 0.0, 0.2, 0.0) == np.inf  # the published gate: 0.2 is more than 0.21875 of the cost


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measured = Results.load(sys.argv[1])
        draw(measured, FIGURE)
        table(measured)
    defects()
