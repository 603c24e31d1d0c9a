"""Open asks: the arm of each, the money it holds, and what is known of it so far; and the outcomes of closed ones."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from budgetbandits.allocation.money import ExactSum
from budgetbandits.allocation.units import Units
from budgetbandits.errors import BadParameter, BadState, UnknownAsk
from budgetbandits.validation import LARGEST, whole


@dataclass(slots=True, eq=False)
class Ask:
    """The answer to one ask: ``arm`` is the name of the arm to pull, ``id`` is what this ask goes by.

    No other ask of the allocation has that number, also after a restart. Asks are equal if they are the same ask.
    To leave the process, write down the ``id``, which `Allocation.tell` takes in place of the ask, or `to_dict`.

    ``propensity`` is how likely the choice was, and ``arms`` are those that it was made from: allowed, affordable and
    ready; for an allocation with ``propensity_draws``, None for others. A log for `off_policy` has both.

    >>> ask = Ask(17, "social")
    >>> Ask.from_dict(ask.to_dict()) == ask
    True
    """

    id: int
    arm: str
    propensity: float | None = None
    arms: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {"id": self.id, "arm": self.arm, "propensity": self.propensity, "arms": self.arms and list(self.arms)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Ask:
        """The ask that `to_dict` has described."""
        try:
            arms = saved.get("arms")
            return cls(whole("id", saved["id"]), saved["arm"], saved.get("propensity"), arms and tuple(arms))
        except (AttributeError, KeyError, TypeError) as error:
            raise BadParameter(f"{saved!r:.60} is no ask ({error!r}); pass what to_dict() returned") from None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Ask):
            return self.id == other.id and self.arm == other.arm
        if isinstance(other, str):  # always False, which would be easy to overlook
            raise BadParameter(f"{self!r} is compared with the text {other!r:.40}; compare its arm: ask.arm == ...")
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Ask({self.id}, {self.arm!r})"


@dataclass(slots=True)
class OpenAsk:
    """An ask that waits for its cost, its reward or both. Never changed, only replaced.

    arm     the arm's number
    hold    the money set aside for it; 0 once its cost is reported
    reward  its reward, if reported
    cost    its cost, if reported, as the policy learns it: at most the arm's largest cost
    overrun what it cost above that
    counts  whether its cost fitted the budget when it was reported; if not, its reward is not earned
    segment the number of the request's segment
    prices  what each arm was estimated to cost, if they were; None for one that could not be chosen
    features  the features of the request, if it has any
    propensity  how likely the choice was, if that is known
    could   then, the numbers of the arms it was chosen from
    """

    arm: int
    hold: float = 0.0
    reward: float | None = None
    cost: float | None = None
    overrun: float = 0.0
    counts: bool = True
    segment: int = 0
    prices: list[float | None] | None = None
    features: list[float] | None = None
    propensity: float | None = None
    could: list[int] | None = None

    def lacks(self, reward: bool, cost: bool) -> bool:
        """Whether what is to be reported now was not reported before."""
        return not (reward and self.reward is not None) and not (cost and self.cost is not None)


class AskQueue:
    """The numbers of open asks by arm and by what of them is known, so that the oldest is found without a look at all.

    Asks that are closed or of which more is known by now are left where they were until they come first.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, bool, bool], list[int]] = {}
        self._count = 0

    def __len__(self) -> int:
        """How many numbers are kept, those left where they were included."""
        return self._count

    def add(self, number: int, ask: OpenAsk) -> None:
        """Add an ask by its number."""
        heapq.heappush(self._numbers.setdefault(_known(ask), []), number)
        self._count += 1

    def first(self, arm: int, reward: bool, cost: bool, asks: Mapping[int, OpenAsk]) -> int | None:
        """The oldest of an arm of which neither the reward nor the cost is known, as far as these are asked for."""
        keys = [(arm, False, False)]
        if not reward:
            keys.append((arm, True, False))
        if not cost:
            keys.append((arm, False, True))
        return min((number for key in keys if (number := self._top(key, asks)) is not None), default=None)

    def _top(self, key: tuple[int, bool, bool], asks: Mapping[int, OpenAsk]) -> int | None:
        numbers = self._numbers.get(key, [])
        while numbers:
            ask = asks.get(numbers[0])
            if ask is not None and _known(ask) == key:
                return numbers[0]
            heapq.heappop(numbers)
            self._count -= 1
        return None


