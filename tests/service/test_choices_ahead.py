"""Choices that are made before their transaction: the same ones, from what is committed, and away from others."""

import asyncio
import threading
import time
from functools import partial

import pytest

from budgetbandits.errors import HoldRefused, ServerBusy
from budgetbandits.service import choices_ahead, scheduler
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.campaign_session import AheadChoice, CampaignSession
from budgetbandits.service.choice_process import answer
from budgetbandits.service.choice_processes import ChoiceProcesses
from budgetbandits.service.choices_ahead import ChoicesAhead
from budgetbandits.service.decisions import SLICE_MAX
from budgetbandits.service.feedback import FeedbackReport
from budgetbandits.service.lanes import Lanes
from budgetbandits.service.ledger import to_micros
from budgetbandits.service.request import checked_options
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_cache import SessionCache
from budgetbandits.service.stores import group_commit
from budgetbandits.service.stores.contract import Scope

ARMS = {"small": 0.25, "large": 1.0}


class ProcessHere:
    """What the process does that makes choices, in this one. ``meanwhile`` is called after each answer."""

    def __init__(self, store):
        self.store, self.sessions, self.asked = store, SessionCache(), 0
        self.meanwhile = lambda: None

    async def choices(self, inputs, count):
        self.asked += 1
        made = answer(self.store, self.sessions, inputs, count, 0.05)
        assert not isinstance(made, dict), made
        self.meanwhile()
        await asyncio.sleep(0)
        return ChoicesAhead(inputs, [AheadChoice(*each) for each in made or ()])

    def close(self):
        pass


@pytest.fixture
def ahead(store, engine, monkeypatch):
    """The process, where every choice of a policy that draws takes long."""
    monkeypatch.setattr(choices_ahead, "AT_ONCE_MAX", -1.0)
    engine.decisions.scheduler.processes = ProcessHere(store)
    return engine.decisions.scheduler.processes


async def pair(engine, campaign, key, **request):
    [made] = await engine.decisions.decide_in_loop(campaign, key, None, checked_options(**request))
    report = FeedbackReport(made.decision, float(made.arm == "large"), made.hold / 2)
    await engine.decisions.scheduler.perform(campaign, engine.feedback_task(report, campaign))
    return made


REQUESTS = {
    "bts": [{}, {"exclude": ["large"]}, {"holds": {"large": 0.5}}],
    "bts-paced": [{}, {"segment": "code"}, {"segment": "mail", "arms": ["small", "large"]}],
    "bts-linear": [{"features": {"x": x}, "segment": segment} for x, segment in ((0.5, "code"), (1.0, "mail"))],
}
TERMS = {"bts": {}, "bts-paced": {"horizon": 100}, "bts-linear": {"horizon": 100, "features": ["x"]}}


@pytest.mark.parametrize("policy", REQUESTS)
def test_long_choices_are_made_ahead_and_the_audit_makes_the_same(policy, store, engine, ahead):
    campaign = engine.create("ads", policy, 40.0, ARMS, propensity_draws=5, **TERMS[policy])

    async def play():
        requests = REQUESTS[policy]
        for number in range(6):
            await pair(engine, "ads", f"one {number}", **requests[number % len(requests)])
        await asyncio.gather(*(
            pair(engine, (campaign, "ads")[number % 2], f"{number}", **requests[number % len(requests)])
            for number in range(12)
        ))  # fmt: skip
        options = checked_options(**requests[0])
        many = await engine.decisions.decide_many_in_loop("ads", "many", 5, None, options)
        again = await engine.decisions.decide_many_in_loop("ads", "many", 5, None, options)
        assert many == again

    asyncio.run(play())
    assert ahead.asked >= 18
    events = [event for event in store.read(lambda tx: tx.events(campaign)) if event.kind == "decided"]
    assert len(events) == 23
    if policy != "bts":
        assert all(0.0 < event.propensity <= 1.0 for event in events)
    assert verify(store, campaign) == []


