"""Families of random problems: the paper's, the literature's settings, and hard cases.

A `Family` draws one law whose mean lies in a range, so that every reward and every cost is drawn alike. An `ArmsFamily`
draws the laws of all arms together, because what makes a problem hard is how its arms compare; the first line of its
docstring is what `budgetbandits families` shows. `family` makes a problem of either kind, by name.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.problems.distributions import (
    Bernoulli,
    Beta,
    Copula,
    Fixed,
    Independent,
    JointTable,
    Lattice,
    Law,
    OutcomeLaw,
)
from budgetbandits.problems.linear import BernoulliFeature, Feature, LinearArm, LinearStream, NormalFeature
from budgetbandits.problems.problem import Problem
from budgetbandits.registry import Registry
from budgetbandits.validation import integer, number, within

FIVE_VALUES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Outcomes of the multinomial families."""

ATTEMPTS_MAX = 100_000
"""Most draws that look for a law whose mean lies in the range."""

# --- one law, its mean in a range -------------------------------------------------------------------------------------


def _uniform_bernoulli(rng: np.random.Generator, low: float, high: float) -> Law:
    """Bernoulli, the mean from U(low, high)."""
    return Bernoulli(rng.uniform(low, high))


def _uniform_multinomial(rng: np.random.Generator, low: float, high: float) -> Law:
    """Dirichlet(1) weights on 0, ¼, ½, ¾, 1, drawn again until the mean lies in the range."""
    support = np.array(FIVE_VALUES)
    for _ in range(ATTEMPTS_MAX):
        weights = rng.dirichlet(np.ones(5), size=8)
        means = weights @ support
        fitting = np.flatnonzero((means >= low) & (means <= high))
        if len(fitting):
            return Lattice(FIVE_VALUES, weights[fitting[0]].tolist())
    raise BadParameter(f"Dirichlet(1) weights hardly ever have a mean in [{low:g}, {high:g}]; widen the range")


def _uniform_beta(rng: np.random.Generator, low: float, high: float) -> Law:
    """Beta, the mean from U(low, high) and a + b from U(1, 10)."""
    mean, concentration = rng.uniform(low, high), rng.uniform(1.0, 10.0)
    return Beta(mean * concentration, (1.0 - mean) * concentration)


Family = Callable[[np.random.Generator, float, float], Law]
"""A function that draws a law whose mean lies in a range."""

FAMILIES: dict[str, Family] = {
    "uniform-bernoulli": _uniform_bernoulli,
    "uniform-multinomial": _uniform_multinomial,
    "uniform-beta": _uniform_beta,
}
"""The families of the package that draw law by law, by name."""

KNOWN_FAMILIES: Registry[Family] = Registry("family", FAMILIES, "budgetbandits.families")
"""The families that draw law by law: those of the package and those from outside it."""


# --- all arms together ------------------------------------------------------------------------------------------------

ArmsFamily = Callable[[np.random.Generator, int], list[OutcomeLaw]]
"""A function that draws the laws of all arms of a problem."""


def _paired(rewards: list[Law], costs: list[Law]) -> list[OutcomeLaw]:
    return [Independent(reward, cost) for reward, cost in zip(rewards, costs, strict=True)]


def _bernoulli(rewards: np.ndarray, costs: np.ndarray) -> list[OutcomeLaw]:
    return _paired([Bernoulli(mean) for mean in rewards.tolist()], [Bernoulli(mean) for mean in costs.tolist()])


