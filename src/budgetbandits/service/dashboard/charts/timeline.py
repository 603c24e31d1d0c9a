"""The data behind a campaign's charts: the time span, its slots, and budgets, plans and prices over time.

The price on money at a moment is what one more unit of money would have earned then: the price of the program of money
and requests (`fluid`), with the mean reward and cost of each available arm as reported by then, all segments together,
and the money and requests that were left. It is computed from rollups, so its cost grows with the number of points.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from pydantic_core import from_json

from budgetbandits.numerics.fluid import Mix, best_mix
from budgetbandits.service.campaign_checks import ARM_EVENTS
from budgetbandits.service.dashboard.charts.shares import Slot
from budgetbandits.service.ledger import to_units
from budgetbandits.service.rollups import MINUTES_KEPT_SECONDS, History
from budgetbandits.service.standing import Standing
from budgetbandits.service.stores.contract import T, Transaction
from budgetbandits.service.stores.records import ArmRow, Campaign, Counts, Event, Rank, Watermark
from budgetbandits.service.stores.sql.rollups import DAY, HOUR, MINUTE

SLOT_SECONDS = (60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400)
"""Lengths of slots."""

FINE_SLOT_SECONDS = (1, 5, 15)
"""Lengths of slots of young campaigns."""

SLOTS_MAX = 170
"""Most slots of a picture."""

CHANGE_EVENTS = ("topped up", "renewed", "terms changed", "spent elsewhere", *ARM_EVENTS)
"""The events by which what was planned, and what was spent without a decision, is known of every time."""
CHANGES_MAX = 2000
"""Most changes that are read; what held before them is taken to have held from the beginning."""


def changes(tx: Transaction, row: Campaign) -> list[Event]:
    """The changes of budget, terms and arms, the latest first."""
    return tx.pages().operator_events(row.id, CHANGES_MAX, kinds=CHANGE_EVENTS)


def spent_since_copies(changes: Sequence[Event], spent: int) -> list[tuple[float, int]]:
    """The amounts that were booked after the store was restored from a copy, in micros, with their times. They sum
    to at most ``spent``: where an operator gave more, the rest is an overrun."""
    result = []
    for event in reversed(changes):
        if event.kind == "spent elsewhere":
            result.append((event.at, max(min(event.amount or 0, spent), 0)))
            spent -= result[-1][1]
    return result


def ends(
    state: Standing, mark: Watermark, begins: float, now: float, booked: Sequence[tuple[float, int]] = ()
) -> tuple[float, float]:
    """The last decision, and the last that happened to a campaign which has come to its end, or was ``booked`` there;
    for others it is now."""
    if (
        state.rank in (Rank.EXHAUSTED, Rank.SPENT, Rank.CLOSED)
        and mark.last_decision_at is not None
        and mark.last_decision_at > begins
    ):
        last = max([mark.last_decision_at, mark.last_feedback_at or 0.0, *(at for at, _ in booked)])
        return min(mark.last_decision_at, now), min(last, now)
    return now, now


def slots(history: History, begins: float, ends: float, now: float) -> tuple[int, list[Slot]]:
    """The length of a slot in seconds, and the slots in which anything happened.

    Slots are a few seconds long while the campaign is too young for minutes, and an hour or more in a time whose
    minutes are no longer kept.
    """

    def shortest(lengths: Sequence[int]) -> int | None:
        return next((length for length in lengths if (ends - begins) / length <= SLOTS_MAX), None)

    slot, fine, counted = shortest(SLOT_SECONDS) or SLOT_SECONDS[-1], shortest(FINE_SLOT_SECONDS), None
    if slot < HOUR and now - begins > MINUTES_KEPT_SECONDS - HOUR:
        slot = HOUR
    if fine is not None and begins == history.row.created_at:
        counted = history.fine_slots(fine)
    if fine is not None and counted is not None:
        slot = fine
    else:
        counted = history.slots(slot, begins)
    result: dict[int, Slot] = {}
    for at, arm, decided, spent in counted:
        group = result.setdefault(at, Slot(max(float(at), begins), {}, {}))
        group.decided[arm] = group.decided.get(arm, 0) + decided
        group.spent[arm] = group.spent.get(arm, 0.0) + to_units(spent)
    return slot, [result[at] for at in sorted(result)]


def budgets(row: Campaign, changes: Sequence[Event]) -> list[tuple[float, float]]:
    """The budget from when on, from the latest of these changes backwards."""
    budget, result = row.account.budget, []
    for event in changes:
        before = from_json(event.request).get("budget") if event.kind == "terms changed" and event.request else None
        if event.kind in ("topped up", "renewed") or before is not None:
            result.append((event.at, to_units(budget)))
            budget = budget - (event.amount or 0) if before is None else before[0]
    return [(row.created_at, to_units(budget)), *reversed(result)]


def for_arms(budgets: Sequence[tuple[float, float]], booked: Sequence[tuple[float, int]]) -> list[tuple[float, float]]:
    """The budgets without what was booked after a restore, of which arms have nothing."""
    moments = sorted({at for at, _ in (*budgets, *booked)})
    return [
        (at, latest(budgets, at) - to_units(sum(amount for when, amount in booked if when <= at))) for at in moments
    ]


def choosable(row: Campaign, arms: Sequence[ArmRow], changes: Sequence[Event]) -> list[tuple[float, frozenset[int]]]:
    """Which arms were there and not retired from when on, from the latest of these changes backwards."""
    active, result = {arm.number for arm in arms if arm.active}, []
    for event in changes:
        if event.kind in ARM_EVENTS and event.arm is not None:
            result.append((event.at, frozenset(active)))
            (active.add if event.kind == "arm retired" else active.discard)(event.arm)
    return [(row.created_at, frozenset(active)), *reversed(result)]


def plans(row: Campaign, changes: Sequence[Event], term: str) -> list[tuple[float, float | None]]:
    """The values of a term with the times from which they hold, from the latest of these changes backwards."""
    terms = [getattr(version.terms, term) for version in reversed(row.settings.versions)]
    changed = [event.at for event in changes if event.kind == "terms changed"]
    return [(row.created_at, terms[min(len(changed), len(terms) - 1)]), *reversed([*zip(changed, terms, strict=False)])]


POINTS_MAX = 170
"""Most points of a line."""


def by_requests(history: History, now: float) -> list[tuple[int, float]]:
    """(requests used, money spent) by the end of each minute, hour or day with events, from nothing on."""
    points, used, spent = [(0, 0.0)], 0, 0
    counts = history.by(_span(history, now))
    for place, count in enumerate(counts):
        used, spent = used + count.requests_used, spent + count.spent
        if place + 1 == len(counts) or counts[place + 1].begins != count.begins:
            points.append((used, to_units(spent)))
    return [points[0], *points[1:][-POINTS_MAX:]]


def _span(history: History, now: float) -> int:
    """The shortest of which a picture has room for all since the campaign's beginning."""
    return next((span for span in (MINUTE, HOUR) if (now - history.row.created_at) / span <= POINTS_MAX), DAY)


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
    if row.settings.terms.horizon is None:
        return []
    span = _span(history, now)
    totals: dict[int, Counts] = {}
    result: list[tuple[float, float]] = []
    counts = history.by(span)
    for place, count in enumerate(counts):
        totals[count.arm] = totals.get(count.arm, Counts(0, count.arm)).plus(count)
        if place + 1 < len(counts) and counts[place + 1].begins == count.begins:
            continue
        at = min(float(count.begins + span), now)
        budget, horizon = latest(budgets, at), latest(horizons, at)
        price = None if horizon is None else _price(totals.values(), budget, horizon, latest(choosable, at))
        if price is not None:
            result.append((at, price))
    return result[-POINTS_MAX:]