def test_a_choice_from_what_has_changed_since_is_made_again(store, engine, ahead, clock):
    """Another server learns, tops up and adds an arm while the choice is being made."""
    campaign = engine.create("ads", "bts-paced", 40.0, ARMS, horizon=50, propensity_draws=5)
    other, changes = DecisionService(store, clock), []
    first = other.decide(campaign, "first")
    changes += [
        lambda: other.feedback(first.decision, cost=0.25, reward=1.0), lambda: other.top_up(campaign, 5.0),
        lambda: other.add_arm(campaign, "middle", 0.5), lambda: other.change_terms(campaign, {"horizon": 60}),
    ]  # fmt: skip
    ahead.meanwhile = lambda: changes.pop(0)() if changes else None
    asyncio.run(pair(engine, campaign, "second"))
    assert ahead.asked == 5
    assert verify(store, campaign) == []


def test_money_that_another_has_taken_since_is_not_held_twice(store, engine, ahead, clock):
    campaign = engine.create("ads", "bts", 1.0, ARMS, propensity_draws=5)
    other = DecisionService(store, clock)
    spent = [lambda: other.decide_many(campaign, "all", 4, arms=["small"])]
    ahead.meanwhile = lambda: spent.pop()() if spent else None
    with pytest.raises(HoldRefused):
        asyncio.run(pair(engine, campaign, "mine"))
    assert engine.account(campaign).held == to_micros(1.0)
    assert verify(store, campaign) == []


def test_a_campaign_that_always_changes_meanwhile_is_busy(store, engine, ahead, monkeypatch):
    campaign = engine.create("ads", "bts", 40.0, ARMS, propensity_draws=5)
    monkeypatch.setattr(scheduler, "AHEAD_SECONDS_MAX", 0.0)
    ahead.meanwhile = lambda: engine.top_up(campaign, 1.0)
    with pytest.raises(ServerBusy, match="changes more often than its choices can be made"):
        asyncio.run(pair(engine, campaign, "never"))
    assert engine.account(campaign).held == 0


def test_who_waits_for_a_turn_is_not_told_that_the_campaign_changes(store, engine, ahead, monkeypatch):
    """A turn takes long where many ask; the time for a choice begins with it."""
    campaign = engine.create("ads", "bts", 40.0, ARMS, propensity_draws=5)
    engine.decide(campaign, "first")
    monkeypatch.setattr(scheduler, "AHEAD_SECONDS_MAX", 0.5)

    async def play():
        async with engine.decisions.scheduler.lanes.turn(campaign):
            waits = asyncio.ensure_future(engine.decisions.decide_in_loop(campaign, "waits"))
            await asyncio.sleep(0.6)
        return await waits

    assert len(asyncio.run(play())) == 1


def test_feedback_waits_for_the_choice_that_it_would_undo(store, engine, ahead):
    campaign = engine.create("ads", "bts", 40.0, ARMS, propensity_draws=5)

    async def play():
        made = [await pair(engine, campaign, f"{number}") for number in range(2)]
        del made
        opened = [(await engine.decisions.decide_in_loop(campaign, f"open {number}"))[0] for number in range(4)]
        before = ahead.asked
        reports = [FeedbackReport(each.decision, 1.0, 0.1) for each in opened]
        tell = [engine.decisions.scheduler.perform(campaign, engine.feedback_task(each, campaign)) for each in reports]
        ask = [engine.decisions.decide_in_loop(campaign, f"new {number}") for number in range(4)]
        await asyncio.gather(*(each for both in zip(ask, tell, strict=True) for each in both))
        return ahead.asked - before

    assert asyncio.run(play()) == 4  # none was made in vain
    assert verify(store, campaign) == []


@pytest.mark.attack
def test_long_choices_are_not_made_by_the_process_that_serves(store, engine, monkeypatch):
    """By another one, which is started for it, and again when it was killed."""
    chosen = []
    choose = CampaignSession.choose_arm
    monkeypatch.setattr(CampaignSession, "choose_arm", lambda *of, **more: chosen.append(1) or choose(*of, **more))
    campaign = engine.create("ads", "bts-paced", 40.0, ARMS, propensity_draws=10_000)
    processes = engine.decisions.scheduler.processes = ChoiceProcesses(store.address)
    asyncio.run(pair(engine, campaign, "one"))
    [process] = processes._free
    process._process.kill()
    process._process.wait()
    with pytest.raises(ServerBusy, match="has ended; ask again"):
        asyncio.run(pair(engine, campaign, "two"))
    asyncio.run(pair(engine, campaign, "two"))
    engine.decisions.scheduler.close()
    assert not chosen
    assert engine.describe(campaign).requests_answered == 2
    assert verify(store, campaign) == []


