"""The whole service without HTTP: campaigns and decisions on one store."""

from __future__ import annotations

from functools import partial

from budgetbandits.service.backup import mark_restored
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.expiry import Expiry
from budgetbandits.service.feedback import Feedback
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.retention import Retention
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.shared_budgets.operations import SharedBudgets
from budgetbandits.service.stores.contract import Clock, Store


class DecisionService:
    """The parts of the service on the same store, sessions and leases, and their operations by name.

    campaigns  for operators
    decisions  for workers that ask, for one or many at once
    reports    for workers that report costs and rewards
    retention  moves what is old to an archive
    shared_budgets  budgets over several campaigns, for operators

    >>> import tempfile
    >>> from budgetbandits.service.stores.sqlite import SQLiteStore
    >>> with tempfile.TemporaryDirectory() as folder, SQLiteStore(folder + "/money.db") as store:
    ...     service = DecisionService(store)
    ...     campaign = service.create("ads", "bts", budget=5.0, arms={"search": 1.0, "mail": 0.5})
    ...     answer = service.decide("ads", key="visitor 1")
    ...     service.feedback(answer.decision, reward=1.0, cost=0.25)
    ...     service.account("ads").spent
    250000
    """

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        """``clock`` replaces the store's, in tests for example."""
        self._store, self._clock = store, clock
        self._sessions = SessionCache()
        self._leases = leases = Leases(self._sessions, clock)
        self.campaigns = campaigns = Campaigns(store, leases, clock)
        self.decisions = decisions = Decisions(store, leases, clock)
        self.reports = reports = Feedback(store, leases, clock)

        self.create, self.top_up, self.change_terms = campaigns.create, campaigns.top_up, campaigns.change_terms
        self.clone = campaigns.clone
        self.set_status, self.reset_clock = campaigns.set_status, campaigns.reset_clock
        self.add_arm, self.retire_arm = campaigns.add_arm, campaigns.retire_arm
        self.bring_back_arm = campaigns.bring_back_arm
        self.account, self.describe, self.totals = campaigns.account, campaigns.describe, campaigns.totals
        self.names, self.overview = campaigns.names, campaigns.overview
        self.standing, self.standings = campaigns.standing, campaigns.standings
        self.decide, self.decide_many = decisions.decide, decisions.decide_many
        self.decision_task = decisions.decision_task
        self.feedback, self.feedback_many = reports.feedback, reports.feedback_many
        self.feedback_task, self.feedback_many_task = reports.feedback_task, reports.feedback_many_task
        self.void, self.void_task = reports.void, reports.void_task
        self.expire_due = Expiry(store, leases, clock).expire_due
        self.retention = Retention(store, leases, clock)
        self.shared_budgets = SharedBudgets(store, clock)
        self.mark_restored = partial(mark_restored, store, leases, clock)
