"""What routes work with."""

from __future__ import annotations

from dataclasses import dataclass

from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.feedback import Outcomes
from budgetbandits.service.http.auth import KeyRing
from budgetbandits.service.http.metrics import Metrics
from budgetbandits.service.http.subprocess_reads import LongReads
from budgetbandits.service.stores.contract import Store


@dataclass(frozen=True)
class Service:
    """The parts of the service."""

    campaigns: Campaigns
    decisions: Decisions
    outcomes: Outcomes
    store: Store
    metrics: Metrics
    keys: KeyRing
    reads: LongReads
