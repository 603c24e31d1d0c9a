"""The whole service without HTTP: campaigns and decisions on one store."""

from __future__ import annotations

from budgetbandits.service.batches import Batches
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.clocks import Clock
from budgetbandits.service.decisions import Decisions
from budgetbandits.service.feedback import Feedback
from budgetbandits.service.learners import Learners
from budgetbandits.service.leases.leases import Leases
from budgetbandits.service.stores.contract import Store
from budgetbandits.service.tasks import Prefetch


class DecisionService:
    """The parts of the service on the same store, learners and leases, and their operations by name.

    campaigns  what operators do
    decisions  what workers ask for; ``batches``: many at once
    outcomes   what workers tell

    >>> import tempfile
    >>> from budgetbandits.service.stores.sqlite import SQLiteStore
    >>> with tempfile.TemporaryDirectory() as folder, SQLiteStore(folder + "/money.db") as store:
    ...     engine = Engine(store)
    ...     campaign = engine.create("ads", "bts", budget=5.0, arms={"search": 1.0, "mail": 0.5})
    ...     answer = engine.decide("ads", key="visitor 1")
    ...     engine.feedback(answer.decision, reward=1.0, cost=0.25)
    ...     engine.account("ads").spent
    250000
    """

    def __init__(self, store: Store, clock: Clock | None = None) -> None:
        """``clock`` is for whoever has another one than the store's, such as a test."""
        self._store, self._clock = store, clock
        self._learners = Learners()
        self._leases = leases = Leases(self._learners, clock)
        ahead = Prefetch(store)
        self.campaigns = campaigns = Campaigns(store, leases, clock)
        self.decisions = decisions = Decisions(store, leases, ahead, clock)
        self.batches = Batches(store, decisions, clock)
        self.outcomes = outcomes = Feedback(store, leases, ahead, clock)

        self.create, self.top_up, self.change_terms = campaigns.create, campaigns.top_up, campaigns.change_terms
        self.set_status, self.set_back = campaigns.set_status, campaigns.set_back
        self.add_arm, self.retire_arm = campaigns.add_arm, campaigns.retire_arm
        self.bring_back_arm = campaigns.bring_back_arm
        self.account, self.describe, self.totals = campaigns.account, campaigns.describe, campaigns.totals
        self.names, self.overview = campaigns.names, campaigns.overview
        self.decide, self.deciding = decisions.decide, decisions.deciding
        self.decide_many = self.batches.decide_many
        self.feedback, self.feedback_many = outcomes.feedback, outcomes.feedback_many
        self.telling, self.telling_many = outcomes.telling, outcomes.telling_many
        self.void, self.voiding, self.expire_due = outcomes.void, outcomes.voiding, outcomes.expire_due
