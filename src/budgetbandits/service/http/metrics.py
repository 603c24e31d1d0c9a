"""Prometheus metrics: requests and refusals as this server counted them, money as the store has it now."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.ledger import Status
from budgetbandits.service.rollups import Refusals
from budgetbandits.terms import MONEY

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics(Collector):
    """The counters of one server: plain numbers, each changed by one thread alone, which need no locks."""

    def __init__(self, campaigns: Campaigns) -> None:
        self.decisions = self.feedback = self.failures = self.overruns = self.expired = 0
        self.refusals: Counter[str] = Counter()
        self.refused = Refusals()
        """The same by campaign, for the store."""
        self._requests: Counter[tuple[str, int]] = Counter()
        self._delays: dict[str, _Delays] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._registry.register(_Money(campaigns))

    def page(self) -> bytes:
        return generate_latest(self._registry)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests[route, status] += 1
        if route not in self._delays:
            self._delays[route] = _Delays()
        self._delays[route].add(seconds)

    def collect(self) -> Iterator[Metric]:
        yield _count("decisions", "Decisions answered, repeated ones included.", self.decisions)
        yield _count("feedback", "Outcomes accepted.", self.feedback)
        yield _count("failures", "Decisions reported as failed.", self.failures)
        yield _count("overruns", "Costs beyond the hold or the budget; each froze its campaign.", self.overruns)
        yield _count("expired_holds", "Holds that expired without feedback.", self.expired)
        refusals = _count("refusals", "Decisions refused, by reason.", labels=["reason"])
        for reason, count in list(self.refusals.items()):  # a list: other threads go on counting
            refusals.add_metric([reason], count)
        yield refusals
        requests = _count("requests", "Requests, by route and status.", labels=["route", "status"])
        for (route, status), count in list(self._requests.items()):
            requests.add_metric([route, str(status)], count)
        yield requests
        seconds = HistogramMetricFamily(
            "budgetbandits_request_duration_seconds", "Time to answer a request.", labels=["route"]
        )  # fmt: skip
        for route, delays in list(self._delays.items()):
            seconds.add_metric([route], delays.cumulated(), delays.total)
        yield seconds


class _Delays:
    """How many requests took how long."""

    def __init__(self) -> None:
        self.total = 0.0
        self._counts = [0] * (len(BUCKETS) + 1)

    def add(self, seconds: float) -> None:
        self.total += seconds
        self._counts[bisect_left(BUCKETS, seconds)] += 1

    def cumulated(self) -> list[tuple[str, float]]:
        names = [*(str(bound) for bound in BUCKETS), "+Inf"]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))


def _count(name: str, text: str, value: int | None = None, labels: list[str] | None = None) -> CounterMetricFamily:
    return CounterMetricFamily(f"budgetbandits_{name}", text, value, labels)


class _Money(Collector):
    """Every campaign's money, read from the store when asked."""

    def __init__(self, campaigns: Campaigns) -> None:
        self._campaigns = campaigns

    def describe(self) -> list[Any]:
        return []  # read nothing from the store at registration

    def collect(self) -> Iterator[GaugeMetricFamily]:
        rows = self._campaigns.overview()
        about = {name: f"A campaign's {name}." for name in MONEY}
        about["arms_down"] = "Arms that are not asked because they failed too often in a row."
        for name, text in about.items():
            gauge = GaugeMetricFamily(f"budgetbandits_campaign_{name}", text, labels=["campaign"])
            for row in rows:
                gauge.add_metric([row["name"]], row[name])
            yield gauge
        yield GaugeMetricFamily(
            "budgetbandits_damaged_campaigns", "Campaigns whose rows cannot be read.", len(self._campaigns.damaged())
        )
        gauge = GaugeMetricFamily(
            "budgetbandits_campaign_status", "1 for the status a campaign has, else 0.", labels=["campaign", "status"]
        )  # fmt: skip
        for row in rows:
            for status in get_args(Status):
                gauge.add_metric([row["name"], status], float(row["status"] == status))
        yield gauge
