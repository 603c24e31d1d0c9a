"""One step of a request, for everybody who drives a policy outside simulation: `Allocation` and the decision service.

An `ArmSession` says which arms may answer a request, which of them cool down, and what the policy sees of the request.
It lets the policy choose, and passes answers, outcomes and failures on to the policy and to the cooldowns. Rewards,
costs and prices are in the policy's units, where the largest is 1; times are numbers of asks, or seconds in the
service. The money is the driver's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from budgetbandits.allocation import substitutes
from budgetbandits.allocation.cooldowns import Cooldowns
from budgetbandits.allocation.learner import Learner
from budgetbandits.errors import BadFeature, NoArmLeft, UnknownArm
from budgetbandits.numerics.arrays import ArmMask, Array
from budgetbandits.policies.base import NO_REQUEST_INFO, Policy, Request, State
from budgetbandits.validation import Number, RequestOptions, listed

ARMS_NAMED_MAX = 8
"""Arms, or features, that an error message lists."""

FEATURES_MAX = 64
"""Features of a request: a regression of 64 takes a few milliseconds."""


class Segments(dict[str | None, int]):
    """The numbers of the segments that requests have named, in the order in which they first came. Requests that name
    none are a segment too, once others name one."""

    def __init__(self, names: Iterable[str | None] = ()) -> None:
        super().__init__((name, number) for number, name in enumerate(names))


class ArmDown(NamedTuple):
    """An arm that is down.

    failures    failures in a row
    since       when the first ask of them was made, by the clock of the cooldowns
    substitute  the available arm with the best ratio so far; None if nothing is known of it
    times       how many times the price of this arm that one costs
    """

    failures: int
    since: float
    substitute: str | None
    times: float | None


class ArmSession:
    """A policy at work for named arms.

    learner    the policy, and what it has learned
    names      the arms' names, in the order of their numbers
    cooldowns  which arms cool down
    segments   the kinds of requests, by name
    features   the names of the features that every request has, in the order in which the policy sees them
    """

    def __init__(
        self, learner: Learner, names: Sequence[str], cooldowns: Cooldowns, features: Sequence[str] = ()
    ) -> None:
        self.learner = learner
        self.features = tuple(features)
        self.names = list(names)
        self.cooldowns = cooldowns
        self.segments = Segments()
        self._numbers = {name: number for number, name in enumerate(names)}

    @property
    def policy(self) -> Policy:
        """The policy at work."""
        return self.learner.policy

    @property
    def state(self) -> State:
        """The state of the policy."""
        return self.learner.state

    def number(self, name: str) -> int:
        """The number of the arm of this name."""
        arm = self._numbers.get(name) if isinstance(name, str) else None
        return arm_number(self.names, name) if arm is None else arm

    # --- choosing ------------------------------------------------------------------------------------------------

    def allowed(self, options: RequestOptions) -> ArmMask:
        """The arms that may answer a request: active, among its arms if it names any, and not excluded."""
        active = self.learner.state.active
        excluded = [self.number(name) for name in options.exclude]
        for name in (*(options.prices or ()), *options.holds):
            self.number(name)
        if options.arms is None and not excluded:
            return active
        allowed = active.copy()
        if options.arms is not None:
            allowed[:] = False
            allowed[[self.number(name) for name in options.arms]] = True
            allowed &= active
        allowed[excluded] = False
        if not allowed.any():
            raise NoArmLeft("arms and exclude leave no arm to choose from; allow one that is not retired")
        return allowed

    def feature_values(self, features: Mapping[str, Number] | None) -> Array | None:
        """The features of a request in the policy's order; None for a policy that looks at none."""
        names = self.features
        if not names:
            if features:
                raise BadFeature(
                    f"feature {min(features)!r:.60} is not looked at; this allocation began without features: "
                    "start another with features=[…]"
                )
            return None
        given = features or {}
        for name in names:
            if name not in given:
                raise BadFeature(f"feature {name!r:.60} is missing; give every request {_listed(names)}")
        for name in given:
            if name not in names:
                raise BadFeature(f"there is no feature {name!r:.60}; the features are {_listed(names)}")
        return np.array([given[name] for name in names])

    def request(
        self,
        segment: str | None,
        prices: Array | None = None,
        features: Array | None = None,
        *,
        pending: bool = False,
    ) -> Request:
        """A request as the policy sees it; a new segment is opened.

        ``pending`` says whether there are requests whose outcomes are still to come: their segments are kept by number.
        """
        segments = self.segments
        if segment is None and prices is None and features is None and not segments:
            return NO_REQUEST_INFO
        policy, state = self.learner.policy.for_requests, self.learner.state
        if not segments and segment is not None and (pending or state.pulls.any()):
            segments[None] = 0  # what was asked or learned before any segment was named is of no named one
        if segment not in segments:
            number = len(segments)
            while policy.segments(state) <= number:
                policy.open_segment(state)
            segments[segment] = number
        return Request(segments[segment], prices, features=features)

    def prices(self, arms: Sequence[int] | None, shares: Array) -> Array:
        """Prices for all arms as the policy sees them, from the ``shares`` of some; NaN for the others."""
        prices = np.full(len(self.names), np.nan)
        prices[arms if arms is not None else slice(len(shares))] = shares
        return prices

    # --- what becomes of it --------------------------------------------------------------------------------------

    def learn(
        self, arm: int, reward: float, cost: float, rng: np.random.Generator, request: Request, now: float
    ) -> None:
        """Reward and cost of a pull are both known from now on."""
        self.learner.learn(arm, reward, cost, rng, request)
        self.cooldowns.record_outcome(arm, reward <= 0.0 and cost <= 0.0, now)

    def plan_with(self, budget: float, unlearned: int) -> None:
        """The budget that the policy plans with, and the requests used up that it did not learn from."""
        self.learner.set_budget(budget)
        self.learner.set_unlearned_requests(unlearned)

    # --- arms ----------------------------------------------------------------------------------------------------

    def add_arm(self, name: str, cost: float | None = None, scale: float = 1.0) -> int:
        """One more arm; its number. The other parameters are those of `Learner.add`."""
        number = self._numbers[name] = self.learner.add(cost, scale)
        self.names.append(name)
        self.cooldowns.add_arm()
        return number

    def retire(self, arm: int) -> None:
        """Never choose this arm again; it can still be learned from."""
        self.learner.retire(arm)

    def bring_back(self, arm: int) -> None:
        """Choose a retired arm again, with what is known of it."""
        self.learner.bring_back(arm)

    def arms_down(self) -> dict[str, ArmDown]:
        """The active arms that are down, with the arm that would answer for each."""
        cooldowns, names, active, arms_down = self.cooldowns, self.names, self.state.active, {}
        available = active.copy()
        available[list(cooldowns.down)] = False
        for arm in sorted(cooldowns.down):
            if active[arm]:
                seen = cooldowns.arms[arm]
                likely = substitutes.likely(self.policy, self.state, arm, available)
                substitute, times = (None, None) if likely is None else (names[likely[0]], likely[1])
                arms_down[names[arm]] = ArmDown(seen.row, seen.began / cooldowns.ticks, substitute, times)
        return arms_down