def test_a_batch_is_made_and_told_in_slices_between_which_others_are_served(store, engine):
    for name in ("ads", "other"):
        engine.create(name, "bts", 500.0, ARMS)
    perform, sizes = store.perform, []

    async def counted(work, scope):
        before = engine.account("ads").held + engine.account("ads").spent
        found = await perform(work, scope)
        sizes.append((before, len(scope.keys) + len(scope.decisions)))
        return found

    store.perform = counted

    async def play():
        batch = asyncio.ensure_future(engine.decisions.decide_many_in_loop("ads", "many", 200))
        served = 0
        while not batch.done():
            await engine.decisions.decide_in_loop("other", f"{served}")
            served += 1
        return await batch, served

    made, served = asyncio.run(play())
    assert len(made) == 200
    assert served >= 5
    assert max(size for _, size in sizes) <= SLICE_MAX


def test_a_slice_of_feedback_ends_after_a_moment(engine, monkeypatch):
    campaign = engine.create("ads", "bts", 500.0, ARMS)
    made = engine.decide_many(campaign, "many", 40)
    reports = [FeedbackReport(each.decision, 1.0, 0.1) for each in made]
    assert len(engine._store.write(*engine.reports.feedback_slice_task(reports, campaign))) <= 32
    monkeypatch.setattr("budgetbandits.service.feedback.SLICE_SECONDS", 0.0)
    assert len(engine._store.write(*engine.reports.feedback_slice_task(reports[32:], campaign))) == 1


def test_lanes_take_turns_and_end(engine):
    lanes, order = Lanes(), []

    async def one(number):
        async with lanes.turn("ads"):
            order.append(number)
            await asyncio.sleep(0)
            order.append(number)

    async def all_of_them():
        await asyncio.gather(*(one(number) for number in range(3)))

    asyncio.run(all_of_them())
    assert order == [0, 0, 1, 1, 2, 2]
    assert "ads" not in lanes


def test_a_process_that_does_not_answer_is_given_up(store, engine, monkeypatch):
    monkeypatch.setattr("budgetbandits.service.choice_processes.PROGRAM", ("sleep", "60"))
    monkeypatch.setattr("budgetbandits.service.choice_processes.ANSWER_SECONDS_MAX", 0.05)
    campaign = engine.create("ads", "bts", 40.0, {f"{number}": 1.0 for number in range(20)}, propensity_draws=5000)
    begun = time.monotonic()
    with pytest.raises(ServerBusy, match="has ended; ask again"):
        asyncio.run(pair(engine, campaign, "one"))
    engine.decisions.scheduler.close()
    assert time.monotonic() - begun < 30.0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("long-choices")]


def test_where_no_process_can_be_started_the_server_is_busy(store, engine, monkeypatch):
    monkeypatch.setattr("budgetbandits.service.choice_processes.PROGRAM", ("/nonexistent/program",))
    campaign = engine.create("ads", "bts", 40.0, {f"{number}": 1.0 for number in range(20)}, propensity_draws=5000)
    with pytest.raises(ServerBusy, match="no process can be started"):
        asyncio.run(pair(engine, campaign, "one"))
    engine.decisions.scheduler.close()


def test_a_campaign_whose_work_takes_long_leaves_others_their_turns(store, engine, monkeypatch):
    """Much slow work of one campaign waits when another's comes: that one's is next, or nearly."""
    monkeypatch.setattr("budgetbandits.service.stores.sqlite.GROUP_SECONDS", group_commit.GROUP_SECONDS)
    for name in ("ads", "other"):
        engine.create(name, "bts", 500.0, ARMS)
    order = []

    def slowly(name, tx):
        time.sleep(0.003)
        return tx.campaign(name).id

    async def one(name):
        await store.perform(partial(slowly, name), Scope(name))
        order.append(name)

    async def play():
        for name in ("ads", "other"):  # whose ids are known from then on
            await one(name)
        await asyncio.gather(*(one("ads") for _ in range(50)), one("other"))

    asyncio.run(play())
    assert len(order) == 53
    assert order[2:].index("other") < 25
