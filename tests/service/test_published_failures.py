"""Failures that others have published, each as something this service must not do: docs/explanation/ledger.md."""

import math
import threading
from dataclasses import replace
from itertools import product

import pytest

from budgetbandits.errors import BadParameter, BadState, HoldRefused, NotFound
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.service import DecisionService
from clock import Clock
from stores import in_threads

ARMS = {"small": 1.0, "large": 1.0}


def at_once(count, ask):
    """What so many threads got that asked at the same moment: True for a decision, else the reason of the refusal."""
    together = threading.Barrier(count)

    def run(number):
        together.wait()
        try:
            ask(number)
        except HoldRefused as refused:
            return refused.reason
        return True

    return in_threads(run, range(count))


def test_34732_requests_at_the_same_time_do_not_pass_on_the_same_money(store):
    engine = DecisionService(store)
    engine.create("session", "bts", budget=3.0, arms=ARMS)
    got = at_once(12, lambda number: engine.decide("session", str(number)))
    assert got.count(True) == 3
    assert got.count("blocked_by_holds") == 9
    account = engine.account("session")
    assert account.spent + account.held == account.budget


def test_40095_first_requests_of_somebody_unknown_do_not_pass_a_budget_that_is_not_loaded_yet(opener):
    """Four servers that have never seen the campaign are asked at once, and somebody asks for one that is not there."""
    with opener() as first, opener() as second, opener() as third, opener() as fourth:
        DecisionService(first).create("customer", "bts", budget=1.0, arms=ARMS)
        engines = [DecisionService(each) for each in (first, second, third, fourth)]
        got = at_once(8, lambda number: engines[number % 4].decide("customer", str(number)))
        assert sorted(got, key=str) == [True, *["blocked_by_holds"] * 7]
        with pytest.raises(NotFound):
            engines[1].decide("somebody", "one")
        assert verify(first, "customer") == []


def test_36926_what_is_refused_under_load_is_what_the_books_say(store):
    """Costs are far below what is held. Nobody is refused who fits, and in the end the books are what was told."""
    engine = DecisionService(store)
    engine.create("key", "bts", budget=16.0, arms=ARMS)

    def work(number):
        for turn in range(10):
            engine.feedback(engine.decide("key", f"{number}-{turn}").decision, cost=0.1, reward=1.0)

    assert at_once(8, work) == [True] * 8  # 8 of spending at most, 8 held at most
    shown = engine.describe("key")
    assert (shown.spent, shown.held, shown.left) == (8.0, 0.0, 8.0)
    for number in range(8):
        engine.decide("key", f"last {number}")
    with pytest.raises(HoldRefused, match="0 left"):
        engine.decide("key", "one more")


def test_27735_money_held_for_workers_that_are_gone_comes_back(opener):
    """Three workers decide and are never heard of again; then the server is restarted, too."""
    clock = Clock(1e9)
    with opener() as store:
        engine = DecisionService(store, clock)
        engine.create("key", "bts", budget=3.0, arms=ARMS, hold_seconds=60.0, on_expire="release")
        for number in range(3):
            engine.decide("key", f"gone {number}")
    with opener() as store:
        engine = DecisionService(store, clock)
        with pytest.raises(HoldRefused, match="open holds") as refused:
            engine.decide("key", "too early")
        assert refused.value.retry_after is not None
        clock.now += 61.0
        assert engine.expire_due() == {"key": 3}
        shown = engine.describe("key")
        assert (shown.spent, shown.held, shown.left) == (0.0, 0.0, 3.0)
        for number in range(3):
            engine.decide("key", f"new {number}")
        assert verify(store, "key") == []


def test_35524_nothing_is_chosen_whose_price_is_unknown(store):
    engine = DecisionService(store)
    engine.create("team", "bts", budget=3.0, arms=ARMS)
    for cap in (0.0, math.nan, math.inf, -1.0, None):
        with pytest.raises(BadParameter):
            engine.create("other", "bts", budget=3.0, arms={"priced": 1.0, "unpriced": cap})
        with pytest.raises(BadParameter):
            engine.add_arm("team", "unpriced", cap)


def test_35524_a_cost_that_nobody_tells_is_not_nothing(store):
    clock = Clock(1e9)
    engine = DecisionService(store, clock)
    engine.create("team", "bts", budget=3.0, arms=ARMS, hold_seconds=60.0)
    made = engine.decide("team", "one")
    assert engine.account("team").held == 1_000_000  # before it was answered
    engine.feedback(made.decision, reward=1.0)  # an answer came, without its price
    clock.now += 61.0
    engine.expire_due()
    assert engine.account("team").spent == 1_000_000


def test_35590_feedback_of_one_kind_alone_can_be_read_back(opener):
    policies, rewards = ("bts", "thompson", "kl-ucb"), (0.0, 1.0)
    for restarts in range(2):
        with opener() as store:
            engine = DecisionService(store)
            for policy, reward in product(policies, rewards):
                name = f"{policy} {reward}"
                if restarts == 0:
                    engine.create(name, policy, budget=30.0, arms=ARMS)
                for number in range(5):
                    made = engine.decide(name, f"{restarts} {number}")
                    engine.feedback(made.decision, cost=1.0, reward=reward)
                assert verify(store, name) == []


def test_35590_what_cannot_have_been_learned_is_not_chosen_by(opener):
    """A row that was damaged gives an error with a name and a remedy; other campaigns go on, and the audit finds it."""
    values = (0, -1, math.nan, "none", None)
    with opener() as store:
        engine = DecisionService(store)
        for value in (*values, "other"):
            engine.create(f"{value}", "bts", budget=30.0, arms=ARMS)
        for value in values:
            row = store.read(lambda tx, value=value: tx.campaign(f"{value}"))
            arm = store.read(lambda tx, row=row: tx.arms(row.id))[1]
            damaged = replace(arm, learned=arm.learned | {"statistics": [1.0, 1.0, 1.0, value]})
            store.write(lambda tx, damaged=damaged: tx.save_arms([damaged]))
    with opener() as store:
        engine = DecisionService(store)
        for value in values:
            with pytest.raises(BadState, match=rf"'{value}'.*verify.*restore"):
                engine.decide(f"{value}", "one")
            assert engine.account(f"{value}").held == 0
            [difference] = verify(store, f"{value}")
            assert list(ARMS)[1] in difference
        engine.decide("other", "one")
