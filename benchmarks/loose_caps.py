"""The loss of `bts-paced` when the largest cost is far above all costs; for docs/measurements/pacing.md.

    python benchmarks/loose_caps.py [PROBLEMS]

Random problems with a budget for 1,000 requests, played as they are and with all costs divided by 100, next to the same
policy with first costs of a quarter and three quarters of the largest cost, whatever was seen. The second is played by
the reference simulator: two hundred problems take some minutes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from budgetbandits import Problem, simulate
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.problems.distributions import Bernoulli, Fixed, Independent, Lattice
from budgetbandits.problems.oracle_horizon import fluid_reward
from budgetbandits.problems.problem import Arm

REQUESTS, SEED = 1000, 7
SHAPES = {
    "fixed": ([1.0], [1]),
    "0.5 to 1.5 times their mean": ([0.5, 0.8, 1.0, 1.2, 1.5], [1] * 5),
    "skewed": ([0.32, 0.48, 0.8, 4.0], [4, 3, 2, 1]),
}
"""Costs in units of the arm's mean cost, with their probabilities."""


@dataclass(frozen=True)
class FixedFirstCosts(PacedThompson):
    """`bts-paced` whose first costs follow the largest cost alone."""

    name: ClassVar[str] = "bts-paced-fixed"

    def prior_cost_scale(self, total: Array, squares: Array) -> Array:
        return np.ones_like(total)


def played(number: int, shape: str, divided: float, policy: PacedThompson) -> float:
    """The reward as a share of the fluid bound."""
    rng = np.random.default_rng([SEED, number])
    arms = int(rng.integers(2, 11))
    costs, rewards = np.exp(rng.uniform(np.log(0.005), np.log(0.2), arms)), rng.uniform(0.1, 0.95, arms)
    times, often = SHAPES[shape]
    laws = [np.array(times) * cost / divided for cost in costs]
    problem = Problem(
        tuple(
            Arm(f"arm-{i}", Independent(Bernoulli(float(mean)), Fixed(float(law[0])) if len(law) == 1 else
                                        Lattice(law.tolist(), often)))
            for i, (mean, law) in enumerate(zip(rewards, laws, strict=True))
        )
    )  # fmt: skip
    means = problem.cost_means
    cheap, costly = means[np.argmax(problem.reward_means / means)], means[np.argmax(problem.reward_means)]
    budget = float(REQUESTS * (cheap + rng.uniform(0.1, 0.9) * max(costly - cheap, 0.2 * cheap)))
    outcome = simulate(problem, policy, [budget], 1, horizon=REQUESTS)
    return float(outcome.reward.mean() / fluid_reward(problem, budget, REQUESTS))


def main(problems: str = "200") -> None:
    print("| costs | divided by | `bts-paced` | fixed first costs |")
    print("|---|---|---|---|")
    for shape in SHAPES:
        for divided in (1.0, 100.0):
            cells = []
            for policy in (PacedThompson(forget=0.0), FixedFirstCosts(forget=0.0)):
                shares = np.array([played(number, shape, divided, policy) for number in range(int(problems))])
                cells.append(f"{shares.mean():.3f} ({shares.std(ddof=1) / len(shares) ** 0.5:.3f})")
            print("|", " | ".join([shape, f"{divided:g}", *cells]), "|", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
