"""Charts over time or requests, as SVG: money, shares of the arms, and the price on money. Drawn for a width in pixels.

An axis fits what is shown, and where nothing happened a line has a gap; what was spent by then stays what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from budgetbandits.formatting.datetimes import DAY, HOUR, MINUTE, Times
from budgetbandits.formatting.money import budget_decimals, money
from budgetbandits.formatting.numbers import axis_labels, percentage, significant, truncated
from budgetbandits.service.dashboard.campaign import CampaignView
from budgetbandits.service.dashboard.charts.cell_charts import CHARACTER_WIDTH, ticks
from budgetbandits.service.dashboard.charts.shares import OTHER_ARMS, ShareKind
from budgetbandits.service.dashboard.charts.timeline import latest
from budgetbandits.service.ledger import to_units

TICK_SECONDS = (1, 5, 10, 15, 30, 60, 300, 900, 3600, 3 * 3600, 6 * 3600)
"""Steps between the labels of an axis of less than two days."""


@dataclass(frozen=True)
class Frame:
    """Where times and values are in a drawing of this height."""

    begin: float
    end: float
    value_max: float
    left: float
    right: float
    height: int
    value_min: float = 0.0
    top = 14

    @property
    def bottom(self) -> int:
        """The vertical position of the axis of time."""
        return self.height - 26

    def x(self, timestamp: Any) -> Any:
        """The horizontal position of one time or of an array of them."""
        part = (timestamp - self.begin) / max(self.end - self.begin, 1e-9)
        return self.left + np.clip(part, 0.0, 1.0) * (self.right - self.left)

    def y(self, value: Any) -> Any:
        """The vertical position of one value or of an array of them."""
        part = (value - self.value_min) / max(self.value_max - self.value_min, 1e-300)
        return self.bottom - np.clip(part, 0.0, 1.0) * (self.bottom - self.top)

    def line(self, points: Sequence[tuple[float, float]]) -> str:
        """All at once, since a page has some thousands of points."""
        timestamps, values = np.array(points).T
        places = zip(self.x(timestamps).tolist(), self.y(values).tolist(), strict=True)
        return "M" + " L".join([f"{x:.1f} {y:.1f}" for x, y in places])

    def grid(self, values: Sequence[float], names: Sequence[str]) -> str:
        """A line across for each value, with its name on the left."""
        return "".join(
            f'<line class="grid" x1="{self.left:.1f}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text x="{self.left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
            for y, name in zip(map(self.y, values), names, strict=True)
        )


def _with_values(
    begin: float, end: float, value_max: float, right: float, height: int, value_min: float = 0.0
) -> tuple[Frame, str]:
    """A frame with round values on the left, as wide as their names need, and its grid."""
    values = ticks(value_max, begin=value_min)
    names = axis_labels(values)
    left = max(52, 14 + CHARACTER_WIDTH * max(map(len, names), default=0))
    frame = Frame(begin, max(end, begin + 1.0), value_max, left, right, height, value_min)
    return frame, frame.grid(values, names)


@dataclass(frozen=True)
class MoneyAxes:
    """The axes of the picture of money against time: its end, its range of amounts, and its curves."""

    end: float
    low: float
    high: float
    projected: bool
    shows_budget: bool

    @classmethod
    def of(cls, view: CampaignView) -> MoneyAxes:
        """They fit what was spent and planned in the time that is shown. What lies too far ahead, or above, is said in
        words: drawn, it would leave no room for what has happened."""
        out, age, end = view.runs_out, view.ends - view.begins, view.ends
        if out is not None and out.limit != "budget":
            out = None  # the line would lead to the campaign's own budget
        projected = out is not None and view.query.range == "all" and out.median - view.now < 4 * age
        if out is not None and projected:
            end = max(out.median, min(out.high or out.median, view.now + 3 * age))
        spent = [value for _, value in cumulated_spend(view)]
        plans = [value for line in plan_lines(view, end) for _, value in line]
        low, high = min(spent + plans), max(spent + plans)
        if low < high / 2:
            low = 0.0
        budgets = [value for at, value in view.budgets if at <= end] or [view.budgets[0][1]]
        shows_budget = projected or high == 0.0 or (low == 0.0 and high > max(budgets) / 4)
        if shows_budget:
            high = max(high, *budgets)
        room = max(high - low, 0.01 * budgets[-1])
        return cls(end, max(low - 0.06 * room, 0.0), low + 1.06 * room, projected, shows_budget)


def money_chart(view: CampaignView, times: Times, width: int, height: int) -> Markup:
    """A picture of money against time: spent, planned, left, and the time at which it runs out."""
    budget, axes = to_units(view.row.account.budget), MoneyAxes.of(view)
    digits, projected = budget_decimals(budget), axes.projected
    label = 132 if width > 600 and projected else 16
    frame, grid = _with_values(view.begins, axes.end, axes.high, width - label, height, axes.low)
    spent = cumulated_spend(view)
    parts = [grid, time_axis(frame, times), _spent_area(frame, spent)]
    parts += [f'<path class="plan" d="{frame.line(line)}"/>' for line in plan_lines(view, frame.end)]
    if axes.shows_budget:
        parts.append(f'<path class="budget" d="{frame.line(_budget_steps(view, frame.end))}"/>')
    if projected:
        parts.append(_projection(frame, view, budget))
    text = money(view.spent, digits)
    parts.append(_spent_line(frame, spent, (view.ends, view.spent), text))
    if projected and width > 600:
        parts.append(_out_label(frame, view, times, budget))
    words = f"Money against time: {text} of {money(budget, digits)} spent."
    return drawing("".join(parts), width, height, words, frame)


def _spent_area(frame: Frame, spent: Sequence[tuple[float, float]]) -> str:
    base = f" L{frame.x(spent[-1][0]):.1f} {frame.bottom} L{frame.x(spent[0][0]):.1f} {frame.bottom}Z"
    return f'<path class="spent-area" d="{frame.line(spent)}{base}"/>'


def _spent_line(frame: Frame, spent: Sequence[tuple[float, float]], end: tuple[float, float], text: str) -> str:
    """The line of what was spent, a dot at its end, and the amount next to it where there is room."""
    x, y = frame.x(end[0]), frame.y(end[1])
    wide, below = CHARACTER_WIDTH * len(text) + 8, min(y + 18, frame.bottom - 6)
    fits = x - wide > frame.left or x - frame.left > frame.right - x  # there is more room on the left
    anchor, shift = ("end", -8) if x + wide > frame.right and fits else ("start", 8)
    return (
        f'<path class="spent-line" d="{frame.line(spent)}"/>'
        f'<circle class="spent-dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        f'<text class="strong" x="{x + shift:.1f}" y="{below:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _budget_steps(view: CampaignView, end: float) -> list[tuple[float, float]]:
    steps: list[tuple[float, float]] = []
    for place, (at, value) in enumerate(view.budgets):
        until = view.budgets[place + 1][0] if place + 1 < len(view.budgets) else end
        if until >= view.begins:
            steps += [(max(at, view.begins), value), (until, value)]
    return steps


def cumulated_spend(view: CampaignView) -> list[tuple[float, float]]:
    """The spending by the end of each slot; spending since a copy is a step at the time when it was booked."""
    grown = [
        (max(slot.begins, view.begins), min(slot.begins + view.slot - slot.begins % view.slot, view.ends),
         sum(slot.spent.values()))
        for slot in view.slots
    ]  # fmt: skip
    grown += [(at, at, amount) for at, amount in view.since_copies]
    points, total = [(view.begins, view.before)], view.before
    for begins, ends, amount in sorted(grown):
        points.append((max(begins, points[-1][0]), total))  # a step inside a slot comes after it
        total += amount
        points.append((max(ends, points[-1][0]), total))
    points.append((view.ends, total))
    return points


def plan_lines(view: CampaignView, end: float) -> list[list[tuple[float, float]]]:
    """The share of each budget that the time is of the whole, by the terms of that time, in a line for each time that
    there was a plan. A top-up and a change of terms move it at once."""
    begun, can_continue = view.row.created_at, False
    lines: list[list[tuple[float, float]]] = []
    moments = sorted({at for at, _ in (*view.budgets, *view.plans)})
    for at, until in zip(moments, [*moments[1:], max(end, view.now)], strict=True):
        seconds, budget, first = latest(view.plans, at), latest(view.budgets, at), max(at, view.begins)
        if seconds is None or until < first:
            can_continue = False
            continue
        if not can_continue:
            lines.append([])
        for when in (first, min(max(begun + seconds, first), until), until):
            lines[-1].append((when, (budget or 0.0) * min(max((when - begun) / seconds, 0.0), 1.0)))
        can_continue = True
    return lines


def _projection(frame: Frame, view: CampaignView, budget: float) -> str:
    out = view.runs_out
    assert out is not None
    late = frame.end if out.high is None else out.high
    start = (view.now, view.spent)
    band = frame.line([start, (out.low, budget), (late, budget)])
    stroke = (
        f'x1="{frame.x(out.low):.1f}" x2="{frame.x(late):.1f}" y1="{frame.y(budget):.1f}" y2="{frame.y(budget):.1f}"'
    )
    return (
        f'<path class="band" d="{band}Z"/><path class="projected" d="{frame.line([start, (out.median, budget)])}"/>'
        f'<line class="out" {stroke}/>'
        f'<circle class="spent-dot" cx="{frame.x(out.median):.1f}" cy="{frame.y(budget):.1f}" r="4"/>'
    )


def _out_label(frame: Frame, view: CampaignView, times: Times, budget: float) -> str:
    out = view.runs_out
    assert out is not None
    x, y = frame.right + 8, frame.y(budget) + 4
    high = "later" if out.high is None else times.moment(out.high)
    texts = [("strong accent", times.moment(out.median)), ("", "95 % between"), ("", times.moment(out.low)), ("", high)]
    return "".join(
        f'<text class="{kind}" x="{x:.1f}" y="{y + 15 * place:.1f}">{escape(text)}</text>'
        for place, (kind, text) in enumerate(texts)
    )


def time_axis(frame: Frame, times: Times) -> str:
    """Both ends, and between them local midnights, or round hours, minutes and seconds where a day is too long."""
    length = frame.end - frame.begin
    name: Callable[[float], str]
    end_name: Callable[[float], str]
    room = max(2, int((frame.right - frame.left) / 74))
    if length >= 2 * DAY:
        places, name = times.midnights(frame.begin, frame.end, room), times.day
        end_name = name
    else:
        step = next((seconds for seconds in TICK_SECONDS if length / seconds <= 8), TICK_SECONDS[-1])
        offset = (times.local(frame.begin).utcoffset() or times.local(0) - times.local(0)).total_seconds() % HOUR
        first = frame.begin - (frame.begin + offset) % step + step
        places = [first + step * place for place in range(10) if first + step * place <= frame.end]

        def name(at: float) -> str:
            return times.clock(at) if step < MINUTE else f"{times.local(at):%H:%M}"

        end_name = name if step < MINUTE else times.moment  # the ends of a day have the same time

    every = -(-len(places) // room) or 1
    begins, ends = end_name(frame.begin), end_name(frame.end)
    labels = [(frame.left, "start", begins), (frame.right, "end", ends)]
    free_from, free_to = (frame.left + CHARACTER_WIDTH * len(begins) + 8, frame.right - CHARACTER_WIDTH * len(ends) - 8)
    for at in places[::every]:
        x, text = frame.x(at), name(at)
        half = CHARACTER_WIDTH * len(text) / 2
        if free_from <= x - half and x + half <= free_to and text not in (begins, ends):
            labels.append((x, "middle", text))
    return "".join(
        f'<text x="{x:.1f}" y="{frame.height - 6}" text-anchor="{anchor}">{escape(text)}</text>'
        for x, anchor, text in labels
    )


def share_chart(view: CampaignView, times: Times, kind: ShareKind, width: int, height: int) -> Markup:
    """Shares of decisions or of spend, stacked by arm over time; arms without a colour of their own together."""
    label = 148 if width > 400 else 8
    frame = Frame(view.begins, max(view.decided_until, view.begins + 1), 1.0, 48, width - label, height)
    parts = [frame.grid((0.0, 0.5, 1.0), ("0 %", "50 %", "100 %")), time_axis(frame, times)]
    middles: dict[int, float] = {}
    for stretch in view.shares.stretches[kind]:
        below = [0.0] * len(stretch.timestamps)
        for number, shares in stretch.layers:
            above = [low + part for low, part in zip(below, shares, strict=True)]
            top = frame.line(list(zip(stretch.timestamps, above, strict=True)))
            bottom = frame.line(list(zip(reversed(stretch.timestamps), reversed(below), strict=True))).replace(
                "M", "L", 1
            )
            colour = view.colour(number)
            parts.append(
                f'<path class="share {colour}" d="{top} {bottom}Z"/><path class="share-line {colour}" d="{top}"/>'
            )
            middles[number] = (above[-1] + below[-1]) / 2
            below = above
    whole = whole_shares(view, kind)
    if width > 400:
        ends = [(number, part, middles.get(number, 1.0)) for number, _, part in whole]
        parts.append(_share_labels(frame, view, ends))
    words = ", ".join(f"{name} {percentage(part)}" for _, name, part in whole) or "nothing yet"
    return drawing("".join(parts), width, height, f"Shares of {kind} by arm over time; in all: {words}.", frame)


def whole_shares(view: CampaignView, kind: ShareKind) -> list[tuple[int, str, float]]:
    """(number, name, share) of all that is shown, for a legend."""
    return [(number, _arm_name(view, number), part) for number, part in view.shares.whole[kind]]


def _share_labels(frame: Frame, view: CampaignView, ends: Sequence[tuple[int, float, float]]) -> str:
    """Names next to the right end, moved apart where they would cover each other."""
    ends = sorted(ends, key=lambda end: end[2])
    heights, last = [], frame.bottom + 15.0
    for _, _, middle in ends:
        last = min(frame.y(middle) + 4, last - 15)
        heights.append(last)
    least = frame.top - 2.0
    for place in reversed(range(len(heights))):  # from the top down, so that none leaves the picture
        heights[place] = max(heights[place], least)
        least = heights[place] + 15
    placed: list[str] = []
    for (number, part, _), y in zip(ends, heights, strict=True):
        name = _arm_name(view, number)
        x, colour = frame.right, view.colour(number)
        placed.append(
            f'<rect class="swatch {colour}" x="{x + 10}" y="{y - 9:.1f}" width="9" height="9" rx="2"/>'
            f'<text x="{x + 25}" y="{y:.1f}">{escape(truncated(name, 10))}</text>'
            f'<text class="strong" x="{x + 146}" y="{y:.1f}" text-anchor="end">{escape(_whole(part))}</text>'
        )
    return "".join(placed)


def _whole(part: float) -> str:
    return "< 1 %" if 0 < part < 0.01 else f"{100 * part:.0f} %"


def _arm_name(view: CampaignView, number: int) -> str:
    return "others" if number == OTHER_ARMS else view.names[number]


def drawing(content: str, width: int, height: int, words: str, frame: Frame | None = None) -> Markup:
    """A picture with words for those who cannot see it; with a frame, scripts can find the values in it."""
    place = "" if frame is None else f' data-left="{frame.left:.1f}" data-right="{frame.right:.1f}"'
    return Markup(
        f'<svg class="chart" role="img" aria-label="{escape(words)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}"{place}>{content}</svg>'
    )


def price_chart(prices: Sequence[tuple[float, float]], times: Times, width: int, height: int) -> Markup:
    """A picture of the value of one more unit of money over time, with gaps where nothing happened."""
    most = max(price for _, price in prices) * 1.25 or 1.0  # with room for the latest price above its point
    begin, end = prices[0][0], prices[-1][0]
    frame, grid = _with_values(begin, end, most, width - 16, height)
    parts = [grid, time_axis(frame, times)]
    for stretch in stretches(prices):
        if len(stretch) > 1:
            parts.append(f'<path class="spent-line" d="{frame.line(stretch)}"/>')
        else:
            x, y = frame.x(stretch[0][0]), frame.y(stretch[0][1])
            parts.append(f'<circle class="lone-dot" cx="{x:.1f}" cy="{y:.1f}" r="1.5"/>')
    x, y, latest = frame.x(end), frame.y(prices[-1][1]), significant(prices[-1][1])
    parts.append(f'<circle class="spent-dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
    parts.append(f'<text class="strong" x="{x - 2:.1f}" y="{y - 10:.1f}" text-anchor="end">{escape(latest)}</text>')
    return drawing("".join(parts), width, height, f"The price on money over time, {latest} now.", frame)


GAP_SHARE = 0.05
"""A time without anything, as a share of all that is shown, that is a gap in a line; and longer than points are
usually apart."""


def stretches(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Points over time in stretches without a gap.

    >>> stretches([(0.0, 1.0), (1.0, 2.0), (2.0, 3.0), (100.0, 4.0)])
    [[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)], [(100.0, 4.0)]]
    """
    steps = [after[0] - before[0] for before, after in pairwise(points)]
    longest = max(GAP_SHARE * (points[-1][0] - points[0][0]), 1.5 * median(steps or [0.0]))
    result = [[points[0]]]
    for before, after in pairwise(points):
        if after[0] - before[0] > longest:
            result.append([])
        result[-1].append(after)
    return result


