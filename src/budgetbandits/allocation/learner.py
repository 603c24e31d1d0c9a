"""A learner: a policy, what it has learned, and how it chooses.

It is the only driver of a policy outside simulation: an `Allocation` and the decision service hold one. Rewards, costs
and the budget are in the policy's units, where the largest reward and the largest cost of a pull are 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from budgetbandits.allocation import substitutes
from budgetbandits.allocation.choosers import Chooser, Kind, best_kind, chooser_for
from budgetbandits.errors import BadState
from budgetbandits.numerics.arrays import ArmMask, Array, lower_half, packed, plain, symmetric, unpacked
from budgetbandits.policies.base import NO_REQUEST_INFO, NOTHING_KNOWN, Knowledge, Policy, Request, State, best


class Learner:
    """Choose, learn, add, retire, bring back.

    With ``repeatable`` a choice can be repeated from the state and a generator alone; otherwise coming rounds may be
    drawn ahead, which is quicker.

    >>> import numpy as np
    >>> from budgetbandits import BudgetedThompson
    >>> learner, rng = Learner.new(BudgetedThompson(), 2), np.random.default_rng(1)
    >>> for _ in range(100):
    ...     arm = learner.choose(rng)
    ...     learner.learn(arm, reward=1.0, cost=0.2 + 0.6 * arm, rng=rng)
    >>> learner.state.pulls.tolist()
    [97, 3]
    """

    def __init__(self, policy: Policy, state: State, kind: Kind) -> None:
        self.policy = policy
        self.state = state
        self.kind: Kind = kind
        """How it chooses."""
        self.chooser: Chooser = chooser_for(kind, policy, state)
        self._may_stop = type(policy).can_continue is not Policy.can_continue
        self.draws_few = False
        """Whether a choice among less than half of the arms draws these alone, where a level is kept for all."""
        names = (field.name for field in fields(state) if field.name != "known")
        parts = {name: isinstance(getattr(state, name), np.ndarray) for name in names}
        self._of_arms = [name for name, array in parts.items() if array]
        self._of_all = [name for name, array in parts.items() if not array]

    @classmethod
    def new(
        cls,
        policy: Policy,
        arms: int,
        known: Knowledge = NOTHING_KNOWN,
        *,
        repeatable: bool = False,
        kind: Kind | None = None,
        scales: Array | None = None,
    ) -> Self:
        """A learner before the first pull; ``known`` holds what the policy must know beforehand.

        ``scales`` are the arms' own largest costs as shares of the largest of all. Where the policy can make use of
        them (`Policy.own_scales`), an arm's cost of 1 is its own largest cost.
        """
        state = policy.start(arms, known)
        if scales is not None and policy.own_scales:
            state.known = replace(state.known, scales=scales)
            kind = "plain"  # other choosers compare the arms' scores as they are drawn
        return cls(policy, state, kind or best_kind(policy, arms, repeatable))

    # --- choose and learn ----------------------------------------------------------------------------------------

    @property
    def can_continue(self) -> bool:
        """Whether the policy would name an arm; False when it has stopped."""
        return self.policy.can_continue(self.state)

    def choose(
        self,
        rng: np.random.Generator,
        mask: ArmMask | None = None,
        request: Request = NO_REQUEST_INFO,
        cooling: ArmMask | None = None,
    ) -> int | None:
        """The arm to pull of those in ``mask``, or of all that are active; None if the policy stops.

        ``cooling`` are those of them that cool down, if any does and any other does not: an arm that cools down is
        named only where another in its place would cost too much (`substitutes`).
        """
        arm = self._named(rng, mask, request)
        if cooling is None or arm is None or not cooling[arm]:
            return arm
        available = (self.state.active if mask is None else mask) & ~cooling
        if self.policy.keeps_pace(self.state):
            other = self.policy.planned_substitute(self.state, arm, available, rng, request)
            return arm if other is None else other
        other = self._named(rng, available, request)
        if other is None:  # a policy that knows what arms cost may be able to pay those cooling down alone
            return arm
        taken = rng.random() < substitutes.share(self.policy, self.state, arm, other)
        self.discard_choice(arm if taken else other)
        return other if taken else arm

    def _named(self, rng: np.random.Generator, mask: ArmMask | None, request: Request) -> int | None:
        """The arm that the policy names of those in ``mask``, or of all that are active."""
        state = self.state
        if mask is None or mask is state.active:
            if self._may_stop and not self.can_continue:
                return None
            return self.chooser.choose(state, rng) if request is NO_REQUEST_INFO else self._choose(rng, request)
        if self.draws_few and 2 * int(mask.sum()) < int(state.active.sum()):
            return self.choose_of_few(rng, np.flatnonzero(mask))  # else the level would move to and fro
        with self.restricted_to(mask, request) as seen:
            if not self.can_continue:
                return None
            # what was drawn ahead was drawn for all active arms
            ahead = self.kind in ("window", "sparse window")
            return self.policy.choose(state, rng) if ahead else self._choose(rng, seen)

    @contextmanager
    def restricted_to(self, mask: ArmMask | None, request: Request = NO_REQUEST_INFO) -> Iterator[Request]:
        """Restrict the active arms to ``mask`` for the duration of the block. Yields the request as the policy sees
        it: one that plans for future requests learns that these may have the other arms, too."""
        active = self.state.active
        if mask is None or mask is active:
            yield request
            return
        self.state.active = mask
        try:
            yield replace(request, future_arms=active) if self.policy.looks_at_requests else request
        finally:
            self.state.active = active

    def _choose(self, rng: np.random.Generator, request: Request) -> int | None:
        if request is NO_REQUEST_INFO:
            return self.chooser.choose(self.state, rng)
        return self.policy.for_requests.choose(self.state, rng, request)

    def choose_of_few(self, rng: np.random.Generator, arms: NDArray[np.int64]) -> int | None:
        """The arm to pull of these alone, by a policy that draws scores; nothing is kept of the others, or changed."""
        policy = self.policy.scoring
        assert policy is not None
        scores = policy.draw(self.state, rng, 1, arms)[0]
        place = best(scores, rng)
        return None if place is None else int(arms[place])

    def learn(
        self, arm: int, reward: float, cost: float, rng: np.random.Generator, request: Request = NO_REQUEST_INFO
    ) -> None:
        """Learn from one pull, which may have been chosen long ago or not at all."""
        if request is NO_REQUEST_INFO:
            self.policy.observe(self.state, arm, reward, cost, rng)
        else:
            self.policy.for_requests.observe(self.state, arm, reward, cost, rng, request)
        self.chooser.learned(self.state, rng, arm)

    def discard_choice(self, arm: int) -> None:
        """A choice of this arm was never acted on, and no feedback will come."""
        self.policy.discard_choice(self.state, arm)

    def add_history(self, arm: int, pulls: int, reward: float, cost: float) -> None:
        """Learn from past pulls with this total reward and total cost."""
        self.policy.add_history(self.state, arm, pulls, reward, cost)
        self.chooser.reset(self.state, arm)

    # --- changes on the way --------------------------------------------------------------------------------------

    def add(self, cost: float | None = None, scale: float = 1.0) -> int:
        """One more arm, by its number; ``cost`` is for policies that must know the costs, ``scale`` its largest cost as
        a share of the largest of all, where arms have scales of their own."""
        state = self.state
        if state.known.scales is not None:
            state.known = replace(state.known, scales=np.append(state.known.scales, scale))
        knowledge = state.known if cost is None else replace(state.known, costs=np.array([cost]))
        state.extend(self.policy.new_arm_state(state, knowledge))
        self.chooser.reset(self.state)
        return len(self.state.pulls) - 1

    def retire(self, arm: int) -> None:
        """Never choose this arm again; it can still be learned from."""
        self.state.active[arm] = False
        self.chooser.reset(self.state)

    def bring_back(self, arm: int) -> None:
        """Choose an arm again that was retired, with what is known of it."""
        self.state.active[arm] = True
        self.chooser.reset(self.state)

    def set_budget(self, budget: float) -> None:
        """A policy that plans with the budget must know what it is now."""
        if "budget" in self.policy.needs:
            self.state.know(budget=budget)

    def set_remaining(self, money: float, requests_used: int) -> None:
        """Tell a policy that looks at what is left; any other one notices nothing."""
        self.policy.set_remaining(self.state, money, requests_used)

    def set_horizon(self, horizon: float) -> None:
        """A policy that plans with the number of requests must know what it is now."""
        if "horizon" in self.policy.needs:
            self.state.know(horizon=horizon)

    def set_unlearned_requests(self, requests: int) -> None:
        """A policy that counts what it learned from must know how many other requests are used up."""
        if "horizon" in self.policy.needs:
            self.state.know(unlearned=requests)

    # --- saving --------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON but for infinities: `from_dict` goes on bit for bit."""
        return {"state": self.state.to_dict(), "chooser": {"kind": self.kind} | self.chooser.to_dict()}

    @classmethod
    def from_dict(cls, policy: Policy, arms: int, saved: Mapping[str, Any]) -> Self:
        """The learner that `to_dict` has written."""
        knowledge = Knowledge(**saved["state"]["known"])
        state = policy.start(arms, knowledge).filled(saved["state"])
        state.known = replace(state.known, scales=knowledge.scales, unlearned=knowledge.unlearned)
        chooser = dict(saved["chooser"])
        learner = cls(policy, state, chooser.pop("kind"))
        learner.chooser.restore(chooser, state)
        return learner

    def arm_state(self, arm: int) -> dict[str, Any]:
        """Everything learned about one arm, as plain values; many numbers as text (`packed`)."""
        state, halved = vars(self.state), self.state.symmetric
        parts = {name: state[name][..., arm] for name in self._of_arms}
        return {name: packed(lower_half(part) if name in halved else part) for name, part in parts.items()}

    def shared_state(self) -> dict[str, Any]:
        """Everything learned that belongs to no single arm, as plain values, without `Knowledge`."""
        state = vars(self.state)
        return {name: plain(state[name]) for name in self._of_all} | self.chooser.to_dict()

    def load_state(self, shared_state: Mapping[str, Any], arm_states: Mapping[int, Mapping[str, Any]]) -> None:
        """Go on from what `shared_state` and `arm_state` of these arms said; BadState if they cannot have said that."""
        numbers, state, halved = list(arm_states), vars(self.state), self.state.symmetric
        try:
            for name in self._of_arms if numbers else ():
                old = state[name]
                parts = [unpacked(arm[name], old.dtype) for arm in arm_states.values()]
                new = np.stack([symmetric(part) for part in parts] if name in halved else parts, axis=-1)
                self.state.check(name, new)
                if new.shape[:-1] != old.shape[:-1]:  # others have opened segments
                    self.state.make_room(name, new.shape)
                    old = state[name]
                old[..., numbers] = new
            for name in self._of_all:
                setattr(self.state, name, shared_state[name])
            self.chooser.restore(shared_state, self.state, numbers)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            if isinstance(error, BadState):
                raise
            raise BadState(f"the saved state is damaged ({error!r:.80})") from None

    def changed_since(self, before: Mapping[str, Any]) -> list[int]:
        """The arms that a policy has changed since the state had these values, but for the one it has learned from. A
        policy that changes others gives its state a new array."""
        state = vars(self.state)
        changed: set[int] = set()
        for name in self._of_arms:
            if state[name].shape != before[name].shape:  # a segment was opened
                return list(range(len(self.state.pulls)))
            if state[name] is not before[name]:
                apart = state[name] != before[name]
                changed.update(apart.reshape(-1, apart.shape[-1]).any(axis=0).nonzero()[0].tolist())
        return sorted(changed)