def _known(ask: OpenAsk) -> tuple[int, bool, bool]:
    """Its arm, and whether its reward and its cost are known."""
    return ask.arm, ask.reward is not None, ask.cost is not None


class OpenAsks:
    """The open asks by their number, oldest first. What they hold and have cost is known without a look at each."""

    def __init__(self) -> None:
        self.next_number = 0
        self._open: dict[int, OpenAsk] = {}
        self._held = ExactSum()
        self._paid = 0
        self._costs = ExactSum()
        self._by_name: AskQueue | None = None
        """The open asks by arm, once one was looked for by its arm's name."""

    def __len__(self) -> int:
        return len(self._open)

    def __getitem__(self, number: int) -> OpenAsk:
        return self._open[number]

    def items(self) -> Iterable[tuple[int, OpenAsk]]:
        """The open asks by number."""
        return self._open.items()

    @property
    def held(self) -> float:
        """The money that all of them hold."""
        return self._held.value

    @property
    def paid(self) -> tuple[int, float]:
        """How many have a cost and still wait for their reward, and what these have cost."""
        return self._paid, self._costs.value

    def add(self, ask: OpenAsk) -> int:
        """One more, of which nothing is known yet; its number."""
        number = self.next_number
        self.next_number = number + 1
        self._put(number, ask)
        return number

    def replace(self, number: int, ask: OpenAsk) -> None:
        """This is what is known of it now."""
        self._leave(self._open[number])
        self._put(number, ask)

    def close(self, number: int) -> None:
        """Take out an ask that is resolved."""
        ask = self._open.pop(number)
        if ask.hold or ask.cost is not None:
            self._leave(ask)

    def _put(self, number: int, ask: OpenAsk) -> None:
        self._open[number] = ask
        if ask.hold:
            self._held.add(ask.hold)
        if ask.cost is not None:
            self._paid += 1
            self._costs.add(ask.cost)
        if self._by_name is not None:
            self._by_name.add(number, ask)
            if len(self._by_name) > 2 * len(self._open) + 64:
                self._by_name = None  # most of it is out of date

    def _leave(self, ask: OpenAsk) -> None:
        if ask.hold:
            self._held.take(ask.hold)
        if ask.cost is not None:
            self._paid -= 1
            self._costs.take(ask.cost)

    def find(self, number: int, reward: bool, cost: bool) -> OpenAsk:
        """The open ask of this number, of which the reward, the cost or both can be reported."""
        ask = self._open.get(number)
        if ask is None:
            if not 0 <= number < self.next_number:
                raise UnknownAsk(f"ask {number} is none of this allocation; `pending` lists those that are open")
            raise UnknownAsk(
                f"ask {number} is closed; tell or forget each ask once, `pending` lists those that are open"
            )
        if (ask.reward is not None or ask.cost is not None) and not ask.lacks(reward, cost):
            if ask.cost is None:
                raise UnknownAsk(f"the reward of ask {number} is known already; tell its cost, and 0 if none")
            raise UnknownAsk(
                f"the cost of ask {number} is known already; tell its reward, 0 if none, or failed=True if it will not "
                "be known; `unpaid` lists asks without a cost"
            )
        return ask

    def oldest(self, name: str, arm: int, reward: bool, cost: bool) -> int:
        """The number of the oldest open ask of an arm of which the reward, the cost or both can be reported."""
        if self._by_name is None:
            self._by_name = AskQueue()
            for number, ask in self._open.items():
                self._by_name.add(number, ask)
        first = self._by_name.first(arm, reward, cost, self._open)
        if first is None:
            raise UnknownAsk(f"no open ask for arm {name!r}; call ask() first and tell each ask once")
        return first

    # --- saving --------------------------------------------------------------------------------------------------

    def to_list(self) -> list[list[Any]]:
        """[number, arm] for each, and a mapping of what else is known."""
        return [[number, ask.arm, *_more(ask)] for number, ask in self._open.items()]

    @classmethod
    def from_list(
        cls, saved: list[list[Any]], next_number: int, arms: int, units: Units, features: int = 0
    ) -> OpenAsks:
        """The asks that `to_list` has written."""
        self = cls()
        self.next_number = int(next_number)
        for number, arm, *more in saved:
            if not 0 <= int(arm) < arms:
                raise BadState("an open ask is for an arm that is not there; restore an undamaged copy")
            ask = OpenAsk(int(arm), **(more[0] if more else {}))
            if any(not 0 <= other < arms for other in ask.could or ()) or len(ask.prices or ()) > arms:
                raise BadState(f"open ask {number} was chosen from arms that are not there; restore an undamaged copy")
            if len(ask.features or ()) != features or not all(map(math.isfinite, ask.features or ())):
                raise BadState(f"open ask {number} lacks features of its request; restore an undamaged copy")
            if not 0 <= int(number) < self.next_number or int(number) in self._open or not _possible(ask, units):
                raise BadState(f"open ask {number} cannot have been made; restore an undamaged copy")
            self._put(int(number), ask)
        return self


