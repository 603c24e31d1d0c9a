"""A campaign's session: its policy at work for named arms with cost caps in money.

An `ArmSession` knows shares, and this module the campaign's money and terms. What a session has learned is kept in rows
(`session_rows`), what it draws is drawn again by an audit (`randomness`). Money is in micros, times are in seconds
since 1970.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.allocation.cooldowns import Cooldowns
from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.propensity import chances
from budgetbandits.allocation.session import ArmSession, chosen_from
from budgetbandits.errors import TooManySegments
from budgetbandits.numerics.arrays import ArmMask
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge, Policy, Request, UnitChange
from budgetbandits.policies.transfer import carried, totals
from budgetbandits.service.ledger import Account, to_units
from budgetbandits.service.own_policies import policy_of
from budgetbandits.service.randomness import Draws, new_decision_id
from budgetbandits.service.request import Amounts, ResolvedRequest, resolve
from budgetbandits.service.segment_sums import SegmentSums
from budgetbandits.service.stores.records import Campaign, CampaignSettings, DecisionRow, Event
from budgetbandits.service.work import ChoiceSize, check_work, size_of
from budgetbandits.validation import RequestOptions

SEGMENTS_MAX = 100
"""Segments that a campaign may have: an arm's row has what is known of it in each, and is written at every feedback."""

CELLS_MAX = 10_000
"""Arms times segments and features that a campaign may have: to open a segment writes every arm's row, with what is
known in all of them."""

TICKS = 1000
"""Ticks of a second in which cooldowns are counted: milliseconds."""


class Pull(NamedTuple):
    """A decision as far as it is learned from (`stores.records.DecisionRow`), once its reward and cost are known."""

    id: str
    arm: int
    reward: float | None
    cost: int | None
    request: str | None
    created_at: float


class Offer(NamedTuple):
    """The arms that a decision may be for.

    request    what was said of the request, if anything
    holds      what a decision for each arm holds
    available  the arms that may be chosen
    cooling    those of them that are down and cool down; None if none does
    """

    request: ResolvedRequest | None
    holds: Amounts
    available: ArmMask
    cooling: ArmMask | None

    @property
    def largest_hold(self) -> int:
        """The money that the limits in time must leave free before any of these arms is chosen: to choose from what
        fits the moment would choose the cheap. An arm cooling down is not waited for."""
        arms = self.available if self.cooling is None else self.available & ~self.cooling
        return int(self.holds[arms].max())


class Choice(NamedTuple):
    """A new decision.

    hold         what it holds, in micros
    unavailable  the arms that the request allowed and that could not be chosen
    request      what is written down of the request; None if there is nothing to say
    propensity   how likely the choice was, if the terms ask for that
    """

    id: str
    arm: int
    hold: int
    unavailable: list[int]
    request: str | None
    propensity: float | None


class AheadChoice(NamedTuple):
    """A choice that was made before its transaction: what `Choice` says of it."""

    id: str
    arm: int | None
    propensity: float | None


