"""What the pictures of a campaign's page run over: from when to when, in which slots, and what was planned when."""

from __future__ import annotations

from collections.abc import Sequence

from budgetbandits.formatting.datetimes import HOUR
from budgetbandits.service.arm_changes import COMING_AND_GOING
from budgetbandits.service.dashboard.shares import Slot
from budgetbandits.service.dashboard.status import Standing
from budgetbandits.service.ledger import to_units
from budgetbandits.service.rollups import MINUTES_KEPT_SECONDS, History
from budgetbandits.service.settings import versions
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import ArmRow, Campaign, Event, Watermark
from budgetbandits.service.stores.sql.dashboard import Rank

SLOTS = (60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400)
FINE_SLOTS = (1, 5, 15)
MOST_SLOTS = 170
CHANGES = ("topped up", "terms changed", *COMING_AND_GOING)
"""The events by which what was planned is known of every time."""
MOST_CHANGES = 2000
"""Of these; what held before them is taken to have held from the beginning."""


def changes(tx: Transaction, row: Campaign) -> list[Event]:
    """By which budget, terms and arms became what they are, the latest first."""
    return tx.pages().operator_events(row.id, MOST_CHANGES, kinds=CHANGES)


def ends(state: Standing, mark: Watermark, begins: float, now: float) -> tuple[float, float]:
    """The last decision, and the last that happened to a campaign which has come to its end; for others it is now."""
    if (
        state.rank in (Rank.EXHAUSTED, Rank.SPENT, Rank.CLOSED)
        and mark.last_decision_at is not None
        and mark.last_decision_at > begins
    ):
        return min(mark.last_decision_at, now), min(max(mark.last_decision_at, mark.last_feedback_at or 0.0), now)
    return now, now


def slots(history: History, begins: float, ends: float, now: float) -> tuple[int, list[Slot]]:
    """How long the slots of a picture are, and what happened in each that anything happened in."""
    slot, counted = _counted(history, begins, _slotting(begins, ends, now), ends)
    made: dict[int, Slot] = {}
    for at, arm, decided, spent in counted:
        of = made.setdefault(at, Slot(max(float(at), begins), {}, {}))
        of.decided[arm] = of.decided.get(arm, 0) + decided
        of.spent[arm] = of.spent.get(arm, 0.0) + to_units(spent)
    return slot, [made[at] for at in sorted(made)]


def _slotting(begins: float, ends: float, now: float) -> int:
    slot = next((each for each in SLOTS if (ends - begins) / each <= MOST_SLOTS), SLOTS[-1])
    if slot < HOUR and now - begins > MINUTES_KEPT_SECONDS - HOUR:
        slot = int(HOUR)
    return slot


def _counted(history: History, begins: float, slot: int, ends: float) -> tuple[int, list[tuple[int, int, int, int]]]:
    """The slots of the picture, shorter ones if the campaign is so young that minutes would be too coarse."""
    fine = next((each for each in FINE_SLOTS if (ends - begins) / each <= MOST_SLOTS), None)
    if fine is not None and begins == history.row.created_at:
        counted = history.fine_slots(fine)
        if counted is not None:
            return fine, counted
    return slot, history.slots(slot, begins)


def budgets(row: Campaign, changes: Sequence[Event]) -> list[tuple[float, float]]:
    """The budget from when on, from the latest of these changes backwards."""
    budget, made = row.account.budget, []
    for event in changes:
        if event.kind == "topped up":
            made.append((event.at, to_units(budget)))
            budget -= event.amount or 0
    return [(row.created_at, to_units(budget)), *reversed(made)]


def choosable(row: Campaign, arms: Sequence[ArmRow], changes: Sequence[Event]) -> list[tuple[float, frozenset[int]]]:
    """Which arms were there and not retired from when on, from the latest of these changes backwards."""
    there, made = {arm.number for arm in arms if arm.active}, []
    for event in changes:
        if event.kind in COMING_AND_GOING and event.arm is not None:
            made.append((event.at, frozenset(there)))
            (there.add if event.kind == "arm retired" else there.discard)(event.arm)
    return [(row.created_at, frozenset(there)), *reversed(made)]


def plans(row: Campaign, changes: Sequence[Event], term: str) -> list[tuple[float, float | None]]:
    """What a term was from when on, from the latest of these changes backwards."""
    terms = [each.get(term) for each in reversed(versions(row))]
    changed = [event.at for event in changes if event.kind == "terms changed"]
    return [(row.created_at, terms[min(len(changed), len(terms) - 1)]), *reversed([*zip(changed, terms, strict=False)])]
