"""The OpenAPI document, from which clients in other languages are generated, and the page ``/docs`` that shows it.

FastAPI makes it from the routes and models. Added here: workers' routes, which FastAPI does not serve, the key that a
route needs, tags, summaries, and the problems that each route may answer with.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from fastapi import FastAPI, Header, Path
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from budgetbandits.service.dashboard.rendering import html_response, render
from budgetbandits.service.http.worker_routes import ROUTES, WorkerRoute
from budgetbandits.web.servers import root_path

CampaignPath = Annotated[str, Path(min_length=1, max_length=200, description="A campaign's name or id.")]

DecisionPath = Annotated[str, Path(min_length=1, max_length=200, description="A decision's id.")]

ArmPath = Annotated[str, Path(min_length=1, max_length=200, description="An arm's name.")]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$",
        description="A repeated request with the same key changes nothing again.",
    ),
]  # fmt: skip

RequiredKey = Annotated[
    str,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200,
        description="New for each decision. A repeated request with the same key gets the same decision.",
    ),
]  # fmt: skip

DESCRIPTION = (
    "Many workers, one budget, never a cent too much. Money is in the unit of each campaign, times are seconds since "
    "1970. Errors are problems of RFC 9457 whose detail says the remedy."
)

TAGS = {
    "decisions": "What workers call: ask for a decision, then report its cost and its reward.",
    "campaigns": "Create, read and change campaigns.",
    "shared-budgets": "One budget over several campaigns.",
    "records": "Decisions and events of a campaign, exported, and checked against each other.",
    "keys": "API keys.",
    "webhooks": "Addresses that are notified of changes.",
    "server": "Health and metrics.",
}

SECURITY_SCHEME = {
    "type": "http", "scheme": "bearer", "bearerFormat": "bb_PREFIX_SECRET",
    "description": "An API key. Scopes are decide, feedback, read and admin, which includes the others.",
}  # fmt: skip

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}

RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait, if that helps.", "schema": {"type": "integer"}}}

PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {"description": text, "content": PROBLEM} | ({"headers": RETRY_AFTER} if code in (409, 429, 503) else {})
    for code, text in {
        401: "There is no such key.",
        402: "The budget is exhausted.",
        403: "The key may not do this.",
        404: "Not found.",
        409: "A conflict, or no decision can be made now.",
        411: "Content-Length is missing.",
        413: "The body is too large.",
        422: "A field is missing, unknown or out of its range.",
        429: "Too many wrong keys, or too many requests with this one.",
        503: "The store cannot write, a clock is wrong, or the server is busy. Nothing was decided.",
        507: "The disk is full.",
    }.items()
}


def requires(scope: str | None) -> dict[str, Any]:
    """The entry of a route that needs a key of this scope; None for a route that is open to all."""
    return {"security": [] if scope is None else [{"key": [scope]}]}


# --- workers' routes -------------------------------------------------------------------------------------------------

_PATHS = {"campaign": CampaignPath, "decision": DecisionPath}


def add_worker_routes(app: FastAPI) -> None:
    """Add the routes of workers to FastAPI's document; their requests do not get as far as FastAPI."""
    for each in ROUTES:
        app.add_api_route(
            each.path, _signature(each), methods=[each.method], name=each.name, description=each.function.__doc__,
            status_code=each.status, response_model=each.answer, openapi_extra=requires(each.scope),
        )  # fmt: skip


def _signature(route: WorkerRoute) -> Callable[..., None]:
    """A function with the parameters and the body of a route, for FastAPI to read."""

    def elsewhere(**_: Any) -> None:
        """Never called."""

    kinds: dict[str, Any] = {name: _PATHS[name] for name in re.findall(r"{(\w+)}", route.path)}
    kinds |= {"key": RequiredKey} if route.keyed else {}
    kinds |= {"body": route.body} if route.body is not None else {}
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in kinds.items()]
    elsewhere.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]
    return elsewhere


# --- the document ----------------------------------------------------------------------------------------------------


