"""The service: HTTP, terms, errors, metrics, events."""

from __future__ import annotations

import dataclasses
import json
import re
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from budgetbandits import errors as module
from budgetbandits.client import Client
from budgetbandits.errors import (
    REFUSALS,
    BudgetBanditsError,
    CostOverrun,
    HoldRefused,
    NotAllowed,
    ServiceUnreachable,
)
from budgetbandits.service.http.campaign_metrics import SERIES, CampaignMetrics, CampaignSeries
from budgetbandits.service.http.document import PROBLEM_RESPONSES, document, kind_of
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.problem_json import PROTOCOL_TITLES, describe
from budgetbandits.service.service import DecisionService
from budgetbandits.service.shared_budgets.operations import SharedBudgets
from budgetbandits.service.stores.records import EVENTS
from budgetbandits.service.stores.sqlite import SQLiteStore
from budgetbandits.service.webhooks import NOTIFICATION_FIELDS, NOTIFICATIONS
from budgetbandits.terms import TERMS
from reference.markdown import code, plain, table

CALLS = {"tell": "feedback", "tell_many": "feedback_many"}
"""Calls of the client that are not named as their operations."""

NOT_OVER_HTTP = (BudgetBanditsError, CostOverrun, ServiceUnreachable)
"""Errors that no answer is about."""


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    return {(method.upper(), path): each for path, some in document()["paths"].items() for method, each in some.items()}


def _kind(schema: Mapping[str, Any]) -> str:
    schemas = document()["components"]["schemas"]
    words = re.split(r"(\W+)", kind_of(dict(schema)))
    return "".join(f"[{word}](#{word.lower()})" if word in schemas else word for word in words)


def http_part() -> str:
    made = []
    for tag in document()["tags"]:
        made.append(f"## {tag['name'].replace('-', ' ').capitalize()}\n\n{tag['description']}\n")
        made += [_operation(*key, each) for key, each in operations().items() if each["tags"] == [tag["name"]]]
    return "\n".join(made)


def _operation(method: str, path: str, about: dict[str, Any]) -> str:
    scope = about["security"][0]["key"][0] if about["security"] else None
    good = [code for code in about["responses"] if code.startswith("2")]
    answers = []
    for status in good:
        kinds = [_kind(each.get("schema", {})) for each in about["responses"][status].get("content", {}).values()]
        answers.append(f"{status} {kinds[0]}" if kinds and kinds[0] != "anything" else f"{status}, a file or a text")
    lines = [
        f"### {about['summary']}\n", f"```text\n{method} {path}\n```\n",
        *([] if about["description"] == about["summary"] + "." else [plain(about["description"]) + "\n"]),
        f"- Key: {'of scope ' + code(scope) if scope else 'none needed'}",
    ]  # fmt: skip
    if body := about.get("requestBody"):
        kind = _kind(body["content"]["application/json"]["schema"])
        lines.append(f"- Body: {kind}" + ("" if body.get("required") else ", or none"))
    lines.append(f"- Answer: {'; '.join(answers)}")
    problems = [status for status in about["responses"] if status not in good]
    lines += [f"- Problems: {', '.join(problems)}"] if problems else []
    name = about["operationId"]
    call = CALLS.get(name, name)
    lines.append((f"- In Python: `{call}`; " if hasattr(Client, call) else "- ") + f"`operationId`: `{name}`\n")
    if about.get("parameters"):
        rows = [
            (code(each["name"]), each["in"], _kind(each["schema"]), "yes" if each["required"] else "no",
             plain(each.get("description")))
            for each in about["parameters"]
        ]  # fmt: skip
        lines.append(table(("parameter", "in", "type", "needed", ""), rows))
    return "\n".join(lines)


def statuses_part() -> str:
    return table(("status", ""), [(code, each["description"]) for code, each in PROBLEM_RESPONSES.items()])


def schemas_part() -> str:
    made = []
    for name, schema in sorted(document()["components"]["schemas"].items()):
        required = schema.get("required", ())
        rows = [
            (code(field), _field_kind(about), plain(about.get("description")), _field_default(about, field in required))
            for field, about in schema.get("properties", {}).items()
        ]
        head = ("field", "type", "", "default")
        if name.endswith("Answer") or name == "ProblemDetails":  # what a server sends is always there
            head, rows = head[:3], [cells[:3] for cells in rows]
        made.append(f"### {name}\n\n{plain(schema.get('description'))}\n\n" + table(head, rows))
    return "\n".join(made)


def _field_kind(schema: Mapping[str, Any]) -> str:
    kind = _kind(schema)
    return kind if len(kind) < 400 else "one of the titles of [errors](errors.md)"


def _field_default(schema: Mapping[str, Any], required: bool) -> str:
    if required:
        return "must be given"
    default = schema.get("default")
    return code(json.dumps(default)) if default is None or isinstance(default, bool) else code(default)


