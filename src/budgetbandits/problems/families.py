"""Families of random problems whose arms are drawn together: the literature's settings, and hard cases.

A family of `problem` draws every reward and every cost alike. These say what all arms of a problem are, because
what makes a problem hard is how its arms stand to each other. Each is a function of a generator and the number of
arms, and the first line of its docstring is what `budgetbandits families` shows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from budgetbandits.problems.distributions import (
    Bernoulli,
    Beta,
    Copula,
    Fixed,
    Independent,
    Lattice,
    Law,
    OutcomeLaw,
    Table,
)

FIVE = (0.0, 0.25, 0.5, 0.75, 1.0)

ArmsFamily = Callable[[np.random.Generator, int], list[OutcomeLaw]]
"""Draws the laws of all arms of a problem."""


def _paired(rewards: list[Law], costs: list[Law]) -> list[OutcomeLaw]:
    return [Independent(reward, cost) for reward, cost in zip(rewards, costs, strict=True)]


def _bernoulli(rewards: np.ndarray, costs: np.ndarray) -> list[OutcomeLaw]:
    return _paired([Bernoulli(mean) for mean in rewards.tolist()], [Bernoulli(mean) for mean in costs.tolist()])


def heyden_bernoulli(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Bernoulli, rewards from U(0, 1), costs from U(0.01, 1): Heyden et al. 2024."""
    return _bernoulli(rng.uniform(0.0, 1.0, arms), rng.uniform(0.01, 1.0, arms))


def heyden_lattice(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """On 0, ¼, ½, ¾, 1 with five weights from U(0, 1), made to sum to 1: Heyden et al. 2024."""

    def laws() -> list[Law]:
        return [Lattice(FIVE, row) for row in rng.uniform(size=(arms, 5)).tolist()]

    return _paired(laws(), laws())


def heyden_beta(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Beta with both parameters from U(0, 5): Heyden et al. 2024."""

    def laws() -> list[Law]:
        return [Beta(a, b) for a, b in rng.uniform(0.0, 5.0, size=(arms, 2)).tolist()]

    return _paired(laws(), laws())


def near_ties(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Bernoulli, every ratio but the best 1 to 10 % below it, costs from U(0.2, 0.8)."""
    costs = rng.uniform(0.2, 0.8, arms)
    ratios = rng.uniform(0.6, 1.2) * np.concatenate([[1.0], 1.0 - rng.uniform(0.01, 0.1, arms - 1)])
    return _shuffled(rng, _bernoulli(ratios * costs, costs))


def rare_cheap(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Bernoulli, the best arm pays and costs in one pull of 20 to 100 only; the others often do both."""
    costs = rng.uniform(0.3, 1.0, arms - 1)
    ratios = rng.uniform(0.2, 1.0, arms - 1)
    cost = rng.uniform(0.01, 0.05)
    ratio = float(ratios.max()) * rng.uniform(1.2, 2.0)
    return _shuffled(rng, _bernoulli(np.append(ratios * costs, ratio * cost), np.append(costs, cost)))


def rare_expensive(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """A third of the arms look cheap until a rare pull costs 1; the others are Bernoulli."""
    traps = max(1, arms // 3)
    costs = rng.uniform(0.2, 0.8, arms - traps)
    honest = _bernoulli(rng.uniform(0.5, 1.0, arms - traps) * costs, costs)
    return _shuffled(rng, honest + [_trap(rng) for _ in range(traps)])


def _trap(rng: np.random.Generator) -> OutcomeLaw:
    """Costs 0.02, and 1 with a chance of 5 to 10 %; pays as much per cost as a poor arm, and more than three times
    that until the rare cost has come."""
    rare = rng.uniform(0.05, 0.1)
    reward = rng.uniform(0.2, 0.5) * (0.02 * (1.0 - rare) + rare)
    rewards, costs = ((1.0, reward), (0.0, 1.0 - reward)), ((0.02, 1.0 - rare), (1.0, rare))
    return Table([[paid, cost, p * q] for paid, p in rewards for cost, q in costs])


def correlated(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Bernoulli, means from U(0.1, 0.9), tied by a Gaussian copula of 0.9: pulls that cost are those that pay."""
    return _tied(rng, arms, 0.9)


def anticorrelated(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Bernoulli, means from U(0.1, 0.9), tied by a Gaussian copula of -0.9: pulls that cost are those that fail."""
    return _tied(rng, arms, -0.9)


def _tied(rng: np.random.Generator, arms: int, correlation: float) -> list[OutcomeLaw]:
    means = rng.uniform(0.1, 0.9, size=(arms, 2)).tolist()
    return [Copula(Bernoulli(reward), Bernoulli(cost), correlation) for reward, cost in means]


def unit_costs(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Every pull costs 1, Bernoulli rewards from U(0, 1): the bandit without prices."""
    return [Independent(Bernoulli(mean), Fixed(1.0)) for mean in rng.uniform(0.0, 1.0, arms).tolist()]


def _shuffled(rng: np.random.Generator, laws: list[OutcomeLaw]) -> list[OutcomeLaw]:
    """In random order, so that no policy gains by pulling arms in theirs."""
    return [laws[place] for place in rng.permutation(len(laws))]


ARMS_FAMILIES: dict[str, ArmsFamily] = {
    "heyden-bernoulli": heyden_bernoulli,
    "heyden-lattice": heyden_lattice,
    "heyden-beta": heyden_beta,
    "near-ties": near_ties,
    "rare-cheap": rare_cheap,
    "rare-expensive": rare_expensive,
    "correlated": correlated,
    "anticorrelated": anticorrelated,
    "unit-costs": unit_costs,
}
