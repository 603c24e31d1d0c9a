"""NPTS-ratio and empirical IMED: policies for any law of reward and cost in [0, 1], correlated or not.

    npts-ratio       draw w ~ Dirichlet(1, …, 1) over the arm's observed pairs and the pair (1, 0), for every arm; pull
                     argmax Σw·R / Σw·C. Since that is at least ρ just where Σw(R − ρC) ≥ 0, it is non-parametric
                     Thompson sampling of R − ρC for every ρ at once. No first pulls: an arm never pulled scores +∞
    empirical-imed   pull argmin κ n D(ρ̂) + ln n with D(ρ) = max{ mean of ln(1 − λ(R − ρC)) : 0 ≤ λ ≤ 1 }, the relative
                     entropy from the observed pairs to the nearest law on [0, 1]² with ratio ρ (`divergence`)

Both look at pairs, so correlation counts. What is kept of an arm is a histogram: outcomes are rounded to multiples of
1/``steps`` at random, up or down, so that their means stay; multiples are kept as they are. With 20 steps halves,
quarters, fifths, tenths and twentieths are. Weights of equal pairs add up to a Gamma variate, which is drawn instead.
No regret is proved of either for ratios; for rewards alone both rules attain the lower bound.

Riou, Honda: Bandit Algorithms Based on Thompson Sampling for Bounded Reward Distributions. ALT 2020 (NPTS).
Honda, Takemura: Non-Asymptotic Analysis of a New Bandit Algorithm for Semi-Bounded Rewards. JMLR 16, 2015 (IMED).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Arms, Array
from budgetbandits.numerics.compilation import compiled
from budgetbandits.numerics.divergence import empirical_divergence
from budgetbandits.policies.base import NOT_IN_PRINT, NOTHING_KNOWN, Knowledge, UnitChange
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.sampling import Posterior, SamplingPolicy
from budgetbandits.policies.statistics import Tally, corner_shares

STEPS_MAX = 100
"""More would make a histogram of more than ten thousand cells."""

GRID_TOLERANCE = 1e-9
"""Values this close to a grid point count as on it."""


@compiled
def rounded(value: float, steps: int, rng: np.random.Generator) -> int:
    """How many steps a value is, rounded at random so that the mean stays; a multiple takes no draw."""
    scaled = value * steps
    low = int(scaled + GRID_TOLERANCE)
    rest = scaled - low
    if rest <= GRID_TOLERANCE:
        return low
    return low + 1 if rng.random() < rest else low


def npts_score(statistics: Array, rng: np.random.Generator, steps: float) -> float:
    """Σw·R / Σw·C of one draw of the weights."""
    side = int(steps) + 1
    reward, cost = rng.standard_exponential(), 0.0  # the pair (1, 0)
    for cell in np.flatnonzero(statistics):
        weight = rng.standard_gamma(statistics[cell])
        reward += weight * (cell // side) / steps
        cost += weight * (cell % side) / steps
    if cost > 0.0:
        return float(reward / cost)
    return math.inf


def npts_learn(statistics: Array, reward: float, cost: float, rng: np.random.Generator, steps: float) -> None:
    """Count the outcome in its cell."""
    whole = int(steps)
    row = rounded(reward, whole, rng)
    statistics[row * (whole + 1) + rounded(cost, whole, rng)] += 1.0


def check_steps(policy: str, steps: float) -> None:
    """Refuse a number of steps that is no whole number in range."""
    if not (1.0 <= steps <= STEPS_MAX and float(steps).is_integer()):
        raise BadParameter(f"{policy}: steps is {steps}; use a whole number from 1 to {STEPS_MAX}")


def corners(steps: float) -> list[int]:
    """The cells of the four outcomes of `corner_shares`."""
    side = int(steps) + 1
    return [0, side - 1, side * (side - 1), side * side - 1]


@dataclass(frozen=True)
class NPTSRatio(SamplingPolicy):
    r"""Non-parametric Thompson sampling of the ratio, for any law.

    Draws weights $w \sim \mathrm{Dirichlet}(1, \dots, 1)$ over the arm's observed pairs $(R, C)$ and the pair $(1, 0)$;
    pulls the arm with the largest $\sum w R / \sum w C$. No arm is pulled first by force.

    steps  outcomes are rounded at random to multiples of 1/steps

    >>> policy = NPTSRatio(steps=4)
    >>> state = policy.start(1)
    >>> policy.observe(state, 0, reward=0.75, cost=0.5, rng=np.random.default_rng(1))
    >>> state.statistics.reshape(5, 5)[3].tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """

    name = "npts-ratio"
    reference = NOT_IN_PRINT
    proven = "nothing"
    score = staticmethod(npts_score)
    learn = staticmethod(npts_learn)
    steps: float = 20.0

    def __post_init__(self) -> None:
        check_steps(self.name, self.steps)

    def prior(self) -> tuple[float, ...]:
        return (0.0,) * (int(self.steps) + 1) ** 2

    def extras(self) -> tuple[float, ...]:
        return (float(self.steps),)

    def draw(self, state: Posterior, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        """The scores that `npts_score` draws, of all arms at once."""
        counts = state.statistics if arms is None else state.statistics[:, arms]
        side, seen = int(self.steps) + 1, np.flatnonzero(counts.any(axis=1))
        weights = rng.standard_gamma(counts[seen], size=(rounds, len(seen), counts.shape[1]))
        reward = rng.standard_exponential((rounds, counts.shape[1])) + (seen // side / self.steps) @ weights
        cost = (seen % side / self.steps) @ weights
        return np.asarray(np.divide(reward, cost, out=np.full(cost.shape, np.inf), where=cost > 0.0))

    def add_history(self, state: Posterior, arm: int, pulls: int, reward: float, cost: float) -> None:
        state.pulls[arm] += pulls
        state.statistics[corners(self.steps), arm] += corner_shares(pulls, reward, cost)

    def totals(self, state: Posterior, arm: int) -> tuple[float, float, float]:
        counts, side = state.statistics[:, arm], int(self.steps) + 1
        cells = np.arange(len(counts))
        reward, cost = counts @ (cells // side), counts @ (cells % side)
        return float(state.pulls[arm]), float(reward) / self.steps, float(cost) / self.steps


@dataclass
class Histogram(Tally):
    """Sums, and how often each pair of rounded reward and cost has come up."""

    cells: Array = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True)
class EmpiricalIMED(IndexPolicy[Histogram]):
    r"""IMED-ratio by the observed pairs, for any law.

    Pulls the arm with the least $\kappa n D(\hat\rho) + \ln n$, where $D(\rho)$ is the maximum over
    $0 \le \lambda \le 1$ of the mean of $\ln(1 - \lambda (R - \rho C))$ and $\hat\rho$ the best $\bar r/\bar c$ so far.

    kappa  κ, the factor of the evidence
    steps  outcomes are rounded at random to multiples of 1/steps

    >>> EmpiricalIMED(kappa=1.5).spec
    'empirical-imed:kappa=1.5'
    """

    name = "empirical-imed"
    reference = NOT_IN_PRINT
    proven = "nothing"
    kappa: float = 1.0
    steps: float = 20.0

    def __post_init__(self) -> None:
        self.positive(kappa=self.kappa)
        check_steps(self.name, self.steps)

    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> Histogram:
        return Histogram(**vars(super().start(arms, known)), cells=np.zeros(((int(self.steps) + 1) ** 2, arms)))

    def observe(self, state: Histogram, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        steps = int(self.steps)
        row, column = rounded(reward, steps, rng), rounded(cost, steps, rng)
        super().observe(state, arm, row / steps, column / steps, rng)
        state.cells[row * (steps + 1) + column, arm] += 1.0

    def add_history(self, state: Histogram, arm: int, pulls: int, reward: float, cost: float) -> None:
        super().add_history(state, arm, pulls, reward, cost)
        state.cells[corners(self.steps), arm] += corner_shares(pulls, reward, cost)

    def rescaled(self, state: Histogram, units: UnitChange) -> Histogram | None:
        """Cells are multiples of 1/steps of the old units, which are none of the new ones."""
        return None

    def scores(self, state: Histogram) -> Any:
        side = int(self.steps) + 1
        seen = np.flatnonzero(state.cells.any(axis=1))
        rewards, costs = seen // side / self.steps, seen % side / self.steps
        distance = empirical_divergence(state.cells[seen] / state.seen, rewards, costs, state.best_ratio)
        return -self.kappa * state.seen * distance - np.log(state.seen)
