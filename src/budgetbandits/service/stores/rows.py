"""The rows of the tables: their columns, and what is made of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pydantic_core import to_json

from budgetbandits.service.leases.ledger import NO_DAY
from budgetbandits.service.ledger import Account, Hold, day_of
from budgetbandits.service.stores.records import ArmRow, Campaign, Decision

CAMPAIGN = (
    "id, name, policy, status, budget, spent, held, overrun, day, today, leased, gone, settings, learned, created_at"
)
ARM = "campaign, number, name, cost_cap, learned, active"
PLAIN_DECISION = (
    "id, campaign, arm, hold, state, charged, overrun, reported, cost, reward, key, payload, created_at, expires_at, "
    "lease"
)
DECISION = f"{PLAIN_DECISION}, request, propensity, failed"
OF_DECISION = ", ".join(f"decision.{name}" for name in DECISION.split(", "))


def json_text(values: dict[str, Any]) -> str:
    """JSON, a good deal faster than the standard library's; what cannot be written as JSON is, as it does."""
    return to_json(values, inf_nan_mode="constants").decode()


def down_text(campaign: Campaign) -> str | None:
    """Which of its arms are down, for the list of campaigns; None if none is."""
    down = campaign.learned.get("down")
    return to_json(down).decode() if down else None


def money_of(a: Account) -> tuple[Any, ...]:
    return a.budget, a.spent, a.held, a.overrun, a.day, a.today, a.leased, a.gone


def campaign_of(row: Sequence[Any]) -> Campaign:
    id, name, policy, status, budget, spent, held, overrun, day, today, leased, gone, settings, learned, at = row
    account = Account(budget, spent, held, overrun, status, day, today, leased, gone)
    known = json.loads(learned)
    if not isinstance(known, dict):
        raise TypeError("what is learned is no object")
    return Campaign(id, name, policy, account, at, settings_of(settings), known)


def arm_of(row: Sequence[Any]) -> ArmRow:
    campaign, number, name, cost_cap, learned, active = row
    return ArmRow(campaign, number, name, cost_cap, json.loads(learned), bool(active))


@lru_cache(maxsize=4096)
def settings_of(text: str) -> dict[str, Any]:
    """Read at every decision; what is made of a text is never changed."""
    return dict(json.loads(text))


def decision_of(row: Sequence[Any]) -> Decision:
    (
        id, campaign, arm, amount, state, charged, overrun, reported, cost, reward, key, payload, made, expires, lease,
        request, propensity, failed,
    ) = row  # fmt: skip
    hold = Hold(amount, state, charged, overrun, bool(reported), day_of(made) if lease is None else NO_DAY)
    return Decision(
        id, campaign, arm, hold, key, payload, made, expires, cost, reward, lease, request, propensity, bool(failed)
    )


def segment_of(row: Sequence[Any]) -> str | None:
    """Of a decision's row: the segment that its request named."""
    request = row[15]
    segment = None if request is None else json.loads(request).get("segment")
    return None if segment is None else str(segment)