def heyden_bernoulli(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Bernoulli, rewards from U(0, 1), costs from U(0.01, 1): Heyden et al. 2024."""
    return _bernoulli(rng.uniform(0.0, 1.0, arms), rng.uniform(0.01, 1.0, arms))


def heyden_lattice(rng: np.random.Generator, arms: int) -> list[OutcomeLaw]:
    """Five values 0, ¼, ½, ¾, 1 with weights from U(0, 1), scaled to sum to 1: Heyden et al. 2024."""

    def laws() -> list[Law]:
        return [Lattice(FIVE_VALUES, row) for row in rng.uniform(size=(arms, 5)).tolist()]

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
    """An arm that costs 0.02, and 1 with a probability of 5 to 10 %. It pays as much per cost as a poor arm, and more
    than three times as much until the rare cost comes."""
    rare = rng.uniform(0.05, 0.1)
    reward = rng.uniform(0.2, 0.5) * (0.02 * (1.0 - rare) + rare)
    rewards, costs = ((1.0, reward), (0.0, 1.0 - reward)), ((0.02, 1.0 - rare), (1.0, rare))
    return JointTable([[paid, cost, p * q] for paid, p in rewards for cost, q in costs])


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
    """The laws in random order, so that no policy gains from the order of the arms."""
    return [laws[place] for place in rng.permutation(len(laws))]


ARMS_FAMILIES: dict[str, ArmsFamily] = {  # the families that draw all arms together, by name
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


# --- problems ---------------------------------------------------------------------------------------------------------


def family(name: str, arms: int, seed: int, low: float = 0.0, high: float = 1.0) -> Problem:
    """A random problem of a named family. In ``uniform-…``, all rewards and costs are drawn independently and alike.

    ``uniform-bernoulli`` draws each mean from U(low, high). ``uniform-multinomial`` puts Dirichlet(1) weights on
    0, ¼, ½, ¾, 1 and keeps those whose mean lies in the range. ``uniform-beta`` draws the mean from U(low, high) and
    a + b from U(1, 10). The others draw all arms together and take no range.

    >>> len(family("uniform-bernoulli", arms=10, seed=3))
    10
    """
    check_family(name, arms, seed, low, high)
    place = list(FAMILIES).index(name) if name in FAMILIES else zlib.crc32(name.encode()) | 1 << 32
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(place, arms)))
    if name in ARMS_FAMILIES:
        if (low, high) != (0.0, 1.0):
            raise BadParameter(f"family {name} says itself which means there are; leave out low and high")
        return Problem.numbered(ARMS_FAMILIES[name](rng, arms))
    draw = KNOWN_FAMILIES[name]
    return Problem.numbered([Independent(reward=draw(rng, low, high), cost=draw(rng, low, high)) for _ in range(arms)])


def check_family(name: str, arms: int, seed: int, low: float, high: float) -> None:
    """Raise an error if `family` cannot draw such a problem."""
    if name not in ARMS_FAMILIES and name not in KNOWN_FAMILIES:
        raise BadParameter(f"unknown family {name!r}; choose one of {', '.join([*KNOWN_FAMILIES, *ARMS_FAMILIES])}")
    integer("arms", arms, 2)
    integer("seed", seed)
    if not 0.0 <= number(low) < number(high) <= 1.0:
        raise BadParameter(f"the range is [{low!r:.40}, {high!r:.40}]; use numbers, 0 <= low < high <= 1")


def two_gap(arms: int, reward_gap: float, cost_gap: float) -> Problem:
    """One Bernoulli arm that pays ½ + reward_gap and costs ½ − cost_gap among others that pay and cost ½.

    >>> problem = two_gap(3, reward_gap=0.1, cost_gap=0.0)
    >>> problem.reward_means / problem.cost_means
    array([1.2, 1. , 1. ])
    """
    for name, gap in (("reward_gap", reward_gap), ("cost_gap", cost_gap)):
        within(name, gap, 0.0, 0.5)
    if cost_gap == 0.5:
        raise BadParameter("cost_gap is 0.5, so the best arm would cost nothing; use less than 0.5")
    if reward_gap == cost_gap == 0.0:
        raise BadParameter("both gaps are 0, so there is no best arm; set reward_gap or cost_gap")
    others = integer("arms", arms, 2) - 1
    return Problem.bernoulli([0.5 + reward_gap, *[0.5] * others], [0.5 - cost_gap, *[0.5] * others])


# --- streams with features --------------------------------------------------------------------------------------------

REWARD_EFFECT, COST_EFFECT = 0.12, 0.4
"""Standard deviations of an arm's mean reward, and of the logarithm of its mean cost, due to features."""

COMMON_EFFECT = 0.5
"""Share of the variance due to features that is common to all arms."""


def linear(features: int, arms: int, seed: int, useless: int = 0) -> LinearStream:
    """A random stream of requests with features, every other one Bernoulli; the last ``useless`` of them are noise.

    Arms cost from 0.02 to 0.2 for a request with features at their means, and those that cost more pay more there, on
    average. All features that are not noise together move mean rewards by 0.12 and logarithms of mean costs by 0.4, of
    which half the variance is common to all arms. Arms without their slopes depend on the seed and their number alone.

    >>> linear(features=5, arms=3, seed=1, useless=2)
    LinearStream(3 arms, 5 features)
    """
    integer("features", features)
    integer("arms", arms, 2)
    integer("seed", seed)
    if not integer("useless", useless) <= features:
        raise BadParameter(f"useless is {useless}, of {features} features; use at most all of them")
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(b"linear"), arms)))
    place = rng.permutation(np.linspace(0.0, 1.0, arms))
    costs = 0.02 * 10.0 ** np.clip(place + rng.normal(0.0, 0.1, arms), 0.0, 1.0)
    rewards = 0.4 + 0.25 * place + rng.uniform(-0.05, 0.05, arms)
    laws: list[Feature] = [
        BernoulliFeature(f"x{number}", float(rng.uniform(0.2, 0.8))) if number % 2 == 0 else NormalFeature(f"x{number}")
        for number in range(1, features + 1)
    ]
    deviations, means = np.array([[law.deviation, law.mean] for law in laws]).reshape(-1, 2).T
    slopes = np.zeros((2, arms, features))
    for table, effect in zip(slopes, (REWARD_EFFECT, COST_EFFECT), strict=True):
        for rows, share in ((1, COMMON_EFFECT), (arms, 1.0 - COMMON_EFFECT)):
            direction = rng.normal(size=(rows, features)) * (np.arange(features) < features - useless)
            length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
            table += effect * share**0.5 * direction / length / deviations
    levels = rewards - slopes[0] @ means, costs * np.exp(-slopes[1] @ means)
    return LinearStream(
        tuple(laws),
        tuple(
            LinearArm(f"arm-{arm + 1}", levels[0][arm], levels[1][arm], tuple(slopes[0, arm]), tuple(slopes[1, arm]))
            for arm in range(arms)
        ),
    )
