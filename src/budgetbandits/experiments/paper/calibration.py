"""Finding a problem like the one of the paper's Figure 1 (a), whose parameters the paper does not give.

It gives three numbers instead, for ε-first with ε = 0.1 on 10 Bernoulli arms at B = 50,000: the best arm was missed in
13 of 500 runs, the mean regret over those was 4630, and 1019.9 over the other 487. The first 5,000 are spent on all
arms in turn, the rest on one arm; so 1019.9 fixes how far the average arm is behind the best, 4630 which arm is taken
for it, and 13 of 500 how hard the two are to tell apart.

The search goes through the seeds of the family of Bernoulli problems with means drawn from U(0.75, 1), the range in
which such problems are the least rare (`likeliest_range`), and takes the first seed that agrees with all three numbers:

    python -m budgetbandits.experiments.paper.calibration
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from scipy import special

from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.problems.families import family
from budgetbandits.problems.problem import Problem
from budgetbandits.simulation.simulate import simulate

BUDGET, EPSILON = 50_000.0, 0.1
RUNS, MISSED = 500, 13
REGRET_MISSED, REGRET_IDENTIFIED = 4630.0, 1019.9
FAMILY, ARMS, LOW, HIGH = "uniform-bernoulli", 10, 0.75, 1.0


@dataclass(frozen=True)
class Agreement:
    """ε-first on a problem, and by how many of the paper's own standard errors the paper's numbers differ from it."""

    miss_rate: float
    regret_missed: float
    regret_identified: float
    deviations: tuple[float, float, float]

    @property
    def worst(self) -> float:
        """The largest of the differences."""
        return max(abs(deviation) for deviation in self.deviations)


def predict(rewards: Array, costs: Array) -> tuple[float, float, float]:
    """(miss rate, regret when missed, when identified), from normal estimates and without a simulation."""
    ratios = rewards / costs
    best = int(ratios.argmax())
    gaps = ratios[best] - ratios
    pulls = EPSILON * BUDGET / costs.sum()
    deviations = ratios * np.sqrt(((1.0 - rewards) / rewards + (1.0 - costs) / costs) / pulls)
    overtaken = special.ndtr(-gaps / np.hypot(deviations, deviations[best]))
    overtaken[best] = 0.0
    missed = float(overtaken.sum())
    exploration = EPSILON * BUDGET * float(ratios[best] - rewards.sum() / costs.sum())
    confused = float(overtaken @ gaps) / missed if missed > 0.0 else 0.0
    return missed, exploration + (1.0 - EPSILON) * BUDGET * confused, exploration


def measure(problem: Problem, runs: int, seed: int = 0) -> Agreement:
    """Play ε-first and compare: the paper's numbers are means over 13, 487 and 500 runs, and scatter accordingly."""
    outcome = simulate(problem, EpsilonFirst(EPSILON), [BUDGET], runs, seed)
    regret, hit = outcome.regret[:, 0], outcome.best_arm_identified[:, 0]
    rate = float((~hit).mean())
    missed, identified = regret[~hit], regret[hit]
    if len(missed) < 2 or len(identified) < 2:
        return Agreement(rate, float("nan"), float("nan"), (np.inf, np.inf, np.inf))
    return Agreement(
        rate,
        float(missed.mean()),
        float(identified.mean()),
        (
            (MISSED - RUNS * rate) / float(np.sqrt(RUNS * rate * (1.0 - rate))),
            (REGRET_MISSED - missed.mean()) / float(missed.std(ddof=1) / np.sqrt(MISSED)),
            (REGRET_IDENTIFIED - identified.mean()) / float(identified.std(ddof=1) / np.sqrt(RUNS - MISSED)),
        ),
    )


def looks_right(problem: Problem) -> bool:
    """A quick look, generous on all three numbers, that spares most problems the simulation."""
    missed, regret_missed, regret_identified = predict(problem.reward_means, problem.cost_means)
    near = abs(regret_identified - REGRET_IDENTIFIED) < 25.0 and abs(regret_missed - REGRET_MISSED) < 250.0
    return near and 0.01 < missed < 0.06


def search(first: int = 0, last: int = 100_000, within: float = 1.0, runs: int = 20_000) -> tuple[int, Agreement]:
    """The first seed on which all three numbers agree within a standard error of the paper's own."""
    for seed in range(first, last):
        problem = family(FAMILY, ARMS, seed, LOW, HIGH)
        # Few runs first: most of those that look right are not.
        if looks_right(problem) and measure(problem, runs // 10).worst < 1.5 * within:
            agreement = measure(problem, runs, seed=1)
            if agreement.worst < within:
                return seed, agreement
    raise LookupError(f"no seed from {first} to {last} agrees with the paper's numbers; search further")


def likeliest_range(draws: int = 100_000, seed: int = 0) -> tuple[float, float, float]:
    """(low, high, share of problems that look right) for the range in which the paper's numbers are least rare."""
    best = (0.0, 1.0, 0.0)
    grid = np.arange(0.0, 1.0001, 0.05)
    for low in grid:
        for high in grid[grid > low + 0.1]:
            rng = np.random.default_rng(seed)
            rewards, costs = rng.uniform(max(low, 1e-6), high, (2, draws, ARMS))
            ratios = rewards / costs
            behind = ratios.max(axis=1) - rewards.sum(axis=1) / costs.sum(axis=1)
            close = np.flatnonzero(np.abs(EPSILON * BUDGET * behind - REGRET_IDENTIFIED) < 25.0)
            hits = 0
            for place in close:
                missed, regret_missed, _ = predict(rewards[place], costs[place])
                hits += 0.01 < missed < 0.06 and abs(regret_missed - REGRET_MISSED) < 250.0
            if hits / draws > best[2]:
                best = (float(low), float(high), hits / draws)
    return best


def main() -> None:
    """Search for the problem and print how well it agrees with the paper."""
    print("range of means in which the paper's numbers are least rare ...", file=sys.stderr)
    low, high, share = likeliest_range()
    print(f"means from U({low:.2f}, {high:.2f}): {share:.2%} of the problems look right")
    print("searching the seeds of U(0.75, 1) ...", file=sys.stderr)
    seed, agreement = search()
    print(f"seed {seed}: missed {agreement.miss_rate:.2%} (paper: {MISSED / RUNS:.2%})")
    print(f"  regret when missed {agreement.regret_missed:.0f} ({REGRET_MISSED:.0f})")
    print(f"  regret when identified {agreement.regret_identified:.1f} ({REGRET_IDENTIFIED:.1f})")
    print(
        "  the paper's numbers differ by " + ", ".join(f"{z:+.2f}" for z in agreement.deviations) + " standard errors"
    )


if __name__ == "__main__":
    main()
