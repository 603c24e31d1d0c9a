"""The best player who knows every law and must make a budget last for a number of requests.

The fluid bound is what the best mix of arms earns on average (`fluid`): no policy earns more, but for the last pull,
which may overdraw. A request stream, whose arms change, has a plan: how often each arm answers in each part. Where
requests have features, the best player answers each by its own means, at one price on money. The optimum itself is
found by dynamic programming where all costs are multiples of one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.fluid import Mix, arms_at_rate, best_mix
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.oracle import MOST_STEPS, budget_steps, by_steps, cost_atoms
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.validation import within

MOST_CELLS = 200_000_000
"""Most requests times steps of the budget that the dynamic program goes through."""


def fluid_mix(problem: Problem, budget: float, horizon: float) -> Mix:
    """The mix of at most two arms that earns most when the budget must last for ``horizon`` requests."""
    _check(budget, horizon)
    rewards, costs = problem.reward_means.tolist(), problem.cost_means.tolist()
    return best_mix([rewards], [costs], [1.0], budget / horizon)


def fluid_reward(problem: Environment, budget: float, horizon: float) -> float:
    """The fluid bound: the mean reward of the best mix or, for a request stream, of the best plan.

    Where not even the cheapest mix can be paid for every request, it is ρ* times the budget. `fluid_requests` has the
    bound for requests with features. No policy earns more where costs never overdraw the budget, such as costs 0 and 1
    with a whole budget; in general no policy earns more than the bound at a budget larger by 1.

    >>> problem = Problem.bernoulli([0.2, 0.8], [0.1, 0.5])
    >>> round(fluid_reward(problem, budget=30, horizon=100), 6), round(fluid_reward(problem, 5, 100), 6)
    (50.0, 10.0)
    """
    if isinstance(problem, LinearStream):
        return fluid_requests(problem, budget, horizon).reward
    if isinstance(problem, RequestStream):
        return float((fluid_plan(problem, budget, horizon) * problem.reward_means).sum())
    mix = fluid_mix(problem, budget, horizon)
    per_request = mix.spend([problem.reward_means.tolist()], [1.0])
    cost = mix.spend([problem.cost_means.tolist()], [1.0])
    return float(per_request * min(horizon, budget / cost))


def fluid_plan(stream: RequestStream, budget: float, horizon: float) -> Array:
    """Mean pulls of the best player, who knows every law and when it changes, as (part, arm).

    The linear program over mean pulls x: of the n requests of a phase the share f is answered, those of its segments
    alike, and what is answered costs at most the budget. The game ends when the money is spent, so the probability that
    a request is answered never rises: 1 ≥ f₁ ≥ f₂ ≥ … So no policy earns more, but for the last pull. Money counts on
    average here: where it is not enough for all phases, the bound is further above what can be earned.

    >>> cheap, costly = Problem.bernoulli([0.2, 0.8], [0.1, 0.5]), Problem.bernoulli([0.2, 0.8], [0.1, 1.0])
    >>> fluid_plan(RequestStream.phases([(0, costly), (50, cheap)]), budget=20, horizon=100).round(6).tolist()
    [[50.0, 0.0], [25.0, 25.0]]
    """
    from scipy.optimize import linprog  # slow to import, and only streams need it

    _check(budget, horizon)
    parts, arms, phases = len(stream.parts), len(stream), len(stream.firsts)
    requests, width = stream.requests(int(horizon)), len(stream.segments)
    answered = np.zeros((parts, parts * arms + phases))  # a row for each part: its pulls less its requests answered
    for part in range(parts):
        answered[part, part * arms : (part + 1) * arms] = 1.0
        answered[part, parts * arms + part // width] = -requests[part]
    limits = np.zeros((phases, parts * arms + phases))  # the money, then a share that is above the one before
    limits[0, : parts * arms] = stream.cost_means.ravel()
    for phase in range(1, phases):
        limits[phase, parts * arms + phase - 1 : parts * arms + phase + 1] = -1.0, 1.0
    most = [(0.0, np.inf if available else 0.0) for available in stream.available_arms.ravel()] + [(0.0, 1.0)] * phases
    solution = linprog(
        -np.concatenate([stream.reward_means.ravel(), np.zeros(phases)]),
        A_ub=limits, b_ub=[budget, *np.zeros(phases - 1)], A_eq=answered, b_eq=np.zeros(parts), bounds=most,
    )  # fmt: skip
    if not solution.success or solution.x is None:
        raise BadParameter(
            f"the linear program of this request stream was not solved ({solution.message}); use fewer parts"
        )
    return np.asarray(solution.x[: parts * arms].reshape(parts, arms))


class RequestPlan(NamedTuple):
    """The plan of the best player for requests with features, who knows every law.

    reward  the fluid bound: what the best answers earn
    price   the price on money λ: each request is answered by the arm with the largest mean reward − λ × mean cost
    pulls   how often each arm answers
    """

    reward: float
    price: float
    pulls: tuple[float, ...]


@lru_cache(maxsize=64)
def fluid_requests(stream: LinearStream, budget: float, horizon: float) -> RequestPlan:
    """The fluid bound where each request has its own means: no policy earns more, but for the last pull.

    The mean over features is one over the 32,768 requests of `LinearStream.typical_rows`. By duality the bound is
    λB + T E max (r − λc): its error is that of a mean over these requests, and λ need not be exact. For streams of the
    family `linear` the standard error is 0.04 % of the bound.

    >>> from budgetbandits.problems.families import linear
    >>> plan = fluid_requests(linear(features=5, arms=3, seed=1), budget=100, horizon=1000)
    >>> round(plan.reward), round(sum(plan.pulls))
    (637, 1000)
    """
    _check(budget, horizon)
    reward, cost = stream.means(stream.typical_rows())
    requests = len(reward)
    mixes = arms_at_rate(reward[None], cost[None], np.full(requests, 1.0 / requests), budget / horizon, 0)
    price = float(mixes.price[0])
    values = reward - price * cost
    chosen = values.argmax(axis=1)
    spent = float(cost[np.arange(requests), chosen].mean())
    answered = min(horizon, budget / spent)
    shares = np.bincount(chosen, minlength=len(stream)) / requests
    best = price * budget + horizon * float(values.max(axis=1).mean())
    return RequestPlan(best, price, tuple((answered * shares).tolist()))


@dataclass(frozen=True)
class PacedOptimum:
    """The exact optimum at one budget and horizon."""

    budget: float
    horizon: int
    step: float
    reward: float
    """Expected reward of an optimal policy."""
    values: Array
    """Expected rewards of an optimal policy with 0, 1, … steps of the budget, before the first request."""
    choice: NDArray[np.int64]
    """Arm that an optimal policy pulls first, with 0, 1, … steps of the budget."""


def paced_optimum(problem: Problem, budget: float, horizon: int) -> PacedOptimum:
    """The exact optimum with this budget and ``horizon`` requests, by dynamic programming.

    With V_n(b) the optimum with n requests to come and b steps of money, and for each arm p_k the probability of a
    cost of k steps and r_k the expected reward given it,

        V_n(b) = max over arms of Σ_{k ≤ b} p_k (r_k + V_{n−1}(b − k)),   V_0 = 0,   V_n(0) = 0,

    since the game ends when the money is spent, and a pull that costs more than is left ends it and earns nothing.

    >>> problem = Problem.bernoulli([0.2, 0.8], [0.1, 0.5])
    >>> round(paced_optimum(problem, budget=3, horizon=10).reward, 4)
    4.729
    """
    _check(budget, horizon)
    step, steps, whole = budget_steps(problem, budget)
    if whole != steps * step:
        raise BadParameter(f"budget is {budget:g}, no multiple of the costs' step {float(step):g}; round it to one")
    if horizon != int(horizon) or horizon * (steps + 1) > MOST_CELLS:
        raise BadParameter(
            f"{horizon:g} requests with {steps} steps of money; use a whole number of requests, and at most "
            f"{MOST_CELLS:,} of both multiplied, or take fluid_reward()"
        )
    chances, earned = by_steps([cost_atoms(arm) for arm in problem.arms], step)
    longest = chances.shape[1] - 1
    affordable = np.minimum(np.arange(steps + 1), longest)
    at_once = np.cumsum(earned, axis=1)[:, affordable]
    value, choice = np.zeros(steps + 1), np.zeros(steps + 1, dtype=np.int64)
    costs = [k for k in range(min(longest, steps) + 1) if chances[:, k].any()]
    for _ in range(int(horizon)):
        candidates = at_once.copy()
        for k in costs:
            candidates[:, k:] += chances[:, k, None] * value[: steps + 1 - k]
        choice = candidates.argmax(axis=0)
        value = candidates.max(axis=0)
        value[0] = 0.0
    return PacedOptimum(budget, int(horizon), float(step), float(value[-1]), value, choice)


def _check(budget: float, horizon: float) -> None:
    within("budget", budget, 0.0, MOST_STEPS, above=True)
    within("horizon", horizon, 1.0, np.inf, hint=", of requests")