def requests_chart(view: CampaignView, width: int, height: int) -> Markup:
    """Money against requests: what was spent, the plan, and what the requests to come would cost."""
    points, horizon = view.points_by_requests, view.row.settings.terms.horizon
    assert horizon is not None
    budget, (used, spent) = to_units(view.row.account.budget), points[-1]
    end = requests_shown(points, horizon)
    per_request, digits = spent / used if used else 0.0, budget_decimals(budget)
    planned = min(end / horizon, 1.0) * budget
    ahead = min(spent + per_request * (end - used), budget)
    high = max(spent, planned, ahead)
    shows_budget = end >= horizon
    frame, grid = _with_values(0.0, end, 1.06 * high, width - 16, height)
    names = axis_labels(ticks(end))
    parts = [grid]
    parts += [
        f'<text x="{frame.x(value):.1f}" y="{frame.height - 6}" text-anchor="middle">{escape(name)}</text>'
        for value, name in zip(ticks(end), names, strict=True)
        if frame.left + 12 < frame.x(value) <= frame.right - CHARACTER_WIDTH * len(name) / 2 + 16
    ]
    parts.append(_spent_area(frame, points))
    plan = [(0.0, 0.0), (min(end, horizon), planned), (end, planned)]
    parts.append(f'<path class="plan" d="{frame.line(plan)}"/>')
    if shows_budget:
        parts.append(f'<path class="budget" d="{frame.line([(0.0, budget), (end, budget)])}"/>')
    if used and end > used:
        parts.append(f'<path class="projected" d="{frame.line([(used, spent), (end, ahead)])}"/>')
    text = money(spent, digits)
    parts.append(_spent_line(frame, points, (used, spent), text))
    words = f"Money against requests: {text} spent by {used:,} of {horizon:,.0f} requests."
    return drawing("".join(parts), width, height, words, frame)


def requests_shown(points: Sequence[tuple[int, float]], horizon: float) -> float:
    """How many requests a picture has room for: all, unless those that have come would be less than a quarter."""
    used = points[-1][0]
    return max(horizon, used) if 4 * used >= horizon else max(4.0 * used, min(horizon, 10.0))
