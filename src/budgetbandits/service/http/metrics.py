"""Prometheus metrics: what this server has counted, its process, its store, and its campaigns (`campaign_metrics`)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import accumulate
from platform import python_version

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from budgetbandits.service.http.campaign_metrics import CampaignMetrics, CampaignSeries
from budgetbandits.service.http.workers import Worker
from budgetbandits.service.rollups import Refusals
from budgetbandits.service.stores.contract import Store

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper ends of the buckets of delays, in seconds."""


class Metrics(Collector):
    """The counters of one process: plain numbers, each changed by one thread alone, which need no locks.

    ``worker`` says which one it is, if a server has several.
    """

    def __init__(self, store: Store, series: CampaignSeries | None = None, worker: Worker | None = None) -> None:
        self._store, self._worker = store, worker
        self._campaigns = CampaignMetrics(store, series or CampaignSeries())
        self.decisions = self.feedback = self.failures = self.overruns = self.expired = 0
        self.refusals: Counter[str] = Counter()
        self.refused = Refusals()
        """The same by campaign, for the store."""
        self._requests: Counter[tuple[str, int]] = Counter()
        self._delays: dict[str, _Delays] = {}
        self.notifications: Counter[str] = Counter()
        """Notifications of webhooks: accepted, and tries that were refused."""
        self.task_failures: Counter[str] = Counter()
        """Failures of background tasks, by name."""
        self.task_ends: dict[str, float] = {}
        """Times at which background tasks have last succeeded, in seconds since 1970."""
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def page(self) -> bytes:
        """The counters of all processes of this server, and the campaigns."""
        worker = self._worker
        own = self.own() if worker is None else joined(worker.peers.answers(worker.number, self.own))
        return own + self._campaigns.page()

    def own(self) -> bytes:
        """The counters of this process."""
        return generate_latest(self._registry)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests[route, status] += 1
        if route not in self._delays:
            self._delays[route] = _Delays()
        self._delays[route].add(seconds)

    def collect(self) -> Iterator[Metric]:
        """The metrics of this process."""
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
        yield from self._tasks()
        yield from self._load()

    def _tasks(self) -> Iterator[Metric]:
        """The metrics of background tasks: expiring holds, rollups."""
        failures = _count("background_failures", "Background tasks that failed.", labels=["task"])
        ends = _gauge("background_success_timestamp_seconds", "When a background task last succeeded.", ["task"])
        for task, count in list(self.task_failures.items()):
            failures.add_metric([task], count)
        for task, at in list(self.task_ends.items()):
            ends.add_metric([task], at)
        notifications = _count("notifications", "Notifications sent to webhooks, by result.", labels=["result"])
        for result in ("accepted", "refused"):
            notifications.add_metric([result], self.notifications[result])
        yield from (failures, ends, notifications)

    def _load(self) -> Iterator[Metric]:
        build = InfoMetricFamily("budgetbandits_build", "The program that runs.")
        build.add_metric([], {"version": version("budgetbandits"), "python": python_version(),
                              "store": type(self._store).__name__.removesuffix("Store").lower()})  # fmt: skip
        yield build
        connections = _gauge("store_connections", "Connections to the store.", ["pool", "state"])
        waiting = _gauge("store_waiting", "Work that waits for the store.", ["pool"])
        for pool in self._store.pools():
            connections.add_metric([pool.name, "idle"], pool.idle)
            connections.add_metric([pool.name, "busy"], pool.busy)
            waiting.add_metric([pool.name], pool.waiting)
        yield from (connections, waiting)


class _Families(Collector):
    """Metrics that are at hand."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def joined(pages: Mapping[int, bytes]) -> bytes:
    """The metrics of several processes as one page: each sample says by its label ``worker`` whose it is.

    Not as sums: a process that is started again counts from 0, which Prometheus can only see series by series.
    """
    families: dict[str, Metric] = {}
    for number, page in pages.items():
        for sent in text_string_to_metric_families(page.decode()):
            family = families.setdefault(sent.name, Metric(sent.name, sent.documentation, sent.type))
            family.samples += [s._replace(labels={**s.labels, "worker": str(number)}) for s in sent.samples]
    registry = CollectorRegistry()
    registry.register(_Families(list(families.values())))
    return generate_latest(registry)


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


def _gauge(name: str, text: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"budgetbandits_{name}", text, labels=labels)
