"""The user's units: what a reward, a cost, a budget and the name of an arm may be, and how a policy sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from budgetbandits.errors import BadParameter, CostOutOfRange, MissingKnowledge, RewardOutOfRange
from budgetbandits.numerics.arrays import ArmMask, Array
from budgetbandits.validation import LARGEST, Number, RequestOptions, number, positive, whole

ROUNDING = 1e-12
"""A share of the largest cost or reward: sums of the user's own may be a last bit above it."""


HOLD_MARGIN = 1.5
"""A hold for an estimated price is this many times the price, but not above the arm's largest cost."""


PRICE_SHARE_MIN = 1e-12
"""A share of the largest cost: a price below it is a mistake, and dividing by it would say nothing."""


@dataclass(frozen=True)
class Units:
    """The largest cost and the largest reward of a pull, which map the user's units to a policy's [0, 1].

    ``caps`` are the largest costs of single arms by name, where they have their own; ``cost_max`` is the largest of
    them. With ``own_scales`` the policy sees an arm's costs as shares of its own cap.
    """

    cost_max: float = 1.0
    reward_max: float = 1.0
    caps: Mapping[str, float] | None = None
    own_scales: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost_max", positive("cost_max", self.cost_max))
        object.__setattr__(self, "reward_max", positive("reward_max", self.reward_max))

    @classmethod
    def of(
        cls, cost_max: Number | Mapping[str, Number], reward_max: Number, arms: Iterable[str], own_scales: bool
    ) -> Units:
        """The units with one largest cost for all arms, or one for each, of which the policy can make use with
        ``own_scales``."""
        largest, caps = caps_of(cost_max, arms)
        return cls(largest, positive("reward_max", reward_max), caps, caps is not None and own_scales)

    def joined_by(self, name: str, cost_max: Number | None) -> Units:
        """The units when there is one more arm."""
        if self.caps is None:
            if cost_max is not None:
                raise BadParameter("cost_max is one number for all arms here; leave it out for a new one")
            return self
        if cost_max is None:
            raise MissingKnowledge(f"every arm has a cost_max of its own; pass one for arm {name!r}")
        cap = positive(f"cost_max of arm {name!r}", cost_max)
        if cap > self.cost_max:
            raise BadParameter(
                f"cost_max of arm {name!r} is {cap:g}, above the largest of the first arms, {self.cost_max:g}; "
                "start a new allocation with history"
            )
        return replace(self, caps={**self.caps, name: cap})

    def reward(self, value: Number, arm: str) -> float:
        """A reward, checked, in the user's units."""
        if type(value) is float and 0.0 <= value <= self.reward_max:
            return value
        return _within(value, self.reward_max, "reward", arm, RewardOutOfRange)

    def cost(self, value: Number, arm: str) -> tuple[float, float]:
        """A cost, checked, in the user's units: as a policy learns it, up to the arm's largest, and as it is booked."""
        cap = self.cost_max if self.caps is None else self.caps[arm]
        cost = value if type(value) is float else number(value)
        if 0.0 <= cost <= cap:
            return cost, cost
        if cap < cost < LARGEST:
            return cap, cost if cost > cap * (1.0 + ROUNDING) else cap
        raise CostOutOfRange(
            f"cost {value!r:.40} for arm {arm!r} is no amount of money; pass a number from 0 upwards, below {LARGEST:g}"
        )

    def cap(self, arm: str) -> float:
        """The largest cost of an arm."""
        return self.cost_max if self.caps is None else self.caps[arm]

    def scale(self, arm: str) -> float:
        """The cost that the policy sees as 1."""
        return self.cap(arm) if self.own_scales else self.cost_max

    def scales(self, arms: Iterable[str]) -> list[float] | None:
        """The arms' caps as shares of the largest, if they have their own."""
        return None if self.caps is None else [self.caps[arm] / self.cost_max for arm in arms]

    def cost_floor(self, value: Number) -> float:
        """A lower bound on mean costs, in a policy's units."""
        floor = positive("cost_floor", value)
        if floor > self.cost_max:
            raise BadParameter(f"cost_floor is {floor:g}, above cost_max {self.cost_max:g}; lower it")
        return floor / self.cost_max

    def known_cost(self, name: str, costs: Mapping[str, Number]) -> float:
        """An arm's mean cost that is known beforehand, in a policy's units."""
        if name not in costs:
            raise MissingKnowledge(f"costs has no entry for arm {name!r}; give every arm one")
        cost = _within(costs[name], self.cost_max, "known cost", name, CostOutOfRange)
        if cost == 0.0:
            raise CostOutOfRange(f"known cost of arm {name!r} is 0; give it a positive cost")
        return cost / self.cost_max

    def past(self, name: str, past: tuple[Number, Number, Number]) -> tuple[int, float, float]:
        """An arm's history, checked: pulls, total reward and total cost, in a policy's units."""
        try:
            pulls, reward, cost = past
        except (TypeError, ValueError):
            raise BadParameter(f"history of arm {name!r} is {past!r}; give (pulls, total reward, total cost)") from None
        count = whole(f"history of arm {name!r}: pulls", pulls)
        reward = _within(reward, self.reward_max * count, "total past reward", name, RewardOutOfRange)
        cost = _within(cost, self.cap(name) * count, "total past cost", name, CostOutOfRange)
        return count, reward / self.reward_max, cost / self.scale(name)


