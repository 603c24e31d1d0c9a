"""What a worker says of one request before its arm is chosen: which arms may answer it, its segment, and prices.

`RequestOptions` is what was sent, checked as far as it can be without the campaign. `ResolvedRequest` is the same by
the numbers of the arms and in micros: the event keeps it as JSON, and it is all that an audit needs to make the choice
again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from budgetbandits.allocation.holds import MARGIN
from budgetbandits.allocation.learner import ArmMask
from budgetbandits.errors import BadParameter, MissingKnowledge, NoArmLeft, UnknownArm
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.names import check_text, checked_name, normal
from budgetbandits.validation import listed_texts

LARGEST_BATCH = 1000

NO_CONTEXT = hashlib.sha256(b"{}").hexdigest()

Amounts = NDArray[np.int64]


@dataclass(frozen=True)
class RequestOptions:
    """What was sent: names as they are kept, money in micros. ``arms`` is None if any may answer.

    >>> said(exclude=["mail"], holds={"search": 0.5})
    Said(segment=None, arms=None, exclude=('mail',), prices=None, holds={'search': 500000})
    """

    segment: str | None = None
    arms: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    prices: Mapping[str, int] | None = None
    holds: Mapping[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """The same for the same request, however it was written."""
        arms = None if self.arms is None else sorted(self.arms)
        return json.dumps([self.segment, arms, sorted(self.exclude), self.prices, self.holds], sort_keys=True)

    def wanted(self, names: Sequence[str], caps: Amounts, active: ArmMask) -> ResolvedRequest:
        """By the numbers of these arms; an error if none of them may answer, or a price is missing or above its cap."""
        numbers = {name: number for number, name in enumerate(names)}
        for what in (self.arms or (), self.exclude, self.prices or (), self.holds):
            for name in what:
                if name not in numbers:
                    raise UnknownArm(f"no arm {name!r:.60}; the arms are {', '.join(names[:8])}: correct the name")
        allowed = set(np.flatnonzero(active).tolist())
        if self.arms is not None:
            allowed &= {numbers[name] for name in self.arms}
        allowed -= {numbers[name] for name in self.exclude}
        if not allowed:
            raise NoArmLeft("arms and exclude leave no arm to choose from; allow one that is not retired")
        if self.arms is None and not self.exclude and self.prices is None and not self.holds:
            return ResolvedRequest(self.segment)
        arms = sorted(allowed)
        prices = None if self.prices is None else [self._price(names[arm], int(caps[arm])) for arm in arms]
        holds = None
        if prices is not None or self.holds:
            most = [int(caps[arm]) if prices is None else prices[place] for place, arm in enumerate(arms)]
            margin = 1.0 if prices is None else MARGIN
            holds = [
                self._hold(names[arm], amount, margin, int(caps[arm])) for arm, amount in zip(arms, most, strict=True)
            ]
        return ResolvedRequest(self.segment, arms, prices, holds)

    def _price(self, arm: str, cap: int) -> int:
        assert self.prices is not None
        if arm not in self.prices:
            raise MissingKnowledge(f"prices has no entry for arm {arm!r:.60}; give every arm one that may be chosen")
        price = self.prices[arm]
        if price > cap:
            raise BadParameter(
                f"the price of {arm!r:.60} is {to_units(price):g}, above its cap {to_units(cap):g}; exclude that arm"
            )
        return price

    def _hold(self, arm: str, amount: int, margin: float, cap: int) -> int:
        hold = self.holds.get(arm, min(int(np.ceil(margin * amount)), cap))
        if hold > cap:
            raise BadParameter(
                f"the hold of {arm!r:.60} is {to_units(hold):g}, above its cap {to_units(cap):g}; hold that or less"
            )
        return hold


def said(
    segment: str | None = None,
    arms: Iterable[str] | None = None,
    exclude: Iterable[str] | None = None,
    prices: Mapping[str, float] | None = None,
    holds: Mapping[str, float] | None = None,
) -> RequestOptions | None:
    """What a worker says of a request, checked; None if it says nothing."""
    if segment is not None:
        segment = checked_name("segment", segment)
    allowed = None if arms is None else _names("arms", arms)
    excluded = () if exclude is None else _names("exclude", exclude)
    estimates = None if prices is None else _amounts("price", prices)
    held = {} if holds is None else _amounts("hold", holds)
    if segment is None and allowed is None and not excluded and estimates is None and not held:
        return None
    return RequestOptions(segment, allowed, excluded, estimates, held)


def _names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(normal, listed_texts(what, names)))


def _amounts(what: str, amounts: Mapping[str, float]) -> dict[str, int]:
    if not isinstance(amounts, Mapping):
        raise BadParameter(f"{what}s is {amounts!r:.40}; map the names of arms to amounts")
    micros = {normal(str(arm)): to_micros(amount, f"the {what} of {arm!r:.40}") for arm, amount in amounts.items()}
    for arm, amount in micros.items():
        if amount == 0:
            raise BadParameter(f"the {what} of {arm!r:.40} is 0; give a positive amount, or exclude that arm")
    return micros


@dataclass(slots=True)
class ResolvedRequest:
    """A request by the numbers of the arms that may answer it; None: all that are active.

    ``prices`` and ``holds`` are in micros, in the order of ``arms``: what each is estimated to cost, and what a
    decision for it holds, if that is not its cap. ``out`` are those that might have answered and could not be chosen,
    because they were at rest or could not be paid; it is written down with the decision.
    """

    segment: str | None = None
    arms: list[int] | None = None
    prices: list[int] | None = None
    holds: list[int] | None = None
    out: list[int] | None = None

    def text(self) -> str:
        values = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}
        return to_json(values).decode()

    @classmethod
    def read(cls, text: str | None) -> ResolvedRequest | None:
        return None if text is None else cls(**json.loads(text))

    def among(self, active: ArmMask) -> ArmMask:
        """Those of the active arms that may answer."""
        if self.arms is None:
            return active
        among = np.zeros_like(active)
        among[self.arms] = True
        return among & active

    def amounts(self, caps: Amounts) -> Amounts:
        """What a decision for each arm holds."""
        if self.holds is None:
            return caps
        amounts = caps.copy()
        amounts[self.arms] = self.holds
        return amounts

    def price_of(self, arm: int) -> int | None:
        """What this arm was estimated to cost, if it was."""
        return None if self.prices is None or self.arms is None else self.prices[self.arms.index(arm)]


def offered(fitting: ArmMask, resting: ArmMask | None, arm: int) -> ArmMask:
    """The arms that a choice was made from: those that fit and do not rest, or all that fit if it is one at rest."""
    return fitting if resting is None or resting[arm] else fitting & ~resting


def left_out(wanted: ResolvedRequest | None, active: ArmMask, fitting: ArmMask) -> list[int]:
    """The arms that might have answered a request and are not among those that fit, by their numbers."""
    if fitting is active:
        return []
    found: list[int] = np.flatnonzero((active if wanted is None else wanted.among(active)) & ~fitting).tolist()
    return found


def written(wanted: ResolvedRequest | None, active: ArmMask, fitting: ArmMask) -> str | None:
    """What is written down of a request, with the decision among the arms that fit; None if there is nothing to say."""
    out = left_out(wanted, active, fitting)
    if out:
        wanted = replace(wanted or ResolvedRequest(), out=out)
    return None if wanted is None else wanted.text()


Keyed = tuple[str, str]
"""The key of a decision, and a digest of what was asked."""


def keyed(
    key: str, context: Mapping[str, Any] | None, count: int | None, said: RequestOptions | None = None
) -> list[Keyed]:
    """What is asked under one key: one decision, or with a ``count`` as many."""
    if not (isinstance(key, str) and 0 < len(key) <= 200):
        raise BadParameter("key must be text of 1 to 200 characters: one for each decision, the same when retried")
    check_text("key", key)
    if count is not None and not 1 <= count <= LARGEST_BATCH:
        raise BadParameter(f"count is {count}; use 1 to {LARGEST_BATCH}")
    asked = json.dumps(context, sort_keys=True) if context else "{}"
    if said is not None:
        asked = f"{asked} {said.text()}"
    if count is None:
        return [(key, _digest(asked) if context or said is not None else NO_CONTEXT)]
    # the first goes by the key itself, so that the key cannot be used for anything else
    keys = [key, *(f"{key} [{number}]" for number in range(1, count))]
    return [(each, _digest(f"{number} of {count} {asked}")) for number, each in enumerate(keys)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
