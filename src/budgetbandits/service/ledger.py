"""The rules of money: an account with a budget, and holds that are resolved at most once. Pure; no clock, no store.

Money is whole micros, a millionth of the user's unit, because sums of floating-point numbers are not money. Every
amount is rounded up: what is booked is never less than what was reported, and a cost that is at most the cap is at most
the cap in micros, however it was rounded.

A decision places a hold before it is answered: of the arm's cost cap, or of less if its request says so. Later the
hold is

    settled   what it really cost is spent, the rest is free again. A cost above the hold and not above the cap is paid
              from what is free; what is above the cap, or more than what is free, is an overrun
    voided    the call was never made: the whole hold is free again
    expired   no feedback came in time: charged in full (the call may have been made), or, if the campaign says so,
              released

and nothing else, once. Feedback for an expired hold corrects what was booked. Whatever happens,

    spent + held ≤ budget,

after every step; what is leased to servers (`leases.lending`) counts like what is held. What cannot be booked without
breaking that (a cost above its hold, or for a released hold, when the money was spent elsewhere), and what is above the
cap, is booked as overrun, apart, and freezes the account until someone looks. So there is no overrun if every hold is
the cap, no cost is above its cap and expired holds are charged. If holds are smaller, no cost is above its cap and
expired holds are charged, overruns are at most the sum of cap − hold over the decisions whose cost is not reported. A
hold that was released counts as 0 in that sum.

Two limits may be set on when money is spent, not only on how much. Both are checked when a hold is placed:

    daily cap   whenever a decision is made, what the decisions of its day hold and were charged is within it; a
                charge counts for the day of its decision, whenever it is booked. Only what a decision costs above its
                hold, or after it was released, is charged to its day whatever the cap. A day that was set back
                (`reset_clock`) begins again with nothing, and what its first decisions give back is free in its second
    pace        whenever a decision is made, spent + held ≤ budget · elapsed / pace_seconds + the largest cap; the cap
                is there so that the first decision need not wait

A budget may be renewed by the week or the month (`records.Renewal`). Each period is granted once:

    ahead       a period that lies ahead of the clock gives money to nobody: a clock is wrong, or was. Set back
                (`set_back`), what was granted too early is taken back; what was spent of it stays spent, and is taken
                off what the next periods get. What is held of it, and then given back, is taken back then
    lapse       where money lapses, so does what a decision of an earlier period gives back
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NoReturn
from zoneinfo import ZoneInfo

from budgetbandits.answers import HoldState, Status
from budgetbandits.errors import AlreadyResolved, BadParameter, HoldRefused, WrongClock
from budgetbandits.formatting.datetimes import DAY, MINUTE, utc_minute
from budgetbandits.formatting.money import same_decimals
from budgetbandits.formatting.numbers import written
from budgetbandits.terms import AMOUNT_MAX, Period

MICROS = 1_000_000
"""Micros in one unit."""

LARGEST = int(AMOUNT_MAX) * MICROS
"""The largest amount in micros: sums of several still fit into a database's 64-bit integers."""

QUARTER = 15 * MINUTE
"""Length of a quarter of an hour."""

DAY_SECONDS_MAX = 25 * 3600
"""Seconds of the longest day: one on which clocks are set back."""

CLOCK_LAG_SECONDS_MAX = 3600.0
"""Seconds that a clock may be behind the day and the periods of the latest decision, which is then of these as well."""


def to_micros(amount: float, name: str = "amount") -> int:
    """An amount in the user's unit as whole micros, rounded up.

    What floating-point arithmetic may have added is taken off first: a millionth of a micro, or a part in 10¹².

    >>> to_micros(0.1) + to_micros(0.2) == to_micros(0.3) == to_micros(0.1 + 0.2)
    True
    >>> to_micros(1 / 3), to_micros(0.0000000001)
    (333334, 1)
    """
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0.0 <= amount * MICROS <= LARGEST:
        raise BadParameter(f"{name} is {written(amount)}; use a number from 0 to {LARGEST // MICROS:,}")
    micros = amount * MICROS
    noise = min(1e-6 + 1e-12 * micros, 0.5)  # beyond half a micro, to the nearest
    return max(math.ceil(micros - noise), 1 if amount > 0 else 0)


