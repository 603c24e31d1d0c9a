"""What the OpenAPI document says of a route that reads its request itself."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel


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
