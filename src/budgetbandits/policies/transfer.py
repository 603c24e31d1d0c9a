"""What a policy has learned, in other units or for another policy.

A policy learns rewards and costs as shares of the largest there can be. When these largest values change, `carried`
writes what was learned as shares of the new ones: counts stay, and so does every mean in the user's unit. Sums and
squares of `Tally`, `bts-paced` and `bts-linear` are multiplied. A posterior, and a policy with other statistics than
the one before, begins again with the totals of each arm, as if they were its history. A mean that would be above the
new largest value counts as that value.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Knowledge, Policy, State
from budgetbandits.policies.empirical import Histogram, NPTSRatio
from budgetbandits.policies.general_costs import Groups
from budgetbandits.policies.linear.state import LOG_COST, LinearState
from budgetbandits.policies.linear.state import REWARD as LINEAR_REWARD
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.statistics import (
    COST,
    COST_SQUARED,
    COUNT,
    PAID,
    REWARD,
    REWARD_SQUARED,
    PacedState,
)
from budgetbandits.policies.planning import PlanState
from budgetbandits.policies.posteriors import BOTH, CHARGED, GaussianThompson, JointThompson
from budgetbandits.policies.posteriors import PAID as ONLY_PAID
from budgetbandits.policies.prior import PriorMoments, PriorPolicy
from budgetbandits.policies.sampling import Posterior
from budgetbandits.policies.statistics import Moments, Tally
from budgetbandits.policies.thompson import BetaThompson


@dataclass(frozen=True)
class UnitChange:
    """What the old units are in the new ones.

    reward  the old largest reward, as a multiple of the new one
    costs   what a cost of 1 was for each arm, as a multiple of what it is
    money   the old largest cost of all arms, as a multiple of the new one: the unit of budgets and prices
    """

    reward: float
    costs: Array
    money: float

    @property
    def same(self) -> bool:
        return self.reward == 1.0 and self.money == 1.0 and bool((self.costs == 1.0).all())


def carried(old: Policy, state: State, new: Policy, known: Knowledge, units: UnitChange, spent: float) -> State:
    """The state of ``new`` that knows what ``state`` of ``old`` does.

    ``known`` and ``spent``, the money spent of the budget, are in the new units.
    """
    empty: State = new.start(len(state.pulls), known)
    if type(empty) is type(state) and not isinstance(state, Posterior | Histogram):
        _rescale(old, state, units)
        for each in fields(state):
            if each.name != "known":
                setattr(empty, each.name, getattr(state, each.name))
        return empty
    empty.active = state.active
    for arm in range(len(state.pulls)):
        pulls, reward, cost = totals(old, state, arm)
        if pulls:
            shares = min(reward * units.reward, pulls), min(cost * float(units.costs[arm]), pulls)
            new.add_history(empty, arm, pulls, *shares)
    if isinstance(empty, Tally):
        empty.past_cost = float(empty.cost.sum()) - spent
    return empty


def totals(policy: Policy, state: State, arm: int) -> tuple[int, float, float]:
    """The pulls of an arm, and the totals of their rewards and costs, in the policy's units; what was forgotten is not
    among them."""
    count = float(state.pulls[arm])
    if isinstance(state, Tally):
        reward, cost = state.reward[arm], state.cost[arm]
    elif isinstance(state, PlanState):
        count, reward, cost = state.arm_sums(arm)
    elif isinstance(policy, BetaThompson | GaussianThompson | JointThompson | NPTSRatio):
        assert isinstance(state, Posterior)
        seen = state.statistics[:, arm] - policy.first_statistics(range(len(state.pulls)))[:, arm]
        reward, cost = _posterior_totals(policy, seen)
    else:
        raise BadParameter(f"what {policy.name} has learned cannot be carried over; create a new campaign")
    pulls = round(count)
    return pulls, min(max(float(reward), 0.0), pulls), min(max(float(cost), 0.0), pulls)


def _posterior_totals(
    policy: BetaThompson | GaussianThompson | JointThompson | NPTSRatio, seen: Array
) -> tuple[float, float]:
    """Total reward and cost from the statistics of an arm without its prior."""
    if isinstance(policy, BetaThompson):
        return seen[0] / policy.kappa, seen[1] / policy.kappa
    if isinstance(policy, GaussianThompson):
        return seen[1], seen[2]
    if isinstance(policy, JointThompson):
        return seen[BOTH] + seen[ONLY_PAID], seen[BOTH] + seen[CHARGED]
    side, cells = int(policy.steps) + 1, np.arange(len(seen))
    return float(seen @ (cells // side)) / policy.steps, float(seen @ (cells % side)) / policy.steps


def _rescale(policy: Policy, state: State, units: UnitChange) -> None:
    """Multiply what a state of sums has learned."""
    if units.same:
        return
    if isinstance(state, Tally):
        _rescale_tally(policy, state, units)
    elif isinstance(state, PacedState):
        _rescale_paced(policy, state, units)
    elif isinstance(state, LinearState):
        _rescale_linear(state, units)
    else:
        raise BadParameter(f"what {policy.name} has learned cannot be carried over; create a new campaign")


def _rescale_tally(policy: Policy, state: Tally, units: UnitChange) -> None:
    reward, costs, pulls, spent = units.reward, units.costs, state.pulls.astype(float), state.spent
    state.reward = np.minimum(state.reward * reward, pulls)
    state.reward_squared = np.minimum(state.reward_squared * reward**2, state.reward)
    state.cost = np.minimum(state.cost * costs, pulls)
    state.past_cost = float(state.cost.sum()) - spent * units.money
    if isinstance(state, Moments):
        state.cost_squared = np.minimum(state.cost_squared * costs**2, state.cost)
        state.product = np.minimum(state.product * reward * costs, np.minimum(state.reward, state.cost))
    if isinstance(state, Groups):
        state.group_reward = np.minimum(state.group_reward * reward, state.group_pulls)
        state.group_cost = np.minimum(state.group_cost * costs, state.group_pulls)
    if isinstance(state, PriorMoments):
        assert isinstance(policy, PriorPolicy)
        state.fit(policy.lead)


def _rescale_paced(policy: Policy, state: PacedState, units: UnitChange) -> None:
    sums = state.sums.copy()
    sums[PAID] *= units.costs  # all of it, since it is money
    for total, squares, factor in ((REWARD, REWARD_SQUARED, units.reward), (COST, COST_SQUARED, units.costs)):
        sums[total] = np.minimum(sums[total] * factor, sums[COUNT])
        if isinstance(policy, PacedThompson) and policy.trials:
            sums[squares] = sums[total]  # outcomes of trials are 0 or 1
        else:
            sums[squares] = np.minimum(sums[squares] * factor**2, sums[total])
    state.sums = sums
    if state.estimates:
        state.estimates = _rescaled_estimates(state, units)


def _rescaled_estimates(state: PlanState, units: UnitChange) -> list[list[float]]:
    count, total, squares, logs = state.estimate_sums
    money = units.money
    return [each.tolist() for each in (count, total * money, squares * money**2, logs + count * np.log(money))]


def _rescale_linear(state: LinearState, units: UnitChange) -> None:
    sums, past, costs = state.responses[:, 0] + state.past[1:], state.past.copy(), state.totals[3]
    counts, rewards, logs = state.counts, sums[LINEAR_REWARD], sums[LOG_COST]
    reward, cost = _at_most(units.reward, counts, rewards), _at_most(units.costs, counts, costs)
    log, responses = np.log(cost), state.responses.copy()
    responses[LINEAR_REWARD] *= reward
    responses[LOG_COST] += state.products[0] * log  # whose first column is 1 in every row
    past[1] *= reward
    past[2] += past[0] * log
    paid, reward_squared, log_squared, _, cost_squared = state.totals
    state.totals = np.array([
        paid * units.costs, np.minimum(reward_squared * reward**2, rewards * reward),
        np.maximum(log_squared + 2.0 * log * logs + counts * log**2, 0.0),
        costs * cost, np.minimum(cost_squared * cost**2, costs * cost),
    ])  # fmt: skip
    state.responses, state.past = responses, past
    if state.estimates:
        state.estimates = _rescaled_estimates(state, units)


def _at_most(factor: float | Array, counts: Array, sums: Array) -> Array:
    """The factor for each arm, or less where the mean would be above 1."""
    most = np.divide(counts, sums, out=np.full(len(counts), np.inf), where=sums > 0.0)
    return np.asarray(np.minimum(factor, most))
