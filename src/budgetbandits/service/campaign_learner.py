"""What a campaign has learned, between the rows of a store and the policy's own state.

A policy's state has arrays that run over the arms and a few single values. The arms' parts are kept with the arms, the
rest with the campaign, so that learning from one pull writes one row however many arms there are.
"""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from budgetbandits.allocation import substitutes
from budgetbandits.allocation.learner import ArmMask, Learner
from budgetbandits.allocation.propensity import propensity
from budgetbandits.allocation.segments import Segments
from budgetbandits.errors import BadState, BudgetBanditsError, TooManySegments
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge, Policy, Request, RequestPolicy, State
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.service import plans
from budgetbandits.service.campaign_cooldowns import CampaignRests
from budgetbandits.service.draws import Draws
from budgetbandits.service.ledger import Account
from budgetbandits.service.request import Amounts, RequestOptions, ResolvedRequest
from budgetbandits.service.segment_sums import SegmentSums
from budgetbandits.service.settings import cost_scale
from budgetbandits.service.stores.records import ArmRow, Campaign, DecisionRow
from budgetbandits.service.tags import NAMED_ARMS, TAGS, newest_tag

MOST_SEGMENTS = 100
"""Segments of a campaign: an arm's row has what is known of it in each, and is written at every feedback."""

MOST_CELLS = 10_000
"""Arms of a campaign times its segments: to open one writes every arm's row, with what is known in all of them."""


class Pull(NamedTuple):
    """What is learned from a decision that was told in full, as its row has it (`stores.records.DecisionRow`)."""

    id: str
    arm: int
    reward: float | None
    cost: int | None
    request: str | None
    created_at: float


