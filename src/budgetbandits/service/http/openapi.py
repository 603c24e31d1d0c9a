"""The OpenAPI document, put into bytes once, and what it says of a route that reads its request itself."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from functools import cached_property
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response


class Document:
    """The document as a route, for anybody: it is made when it is first asked for, and sent as it is from then on."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make

    @cached_property
    def content(self) -> bytes:
        return to_json(self._make())

    @cached_property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'

    async def __call__(self, request: Request) -> Response:
        tag = self.tag if "tag" in vars(self) else await asyncio.to_thread(lambda: self.tag)
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
        if tag in known or known == ["*"]:
            return Response(status_code=304, headers=headers)
        return Response(self.content, media_type="application/json", headers=headers)


def description(path: str, body: type[BaseModel] | None, keyed: bool) -> dict[str, Any]:
    """The parameters and the body of such a route."""
    text = {"type": "string", "minLength": 1, "maxLength": 200}
    names = re.findall(r"{(\w+)}", path)
    parameters = [{"name": n, "in": "path", "required": True, "schema": text} for n in names]
    if keyed:
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": True, "schema": text})
    extra: dict[str, Any] = {"parameters": parameters}
    if body is not None:
        schema = body.model_json_schema()
        content = {"application/json": {"schema": _inlined(schema, schema.pop("$defs", {}))}}
        extra["requestBody"] = {"required": True, "content": content}
    return extra


def _inlined(schema: Any, definitions: dict[str, Any]) -> Any:
    """A schema that refers to nothing outside itself."""
    if isinstance(schema, list):
        return [_inlined(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    return {name: _inlined(each, definitions) for name, each in schema.items()}
