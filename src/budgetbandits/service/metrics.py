"""What Prometheus reads: requests and refusals as this server counted them, money as the store has it now."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from budgetbandits.service.campaigns import MONEY, Campaigns
from budgetbandits.service.ledger import Status

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Metrics:
    """The counters of one server."""

    def __init__(self, campaigns: Campaigns) -> None:
        self._registry = CollectorRegistry()
        self.decisions = self._counter("decisions", "Decisions answered, repeated ones too.")
        self.feedback = self._counter("feedback", "Outcomes taken.")
        self.refusals = self._counter("refusals", "Decisions refused, by reason.", "reason")
        self.overruns = self._counter("overruns", "Outcomes that cost more than was held; each froze its campaign.")
        self.expired = self._counter("expired_holds", "Holds that nobody told of in time.")
        self.requests = self._counter("requests", "Requests, by route and status.", "route", "status")
        self.seconds = Histogram(
            "budgetbandits_request_seconds", "How long a request took.", ["route"], buckets=BUCKETS,
            registry=self._registry,
        )  # fmt: skip
        self._series: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._registry.register(_Money(campaigns))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"budgetbandits_{name}", text, labels, registry=self._registry)

    def page(self) -> bytes:
        return generate_latest(self._registry)

    def seen(self, scope: Message, status: int, begun: float) -> None:
        """A request has been answered."""
        route = getattr(scope.get("route"), "path", "none")
        if (route, status) not in self._series:
            self._series[route, status] = self.requests.labels(route, str(status)), self.seconds.labels(route)
        requests, seconds = self._series[route, status]
        requests.inc()
        seconds.observe(time.perf_counter() - begun)


class _Money(Collector):
    """Every campaign's money, read from the store when asked."""

    def __init__(self, campaigns: Campaigns) -> None:
        self._campaigns = campaigns

    def describe(self) -> list[Any]:
        return []  # nothing is read from the store before somebody asks

    def collect(self) -> Iterator[GaugeMetricFamily]:
        rows = self._campaigns.overview()
        for name in MONEY:
            gauge = GaugeMetricFamily(f"budgetbandits_campaign_{name}", f"A campaign's {name}.", labels=["campaign"])
            for row in rows:
                gauge.add_metric([row["name"]], row[name])
            yield gauge
        gauge = GaugeMetricFamily(
            "budgetbandits_campaign_status", "1 for the status a campaign has.", labels=["campaign", "status"]
        )  # fmt: skip
        for row in rows:
            for status in get_args(Status):
                gauge.add_metric([row["name"], status], float(row["status"] == status))
        yield gauge
