"""The calls of the API, for both clients: what each sends, and how its answer is read.

A function is named as the method of both clients that makes the call, and the method says what the call does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from budgetbandits.answers import (
    ArmTotalAnswer,
    CampaignAnswer,
    CampaignDetailAnswer,
    DecisionDetailAnswer,
    DecisionPageAnswer,
    EventPageAnswer,
    KeyAnswer,
    NewWebhookAnswer,
    SharedBudgetAnswer,
    SharedBudgetDetailAnswer,
    StandingAnswer,
    WebhookAnswer,
)
from budgetbandits.client.protocol import (
    Call,
    Context,
    FeedbackResult,
    finite,
    keyed,
    named,
    path_of,
    plain,
    query,
    quoted,
)
from budgetbandits.errors import BadParameter
from budgetbandits.validation import DecisionFields, RequestOptions, amounts, listed

PAGE = 500
"""Campaigns per page of a list."""

# --- decisions and feedback ------------------------------------------------------------------------------------------


def decide(campaign: str, key: str | None, context: Context, options: DecisionFields) -> Call[tuple[Any, ...]]:
    """Ask for a decision."""
    body = {"context": _context(context), **_request(options)}
    return Call("POST", path_of(campaign, "decisions"), _read_decision, body, keyed(key))


def decide_many(
    campaign: str, count: int, key: str | None, context: Context, options: DecisionFields
) -> Call[list[tuple[Any, ...]]]:
    """Ask for several decisions."""
    body: dict[str, Any] = {"context": _context(context), "count": plain(count), **_request(options)}
    return Call(
        "POST", path_of(campaign, "decisions/batch"), lambda answer: [_read_decision(d) for d in answer["decisions"]],
        body, keyed(key),
    )  # fmt: skip


def feedback(campaign: str, decision: str, reward: float | None, cost: float | None, failed: bool) -> Call[float]:
    """Report on a decision."""
    path = path_of(campaign, f"decisions/{quoted(decision)}/feedback")
    body = finite({"reward": reward, "cost": cost} | ({"failed": True} if failed else {}))
    return Call("POST", path, lambda answer: float(answer["overrun"]), body)


def feedback_many(campaign: str, outcomes: Sequence[Mapping[str, Any]]) -> Call[list[FeedbackResult]]:
    """Report on several decisions."""
    body = {"outcomes": [finite(outcome) for outcome in _mappings(outcomes)]}
    return Call(
        "POST", path_of(campaign, "feedback"), lambda answer: [_read_result(t) for t in answer["results"]], body
    )


def void(campaign: str, decision: str) -> Call[None]:
    """Void a decision."""
    return Call("POST", path_of(campaign, f"decisions/{quoted(decision)}/void"), lambda _: None)


def _context(context: Context) -> dict[str, Any]:
    if context is not None and not isinstance(context, Mapping):
        raise BadParameter(f"context is {context!r:.60}; pass a dictionary")
    return dict(context or {})


def _request(fields: DecisionFields) -> dict[str, Any]:
    """The fields of a request as they are sent; those that say nothing are left out."""
    options, nothing = vars(RequestOptions.checked(**fields)), vars(RequestOptions())
    return {name: value for name, value in options.items() if value != nothing[name]}


def _read_decision(answer: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(answer[name] for name in ("decision", "campaign", "arm", "hold", "expires_at"))


def _mappings(outcomes: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if isinstance(outcomes, str | Mapping) or not isinstance(outcomes, Iterable):
        raise BadParameter(f"outcomes is {outcomes!r:.60}; pass a list of dictionaries with decision, reward and cost")
    mappings = list(outcomes)
    for outcome in mappings:
        if not isinstance(outcome, Mapping):
            raise BadParameter(f"an outcome is {outcome!r:.60}; pass dictionaries with decision, reward and cost")
    return mappings


def _read_result(answer: Mapping[str, Any]) -> FeedbackResult:
    problem = answer["problem"]
    return FeedbackResult(answer["decision"], answer["overrun"], None if problem is None else named(problem))


# --- campaigns -------------------------------------------------------------------------------------------------------


def create(
    name: str, budget: float, arms: Mapping[str, float], key: str | None, settings: Mapping[str, Any]
) -> Call[CampaignDetailAnswer]:
    """Create a campaign."""
    body = finite({"name": name, "budget": budget, **settings}) | {"arms": amounts("arms", arms)}
    if isinstance(settings.get("costs"), Mapping):
        body["costs"] = amounts("costs", settings["costs"])
    if isinstance(settings.get("history"), Mapping):
        body["history"] = {arm: list(map(plain, past)) for arm, past in settings["history"].items()}
    body |= {term: listed(term, settings[term]) for term in ("features", "tags") if settings.get(term) is not None}
    return Call("POST", "/v1/campaigns", CampaignDetailAnswer.read, body, keyed(key))


def change(
    campaign: str, action: str, key: str | None, body: Mapping[str, Any] | None = None
) -> Call[CampaignDetailAnswer]:
    """Change a campaign; ``action`` ends the path."""
    sent = None if body is None else finite(body)
    return Call("POST", path_of(campaign, action), CampaignDetailAnswer.read, sent, keyed(key))


def change_arm(campaign: str, arm: str, action: str, key: str | None) -> Call[CampaignDetailAnswer]:
    """Change an arm; ``action`` ends the path."""
    return change(campaign, f"arms/{quoted(arm)}/{action}", key)


def clone(campaign: str, name: str, budget: float | None, learned: bool, key: str | None) -> Call[CampaignDetailAnswer]:
    """Create a campaign like another one."""
    return change(campaign, "clone", key, {"name": name, "budget": budget, "learned": learned})


def resume(campaign: str, spent_since: float | None, key: str | None) -> Call[CampaignDetailAnswer]:
    """Resume a campaign."""
    return change(campaign, "resume", key, None if spent_since is None else {"spent_since": spent_since})


def change_terms(campaign: str, key: str | None, changes: Mapping[str, Any]) -> Call[CampaignDetailAnswer]:
    """Change terms of a campaign."""
    body = dict(changes)
    if "caps" in body:
        body["caps"] = amounts("caps", body["caps"])
    if body.get("tags") is not None:
        body["tags"] = listed("tags", body["tags"])
    return change(campaign, "terms", key, body)


def campaign(campaign: str) -> Call[CampaignDetailAnswer]:
    """Read a campaign."""
    return Call("GET", path_of(campaign), CampaignDetailAnswer.read)


def campaigns(after: str | None) -> Call[list[CampaignAnswer]]:
    """Read a page of campaigns: those after this one."""
    return Call("GET", f"/v1/campaigns{query({'limit': PAGE, 'after': after})}", CampaignAnswer.read_all)


def totals(campaign: str) -> Call[dict[str, ArmTotalAnswer]]:
    """Read the totals of a campaign's arms."""

    def read(rows: Iterable[Mapping[str, Any]]) -> dict[str, ArmTotalAnswer]:
        return {row["arm"]: ArmTotalAnswer.read(row) for row in rows}

    return Call("GET", path_of(campaign, "totals"), read)


