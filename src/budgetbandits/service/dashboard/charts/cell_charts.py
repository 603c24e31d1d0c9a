"""Small drawings inside tables, as SVG: bars, spark lines and densities. Colours are classes of the style sheet.

A drawing without a viewBox is as wide as its place: positions are shares of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from budgetbandits.formatting.numbers import axis_labels
from budgetbandits.service.dashboard.beliefs import Belief, Worth
from budgetbandits.service.projection import MedianInterval
from budgetbandits.web.assets import SERIES

ARM_COLOURS = len(SERIES)
"""Arms that have a colour of their own; the style sheet has a class for each."""
CHARACTER_WIDTH = 7.4
"""How wide a figure of a chart is, in pixels; in the widest of the fonts that a browser may have."""


def colour_class(place: int | None) -> str:
    """The class of an arm's colour, by the colour's place; of all without one, if there is none."""
    return "others" if place is None else f"arm{place + 1}"


def budget_bar(spent: float, held: float, budget: float, plan: float | None = None, quiet: bool = False) -> Markup:
    """Spent, held and left of a budget, and a tick where the plan is."""
    total = max(budget, 1e-300)
    one, two = _percent(spent / total), _percent(held / total)
    tick = ""
    if plan is not None:
        at = _percent(plan / total)
        tick = f'<rect class="plan-tick" x="{at}" y="0" width="2" height="14" transform="translate(-1)"/>'
    kind = "quiet" if quiet else "spent"
    return Markup(
        '<svg class="bar14" aria-hidden="true" width="100%" height="14">'
        '<rect class="track" x="0" y="3" width="100%" height="8" rx="2"/>'
        f'<rect class="{kind}" x="0" y="3" width="{one}" height="8" rx="2"/>'
        f'<rect class="held" x="{one}" y="3" width="{two}" height="8"/>{tick}</svg>'
    )


def share_bar(share: float, colour: str, whiskers: tuple[float, float] | None = None) -> Markup:
    """A bar of this share of its place, which may have whiskers."""
    drawn = ""
    if whiskers is not None:
        low, high = (_percent(whisker) for whisker in whiskers)
        drawn = (
            f'<line class="whisker" x1="{low}" x2="{high}" y1="7" y2="7"/>'
            f'<line class="whisker" x1="{low}" x2="{low}" y1="2" y2="12"/>'
            f'<line class="whisker" x1="{high}" x2="{high}" y1="2" y2="12"/>'
        )
    return Markup(
        '<svg aria-hidden="true" width="100%" height="14"><rect class="track" x="0" y="4" width="100%" height="6" '
        f'rx="2"/><rect class="{escape(colour)}" x="0" y="4" width="{_percent(share)}" height="6" rx="2"/>{drawn}</svg>'
    )


def effect_bar(effect: MedianInterval, end: float, colour: str) -> Markup:
    """An effect and its interval, on an axis that goes as far to either side of 0."""

    def x(value: float) -> str:
        return _percent(0.5 + 0.5 * value / end)

    return Markup(
        f'<svg class="density {escape(colour)}" aria-hidden="true" width="100%" height="14">'
        '<line class="grid" x1="0" x2="100%" y1="7" y2="7"/><line class="best-line" x1="50%" x2="50%" y1="0" y2="14"/>'
        f'<line class="interval" x1="{x(effect.low)}" x2="{x(effect.high)}" y1="7" y2="7"/>'
        f'<circle class="median" cx="{x(effect.median)}" cy="7" r="3.5"/></svg>'
    )


def spark_line(values: Sequence[float]) -> Markup:
    """Bars without an axis; nothing keeps a floor."""
    most = max(values, default=0.0)
    step = 120 / max(len(values), 1)
    bars = []
    for place, value in enumerate(values):
        height = max(1.0, 24.0 * value / most) if most > 0 else 1.0
        kind = "spark" if value > 0 else "floor"
        bars.append(
            f'<rect class="{kind}" x="{place * step:.1f}" y="{24 - height:.1f}" width="{step - 1:.1f}" '
            f'height="{height:.1f}"/>'
        )
    return Markup(
        '<svg class="sparkline" aria-hidden="true" viewBox="0 0 120 24" preserveAspectRatio="none">'
        f"{''.join(bars)}</svg>"
    )


FULL_INTERVAL_PULLS = 10
"""Pulls from which on an arm's interval is drawn whole. Those of arms that are hardly known would leave no room for the
others: their medians are on the axis, and an arrow says that the interval goes on."""


def axis_end(beliefs: Sequence[tuple[Belief, int]]) -> float:
    """Where the common axis of ratios ends. (belief, pulls)"""
    ends_known = [belief.ratio.high for belief, pulls in beliefs if pulls >= FULL_INTERVAL_PULLS]
    medians = [belief.ratio.median for belief, _ in beliefs] or [1.0]
    return 1.15 * max([*ends_known, *medians]) if ends_known else 3.0 * max(medians)


def ticks(end: float, count_max: int = 4, begin: float = 0.0) -> list[float]:
    """Round values from 0, or from another beginning, to this.

    >>> ticks(9.0), ticks(131.0, begin=118.0)
    ([0.0, 2.5, 5.0, 7.5], [120.0, 125.0, 130.0])
    """
    length = end - begin
    if not length > 0:
        return [begin]
    step = 10.0 ** _exponent(length)
    for factor in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0):
        if length / (step * factor) <= count_max:
            step *= factor
            break
    return [step * place for place in range(math.ceil(begin / step - 1e-9), int(end / step + 1e-9) + 1)]


def shared_axis(quantity: str, beliefs: Sequence[tuple[Belief | Worth, int]]) -> tuple[float, float]:
    """Where the axis of all arms' rewards, prices or worths begins and ends. (belief, pulls)"""
    shown = [belief for belief, pulls in beliefs if pulls >= FULL_INTERVAL_PULLS] or [belief for belief, _ in beliefs]
    if not shown:
        return 0.0, 1.0
    medians = [getattr(belief, quantity).median for belief, _ in beliefs]
    low = min([*(getattr(arm_belief, quantity).low for arm_belief in shown), *medians])
    high = max([*(getattr(arm_belief, quantity).high for arm_belief in shown), *medians])
    room = 0.25 * (high - low) or 0.05 * high or 1.0
    return (low - room if quantity == "worth" else max(low - room, 0.0)), high + room