def arm_number(names: Sequence[str], name: str) -> int:
    """The number of the arm of this name; an error that lists the first of the arms if there is none."""
    if name not in names:
        raise UnknownArm(f"no arm {name!r:.60}; the arms are {_listed(names)}: correct the name, or add the arm")
    return names.index(name)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:ARMS_NAMED_MAX])) + (", …" if len(names) > ARMS_NAMED_MAX else "")


def checked_features(policy: Policy, names: Iterable[str]) -> tuple[str, ...]:
    """The names of the features that a policy is to look at."""
    features = tuple(listed("features", names))
    if features and not policy.uses_features:
        raise BadFeature(f"{policy.spec} looks at no features of requests; leave out features, or use bts-linear")
    if len(features) > FEATURES_MAX:
        raise BadFeature(f"there are {len(features)} features; name {FEATURES_MAX} at most")
    for number, name in enumerate(features):
        if not name or name in features[:number]:
            raise BadFeature(f"feature {name!r:.60} is empty or there twice; give every feature a name of its own")
    return features


def chosen_from(available: ArmMask, cooling: ArmMask | None, arm: int) -> ArmMask:
    """The arms that a choice was made from: without those cooling down, unless it named one of them."""
    return available if cooling is None or cooling[arm] else available & ~cooling
