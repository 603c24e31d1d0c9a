"""Open asks: for which arm each is, what money it holds, and what of it has been told so far."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from budgetbandits.errors import BadState, NotAsked
from budgetbandits.units import Units


class Ask(str):
    """The name of the arm to pull, which also knows which ask it was, so that each is told once.

    It is a plain ``str`` for every other purpose. After a restart, `Allocation.pending` has the asks still open.
    ``propensity`` is how likely the choice was, and ``arms`` are those that it was made from: allowed, affordable and
    awake; for an allocation with ``propensity_draws``, None for others. A log for `off_policy` has both.
    """

    __slots__ = ("arms", "number", "propensity")
    number: int
    propensity: float | None
    arms: tuple[str, ...] | None

    def __new__(
        cls, arm: str, number: int, propensity: float | None = None, arms: tuple[str, ...] | None = None
    ) -> Ask:
        ask = super().__new__(cls, arm)
        ask.number, ask.propensity, ask.arms = number, propensity, arms
        return ask

    def __getnewargs__(self) -> tuple[Any, ...]:  # asks travel to workers
        return str(self), self.number, self.propensity, self.arms

    def __repr__(self) -> str:
        return f"Ask({str(self)!r}, {self.number})"


@dataclass(slots=True)
class OpenAsk:
    """An ask that was not told in full. Never changed, only replaced.

    arm     the arm's number
    hold    the money set aside for it; 0 once its cost is told
    reward  what it brought, if told
    cost    what it cost, if told
    counts  whether its cost fitted the budget when it was told; if not, its reward is not earned
    segment the number of the request's segment
    prices  what each arm was estimated to cost, if they were; None for one that could not be chosen
    propensity  how likely the choice was, if that is known
    could   then, the numbers of the arms it was chosen from
    """

    arm: int
    hold: float = 0.0
    reward: float | None = None
    cost: float | None = None
    counts: bool = True
    segment: int = 0
    prices: list[float | None] | None = None
    propensity: float | None = None
    could: list[int] | None = None

    def lacks(self, reward: bool, cost: bool) -> bool:
        """Whether what is to be told now was not told before."""
        return not (reward and self.reward is not None) and not (cost and self.cost is not None)


class OpenAsks:
    """The open asks by their number, oldest first."""

    def __init__(self) -> None:
        self.next_number = 0
        self._open: dict[int, OpenAsk] = {}
        self._holds: dict[int, float] = {}
        self._costs: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __getitem__(self, number: int) -> OpenAsk:
        return self._open[number]

    def items(self) -> Iterable[tuple[int, OpenAsk]]:
        return self._open.items()

    @property
    def held(self) -> float:
        """What all of them hold; summed exactly, because differences of a running sum would add up."""
        return math.fsum(self._holds.values()) if self._holds else 0.0

    @property
    def paid(self) -> tuple[int, float]:
        """How many have told their cost and still owe their reward, and what these have cost."""
        return len(self._costs), math.fsum(self._costs.values())

    def add(self, ask: OpenAsk) -> int:
        """One more; its number."""
        number = self.next_number
        self.next_number += 1
        self.put(number, ask)
        return number

    def put(self, number: int, ask: OpenAsk) -> None:
        """This is what is known of it now."""
        self._open[number] = ask
        if ask.hold:
            self._holds[number] = ask.hold
        else:
            self._holds.pop(number, None)
        if ask.cost is not None:
            self._costs[number] = ask.cost

    def close(self, number: int) -> None:
        del self._open[number]
        self._holds.pop(number, None)
        self._costs.pop(number, None)

    def find(self, ask: str, arm: int, reward: bool, cost: bool) -> int:
        """The number of an ask whose reward, cost or both can be told; a plain name stands for the oldest such."""
        if not isinstance(ask, Ask):
            fits = (n for n, known in self._open.items() if known.arm == arm and known.lacks(reward, cost))
            number = next(fits, None)
            if number is None:
                raise NotAsked(f"no open ask for arm {ask!r}; call ask() first and tell each ask once")
            return number
        known = self._open.get(ask.number)
        if known is None or known.arm != arm:
            raise NotAsked(
                f"ask {ask.number} for arm {ask!s} is not open: it was told or forgotten; tell each ask once"
            )
        if not known.lacks(reward, cost):
            told, missing = ("cost", "reward") if known.cost is not None else ("reward", "cost")
            raise NotAsked(
                f"the {told} of ask {ask.number} for arm {ask!s} was told before; tell its {missing}, and 0 if none"
            )
        return ask.number

    # --- saving --------------------------------------------------------------------------------------------------

    def to_list(self) -> list[list[Any]]:
        """[number, arm] for each, and a mapping of what else is known."""
        return [[number, ask.arm, *_more(ask)] for number, ask in self._open.items()]

    @classmethod
    def from_list(cls, saved: list[list[Any]], next_number: int, arms: int, units: Units) -> OpenAsks:
        self = cls()
        self.next_number = int(next_number)
        for number, arm, *more in saved:
            if not 0 <= int(arm) < arms:
                raise BadState("an open ask is for an arm that is not there; restore an undamaged copy")
            ask = OpenAsk(int(arm), **_read(int(arm), *more))
            if any(not 0 <= other < arms for other in ask.could or ()) or len(ask.prices or ()) > arms:
                raise BadState(f"open ask {number} was chosen from arms that are not there; restore an undamaged copy")
            if not 0 <= int(number) < self.next_number or int(number) in self._open or not _possible(ask, units):
                raise BadState(f"open ask {number} cannot have been made; restore an undamaged copy")
            self.put(int(number), ask)
        return self


def _more(ask: OpenAsk) -> list[dict[str, Any]]:
    """What is not as it is in every new ask, if anything."""
    rest = fields(ask)[1:]
    unusual = {each.name: value for each in rest if (value := getattr(ask, each.name)) != each.default}
    return [unusual] if unusual else []


def _read(arm: int, saved: dict[str, Any] | None = None) -> dict[str, Any]:
    """What else is known of an ask; older versions kept the price of the arm that was chosen alone."""
    more = dict(saved or {})
    if "price" in more:
        more["prices"] = [None] * arm + [more.pop("price")]
    return more


def _possible(ask: OpenAsk, units: Units) -> bool:
    numbers = ((ask.hold, units.cost_max), (ask.cost, units.cost_max), (ask.reward, units.reward_max))
    inside = all(value is None or 0.0 <= value <= top for value, top in numbers)
    settled = ask.cost is not None and (ask.hold or ask.reward is not None)
    priced = ask.prices is None or (
        len(ask.prices) > ask.arm
        and ask.prices[ask.arm] is not None
        and all(price is None or price > 0.0 for price in ask.prices)
    )
    request = isinstance(ask.segment, int) and ask.segment >= 0 and priced
    likely = ask.propensity is None or 0.0 < ask.propensity <= 1.0
    return inside and not settled and isinstance(ask.counts, bool) and request and likely
