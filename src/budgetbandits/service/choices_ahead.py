"""Choices that are made before the transaction that writes them down, because they take long.

A choice follows from its id and its `ChoiceInputs`: the campaign's tag, which stands for all that was learned, the
money that is left, the request, and the arms that may be chosen. The transaction finds the inputs first, as it would
for any decision. Where the choice takes long and none was made ahead, it ends with `ChoiceNeeded` and has written
nothing. The choice is then made elsewhere (`choice_processes`), and the transaction is run again. It takes the choice
if the inputs are the same still, to the last bit: so what is written down is what an audit finds by the events, and
the money is held in the transaction that has checked it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from budgetbandits.numerics.arrays import ArmMask
from budgetbandits.policies.base import NO_REQUEST_INFO
from budgetbandits.service.campaign_session import AheadChoice, CampaignSession, Offer
from budgetbandits.service.ledger import Account
from budgetbandits.service.randomness import new_decision_id
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.stores.records import Campaign
from budgetbandits.service.work import AT_ONCE_MAX, COOLING_DRAWS


class ChoiceInputs(NamedTuple):
    """All that a choice follows from, but for its id. Everything is as JSON has it.

    campaign   its id
    tag        the campaign's newest change, which stands for what was learned and for the terms
    budget     the campaign's budget
    spendable  the budget, what is spent and the requests used up, as `CampaignSession.set_remaining` wants them
    request    the request, if anything was said of it
    available  the numbers of the arms that may be chosen; None for all that are active
    cooling    those of them that cool down; None if none does
    """

    campaign: str
    tag: str
    budget: int
    spendable: list[int]
    request: str | None
    available: list[int] | None
    cooling: list[int] | None


class ChoiceNeeded(Exception):
    """A choice is to be made outside the transaction, from these inputs; nothing was written for it."""

    def __init__(self, inputs: ChoiceInputs) -> None:
        super().__init__(inputs)
        self.inputs = inputs


class ChoicesAhead:
    """Choices that were made from the same inputs, for one decision each."""

    def __init__(self, inputs: ChoiceInputs | None = None, choices: Iterable[AheadChoice] = ()) -> None:
        self._inputs, self._made = inputs, list(choices)

    def take(self, inputs: ChoiceInputs) -> AheadChoice:
        """The next of them; `ChoiceNeeded` if there is none from these inputs."""
        if inputs != self._inputs or not self._made:
            raise ChoiceNeeded(inputs)
        return self._made.pop(0)


def is_long(session: CampaignSession, offer: Offer) -> bool:
    """Whether a choice from this offer takes so long that it is to be made ahead."""
    if session.leaves_traces:
        return False
    size = session.size(None if offer.request is None else offer.request.segment)
    if offer.cooling is not None:
        size = replace(size, draws=COOLING_DRAWS * size.draws)
    return size.work > AT_ONCE_MAX


def inputs_of(session: CampaignSession, row: Campaign, offer: Offer, account: Account) -> ChoiceInputs:
    """The inputs of a choice from this offer, with this ``account`` as for `CampaignSession.set_remaining`."""
    available = None if offer.available is session.state.active else np.flatnonzero(offer.available).tolist()
    cooling = None if offer.cooling is None else np.flatnonzero(offer.cooling).tolist()
    request = None if offer.request is None else replace(offer.request, metadata=None).to_json()
    spendable = [account.budget, account.spent, account.requests_used]
    return ChoiceInputs(row.id, session.tag, row.account.budget, spendable, request, available, cooling)


def make_choices(session: CampaignSession, inputs: ChoiceInputs, count: int, seconds: float) -> list[AheadChoice]:
    """Make up to ``count`` choices from these inputs, and no further one when the seconds are over.

    The session has the inputs' tag, and is not for any other use if this opens a segment or if its chooser keeps
    anything of a choice.
    """
    resolved, active = ResolvedRequest.from_json(inputs.request), session.state.active
    available = active if inputs.available is None else _mask(inputs.available, active)
    cooling = None if inputs.cooling is None else _mask(inputs.cooling, active)
    budget, spent, used = inputs.spendable
    session.set_budget(inputs.budget)
    session.set_remaining(Account(budget, spent, requests_used=used))
    request = session.request_info(resolved) if session.by_request else NO_REQUEST_INFO
    choices, end = list[AheadChoice](), time.perf_counter() + seconds
    while not choices or (len(choices) < count and session.learner.kind == "plain" and time.perf_counter() < end):
        id = new_decision_id()
        arm = session.choose_arm(id, available, request, cooling)
        likely = None if arm is None else session.likelihood(id, arm, available, request, cooling)
        choices.append(AheadChoice(id, arm, likely))
    return choices


def _mask(arms: Sequence[int], active: ArmMask) -> ArmMask:
    mask = np.zeros_like(active)
    mask[list(arms)] = True
    return mask
