"""The terms of a campaign: everything that is set when it is created, except its name, policy, budget and arms.

This is the only list. The HTTP API, the command line, the client, the forms of the dashboard and every text about a
campaign read names, types, bounds, labels and help from here, and so does the manual: a new term is one more field of
`Terms`, and the code that obeys it. The module stands outside the service because the client needs it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cache
from typing import Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from budgetbandits.errors import BadFeature, BadParameter
from budgetbandits.formatting.datetimes import DAY, MINUTE, exact_duration
from budgetbandits.formatting.money import same_decimals
from budgetbandits.formatting.numbers import in_full, written

OnExpire = Literal["charge", "release"]
Period = Literal["week", "month"]
Unspent = Literal["lapse", "carry"]
Kind = Literal["money", "seconds", "number", "choice", "text", "names"]

TEXT_LENGTH_MAX = 200
"""Most characters of a term that is text."""

AMOUNT_MAX = 1e12
"""The largest amount of money, in the user's unit, through every interface."""

MONEY = ("budget", "spent", "held", "leased", "left", "overrun")
"""The amounts of a campaign, as the API, the command line and the metrics name them."""


def _money_text(amount: float) -> str:
    return same_decimals([amount])[0]


@dataclass(frozen=True, kw_only=True)
class Term:
    """One term, as every interface presents it.

    label       its name for people
    help        one sentence about it
    kind        how it is checked and written
    group       the heading it stands under
    smallest    the smallest number it may be; 0 is for money alone
    largest     the largest number it may be
    whole       whether it is a whole number
    absent      what happens without it, if it is optional
    changeable  whether it may change later: not if a policy has learned, money was lent or amounts were booked by it
    form_unit   the unit in which forms ask for it, and how many of its own units that is
    choices     (value, explanation) of each value, if there are only a few
    in_forms    whether the forms of the dashboard ask for it
    short       how it reads in the line below a campaign's name, around its value; empty if it is not shown there
    name        the field of `Terms`
    default     its value if none is given; None for an optional term
    """

    label: str
    help: str
    kind: Kind
    group: str
    smallest: float = 0.0
    largest: float = math.inf
    whole: bool = False
    absent: str = ""
    changeable: bool = False
    form_unit: tuple[str, float] = ("", 1.0)
    choices: tuple[tuple[str, str], ...] = ()
    in_forms: bool = True
    short: str = ""
    name: str = ""
    default: Any = None

    @property
    def optional(self) -> bool:
        """Whether the term may be left out."""
        return self.default is None

    @property
    def full_help(self) -> str:
        """The help, and what happens without an optional term."""
        return f"{self.help} Without it, {self.absent}." if self.absent else self.help

    def check(self, value: Any) -> None:
        """Refuse a value that is not one of the choices, printable text, names or a number within the bounds."""
        values = [choice for choice, _ in self.choices]
        if self.kind == "choice":
            if value not in values:
                raise BadParameter(f"{self.name} is {value!r:.40}; use {' or '.join(values)}")
        elif self.kind == "text":
            if not isinstance(value, str) or not 0 < len(value) <= TEXT_LENGTH_MAX or not value.isprintable():
                raise BadParameter(f"{self.name} is {value!r:.40}; use 1 to {TEXT_LENGTH_MAX} printable characters")
        elif self.kind == "names":
            self._check_names(value)
        else:
            self._check_number(value)

    def _check_names(self, values: Any) -> None:
        error = BadFeature if self.name == "features" else BadParameter
        if not isinstance(values, tuple) or not values:
            raise error(f"{self.name} is {values!r:.40}; give a list of names, or leave it out")
        for number, name in enumerate(values):
            good = isinstance(name, str) and 0 < len(name) <= TEXT_LENGTH_MAX and name.isprintable()
            if not good or name in values[:number]:
                use = f"1 to {TEXT_LENGTH_MAX} printable characters"
                raise error(f"{self.name} has {name!r:.60}; give each a name of its own, of {use}")

    def _check_number(self, value: Any, unit: float = 1.0) -> None:
        smallest, largest = self.smallest / unit, self.largest / unit
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        in_bounds = is_number and smallest <= value <= largest and (value > 0 or self.kind == "money")
        if not in_bounds or (self.whole and value != int(value)):
            kind = "a whole number" if self.whole else "a number"
            kind = f"{kind} from {smallest:,.15g}" if smallest or self.kind == "money" else "a positive number"
            most = f"{math.floor(100 * largest) / 100:,.15g}"
            raise BadParameter(f"{self.name} is {written(value)}; use {kind} up to {most}")

    def from_form(self, value: float) -> float:
        """A number in the unit of the forms, in the term's own unit; errors are in the unit of the forms.

        >>> TERMS["hold_seconds"].from_form(5.0)
        300.0
        >>> TERMS["pace_seconds"].from_form(0.7), 0.7 * 86_400.0
        (60480.0, 60479.99999999999)
        """
        unit = self.form_unit[1]
        self._check_number(value, unit)
        # of the digits that were typed, not of the binary number nearest to them: 0.7 days are 60,480 seconds
        return float(Decimal(repr(float(value))) * Decimal(unit))

    def text(self, value: Any, money: Callable[[float], str] = _money_text) -> str:
        """A value for people, with all its digits; ``money`` writes amounts.

        >>> TERMS["pace_seconds"].text(86_400.0), TERMS["on_expire"].text("charge"), TERMS["horizon"].text(None)
        ('1 d', 'charged', 'none')
        """
        if value is None:
            return "none"
        if self.kind == "choice":
            return dict(self.choices)[value].partition(":")[0]
        if self.kind == "text":
            return str(value)
        if self.kind == "names":
            return ", ".join(value)
        return {"money": money, "seconds": exact_duration, "number": in_full}[self.kind](value)