def document(app: FastAPI) -> dict[str, Any]:
    """The document of this application."""
    made = app.openapi()
    made["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    made["components"]["securitySchemes"] = {"key": SECURITY_SCHEME}
    for path, method, operation in _operations(made):
        operation["tags"] = [_tag(path, method)]
        # the first sentence, or its first part
        operation["summary"] = re.split(r"[:;.](?: |$)", operation["description"], maxsplit=1)[0]
        good = {code: each for code, each in operation["responses"].items() if code.startswith("2")}
        problems = {str(code): PROBLEM_RESPONSES[code] for code in _problem_codes(path, method, operation)}
        for each in good.values():
            each["description"] = each["description"].replace("Successful Response", "Done.")
        operation["responses"] = good | problems
    return made


def _operations(made: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, operations in made["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _tag(path: str, method: str) -> str:
    parts = path.strip("/").split("/")
    if parts[0] != "v1":
        return "server"
    if parts[1] in ("keys", "webhooks", "shared-budgets"):
        return parts[1]
    if {"decisions", "feedback"} & set(parts) and method == "post":
        return "decisions"
    return "records" if parts[-1] in ("decisions", "{decision}", "events", "export", "verify") else "campaigns"


def _problem_codes(path: str, method: str, operation: dict[str, Any]) -> list[int]:
    """The statuses of the problems that a route may answer with."""
    found = {503} if path != "/healthz" else set[int]()
    if operation["security"]:
        found |= {401, 403, 422, 429}
        sends, lists = method != "get", any(each["name"] == "after" for each in operation.get("parameters", ()))
        found |= {409, 411, 413} if sends else set()
        # a campaign, decision, arm or key may be in the path, in the body or a cursor
        found |= {404} if "{" in path or "requestBody" in operation or lists else set()
    found |= {402} if operation["operationId"] in ("decide", "decide_many") else set()
    found |= {507} if operation["operationId"] in ("export", "verify", "verify_shared_budget") else set()
    return sorted(found)


class OpenApiDocument:
    """The document as a route, open to all: made when it is first asked for, and kept."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._made: dict[str, tuple[bytes, str, str]] = {}
        """By the path below which it is published: the document, its tag, and the page for people."""

    async def _get(self) -> tuple[bytes, str, str]:
        path = root_path.get()
        if path not in self._made:
            self._made[path] = await asyncio.to_thread(self._make, path)
        return self._made[path]

    def _make(self, path: str) -> tuple[bytes, str, str]:
        made = document(self._app)
        content = to_json(made | ({"servers": [{"url": path}]} if path else {}))
        return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"', _page(made)

    async def __call__(self, request: Request) -> Response:
        content, tag, _ = await self._get()
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
        if tag in known or known == ["*"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type="application/json", headers=headers)

    async def show(self, _: Request) -> Response:
        """The same as a page for people; it needs no script and nothing from elsewhere."""
        return html_response((await self._get())[2])


# --- the page --------------------------------------------------------------------------------------------------------


def _page(made: dict[str, Any]) -> str:
    shown = [_shown(*each) for each in _operations(made)]
    tags = [(name, text, [each for each in shown if each["tag"] == name]) for name, text in TAGS.items()]
    schemas = {name: _fields(schema) for name, schema in made["components"]["schemas"].items()}
    return render(
        "docs.html", session=None, live="", path="/docs", inline=False, version=made["info"]["version"],
        about=DESCRIPTION, tags=tags, schemas=schemas,
    )  # fmt: skip


def _shown(path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    """An operation as the page shows it."""
    security = operation["security"]
    sent = operation.get("requestBody", {})
    body = sent.get("content", {}).get("application/json", {}).get("schema")
    answers = []
    for code, each in operation["responses"].items():
        kinds = [kind_of(content.get("schema", {})) for content in each.get("content", {}).values()]
        answers.append((code, each["description"], kinds[0] if kinds else ""))
    parameters = [
        (each["name"], each["in"], kind_of(each["schema"]), each["required"], each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    return {
        "id": operation["operationId"], "tag": operation["tags"][0], "method": method.upper(), "path": path,
        "about": operation["description"], "scope": security[0]["key"][0] if security else None,
        "parameters": parameters, "body": None if body is None else kind_of(body),
        "body_required": sent.get("required", False), "answers": answers,
    }  # fmt: skip


def _fields(schema: dict[str, Any]) -> list[tuple[str, str, bool, str]]:
    required = schema.get("required", ())
    return [
        (name, kind_of(field), name in required, field.get("description", ""))
        for name, field in schema.get("properties", {}).items()
    ]


def kind_of(schema: dict[str, Any]) -> str:
    """A schema in a few words; names of schemas begin with a capital.

    >>> kind_of({"anyOf": [{"type": "array", "items": {"$ref": "#/components/schemas/Arm"}}, {"type": "null"}]})
    'list of Arm or null'
    >>> kind_of({"type": "number", "minimum": 0, "maximum": 10})
    'number, 0 to 10'
    """
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[1])
    if "anyOf" in schema:
        return " or ".join(map(kind_of, schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        return " | ".join(map(str, schema.get("enum", [schema.get("const")])))
    kind = str(schema.get("type", "anything"))
    if kind == "array":
        return f"list of {kind_of(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{kind_of(schema['additionalProperties'])} by name"
    least, most = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    return kind if least is None or most is None else f"{kind}, {_limit(least)} to {_limit(most)}"


def _limit(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"