class CampaignSession(ArmSession):
    """A campaign's policy, its arms' names and cost caps, and what was learned of them.

    tag  the committed change of the campaign that this is of
    """

    def __init__(self, learner: Learner, names: Sequence[str], caps: Sequence[int], settings: CampaignSettings) -> None:
        super().__init__(learner, names, Cooldowns(len(names), TICKS), settings.terms.features or ())
        self.caps: NDArray[np.int64] = np.array(caps, dtype=np.int64)
        self.largest_cap = int(self.caps.max())
        self.tag = ""
        self.draws = Draws()
        self.sums = SegmentSums.kept_for(learner.policy, len(names))
        """Rewards and costs of segments, where the policy's own sums do not say so."""
        self.by_request = learner.policy.looks_at_requests
        """Whether the policy looks at requests; only then are there segments, and plans with money."""
        self.leaves_traces = not learner.policy.random_choices
        """Whether a choice changes the state; a policy that draws changes at most how it draws, or opens a segment."""
        learner.draws_few = learner.kind == "threshold"
        self.stateless = learner.kind == "plain" and not self.leaves_traces
        """Whether a choice changes nothing at all, so that nothing need be looked at or kept of it."""
        self._prefetched: tuple[str, str, int | None] | None = None
        self.set_terms(settings)

    @classmethod
    def new(
        cls, policy: Policy, names: Sequence[str], caps: Sequence[int], settings: CampaignSettings
    ) -> CampaignSession:
        """The session of a new campaign."""
        own = np.array(caps) / settings.cost_max if settings.own_scales else None
        learner = Learner.new(policy, len(names), Knowledge(**settings.known), kind=settings.chooser, scales=own)
        return cls(learner, names, caps, settings)

    def copy(self, tag: str) -> CampaignSession:
        """An independent copy, under this tag."""
        other = copy.copy(self)
        other.learner, other.cooldowns = copy.deepcopy(self.learner), copy.deepcopy(self.cooldowns)
        other.names, other._numbers, other.caps = list(self.names), dict(self._numbers), self.caps.copy()
        other.segments, other.sums = copy.deepcopy(self.segments), copy.deepcopy(self.sums)
        other.draws, other.tag, other._prefetched = Draws(), tag, None
        return other

    def set_terms(self, settings: CampaignSettings) -> None:
        """Follow these settings of the campaign from now on."""
        self._settings = settings
        self._cost_max = settings.cost_max
        self._propensity_draws = settings.terms.propensity_draws
        self.learner.set_horizon(math.inf if settings.terms.horizon is None else settings.terms.horizon)

    def changed(self, row: Campaign) -> CampaignSession:
        """The session after the change of terms that led to this row: itself, or one that has learned in other units
        or plays another policy. Nobody else may have it: what it has learned is handed over."""
        old, new, caps = self._settings, row.settings, self.caps.copy()
        for arm, (_, cap) in new.caps_changed.items():
            caps[arm] = cap
        scales = [
            (old.cost_scale(before), new.cost_scale(after))
            for before, after in zip(self.caps.tolist(), caps.tolist(), strict=True)
        ]
        rewards, costs = old.terms.reward_max / new.terms.reward_max, np.array([one / other for one, other in scales])
        units, policy = UnitChange(rewards, costs, old.cost_max / new.cost_max), policy_of(row)
        if units.same and policy == self.policy and not new.caps_changed:
            self.set_terms(new)
            self.set_budget(row.account.budget)
            return self
        knowledge = Knowledge(**new.known)
        state = carried(self.policy, self.state, policy, knowledge, units, row.account.spent / new.cost_max)
        if new.own_scales:
            state.known = replace(state.known, scales=caps / new.cost_max)
        session = CampaignSession(Learner(policy, state, new.chooser), self.names, caps.tolist(), new)
        session.cooldowns, session.draws, session.tag = self.cooldowns, self.draws, self.tag
        if type(state) is type(self.state):
            session.segments = self.segments
        if session.sums is not None and self.sums is not None:
            session.sums = self.sums
        session.learner.chooser.reset(state)
        session.set_budget(row.account.budget)
        return session

    def add_history(self, history: Mapping[str, tuple[int, float, int]]) -> None:
        """Learn from past outcomes, by the numbers of the arms as text: how many, their total reward and cost."""
        for text, (pulls, reward, cost) in history.items():
            arm = int(text)
            share, scale = reward / self._settings.terms.reward_max, self._settings.cost_scale(int(self.caps[arm]))
            self.learner.add_history(arm, pulls, min(share, pulls), min(cost / scale, pulls))

    def history(self, arm: int) -> tuple[int, float, float]:
        """The pulls of an arm, and the totals of their rewards and costs in the user's unit."""
        pulls, reward, cost = totals(self.policy, self.state, arm)
        scale = to_units(self._settings.cost_scale(int(self.caps[arm])))
        return pulls, reward * self._settings.terms.reward_max, cost * scale

    @property
    def estimates_prices(self) -> bool:
        """Whether the policy has learned from a request whose prices were estimated."""
        return self.state.has_price_estimates

    def size(self, segment: str | None) -> ChoiceSize:
        """The size of a choice for a request of this segment."""
        segments = len(self.segments) + (self.by_request and segment not in self.segments)
        return size_of(self.policy, self._settings.terms, len(self.names), segments, self.estimates_prices)

    @property
    def smallest_cap(self) -> int:
        """The smallest cap of an arm that can be chosen."""
        return int(self.caps[self.learner.state.active].min())

    # --- choosing ------------------------------------------------------------------------------------------------

    def resolve(self, options: RequestOptions | None) -> ResolvedRequest | None:
        """A request by the numbers of the arms, or None if it says nothing; an error if that cannot be, or is not
        looked at.

        The number of segments is bounded here, for new requests: what was decided must be learned and merged, however
        many segments several servers have opened together.
        """
        if options is None:
            if not self.features:
                return None
            options = RequestOptions()
        if options.segment is not None or options.prices is not None:
            _ = self.learner.policy.for_requests
        new = options.segment is not None and options.segment not in self.segments
        if new and len(self.segments) >= SEGMENTS_MAX:
            raise TooManySegments(
                f"segment {options.segment!r:.60} would be one of more than {SEGMENTS_MAX}; name fewer kinds"
            )
        number = len(self.segments) + 1
        if new and (number + len(self.features)) * len(self.names) > CELLS_MAX:
            features = " and features" if self.features else ""
            raise TooManySegments(
                f"segment {options.segment!r:.60} would be number {number} among {len(self.names):,} arms; "
                f"arms times segments{features} are {CELLS_MAX:,} at most: name fewer kinds, or have fewer arms"
            )
        priced = self.estimates_prices or options.prices is not None
        if new or priced != self.estimates_prices:
            check_work(self.policy, self._settings.terms, len(self.names), len(self.segments) + new, priced)
        return resolve(options, self, self.caps)

    def holds(self, request: ResolvedRequest | None) -> tuple[Amounts, ArmMask]:
        """The hold of a decision for each arm, and the arms that the request allows."""
        if request is None:
            return self.caps, self.learner.state.active
        return request.amounts(self.caps), request.among(self.learner.state.active)

    def offer(self, request: ResolvedRequest | None, now: float, left: int | None = None) -> Offer | None:
        """The arms that a decision may be for; None if ``left`` is the money that is left and pays none of them.

        Money is looked at before cooldowns: else the failure of the only arm that can be paid would pass for the end of
        the money.
        """
        holds, payable = self.holds(request)
        if left is not None and left < self.largest_cap:  # rarely; no hold is above the largest cap
            payable = payable & (holds <= left)
            if not payable.any():
                return None
        return Offer(request, holds, *self.cooldowns.available(payable, now))

    def fallback(self, offer: Offer, on_limit: str) -> Offer | None:
        """The arm alone that answers where a limit of time refuses all of these; None if none does."""
        arms = np.flatnonzero(offer.available if offer.cooling is None else offer.available & ~offer.cooling)
        if on_limit == "refuse":
            return None
        arm = arms[offer.holds[arms].argmin()] if on_limit == "cheapest" else self._numbers.get(on_limit)
        if arm is None or not offer.available[arm]:
            return None
        alone = np.zeros_like(offer.available)
        alone[arm] = True
        return offer._replace(available=alone, cooling=None)

    def choose(
        self,
        offer: Offer,
        account: Account,
        leased: Account | None = None,
        decision: str | None = None,
        ahead: AheadChoice | None = None,
    ) -> Choice | None:
        """Choose one of the arms on offer; None if the policy stops. ``account`` and ``leased`` are as for
        `set_remaining`. An audit names the ``decision`` that it makes again. ``ahead`` is the choice if it was made
        already, from the same `choices_ahead.ChoiceInputs`."""
        self.set_remaining(account, leased)
        resolved, holds, available, cooling = offer
        request = self.request_info(resolved) if self.by_request else NO_REQUEST_INFO
        if ahead is not None:
            decision, arm, likely = ahead
            if self.learner.kind != "plain":  # what it keeps of a choice is kept here
                self.choose_arm(decision, available, request, cooling)
        else:
            if decision is None:
                decision, arm = self.next_choice(available, request, cooling)
            else:
                arm = self.choose_arm(decision, available, request, cooling)
            likely = None if arm is None else self.likelihood(decision, arm, available, request, cooling)
        if arm is None:
            return None
        active, unavailable = self.learner.state.active, list[int]()
        could = available if cooling is None else chosen_from(available, cooling, arm)
        if could is not active:
            allowed = active if resolved is None else resolved.among(active)
            unavailable = np.flatnonzero(allowed & ~could).tolist()
            if unavailable:
                resolved = replace(resolved or ResolvedRequest(), unavailable=unavailable)
        text = None if resolved is None else resolved.to_json()
        return Choice(decision, arm, int(holds[arm]), unavailable, text, likely)

    def likelihood(
        self, decision: str, arm: int, available: ArmMask, request: Request, cooling: ArmMask | None
    ) -> float | None:
        """How likely the choice of this arm was, if the terms ask for that."""
        if self._propensity_draws is None:
            return None
        # a generator of its own: no choice depends on these draws
        rng = self.draws.generator(decision, "propensity")
        return chances(self.learner, rng, int(self._propensity_draws), available, request, cooling).of(arm)

    def next_choice(self, available: ArmMask, request: Request, cooling: ArmMask | None) -> tuple[str, int | None]:
        """The id of a new decision, and its arm; None if the policy stops."""
        prefetched, self._prefetched = self._prefetched, None
        plain = available is self.learner.state.active and request is NO_REQUEST_INFO and cooling is None
        if prefetched is not None and prefetched[0] == self.tag and plain:
            return prefetched[1:]
        id = new_decision_id()
        return id, self.choose_arm(id, available, request, cooling)

    def prefetch_choice(self) -> None:
        """Make the next choice before it is asked for. It holds as long as nothing is learned, every arm can be paid,
        none cools down and nothing is said of the request, by policies that look at neither requests nor money."""
        if self.stateless and not self.by_request:
            id = new_decision_id()
            self._prefetched = self.tag, id, self.choose_arm(id, self.learner.state.active)

    def choose_arm(
        self, decision: str, available: ArmMask, request: Request = NO_REQUEST_INFO, cooling: ArmMask | None = None
    ) -> int | None:
        """The arm to pull among these, some of which may cool down; None if the policy stops."""
        return self.learner.choose(self.draws.generator(decision, "choose"), available, request, cooling)

    def request_info(self, request: ResolvedRequest | None) -> Request:
        """A request as the policy sees it; a new segment is opened."""
        if not self.by_request or (request is None and not self.segments):
            return NO_REQUEST_INFO
        if request is None:
            return self.request(None)
        shares = None if request.prices is None else np.array(request.prices) / self._cost_max
        prices = None if shares is None else self.prices(request.arms, shares)
        features = None if request.features is None else np.array(request.features)
        return self.request(request.segment, prices, features)

    # --- what becomes of a decision ------------------------------------------------------------------------------

    def record_feedback(self, pull: DecisionRow | Pull, event: Event) -> Sequence[int]:
        """A decision was settled or rewarded. A cost that is reported answers it, which ends a row of failures; once
        its reward is known too it is learned from. A policy knows both as shares of the largest there can be, or of the
        arm's largest. Returns the arms of which something has changed."""
        arm, reward, cost, segments, now = pull.arm, pull.reward, pull.cost, len(self.segments), event.at
        if event.kind == "settled":
            self.cooldowns.record_answer(arm, now, pull.created_at)
        if reward is None or cost is None:
            return [arm]
        share = min(reward / self._settings.terms.reward_max, 1.0)  # it may have been lowered meanwhile
        price = min(cost / self._settings.cost_scale(int(self.caps[arm])), 1.0)
        request = self.request_info(ResolvedRequest.from_json(pull.request)) if self.by_request else NO_REQUEST_INFO
        before = dict(vars(self.state))
        self.learn(arm, share, price, self.draws.generator(pull.id, "learn"), request, now)
        if self.sums is not None:
            self.sums.record(arm, request.segment, reward, cost)
        if len(self.segments) != segments:
            return range(len(self.names))
        return sorted({arm, *self.learner.changed_since(before)})

    def set_budget(self, budget: int) -> None:
        """Tell the policy the budget, in micros."""
        self.learner.set_budget(budget / self._cost_max)

    def set_remaining(self, account: Account, leased: Account | None = None) -> None:
        """Tell a policy that plans what is left of the budget and of the requests. Money that was charged and requests
        that were used up count also where nothing was learned: a reward is late, a hold has expired, a call has failed.

        Under a lease ``leased`` is its account since it was merged, when the campaign had ``account``.
        """
        spent, used = account.spent, account.requests_used
        if leased is not None:
            spent, used = spent + leased.spent, used + leased.requests_used
        self.learner.set_remaining((account.budget - spent) / self._cost_max, used)

    def add(self, name: str, cap: int) -> int:
        """One more arm; its number."""
        self.caps, self.largest_cap = np.append(self.caps, cap), max(self.largest_cap, cap)
        if self.sums is not None:
            self.sums.add_arm()
        return self.add_arm(name, scale=cap / self._cost_max)
