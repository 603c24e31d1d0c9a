"""Values under the pointer: for each point of a picture its place across and a line of text, for a script to show.

A figure holds the picture twice, for a wide and for a narrow page, and its values once. Without scripts they are not
seen, and the picture's own words say what matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from markupsafe import Markup

from budgetbandits.formatting.datetimes import Times
from budgetbandits.formatting.money import budget_decimals, money
from budgetbandits.formatting.numbers import percentage, significant
from budgetbandits.service.dashboard.campaign import CampaignView
from budgetbandits.service.dashboard.charts.shares import OTHER_ARMS, ShareKind
from budgetbandits.service.dashboard.charts.time_charts import MoneyAxes, cumulated_spend, plan_lines, requests_shown
from budgetbandits.service.ledger import to_units

Value = tuple[float, str]
"""How far from the left edge of the picture to the right one, from 0 to 1, and what is there."""
VALUES_MAX = 120
"""Values of one figure: more would be less than five pixels apart."""
ARMS_NAMED = 6
"""Most arms that the text at the pointer names."""


def figure(id: str, words: str, draw: Callable[[int, int], Markup], sizes: Sequence[tuple[int, int]],
           values: Sequence[Value], inline: bool) -> Markup:  # fmt: skip
    """A picture at two sizes, with its values; without them in a file that has no scripts."""
    wide, narrow = (draw(*size) for size in sizes)
    pictures = Markup('<div class="wide">{}</div><div class="narrow">{}</div>').format(wide, narrow)
    if inline or not values:
        return Markup('<figure class="plot">{}</figure>').format(pictures)
    step = -(-len(values) // VALUES_MAX)
    kept = [*reversed(values[::-1][::step])]  # with the latest
    listed = "\n".join(f"{min(max(place, 0.0), 1.0):.4f} {text}" for place, text in kept)
    return Markup(
        '<figure class="plot" id="plot-{}" tabindex="0" role="group" aria-label="{}: values by the arrow keys" '
        'data-values="{}">{}<figcaption class="readout" role="status"></figcaption></figure>'
    ).format(id, words, listed, pictures)


def money_values(view: CampaignView, times: Times) -> list[Value]:
    """The actual and the planned spending by the end of each slot."""
    axes, digits = MoneyAxes.of(view), budget_decimals(to_units(view.row.account.budget))
    length, lines = max(axes.end - view.begins, 1.0), plan_lines(view, axes.end)
    result: dict[float, str] = {}
    for at, spent in cumulated_spend(view)[1:]:
        plan = next((value for line in lines if (value := _between(line, at)) is not None), None)
        planned = "" if plan is None else f", plan {money(plan, digits)}"
        result[(at - view.begins) / length] = f"{moment(view, times, at)}: {money(spent, digits)} spent{planned}"
    return [*result.items()]


def _between(line: Sequence[tuple[float, float]], at: float) -> float | None:
    """The value of a line at a time, the later one at a step; None where there is no line."""
    result = None
    for (begin, low), (end, high) in pairwise(line):
        if begin <= at <= end:
            result = high if end == begin else low + (high - low) * (at - begin) / (end - begin)
    return result


def moment(view: CampaignView, times: Times, at: float) -> str:
    """A time, with seconds where the picture is as fine."""
    return times.clock(at) if view.ends - view.begins < 3600.0 else times.moment(at)


def share_values(view: CampaignView, times: Times, kind: ShareKind) -> list[Value]:
    """The largest shares in each slot."""
    length, result = max(max(view.decided_until, view.begins + 1) - view.begins, 1.0), list[Value]()
    for stretch in view.shares.stretches[kind]:
        for place in range(1, len(stretch.timestamps) - 1):
            at = stretch.timestamps[place]
            parts = sorted(((shares[place], number) for number, shares in stretch.layers), reverse=True)[:ARMS_NAMED]
            named = [
                f"{'others' if number == OTHER_ARMS else view.names[number]} {percentage(part)}"
                for part, number in parts if part > 0.0
            ]  # fmt: skip
            result.append(((at - view.begins) / length, f"{moment(view, times, at)}: {', '.join(named)}"))
    return result


def price_values(view: CampaignView, times: Times) -> list[Value]:
    """The price on money at its times, as text."""
    begin, length = view.prices[0][0], max(view.prices[-1][0] - view.prices[0][0], 1.0)
    return [((at - begin) / length, f"{moment(view, times, at)}: {significant(price)}") for at, price in view.prices]


def request_values(view: CampaignView) -> list[Value]:
    """The actual and the planned spending by each number of requests."""
    points, horizon = view.points_by_requests, view.row.settings.terms.horizon
    assert horizon is not None
    budget, end = to_units(view.row.account.budget), requests_shown(points, horizon)
    digits = budget_decimals(budget)
    return [
        (used / end, f"{used:,} requests: {money(spent, digits)} spent, "
                     f"plan {money(budget * min(used / horizon, 1.0), digits)}")
        for used, spent in points
    ]  # fmt: skip
