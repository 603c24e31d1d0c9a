"""The campaign page and that of its events: all that they show, as plain data, and the same as JSON.

`campaign_view` reads the first in one transaction; the templates `_campaign*.html` show it from top to bottom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from budgetbandits.errors import UnknownArm
from budgetbandits.formatting.datetimes import DAY, HOUR
from budgetbandits.service.campaigns import answered_of, named_segments, summary
from budgetbandits.service.dashboard.actions.terms import differences
from budgetbandits.service.dashboard.arms import (
    ArmView,
    OtherArm,
    by_worth,
    compared_arms,
    other_arms,
    saved_by,
    sorted_arms,
)
from budgetbandits.service.dashboard.charts import timeline
from budgetbandits.service.dashboard.charts.cell_charts import colour_class
from budgetbandits.service.dashboard.charts.shares import Shares, Slot, colours
from budgetbandits.service.dashboard.charts.timeline import prices_of
from budgetbandits.service.dashboard.features import FeatureEffects, effects_of
from budgetbandits.service.dashboard.query import RANGE_SECONDS, PageQuery
from budgetbandits.service.dashboard.requests import Requests, requests_of
from budgetbandits.service.ledger import known_units, to_units, today_left
from budgetbandits.service.names import normal
from budgetbandits.service.projection import RunsOut, projections
from budgetbandits.service.request import ResolvedRequest
from budgetbandits.service.rollups import History
from budgetbandits.service.standing import Pace, Standing, pace, standing, with_end
from budgetbandits.service.stores.contract import Transaction
from budgetbandits.service.stores.records import ArmRow, Campaign, CampaignSummary, DecisionRow, Event
from budgetbandits.service.stores.sql.dashboard import DecisionFilter, DecisionPage, OpenHolds, Pages

DECISIONS_SHOWN, EVENTS_SHOWN, EVENTS_PER_PAGE = 12, 8, 50
ARMS_LISTED_MAX = 200
"""Arms that are listed without being compared."""
REFUSAL_NAMES = {
    "period_spent": "Period spent",
    "paced": "Paced", "daily_cap": "Daily cap", "blocked_by_holds": "Blocked by holds", "exhausted": "Exhausted",
    "policy_stopped": "Policy stopped", "paused": "Paused", "frozen": "Frozen", "closed": "Closed",
}  # fmt: skip
"""Why a request is refused (`HoldRefused.reason`), in words."""
HOLD_AGES = (60.0, 300.0, 900.0)
"""Ages of open holds that are counted, in seconds."""


@dataclass(frozen=True)
class Overrun:
    """Amounts are in micros."""

    reported_at: float
    decision: DecisionRow
    arm: ArmRow

    @classmethod
    def of(cls, tx: Transaction, event: Event, arms: Sequence[ArmRow]) -> Overrun | None:
        """The overrun of an event, if its decision is not archived."""
        decision = None if event.decision is None else tx.decision(event.decision)
        if decision is None:
            return None
        return cls(event.at, decision, next(arm for arm in arms if arm.number == decision.arm))

    @property
    def cost(self) -> int:
        """The cost of the decision in micros."""
        return self.decision.cost or 0

    @property
    def above_hold(self) -> bool:
        """If not, the hold had been released and its money spent elsewhere before the cost was reported."""
        return self.cost > self.decision.hold.amount

    @property
    def above_cap(self) -> bool:
        """A request may hold less than the arm's cap."""
        return self.cost > self.arm.cost_cap


