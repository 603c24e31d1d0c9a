"""The OpenAPI document, from which clients in other languages are generated, and the page ``/docs`` that shows it.

It is read off the table of routes: each row is an operation, and its classes are schemas, which Pydantic writes.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, to_json
from starlette.requests import Request
from starlette.responses import Response

from budgetbandits.answers import ProblemDetails
from budgetbandits.service.dashboard.rendering import html_response, render
from budgetbandits.service.http.problem_json import PROBLEM_TITLES
from budgetbandits.service.http.route import File, Route
from budgetbandits.service.http.serve import ROUTES
from budgetbandits.web.servers import root_path

PATHS = {
    "campaign": "A campaign's name or id.",
    "source": "A campaign's name or id.",
    "decision": "A decision's id.",
    "arm": "An arm's name.",
    "prefix": "The public part of the key.",
    "webhook": "A webhook's id.",
    "name": "A shared budget's name.",
}
"""Descriptions of the parameters of paths."""

NAME = {"type": "string", "minLength": 1, "maxLength": 200}
"""Schema of a name."""

KEYS = {
    "must": "New for each decision. A repeated request with the same key gets the same decision.",
    "may": "A repeated request with the same key changes nothing again.",
}
"""Description of the header Idempotency-Key."""

DESCRIPTION = (
    "Many workers, one budget, never a cent too much. Money is in the unit of each campaign, times are seconds since "
    "1970. Errors are problems of RFC 9457 whose detail says the remedy."
)
"""Description of the API."""

TAGS = {
    "decisions": "What workers call: ask for a decision, then report its cost and its reward.",
    "campaigns": "Create, read and change campaigns.",
    "shared-budgets": "One budget over several campaigns.",
    "records": "Decisions and events of a campaign, exported, and checked against each other.",
    "keys": "API keys.",
    "webhooks": "Addresses that are notified of changes.",
    "server": "Health and metrics.",
}
"""Descriptions of the groups of routes."""

SECURITY_SCHEME = {
    "type": "http", "scheme": "bearer", "bearerFormat": "bb_PREFIX_SECRET",
    "description": "An API key. Scopes are decide, feedback, read and admin, which includes the others.",
}  # fmt: skip

PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
"""Content of a problem."""

RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait, if that helps.", "schema": {"type": "integer"}}}
"""Header Retry-After."""

PROBLEM_RESPONSES: dict[int, dict[str, Any]] = {
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
"""Problems by their status."""


# --- the document ----------------------------------------------------------------------------------------------------

SCHEMAS = "#/components/schemas/"
"""Path of the schemas in the document."""


class Schemas(GenerateJsonSchema):
    """Schemas without defaults of null, which generators take for fields that are always there; in answers all are."""

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """The schema of a field, whose default is left out in answers and where it is null."""
        about = super().default_schema(schema)
        kept = self.mode == "validation" and about.get("default") is not None
        return {name: value for name, value in about.items() if name != "default" or kept}

    def field_is_required(self, field: Any, total: bool) -> bool:
        """Whether a field is required; every field of an answer is."""
        return self.mode == "serialization" or super().field_is_required(field, total)


@cache
def document() -> dict[str, Any]:
    """The document of all routes."""
    kinds: dict[tuple[str, str], Any] = {("answer", "ProblemDetails"): ProblemDetails}
    for route in ROUTES:
        kinds |= {} if route.body is None else {("body", route.name): route.body}
        kinds |= {} if isinstance(route.answer, File) else {("answer", route.name): route.answer}
    schemas, definitions = TypeAdapter.json_schemas(
        [
            (key, "validation" if key[0] == "body" else "serialization", TypeAdapter(kind))
            for key, kind in kinds.items()
        ],
        ref_template=SCHEMAS + "{model}",
        schema_generator=Schemas,
    )
    definitions["$defs"]["ProblemDetails"]["properties"]["title"]["enum"] = list(PROBLEM_TITLES)
    references = {key: schema for (key, _), schema in schemas.items()}
    paths: dict[str, Any] = {}
    for route in ROUTES:
        path = route.path.replace(":path}", "}")
        paths.setdefault(path, {})[route.method.lower()] = _operation(path, route, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "budgetbandits", "description": DESCRIPTION, "version": version("budgetbandits")},
        "paths": paths,
        "components": {"schemas": definitions["$defs"], "securitySchemes": {"key": SECURITY_SCHEME}},
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
    }


def _operation(path: str, route: Route[Any], references: dict[Any, Any]) -> dict[str, Any]:
    about = inspect.getdoc(route.function) or ""
    operation: dict[str, Any] = {
        "tags": [_tag(path, route.method)],
        # the first sentence, or its first part
        "summary": re.split(r"[:;.](?: |$)", about, maxsplit=1)[0], "description": about, "operationId": route.name,
        "security": [] if route.scope is None else [{"key": [route.scope]}],
    }  # fmt: skip
    if parameters := list(_parameters(path, route)):
        operation["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": references["body", route.name]}}
        operation["requestBody"] = {"content": content} | ({} if route.body.optional else {"required": True})
    problems = {str(code): PROBLEM_RESPONSES[code] for code in _problem_codes(route)}
    operation["responses"] = {str(route.status): _answer(route, references)} | problems
    return operation


def _parameters(path: str, route: Route[Any]) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": NAME, "description": PATHS[name]}
    if route.query is not None:
        for name, schema in route.query.model_json_schema(schema_generator=Schemas)["properties"].items():
            about = schema.pop("description")
            yield {"name": name, "in": "query", "required": False, "schema": schema, "description": about}
    if route.keyed is not None:
        required, about = route.keyed == "must", KEYS[route.keyed]
        yield {"name": "Idempotency-Key", "in": "header", "required": required, "schema": NAME, "description": about}


def _answer(route: Route[Any], references: dict[Any, Any]) -> dict[str, Any]:
    if not isinstance(route.answer, File):
        return {"description": "Done.", "content": {"application/json": {"schema": references["answer", route.name]}}}
    content = {kind: {"schema": {"type": "string"}} for kind in route.answer.media_types}
    headers = {
        name: {"description": about, "schema": {"type": "integer"}} for name, about in route.answer.headers.items()
    }
    return {"description": route.answer.description, "content": content} | ({"headers": headers} if headers else {})


def _tag(path: str, method: str) -> str:
    parts = path.strip("/").split("/")
    if parts[0] != "v1":
        return "server"
    if parts[1] in ("keys", "webhooks", "shared-budgets"):
        return parts[1]
    if {"decisions", "feedback"} & set(parts) and method == "POST":
        return "decisions"
    return "records" if parts[-1] in ("decisions", "{decision}", "events", "export", "verify") else "campaigns"


def _problem_codes(route: Route[Any]) -> list[int]:
    """The statuses of the problems that a route may answer with."""
    codes = {503} if route.path != "/healthz" else set[int]()
    if route.scope is not None:
        codes |= {401, 403, 422, 429}
        codes |= {409, 411, 413} if route.method != "GET" else set()
        # a campaign, decision, arm or key may be in the path, in the body or a cursor
        cursor = route.query is not None and "after" in route.query.model_fields
        codes |= {404} if "{" in route.path or route.body is not None or cursor else set()
    codes |= {402} if route.decides else set()
    codes |= {507} if route.long else set()
    return sorted(codes)


class OpenApiDocument:
    """The document as a route, open to all: made when it is first asked for, and kept."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[bytes, str, str]] = {}
        """Documents by the path below which they are published, each with its tag and the page for people."""

    async def _get(self) -> tuple[bytes, str, str]:
        path = root_path.get()
        if path not in self._made:
            self._made[path] = await asyncio.to_thread(self._make, path)
        return self._made[path]

    def _make(self, path: str) -> tuple[bytes, str, str]:
        api = document()
        content = to_json(api | ({"servers": [{"url": path}]} if path else {}))
        return content, f'"{hashlib.sha256(content).hexdigest()[:16]}"', _page(api)

    async def show(self, request: Request) -> Response:
        """Answer with the document, or with 304."""
        content, tag, _ = await self._get()
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        tags = [tag_sent.strip().removeprefix("W/") for tag_sent in request.headers.get("if-none-match", "").split(",")]
        if tag in tags or tags == ["*"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type="application/json", headers=headers)

    async def show_page(self, _: Request) -> Response:
        """The same as a page for people; it needs no script and nothing from elsewhere."""
        return html_response((await self._get())[2])


