"""The price on money over time, of a campaign whose budget is for so many requests.

It is what one more unit of money would have brought at that time: the price of the program of money and requests
(`fluid`), with the mean reward and cost of each arm that could be chosen as they had been told by then, all segments
together, and the money and requests that were left by the horizon of that time. It is computed from rollups, so it
costs as much as there are points.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from budgetbandits.numerics.fluid import best_mix
from budgetbandits.service.ledger import to_units
from budgetbandits.service.rollups import History
from budgetbandits.service.stores.contract import T
from budgetbandits.service.stores.records import Counts
from budgetbandits.service.stores.sql.rollups import DAY, HOUR, MINUTE

MOST_POINTS = 170


def prices_of(
    history: History,
    budgets: Sequence[tuple[float, float]],
    horizons: Sequence[tuple[float, float | None]],
    choosable: Sequence[tuple[float, Container[int]]],
    now: float,
) -> list[tuple[float, float]]:
    """(time, price) at the end of each minute, hour or day in which anything happened; nothing without a horizon.

    ``budgets`` and ``horizons`` are (from when on, how much), the first first: a change of plan changes what comes. So
    are ``choosable``, the arms that were not retired.
    """
    row = history.row
    if row.settings.get("horizon") is None:
        return []
    span = next((each for each in (MINUTE, HOUR) if (now - row.created_at) / each <= MOST_POINTS), DAY)
    totals: dict[int, Counts] = {}
    made: list[tuple[float, float]] = []
    counts = history.by(span)
    for place, each in enumerate(counts):
        totals[each.arm] = totals.get(each.arm, Counts(0, each.arm)).plus(each)
        if place + 1 < len(counts) and counts[place + 1].begins == each.begins:
            continue
        at = min(float(each.begins + span), now)
        budget, horizon = _latest(budgets, at), _latest(horizons, at)
        price = None if horizon is None else _price(totals.values(), budget, horizon, _latest(choosable, at))
        if price is not None:
            made.append((at, price))
    return made[-MOST_POINTS:]


def _latest(values: Sequence[tuple[float, T]], at: float) -> T:
    return next((value for begins, value in reversed(values) if begins <= at), values[0][1])


def _price(totals: Collection[Counts], budget: float, horizon: float, choosable: Container[int]) -> float | None:
    """None until an arm that can be chosen has brought and cost something. Money and requests are gone of all arms."""
    known = [each for each in totals if each.arm in choosable and each.rewards_reported and each.prices[1] > 0]
    if not known:
        return None
    gone = sum(each.requests_used for each in totals)
    left = budget - to_units(sum(each.spent for each in totals))
    reward = [each.reward / each.rewards_reported for each in known]
    cost = [to_units(each.prices[1]) / each.prices[0] for each in known]
    return best_mix([reward], [cost], [1.0], max(left, 0.0) / max(horizon - gone, 1.0)).price
