"""What a policy's state says of the means, as Beta posteriors."""

from __future__ import annotations

import numpy as np

from budgetbandits.arrays import Array
from budgetbandits.errors import BadParameter
from budgetbandits.policies.base import Policy, State
from budgetbandits.policies.paced import COST, REWARD, Paced
from budgetbandits.policies.tally import Tally
from budgetbandits.policies.thompson import BetaPosterior


def beta_counts(policy: Policy, state: State) -> tuple[Array, Array]:
    """Successes and failures of every arm: row 0 of its reward, row 1 of its cost.

    Those that the policy keeps, or what sums make of uniform priors.
    """
    if isinstance(state, BetaPosterior):
        return state.successes, state.failures
    if isinstance(state, Paced):
        sums = np.stack([state.sums[row].sum(axis=0) for row in (REWARD, COST)])
        return 1.0 + sums, 1.0 + state.pulls - sums
    if isinstance(state, Tally):
        sums = np.stack([state.reward, state.cost])
        return 1.0 + sums, 1.0 + state.pulls - sums
    raise BadParameter(
        f"{policy.name} keeps neither Beta posteriors nor sums of rewards and costs; draw its state yourself"
    )
