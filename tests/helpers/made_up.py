"""Studies with figures of our own choosing, for which the verdicts are known."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

from budgetbandits import family
from budgetbandits.experiments import Results

POLICIES = ["bts", "epsilon-first", "pd-bwk", "ucb-bv1", "kube"]
GROUPS = ["(a) Bernoulli, 10 arms", "(b) Bernoulli, 100 arms", "(c) Multinomial, 10 arms", "(d) Multinomial, 100 arms"]
BUDGETS = [200.0, 1_000.0, 5_000.0]
SIZES = np.sin(np.arange(1, 25))
SIZES = (SIZES - SIZES.mean()) / SIZES.std(ddof=1)
"""What the runs differ by: mean 0, standard deviation 1, the same runs at every budget."""


@cache
def _problem(number: int) -> dict[str, object]:
    problem = family("uniform-bernoulli", 3, seed=number, low=0.2)
    means = {"reward_means": problem.reward_means.tolist(), "cost_means": problem.cost_means.tolist()}
    return {"arms": 3, "origin": "made up", "toml": problem.to_toml(), "names": list(problem.names), **means}


def study(mean, std=1.0, problems=1, policies=POLICIES, groups=GROUPS, budgets=BUDGETS) -> Results:
    """``mean`` and ``std`` of the regret: numbers, or functions of (group's place, problem's place, policy, budget)."""
    rows, regrets, records = [], [], []
    for place, group in enumerate(groups):
        for number in range(problems):
            name = f"{group} / {number}" if problems > 1 else group
            records.append({"name": name, "group": group, **_problem(number)})
            for policy in policies:
                for budget in budgets:
                    about, by = (f(place, number, policy, budget) if callable(f) else f for f in (mean, std))
                    rows.append((group, name, policy, budget))
                    regrets.append(about + by * np.roll(SIZES, policies.index(policy)))
    cells = pl.DataFrame(rows, schema=["group", "problem", "policy", "budget"], orient="row")
    games = cells.select(pl.all().repeat_by(len(SIZES)).explode()).with_columns(
        run=np.tile(np.arange(len(SIZES)), len(rows)), regret=np.concatenate(regrets), identified=True
    )
    regret, budget = pl.col("regret"), pl.col("budget")
    table = games.with_columns(pseudo_regret=regret, reward=budget - regret, spend=budget, rounds=budget)
    record = {"name": "made up", "policies": policies, "budgets": budgets, "problems": records, "runs": len(SIZES)}
    return Results(table, record)
