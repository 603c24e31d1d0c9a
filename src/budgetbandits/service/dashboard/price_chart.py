"""The price on money over time as SVG."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from budgetbandits.formatting.datetimes import Times
from budgetbandits.service.dashboard.charts import BOTTOM, LEFT, TOP, Frame, drawing, time_axis
from budgetbandits.service.dashboard.numbers import on_axis, significant
from budgetbandits.service.dashboard.svg import CHARACTER, ticks


def price_chart(prices: Sequence[tuple[float, float]], times: Times, width: int, height: int) -> Markup:
    """What one more unit of money would have brought, over time."""
    most = max(price for _, price in prices) * 1.12 or 1.0
    begin, end = prices[0][0], prices[-1][0]
    values = ticks(most)
    names = on_axis(values)
    left = max(LEFT, 14 + CHARACTER * max(map(len, names)))
    frame = Frame(begin, max(end, begin + 1.0), most, left, width - 16, TOP, height - BOTTOM)
    parts = [time_axis(frame, times, height)]
    for value, text in zip(values, names, strict=True):
        y = frame.y(value)
        parts.append(f'<line class="grid" x1="{frame.left}" x2="{frame.right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{frame.left - 8}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<path class="spent-line" d="{frame.line(prices)}"/>')
    x, y, latest = frame.x(end), frame.y(prices[-1][1]), significant(prices[-1][1])
    above = y - 10 if y - 10 > frame.top + 8 else y + 18
    parts.append(f'<circle class="spent-dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>')
    parts.append(f'<text class="strong" x="{x - 2:.1f}" y="{above:.1f}" text-anchor="end">{escape(latest)}</text>')
    return drawing("".join(parts), width, height, f"The price on money over time, {latest} now.")
