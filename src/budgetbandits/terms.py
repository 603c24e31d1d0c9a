"""The terms of a campaign: what is set when it is created. Some of them can be changed later, by name `CHANGEABLE`.

This is the only list of them: the service, its HTTP schema, the command line and the client take their names, types,
defaults and bounds from here, and a new term is one more field. It stands outside the service because the client, which
imports nothing of the service, needs it too.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import Field, dataclass, field, fields
from decimal import Decimal
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from budgetbandits.errors import BadParameter
from budgetbandits.formatting.numbers import written

OnExpire = Literal["charge", "release"]

LONGEST_TEXT = 200

LARGEST_AMOUNT = 1e12
"""In the user's unit, of any amount, whichever way it comes in."""

MONEY = ("budget", "spent", "held", "leased", "left", "overrun")
"""What is said of a campaign's money, wherever it is."""


def _term(default: Any, help: str, largest: float = math.inf, money: bool = False, changes: bool = False) -> Any:
    """A field with what the command line says of it, the largest number it may be, whether it is money, and whether it
    can be changed later: not what the policy has learnt by, nor what leases depend on."""
    return field(default=default, metadata={"help": help, "largest": largest, "money": money, "changes": changes})


@dataclass(frozen=True)
class Terms:
    """The terms of a campaign, money in the user's unit. None means that there is no such limit.

    >>> Terms(hold_seconds=60.0).on_expire
    'charge'
    """

    reward_max: float = _term(1.0, "The largest reward there can be.", 1e12)
    hold_seconds: float = _term(3600.0, "How long a decision may go without feedback.", 1e9, changes=True)
    on_expire: OnExpire = _term(  # noqa: RUF009 - it makes a field
        "charge", "What becomes of a hold without feedback: charge or release.", changes=True
    )
    daily_cap: float | None = _term(
        None, "What the decisions of one day (UTC) may cost.", LARGEST_AMOUNT, money=True, changes=True
    )  # fmt: skip
    pace_seconds: float | None = _term(None, "Spread the budget evenly over so many seconds.", 1e9, changes=True)
    lease: float | None = _term(
        None, "What a server may take of the budget at once, to decide by itself.", LARGEST_AMOUNT, money=True
    )  # fmt: skip
    lease_seconds: float = _term(2.0, "How long a server may keep a lease without merging it.", 1e6)
    horizon: float | None = _term(
        None, "How many requests the budget is for, for policies that plan with it.", 1e12, changes=True
    )  # fmt: skip
    propensity_draws: float | None = _term(
        None, "Record how likely each choice was, from so many extra draws.", 10_000, changes=True
    )  # fmt: skip
    currency: str | None = _term(None, "What amounts are in, as pages show it: EUR, tokens, ...")

    def checked(self, only: Collection[str] | None = None) -> Self:
        """These terms, if each of them can be kept, or each of these: however they come in, they are checked here.

        What money is in micros is checked where it becomes that.
        """
        for term in fields(self):
            value = getattr(self, term.name)
            if (only is None or term.name in only) and not (value is None and term.default is None):
                _check(type(self), term, value)
        return self


def checked_number(name: str, value: float, unit: float = 1.0) -> float:
    """A term that is a number, given in units of so many of its own; a refusal is in the unit that it was given in.

    >>> checked_number("hold_seconds", 5.0, unit=60.0)
    300.0
    >>> checked_number("pace_seconds", 0.7, unit=86_400.0), 0.7 * 86_400.0
    (60480.0, 60479.99999999999)
    """
    [term] = [each for each in fields(Terms) if each.name == name]
    _check_number(term, value, unit)
    # of what was typed, and not of the binary number next to it: 0.7 days are 60,480 seconds
    return float(Decimal(repr(float(value))) * Decimal(unit))


def _check(terms: type[Terms], term: Field[Any], value: Any) -> None:
    """Refuse what is not one of the words, printable text or a number within its bounds, as the term's type says."""
    name, kind = term.name, get_type_hints(terms)[term.name]
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise BadParameter(f"{name} is {value!r:.40}; use {' or '.join(get_args(kind))}")
    elif str in (kind, *get_args(kind)):
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT or not value.isprintable():
            raise BadParameter(f"{name} is {value!r:.40}; use 1 to {LONGEST_TEXT} printable characters")
    else:
        _check_number(term, value)


def _check_number(term: Field[Any], value: Any, unit: float = 1.0) -> None:
    nothing_too, largest = term.metadata["money"], term.metadata["largest"] / unit
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (0.0 < value <= largest or (nothing_too and value == 0.0)):
        kind = "a number from 0" if nothing_too else "a positive number"
        raise BadParameter(f"{term.name} is {written(value)}; use {kind} up to {math.floor(100 * largest) / 100:,.15g}")


CHANGEABLE = tuple(term.name for term in fields(Terms) if term.metadata["changes"])
"""What `Campaigns.change_terms` takes."""
