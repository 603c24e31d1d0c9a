"""What a campaign has learned, between the rows of a store and the policy's own state.

A policy's state has arrays that run over the arms and a few single values. The arms' parts are kept with the arms, the
rest with the campaign, so that learning from one pull writes one row however many arms there are.

Randomness is seeded by the decision it is for: whoever replays a campaign's events draws the same numbers.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadState
from budgetbandits.learner import Learner
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy, State
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.service.stores.base import ArmRow, Campaign

TAGS = 8
"""How many of its latest changes a campaign keeps, each as a tag and the arms that changed. A server whose tag is among
them reads only those arms ..."""

NAMED_ARMS = 16
"""... unless it was more than this many at once."""

Purpose = Literal["choose", "learn"]


class Draws:
    """A generator for each decision and purpose, seeded by a digest of both. One object for each purpose, seeded anew
    each time."""

    def __init__(self) -> None:
        self._generators = {purpose: np.random.Generator(np.random.PCG64(0)) for purpose in get_args(Purpose)}
        self._ready = dict.fromkeys(self._generators, "")

    def generator(self, decision: str, purpose: Purpose) -> np.random.Generator:
        """Good until the next call for this purpose."""
        if self._ready[purpose] != decision:
            self.prepare(decision, purpose)
        self._ready[purpose] = ""
        return self._generators[purpose]

    def prepare(self, decision: str, purpose: Purpose) -> None:
        """Have it ready before it is asked for."""
        digest = hashlib.blake2b(f"{purpose}:{decision}".encode(), digest_size=32).digest()
        state, step = int.from_bytes(digest[:16], "little"), int.from_bytes(digest[16:], "little") | 1
        self._generators[purpose].bit_generator.state = {
            "bit_generator": "PCG64", "state": {"state": state, "inc": step}, "has_uint32": 0, "uinteger": 0
        }  # fmt: skip
        self._ready[purpose] = decision


@dataclass
class CampaignLearner:
    """A campaign's learner with its arms' names and cost caps; ``tag`` says which committed change it is of."""

    _learner: Learner
    names: list[str]
    caps: NDArray[np.int64]
    draws: Draws
    tag: str = ""

    def __post_init__(self) -> None:
        self.most = int(self.caps.max())
        self._ahead: tuple[str, str, int | None] | None = None
        self.chooses_anew = self._learner.kind == "plain" and not self.leaves_traces
        """Whether a choice changes nothing at all, so that nothing need be looked at or kept of it."""

    @property
    def state(self) -> State:
        return self._learner.state

    def of_arm(self, arm: int) -> dict[str, Any]:
        """What was learned about one arm."""
        return self._learner.of_arm(arm)

    def of_all(self) -> dict[str, Any]:
        """What was learned and is not any one arm's."""
        return self._learner.of_all()

    @property
    def least(self) -> int:
        """The smallest cap of an arm that can be chosen."""
        return int(self.caps[self.state.active].min())

    @property
    def leaves_traces(self) -> bool:
        """Whether a choice changes what is known; of a policy that draws, at most how it draws."""
        return not isinstance(self._learner.policy, SamplingPolicy)

    def copy(self, tag: str) -> CampaignLearner:
        """One that knows the same and goes its own way, under this tag."""
        return CampaignLearner(copy.deepcopy(self._learner), list(self.names), self.caps.copy(), Draws(), tag)

    def changed_since(self, before: Mapping[str, Any]) -> list[int]:
        """The arms that a choice has changed since the state had these values."""
        return self._learner.changed_since(before)

    # --- from rows and to rows -----------------------------------------------------------------------------------

    @classmethod
    def new(
        cls, policy: Policy, names: Sequence[str], caps: Sequence[int], settings: dict[str, Any]
    ) -> CampaignLearner:
        learner = Learner.new(policy, len(names), settings["known"], kind=settings["chooser"])
        return cls(learner, list(names), np.array(caps, dtype=np.int64), Draws())

    @classmethod
    def remembered(cls, row: Campaign, arms: Sequence[ArmRow]) -> CampaignLearner:
        """From the rows that `of_campaign` and `row` made."""
        caps = [arm.cost_cap for arm in arms]
        learner = cls.new(parse_policy(row.policy), [arm.name for arm in arms], caps, row.settings)
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
            raise BadState(
                f"campaign {row.name!r}: {error}; 'budgetbandits campaign verify' says where, restore an undamaged copy"
            ) from None
        self.hear_budget(row.account.budget, row.settings)
        self.tag = newest_tag(row)

    def of_campaign(self, row: Campaign, arms: Sequence[int] = ()) -> Campaign:
        """The campaign with what is known now, of which these arms have changed.

        The tag is new: a change undone never passes for one that was made.
        """
        self.tag = os.urandom(6).hex()
        change = [self.tag, [int(arm) for arm in arms] if len(arms) <= NAMED_ARMS else None]
        learned = {"changes": [change, *row.learned.get("changes", ())][:TAGS], "single": self._learner.of_all()}
        return row.with_learned(learned)

    def row(self, campaign: Campaign, arm: int) -> ArmRow:
        cap, active = int(self.caps[arm]), bool(self.state.active[arm])
        return ArmRow(campaign.id, arm, self.names[arm], cap, self._learner.of_arm(arm), active)

    # --- what happens to it --------------------------------------------------------------------------------------

    def add(self, name: str, cap: int) -> int:
        """One more arm; its number."""
        self.names.append(name)
        self.caps = np.append(self.caps, cap)
        self.most = max(self.most, cap)
        return self._learner.add()

    def retire(self, arm: int) -> None:
        """Never choose this arm again."""
        self._learner.retire(arm)

    def bring_back(self, arm: int) -> None:
        """Choose this arm again, with what is known of it."""
        self._learner.bring_back(arm)

    def fitting(self, left: int) -> NDArray[np.bool_] | None:
        """Which arms are active and have a cost cap that fits what is left; None if there is none."""
        if left >= self.most:  # nearly always, and one arm at least is active
            return self.state.active
        fitting = self.state.active & (self.caps <= left)
        return fitting if fitting.any() else None

    def next_choice(self, fitting: NDArray[np.bool_]) -> tuple[str, int | None]:
        """The id of a new decision, and the arm to pull among these; None if the policy stops."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] == self.tag and fitting is self.state.active:
            return ahead[1:]
        id = os.urandom(16).hex()
        return id, self.choose(id, fitting)

    def think_ahead(self) -> None:
        """Make the next choice before anybody asks for it; it holds as long as nothing is learnt and every arm fits."""
        if self.chooses_anew:
            id = os.urandom(16).hex()
            self._ahead = self.tag, id, self.choose(id, self.state.active)

    def choose(self, decision: str, fitting: NDArray[np.bool_]) -> int | None:
        """The arm to pull among these; None if the policy stops."""
        return self._learner.choose(self.draws.generator(decision, "choose"), fitting)

    def learn(self, decision: str, arm: int, reward: float, cost: int, settings: dict[str, Any]) -> None:
        """From a reward and a cost as they were told; a policy knows both as shares of the largest there can be."""
        share, price = reward / settings["reward_max"], min(cost / settings["cost_max"], 1.0)
        self._learner.learn(arm, share, price, self.draws.generator(decision, "learn"))

    def hear_budget(self, budget: int, settings: dict[str, Any]) -> None:
        """The budget is this from now on, in micros."""
        self._learner.new_budget(budget / settings["cost_max"])


def newest_tag(row: Campaign) -> str:
    """The tag of the campaign's latest change."""
    return str(row.learned["changes"][0][0])


def changed_since(row: Campaign, tag: str) -> list[int] | None:
    """The arms that have changed since the campaign had this tag, in order; None if any may have."""
    changed: set[int] = set()
    for newer, arms in row.learned["changes"]:
        if newer == tag:
            return sorted(changed)
        if arms is None:
            return None
        changed.update(arms)
    return None
