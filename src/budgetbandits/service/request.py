"""The options of one request before its arm is chosen: which arms may answer it, its segment, prices, features.

`RequestOptions` is what was sent, checked as far as it can be without the campaign. `ResolvedRequest` is the same by
the numbers of the arms: the event keeps it as JSON, and it is all that an audit needs to make the choice again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json, to_json

from budgetbandits.allocation.session import ArmSession
from budgetbandits.allocation.units import HOLD_MARGIN
from budgetbandits.errors import BadFeature
from budgetbandits.numerics.arrays import ArmMask
from budgetbandits.service.ledger import MICROS, to_micros
from budgetbandits.service.names import checked_name, normal
from budgetbandits.validation import DecisionFields, RequestOptions

BATCH_MAX = 1000
"""Decisions, or outcomes, of one call."""

Amounts = NDArray[np.int64]
"""Micros, for each arm."""


def checked_options(**fields: Unpack[DecisionFields]) -> RequestOptions | None:
    """The options of a request, with names as they are kept and money in micros; None if there are none.

    >>> checked_options(segment="code", holds={"search": 0.5}).holds
    {'search': 500000}
    """
    if not fields or (sent := RequestOptions.checked(**fields)) == RequestOptions():
        return None
    return RequestOptions(
        None if sent.segment is None else checked_name("segment", sent.segment),
        None if sent.arms is None else tuple(map(normal, sent.arms)),
        tuple(map(normal, sent.exclude)),
        None if sent.prices is None else _in_micros("price", sent.prices),
        _in_micros("hold", sent.holds),
        _by_normal_name(sent.features),
        sent.metadata,
    )


def _by_normal_name(features: Mapping[str, float] | None) -> dict[str, float] | None:
    numbers = None if features is None else {normal(name): value for name, value in features.items()}
    if features is not None and numbers is not None and len(numbers) < len(features):
        raise BadFeature("two names of features differ only in how they are encoded; give each feature once")
    return numbers


def _in_micros(kind: str, amounts: Mapping[str, float]) -> dict[str, int]:
    return {normal(arm): to_micros(amount, f"the {kind} of {arm!r:.40}") for arm, amount in amounts.items()}


def resolve(options: RequestOptions, session: ArmSession, caps: Amounts) -> ResolvedRequest:
    """A request by the numbers of the arms; an error if none may answer, or a price is missing or above its cap."""
    allowed, names, values = session.allowed(options), session.names, session.feature_values(options.features)
    features = None if values is None else values.tolist()
    if options == RequestOptions(options.segment, features=options.features, metadata=options.metadata):
        return ResolvedRequest(options.segment, features=features, metadata=options.metadata)
    arms = np.flatnonzero(allowed).tolist()
    usual, prices, holds = caps[arms].tolist(), None, None
    capped = [(names[arm], cap) for arm, cap in zip(arms, usual, strict=True)]
    if options.prices is not None:
        prices = [int(options.price(name, cap, MICROS)) for name, cap in capped]
        usual = [min(math.ceil(HOLD_MARGIN * price), cap) for price, cap in zip(prices, usual, strict=True)]
    if prices is not None or options.holds:
        holds = [int(options.hold(*arm, amount, MICROS)) for arm, amount in zip(capped, usual, strict=True)]
    return ResolvedRequest(options.segment, arms, prices, holds, features, metadata=options.metadata)


@dataclass(slots=True)
class ResolvedRequest:
    """A request by the numbers of the arms. Prices and holds are in micros, in the order of ``arms``.

    segment      the kind of the request
    arms         the arms that may answer; None: all that are active
    prices       what each is estimated to cost
    holds        what a decision for it holds, if that is not its cap
    features     its features, in the order in which the campaign names them
    unavailable  arms that could not be chosen, cooling down or not affordable; written down with the decision
    metadata     the caller's own notes
    """

    segment: str | None = None
    arms: list[int] | None = None
    prices: list[int] | None = None
    holds: list[int] | None = None
    features: list[float] | None = None
    unavailable: list[int] | None = None
    metadata: Mapping[str, str | float] | None = None

    def to_json(self) -> str:
        """The request as JSON, without empty entries."""
        values = {name: getattr(self, name) for name in self.__slots__ if getattr(self, name) is not None}
        return to_json(values).decode()

    @classmethod
    def from_json(cls, text: str | None) -> ResolvedRequest | None:
        """The request of this JSON."""
        return None if text is None else cls(**from_json(text))

    def among(self, active: ArmMask) -> ArmMask:
        """Those of the active arms that may answer."""
        if self.arms is None:
            return active
        among = np.zeros_like(active)
        among[self.arms] = True
        return among & active

    def amounts(self, caps: Amounts) -> Amounts:
        """The hold of a decision for each arm."""
        if self.holds is None:
            return caps
        amounts = caps.copy()
        amounts[self.arms] = self.holds
        return amounts

    def price(self, arm: int) -> int | None:
        """The estimated cost of this arm, if the request names one."""
        return None if self.prices is None or self.arms is None else self.prices[self.arms.index(arm)]
