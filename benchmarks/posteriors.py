"""Which posterior serves budgeted Thompson sampling best: games of each policy on each of many random problems.

    .venv/bin/python benchmarks/posteriors.py priors       # about 15 minutes of one core
    .venv/bin/python benchmarks/posteriors.py correlated   # about three

Prints the tables of docs/measurements/findings.md and draws the figures of docs/explanation/findings.
``--keep FILE`` keeps the regrets, or reads them if the file is there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from posteriors_figure import draw_correlated, draw_priors

from budgetbandits import Problem, family, simulate_many
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.distributions import Bernoulli, Copula
from budgetbandits.problems.problem import Arm

SEED = 1
ARMS = 10
GAMES = {"priors": (5_000.0, 2, 10), "correlated": (2_000.0, 1, 1)}
"""The budget, and how many games of each policy and of BTS on each problem. Those of BTS are cheap, and every ratio has
them below the line."""
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
STATISTICS: dict[str, Callable[[Array], float]] = {
    "mean": lambda regret: float(np.mean(regret)),
    "median": lambda regret: float(np.quantile(regret, 0.5)),
    "90 %": lambda regret: float(np.quantile(regret, 0.9)),
    "99 %": lambda regret: float(np.quantile(regret, 0.99)),
}
Regrets = Mapping[str, Array]
"""Pseudo-regret of each game by policy, as (problem, game)."""


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


def regrets(name: str, setting: Setting, count: int, budget: float, games: int, games_of_bts: int) -> dict[str, Array]:
    """The games of every policy on this many problems."""
    problem, policies = setting
    problems = {str(number): problem(number) for number in range(count)}
    values = {}
    for policy in policies:
        played = games_of_bts if policy == BTS else games

        def tell(finished: int, total: int, policy: str = policy) -> None:
            print(f"\r{name}, {policy}: {finished:,} of {total:,} games\033[K", end="", file=sys.stderr, flush=True)

        table = simulate_many(problems, policy, [budget], played, SEED, progress=tell)
        values[policy] = table["pseudo_regret"].to_numpy().reshape(count, played)  # rows come by problem, then by run
    print(file=sys.stderr)
    return values


def compared(regret_table: Regrets) -> dict[str, Array]:
    """Each statistic divided by that of BTS, with a 95 % interval from a bootstrap over problems, the same for all."""
    count = len(regret_table[BTS])
    again = np.random.default_rng(SEED).integers(count, size=(RESAMPLES, count))
    result = {}
    for name, statistic in STATISTICS.items():
        ratio = np.array([statistic(games) for games in regret_table.values()]) / statistic(regret_table[BTS])
        resampled = np.array([[statistic(games[rows]) for games in regret_table.values()] for rows in again])
        low, high = np.quantile(resampled / resampled[:, :1], [0.025, 0.975], axis=0)
        result[name] = np.stack([ratio, low, high], axis=1)
    return result


def table(regret_table: Regrets, ratios: dict[str, Array]) -> str:
    """Markdown: the values of BTS, and the others by them."""
    lines = ["| policy | " + " | ".join(STATISTICS) + " |", "|---|" + "---|" * len(STATISTICS)]
    for place, policy in enumerate(regret_table):
        cells = [
            f"{STATISTICS[name](regret_table[BTS]):.0f}"
            if policy == BTS
            else "{:.2f} ({:.2f}–{:.2f})".format(*ratios[name][place])
            for name in STATISTICS
        ]
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def kept(path: Path, settings: Mapping[str, Setting]) -> dict[str, dict[str, Array]]:
    """The regrets that a file holds, by setting and policy."""
    with np.load(path) as held:
        return {name: {policy: held[f"{name}|{policy}"] for policy in setting[1]} for name, setting in settings.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=list(SETTINGS))
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="a .npz file of regrets")
    given = parser.parse_args()
    settings = SETTINGS[given.which]
    if given.keep and given.keep.exists():
        regret_tables = kept(given.keep, settings)
    else:
        regret_tables = {
            name: regrets(name, setting, given.problems, *GAMES[given.which]) for name, setting in settings.items()
        }
        if given.keep:
            named = {
                f"{name}|{policy}": values for name in regret_tables for policy, values in regret_tables[name].items()
            }
            np.savez(given.keep, allow_pickle=False, **named)
    ratios = {name: compared(regret_tables[name]) for name in settings}
    for name in settings:
        print(f"\n{name}, {len(regret_tables[name][BTS]):,} problems\n\n{table(regret_tables[name], ratios[name])}")
    figure = Path(__file__).parents[1] / "docs/figures" / f"{given.which}.png"
    if given.which == "priors":
        draw_priors(ratios, PRIORS, figure)
    else:
        draw_correlated(ratios, CORRELATIONS, figure)


if __name__ == "__main__":
    main()
