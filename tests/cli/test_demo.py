"""The demo of the service: its past is as good as if it had happened, and it goes on whatever is done on the page."""

import random

import pytest

from budgetbandits.cli import demo
from budgetbandits.client import Client
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.rollups import roll_up
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from called import Service
from memory_store import MemoryStore


def test_the_past_of_the_demo_passes_an_audit(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "PAST_DECISIONS", 200)
    monkeypatch.setattr(demo, "PER_TRANSACTION", 50)
    with SQLiteStore(tmp_path / "demo.db") as store:
        demo.live_through(store, random.Random(7))
        roll_up(store)
        assert verify(store, "models") == []
        row = DecisionService(store).describe("models")
        assert row.budget == 1200.0  # topped up on the way
        assert sum(arm.pulls for arm in row.arms) > 150
        assert 0.0 < row.spent < row.budget
        assert row.held == 0.0


@pytest.fixture
def client():
    with Service(MemoryStore()).client() as client:
        client.create("launch", budget=60.0, arms=demo.CAPS, hold_seconds=120.0)
        yield client


def test_the_demo_goes_on_whatever_is_done_on_the_page(client, caplog):
    """Each thing that can be done is followed by decisions and costs, of arms and campaigns that it has never seen."""
    spender, now = demo.Spender(client, random.Random(7)), [0.0]

    def can_continue(campaign, turns=10):
        before = client.campaign(campaign)
        for _ in range(turns):
            now[0] += 7.0  # so that whatever was decided in a turn is told in the next
            spender.turn(now[0])
        after = client.campaign(campaign)
        assert after.held <= max(arm.cost_cap for arm in after.arms)
        return after.spent > before.spent

    assert can_continue("launch")
    client.add_arm("launch", "newcomer", 0.9)
    for arm in demo.CAPS:  # so that the newcomer answers, whatever is drawn
        client.retire_arm("launch", arm)
    assert can_continue("launch")
    assert next(arm.pulls for arm in client.campaign("launch").arms if arm.name == "newcomer") > 0
    client.pause("launch")
    spender.turn(now[0] + 7.0)
    assert not can_continue("launch")
    client.resume("launch")
    client.top_up("launch", 5.0)
    client.change_terms("launch", daily_cap=50.0)
    assert can_continue("launch")
    client.create("mine", budget=3.0, arms={"a": 0.004, "b": 0.5}, reward_max=0.5)
    assert can_continue("mine")
    assert client.campaign("mine").requests_answered > 0
    client.close_campaign("launch")
    assert can_continue("mine")
    assert caplog.text == ""


def test_a_mistake_does_not_end_the_demo(client, monkeypatch, caplog):
    spender = demo.Spender(client, random.Random(7))
    with monkeypatch.context() as odd:
        odd.setattr(Client, "decide", lambda *_: 1 / 0)
        spender.turn(0.0)
    assert "ZeroDivisionError" in caplog.text
    spender.turn(7.0)
    spender.turn(14.0)
    assert client.campaign("launch").spent > 0.0


@pytest.mark.parametrize("arm", ["cedar-8b", "never seen", ""])
def test_what_an_arm_costs_is_never_more_than_is_held(arm):
    rng = random.Random(1)
    for hold in (0.000001, 0.5, 1000.0):
        for _ in range(20):
            reward, cost = demo.outcome(arm, hold, rng)
            assert reward in (0.0, 1.0)
            assert 0.0 < cost <= hold
