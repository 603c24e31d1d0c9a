"""What a worker says of one request before its arm is chosen: which arms may answer it, its segment, and prices.

`RequestOptions` is what was sent, checked as far as it can be without the campaign. `ResolvedRequest` is the same by
the numbers of the arms and in micros: the event keeps it as JSON, and it is all that an audit needs to make the choice
again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import to_json

from budgetbandits.allocation.learner import ArmMask
from budgetbandits.allocation.session import ArmSession
from budgetbandits.allocation.units import HOLD_MARGIN
from budgetbandits.errors import BadParameter, MissingKnowledge
from budgetbandits.service.ledger import to_micros, to_units
from budgetbandits.service.names import check_text, checked_name, normal
from budgetbandits.validation import listed_texts

BATCH_MAX = 1000
"""Decisions, or outcomes, of one call."""

NO_CONTEXT = hashlib.sha256(b"{}").hexdigest()

Amounts = NDArray[np.int64]
"""Micros, for each arm."""


@dataclass(frozen=True)
class RequestOptions:
    """What was sent: names as they are kept, money in micros.

    segment  the kind of the request
    arms     the arms that may answer; None: any
    exclude  arms that may not
    prices   what each of those arms is estimated to cost this time
    holds    what a decision for an arm holds in place of its cap

    >>> RequestOptions.checked(exclude=["mail"], holds={"search": 0.5})
    RequestOptions(segment=None, arms=None, exclude=('mail',), prices=None, holds={'search': 500000})
    """

    segment: str | None = None
    arms: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    prices: Mapping[str, int] | None = None
    holds: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        segment: str | None = None,
        arms: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        prices: Mapping[str, float] | None = None,
        holds: Mapping[str, float] | None = None,
    ) -> RequestOptions | None:
        """What a worker has sent, money in the user's unit; None if it says nothing of the request."""
        if segment is None and arms is None and exclude is None and prices is None and holds is None:
            return None
        options = cls(
            None if segment is None else checked_name("segment", segment),
            None if arms is None else _names("arms", arms),
            () if exclude is None else _names("exclude", exclude),
            None if prices is None else _amounts("price", prices),
            {} if holds is None else _amounts("hold", holds),
        )
        return None if options == cls() else options

    def to_text(self) -> str:
        """The same for the same request, however it was written."""
        arms = None if self.arms is None else sorted(self.arms)
        return json.dumps([self.segment, arms, sorted(self.exclude), self.prices, self.holds], sort_keys=True)

    def resolve(self, session: ArmSession, caps: Amounts) -> ResolvedRequest:
        """By the numbers of the arms; an error if none may answer, or a price is missing or above its cap."""
        allowed, names = session.allowed(self.arms, self.exclude), session.names
        for name in (*(self.prices or ()), *self.holds):
            session.number(name)
        if self.arms is None and not self.exclude and self.prices is None and not self.holds:
            return ResolvedRequest(self.segment)
        arms = np.flatnonzero(allowed).tolist()
        prices, holds = None, None
        if self.prices is not None:
            prices = [self._price(names[arm], int(caps[arm])) for arm in arms]
        if self.prices is not None or self.holds:
            holds = [self._hold(names[arm], int(caps[arm])) for arm in arms]
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

    def _hold(self, arm: str, cap: int) -> int:
        usual = cap if self.prices is None else min(int(np.ceil(HOLD_MARGIN * self.prices[arm])), cap)
        hold = self.holds.get(arm, usual)
        if hold > cap:
            raise BadParameter(
                f"the hold of {arm!r:.60} is {to_units(hold):g}, above its cap {to_units(cap):g}; hold that or less"
            )
        return hold


def _names(field: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(normal, listed_texts(field, names)))


def _amounts(kind: str, amounts: Mapping[str, float]) -> dict[str, int]:
    if not isinstance(amounts, Mapping):
        raise BadParameter(f"{kind}s is {amounts!r:.40}; map the names of arms to amounts")
    micros = {normal(str(arm)): to_micros(amount, f"the {kind} of {arm!r:.40}") for arm, amount in amounts.items()}
    for arm, amount in micros.items():
        if amount == 0:
            raise BadParameter(f"the {kind} of {arm!r:.40} is 0; give a positive amount, or exclude that arm")
    return micros


@dataclass(slots=True)
class ResolvedRequest:
    """A request by the numbers of the arms. Prices and holds are in micros, in the order of ``arms``.

    segment      the kind of the request
    arms         the arms that may answer; None: all that are active
    prices       what each is estimated to cost
    holds        what a decision for it holds, if that is not its cap
    unavailable  arms that could not be chosen, at rest or not affordable; written down with the decision
    """

    segment: str | None = None
    arms: list[int] | None = None
    prices: list[int] | None = None
    holds: list[int] | None = None
    unavailable: list[int] | None = None

    def to_json(self) -> str:
        values = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}
        return to_json(values).decode()

    @classmethod
    def from_json(cls, text: str | None) -> ResolvedRequest | None:
        return None if text is None else cls(**json.loads(text))

    def with_unavailable(self, arms: list[int]) -> ResolvedRequest:
        return replace(self, unavailable=arms)

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

    def price(self, arm: int) -> int | None:
        """What this arm was estimated to cost, if it was."""
        return None if self.prices is None or self.arms is None else self.prices[self.arms.index(arm)]


DecisionKey = tuple[str, str]
"""The key of a decision, and a digest of what was asked under it."""


def decision_keys(
    key: str, context: Mapping[str, Any] | None, count: int | None, options: RequestOptions | None = None
) -> list[DecisionKey]:
    """The keys of what is asked under one key: one decision, or ``count`` of them."""
    if not (isinstance(key, str) and 0 < len(key) <= 200):
        raise BadParameter("key must be text of 1 to 200 characters: one for each decision, the same when retried")
    check_text("key", key)
    if count is not None and not 1 <= count <= BATCH_MAX:
        raise BadParameter(f"count is {count}; use 1 to {BATCH_MAX}")
    asked = json.dumps(context, sort_keys=True) if context else "{}"
    if options is not None:
        asked = f"{asked} {options.to_text()}"
    if count is None:
        return [(key, _digest(asked) if context or options is not None else NO_CONTEXT)]
    # the first goes by the key itself, so that the key cannot be used for anything else
    keys = [key, *(f"{key} [{number}]" for number in range(1, count))]
    return [(each, _digest(f"{number} of {count} {asked}")) for number, each in enumerate(keys)]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