@dataclass
class CampaignView:
    """A campaign at one moment; money in the user's unit, times in seconds since 1970."""

    now: float
    query: PageQuery
    row: Campaign
    glance: CampaignSummary
    standing: Standing
    pace: Pace | None
    runs_out: RunsOut | None
    spent: float
    """Also what leases have spent that is not merged yet."""
    answered: int
    """Requests with both cost and reward."""
    requests: Requests | None
    """None if the campaign has neither a horizon nor segments."""
    effects: FeatureEffects | None
    """None if requests have no features, and before the first feedback."""
    begins: float
    ends: float
    """Time at which pictures end: now, or the last decision or feedback of a campaign that has ended."""
    decided_until: float
    """Time of the last decision, or now."""
    slot: int
    slots: list[Slot]
    before: float
    """Spent before the first slot."""
    since_copies: list[tuple[float, float]]
    """Spending that was booked after the store was restored from a copy, from the first slot on, with its time."""
    spent_by_arms: float
    """All that was spent, less what was booked after a restore, of which no arm is known."""
    budgets: list[tuple[float, float]]
    """Budgets with the times from which they hold, the first at the beginning."""
    plans: list[tuple[float, float | None]]
    """Planned lengths in seconds with the times from which they hold; None where there was no plan."""
    prices: list[tuple[float, float]]
    """The price on money from time to time, if the budget is for a number of requests."""
    points_by_requests: list[tuple[int, float]]
    """(requests used, money spent) from the beginning on; empty without a horizon, and with one of each period."""
    names: list[str]
    """Names of all arms, by number."""
    arms: list[ArmView]
    """Those that are compared, and retired ones."""
    more_arms: list[OtherArm]
    """Arms that are listed without being compared."""
    arms_left_out: int
    """Number of further arms, which are not listed."""
    not_compared: int
    saved: dict[str, Any] | None
    refusals: dict[str, int]
    """Refusals in seven days, by reason."""
    without_money: tuple[float, int] | None
    """Requests refused for lack of money since the last decision of an exhausted campaign: the beginning of the hour
    of that decision, seven days ago at most, and their number."""
    holds: OpenHolds
    delays: list[int]
    latest: DecisionPage
    events: list[Event]
    """Latest actions of operators, and the event of a freeze."""
    more_events: bool
    """Whether there are more of these events."""
    changes: dict[int, str]
    """Changes of terms by the number of their event."""
    overran: Overrun | None
    """The latest overrun, if it is what the campaign needs attention for."""

    @cached_property
    def shares(self) -> Shares:
        """The shares of arms over time."""
        return Shares.of(self.slots, self.slot, self.begins, self.decided_until, self._colours)

    @cached_property
    def _colours(self) -> dict[int, int]:
        return colours(self.slots, len(self.names))

    def colour(self, arm: int) -> str:
        """The class of an arm's colour on this page."""
        return colour_class(self._colours.get(arm))

    @property
    def sorted_arms(self) -> list[ArmView]:
        """The arms in the order of the page's query."""
        return sorted_arms(self.arms, self.query.sort)

    @cached_property
    def _requests(self) -> list[ResolvedRequest | None]:
        return [ResolvedRequest.from_json(decision.request) for decision in self.latest.decisions]

    @cached_property
    def segments(self) -> list[str | None]:
        """The segments of the latest decisions; empty if none of them names one."""
        named = [None if request is None else request.segment for request in self._requests]
        return named if any(named) else []

    @cached_property
    def metadata(self) -> list[list[str]]:
        """The metadata of the latest decisions as NAME=VALUE; empty if none of them has any."""
        notes = [(request and request.metadata) or {} for request in self._requests]
        return [[f"{name}={value}" for name, value in note.items()] for note in notes] if any(notes) else []

    @property
    def refused(self) -> list[tuple[str, int]]:
        """The refusals in words, with their numbers in seven days."""
        return [(word, self.refusals.get(reason, 0)) for reason, word in REFUSAL_NAMES.items()]

    @property
    def over(self) -> bool:
        """Whether pictures end before now."""
        return self.decided_until < self.now

    @property
    def left_today(self) -> int | None:
        """The money that is left for new decisions today, in micros; None without a daily cap."""
        row, limits = self.row, self.row.settings.limits(self.row.created_at)
        left = today_left(row.account, self.now, limits)
        return None if left is None else min(max(left, 0), self.glance.left)

    @property
    def by_requests(self) -> bool:
        """Whether the budget is for a number of requests."""
        return self.row.settings.terms.horizon is not None


