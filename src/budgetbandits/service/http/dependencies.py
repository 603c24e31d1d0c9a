"""What routes need besides the request: the parts of the service, and a check of the key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.http.auth import KeyRing, check_header
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


def service_of(request: Request) -> Service:
    """The service behind the application that got this request."""
    service: Service = request.app.state.service
    return service


ThisService = Annotated[Service, Depends(service_of)]


def needs(scope: str) -> Any:
    """The route may be called with a key of this scope, for its campaign if it has one."""

    async def check(request: Request) -> None:
        header, campaign = request.headers.get("authorization", ""), request.path_params.get("campaign")
        await check_header(service_of(request).keys, header, scope, campaign)

    return Depends(check)
