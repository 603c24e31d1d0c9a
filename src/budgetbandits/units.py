"""The user's units: what a reward, a cost, a budget and the name of an arm may be, and how a policy sees them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from budgetbandits.errors import BadParameter, CostOutOfRange, MissingKnowledge, RewardOutOfRange


@dataclass(frozen=True)
class Units:
    """The largest cost and the largest reward of a pull, which map the user's units to a policy's [0, 1]."""

    cost_max: float = 1.0
    reward_max: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost_max", positive("cost_max", self.cost_max))
        object.__setattr__(self, "reward_max", positive("reward_max", self.reward_max))

    def reward(self, value: float, arm: str) -> float:
        """A reward, checked, in the user's units."""
        return _within(value, self.reward_max, "reward", arm, RewardOutOfRange)

    def cost(self, value: float, arm: str) -> float:
        """A cost, checked, in the user's units."""
        return _within(value, self.cost_max, "cost", arm, CostOutOfRange)

    def cost_floor(self, value: float) -> float:
        """A lower bound on mean costs, in a policy's units."""
        share = positive("cost_floor", value) / self.cost_max
        if share > 1.0:
            raise BadParameter(f"cost_floor is {value:g}, above cost_max {self.cost_max:g}; lower it")
        return share

    def known_cost(self, name: str, costs: Mapping[str, float]) -> float:
        """An arm's mean cost that is known beforehand, in a policy's units."""
        if name not in costs:
            raise MissingKnowledge(f"costs has no entry for arm {name!r}; give every arm one")
        cost = _within(costs[name], self.cost_max, "known cost", name, CostOutOfRange)
        if cost == 0.0:
            raise CostOutOfRange(f"known cost of arm {name!r} is 0; give it a positive cost")
        return cost / self.cost_max

    def past(self, name: str, past: tuple[int, float, float]) -> tuple[int, float, float]:
        """What is known of an arm from before: pulls, total reward and total cost, in a policy's units."""
        try:
            pulls, reward, cost = past
        except (TypeError, ValueError):
            raise BadParameter(f"history of arm {name!r} is {past!r}; give (pulls, total reward, total cost)") from None
        if isinstance(pulls, bool) or not isinstance(pulls, int | np.integer) or not 0 <= pulls <= 2**53:
            raise BadParameter(f"history of arm {name!r}: pulls is {pulls!r:.40}; give a whole number from 0 to 2^53")
        reward = _within(reward, self.reward_max * int(pulls), "total past reward", name, RewardOutOfRange)
        cost = _within(cost, self.cost_max * int(pulls), "total past cost", name, CostOutOfRange)
        return int(pulls), reward / self.reward_max, cost / self.cost_max


def positive(what: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise BadParameter(f"{what} is {value!r}; use a positive number")
    if not 0.0 < value < 1e300:
        raise BadParameter(f"{what} is {value!r:.40}; use a positive number below 1e300")
    return float(value)


def checked_names(names: Iterable[str], fewest: int = 2) -> list[str]:
    if isinstance(names, str):
        raise BadParameter(f"arms is the text {names!r}; pass a list of names")
    if not isinstance(names, Iterable):
        raise BadParameter(f"arms is {names!r:.40}; pass a list of names")
    checked = list(names)
    for name in checked:
        if not isinstance(name, str) or not name:
            raise BadParameter(f"arm name {name!r:.40} is not text; give every arm a name such as 'search'")
    if len(checked) < fewest:
        raise BadParameter(f"{len(checked)} arms; there is nothing to choose with fewer than {fewest}")
    seen: set[str] = set()
    for name in checked:
        if name in seen:
            raise BadParameter(f"arm {name!r} is there already; give every arm a name of its own")
        seen.add(name)
    return checked


def _within(value: float, top: float, what: str, arm: str, error: type[Exception]) -> float:
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise error(f"{what} {value!r} for arm {str(arm)!r} is not a number; pass one in [0, {top:g}]") from None
    if 0.0 <= number <= top * (1.0 + 1e-12):  # sums of the user's own may be a last bit above
        return min(number, top)
    if number > top and not what.startswith("total"):
        setting = "reward_max" if what == "reward" else "cost_max"
        raise error(
            f"{what} {number:g} for arm {str(arm)!r} is above {setting} {top:g}; "
            f"raise {setting} when the allocation is created"
        )
    raise error(f"{what} {number:g} for arm {str(arm)!r} is not in [0, {top:g}]; pass a number in that range")
