"""The demo of the service: its past is as good as if it had happened."""

import random

from budgetbandits.cli import demo_service
from budgetbandits.service.audit import verify
from budgetbandits.service.engine import Engine
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.stores.sqlite import SQLiteStore


def test_the_past_of_the_demo_passes_an_audit(tmp_path, monkeypatch):
    monkeypatch.setattr(demo_service, "PAST", 200)
    monkeypatch.setattr(demo_service, "AT_ONCE", 50)
    with SQLiteStore(tmp_path / "demo.db") as store:
        demo_service.live_through(Engine, store, random.Random(7))
        roll_up(store)
        assert verify(store, "models") == []
        row = Engine(store).describe("models")
        assert row["budget"] == 1200.0  # topped up on the way
        assert sum(arm["pulls"] for arm in row["arms"]) > 150
        assert 0.0 < row["spent"] < row["budget"]
        assert row["held"] == 0.0