def latest(values: Sequence[tuple[float, T]], timestamp: float) -> T:
    """The value at a time, of values from when on each; before all of them the first."""
    return next((value for begins, value in reversed(values) if begins <= timestamp), values[0][1])


def planned_shares(
    totals: Collection[Counts], budget: float, horizon: float, choosable: Container[int]
) -> dict[int, float]:
    """How the requests to come are shared among arms by the program of money and requests, at the means of all segments
    and what is left; empty until an arm that can be chosen has a reward and a cost."""
    result = _mix(totals, budget, horizon, choosable)
    if result is None:
        return {}
    mix, arms = result
    shares = dict.fromkeys(arms, 0.0)
    shares[arms[mix.arms[0]]] += 1.0 - mix.share
    shares[arms[mix.upgrade]] += mix.share
    return shares


def _price(totals: Collection[Counts], budget: float, horizon: float, choosable: Container[int]) -> float | None:
    result = _mix(totals, budget, horizon, choosable)
    return None if result is None else result[0].price


def _mix(
    totals: Collection[Counts], budget: float, horizon: float, choosable: Container[int]
) -> tuple[Mix, list[int]] | None:
    """Who answers, and the numbers of the arms; None until an arm that can be chosen has a reward and a cost. Money and
    requests of all arms count as used."""
    learned = [total for total in totals if total.arm in choosable and total.rewards_reported and total.prices[1] > 0]
    if not learned:
        return None
    used = sum(total.requests_used for total in totals)
    left = budget - to_units(sum(total.spent for total in totals))
    reward = [total.reward / total.rewards_reported for total in learned]
    cost = [to_units(total.prices[1]) / total.prices[0] for total in learned]
    mix = best_mix([reward], [cost], [1.0], max(left, 0.0) / max(horizon - used, 1.0))
    return mix, [total.arm for total in learned]