def terms_part() -> str:
    made = []
    for group in dict.fromkeys(term.group for term in TERMS.values()):
        rows = [
            (code(term.name), term.label, plain(term.full_help), _term_kind(term), _term_default(term),
             "yes" if term.changeable else "no")
            for term in TERMS.values() if term.group == group
        ]  # fmt: skip
        made.append(f"## {group}\n\n" + table(("term", "label", "", "value", "default", "changeable"), rows))
    return "\n".join(made)


def _term_kind(term: Any) -> str:
    if term.choices:
        return " or ".join(code(value) for value, _ in term.choices)
    kind = {"money": "money", "seconds": "seconds", "number": "number", "text": "text", "names": "list of names"}[
        term.kind
    ]
    if term.whole:
        kind = "whole number"
    return kind + (f", {term.smallest:,g} to {term.largest:,.0f}" if term.largest < float("inf") else "")


def _term_default(term: Any) -> str:
    return (
        "none"
        if term.default is None
        else code(f"{term.default:g}" if isinstance(term.default, float) else term.default)
    )


def errors() -> dict[str, type]:
    return {name: kind for name, kind in vars(module).items()
            if isinstance(kind, type) and issubclass(kind, module.BudgetBanditsError)}  # fmt: skip


def status_of(kind: type) -> str:
    if kind is HoldRefused:
        made = {describe(HoldRefused(reason, "")).status for reason in ("exhausted", "paused")}
    elif kind is NotAllowed:
        made = {describe(NotAllowed("", known)).status for known in (True, False)}
    else:
        made = {describe(kind("")).status}
    return ", ".join(map(str, sorted(made)))


def error_tree() -> str:
    drawn = (module.__doc__ or "").partition("\n\n")[2]
    return f"```text\n{drawn.strip()}\n```\n"


def errors_part() -> str:
    rows = []
    for name, kind in sorted(errors().items()):
        built_in = next(base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")
        parent = kind.__bases__[0].__name__
        over_http = "" if kind in NOT_OVER_HTTP else status_of(kind)
        rows.append((code(name), plain(kind.__doc__), code(parent), code(built_in), over_http))
    return table(("error", "", "kind of", "also a", "HTTP"), rows)


def refusals_part() -> str:
    rows = [(code(reason), describe(HoldRefused(reason, "")).status, about) for reason, about in REFUSALS.items()]
    return table(("reason", "HTTP", ""), rows)


def protocol_part() -> str:
    return table(("title", ""), [(code(title), about) for title, about in PROTOCOL_TITLES.items()])


@dataclasses.dataclass(frozen=True)
class MetricLine:
    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


@cache
def metrics() -> list[MetricLine]:
    """The metrics of a server and of its campaigns, as a server has them that has one of each."""
    with tempfile.TemporaryDirectory() as folder, SQLiteStore(Path(folder) / "reference.db") as store:
        SharedBudgets(store).create("shared", 5.0)
        DecisionService(store).create("one", "bts", 5.0, {"a": 1.0, "b": 1.0})
        found = [_metric(each, tuple(getattr(each, "_labelnames", ()))) for each in Metrics(store).collect()]
        page = CampaignMetrics(store, CampaignSeries()).page().decode()
    for each in text_string_to_metric_families(page):
        labels = {label for sample in each.samples for label in sample.labels}
        found.append(
            _metric(each, tuple(sorted(labels)) or ("campaign",) * each.name.startswith("budgetbandits_campaign_"))
        )
    return found


def _metric(family: Any, labels: tuple[str, ...]) -> MetricLine:
    suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
    if family.type == "info":
        labels = tuple(sorted(label for sample in family.samples for label in sample.labels))
    return MetricLine(family.name + suffix, family.type, labels, family.documentation)


def metrics_part() -> str:
    rows = []
    for each in metrics():
        by = f" by {', '.join(map(code, each.labels))}" if each.labels else ""
        rows.append((f"{code(each.name)}<br>{each.kind}{by}", each.help))
    return table(("metric, its type and labels", ""), rows)


def series_part() -> str:
    return ", ".join(code(name) for name in SERIES) + "\n"


def events_part() -> str:
    return table(("kind", ""), [(code(kind), about) for kind, about in EVENTS.items()])


def event_fields_part() -> str:
    return _model_fields("EventAnswer")


def _model_fields(schema: str) -> str:
    about = document()["components"]["schemas"][schema]["properties"]
    return table(("field", "type", ""), [
        (code(name), "a kind, as above" if name == "kind" else _kind_words(each), plain(each.get("description")))
        for name, each in about.items()
    ])  # fmt: skip


def _kind_words(schema: Mapping[str, Any]) -> str:
    return kind_of(dict(schema))


def notifications_part() -> str:
    standing = document()["components"]["schemas"]["StandingAnswer"]["properties"]
    fields = {name: each.get("description", "") for name, each in standing.items()} | NOTIFICATION_FIELDS
    kinds = table(("type", ""), [(code(kind), about) for kind, about in NOTIFICATIONS.items()])
    return kinds + "\n" + table(("field", ""), [(code(name), plain(about)) for name, about in fields.items()])