def campaign_view(tx: Transaction, row: Campaign, query: PageQuery) -> CampaignView:
    """Read it, in one transaction. It costs as much as the page is long, not as the campaign."""
    now, pages, history = tx.now(), tx.pages(), History.of(tx, row)
    mark = history.mark
    [glance] = pages.summaries([row.id], now, mark)
    overran = None if mark.last_overrun_event is None else pages.event(mark.last_overrun_event)
    totals, rows = history.totals(), tx.arms(row.id)
    spent = glance.spent
    state = standing(glance, now)
    out = _runs_out(pages, glance, now) if state.runs else None
    state = with_end(state, out, now)
    begins = max(row.created_at, now - RANGE_SECONDS[query.range])
    operators, changes = pages.operator_events(row.id, EVENTS_SHOWN + 1), timeline.changes(tx, row)
    spent_of_arms = sum(total.spent for total in totals.values())
    booked = timeline.spent_since_copies(changes, spent - spent_of_arms)
    since_copies = [(at, to_units(amount)) for at, amount in booked if at >= begins]
    decided_until, ends = timeline.ends(state, history.mark, begins, now, booked)
    slot, slots = timeline.slots(history, begins, ends, now)
    in_slots = sum(sum(slot.spent.values()) for slot in slots)
    arms, not_compared = compared_arms(rows, totals, history, row, now)
    more_arms = other_arms(rows, {arm.number for arm in arms}, totals)
    budgets = timeline.budgets(row, changes)
    for_arms = timeline.for_arms(budgets, booked)
    prices = prices_of(
        history, for_arms, timeline.plans(row, changes, "horizon"), timeline.choosable(row, rows, changes), now
    )  # fmt: skip
    points, terms = list[tuple[int, float]](), row.settings.terms
    if terms.horizon is not None:
        by_worth(arms, prices[-1][1] if prices else None)
        if terms.period is None:
            points = timeline.by_requests(history, now)
            active = {row.number for row in rows if row.active}
            shares = timeline.planned_shares(totals.values(), for_arms[-1][1], terms.horizon, active)
            for arm in arms:
                arm.planned = shares.get(arm.number) if arm.active else None
    return CampaignView(
        now=now, query=query, row=row, glance=glance, standing=state, pace=pace(glance, now),
        runs_out=out,
        spent=to_units(spent), answered=answered_of(rows), requests=requests_of(row, rows, totals.values()),
        effects=effects_of(row, rows),
        begins=begins, ends=ends, decided_until=decided_until, slot=slot, slots=slots,
        before=to_units(spent) - in_slots - sum(amount for _, amount in since_copies), since_copies=since_copies,
        spent_by_arms=to_units(spent_of_arms), budgets=budgets,
        plans=timeline.plans(row, changes, "pace_seconds"),
        prices=prices, points_by_requests=points,
        names=[arm.name for arm in rows], arms=arms, more_arms=more_arms[:ARMS_LISTED_MAX],
        arms_left_out=len(more_arms[ARMS_LISTED_MAX:]), not_compared=not_compared,
        saved=saved_by(arms, totals, row, spent),
        refusals=tx.rollups().refusals(row.id, int(now - 7 * DAY)),
        without_money=_without_money(tx, history, now) if state.word == "Exhausted" else None,
        holds=pages.holds(row.id, now, HOLD_AGES),
        delays=_delays(history, now),
        latest=pages.decisions(row.id, DECISIONS_SHOWN, _filter(query, rows), query.before),
        events=operators[:EVENTS_SHOWN], more_events=len(operators) > EVENTS_SHOWN,
        changes=changes_of_terms(row, rows, [event.seq for event in changes if event.kind == "terms changed"]),
        overran=Overrun.of(tx, overran, rows) if overran and state.word in ("Frozen", "Overran") else None,
    )  # fmt: skip


def _delays(history: History, now: float) -> list[int]:
    """How many costs of the last day were reported within 10, 60 and 300 seconds each, and later."""
    day = [hour for hour in history.by(3600, now - DAY) if hour.begins >= now - DAY]
    within = [sum(getattr(hour, name) for hour in day) for name in ("delay_10", "delay_60", "delay_300")]
    return [*within, sum(hour.costs_reported for hour in day) - sum(within)]


def _filter(query: PageQuery, rows: Sequence[ArmRow]) -> DecisionFilter:
    """Which decisions are wanted, by the number of the arm."""
    arm = None
    if query.arm:
        arm = next((row.number for row in rows if row.name == normal(query.arm)), None)
        if arm is None:
            raise UnknownArm(f"no arm {query.arm!r:.60} in this campaign; use the links of the page")
    name, equals, value = query.metadata.partition("=")
    return DecisionFilter(query.show, arm, query.segment or None, (name, value) if equals else None)


def _runs_out(pages: Pages, glance: CampaignSummary, now: float) -> RunsOut | None:
    spent_by_hour = pages.spent_by(int(HOUR), [glance.id], now - now % HOUR - DAY)
    return projections(pages, [glance], spent_by_hour, now)[glance.id]


def _without_money(tx: Transaction, history: History, now: float) -> tuple[float, int]:
    """Refusals are counted by the hour, so the hour of the last decision counts in full."""
    last = history.mark.last_decision_at or history.row.created_at
    since = max(last - last % HOUR, now - now % HOUR - 7 * DAY)
    return since, tx.rollups().refusals(history.row.id, int(since)).get("exhausted", 0)


