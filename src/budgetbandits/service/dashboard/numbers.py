"""Numbers, money and times as the pages write them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


def digits_for(budget: float) -> int:
    """Decimals for a campaign's money: cents, and more for a budget of few of them.

    >>> digits_for(500.0), digits_for(2.5), digits_for(0.01)
    (2, 4, 6)
    """
    return 2 if budget >= 10 else 4 if budget >= 0.1 else 6


def money(amount: float, digits: int = 2) -> str:
    """
    >>> money(1497.239), money(-0.0001)
    ('1,497.24', '0.00')
    """
    text = f"{amount:,.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text.replace("-", "−")


def count(number: float) -> str:
    return f"{number:,.0f}"


def significant(number: float, digits: int = 3) -> str:
    """
    >>> significant(0.012345), significant(1234.5), significant(0.0)
    ('0.0123', '1,234', '0')
    """
    if number == 0 or not math.isfinite(number):
        return "0" if number == 0 else "–"
    places = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    return f"{number:,.{places}f}"


def plain(number: float) -> str:
    """
    >>> plain(1.0), plain(0.25), plain(1234567.0)
    ('1', '0.25', '1,234,567')
    """
    return f"{number:,.0f}" if number == round(number) else f"{number:,.4g}"


def share(value: float) -> str:
    """A share with one decimal; never 0 or 100 % for what is neither.

    >>> share(0.5), share(0.0004), share(0.9996), share(0.0)
    ('50.0 %', '< 0.1 %', '> 99.9 %', '0 %')
    """
    if value in (0.0, 1.0):
        return f"{value:.0%}".replace("%", " %")
    if value < 0.001:
        return "< 0.1 %"
    return "> 99.9 %" if value > 0.999 else f"{100 * value:.1f} %"


def duration(seconds: float) -> str:
    """
    >>> duration(38), duration(4440), duration(200000)
    ('38 s', '1 h 14 min', '2 d 7 h')
    """
    seconds = max(0, round(seconds))
    days, hours, minutes = seconds // 86_400, seconds % 86_400 // 3600, seconds % 3600 // 60
    if days:
        return f"{days:,} d {hours} h" if hours and days < 100 else f"{days:,} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


@dataclass(frozen=True)
class Times:
    """Moments as text in one zone, seen from now."""

    zone: tzinfo
    now: float

    @classmethod
    def of(cls, zone: str, now: float) -> Times:
        """The zone that a browser names; UTC if there is none like that."""
        try:
            return cls(ZoneInfo(zone) if zone else UTC, now)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return cls(UTC, now)

    def local(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, self.zone)

    @property
    def zone_name(self) -> str:
        """
        >>> Times.of("Europe/Berlin", 0.0).zone_name
        'CET (UTC+1)'
        """
        local = self.local(self.now)
        offset = (local.utcoffset() or local - local).total_seconds() / 3600
        ahead = "" if offset == 0 else f"{offset:+g}".replace("-", "−")
        return "UTC" if local.tzname() == "UTC" else f"{local.tzname()} (UTC{ahead})"

    def clock(self, at: float) -> str:
        return f"{self.local(at):%H:%M:%S}"

    def moment(self, at: float) -> str:
        """Within a day the time, else the day as well."""
        if abs(at - self.now) < DAY and self.local(at).date() == self.local(self.now).date():
            return f"{self.local(at):%H:%M}"
        return f"{self.day(at)}, {self.local(at):%H:%M}"

    def day(self, at: float) -> str:
        local = self.local(at)
        year = "" if local.year == self.local(self.now).year else f" {local.year}"
        return f"{local.day} {local:%b}{year}"

    def midnights(self, begin: float, end: float) -> list[float]:
        """The beginnings of days in this time, at most 400."""
        made, day = list[float](), self.local(begin).replace(hour=0, minute=0, second=0, microsecond=0)
        while len(made) < 400:
            day = datetime.combine(day.date(), day.time(), self.zone)
            if day.timestamp() > end:
                break
            if day.timestamp() >= begin:
                made.append(day.timestamp())
            day = datetime.fromordinal(day.toordinal() + 1).replace(tzinfo=self.zone)
        return made
