"""What a campaign's policy knows, between the rows of a store and the policy's own state.

A policy's state has arrays that run over the arms and a few single values. The arms' parts are kept with the arms, the
rest with the campaign, so that learning from one pull writes one row however many arms there are.

Randomness is seeded by the decision it is for: whoever replays a campaign's events draws the same numbers.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy, State
from budgetbandits.service.stores.base import ArmRow, Campaign


@dataclass
class Mind:
    """A policy with the state it is in; ``tag`` says which committed change of the campaign that state is of."""

    policy: Policy
    state: State
    names: list[str]
    caps: NDArray[np.int64]
    tag: str = ""

    @classmethod
    def new(cls, policy: Policy, names: Sequence[str], caps: Sequence[int], known: dict[str, Any]) -> Mind:
        return cls(policy, policy.start(len(names), known), list(names), np.array(caps, dtype=np.int64))

    @classmethod
    def remembered(cls, row: Campaign, arms: Sequence[ArmRow]) -> Mind:
        """From the rows that `of_campaign` and `row` made."""
        policy, single = parse_policy(row.policy), row.learned["single"]
        state = policy.start(len(arms), single["known"])
        for f in fields(state):
            old = getattr(state, f.name)
            if isinstance(old, np.ndarray):
                columns = [np.asarray(arm.learned[f.name], dtype=old.dtype) for arm in arms]
                setattr(state, f.name, np.stack(columns, axis=-1))
            elif f.name != "known":
                setattr(state, f.name, single[f.name])
        caps = np.array([arm.cost_cap for arm in arms], dtype=np.int64)
        return cls(policy, state, [arm.name for arm in arms], caps, row.learned["tag"])

    def of_campaign(self, row: Campaign) -> Campaign:
        """The campaign with what is known now, under a new tag: a change undone never passes for one that was made."""
        self.tag = uuid.uuid4().hex
        return replace(row, learned={"tag": self.tag, "single": self.single()}, version=row.version + 1)

    def row(self, campaign: Campaign, arm: int) -> ArmRow:
        cap, active = int(self.caps[arm]), bool(self.state.active[arm])
        return ArmRow(campaign.id, arm, self.names[arm], cap, self.of_arm(arm), campaign.version, active)

    def add(self, name: str, cap: int) -> int:
        """One more arm; its number."""
        self.state.extend(self.policy.start(1, self.state.known))
        self.names.append(name)
        self.caps = np.append(self.caps, cap)
        return len(self.names) - 1

    def single(self) -> dict[str, Any]:
        """What is not any one arm's, as plain values."""
        return {
            f.name: _plain(value)
            for f in fields(self.state)
            if not isinstance(value := getattr(self.state, f.name), np.ndarray)
        }

    def of_arm(self, arm: int) -> dict[str, Any]:
        return {name: array[..., arm].tolist() for name, array in self._arrays().items()}

    def choose(self, decision: str, left: int) -> int | None:
        """The arm to pull among those whose cost cap fits what is left; None if none does or the policy stops."""
        active = self.state.active
        if not (active & (self.caps <= left)).any():
            return None
        self.state.active = active & (self.caps <= left)
        try:
            if not self.policy.goes_on(self.state):
                return None
            return self.policy.choose(self.state, _generator(decision, "choose"))
        finally:
            self.state.active = active

    def learn(self, decision: str, arm: int, reward: float, cost: int, settings: dict[str, Any]) -> None:
        """From a reward and a cost as they were told; a policy knows both as shares of the largest there can be."""
        share, price = reward / settings["reward_max"], min(cost / settings["cost_max"], 1.0)
        self.policy.observe(self.state, arm, share, price, _generator(decision, "learn"))

    def hear_budget(self, budget: int, settings: dict[str, Any]) -> bool:
        """Tell a policy that plans with the budget of a new one; whether it is of that kind."""
        plans = "budget" in self.state.known
        if plans:
            self.state.known["budget"] = budget / settings["cost_max"]
        return plans

    def copy(self) -> dict[str, NDArray[Any]]:
        """The arrays as they are now, for `changed` to compare with."""
        return {name: array.copy() for name, array in self._arrays().items()}

    def changed(self, before: dict[str, NDArray[Any]]) -> list[int]:
        """The arms of which something is different."""
        different = np.zeros(len(self.state.pulls), dtype=bool)
        for name, array in self._arrays().items():
            apart = array != before[name]
            different |= apart if apart.ndim == 1 else apart.any(axis=0)
        return [int(arm) for arm in np.flatnonzero(different)]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        values = {f.name: getattr(self.state, f.name) for f in fields(self.state)}
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _generator(decision: str, purpose: Literal["choose", "learn"]) -> np.random.Generator:
    digest = hashlib.blake2b(f"{purpose}:{decision}".encode(), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little")))
