"""Columns and rows: every list of columns, derived from the fields of the records, and the conversions.

An account or a hold inside a record is spread out over columns of its table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from pydantic_core import to_json

from budgetbandits.errors import BadState
from budgetbandits.service.leases.lending import NO_DAY
from budgetbandits.service.ledger import Account, Hold
from budgetbandits.service.shared_budgets.rules import SharedBudget, SharedSettings
from budgetbandits.service.stores.records import (
    ArmRow,
    Campaign,
    CampaignSettings,
    DecisionRow,
    Event,
    Key,
    KeyEvent,
    Lease,
    LeaseEvent,
    Watermark,
)

Values = Callable[[Any], tuple[Any, ...]]

_LEASE_ACCOUNT = {"amount": "budget", "spent": "spent", "held": "held", "requests_used": "requests_used"}
_HOLD = {"hold": "amount", "state": "state", "charged": "charged", "overrun": "overrun", "reported": "reported"}


def _paths(record: type, **parts: dict[str, str]) -> dict[str, str]:
    """Where the value of each column is in a record; ``parts`` are the columns of a field that is itself a record."""
    paths: dict[str, str] = {}
    for name in (attribute.name for attribute in fields(record) if attribute.name != "seq"):
        columns = parts.get(name)
        paths |= {name: name} if columns is None else {column: f"{name}.{at}" for column, at in columns.items()}
    return paths


def _getter(paths: Iterable[str]) -> Values:
    """The values at these places of a record, as a tuple; `operator.attrgetter` takes twice as long."""
    getter: Values = eval(f"lambda record: ({''.join(f'record.{path}, ' for path in paths)})")
    return getter


ACCOUNT = tuple(attribute.name for attribute in fields(Account))
"""Columns of an account."""

_campaign = _paths(Campaign, account={name: name for name in ACCOUNT})
_arm, _event, _key, _key_event = map(_paths, (ArmRow, Event, Key, KeyEvent))
_decision, _lease = _paths(DecisionRow, hold=_HOLD), _paths(Lease, account=_LEASE_ACCOUNT)

CAMPAIGN, ARM, EVENT, KEY, KEY_EVENT, LEASE = map(tuple, (_campaign, _arm, _event, _key, _key_event, _lease))
DECISION, DECISION_PATHS = tuple(_decision), tuple(_decision.values())
PLAIN_DECISION = DECISION[: DECISION.index("request")]
"""Columns of a decision without those that most leave empty, since writing NULLs takes time at every decision."""
FEEDBACK = ("state", "charged", "overrun", "reported", "cost", "reward")
"""The columns of a decision that feedback changes, and ``failed``."""
MONEY = tuple(name for name in ACCOUNT if name != "status")
"""Columns of an account without the status."""

LEASE_CHANGES = LEASE[2:]
"""The columns of a lease that change."""
WATERMARK = tuple(attribute.name for attribute in fields(Watermark))
"""Columns of a watermark."""

NUMBERED_EVENT, NUMBERED_KEY_EVENT = (*EVENT, "seq"), (*KEY_EVENT, "seq")
"""Columns of events with the number that the store has given."""

SHARED_MONEY = ("budget", "spent", "held", "overrun", "leased", "period", "advance")
"""Columns of a shared budget's account."""

SHARED_BUDGET = ("name", *SHARED_MONEY, "created_at", "settings")
"""Columns of a shared budget."""

money_of: Values = _getter(MONEY)
shared_money_of: Values = _getter(SHARED_MONEY)
lease_values: Values = _getter(_lease.values())
lease_changes: Values = _getter(_lease[name] for name in LEASE_CHANGES)
plain_decision_values: Values = _getter(_decision[name] for name in PLAIN_DECISION)
decision_values: Values = _getter(_decision.values())
seldom_values: Values = _getter(_decision[name] for name in DECISION[len(PLAIN_DECISION) :])
SELDOM_DEFAULTS = tuple(
    attribute.default for attribute in fields(DecisionRow) if attribute.name in DECISION[len(PLAIN_DECISION) :]
)
"""The values of a decision for which `PLAIN_DECISION` has all there is to write."""
feedback_values: Values = _getter(_decision[name] for name in FEEDBACK)
event_values: Values = _getter(EVENT)
watermark_values: Values = _getter(WATERMARK)


def listed(columns: Iterable[str], table: str = "") -> str:
    """The columns for a SELECT or INSERT, of a table if one is named."""
    return ", ".join(f"{table}.{name}" if table else name for name in columns)


def places(columns: Iterable[object]) -> str:
    """A ``?`` for each of these."""
    return ", ".join("?" for _ in columns)


def insertion(table: str, columns: Sequence[str]) -> str:
    """The statement that inserts a row."""
    return f"INSERT INTO {table} ({listed(columns)}) VALUES ({places(columns)})"


def assigned(columns: Iterable[str], first: int | None = None) -> str:
    """Assignments for an UPDATE: to ``?``, or to numbered values from ``$first`` on."""
    if first is None:
        return ", ".join(f"{name} = ?" for name in columns)
    return ", ".join(f"{name} = ${number}" for number, name in enumerate(columns, first))


