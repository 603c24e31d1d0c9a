"""Write a small store of this version as SQL text, for tests of later versions to migrate from.

    python tests/helpers/dump_store.py

Run it when a migration has been added: a test asks for a dump of the newest one. Dumps of released versions stay as
they are.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import tempfile
from pathlib import Path

from budgetbandits.errors import BudgetBanditsError
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.rollups import Refusals, roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.schema import migrations
from budgetbandits.service.stores.sqlite import SQLiteStore
from clock import Clock

FOLDER = Path(__file__).parents[1] / "service" / "stores" / "dumps"
BEGIN = 1_800_000_000.0

CAMPAIGNS = {
    "plain": {"policy": "bts", "budget": 20.0},
    "planned": {"policy": "bts-paced", "budget": 20.0, "horizon": 100, "propensity_draws": 100},
    "leased": {"policy": "bts", "budget": 20.0, "lease": 4.0, "lease_seconds": 60.0},
    "capped": {"policy": "kube", "budget": 20.0, "daily_cap": 5.0, "on_expire": "release"},
    "shared": {"policy": "bts", "budget": 20.0, "shared_budget": "all"},
}


def play(store: SQLiteStore) -> None:
    """Decisions that are open, settled, failed, voided, expired and beyond their caps, in every campaign."""
    clock, rng = Clock(BEGIN), random.Random(20)
    service = DecisionService(store, clock)
    service.shared_budgets.create("all", 10.0, "maker")
    for name, terms in CAMPAIGNS.items():
        service.create(name, terms["policy"], arms={"search": 1.0, "mail": 0.5}, actor="maker",
                       **{term: value for term, value in terms.items() if term != "policy"})  # fmt: skip
        said = {"segment": "code"} if name == "planned" else {}
        for number in range(12):
            clock.now += rng.choice([0.5, 5.0, 40.0])
            with contextlib.suppress(BudgetBanditsError):
                made = service.decide(name, f"{number}", **said).decision
                if number % 6 < 3:
                    service.feedback(made, reward=rng.random(), cost=rng.choice([0.1, 0.4]))
                elif number % 6 == 3:
                    service.feedback(made, failed=True, cost=0.05)
                elif number == 4:
                    service.void(made)
        clock.now += 4000.0
        service.expire_due()
        service.feedback(service.decide(name, "overrun", **said).decision, reward=1.0, cost=1.25)
        service.set_status(name, "active", actor="maker", key="resume")
        service.decide(name, "open")
    make_key(store, ["decide"], clock.now, actor="maker")
    refusals = Refusals()
    refusals.count("plain", "paused", clock.now)
    refusals.flush(store)
    roll_up(store)
    for name in CAMPAIGNS:
        service.feedback(service.decide(name, "later").decision, reward=0.5, cost=0.25)


def main() -> None:
    version = migrations("sqlite")[-1][0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "money.db"
        with SQLiteStore(path) as store:
            play(store)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("DELETE FROM heartbeat")  # which are long, and say nothing
            text = "\n".join([*connection.iterdump(), f"PRAGMA user_version = {version};", ""])
    FOLDER.joinpath(f"version_{version}.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
