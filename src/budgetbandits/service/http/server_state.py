"""The parts of a running server, as the app makes them and all routes use them (so it imports neither)."""

from __future__ import annotations

from dataclasses import dataclass

from budgetbandits.service.batches import Batches
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.feedback import Feedback
from budgetbandits.service.http.auth import KeyRing
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.stores.contract import Store


@dataclass(frozen=True)
class ServerState:
    """The decision service, its store, and what belongs to HTTP: counters, keys and long reads."""

    campaigns: Campaigns
    decisions: Decisions
    batches: Batches
    outcomes: Feedback
    store: Store
    metrics: Metrics
    keys: KeyRing
    reads: LongReads
