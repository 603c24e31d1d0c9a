"""The best player, who knows every law: the paper's Lemma 1, and the exact optimum on lattice costs.

ρ* = max μr/μc is the most reward a unit of cost can buy on average, and R*(B) the most any policy can earn.
Lemma 1: R* = ρ*B on Bernoulli problems with a whole budget, where pulling the best arm forever is optimal; in general
ρ*(B − 1) ≤ what the best arm earns ≤ R* ≤ ρ*(B + 1). Where all costs are multiples of one step, R* itself is found by
dynamic programming over what is left of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, NotALattice
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.validation import within

LARGEST_DENOMINATOR = 10_000
"""Largest denominator of a cost that is recognised as a fraction."""

MOST_STEPS = 20_000_000
"""Most steps of a budget that the dynamic program goes through."""


def ratios(problem: Problem) -> Array:
    """Each arm's mean reward per mean cost."""
    return np.asarray(problem.reward_means / problem.cost_means)


def best_ratio(problem: Problem) -> float:
    """The best ratio ρ*: the largest mean reward per mean cost.

    >>> best_ratio(Problem.bernoulli([0.3, 0.6], [0.2, 0.8]))
    1.4999999999999998
    """
    return float(ratios(problem).max())


def best_arms(problem: Problem) -> NDArray[np.int64]:
    """The numbers of all arms whose ratio is ρ*, up to rounding; usually one.

    >>> best_arms(Problem.bernoulli([0.3, 0.6, 0.6], [0.2, 0.8, 0.4]))
    array([0, 2])
    """
    ratio = ratios(problem)
    return np.flatnonzero(ratio >= ratio.max() * (1.0 - 1e-12))


def gaps(problem: Problem) -> Array:
    """The gaps Δ: how much less each arm earns per cost than the best arm; exactly 0 for the best arms."""
    gap = best_ratio(problem) - ratios(problem)
    gap[best_arms(problem)] = 0.0
    return gap


def reward_bounds(problem: Problem, budget: float) -> tuple[float, float]:
    """Lower and upper bound on R* by Lemma 1; they are equal for Bernoulli arms and a whole budget.

    >>> reward_bounds(Problem.bernoulli([0.5, 0.5], [0.25, 0.5]), 100)
    (200.0, 200.0)
    """
    rho = best_ratio(problem)
    if problem.is_bernoulli and float(budget).is_integer():
        return rho * budget, rho * budget
    return rho * max(budget - 1.0, 0.0), rho * (budget + 1.0)


@dataclass(frozen=True)
class Optimum:
    """The exact optimum at one budget, and the reward of the best arm alone."""

    budget: float
    step: float
    reward: float
    """Expected reward R* of an optimal policy."""
    best_arm_reward: float
    """Expected reward of pulling the best arm only; of several best arms, the one that earns most."""
    ratio: float
    """The best ratio ρ*."""
    choice: NDArray[np.int64]
    """Arm that an optimal policy pulls with 1, 2, … steps of budget left."""

    @property
    def gain(self) -> float:
        """The extra reward of an optimal policy over the best arm; at most 2ρ* by Lemma 1."""
        return self.reward - self.best_arm_reward


def optimum(problem: Problem, budget: float) -> Optimum:
    r"""The optimum R* by dynamic programming; costs must be multiples of one step, such as 0, ¼, ½, ¾, 1.

    With $V(b)$ the optimum with $b$ steps left, and for each arm $p_k$ the probability of a cost of $k$ steps and $r_k$
    the expected reward given it, $V(b)$ is the largest over the arms of
    $(p_0 r_0 + \sum_{0 < k \le b} p_k (r_k + V(b - k))) / (1 - p_0)$,
    since a pull that costs nothing leaves the budget as it was, and one that costs more than is left earns nothing.
    If the budget is no multiple of the step, $V(0) = \max p_0 r_0 / (1 - p_0)$: what is left over pays for nothing, but
    play goes on until a pull costs something.

    >>> arms = Problem.from_toml('''
    ... [[arms]]
    ... name = "costly"
    ... reward = { law = "fixed", value = 1.0 }
    ... cost = { law = "fixed", value = 0.75 }
    ... [[arms]]
    ... name = "cheap"
    ... reward = { law = "fixed", value = 0.3 }
    ... cost = { law = "fixed", value = 0.25 }
    ... ''')
    >>> best = optimum(arms, budget=1.0)
    >>> best.reward, best.best_arm_reward
    (1.3, 1.0)
    """
    step, steps, whole = budget_steps(problem, budget)
    atoms = [cost_atoms(arm) for arm in problem.arms]
    remainder = whole > steps * step  # what no cost can be paid from, but enough to go on while pulls are free
    value, choice = _best_values(atoms, step, steps, remainder)
    alone = max(_best_values([atoms[arm]], step, steps, remainder)[0][-1] for arm in best_arms(problem))
    return Optimum(budget, float(step), float(value[-1]), float(alone), best_ratio(problem), choice)