# --- the page --------------------------------------------------------------------------------------------------------


def _page(content: dict[str, Any]) -> str:
    shown = [
        _shown(path, method, operation)
        for path, operations in content["paths"].items()
        for method, operation in operations.items()
    ]
    tags = [(name, text, [operation for operation in shown if operation["tag"] == name]) for name, text in TAGS.items()]
    schemas = {name: _fields(schema) for name, schema in content["components"]["schemas"].items()}
    return render(
        "docs.html", session=None, live="", path="/docs", inline=False, version=content["info"]["version"],
        about=DESCRIPTION, tags=tags, schemas=schemas,
    )  # fmt: skip


def _shown(path: str, method: str, operation: dict[str, Any]) -> dict[str, Any]:
    """An operation as the page shows it."""
    security = operation["security"]
    sent = operation.get("requestBody", {})
    body = sent.get("content", {}).get("application/json", {}).get("schema")
    answers = []
    for code, response in operation["responses"].items():
        kinds = [kind_of(content.get("schema", {})) for content in response.get("content", {}).values()]
        answers.append((code, response["description"], kinds[0] if kinds else ""))
    parameters = [
        (
            parameter["name"],
            parameter["in"],
            kind_of(parameter["schema"]),
            parameter["required"],
            parameter.get("description", ""),
        )
        for parameter in operation.get("parameters", ())
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
