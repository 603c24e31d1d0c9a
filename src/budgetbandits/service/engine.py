"""The whole service without HTTP: campaigns and decisions on one store."""

from __future__ import annotations

from budgetbandits.service.batches import Batches
from budgetbandits.service.campaigns import Campaigns
from budgetbandits.service.clocks import Clock
from budgetbandits.service.learners import Learners
from budgetbandits.service.leases import Leases
from budgetbandits.service.stores.base import Store


class Engine(Campaigns, Batches):
    """The operations on campaigns and those on decisions, with the same learners and leases.

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
        leases = Leases(Learners(), clock)
        Campaigns.__init__(self, store, leases, clock)
        Batches.__init__(self, store, leases, clock)
