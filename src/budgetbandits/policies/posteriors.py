"""The posteriors of an arm's means and of their ratio, from a policy's state."""

from __future__ import annotations

import math

from budgetbandits.errors import BadParameter
from budgetbandits.numerics.posteriors import ArmPosterior, BetaPosterior, JointRatioPosterior, RestrictedNormal
from budgetbandits.policies.base import Policy, State
from budgetbandits.policies.gaussian import GaussianThompson
from budgetbandits.policies.joint import JointThompson
from budgetbandits.policies.paced.statistics import COST, COUNT, REWARD, PacedState
from budgetbandits.policies.sampling import Posterior
from budgetbandits.policies.statistics import Tally
from budgetbandits.policies.thompson import BetaState


def kept_posterior(policy: Policy, state: State, arm: int) -> ArmPosterior | None:
    """The posterior that the policy keeps of an arm; None if it keeps none that is known here."""
    if isinstance(state, BetaState):
        a, c, b, d = state.statistics[:, arm].tolist()
        return ArmPosterior.independent(BetaPosterior(a, b), BetaPosterior(c, d))
    if isinstance(policy, GaussianThompson) and isinstance(state, Posterior):
        count, reward, cost = state.statistics[:, arm].tolist()
        deviation = policy.sigma / math.sqrt(count)
        return ArmPosterior.independent(
            RestrictedNormal(reward / count, deviation), RestrictedNormal(cost / count, deviation)
        )
    if isinstance(policy, JointThompson) and isinstance(state, Posterior):
        both, paid, charged, neither = state.statistics[:, arm].tolist()
        return ArmPosterior(
            BetaPosterior(both + paid, charged + neither),
            BetaPosterior(both + charged, paid + neither),
            JointRatioPosterior.from_weights(both, paid, charged),
        )
    return None


def posterior(policy: Policy, state: State, arm: int) -> ArmPosterior:
    """The posterior that the policy keeps of an arm, or the one that its sums make of uniform priors."""
    kept = kept_posterior(policy, state, arm)
    if kept is not None:
        return kept
    sums = None
    if isinstance(state, Tally):
        sums = float(state.pulls[arm]), float(state.reward[arm]), float(state.cost[arm])
    elif isinstance(state, PacedState):  # what it has forgotten counts in none of them
        count, reward, cost = state.sums[[COUNT, REWARD, COST], :, arm].sum(axis=1).tolist()
        sums = count, reward, cost
    if sums is not None:
        count, *totals = sums
        return ArmPosterior.independent(*(BetaPosterior(1.0 + total, 1.0 + count - total) for total in totals))
    raise BadParameter(
        f"{policy.name} keeps statistics of its own, neither known posteriors nor sums of rewards and costs; "
        "draw its state yourself"
    )
