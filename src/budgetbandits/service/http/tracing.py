"""Traces by OpenTelemetry: a span for each request of the API, and in it one for its decision.

They are made if the extra ``otel`` is installed and an endpoint is set by the variables that every program with
OpenTelemetry reads (OTEL_EXPORTER_OTLP_ENDPOINT, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT). A request that comes with a
W3C ``traceparent`` continues its trace. Without an endpoint nothing is imported, and a request takes no longer.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from budgetbandits.answers import DecisionAnswer
from budgetbandits.errors import HoldRefused, install

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Environment variables that name an endpoint."""

log = structlog.get_logger("budgetbandits")


class Tracing:
    """Spans of requests and decisions, sent where the provider says."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = provider.get_tracer("budgetbandits", version("budgetbandits"))
        self._propagator = TraceContextTextMapPropagator()

    @classmethod
    def from_environment(cls) -> Tracing | None:
        """The tracing that the environment asks for; None without an endpoint, or without the extra, which is
        logged."""
        if not any(map(os.environ.get, ENDPOINTS)) or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            log.warning("no traces", error=str(error), remedy=f"{install('otel')}, or unset the endpoint")
            return None
        name = os.environ.get("OTEL_SERVICE_NAME") or "budgetbandits"
        provider = TracerProvider(resource=Resource.create({"service.name": name}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    @contextmanager
    def request(self, scope: Scope) -> Iterator[Span]:
        """The span of a request, in the trace of its caller; log entries have its ids."""
        from opentelemetry.trace import SpanKind, format_span_id, format_trace_id

        names = (b"traceparent", b"tracestate")
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in names}
        attributes = {"http.request.method": scope["method"], "url.path": scope["path"]}
        with self._tracer.start_as_current_span(
            scope["method"], self._propagator.extract(headers), SpanKind.SERVER, attributes
        ) as span:
            ids = span.get_span_context()
            structlog.contextvars.bind_contextvars(
                trace_id=format_trace_id(ids.trace_id), span_id=format_span_id(ids.span_id)
            )
            yield span

    async def decided(self, campaign: str, deciding: Awaitable[list[DecisionAnswer]]) -> list[DecisionAnswer]:
        """The decisions that this makes, in a span of their own; a refusal is its attribute, and no error."""
        from opentelemetry.trace import StatusCode

        with self._tracer.start_as_current_span(
            "decide", attributes={"budgetbandits.campaign": campaign}, record_exception=False,
            set_status_on_exception=False,
        ) as span:  # fmt: skip
            try:
                answer = await deciding
            except HoldRefused as refused:
                span.set_attribute("budgetbandits.refusal", refused.reason)
                raise
            except Exception as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise
            span.set_attribute("budgetbandits.count", len(answer))
            for name in ("decision", "arm", "hold"):
                span.set_attribute(f"budgetbandits.{name}", getattr(answer[0], name))
            return answer


class RequestTracing:
    """Middleware: a span for each request of the API. Pages, probes and metrics have none."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self.app = app
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or "/v1/" not in scope["path"]:
            await self.app(scope, receive, send)
            return
        from opentelemetry.trace import StatusCode

        with self._tracing.request(scope) as span:

            async def note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute("http.response.status_code", message["status"])
                    if message["status"] >= 500:
                        span.set_status(StatusCode.ERROR)
                await send(message)

            try:
                await self.app(scope, receive, note)
            finally:
                route: Any = getattr(scope.get("route"), "path", "")
                if route:
                    span.update_name(f"{scope['method']} {route}")
                    span.set_attribute("http.route", route)