def json_text(values: dict[str, Any] | list[Any]) -> str:
    """JSON, much faster than the standard library's; infinities and NaN are written as that does."""
    return to_json(values, inf_nan_mode="constants").decode()


def json_rows(columns: Sequence[str], values: Values, records: Iterable[Any]) -> str:
    """Rows for PostgreSQL's ``json_populate_recordset``, which takes what is missing for NULL."""
    rows = [zip(columns, values(record), strict=True) for record in records]
    return to_json([{name: value for name, value in row if value is not None} for row in rows]).decode()


def arms_down_text(campaign: Campaign) -> str | None:
    """Which of its arms are down, for the list of campaigns; None if none is."""
    down = campaign.learned.get("down")
    return to_json(down).decode() if down else None


@lru_cache(maxsize=4096)
def settings_of(text: str) -> CampaignSettings:
    """Read at every decision; the result is never changed."""
    return CampaignSettings.from_dict(json.loads(text))


_ACCOUNT_ENDS = 3 + len(ACCOUNT)


def campaign_of(row: Sequence[Any]) -> Campaign:
    """The campaign of a row."""
    account = Account(*row[3:_ACCOUNT_ENDS])
    created_at, settings, learned = row[_ACCOUNT_ENDS:]
    state = json.loads(learned)
    if not isinstance(state, dict):
        raise TypeError("what is learned is no object")
    try:
        return Campaign(row[0], row[1], row[2], account, created_at, settings_of(settings), state)
    except ValueError as error:
        raise BadState(
            f"the settings of campaign {row[1]!r:.60} are damaged ({error}); restore an undamaged copy"
        ) from None


def campaign_values(campaign: Campaign) -> tuple[Any, ...]:
    """The values of a campaign's row."""
    account = tuple(getattr(campaign.account, name) for name in ACCOUNT)
    texts = json_text(campaign.settings.to_dict()), json_text(campaign.learned)
    return (campaign.id, campaign.name, campaign.policy, *account, campaign.created_at, *texts)


@lru_cache(maxsize=256)
def _shared_settings_of(text: str) -> SharedSettings:
    return SharedSettings.from_dict(json.loads(text))


def shared_budget_of(row: Sequence[Any]) -> SharedBudget:
    """The shared budget of a row."""
    name, budget, spent, held, overrun, leased, period, advance, created_at, settings = row
    account = Account(budget, spent, held, overrun, leased=leased, period=period, advance=advance)
    return SharedBudget(name, account, created_at, _shared_settings_of(settings))


def arm_of(row: Sequence[Any]) -> ArmRow:
    """The arm of a row."""
    campaign, number, name, cost_cap, learned, active = row
    return ArmRow(campaign, number, name, cost_cap, json.loads(learned), bool(active))


def arm_values(arm: ArmRow) -> tuple[Any, ...]:
    """The values of an arm's row."""
    return arm.campaign, arm.number, arm.name, arm.cost_cap, json_text(arm.learned), arm.active


_CREATED_AT, _LEASE_ID, _FAILED = map(DECISION.index, ("created_at", "lease", "failed"))
_REST = ", ".join(
    f"bool(row[{place}])" if place == _FAILED else f"row[{place}]" for place in range(3 + len(_HOLD), len(DECISION))
)
# `DecisionRow(*row[...])` takes three times as long
_decision_with = eval(f"lambda row, hold: DecisionRow(row[0], row[1], row[2], hold, {_REST})")


def decision_of(row: Sequence[Any]) -> DecisionRow:
    """A row of `DECISION`; SQLite has no booleans."""
    placed_at = row[_CREATED_AT] if row[_LEASE_ID] is None else NO_DAY
    decision: DecisionRow = _decision_with(row, Hold(row[3], row[4], row[5], row[6], bool(row[7]), placed_at))
    return decision


def lease_of(row: Sequence[Any]) -> Lease:
    """The lease of a row."""
    id, campaign, amount, spent, held, requests_used, *rest = row
    return Lease(id, campaign, Account(amount, spent, held, requests_used=requests_used), *rest)


def lease_event_of(row: Sequence[Any]) -> LeaseEvent:
    """The event of a lease of a row."""
    return LeaseEvent(Event(*row[:-4]), *row[-4:])


def key_of(row: Sequence[Any]) -> Key:
    """The key of a row."""
    prefix, digest, scopes, *rest = row
    return replace(Key(prefix, digest, tuple(scopes.split()), *rest), off=bool(row[-1]))


def key_event_of(row: Sequence[Any]) -> KeyEvent:
    """The event of a key of a row."""
    return KeyEvent(row[0], row[1], tuple(row[2].split()), *row[3:])


def tags_text(tags: Sequence[str] | None) -> str | None:
    """The tags of a campaign as the list looks for them: each between two line breaks, which no tag has.

    >>> tags_text(["search", "team a"]), tags_text(None)
    ('\\nsearch\\nteam a\\n', None)
    """
    return "\n{}\n".format("\n".join(tags)) if tags else None
