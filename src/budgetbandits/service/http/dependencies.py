"""What operators' routes need besides the request: the parts of the service, and a check of the key."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, get_type_hints

from fastapi import Depends, Header, Path, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Message

from budgetbandits.service.http.auth import actor, check_header
from budgetbandits.service.http.parts import Service
from budgetbandits.service.http.request_body import check_mistakes, check_no_nul, check_query, check_size
from budgetbandits.service.http.schemas import Body

LARGEST_WITHOUT = 1_000
"""Bytes of a body that is sent where none is asked for."""

CampaignPath = Annotated[str, Path(min_length=1, max_length=200, description="A campaign's name or id.")]

ArmPath = Annotated[str, Path(min_length=1, max_length=200, description="An arm's name.")]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$",
        description="Asked again under the same key, nothing is changed again.",
    ),
]  # fmt: skip


def service_of(request: Request) -> Service:
    """The service behind the application that got this request."""
    service: Service = request.app.state.service
    return service


ThisService = Annotated[Service, Depends(service_of)]


def _actor_of(request: Request) -> str:
    name: str = request.state.actor
    return name


Actor = Annotated[str, Depends(_actor_of)]
"""Who asks, as events name it."""


def _as_json(request: Request, content: bytes) -> Request:
    """The same request with this body, which is JSON whatever its Content-Type says, or if there is none."""
    headers = [each for each in request.scope["headers"] if each[0] != b"content-type"]

    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    scope = dict(request.scope)
    scope["headers"] = [*headers, (b"content-type", b"application/json")]
    return Request(scope, receive)


def guarded(scope: str) -> type[APIRoute]:
    """Routes that may be called with a key of this scope, for the campaign in their path if there is one.

    FastAPI reads and parses a body before it asks any dependency; whoever has no key, or sends what would take long to
    refuse, is refused before that.
    """

    class Guarded(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()
            body: type[Body] | None = get_type_hints(self.endpoint).get("body")
            known = [each.alias for each in self.dependant.query_params]

            async def check_first(request: Request) -> Response:
                header, campaign = request.headers.get("authorization", ""), request.path_params.get("campaign")
                client = request.scope.get("client")
                key = await check_header(service_of(request).keys, header, scope, campaign, client)
                request.state.actor = actor(key)
                check_query(request.scope["query_string"], known)
                content = await request.body()
                check_size(len(content), LARGEST_WITHOUT if body is None else body.most_bytes)
                check_no_nul(content)
                if body is not None:
                    check_mistakes(content, body)
                    request = _as_json(request, content)
                return await handle(request)

            return check_first

    return Guarded
