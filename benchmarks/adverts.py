"""Policies on adverts of a public file: chances of a conversion and prices of a click, as the study of ω-UCB has them.

    python benchmarks/adverts.py KAG_conversion_data.csv             # the policies of the page
    python benchmarks/adverts.py KAG_conversion_data.csv kube bts    # only these

The file is that of a campaign on Facebook, of Kaggle (`KAG_conversion_data.csv`; the table has several versions, and
the one measured here has 625 adverts). Nothing of it ships. Adverts of one age and gender are the arms of a setting:
rewards are conversions by click, costs money by click, both divided by the largest of the setting and times 0.99, and
a reward of 0 is 0.01 before that. Adverts without a cost, or with more conversions than clicks, are left out. A game
is one of the published study: outcomes of 0 and 1, and a budget of N times the smallest mean cost.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from budgetbandits import Problem, simulate
from budgetbandits.experiments.statistics import student
from budgetbandits.formatting.numbers import estimate
from budgetbandits.policies import label

STEPS = (400, 3_000, 15_000)
"""N: how often the cheapest arm could be pulled."""
GAMES = 50
"""Games of each policy in each setting with each budget."""
POLICIES = (
    "gittins-ratio", "gittins-ratio:width=1", "gittins-ratio:width=1.5", "gittins-ratio:lead=1000", "m-ucb",
    "b-greedy", "omega-star-ucb", "omega-ucb", "kube", "c-ucb", "bts", "thompson",
)  # fmt: skip


def settings(path: Path) -> list[Problem]:
    """One problem for each campaign, age and gender."""
    table = pl.read_csv(path).rename(str.lower)
    table = table.filter((pl.col("spent") > 0.0) & (pl.col("clicks") >= pl.col("total_conversion")))
    problems = []
    for _, adverts in table.group_by("xyz_campaign_id", "age", "gender", maintain_order=True):
        clicks = adverts["clicks"].to_numpy().astype(float)
        reward, cost = adverts["total_conversion"].to_numpy() / clicks, adverts["spent"].to_numpy() / clicks
        reward[reward == 0.0] = 0.01
        problems.append(Problem.bernoulli(*(0.99 * means / means.max() for means in (reward, cost))))
    return problems


def measured(problems: list[Problem], policy: str, steps: int, games: int = GAMES) -> np.ndarray:
    """The pseudo-regret of each game, problem by problem."""
    budgets = [steps * float(problem.cost_means.min()) for problem in problems]
    return np.concatenate(
        [
            simulate(problem, policy, [budget], games, seed=place).pseudo_regret[:, 0]
            for place, (problem, budget) in enumerate(zip(problems, budgets, strict=True))
        ]
    )


def main(path: Path, policies: Sequence[str]) -> None:
    problems = settings(path)
    arms = [len(problem) for problem in problems]
    print(f"{sum(arms)} adverts, {len(problems)} settings of {min(arms)} to {max(arms)} arms, {GAMES} games of each")
    print("| policy | " + " | ".join(f"{steps:,} steps" for steps in STEPS) + " |\n|---" + "|---" * len(STEPS) + "|")
    for policy in policies:
        cells = []
        for steps in STEPS:
            score = student(measured(problems, policy, steps)[None])
            mean, half = estimate(float(score.value[0]), float(score.high[0] - score.value[0]))
            cells.append(f"{mean} ± {half}")
        print(f"| {label(policy)} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or POLICIES)
