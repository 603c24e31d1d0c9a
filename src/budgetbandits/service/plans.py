"""What a policy is told that plans with a campaign's money and with the requests that it is for."""

from __future__ import annotations

import math
from typing import Any

from budgetbandits.allocation.learner import Learner
from budgetbandits.policies.paced.statistics import PacedState
from budgetbandits.policies.primal_dual import PricedState
from budgetbandits.service.ledger import Account


def set_remaining(learner: Learner, account: Account, settings: dict[str, Any], lent: Account | None = None) -> None:
    """What is left of the budget and of the requests: also what was charged and taught nothing, as where a reward is
    late, a hold has expired or a call has failed, is gone.

    Under a lease ``lent`` is what became of its money since it was merged, when the campaign had this account.
    """
    state = learner.state
    spent, requests_used = account.spent, account.requests_used
    if lent is not None:
        spent, requests_used = spent + lent.spent, requests_used + lent.requests_used
    if isinstance(state, PricedState):
        state.chosen = requests_used  # a decision that was voided is not
    if not isinstance(state, PacedState) or not math.isfinite(state.known.horizon):
        return
    learner.set_budget((account.budget - spent) / settings["cost_max"] + state.paid)
    learner.set_unlearned_requests(requests_used - int(state.pulls.sum()))
