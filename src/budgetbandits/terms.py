"""The terms of a campaign: what is set when it is created and never changes.

This is the only list of them: the service, its HTTP schema, the command line and the client take their names, types,
defaults and bounds from here, and a new term is one more field. It stands outside the service because the client, which
imports nothing of the service, needs it too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args

from budgetbandits.errors import BadParameter

OnExpire = Literal["charge", "release"]

MONEY = ("budget", "spent", "held", "left", "overrun")
"""What is said of a campaign's money, wherever it is."""


def _term(default: Any, help: str, largest: float = math.inf, money: bool = False) -> Any:
    """A field with what the command line says of it, the largest number that HTTP takes, and whether it is money."""
    return field(default=default, metadata={"help": help, "largest": largest, "money": money})


@dataclass(frozen=True)
class Terms:
    """The terms of a campaign, money in the user's unit. None means that there is no such limit.

    >>> Terms(hold_seconds=60.0).on_expire
    'charge'
    """

    reward_max: float = _term(1.0, "The largest reward there can be.", 1e12)
    hold_seconds: float = _term(3600.0, "How long a decision may go without feedback.", 1e9)
    on_expire: OnExpire = _term(  # noqa: RUF009 - it makes a field
        "charge", "What becomes of a hold without feedback: charge or release."
    )
    daily_cap: float | None = _term(None, "What the decisions of one day (UTC) may cost.", 1e12, money=True)
    pace_seconds: float | None = _term(None, "Spread the budget evenly over so many seconds.", 1e9)

    def checked(self) -> Self:
        """These terms, if each of them can be kept."""
        if self.on_expire not in get_args(OnExpire):
            raise BadParameter(f"on_expire is {self.on_expire!r:.40}; use charge or release")
        for term in fields(Terms):
            value = getattr(self, term.name)
            if isinstance(term.default, str) or term.metadata["money"] or (value is None and term.default is None):
                continue  # money is checked where it becomes micros
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1e15:
                raise BadParameter(f"{term.name} is {value!r:.40}; use a positive number")
        return self