def _term(default: Any, **about: Any) -> Any:
    term = Term(**about)
    return field(default=default, metadata={"term": term, "description": term.full_help})


@dataclass(frozen=True)
class Terms:
    """The terms of a campaign, money in the user's unit. None means that there is no such limit.

    >>> Terms(hold_seconds=60.0).on_expire
    'charge'
    """

    daily_cap: float | None = _term(
        None, label="Daily cap", help="The most that the decisions of one day may cost.", kind="money",
        group="Spending", largest=AMOUNT_MAX, absent="a day has no cap", changeable=True, short="daily cap {}",
    )  # fmt: skip
    time_zone: str | None = _term(
        None, label="Time zone", kind="text", group="Spending", absent="days are UTC's", changeable=True,
        help="The time zone whose midnights begin days and periods, such as Europe/Berlin.",
    )  # fmt: skip
    pace_seconds: float | None = _term(
        None, label="Spread over", help="Spend the budget evenly over this time, from the campaign's start.",
        kind="seconds", group="Spending", largest=1e9, absent="money is spent as fast as decisions are asked for",
        changeable=True, form_unit=("days", DAY), short="paced over {}",
    )  # fmt: skip
    period: Period | None = _term(  # noqa: RUF009 - it makes a field
        None, label="Budget for each", help="How often the budget is renewed.", kind="choice", group="Spending",
        changeable=True, absent="the budget is for all time",
        choices=(("week", "week: from Monday"), ("month", "month: from the first")),
    )  # fmt: skip
    period_budget: float | None = _term(
        None, label="Budget of a period", help="What each period gets.", kind="money", group="Spending",
        largest=AMOUNT_MAX, changeable=True, absent="it is the budget that the campaign begins with",
    )  # fmt: skip
    unspent: Unspent = _term(  # noqa: RUF009 - it makes a field
        "lapse", label="Unspent money", help="What becomes of the money of a period that is over: lapse or carry.",
        kind="choice", group="Spending", changeable=True,
        choices=(("lapse", "lapses: the next period has its own budget"), ("carry", "carries over: it is added")),
    )  # fmt: skip
    shared_budget: str | None = _term(
        None, label="Shared budget", kind="text", group="Spending", changeable=True, short="shares {}",
        help="The name of a budget over several campaigns that the money also comes from.",
        absent="the money is the campaign's own",
    )  # fmt: skip
    on_limit: str = _term(
        "refuse", label="At a limit of time", kind="text", group="Spending", changeable=True,
        help="Who answers when the daily cap or the pace would refuse: refuse (nobody), cheapest, or an arm's name.",
    )  # fmt: skip
    hold_seconds: float = _term(
        3600.0, label="Wait for feedback", help="How long a decision waits for feedback before its hold expires.",
        kind="seconds", group="Feedback", largest=1e9, changeable=True, form_unit=("minutes", MINUTE),
    )  # fmt: skip
    on_expire: OnExpire = _term(  # noqa: RUF009 - it makes a field
        "charge", label="Without feedback", help="What happens to a hold that expires: charge or release.",
        kind="choice", group="Feedback", changeable=True,
        choices=(("charge", "charged: the call may have been made"), ("release", "released: its money is free again")),
    )  # fmt: skip
    reward_max: float = _term(
        1.0, label="Largest reward", help="The largest reward of one pull.", kind="number", group="Learning",
        largest=1e12, changeable=True,
    )  # fmt: skip
    horizon: float | None = _term(
        None, label="Requests expected",
        help="How many requests the budget is for, failed ones included (bts-paced, bts-linear).",
        kind="number", group="Learning", smallest=1, largest=1e12, absent="as many as can be paid are assumed",
        changeable=True,
    )  # fmt: skip
    features: tuple[str, ...] | None = _term(
        None, label="Features", help="The names of the numbers that every request gives (bts-linear).", kind="names",
        group="Learning", absent="requests have no features",
    )  # fmt: skip
    propensity_draws: float | None = _term(
        None, label="Draws for propensities",
        help="Record how likely each choice was, from this many extra draws, to evaluate other policies later.",
        kind="number", group="Learning", smallest=1, largest=10_000, whole=True, absent="nothing is recorded",
        changeable=True,
    )  # fmt: skip
    lease: float | None = _term(
        None, label="Lease", help="How much of the budget a server may reserve at once, to decide by itself.",
        kind="money", group="Servers", largest=AMOUNT_MAX, absent="there are no leases", in_forms=False,
        short="leases of {}",
    )  # fmt: skip
    lease_seconds: float = _term(
        2.0, label="Lease time", help="How long a server may keep a lease without merging it.", kind="seconds",
        group="Servers", largest=1e6, in_forms=False,
    )  # fmt: skip
    currency: str | None = _term(
        None, label="Currency", help="The unit of amounts, for display only: EUR, tokens, ...", kind="text",
        group="Display",
    )  # fmt: skip
    tags: tuple[str, ...] | None = _term(
        None, label="Tags", help="Words to find the campaign by on pages: its team, its product.", kind="names",
        group="Display", changeable=True, absent="it has none",
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name in ("features", "tags"):
            if isinstance(getattr(self, name), list):  # as JSON has it
                object.__setattr__(self, name, tuple(getattr(self, name)))

    def check_zone(self) -> None:
        """Refuse a time zone that is not known here."""
        try:
            if self.time_zone is not None:
                ZoneInfo(self.time_zone)
        except (OSError, ValueError, ZoneInfoNotFoundError):
            raise BadParameter(
                f"time_zone is {self.time_zone!r:.60}, which is not known here; use a name such as Europe/Berlin or "
                "America/New_York (and pip install tzdata where a system has none)"
            ) from None

    def checked(self, only: Collection[str] | None = None) -> Self:
        """Check all terms, or those in ``only``, and return them. Every interface checks terms here.

        Whether an amount fits the ledger is checked where it becomes micros.
        """
        for term in _listed(type(self)):  # type: ignore[arg-type] # a class is hashable
            value = getattr(self, term.name)
            if (only is None or term.name in only) and not (value is None and term.optional):
                term.check(value)
        if only is None or "time_zone" in only:
            self.check_zone()
        return self


@cache
def _listed(terms: type[Terms]) -> tuple[Term, ...]:
    """The terms among the fields of a class."""
    term_fields = [item for item in fields(terms) if "term" in item.metadata]
    return tuple(replace(item.metadata["term"], name=item.name, default=item.default) for item in term_fields)


TERMS = {term.name: term for term in _listed(Terms)}
"""All terms by name."""

CHANGEABLE = tuple(term.name for term in TERMS.values() if term.changeable)
"""Names of the terms that may change after a campaign was created."""

CHANGEABLE_FACTS = ("name", "policy", "budget", "caps")
"""Facts other than terms that `Campaigns.change_terms` may change."""