def standing(campaign: str) -> Call[StandingAnswer]:
    """Read the standing of a campaign."""
    return Call("GET", path_of(campaign, "standing"), StandingAnswer.read)


def standings(after: str | None) -> Call[list[StandingAnswer]]:
    """Read a page of standings: those of the campaigns after this one."""
    return Call("GET", f"/v1/standings{query({'limit': PAGE, 'after': after})}", StandingAnswer.read_all)


def decision(campaign: str, decision: str) -> Call[DecisionDetailAnswer]:
    """Read a decision."""
    return Call("GET", path_of(campaign, "decisions", quoted(decision)), DecisionDetailAnswer.read)


def decisions(campaign: str, **options: Any) -> Call[DecisionPageAnswer]:
    """Read a page of decisions."""
    return Call("GET", path_of(campaign, f"decisions{query(options)}"), DecisionPageAnswer.read)


def events(campaign: str, **options: Any) -> Call[EventPageAnswer]:
    """Read a page of events."""
    return Call("GET", path_of(campaign, f"events{query(options)}"), EventPageAnswer.read)


def verify(campaign: str) -> Call[list[str]]:
    """Audit a campaign."""
    return _audit(path_of(campaign, "verify"))


def export(campaign: str, path: Path, table: str) -> str:
    """The path and the query that ask for an export in the format of this file."""
    if path.suffix not in (".csv", ".parquet"):
        raise BadParameter(f"{path.name!r:.60} ends in {path.suffix or 'nothing'!r}; use .csv or .parquet")
    return path_of(campaign, f"export{query({'table': table, 'format': path.suffix.removeprefix('.')})}")