def _more(ask: OpenAsk) -> list[dict[str, Any]]:
    """The fields that are not as in a new ask, if there are any."""
    rest = fields(ask)[1:]
    unusual = {field.name: value for field in rest if (value := getattr(ask, field.name)) != field.default}
    return [unusual] if unusual else []


def _possible(ask: OpenAsk, units: Units) -> bool:
    numbers = ((ask.hold, units.cost_max), (ask.cost, units.cost_max), (ask.reward, units.reward_max))
    inside = all(value is None or 0.0 <= value <= top for value, top in numbers) and 0.0 <= ask.overrun < LARGEST
    settled = ask.cost is not None and (ask.hold or ask.reward is not None)
    priced = ask.prices is None or (
        len(ask.prices) > ask.arm
        and ask.prices[ask.arm] is not None
        and all(price is None or price > 0.0 for price in ask.prices)
    )
    request = isinstance(ask.segment, int) and ask.segment >= 0 and priced
    likely = ask.propensity is None or 0.0 < ask.propensity <= 1.0
    return inside and not settled and isinstance(ask.counts, bool) and request and likely


class ArmTotals:
    """The feedback on each arm. Plain lists: single numbers are read and written, never all.

    pulls    asks whose cost and reward were both reported
    rewards  the sum of the rewards of these pulls
    costs    the sum of their costs
    """

    def __init__(self, arms: int) -> None:
        self.pulls, self.rewards, self.costs = [0] * arms, [0.0] * arms, [0.0] * arms

    def add_arm(self) -> None:
        """Make room for one more arm."""
        for values, new in zip(vars(self).values(), vars(ArmTotals(1)).values(), strict=True):
            values.extend(new)

    def add(self, arm: int, reward: float, cost: float) -> None:
        """One more pull."""
        self.pulls[arm] += 1
        self.rewards[arm] += reward
        self.costs[arm] += cost

    def means(self, arm: int) -> tuple[float, float]:
        """The mean reward and the mean cost; NaN before the first pull."""
        pulls = self.pulls[arm]
        return (self.rewards[arm] / pulls, self.costs[arm] / pulls) if pulls else (math.nan, math.nan)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Sequence[Any]], arms: int) -> Self:
        """The totals that `to_dict` has written."""
        self = cls(arms)
        for name, zeros in vars(self).items():
            values = [type(zero)(value) for zero, value in zip(zeros, saved[name], strict=True)]
            if not all(0 <= value < math.inf for value in values):
                raise BadState(f"{name!r} is not one total for each arm; restore an undamaged copy")
            setattr(self, name, values)
        return self
