"""The terms of a campaign: what is set when it is created. Some of them can be changed later, by name `CHANGEABLE`.

This is the only list of them: the service, its HTTP schema, the command line and the client take their names, types,
defaults and bounds from here, and a new term is one more field. It stands outside the service because the client, which
imports nothing of the service, needs it too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from budgetbandits.errors import BadParameter

OnExpire = Literal["charge", "release"]

LONGEST_TEXT = 200

MONEY = ("budget", "spent", "held", "leased", "left", "overrun")
"""What is said of a campaign's money, wherever it is."""


def _term(default: Any, help: str, largest: float = math.inf, money: bool = False, changes: bool = False) -> Any:
    """A field with what the command line says of it, the largest number that HTTP takes, whether it is money, and
    whether it can be changed later: not what the policy has learnt by, nor what leases depend on."""
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
        None, "What the decisions of one day (UTC) may cost.", 1e12, money=True, changes=True
    )  # fmt: skip
    pace_seconds: float | None = _term(None, "Spread the budget evenly over so many seconds.", 1e9, changes=True)
    lease: float | None = _term(
        None, "What a server may take of the budget at once, to decide by itself.", 1e12, money=True
    )  # fmt: skip
    lease_seconds: float = _term(2.0, "How long a server may keep a lease without merging it.", 1e6)
    horizon: float | None = _term(
        None, "How many requests the budget is for, for policies that plan with it.", 1e12, changes=True
    )  # fmt: skip
    propensity_draws: float | None = _term(
        None, "Record how likely each choice was, from so many extra draws.", 10_000, changes=True
    )  # fmt: skip
    currency: str | None = _term(None, "What amounts are in, as pages show it: EUR, tokens, ...")

    def checked(self) -> Self:
        """These terms, if each of them can be kept. Money is checked where it becomes micros."""
        kinds = get_type_hints(type(self))
        for term in fields(self):
            value = getattr(self, term.name)
            if not term.metadata["money"] and not (value is None and term.default is None):
                _check(term.name, value, kinds[term.name])
        return self


def _check(name: str, value: Any, kind: Any) -> None:
    """Refuse what is not one of the words, printable text or a positive number, as the term's type says."""
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise BadParameter(f"{name} is {value!r:.40}; use {' or '.join(get_args(kind))}")
    elif str in (kind, *get_args(kind)):
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT or not value.isprintable():
            raise BadParameter(f"{name} is {value!r:.40}; use 1 to {LONGEST_TEXT} printable characters")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1e15:
        raise BadParameter(f"{name} is {value!r:.40}; use a positive number")


CHANGEABLE = tuple(term.name for term in fields(Terms) if term.metadata["changes"])
"""What `Campaigns.change_terms` takes."""
