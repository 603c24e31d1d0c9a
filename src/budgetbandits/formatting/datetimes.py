"""Moments and durations as text, for every page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
"""Lengths in seconds."""

TIMESTAMP_MIN, TIMESTAMP_MAX = -62_135_510_400.0, 253_402_214_400.0
"""Timestamps of the second day of the year 1 and of the last day of 9999, UTC. Moments much before or after have no
date in some zones."""


def duration(seconds: float) -> str:
    """A duration as text, in its two longest units.

    >>> duration(38), duration(4440), duration(200000), duration(0.25)
    ('38 s', '1 h 14 min', '2 d 7 h', '< 1 s')
    """
    if 0 < seconds < 0.5:
        return "< 1 s"
    seconds = max(0, round(seconds))
    days, hours, minutes = seconds // 86_400, seconds % 86_400 // 3600, seconds % 3600 // 60
    if days:
        return f"{days:,} d {hours} h" if hours and days < 100 else f"{days:,} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


def wait(seconds: float) -> str:
    """A waiting time as text, in its two longest units and rounded up, so that nobody comes too early.

    >>> wait(39.2), wait(100), wait(3599.5), wait(4441), wait(200000), wait(0.25), wait(-3)
    ('40 s', '1 min 40 s', '1 h', '1 h 15 min', '2 d 8 h', '1 s', '0 s')
    """
    seconds = max(0, math.ceil(seconds))
    if seconds >= HOUR:
        size = HOUR if seconds >= DAY else MINUTE
        seconds = math.ceil(seconds / size) * size
    return exact_duration(seconds)


def exact_duration(seconds: float) -> str:
    """A duration with all its digits, so that different durations never read the same.

    >>> exact_duration(114.0), exact_duration(8_717_760.0), exact_duration(0.06), exact_duration(7200)
    ('1 min 54 s', '100 d 21 h 36 min', '0.06 s', '2 h')
    """
    rest, parts = Decimal(repr(float(seconds))), list[str]()
    for size, word in ((86_400, "d"), (3600, "h"), (60, "min")):
        whole, rest = divmod(rest, size)
        if whole:
            parts.append(f"{whole:,f} {word}")
    if rest or not parts:
        parts.append(f"{rest.normalize():f} s")
    return " ".join(parts)


def utc_minute(timestamp: float) -> str:
    """A timestamp as text in UTC, to the minute.

    >>> utc_minute(59.0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M} UTC"


@cache
def known_zones() -> frozenset[str]:
    """The names of all time zones."""
    return frozenset(available_timezones())


@dataclass(frozen=True)
class Times:
    """Moments as text in one time zone, seen from ``now``."""

    zone: tzinfo
    now: float

    @classmethod
    def of(cls, zone: str, now: float) -> Times:
        """Times in the zone of this name, as browsers send it; in UTC if no zone has the name."""
        return cls(ZoneInfo(zone) if zone in known_zones() else UTC, now)

    @property
    def zone_key(self) -> str:
        """The name of the zone; "UTC" if a browser has sent an unknown one.

        >>> Times.of("Europe/Berlin", 0.0).zone_key, Times.of("Europe/Nowhere", 0.0).zone_key
        ('Europe/Berlin', 'UTC')
        """
        return str(self.zone)

    def local(self, timestamp: float) -> datetime:
        """The date and time of a timestamp; the first or the last date if it is earlier or later than any.

        >>> Times.of("Pacific/Kiritimati", 0.0).local(3e12).year, Times.of("Pacific/Niue", 0.0).local(-1e12).year
        (9999, 1)
        """
        return datetime.fromtimestamp(min(max(timestamp, TIMESTAMP_MIN), TIMESTAMP_MAX), self.zone)

    @property
    def east(self) -> int:
        """Seconds by which clocks of the zone are now ahead of UTC.

        >>> Times.of("Europe/Berlin", 0.0).east
        3600
        """
        local = self.local(self.now)
        return round((local.utcoffset() or local - local).total_seconds())

    @property
    def zone_name(self) -> str:
        """The abbreviation of the zone and how far it is from UTC.

        >>> Times.of("Europe/Berlin", 0.0).zone_name
        'CET (UTC+1)'
        """
        local, offset = self.local(self.now), self.east / 3600
        ahead = "" if offset == 0 else f"{offset:+g}".replace("-", "−")
        return "UTC" if local.tzname() == "UTC" else f"{local.tzname()} (UTC{ahead})"

    def clock(self, timestamp: float) -> str:
        """The time of day of a timestamp, to the second."""
        return f"{self.local(timestamp):%H:%M:%S}"

    def moment(self, timestamp: float) -> str:
        """The time of a moment as text, with its day if that is not today.

        >>> Times.of("", 0.0).moment(3e12)
        'after the year 9999'
        """
        if timestamp > TIMESTAMP_MAX:
            return "after the year 9999"
        if abs(timestamp - self.now) < DAY and self.local(timestamp).date() == self.local(self.now).date():
            return f"{self.local(timestamp):%H:%M}"
        return f"{self.day(timestamp)}, {self.local(timestamp):%H:%M}"

    def day(self, timestamp: float) -> str:
        """The day of a timestamp as text, with its year if that is not this one."""
        if timestamp > TIMESTAMP_MAX:
            return "after the year 9999"
        local = self.local(timestamp)
        year = "" if local.year == self.local(self.now).year else f" {local.year}"
        return f"{local.day} {local:%b}{year}"

    def midnights(self, begin: float, end: float, count_max: int) -> list[float]:
        """Every n-th midnight between two timestamps, so that there are at most ``count_max`` of them.

        >>> [Times.of("", 0.0).day(at) for at in Times.of("", 0.0).midnights(1.0, 900 * DAY, 3)]
        ['2 Jan', '30 Oct', '27 Aug 1971']
        """
        first, last = self.local(begin).date(), self.local(min(end, TIMESTAMP_MAX - DAY)).date()
        every = max(-(-(last.toordinal() - first.toordinal() + 1) // count_max), 1)
        days = map(date.fromordinal, range(first.toordinal() + 1, last.toordinal() + 1, every))
        return [datetime.combine(day, time(), self.zone).timestamp() for day in days]
