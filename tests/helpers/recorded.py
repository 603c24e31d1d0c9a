"""What the engines are tested against: the reference simulator on laws whose k-th outcome is fixed in advance."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Policy
from budgetbandits.problems.distributions import OutcomeLaw
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation import reference


@dataclass
class Recorded(OutcomeLaw):
    """Continuous outcomes from the law's own generator: whoever asks, in whatever batches, the k-th is the same.

    Rewards stay below 0.9, because KL-UCB has ties at 1.
    """

    reward: float
    cost: float
    seed: int
    fixed_cost: bool = False
    kind = "recorded"
    _rng: np.random.Generator = field(default_factory=np.random.default_rng)

    def rewind(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    @property
    def reward_mean(self) -> float:
        return self.reward

    @property
    def cost_mean(self) -> float:
        return self.cost

    def sample(self, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
        u = self._rng.random((size, 2))
        costs = np.full(size, self.cost) if self.fixed_cost else u[:, 1] ** (1.0 / self.cost - 1.0)
        return 0.9 * u[:, 0] ** (1.0 / self.reward - 1.0), costs

    def cost_atoms(self) -> None:
        return None


def recorded_problem(arms: int, seed: int, low: float = 0.1, high: float = 0.95, fixed_cost: bool = False) -> Problem:
    means = np.random.default_rng(seed).uniform(low, high, (arms, 2))
    return Problem(
        tuple(
            Arm(f"arm-{i}", Recorded(float(r), float(c), seed * 100_003 + i, fixed_cost))
            for i, (r, c) in enumerate(means)
        )
    )


def rewound(problem: Problem) -> Problem:
    for arm in problem.arms:
        arm.law.rewind()  # type: ignore[attr-defined]
    return problem


def same_games(expected: list[reference.Game], games: list[reference.Game]) -> bool:
    """Pull for pull; sums of floats may be rounded otherwise."""
    return all(
        a[2] == b[2] and (a[3] == b[3]).all() and abs(a[0] - b[0]) < 1e-7 and abs(a[1] - b[1]) < 1e-7
        for a, b in zip(expected, games, strict=True)
    )


def naive_sample(problem: Problem, policy: Policy, budgets: list[float], runs: int, seed: int) -> Array:
    """Games of the reference simulator, as `comparing.sample` has those of an engine."""
    games = (play_naively(problem, policy, budgets, seed + run) for run in range(runs))
    return np.array([np.concatenate([[*each[:3], *each[3]] for each in game]) for game in games])


def play_naively(problem: Problem, policy: Policy, budgets: list[float], seed: int) -> list[reference.Game]:
    rng = np.random.default_rng(seed)
    if policy.anytime:
        return reference.play(problem, policy, budgets, rng, rng, 10**9)
    games = []
    for budget in budgets:
        games += reference.play(problem, policy, [budget], rng, rng, 10**9)
    return games