def caps_of(cost_max: Number | Mapping[str, Number], arms: Iterable[str]) -> tuple[float, dict[str, float] | None]:
    """The largest cost of all, and those of single arms if they have their own.

    >>> caps_of({"small": 0.01, "large": 2}, ["small", "large"])
    (2.0, {'small': 0.01, 'large': 2.0})
    """
    if not isinstance(cost_max, Mapping):
        return positive("cost_max", cost_max), None
    names = list(arms)
    for name in names:
        if name not in cost_max:
            raise MissingKnowledge(f"cost_max has no entry for arm {name!r}; give every arm one, or one number for all")
    for name in cost_max:
        if name not in names:
            raise BadParameter(f"cost_max has {name!r:.40}, which is no arm; remove it or add the arm")
    caps = {name: positive(f"cost_max of arm {name!r}", cost_max[name]) for name in names}
    return max(caps.values()), caps


def checked_names(names: Iterable[str], fewest: int = 2) -> list[str]:
    """The names of arms as a list; an error if one is empty or there twice, or if there are too few."""
    if isinstance(names, str):
        raise BadParameter(f"arms is the text {names!r}; pass a list of names")
    if not isinstance(names, Iterable):
        raise BadParameter(f"arms is {names!r:.40}; pass a list of names")
    checked = list(names)
    for name in checked:
        if not isinstance(name, str) or not name:
            raise BadParameter(f"arm name {name!r:.40} is not text; give every arm a name such as 'search'")
    if len(checked) < fewest:
        raise BadParameter(f"an allocation needs at least {fewest} arms to choose from, and has {len(checked)}")
    seen: set[str] = set()
    for name in checked:
        if name in seen:
            raise BadParameter(f"arm {name!r} is there already; give every arm a name of its own")
        seen.add(name)
    return checked


def _within(value: Number, top: float, kind: str, arm: str, error: type[Exception]) -> float:
    amount = number(value, truth=error is RewardOutOfRange)
    if 0.0 <= amount <= top:
        return amount
    if top < amount <= top * (1.0 + ROUNDING):
        return top
    if amount != amount:
        raise error(f"{kind} {value!r:.40} for arm {arm!r} is not a number; pass one in [0, {top:g}]")
    if amount > top and not kind.startswith("total"):
        now, setting = (
            (f"tell reward={top:g}, and give the next allocation a larger reward_max", "reward_max")
            if kind == "reward"
            else ("raise cost_max when the allocation is created", "cost_max")
        )
        raise error(f"{kind} {amount:g} for arm {arm!r} is above {setting} {top:g}; {now}")
    raise error(f"{kind} {amount:g} for arm {arm!r} is not in [0, {top:g}]; pass a number in that range")


def estimated(options: RequestOptions, allowed: ArmMask, names: Sequence[str], units: Units) -> Array | None:
    """The prices of a request by arm, NaN for those that may not answer; None if it says none. Arms cooling down must
    have one, too: which prices are asked for does not depend on what failed."""
    if options.prices is None:
        return None
    prices = np.full(len(names), np.nan)
    for arm in np.flatnonzero(allowed).tolist():
        prices[arm] = price = options.price(names[arm], units.cap(names[arm]))
        if price < PRICE_SHARE_MIN * units.cost_max:
            raise BadParameter(
                f"the price of {names[arm]!r} is {price:g}, next to nothing compared with cost_max {units.cost_max:g}; "
                "give it in the unit of the budget"
            )
    return prices


def amounts_to_hold(
    hold: Number | bool, options: RequestOptions, estimates: Array | None, names: Sequence[str], units: Units
) -> Array | float:
    """The amount that an ask of each arm holds: one number if it is the same for all."""
    amount = units.cost_max if hold is True else 0.0 if hold is False else positive("hold", hold)
    if amount > units.cost_max:
        raise BadParameter(f"hold is {amount:g}, above cost_max {units.cost_max:g}; hold that or less")
    if not options.holds and (amount == 0.0 or (units.caps is None and estimates is None)):
        return amount  # with many arms, what follows takes longer than choosing one
    caps = np.array([units.cap(name) for name in names])
    amounts = np.minimum(amount, caps)
    if hold is True and estimates is not None:
        amounts = np.minimum(HOLD_MARGIN * estimates, caps)
    for name in options.holds:
        amounts[names.index(name)] = options.hold(name, units.cap(name), amount)
    return np.asarray(amounts)