def budget_steps(problem: Problem, budget: float) -> tuple[Fraction, int, Fraction]:
    """The step of the costs, how many of them the budget holds, and the budget as a fraction."""
    within("budget", budget, 0.0, math.inf)
    step = cost_step(problem)
    if len(problem) / step > MOST_STEPS:
        raise NotALattice(f"the costs have no common step above {float(step):.3g}; round them, or use reward_bounds()")
    exact = Fraction(budget).limit_denominator(LARGEST_DENOMINATOR)
    whole = exact if abs(float(exact) - budget) <= 1e-9 else Fraction(budget)
    steps = math.floor(whole / step)
    if steps > MOST_STEPS:
        raise BadParameter(
            f"a budget of {steps} steps of {float(step):g}; use at most {MOST_STEPS} or a coarser lattice"
        )
    return step, steps, whole


def cost_step(problem: Problem) -> Fraction:
    """The largest step of which every possible cost is a multiple."""
    step = Fraction(0)
    for arm in problem.arms:
        for cost in cost_atoms(arm)[0]:
            fraction = Fraction(float(cost)).limit_denominator(LARGEST_DENOMINATOR)
            if abs(float(fraction) - cost) > 1e-12:
                raise NotALattice(
                    f"arm {arm.name!r}: cost {float(cost)!r} is no fraction with a denominator up to "
                    f"{LARGEST_DENOMINATOR}; round it, or use reward_bounds()"
                )
            step = Fraction(
                math.gcd(step.numerator * fraction.denominator, fraction.numerator * step.denominator),
                step.denominator * fraction.denominator,
            )
    return step


def cost_atoms(arm: Arm) -> tuple[Array, Array, Array]:
    """The possible costs of an arm, their probabilities, and the mean reward given each cost."""
    atoms = arm.law.cost_atoms()
    if atoms is None:
        raise NotALattice(
            f"arm {arm.name!r} has continuous costs; the exact optimum needs a lattice: use reward_bounds() instead"
        )
    levels, probability, reward = atoms
    possible = probability > 0.0
    return levels[possible], probability[possible], reward[possible]


def by_steps(arms: Sequence[tuple[Array, Array, Array]], step: Fraction) -> tuple[Array, Array]:
    """The probability that each arm costs 0, 1, … steps, and the mean reward given that cost times its probability."""
    chances, earned = np.zeros((2, len(arms), int(1 / step) + 1))
    for number, (levels, probability, reward) in enumerate(arms):
        at = np.rint(levels / float(step)).astype(int)
        chances[number, at] = probability
        earned[number, at] = probability * reward
    return chances, earned


def _best_values(
    arms: Sequence[tuple[Array, Array, Array]], step: Fraction, steps: int, remainder: bool
) -> tuple[Array, NDArray[np.int64]]:
    """V(0), …, V(steps) and the maximising arm at 1, …, steps; ``remainder`` if less than a step is left over."""
    probability, earned = by_steps(arms, step)
    longest = probability.shape[1] - 1
    pays = probability[:, 1:].sum(axis=1)
    immediate = np.cumsum(earned, axis=1) / pays[:, None]  # [a, b]: what a pull earns at once with b steps left
    used = np.flatnonzero(probability[:, 1:].any(axis=0)) + 1
    onward = probability[:, used] / pays[:, None]
    value = np.zeros(steps + 1 + longest)  # shifted by `longest`: V of a negative budget is 0
    choice = np.zeros(steps, dtype=np.int64)
    if remainder:  # the game goes on until the first pull that costs anything
        value[longest] = immediate[:, 0].max()
    for left in range(1, steps + 1):
        candidates = onward @ value[left + longest - used] + immediate[:, min(left, longest)]
        best = candidates.argmax()
        choice[left - 1] = best
        value[left + longest] = candidates[best]
    return value[longest:], choice
