"""What operators' routes need besides the request: the parts of the service, and a check of the key."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.http.auth import KeyRing, check_header
from budgetbandits.service.http.long_reads import LongReads
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.stores.base import Store


@dataclass(frozen=True)
class Service:
    """The parts of the service; each application has them as ``state.service``."""

    campaigns: Campaigns
    decisions: Decisions
    store: Store
    metrics: Metrics
    keys: KeyRing
    reads: LongReads


def service_of(request: Request) -> Service:
    """The service behind the application that got this request."""
    service: Service = request.app.state.service
    return service


ThisService = Annotated[Service, Depends(service_of)]


def guarded(scope: str) -> type[APIRoute]:
    """Routes that may be called with a key of this scope, for the campaign in their path if there is one.

    FastAPI reads and parses a body before it asks any dependency; whoever has no key is refused before that.
    """

    class Guarded(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def check_first(request: Request) -> Response:
                header, campaign = request.headers.get("authorization", ""), request.path_params.get("campaign")
                await check_header(service_of(request).keys, header, scope, campaign)
                return await handle(request)

            return check_first

    return Guarded