def to_units(micros: float) -> float:
    """An amount in the user's unit."""
    return micros / MICROS


def known_units(micros: int | None) -> float | None:
    """The same of an amount that may not be known."""
    return None if micros is None else to_units(micros)


def in_words(account: Account, *micros: int) -> list[str]:
    """Amounts as this account's money is shown: with as many decimals as any of it needs."""
    money = (account.budget, account.spent, account.held, account.overrun, account.leased)
    return same_decimals([to_units(amount) for amount in micros], others=[to_units(amount) for amount in money])


def day_of(now: float, zone: str | None = None) -> int:
    """When the day that a moment is in began, in seconds since 1970: midnight in a time zone, or UTC.

    >>> day_of(1_774_746_000.0) - day_of(1_774_746_000.0, "Europe/Berlin")  # 2026-03-29, which has 23 hours there
    3600
    """
    return int(now - now % DAY) if zone is None else _midnight(zone, int(now // QUARTER))


def period_of(now: float, period: Period, zone: str | None = None) -> int:
    """When the week or the month that a moment is in began, in seconds since 1970: on Monday, or on the first.

    >>> [period_of(1_772_323_200.0, period) // 86_400 for period in ("week", "month")]  # Sunday, 2026-03-01
    [20507, 20513]
    """
    local = datetime.fromtimestamp(day_of(now, zone), UTC if zone is None else ZoneInfo(zone)).replace(hour=12, fold=0)
    first = local - timedelta(days=local.weekday() if period == "week" else local.day - 1)
    return day_of(first.timestamp(), zone)


def periods_between(begun: int, later: int, period: Period) -> int:
    """How many periods begin after the one that began then, up to one that began later, by the calendar: the same month
    in another time zone is no other one."""
    if period == "week":
        return round((later - begun) / (7 * DAY))
    # the middle of a month is in it in every time zone
    months = [
        date.year * 12 + date.month for date in (datetime.fromtimestamp(at + 14 * DAY, UTC) for at in (begun, later))
    ]
    return months[1] - months[0]


def next_period(now: float, period: Period, zone: str | None = None) -> int:
    """When the next week or month begins."""
    return period_of(period_of(now, period, zone) + (7.5 if period == "week" else 31.5) * DAY, period, zone)


def next_day(now: float, zone: str | None = None) -> int:
    """When the next day begins."""
    begun = day_of(now, zone)
    return begun + int(DAY) if zone is None else day_of(begun + 1.5 * DAY, zone)


@lru_cache(maxsize=4096)
def _midnight(zone: str, quarter: int) -> int:
    """The midnight before a quarter of an hour, in which no time zone begins a day but at its start."""
    local = datetime.fromtimestamp(quarter * QUARTER, ZoneInfo(zone))
    return int(local.replace(hour=0, minute=0, fold=0).timestamp())


@dataclass(frozen=True)
class Limits:
    """How fast a campaign may spend."""

    daily_cap: int | None = None
    pace_seconds: float | None = None
    """Time over which the budget is spread evenly."""
    begun: float = 0.0
    """Beginning of that time, in seconds since 1970."""
    slack: int = 0
    """Money that may be spent ahead of the pace: the largest cap."""
    zone: str | None = None
    """The time zone of its days; UTC if None."""


@dataclass(slots=True)
class Account:
    """A campaign's money, all in micros. Never changed, only replaced."""

    budget: int
    spent: int = 0
    held: int = 0
    overrun: int = 0
    status: Status = "active"
    day: int = 0
    """Beginning of the day of the latest decision, in seconds since 1970."""
    today: int = 0
    """Amount that the decisions of that day hold and were charged."""
    leased: int = 0
    """Money that servers have taken to decide with by themselves (`leases.lending`); most campaigns lease nothing."""
    requests_used: int = 0
    """Requests that were charged, or whose cost was reported (`Hold.request_used`): no number of micros."""
    period: int = 0
    """When the present period of a budget that is renewed began, in seconds since 1970; 0 if it is not renewed."""
    advance: int = 0
    """Money of periods to come that was spent by a clock that was ahead; the next periods get as much less."""

    def __post_init__(self) -> None:
        below = self.spent < 0 or self.held < 0 or self.overrun < 0 or self.today < 0 or self.leased < 0
        if below or self.requests_used < 0 or self.taken > self.budget:
            raise ArithmeticError(f"{self} breaks spent + held + leased <= budget")

    @property
    def open(self) -> int:
        """The money that is held or leased: neither spent nor left, and some of it may come back."""
        return self.held + self.leased

    @property
    def taken(self) -> int:
        """The money that is spent, held or leased."""
        return self.spent + self.held + self.leased

    @property
    def left(self) -> int:
        """The money for new holds."""
        return self.budget - self.taken


@dataclass(slots=True)
class Hold:
    """Money set aside for one decision. Never changed, only replaced."""

    amount: int
    state: HoldState = "pending"
    charged: int = 0
    """The money booked as spent for it; more than the amount if it cost more, and not more than its arm may."""
    overrun: int = 0
    """The part of its cost beyond that: above its arm's cap, or when the money was spent elsewhere."""
    reported: bool = False
    """Whether the real cost has been reported."""
    placed_at: float = 0.0
    """When it was placed, in seconds since 1970."""

    @property
    def booked(self) -> int:
        """Its part of the day's money: the amount while it is pending, and then what was charged."""
        return self.amount if self.state == "pending" else self.charged

    @property
    def request_used(self) -> bool:
        """Whether its request is used up for a policy that plans with requests: its cost was reported, or it was
        charged because none was. A hold that was voided, or released without feedback, leaves its request to come
        again."""
        return self.state == "settled" or (self.state == "expired" and (self.reported or self.charged > 0))


NO_LIMITS = Limits()
"""Limits of a campaign without any."""

RETRY_SECONDS = 1.0
"""When to ask again for money that others hold: nobody knows when they will report."""


def check_open(account: Account) -> None:
    """Refuse unless the campaign is active."""
    if account.status == "closed":
        raise HoldRefused("closed", "the campaign is closed for good; create a new one")
    if account.status != "active":
        raise HoldRefused(account.status, f"the campaign is {account.status}; no decisions until it is resumed")


def stop(policy: str) -> NoReturn:
    """Refuse because the policy itself has come to its end."""
    raise HoldRefused("policy_stopped", f"{policy} stops here: it can afford no arm, or its horizon is over")


def place(account: Account, amount: int, now: float = 0.0, limits: Limits = NO_LIMITS) -> tuple[Account, Hold]:
    """Set the whole amount aside, or refuse: a smaller hold would not cover what the call may cost."""
    check_open(account)
    if amount > account.left:
        left, needed, leased = in_words(account, account.left, amount, account.leased)
        if account.open:
            others = f"open holds and {leased} in leases" if account.leased else "open holds"
            raise HoldRefused("blocked_by_holds", f"{left} left next to {others}; try again later", RETRY_SECONDS)
        raise HoldRefused("exhausted", f"{left} left, {needed} needed; top up the budget")
    check_time(account, amount, now, limits)
    day = _day(account, now, limits)
    if day != account.day:
        account = replace(account, day=day, today=0)
    now = max(now, float(day))
    return _moved(account, now, held=amount), Hold(amount, placed_at=now)


def check_time(account: Account, amount: int, now: float, limits: Limits) -> None:
    """Refuse if a hold of this amount would be too early by the daily cap or the pace."""
    left_today = today_left(account, now, limits)
    if left_today is not None and limits.daily_cap is not None and amount > left_today:
        left, cap, needed = in_words(account, left_today, limits.daily_cap, amount)
        raise HoldRefused(
            "daily_cap",
            f"{left} of the day's {cap} left, {needed} needed; wait for the next day ({limits.zone or 'UTC'})",
            next_day(now, limits.zone) - now,
        )
    if limits.pace_seconds is not None:
        wanted = account.spent + account.held + amount - limits.slack
        due, elapsed = limits.pace_seconds * wanted / account.budget, now - limits.begun
        due = min(due, limits.pace_seconds)
        if elapsed < due:
            raise HoldRefused("paced", "the campaign is ahead of its pace; try again later", due - elapsed)


def today_left(account: Account, now: float, limits: Limits) -> int | None:
    """The part of the daily cap that is neither spent nor held; None without one."""
    if limits.daily_cap is None:
        return None
    return limits.daily_cap - (account.today if account.day == _day(account, now, limits) else 0)


def spendable(budget: int, now: float, limits: Limits) -> int:
    """The most that may be spent and held by now, as `check_time` takes the pace: part of the budget and the slack."""
    if limits.pace_seconds is None:
        return budget
    share = min((now - limits.begun) / limits.pace_seconds, 1.0)
    return min(max(math.floor(budget * share) + limits.slack, 0), budget)


def earliest_end(budget: int, limits: Limits) -> float:
    """The first moment at which the whole budget may be spent or held, as `check_time` takes the pace."""
    if limits.pace_seconds is None:
        return limits.begun
    return limits.begun + limits.pace_seconds * max(budget - limits.slack, 0) / budget


def _day(account: Account, now: float, limits: Limits) -> int:
    """Clocks of different hosts differ a little: a day that has begun for one has begun for all."""
    return max(account.day, day_of(now, limits.zone))


def settle(account: Account, hold: Hold, cost: int, cap: int = 0) -> tuple[Account, Hold]:
    """Book what a decision really cost; for an expired hold, correct what was booked when it expired.

    ``cap`` is the most that its arm may cost, if the hold is less than that.
    """
    if hold.state in ("settled", "voided") or hold.reported:
        raise AlreadyResolved(f"the hold is {hold.state} already; feedback for a decision counts once")
    pending = hold.state == "pending"
    held, booked = (hold.amount, 0) if pending else (0, hold.charged)
    charged = min(cost, max(hold.amount, cap), account.left + held + booked)
    overrun = cost - charged
    if account.overrun + overrun > LARGEST:
        [amount] = in_words(account, cost)
        raise BadParameter(f"a cost of {amount} is more than the books can hold; is its unit right?")
    account = _moved(
        account,
        hold.placed_at,
        held=-held,
        spent=charged - booked,
        overrun=overrun,
        requests_used=not hold.request_used,
    )
    if overrun and account.status != "closed":
        account = replace(account, status="frozen")
    # one that expired stays expired, for that is what happened
    return account, Hold(hold.amount, "settled" if pending else "expired", charged, overrun, True, hold.placed_at)


def void(account: Account, hold: Hold) -> tuple[Account, Hold]:
    """The call was never made."""
    _still_pending(hold)
    return _moved(account, hold.placed_at, held=-hold.amount), replace(hold, state="voided")


def expire(account: Account, hold: Hold, charge: bool = True) -> tuple[Account, Hold]:
    """No feedback came in time."""
    _still_pending(hold)
    charged = hold.amount if charge else 0
    expired = replace(hold, state="expired", charged=charged)
    return _moved(
        account, hold.placed_at, held=-hold.amount, spent=charged, requests_used=expired.request_used
    ), expired


def top_up(account: Account, amount: int) -> Account:
    """The account with a larger budget."""
    if amount <= 0 or account.budget + amount > LARGEST:
        [asked] = in_words(account, amount)
        raise BadParameter(f"a top-up of {asked}; use a positive amount, and no more than {LARGEST // MICROS:,} in all")
    return replace(account, budget=account.budget + amount)


def charge(account: Account, amount: int) -> Account:
    """The account after so much was spent without a decision; what is more than is left is an overrun."""
    charged = min(amount, account.left)
    if account.overrun + amount - charged > LARGEST:
        [asked] = in_words(account, amount)
        raise BadParameter(f"{asked} is more than the books can hold; is its unit right?")
    return replace(account, spent=account.spent + charged, overrun=account.overrun + amount - charged)


def set_budget(account: Account, budget: int) -> Account:
    """Another budget; never less than what is spent and held."""
    if not account.taken <= budget <= LARGEST:
        asked, least = in_words(account, budget, account.taken)
        raise BadParameter(f"budget is {asked}; use {least}, which is spent and held, to {LARGEST // MICROS:,}")
    return replace(account, budget=budget)


def check_clock(begun: float, now: float, what: str, reset: str = "campaign reset-clock CAMPAIGN") -> None:
    """Refuse if a day or a period has begun that is ahead of the clock. ``reset`` is the command that sets it back.

    A clock that was far ahead for a moment has begun it. Once it is right again nobody can tell by the clock alone
    which of the two was wrong. So nothing is decided or changed until it has caught up, or an operator has said that it
    is right now (`Campaigns.reset_clock`).
    """
    if begun > now + CLOCK_LAG_SECONDS_MAX:
        raise WrongClock(
            f"{what} is of {utc_minute(begun)}, and it is {utc_minute(now)} now; set the clock right, or, if it is, "
            f"go on today: budgetbandits {reset}"
        )


def renewed(account: Account, begun: int, amount: int, periods: int, carry: bool) -> Account:
    """The account in the period that began then, the last of ``periods`` that began since the one before. Each of them
    gets this amount, on top of what is left or in its place, less what was spent of them in advance. Its requests are
    counted from 0."""
    if periods < 1:
        raise ArithmeticError(f"no period has begun since {account.period}, so none is granted")
    whole = periods * amount
    granted, advance = max(whole - account.advance, 0), max(account.advance - whole, 0)
    budget = account.budget + granted if carry else account.taken + min(granted, amount)
    if budget > LARGEST:
        [asked] = in_words(account, budget)
        raise BadParameter(f"the budget would be {asked}; create a new campaign")
    return replace(account, budget=budget, requests_used=0, period=begun, advance=advance)


def set_back(account: Account, begun: int, granted: int) -> Account:
    """The account in the period that began then, without what periods to come were ``granted`` too early. What of it is
    spent or held stays in the budget, as an advance."""
    budget = account.budget - granted
    missing = max(account.taken - budget, 0)
    return replace(account, period=begun, budget=budget + missing, advance=account.advance + missing)


def lapse(account: Account, freed: int) -> Account:
    """The account without what a decision of an earlier period has just given back."""
    return replace(account, budget=account.budget - freed)


def pay_back(account: Account, freed: int) -> Account:
    """The account in which an advance that a decision has just given back is granted no more: it comes with its
    period."""
    unspent = min(freed, account.advance)
    return replace(account, budget=account.budget - unspent, advance=account.advance - unspent)


def set_day(account: Account, day: int, booked: int) -> Account:
    """The account on the day that began then, whose decisions hold and were charged so much."""
    return replace(account, day=day, today=booked)


def booked_at_most(account: Account) -> int:
    """The most that the decisions of any one day can hold and were charged: for a day of which some are archived."""
    return account.spent + account.held


def _moved(
    account: Account, placed_at: float, held: int = 0, spent: int = 0, overrun: int = 0, requests_used: bool = False
) -> Account:
    """The account with these changes, for a decision of this moment; of earlier days nothing is kept.

    A day that was set back comes a second time, and begins with nothing booked although decisions of the first time may
    be open: what these give back may be more than what is booked.
    """
    a = account
    today = max(a.today + held + spent, 0) if 0 <= placed_at - a.day < DAY_SECONDS_MAX else a.today
    return Account(
        a.budget, a.spent + spent, a.held + held, a.overrun + overrun, a.status, a.day, today, a.leased,
        a.requests_used + requests_used, a.period, a.advance,
    )  # fmt: skip


def _still_pending(hold: Hold) -> None:
    if hold.state != "pending":
        raise AlreadyResolved(f"the hold is {hold.state} already; it is resolved once")