@lru_cache(maxsize=2048)  # the same in every time zone, until the arm gets more feedback
def density(
    quantity: str, now: Belief | Worth, before: Belief | Worth | None, ends: tuple[float, float], size: tuple[int, int],
    colour: str, best: float | None = None,
) -> Markup:  # fmt: skip
    """An arm's "reward", "price", "ratio" or "worth" on an axis between these ends: density, middle 95 % and median;
    dashed what it was before; dotted the best median."""
    width, height = size
    base, (begin, end) = height - 6, ends

    def x(value: float) -> float:
        return min(max((value - begin) / (end - begin), 0.0), 1.0) * width

    def outline(belief: Belief | Worth) -> str:
        where, high = belief.curve(quantity, ends)
        seen = (where >= begin) & (where <= end)
        if not seen.any():
            return ""
        across = ((where[seen] - begin) / (end - begin) * width).tolist()
        up = (base - (base - 6) * high[seen]).tolist()
        line = " L".join([f"{a:.1f} {b:.1f}" for a, b in zip(across, up, strict=True)])
        return f"M{across[0]:.1f} {base} L{line} L{across[-1]:.1f} {base}"

    dotted = (
        "" if best is None else f'<line class="best-line" x1="{x(best):.1f}" x2="{x(best):.1f}" y1="0" y2="{height}"/>'
    )
    dashed = "" if before is None else f'<path class="before" d="{outline(before)}"/>'
    middle = getattr(now, quantity)
    arrows = "".join(
        f'<path class="beyond" d="M{at - way * 5:.1f} {base - 4} L{at:.1f} {base} L{at - way * 5:.1f} {base + 4}"/>'
        for at, way, beyond in ((0.5, -1, middle.low < begin), (width - 0.5, 1, middle.high > end))
        if beyond
    )
    return Markup(
        f'<svg class="density {escape(colour)}" aria-hidden="true" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}"><line class="grid" x1="0" x2="{width}" y1="{base}" y2="{base}"/>{dotted}'
        f'<path class="area" d="{outline(now)}"/>{dashed}'
        f'<line class="interval" x1="{x(middle.low):.1f}" x2="{x(middle.high):.1f}" y1="{base}" y2="{base}"/>{arrows}'
        f'<circle class="median" cx="{x(middle.median):.1f}" cy="{base}" r="{3.5 if height >= 40 else 2.5}"/></svg>'
    )


def density_axis(end: float, width: int) -> Markup:
    """The numbers above a column of densities."""
    values = ticks(end)
    named, last = [], 0.0
    for value, name in [*zip(values, axis_labels(values), strict=True)][1:]:
        at, half = value / end * width, CHARACTER_WIDTH * len(name) / 2
        if last < at - half and at + half <= width:  # else it would be cut off, or run into the one before
            named.append(f'<text x="{at:.1f}" y="11" text-anchor="middle">{name}</text>')
            last = at + half + 6
    texts = "".join(named)
    return Markup(
        f'<svg class="axis" aria-hidden="true" viewBox="0 0 {width} 14" width="{width}" height="14">{texts}</svg>'
    )


def _exponent(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.2f}%"
