"""The page of a campaign as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from budgetbandits.service.campaigns import named_segments, summary
from budgetbandits.service.dashboard.arms import Arm
from budgetbandits.service.dashboard.campaign_view import AGES, CampaignView
from budgetbandits.service.dashboard.events import event_json
from budgetbandits.service.ledger import to_units
from budgetbandits.service.request import ResolvedRequest as Request
from budgetbandits.service.stores.records import DecisionRow


def campaign_json(view: CampaignView) -> dict[str, Any]:
    """For programs."""
    names = view.names
    return summary(view.row) | {
        "requests_answered": view.answered, "requests_used": view.row.account.requests_used,
        "segments": named_segments(view.row),
        "requests": None if view.requests is None else view.requests.as_json(names),
        "at": view.now, "standing": {"word": view.standing.word, "cause": view.standing.cause},
        "spent_with_leases": view.spent,
        "pace": None if view.pace is None else {"plan": view.pace.plan / 1e6, "behind": view.pace.share},
        "runs_out": None if view.runs_out is None else asdict(view.runs_out),
        "slot_seconds": view.slot,
        "slots": [
            {"begins": s.begins, "decided": {names[a]: n for a, n in s.decided.items()},
             "spent": {names[a]: n for a, n in s.spent.items()}} for s in view.slots
        ],
        "arms": [_arm(arm) for arm in view.arms],
        "prices_on_money": [{"at": at, "price": price} for at, price in view.prices],
        "saved": view.saved, "refusals_7_days": view.refusals,
        "open_holds": {"younger_than": dict(zip(map(str, AGES), view.holds.counts, strict=False)),
                       "count": view.holds.counts[-1], "or_more": view.holds.more,
                       "first_expires_at": view.holds.expires_at},
        "delays_24_hours": dict(zip(("10", "60", "300", "more"), view.delays, strict=True)),
        "decisions": [_decision(made, names) for made in view.latest.decisions],
        "older_decisions": view.latest.older,
        "events": [event_json(event, names) for event in view.events],
    }  # fmt: skip


def _arm(arm: Arm) -> dict[str, Any]:
    known = {"price": arm.belief.price, "ratio": arm.belief.ratio, "mean_reward": arm.belief.reward}
    return {
        "name": arm.name, "cost_cap": arm.cap, "active": arm.active, "decided": arm.decided, "spent": arm.spent,
        "cost": arm.cost, "reward": arm.reward, "pulls": arm.pulls, "chance_of_best": arm.chance,
        "failures": arm.failures, "cooldown_until": arm.rests_until,
        "price_learned_as": arm.learned_as,
        **{name: asdict(each) if arm.told else None for name, each in known.items()},
        "worth": None if arm.worth is None else asdict(arm.worth.worth),
    }  # fmt: skip


def _decision(made: DecisionRow, names: Sequence[str]) -> dict[str, Any]:
    said = Request.read(made.request)
    return {
        "id": made.id, "at": made.created_at, "arm": names[made.arm], "segment": None if said is None else said.segment,
        "state": made.hold.state, "failed": made.failed, "hold": to_units(made.hold.amount),
        "cost": None if made.cost is None else to_units(made.cost), "reward": made.reward,
        "overrun": to_units(made.hold.overrun),
    }  # fmt: skip