def _audit(path: str) -> Call[list[str]]:
    return Call("GET", path, lambda answer: list(answer["differences"]), takes_long=True)


# --- keys and webhooks -----------------------------------------------------------------------------------------------


def create_key(scopes: Sequence[str], key: str | None, terms: Mapping[str, Any]) -> Call[str]:
    """Make an API key."""
    body = {"scopes": listed("scopes", scopes), **finite(terms)}
    return Call("POST", "/v1/keys", lambda answer: str(answer["key"]), body, keyed(key))


def keys() -> Call[list[KeyAnswer]]:
    """List the API keys."""
    return Call("GET", "/v1/keys", KeyAnswer.read_all)


def drop_key(prefix: str) -> Call[dict[str, Any]]:
    """Drop an API key."""
    prefix = prefix.removeprefix("bb_").partition("_")[0]  # never send a secret where none is needed
    return Call("DELETE", f"/v1/keys/{quoted(prefix)}", dict)


def create_webhook(url: str, campaign: str | None) -> Call[NewWebhookAnswer]:
    """Add a webhook."""
    return Call("POST", "/v1/webhooks", NewWebhookAnswer.read, {"url": url, "campaign": campaign})


def webhooks() -> Call[list[WebhookAnswer]]:
    """List the webhooks."""
    return Call("GET", "/v1/webhooks", WebhookAnswer.read_all)


def drop_webhook(id: str) -> Call[dict[str, Any]]:
    """Drop a webhook."""
    return Call("DELETE", f"/v1/webhooks/{quoted(id)}", dict)


def test_webhook(id: str) -> Call[str | None]:
    """Test a webhook."""
    return Call("POST", f"/v1/webhooks/{quoted(id)}/test", lambda answer: answer["problem"], takes_long=True)


# --- shared budgets --------------------------------------------------------------------------------------------------


def create_shared_budget(name: str, budget: float, terms: Mapping[str, Any]) -> Call[SharedBudgetDetailAnswer]:
    """Create a shared budget."""
    body = finite({"name": name, "budget": budget, **terms})
    return Call("POST", "/v1/shared-budgets", SharedBudgetDetailAnswer.read, body)


def change_shared_budget(name: str, changes: Mapping[str, Any]) -> Call[SharedBudgetDetailAnswer]:
    """Change a shared budget."""
    return Call("POST", _shared(name, "/terms"), SharedBudgetDetailAnswer.read, finite(changes))


def reset_shared_clock(name: str) -> Call[SharedBudgetDetailAnswer]:
    """Reset the clock of a shared budget."""
    return Call("POST", _shared(name, "/reset-clock"), SharedBudgetDetailAnswer.read)


def shared_budget(name: str) -> Call[SharedBudgetDetailAnswer]:
    """Read a shared budget."""
    return Call("GET", _shared(name), SharedBudgetDetailAnswer.read)


def shared_budgets() -> Call[list[SharedBudgetAnswer]]:
    """List the shared budgets."""
    return Call("GET", "/v1/shared-budgets", SharedBudgetAnswer.read_all)


def verify_shared_budget(name: str) -> Call[list[str]]:
    """Audit a shared budget."""
    return _audit(_shared(name, "/verify"))


def _shared(name: str, rest: str = "") -> str:
    return f"/v1/shared-budgets/{quoted(name)}{rest}"
