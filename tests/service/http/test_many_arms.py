"""Campaigns of very many arms: what takes long because of them is not done by the event loop."""

import asyncio
import threading

import pytest

from budgetbandits.errors import TooManySegments
from budgetbandits.service import session_cache
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.request import checked_options
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from memory_store import MemoryStore

ARMS = {"a": 1.0, "b": 0.5, "c": 0.5}


def in_loop(monkeypatch, owner, name):
    """For each call of this function from now on, whether the event loop's thread made it."""
    calls, function, loop = [], getattr(owner, name), threading.current_thread()

    def noted(*arguments, **more):
        calls.append(threading.current_thread() is loop)
        return function(*arguments, **more)

    monkeypatch.setattr(owner, name, noted)
    return calls


def test_arms_are_read_beside_the_event_loop(opener, monkeypatch):
    with opener() as store:
        DecisionService(store).create("ads", "bts", 100.0, ARMS)
    for ask in (
        lambda engine: engine.decisions.scheduler.perform("ads", engine.decision_task("ads", "one")),
        lambda engine: engine.decisions.decide_many_in_loop("ads", "many", 3),
        lambda engine: engine.decisions.scheduler.perform(
            "ads", engine.feedback_many_task([FeedbackReport("nothing", 1.0, 0.1)], "ads")
        ),
    ):
        with opener() as store:
            engine = DecisionService(store)
            read = in_loop(monkeypatch, session_cache, "read_session")
            asyncio.run(ask(engine))
            assert read == [False]
            monkeypatch.undo()
            assert verify(store, "ads") == []


def test_a_segment_is_opened_beside_the_event_loop(opener, monkeypatch):
    """It writes the row of every arm; on SQLite later decisions of the segment are made by the loop, as ever. On
    PostgreSQL a writer's thread makes them all."""
    with opener() as store:
        engine = DecisionService(store)
        engine.create("models", "bts-paced", 100.0, ARMS)
        made = in_loop(monkeypatch, engine.decisions, "make")

        async def ask():
            for number, segment in enumerate(["code", "code", "mail", None, "mail"]):
                request = checked_options(segment=segment)
                await engine.decisions.decide_in_loop("models", f"{number}", None, request)
            await engine.decisions.decide_many_in_loop("models", "many", 2, None, checked_options(segment="chat"))

        asyncio.run(ask())
        loop_decides = isinstance(store, SQLiteStore)
        assert made[:5] == [False, loop_decides, False, loop_decides, loop_decides]
        assert made[5] is False
        assert verify(store, "models") == []


def test_arms_times_segments_are_bounded(monkeypatch):
    monkeypatch.setattr("budgetbandits.service.campaign_session.CELLS_MAX", 6)
    engine = DecisionService(MemoryStore())
    engine.create("models", "bts-paced", 100.0, ARMS)
    for number, segment in enumerate(["code", "mail", "code"]):
        engine.decide("models", f"{number}", segment=segment)
    with pytest.raises(TooManySegments, match="would be number 3 among 3 arms; arms times segments are 6 at most"):
        engine.decide("models", "one more", segment="chat")
    with pytest.raises(TooManySegments, match="4, with 2 segments and 0 features; arms times both are 6 at most"):
        engine.add_arm("models", "one more", 0.5)
    engine.decide("models", "none")
    engine.create("plain", "bts-paced", 100.0, {f"arm {number}": 1.0 for number in range(6)})
    engine.add_arm("plain", "one more", 0.5)  # which has no segments