@dataclass
class CampaignLearner:
    """A campaign's learner with its arms' names and cost caps; ``tag`` says which committed change it is of."""

    _learner: Learner
    names: list[str]
    caps: NDArray[np.int64]
    draws: Draws
    rests: CampaignRests
    tag: str = ""
    segments: Segments = field(default_factory=Segments)
    sums: SegmentSums | None = None
    """What segments brought and cost, where the policy's own sums do not say so."""

    def __post_init__(self) -> None:
        self.most = int(self.caps.max())
        self.looks = isinstance(self._learner.policy, RequestPolicy)
        """Whether the policy looks at requests; only then are there segments, and plans with money."""
        self._ahead: tuple[str, str, int | None] | None = None
        self._learner.draws_few = self._learner.kind == "threshold"
        self.chooses_anew = self._learner.kind == "plain" and not self.leaves_traces
        """Whether a choice changes nothing at all, so that nothing need be looked at or kept of it."""

    @property
    def state(self) -> State:
        return self._learner.state

    def arm_state(self, arm: int) -> dict[str, Any]:
        """What was learned about one arm; how it rests, if there is anything to say of that."""
        learned = self._learner.arm_state(arm)
        if self.sums is not None:
            learned |= self.sums.arm_state(arm)
        return learned | self.rests.arm_state(arm)

    def shared_state(self) -> dict[str, Any]:
        """What was learned and is not any one arm's."""
        return self._learner.shared_state()

    @property
    def least(self) -> int:
        """The smallest cap of an arm that can be chosen."""
        return int(self.caps[self.state.active].min())

    @property
    def leaves_traces(self) -> bool:
        """Whether a choice changes what is known; of a policy that draws, at most how it draws, or a new segment."""
        return not isinstance(self._learner.policy, SamplingPolicy | RequestPolicy)

    def copy(self, tag: str) -> CampaignLearner:
        """One that knows the same and goes its own way, under this tag."""
        return CampaignLearner(
            copy.deepcopy(self._learner), list(self.names), self.caps.copy(), Draws(), self.rests.copy(), tag,
            copy.deepcopy(self.segments), copy.deepcopy(self.sums),
        )  # fmt: skip

    def changed_since(self, before: Mapping[str, Any]) -> list[int]:
        """The arms that a choice has changed since the state had these values."""
        return self._learner.changed_since(before)

    # --- from rows and to rows -----------------------------------------------------------------------------------

    @classmethod
    def new(
        cls, policy: Policy, names: Sequence[str], caps: Sequence[int], settings: dict[str, Any]
    ) -> CampaignLearner:
        own = np.array(caps) / settings["cost_max"] if settings.get("own_scales") else None
        learner = Learner.new(policy, len(names), Knowledge(**settings["known"]), kind=settings["chooser"], scales=own)
        learner.set_horizon(settings.get("horizon", math.inf))
        whole, rests = np.array(caps, dtype=np.int64), CampaignRests(len(names))
        sums = SegmentSums.kept_for(policy, len(names))
        return cls(learner, list(names), whole, Draws(), rests, sums=sums)

    @classmethod
    def remembered(cls, row: Campaign, arms: Sequence[ArmRow]) -> CampaignLearner:
        """From the rows that `of_campaign` and `row` made."""
        caps = [arm.cost_cap for arm in arms]
        try:
            learner = cls.new(parse_policy(row.policy), [arm.name for arm in arms], caps, row.settings)
        except BudgetBanditsError as error:  # nobody can have created it so
            raise _damaged(row, error) from None
        learner._take(row, arms)
        return learner

    def catch_up(self, row: Campaign, arms: Sequence[ArmRow]) -> None:
        """Go on to where others have brought the campaign, which changed these arms."""
        for arm in arms:
            if arm.number == len(self.names):
                self.add(arm.name, arm.cost_cap)
        self._take(row, arms)

    def _take(self, row: Campaign, arms: Sequence[ArmRow]) -> None:
        try:
            self._learner.take(row.learned["single"], {arm.number: arm.learned for arm in arms})
        except BadState as error:
            raise _damaged(row, error) from None
        self.segments = Segments(row.learned.get("segments", ()))
        for arm in arms:
            self.rests.take(arm.number, arm.learned)
            if self.sums is not None:
                self.sums.load_state(arm.number, arm.learned)
        self.set_budget(row.account.budget, row.settings)
        self.set_horizon(row.settings)
        self.tag = newest_tag(row)

    def of_campaign(self, row: Campaign, arms: Sequence[int] = ()) -> Campaign:
        """The campaign with what is known now, of which these arms have changed.

        The tag is new: a change undone never passes for one that was made.
        """
        self.tag = os.urandom(6).hex()
        change = [self.tag, [int(arm) for arm in arms] if len(arms) <= NAMED_ARMS else None]
        learned = {"changes": [change, *row.learned.get("changes", ())][:TAGS], "single": self._learner.shared_state()}
        if self.segments:
            learned["segments"] = list(self.segments)
        if self.rests.down:
            learned["down"] = self._arms_down()
        return row.with_learned(learned)

    def _arms_down(self) -> list[dict[str, Any]]:
        """For operators: which arms are down, how often they have failed in a row, since when, and who stands in."""
        active, found = self.state.active, []
        awake = active.copy()
        awake[list(self.rests.down)] = False
        for arm in sorted(self.rests.down):
            if active[arm]:
                failures, since = self.rests.row_of(arm)
                other, times = substitutes.likely(self._learner.policy, self.state, arm, awake) or (None, None)
                name = None if other is None else self.names[other]
                found.append(
                    {"arm": self.names[arm], "failures": failures, "since": since, "stand_in": name, "times": times}
                )
        return found

    def row(self, campaign: Campaign, arm: int) -> ArmRow:
        cap, active = int(self.caps[arm]), bool(self.state.active[arm])
        return ArmRow(campaign.id, arm, self.names[arm], cap, self.arm_state(arm), active)

    # --- what happens to it --------------------------------------------------------------------------------------

    def add(self, name: str, cap: int) -> int:
        """One more arm; its number."""
        self.names.append(name)
        self.caps = np.append(self.caps, cap)
        scale = cap / self.most  # the first arms have the largest cap
        self.rests.add()
        if self.sums is not None:
            self.sums.add_arm()
        return self._learner.add(scale=scale)

    def retire(self, arm: int) -> None:
        """Never choose this arm again."""
        self._learner.retire(arm)

    def bring_back(self, arm: int) -> None:
        """Choose this arm again, with what is known of it."""
        self._learner.bring_back(arm)

    def allowed(self, wanted: ResolvedRequest | None) -> ArmMask:
        """The arms that may answer a request: active, and not left out of it."""
        return self.state.active if wanted is None else wanted.among(self.state.active)

    def payable(self, left: int, allowed: ArmMask, holds: Amounts) -> ArmMask | None:
        """Which of these arms have a hold that fits what is left; None if there is none. Whether an arm rests is asked
        afterwards: else the failure of the only arm that can be paid would pass for the end of the money."""
        if left >= self.most:  # nearly always; no hold is above the largest cap
            return allowed
        payable = allowed & (holds <= left)
        return payable if payable.any() else None

    def request(self, wanted: ResolvedRequest | None, settings: dict[str, Any]) -> Request:
        """A request as the policy sees it; a new segment is opened."""
        if not self.looks or (wanted is None and not self.segments):
            return NO_REQUEST_INFO
        wanted = wanted or ResolvedRequest()
        prices = None
        if wanted.prices is not None:
            prices = np.full(len(self.names), np.nan)
            prices[wanted.arms] = np.array(wanted.prices) / settings["cost_max"]
        return self.segments.request(self._learner, wanted.segment, prices)

    def wanted(self, said: RequestOptions) -> ResolvedRequest:
        """What was said of a request, by the numbers of the arms; an error if that cannot be, or is not looked at.

        The number of segments is bounded here, for new requests, and not in `request`: what was decided must be learned
        and merged, however many segments several servers have opened together.
        """
        if said.segment is not None or said.prices is not None:
            _ = self._learner.by_request
        new = said.segment is not None and said.segment not in self.segments
        if new and len(self.segments) >= MOST_SEGMENTS:
            raise TooManySegments(
                f"segment {said.segment!r:.60} would be one of more than {MOST_SEGMENTS}; name fewer kinds"
            )
        number = len(self.segments) + 1
        if new and number * len(self.names) > MOST_CELLS:
            raise TooManySegments(
                f"segment {said.segment!r:.60} would be number {number} among {len(self.names):,} arms; "
                f"arms times segments are {MOST_CELLS:,} at most: name fewer kinds, or have fewer arms"
            )
        return said.wanted(self.names, self.caps, self.state.active)

    def next_choice(
        self, fitting: ArmMask, request: Request = NO_REQUEST_INFO, resting: ArmMask | None = None
    ) -> tuple[str, int | None]:
        """The id of a new decision, and the arm to pull among these, some of which may rest; None if the policy
        stops."""
        ahead, self._ahead = self._ahead, None
        plain = fitting is self.state.active and request is NO_REQUEST_INFO and resting is None
        if ahead is not None and ahead[0] == self.tag and plain:
            return ahead[1:]
        id = os.urandom(16).hex()
        return id, self.choose(id, fitting, request, resting)

    def prefetch_choice(self) -> None:
        """Make the next choice before anybody asks for it; it holds as long as nothing is learnt, every arm fits, none
        rests and nothing is said of the request, by policies that look at neither requests nor money."""
        if self.chooses_anew and not self.looks:
            id = os.urandom(16).hex()
            self._ahead = self.tag, id, self.choose(id, self.state.active)

    def choose(
        self, decision: str, fitting: ArmMask, request: Request = NO_REQUEST_INFO, resting: ArmMask | None = None
    ) -> int | None:
        """The arm to pull among these, some of which may rest; None if the policy stops."""
        return self._learner.choose(self.draws.generator(decision, "choose"), fitting, request, resting)

    def propensity(
        self,
        decision: str,
        arm: int,
        fitting: ArmMask,
        request: Request,
        settings: dict[str, Any],
        resting: ArmMask | None = None,
    ) -> float | None:
        """How likely this choice was, from as many extra draws as the terms say; None if they say nothing. They have a
        generator of their own: no choice depends on them."""
        count = settings.get("propensity_draws")
        if count is None:
            return None
        rng = self.draws.generator(decision, "propensity")
        return propensity(self._learner, arm, rng, int(count), fitting, request, resting)

    def learn(self, told: DecisionRow | Pull, at: float, settings: dict[str, Any]) -> Sequence[int]:
        """From a reward and a cost that are known from now on; a policy knows both as shares of the largest there can
        be, or of the largest of the arm. The arms of which something has changed."""
        arm, reward, cost, known = told.arm, told.reward, told.cost, len(self.segments)
        assert reward is not None
        assert cost is not None
        scale = cost_scale(settings, int(self.caps[arm]))
        share, price = reward / settings["reward_max"], min(cost / scale, 1.0)
        request = self.request(ResolvedRequest.read(told.request), settings) if self.looks else NO_REQUEST_INFO
        self._learner.learn(arm, share, price, self.draws.generator(told.id, "learn"), request)
        if self.sums is not None:
            self.sums.record(arm, request.segment, reward, cost)
        self.rests.told(arm, reward > 0.0 or cost > 0, at, told.created_at)
        return [arm] if len(self.segments) == known else range(len(self.names))

    def failed(self, arm: int, at: float, made_at: float) -> None:
        """There was no answer to a decision that was made then: after several in a row the arm rests."""
        self.rests.failed(arm, at, made_at, int(self.state.pulls[arm]))

    def set_budget(self, budget: int, settings: dict[str, Any]) -> None:
        """The budget is this from now on, in micros."""
        self._learner.set_budget(budget / settings["cost_max"])

    def set_remaining(self, account: Account, settings: dict[str, Any], lent: Account | None = None) -> None:
        """What is left of the money and the requests: see `plans.set_remaining`."""
        plans.set_remaining(self._learner, account, settings, lent)

    def set_horizon(self, settings: dict[str, Any]) -> None:
        """The budget is for so many requests from now on."""
        self._learner.set_horizon(settings.get("horizon", math.inf))


def _damaged(row: Campaign, error: BudgetBanditsError) -> BadState:
    return BadState(
        f"campaign {row.name!r}: {error}; 'budgetbandits campaign verify' says where, restore an undamaged copy"
    )
