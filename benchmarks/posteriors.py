"""Which posterior serves budgeted Thompson sampling best: one game of each policy on each of many random problems.

    .venv/bin/python benchmarks/posteriors.py priors       # about four minutes of one core
    .venv/bin/python benchmarks/posteriors.py correlated   # about three

Prints the tables of docs/findings/priors.md or correlated.md and draws their figure in docs/figures. ``--keep FILE``
keeps the regrets, or reads them if the file is there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from posteriors_figure import draw_correlated, draw_priors

from budgetbandits import Problem, family, parse_policy, simulate
from budgetbandits.arrays import Array
from budgetbandits.laws import Bernoulli, Copula
from budgetbandits.problem import Arm

SEED = 1
ARMS = 10
BUDGET = 2_000.0
RESAMPLES = 2_000
BTS = "bts"
PRIORS = (
    BTS,
    "bts:prior_reward=jeffreys,prior_cost=jeffreys",
    "bts:kappa=1.5",
    "bts:kappa=2",
    "bts-joint",
    "bts-gaussian",
    "bts-gaussian:sigma=0.25",
)
JOINT = (BTS, "bts-joint")
CORRELATIONS = (-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9)
STATISTICS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda regret: regret.mean(axis=-1),
    "median": lambda regret: np.quantile(regret, 0.5, axis=-1),
    "90 %": lambda regret: np.quantile(regret, 0.9, axis=-1),
    "99 %": lambda regret: np.quantile(regret, 0.99, axis=-1),
}


def correlated(correlation: float, seed: int) -> Problem:
    """Bernoulli arms with means from U(0.1, 0.9); reward and cost are tied by a Gaussian copula."""
    means = np.random.default_rng([SEED, seed]).uniform(0.1, 0.9, size=(ARMS, 2)).tolist()
    laws = [Copula(Bernoulli(reward), Bernoulli(cost), correlation) for reward, cost in means]
    return Problem(tuple(Arm(f"arm-{number + 1}", law) for number, law in enumerate(laws)))


Setting = tuple[Callable[[int], Problem], tuple[str, ...]]
"""The problem with a number, the policies."""

SETTINGS: dict[str, dict[str, Setting]] = {
    "priors": {
        "Bernoulli": (lambda seed: family("uniform-bernoulli", ARMS, seed, low=0.1), PRIORS),
        "five values": (lambda seed: family("uniform-multinomial", ARMS, seed, low=0.1), PRIORS),
        "Beta": (lambda seed: family("uniform-beta", ARMS, seed, low=0.1), PRIORS),
    },
    "correlated": {
        f"{correlation:+.1f}": (lambda seed, rho=correlation: correlated(rho, seed), JOINT)  # type: ignore[misc]
        for correlation in CORRELATIONS
    },
}


def regrets(setting: Setting, problems: int) -> Array:
    """The pseudo-regret of one game, as (policy, problem)."""
    problem, policies = setting
    found = np.empty((len(policies), problems))
    for number in range(problems):
        arms = problem(number)
        for place, policy in enumerate(policies):
            outcome = simulate(arms, parse_policy(policy), [BUDGET], 1, seed=SEED)
            found[place, number] = outcome.pseudo_regret[0, 0]
    return found


def compared(found: Array) -> dict[str, Array]:
    """For each statistic its value by that of BTS and a 95 % interval: problems are drawn again, the same for all."""
    rng = np.random.default_rng(SEED)
    again = rng.integers(found.shape[1], size=(RESAMPLES, found.shape[1]))
    result = {}
    for name, statistic in STATISTICS.items():
        ratio = statistic(found) / statistic(found[0])
        resampled = np.array([statistic(found[:, rows]) for rows in again])
        low, high = np.quantile(resampled / resampled[:, :1], [0.025, 0.975], axis=0)
        result[name] = np.stack([ratio, low, high], axis=1)
    return result


def table(policies: tuple[str, ...], found: Array, ratios: dict[str, Array]) -> str:
    """Markdown: the values of BTS, and the others by them."""
    lines = ["| policy | " + " | ".join(STATISTICS) + " |", "|---|" + "---|" * len(STATISTICS)]
    for place, policy in enumerate(policies):
        cells = [
            f"{STATISTICS[name](found[0]):.0f}" if place == 0 else "{:.2f} ({:.2f}–{:.2f})".format(*ratios[name][place])
            for name in STATISTICS
        ]
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=list(SETTINGS))
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="a .npz file of regrets")
    given = parser.parse_args()
    settings = SETTINGS[given.which]
    if given.keep and given.keep.exists():
        found = dict(np.load(given.keep))
    else:
        found = {name: regrets(setting, given.problems) for name, setting in settings.items()}
        if given.keep:
            np.savez(given.keep, **found)
    ratios = {name: compared(found[name]) for name in settings}
    for name, (_, policies) in settings.items():
        print(f"\n{name}, {found[name].shape[1]:,} problems\n\n{table(policies, found[name], ratios[name])}")
    figure = Path(__file__).parents[1] / "docs/figures" / f"{given.which}.png"
    if given.which == "priors":
        draw_priors(ratios, PRIORS, figure)
    else:
        draw_correlated(ratios, CORRELATIONS, figure)


if __name__ == "__main__":
    main()