def campaign_json(view: CampaignView) -> dict[str, Any]:
    """The view of a campaign as JSON."""
    names = view.names
    return vars(summary(view.row)) | {
        "requests_answered": view.answered, "requests_used": view.row.account.requests_used,
        "segments": named_segments(view.row),
        "requests": None if view.requests is None else view.requests.as_json(names),
        "feature_effects": None if view.effects is None else view.effects.as_json(names),
        "at": view.now, "standing": {"word": view.standing.word, "cause": view.standing.cause},
        "spent_with_leases": view.spent,
        "pace": None if view.pace is None else {
            "plan": to_units(view.pace.plan), "behind_share": view.pace.share,
        },
        "runs_out": None if view.runs_out is None else asdict(view.runs_out),
        "slot_seconds": view.slot,
        "slots": [
            {"begins": s.begins, "decided": {names[a]: n for a, n in s.decided.items()},
             "spent": {names[a]: n for a, n in s.spent.items()}} for s in view.slots
        ],
        "arms": [_arm(arm) for arm in view.arms],
        "spent_by_requests": view.points_by_requests,
        "prices_on_money": [{"at": at, "price": price} for at, price in view.prices],
        "saved": view.saved, "refusals_7_days": view.refusals,
        "open_holds": {"younger_than": dict(zip(map(str, HOLD_AGES), view.holds.counts, strict=False)),
                       "count": view.holds.counts[-1], "or_more": view.holds.more,
                       "first_expires_at": view.holds.expires_at},
        "delays_24_hours": dict(zip(("10", "60", "300", "more"), view.delays, strict=True)),
        "decisions": [decision_json(decision, names) for decision in view.latest.decisions],
        "older_decisions": view.latest.older,
        "events": [event_json(event, names) for event in view.events],
    }  # fmt: skip


def _arm(arm: ArmView) -> dict[str, Any]:
    optional = {
        "price": arm.belief.price if arm.priced else None, "ratio": arm.belief.ratio if arm.reported else None,
        "mean_reward": arm.belief.reward if arm.rewarded else None,
    }  # fmt: skip
    return {
        "name": arm.name, "cost_cap": arm.cap, "active": arm.active, "decided": arm.decided, "spent": arm.spent,
        "cost": arm.cost, "reward": arm.reward, "pulls": arm.pulls, "chance_of_best": arm.chance,
        "failures": arm.failures, "cooldown_until": arm.cooldown_until,
        "price_learned_as": arm.learned_as,
        **{name: None if value is None else asdict(value) for name, value in optional.items()},
        "requests_used": arm.requests_used, "planned_share": arm.planned,
        "worth": None if arm.worth is None else asdict(arm.worth.worth),
    }  # fmt: skip


def decision_json(decision: DecisionRow, names: Sequence[str]) -> dict[str, Any]:
    """A decision in a list, for programs."""
    request = ResolvedRequest.from_json(decision.request)
    return {
        "id": decision.id, "key": decision.key, "at": decision.created_at, "arm": names[decision.arm],
        "segment": None if request is None else request.segment,
        "metadata": None if request is None else request.metadata,
        "state": decision.hold.state, "failed": decision.failed, "hold": to_units(decision.hold.amount),
        "cost": known_units(decision.cost), "reward": decision.reward,
        "overrun": to_units(decision.hold.overrun),
    }  # fmt: skip


# --- the events page --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventsView:
    """A page of the actions of operators on a campaign and of its freezes, the latest first."""

    row: Campaign
    names: list[str]
    """Names of all arms, by number."""
    events: list[Event]
    changes: dict[int, str]
    """Changes of terms by the number of their event."""
    older: int | None
    """Where the next page begins; None if this is the last."""

    def as_json(self) -> dict[str, Any]:
        """The view as JSON."""
        events = [event_json(event, self.names) | {"changed": self.changes.get(event.seq)} for event in self.events]
        return {"campaign": self.row.name, "events": events, "older": self.older}


def events_view(tx: Transaction, row: Campaign, before: int | None) -> EventsView:
    """A page of the operators' actions before an event."""
    pages = tx.pages()
    events = pages.operator_events(row.id, EVENTS_PER_PAGE + 1, before)
    older = events[EVENTS_PER_PAGE - 1].seq if len(events) > EVENTS_PER_PAGE else None
    arms = tx.arms(row.id)
    names = [arm.name for arm in arms]
    changes = changes_of_terms(row, arms, pages.event_numbers(row.id, "terms changed"))
    return EventsView(row, names, events[:EVENTS_PER_PAGE], changes, older)


def changes_of_terms(row: Campaign, arms: Sequence[ArmRow], numbers: Sequence[int]) -> dict[int, str]:
    """The changes at the events of these numbers, which are the latest changes, the latest first."""
    names = [arm.name for arm in arms]
    terms = [replace(row, settings=version) for version in reversed(row.settings.versions)]
    return {
        seq: "; ".join(f"{label.lower()} {old} → {new}" for label, old, new in differences(before, after, names))
        for seq, after, before in zip(numbers, terms, terms[1:], strict=False)
    }


def event_json(event: Event, names: Sequence[str]) -> dict[str, Any]:
    """An event as JSON."""
    return {
        "at": event.at, "kind": event.kind, "by": event.actor, "arm": None if event.arm is None else names[event.arm],
        "amount": known_units(event.amount),
    }  # fmt: skip
