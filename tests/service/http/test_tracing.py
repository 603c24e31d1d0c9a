"""Spans of requests and decisions, as OpenTelemetry's own exporters get them, and what the log says of them."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id
from structlog.testing import capture_logs

from budgetbandits.client import Client
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.http.tracing import Tracing
from called import Service
from memory_store import MemoryStore
from servers import admin_key, running

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
DECISIONS = "/v1/campaigns/{campaign}/decisions"


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def send(exporter):
    """A service that makes spans."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service = Service(MemoryStore(), tracing=Tracing(provider))
    service.engine.create("ads", "bts", 1.0, {"search": 1.0, "mail": 0.5})
    yield service
    provider.shutdown()


def test_a_decision_is_a_span_in_its_request_in_its_callers_trace(send, exporter):
    answer = send("POST", "/v1/campaigns/ads/decisions", {}, Idempotency_Key="1", traceparent=f"00-{TRACE}-{PARENT}-01")
    decision, request = exporter.get_finished_spans()
    assert (decision.name, request.name) == ("decide", f"POST {DECISIONS}")
    assert request.kind is SpanKind.SERVER
    assert format_trace_id(request.context.trace_id) == TRACE
    assert format_span_id(request.parent.span_id) == PARENT
    assert decision.parent.span_id == request.context.span_id
    assert dict(request.attributes) == {
        "http.request.method": "POST", "url.path": "/v1/campaigns/ads/decisions", "http.route": DECISIONS,
        "http.response.status_code": 201,
    }  # fmt: skip
    made = answer.json()
    assert dict(decision.attributes) == {
        "budgetbandits.campaign": "ads", "budgetbandits.decision": made["decision"], "budgetbandits.arm": made["arm"],
        "budgetbandits.hold": made["hold"], "budgetbandits.count": 1,
    }  # fmt: skip


def test_a_caller_without_a_trace_gets_a_new_one_and_an_unsampled_one_gets_none(send, exporter):
    send("GET", "/v1/campaigns/ads")
    (request,) = exporter.get_finished_spans()
    assert (request.name, request.parent) == ("GET /v1/campaigns/{campaign}", None)
    exporter.clear()
    send("GET", "/v1/campaigns/ads", traceparent=f"00-{TRACE}-{PARENT}-00")
    assert exporter.get_finished_spans() == ()


def test_a_refusal_is_no_error_and_a_bug_is_one(send, exporter, monkeypatch):
    for number in range(4):
        refused = send("POST", "/v1/campaigns/ads/decisions", {}, Idempotency_Key=str(number))
    assert refused.status_code == 409
    decision, request = exporter.get_finished_spans()[-2:]
    assert decision.attributes["budgetbandits.refusal"] == "blocked_by_holds"
    assert decision.status.status_code is request.status.status_code is StatusCode.UNSET
    exporter.clear()

    async def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(Decisions, "decide_in_loop", fail)
    with capture_logs():
        assert send("POST", "/v1/campaigns/ads/decisions", {}, Idempotency_Key="x").status_code == 500
    decision, request = exporter.get_finished_spans()
    assert (decision.status.status_code, decision.status.description) == (StatusCode.ERROR, "ZeroDivisionError")
    assert request.status.status_code is StatusCode.ERROR


def test_probes_pages_and_metrics_make_no_spans(send, exporter):
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/sign-in"):
        assert send("GET", path).status_code == 200
    assert exporter.get_finished_spans() == ()


def test_without_an_endpoint_nothing_is_imported(monkeypatch):
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED"):
        monkeypatch.delenv(name, raising=False)
    look = "import sys, budgetbandits.service.http.app; from budgetbandits.service.http.tracing import Tracing; "
    look += "assert Tracing.from_environment() is None; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert Tracing.from_environment() is None


def test_an_endpoint_without_the_extra_is_a_warning(monkeypatch):
    """The variable may be set for all programs of a host: the service starts all the same."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with capture_logs() as logs:
        assert Tracing.from_environment() is None
    assert logs[0]["event"] == "no traces"
    assert "budgetbandits[otel]" in logs[0]["remedy"]


def test_a_server_sends_its_spans_to_the_endpoint_and_logs_their_ids(tmp_path, monkeypatch):
    """A real server, configured by the environment alone; what it has not sent yet goes out when it stops."""
    bodies = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            """Nothing on the screen."""

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        with running(tmp_path) as (address, _), Client(address, admin_key(tmp_path)) as client:
            client.create("ads", 5.0, {"a": 1.0, "b": 1.0})
            client.decide("ads").settle(cost=0.5, reward=1.0)
        collector.shutdown()
    sent = b"".join(body for path, body in bodies if path == "/v1/traces")
    for words in (b"budgetbandits.arm", b"POST /v1/campaigns/{campaign}/decisions", b"decide"):
        assert words in sent
    lines = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines() if line.startswith("{")]
    (created,) = [line for line in lines if line["event"] == "campaign created"]
    assert bytes.fromhex(created["trace_id"]) in sent
    assert bytes.fromhex(created["span_id"]) in sent
