"""A row of the table of routes: what `serve` checks and calls, and what `document` describes.

A row's function gets a `CheckedRequest` and gives the answer, which is written as JSON. A function that is no coroutine
may take long: it runs in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel
from starlette.requests import Request

from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.feedback import Feedback
from budgetbandits.service.http.auth import KeyRing
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.schemas import RequestBody
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.http.tracing import Tracing
from budgetbandits.service.stores.contract import Store

Content = TypeVar("Content", bound="BaseModel | None")
"""Content of a request: a body, parameters of the query, or nothing."""


@dataclass(frozen=True)
class ServerState:
    """The parts of a running server that all routes and pages use."""

    campaigns: Campaigns
    decisions: Decisions
    reports: Feedback
    store: Store
    metrics: Metrics
    keys: KeyRing
    reads: LongReads
    tracing: Tracing | None = None


@dataclass(slots=True)  # frozen, it would take three times as long to make
class CheckedRequest(Generic[Content]):
    """A request that is allowed and well-formed.

    content   the body, or the parameters of the query
    actor     the caller, as events name it
    only      the id of the only campaign that the caller's key is for; None for all
    key       the idempotency key, if one was sent
    """

    server: ServerState
    request: Request
    content: Content
    actor: str = ""
    only: str | None = None
    key: str | None = None

    @property
    def path(self) -> dict[str, str]:
        """The names and ids in the path."""
        return self.request.path_params

    @property
    def campaign(self) -> str:
        """The campaign in the path, by its name or its id."""
        name: str = self.request.path_params["campaign"]
        return name


@dataclass(frozen=True)
class File:
    """An answer that is no JSON: a text or a file, of one of these media types."""

    description: str
    media_types: tuple[str, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    """Whole numbers in the head, and what they say."""


@dataclass(frozen=True)
class Route(Generic[Content]):
    """A route: its address, who may call it, what is sent, what is answered, and the function between the two.

    scope     of the key that it needs; None if it is open to all
    answer    the type of the answer: a class, or a list of one
    keyed     whether an Idempotency-Key must be sent, or may be
    decides   whether the budget may refuse it
    long      whether it may fill the disk
    """

    method: Literal["GET", "POST", "DELETE"]
    path: str
    scope: str | None
    function: Callable[[CheckedRequest[Content]], Any]
    answer: Any
    body: type[RequestBody] | None = None
    query: type[BaseModel] | None = None
    keyed: Literal["must", "may"] | None = None
    status: int = 200
    decides: bool = False
    long: bool = False

    @property
    def name(self) -> str:
        """The operation's id."""
        return self.function.__name__
