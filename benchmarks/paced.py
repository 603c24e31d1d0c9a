"""Regret against the fluid bound of policies that make a budget last, on random problems; the table of docs/paced.md.

    python benchmarks/paced.py [PROBLEMS]

Bernoulli problems of K arms with means from U(0.05, 1). The budget for a request is 0.3 (tight) or 0.8 (loose) of the
way from the cost of the arm with the best ratio to that of the arm with the highest reward. One game for each problem,
the same problems at every horizon. ± is the standard error over problems; the slope is that of ln regret over ln T from
the first to the last horizon, 0.5 for √T.
"""

from __future__ import annotations

import sys

import numpy as np

from budgetbandits import Problem, family, simulate

POLICIES = ("bts-paced", "primal-dual-bwk")
HORIZONS = (100, 1_000, 10_000)


def rate(problem: Problem, share: float) -> float:
    rewards, costs = problem.reward_means, problem.cost_means
    cheap, dear = costs[(rewards / costs).argmax()], costs[rewards.argmax()]
    return float(cheap + share * (dear - cheap))


def problems(arms: int, count: int) -> list[Problem]:
    """The first random ones in which the best arm for little money is not that for much."""
    found: list[Problem] = []
    seed = 0
    while len(found) < count:
        problem = family("uniform-bernoulli", arms, seed, low=0.05)
        if (problem.reward_means / problem.cost_means).argmax() != problem.reward_means.argmax():
            found.append(problem)
        seed += 1
    return found


def regrets(policy: str, found: list[Problem], share: float, horizon: int) -> np.ndarray:
    games = [
        simulate(each, policy, [max(1, round(rate(each, share) * horizon))], runs=1, horizon=horizon) for each in found
    ]
    return np.array([game.pseudo_regret[0, 0] for game in games])


def main(count: int = 15) -> None:
    print("|", " | ".join(["arms, budget", "T", *POLICIES, "difference"]), "|")
    print("|---" * (len(POLICIES) + 3) + "|")
    for share, name in ((0.3, "tight"), (0.8, "loose")):
        for arms in (3, 20):
            found = problems(arms, count)
            means = {}
            for horizon in HORIZONS:
                values = [regrets(policy, found, share, horizon) for policy in POLICIES]
                means[horizon] = [each.mean() for each in values]
                cells = [f"{each.mean():.1f} ± {error(each):.1f}" for each in (*values, values[1] - values[0])]
                print("|", " | ".join([f"{arms}, {name}", f"{horizon:,}", *cells]), "|", flush=True)
            slopes = np.log(np.divide(means[HORIZONS[-1]], means[HORIZONS[0]])) / np.log(HORIZONS[-1] / HORIZONS[0])
            print(
                "|",
                " | ".join([f"{arms}, {name}", "slope", *(f"{slope:.2f}" for slope in slopes), ""]),
                "|",
                flush=True,
            )


def error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
