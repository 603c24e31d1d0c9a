"""The client: answers lost on the way, refusals worth waiting for, blocks left in every way, and with asyncio."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import warnings
from email.utils import formatdate
from fractions import Fraction

import httpx
import numpy as np
import polars
import pytest

from budgetbandits.client import AsyncClient, Client
from budgetbandits.client import retries as module
from budgetbandits.errors import (
    AlreadyResolved,
    BadFeature,
    BadParameter,
    Conflict,
    HoldRefused,
    MissingKnowledge,
    NoArmLeft,
    NotAllowed,
    NotFound,
    RewardOutOfRange,
    ServiceError,
    ServiceUnreachable,
    StoreError,
    UnknownArm,
)
from called import Service
from memory_store import MemoryStore

ARMS = {"search": 1.0, "mail": 0.5}


class Line(Service):
    """A line to a service in this process, on which requests or answers get lost when told to."""

    def __init__(self):
        super().__init__(MemoryStore())
        self.trouble, self.requests, self.slept = [], [], []

    async def handle_async_request(self, request):
        trouble = self.trouble.pop(0) if self.trouble else None
        self.requests.append(request)
        if trouble == "lost request":
            raise httpx.ConnectError("nobody is there")
        answer = await super().handle_async_request(request)
        if trouble == "lost answer":
            raise httpx.ReadTimeout("nothing came back")
        if isinstance(trouble, int):
            return httpx.Response(trouble, text="a proxy says no")
        return answer

    def async_client(self):
        return AsyncClient("http://service", self.admin, transport=self)


@pytest.fixture
def line(monkeypatch):
    line = Line()
    monkeypatch.setattr(module.time, "sleep", line.slept.append)
    monkeypatch.setattr(module, "clock", lambda: sum(line.slept))  # nothing else takes time
    return line


@pytest.fixture
def client(line):
    with line.client() as client:
        client.create("ads", 10.0, ARMS, hold_seconds=60.0)
        line.requests.clear()
        yield client


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"arms": 7}, "arms is 7; pass a list of names"),
        ({"arms": "search"}, "put a single name into a list"),
        ({"arms": [7]}, "arms has 7, which is no name; pass a list"),
        ({"exclude": 0.5}, "exclude is 0.5; pass a list of names"),
        ({"exclude": ["mail", None]}, "exclude has None, which is no name"),
        ({"prices": 0.5}, "prices is 0.5; map the names of arms to amounts"),
        ({"prices": [0.5]}, r"prices is \[0.5\]; map"),
        ({"prices": {"search": "cheap"}}, "prices: 'search' is 'cheap'; use a positive number"),
        ({"prices": {"search": float("nan")}}, "prices: 'search' is nan; use a positive number"),
        ({"holds": "search"}, "holds is 'search'; map"),
        ({"holds": 0}, "holds is 0; map"),
        ({"holds": {3: 0.5}}, "holds has 3, which is no name"),
        ({"holds": {"search": True}}, "holds: 'search' is True; use a positive number"),
        ({"segment": 5}, "segment is 5; name it by a text"),
        ({"key": 5}, "key is 5; use 1 to 200"),
        ({"context": 5}, "context is 5; pass a dictionary"),
    ],
)
def test_a_request_that_is_said_wrongly_is_refused_by_name(client, line, request_, says):
    for decide in (lambda **said: client.decide("ads", **said), lambda **said: client.decide_many("ads", 2, **said)):
        with pytest.raises(BadParameter, match=says):
            decide(**request_)
    assert line.requests == []  # nothing was sent


def test_numbers_are_taken_as_an_allocation_takes_them(client, line):
    """Python's and NumPy's, whole or not, and True for a reward of 1; what is sent is a number of JSON."""
    for reward in (1, 1.0, True, np.True_, np.int64(1), np.uint8(1), np.float32(1), np.float64(1), Fraction(1)):
        assert client.decide("ads").settle(reward=reward, cost=0.1) == 0.0
        assert json.loads(line.requests[-1].content)["reward"] == 1.0
        assert b"true" not in line.requests[-1].content
    many = client.decide_many("ads", np.int64(2))
    outcomes = [{"decision": each.id, "reward": np.bool_(False), "cost": np.float32(0.25)} for each in many]
    *told, wrong = client.feedback_many("ads", [*outcomes, {"decision": client.decide("ads").id, "reward": 7.0}])
    assert [each.problem for each in told] == [None, None]
    assert isinstance(wrong.problem, RewardOutOfRange)
    client.top_up("ads", np.float32(2.5))
    client.create("other", np.int64(9), {"a": np.float32(1), "b": np.int8(1)}, hold_seconds=np.int32(60))
    client.change_terms("other", hold_seconds=np.float32(30))
    with pytest.raises(BadParameter):
        client.feedback("ads", client.decide("ads").id, reward="1", cost=0.1)


def test_campaigns_are_asked_for_in_pages(client, line, monkeypatch):
    monkeypatch.setattr("budgetbandits.client.calls.PAGE", 2)
    for number in range(4):
        client.create(f"campaign {number}", 10.0, ARMS)
    line.requests.clear()
    assert sorted(each.name for each in client.campaigns()) == ["ads", *(f"campaign {number}" for number in range(4))]
    assert len(line.requests) == 3


def test_what_says_nothing_and_what_numpy_says(client, line):
    plain = client.decide("ads", key="one")
    assert client.decide("ads", key="one", exclude=None, arms=None, prices=None, holds={}) == plain
    assert client.decide("ads", holds={"search": np.float32(0.25), "mail": np.int64(0) + 0.25}).hold == 0.25
    assert client.feedback("ads", plain.id, cost=np.float32(0.25), reward=np.int64(1)) == 0.0
    for outcomes in (5, "one", {"decision": plain.id}, [plain.id]):
        with pytest.raises(BadParameter, match="dictionaries with decision, reward and cost"):
            client.feedback_many("ads", outcomes)
    with pytest.raises(BadParameter, match="arms is 5; map the names of arms to amounts"):
        client.create("other", 10.0, 5)


def test_a_decision_from_beginning_to_end(client):
    with client.decide("ads") as d:
        assert d.hold == ARMS[d.arm]
        assert d.settle(cost=0.25) == 0.0
        d.settle(reward=1.0)
    info = client.campaign("ads")
    assert (info.spent, info.held, sum(arm.pulls for arm in info.arms)) == (0.25, 0.0, 1)


@pytest.mark.parametrize("trouble", [["lost answer"], ["lost request"], [503, "lost answer", 502], [504] * 5])
def test_an_answer_that_is_lost_is_asked_for_again_and_nothing_is_done_twice(client, line, trouble):
    line.trouble = list(trouble)
    d = client.decide("ads")
    keys = {request.headers["idempotency-key"] for request in line.requests}
    assert (len(keys), len(line.requests)) == (1, len(trouble) + 1)
    assert client.campaign("ads").held == d.hold
    line.trouble = list(trouble)
    d.settle(reward=1.0, cost=0.25)
    line.trouble = list(trouble)
    client.void("ads", client.decide("ads").id)
    assert client.campaign("ads").spent == 0.25
    assert client.verify("ads") == []
    assert all(0.05 <= pause <= 5.0 for pause in line.slept)


def test_it_gives_up_in_the_end(client, line):
    line.trouble = ["lost request"] * 100
    with pytest.raises(
        ServiceUnreachable, match=r"nobody is there; see whether it runs.*; repeat the call with key='one'"
    ):
        client.decide("ads", key="one")
    assert 25.0 < sum(line.slept) < 30.0
    line.trouble, before = [503] * 100, sum(line.slept)
    with pytest.raises(ServiceError, match="503"):
        client.decide("ads")
    assert 25.0 < sum(line.slept) - before < 30.0
    line.trouble = []
    line.store.breaks = "before"
    with pytest.raises(StoreError, match="nothing was decided"):
        client.decide("ads")


def test_a_closed_client_says_so(client, line):
    client.close()
    with pytest.raises(ServiceUnreachable, match="make a new one"):
        client.decide("ads")
    assert line.requests == []


def test_what_operators_change_is_sent_again_and_changed_once(client, line):
    def lost():
        line.trouble = ["lost answer", 503, "lost request"]
        return client

    assert lost().top_up("ads", 5.0).budget == 15.0
    assert [arm.name for arm in lost().add_arm("ads", "tv & more", 0.5).arms] == ["search", "mail", "tv & more"]
    assert not lost().retire_arm("ads", "tv & more").arms[-1].active
    assert lost().bring_back_arm("ads", "tv & more").arms[-1].active
    assert lost().change_terms("ads", daily_cap=4.0, hold_seconds=9.0).daily_cap == 4.0
    assert lost().change_terms("ads", daily_cap=None).daily_cap is None
    changed = lost().change_terms("ads", caps={"search": np.float32(2.5)}, budget=20, policy="kube", name="Ads")
    assert (changed.arms[0].cost_cap, changed.budget, changed.policy, changed.name) == (2.5, 20.0, "kube", "Ads")
    assert lost().pause("ads").status == "paused"
    assert lost().resume("ads").status == "active"
    past = {"mail": (4, 2, np.float32(0.5))}
    made = lost().create("other", 10.0, ARMS, history=past, key="made once")
    assert client.change_terms("other", tags=("zoo", "a")).tags == ("a", "zoo")
    assert client.change_terms("other", tags=None).tags is None
    assert client.create("other", 10.0, ARMS, history=past, key="made once").id == made.id
    copied = lost().clone("other", "third", budget=5)
    assert (copied.budget, [arm.pulls for arm in copied.arms]) == (5.0, [0, 4])
    assert [arm.pulls for arm in client.clone("other", "fourth", learned=False).arms] == [0, 0]
    assert lost().close_campaign("ads").status == "closed"
    ads = client.campaign("ads").id
    kinds = [event.kind for event in line.store.events if event.campaign == ads]
    assert kinds == [
        "created", "topped up", "arm added", "arm retired", "arm brought back", "terms changed", "terms changed",
        "terms changed", "paused", "active", "closed",
    ]  # fmt: skip


def test_a_key_for_two_changes_is_a_conflict(client):
    client.top_up("ads", 5.0, key="monday")
    assert client.top_up("ads", 5.0, key="monday").budget == 15.0
    for other in (lambda: client.top_up("ads", 6.0, key="monday"), lambda: client.pause("ads", key="monday")):
        with pytest.raises(Conflict, match="another change"):
            other()
    client.create("two", 10.0, ARMS, key="monday")  # another campaign's key
    with pytest.raises(Conflict, match="already"):
        client.create("two", 10.0, ARMS)
    with pytest.raises(Conflict, match="another change"):
        client.create("two", 11.0, ARMS, key="monday")


def test_a_change_of_which_the_store_lost_the_answer(client, line):
    """What was booked is booked, though the store could not say so."""
    line.store.breaks = "after"
    with pytest.raises(StoreError):
        client.top_up("ads", 5.0, key="monday")
    assert client.create("two", 10.0, ARMS).name == "two"
    line.store.breaks = None
    assert client.top_up("ads", 5.0, key="monday").budget == 15.0


def test_a_restart_is_outlasted(client, line):
    """Ten seconds to end what has begun, and five to start: no try finds anybody meanwhile."""

    def sleep(pause):
        line.slept.append(pause)
        line.trouble = ["lost request"] if sum(line.slept) < 15.0 else []

    module.time.sleep = sleep
    line.trouble = ["lost request"]
    assert client.decide("ads").hold


def says(status, after):
    """A service that says this once, and then answers."""
    answers = [httpx.Response(status, headers={"Retry-After": after}, text="no")]

    def handle(_):
        return answers.pop() if answers else httpx.Response(200, json=[])

    return httpx.MockTransport(handle)


@pytest.mark.parametrize("status", [429, 503])
def test_the_service_says_when_to_ask_again(line, status):
    assert Client("http://x", "k", transport=says(status, "7")).campaigns() == []
    assert line.slept == [7.0]
    date = formatdate(time.time() + 9, usegmt=True)
    assert Client("http://x", "k", transport=says(status, date)).campaigns() == []
    assert 7.0 < line.slept[-1] < 9.5
    for odd in ("soon", "-5", "nan", formatdate(0, usegmt=True)):
        assert Client("http://x", "k", transport=says(status, odd)).campaigns() == []
        assert line.slept[-1] <= 0.1
    with pytest.raises(ServiceError):  # later than anybody waits
        Client("http://x", "k", transport=says(status, "31")).campaigns()
    with pytest.raises(ServiceError):
        Client("http://x", "k", transport=says(status, "7"), deadline=5.0).campaigns()


def test_a_try_takes_no_longer_than_the_call_may(line):
    timeouts = []

    def handle(request):
        timeouts.append(request.extensions["timeout"]["read"])
        line.slept.append(4.0)
        raise httpx.ReadTimeout("nothing")

    with pytest.raises(ServiceUnreachable):
        Client("http://x", "k", timeout=10.0, deadline=12.0, transport=httpx.MockTransport(handle)).campaigns()
    assert timeouts[0] == 10.0
    assert timeouts[1] < 8.0
    assert timeouts[-1] <= 4.0


def test_refusals(client, line):
    d = client.decide(client.create("small", 1.0, {"a": 1.0, "b": 1.0}).id)
    with pytest.raises(HoldRefused) as refused:
        client.decide("small")
    assert (refused.value.reason, refused.value.retry_after) == ("blocked_by_holds", 1.0)
    with pytest.raises(HoldRefused):
        client.decide("small", wait=0.5)  # not long enough
    assert line.slept == []

    def tell(_pause):
        d.settle(cost=0.0, reward=0.0)

    module.time.sleep = tell
    assert client.decide("small", wait=5.0).hold == 1.0
    client.pause("small")
    with pytest.raises(HoldRefused) as refused:
        client.decide("small", wait=5.0)
    assert refused.value.reason == "paused"


def test_a_block_that_is_left_by_an_exception_keeps_its_hold(client):
    with pytest.raises(ZeroDivisionError), client.decide("ads") as d:
        raise ZeroDivisionError
    assert client.campaign("ads").held == d.hold
    d.void()
    assert client.campaign("ads").held == 0.0


@pytest.mark.parametrize(("on_error", "failures", "held"), [("fail", 1, 0.0), ("void", 0, 0.0), ("leave", 0, 1.0)])
def test_a_block_says_what_an_exception_means(client, on_error, failures, held):
    with pytest.raises(ZeroDivisionError), client.decide("ads", on_error=on_error, arms=["search"]) as d:
        raise ZeroDivisionError
    info = client.campaign("ads")
    assert (d.resolved, info.held, info.spent) == (on_error != "leave", held, 0.0)
    assert [arm.failures for arm in info.arms] == [failures, 0]
    for error in (KeyboardInterrupt, asyncio.CancelledError):  # these say nothing of the call
        with pytest.raises(error), client.decide("ads", on_error=on_error) as d:
            raise error
        assert not d.resolved
        d.void()
    with contextlib.suppress(ZeroDivisionError), client.decide("ads", on_error=on_error) as d:
        d.settle(cost=0.25)
        raise ZeroDivisionError
    assert client.campaign("ads").spent == 0.25


def test_an_exception_that_cannot_be_reported_is_raised_with_a_note(client, line):
    client._deadline = 0.1
    d = client.decide("ads", on_error="void")
    line.trouble = ["lost request"] * 1000
    with pytest.raises(ZeroDivisionError) as caught, d:
        raise ZeroDivisionError
    assert caught.value.__notes__[0].startswith(f"decision {d.id} could not be reported (void)")
    assert not d.resolved


def test_a_function_that_decides(client, line):
    @client.decides("ads", on_error="void", arms=["mail"], metadata={"by": "test"})
    def pull(decision, value, *, cost=0.0):
        decision.settle(reward=1 / value, cost=cost)
        return decision.arm

    assert pull(1, cost=0.25) == "mail"
    with pytest.raises(ZeroDivisionError):
        pull(0)
    info = client.campaign("ads")
    assert (pull.__name__, info.spent, info.held) == ("pull", 0.25, 0.0)
    assert json.loads(line.requests[0].content)["metadata"] == {"by": "test"}

    async def run():
        async with line.async_client() as other:

            @other.decides("ads", on_error="fail", arms=["mail"])
            async def pull_async(decision, value):
                await decision.settle(reward=1 / value, cost=0.25)

            await pull_async(1)
            with pytest.raises(ZeroDivisionError):
                await pull_async(0)
            with pytest.raises(BadParameter, match="is not async; decorate it by a Client"):
                other.decides("ads")(pull)
            with pytest.raises(BadParameter, match="is async; decorate it by an AsyncClient"):
                client.decides("ads")(pull_async)
            for decides in (client.decides, other.decides):
                with pytest.raises(BadParameter, match="on_error is 'ignore'; use leave, fail, void"):
                    decides("ads", on_error="ignore")

    asyncio.run(run())
    info = client.campaign("ads")
    assert (info.spent, info.held, info.arms[1].failures) == (0.5, 0.0, 1)
    with pytest.raises(BadParameter, match="on_error is 'ignore'"):
        client.decide("ads", on_error="ignore")
    assert client.campaign("ads").held == 0.0


def test_a_block_that_is_left_while_its_money_is_held_warns(client):
    with pytest.warns(RuntimeWarning, match=r"without settle\(cost=…\) or void\(\)"), client.decide("ads"):
        pass
    with pytest.warns(RuntimeWarning, match="its hold stays"), client.decide("ads") as d:
        d.settle(reward=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.decide("ads")  # not in a block: told later


def test_errors_have_their_names(client):
    d = client.decide("ads", key="one", context={"visitor": 1})
    with pytest.raises(Conflict, match="another context"):
        client.decide("ads", key="one")
    with pytest.raises(NotFound, match="no campaign"):
        client.decide("nothing")
    with pytest.raises(RewardOutOfRange):
        d.settle(reward=2.0)
    with pytest.raises(UnknownArm, match="no arm"):
        client.retire_arm("ads", "radio")
    with pytest.raises(BadParameter, match="count"):
        client.decide_many("ads", 0)
    with pytest.raises(BadParameter, match="pass a dictionary"):
        client.decide("ads", context=[1])
    with pytest.raises(BadParameter, match="begins with http"):
        Client("localhost:8000", "bb_1_2")
    d.settle(cost=0.1)
    with pytest.raises(AlreadyResolved):
        d.void()
    stranger = Client("http://service", "bb_00000000_wrong", transport=client._http._transport)
    with pytest.raises(NotAllowed, match="no such key"):
        stranger.decide("ads")


@pytest.mark.parametrize("key", ["", " x", "x\n", "ü", "y" * 201])
def test_keys_that_no_header_can_carry(client, line, key):
    for ask in (client.decide, lambda *given, **more: client.decide_many(*given, 2, **more)):
        with pytest.raises(BadParameter, match="printable ASCII"):
            ask("ads", key=key)
    assert line.requests == []


def test_numbers_that_json_does_not_know(client):
    d = client.decide("ads")
    for wrong in ({"reward": float("nan")}, {"cost": float("inf")}):
        with pytest.raises(BadParameter, match="finite"):
            d.settle(**wrong)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, text="<html>"), httpx.Response(200, json={"other": 1}), httpx.Response(200, json=[1]),
        httpx.Response(409, json={"status": 409}), httpx.Response(500, text="oops"), httpx.Response(404, json="no"),
    ],
)  # fmt: skip
def test_answers_of_something_that_is_no_service(answer):
    stranger = Client("http://elsewhere", "bb_1_2", transport=httpx.MockTransport(lambda _: answer))
    with pytest.raises(ServiceError, match="is this the address of a service"):
        stranger.decide("ads")


def test_a_newer_service_may_say_more(client, line):
    values = vars(client.campaign("ads")) | {"arms": [vars(arm) | {"new": 1} for arm in client.campaign("ads").arms]}
    newer = Client("http://newer", "bb_1_2", transport=httpx.MockTransport(
        lambda _: httpx.Response(200, json=values | {"colour": "red"})
    ))  # fmt: skip
    assert newer.campaign("ads") == client.campaign("ads")


def test_a_retried_overrun_is_told_again(client):
    d = client.decide("ads")
    assert d.settle(cost=d.hold + 0.5) == 0.5
    assert d.settle(cost=d.hold + 0.5) == 0.5
    assert d.settle(reward=1.0) == 0.5
    assert client.campaign("ads").overrun == 0.5


def test_an_export_that_breaks_off_leaves_the_old_file(tmp_path):
    class Broken(httpx.SyncByteStream, httpx.AsyncByteStream):
        def __iter__(self):
            yield b"decision,key\n"
            raise httpx.ReadError("cut off")

        async def __aiter__(self):
            for block in self:
                yield block

    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Broken()))
    (tmp_path / "made.csv").write_text("old")
    with pytest.raises(ServiceUnreachable, match="broke off"):
        Client("http://service", "bb_1_2", transport=transport).export("ads", tmp_path / "made.csv")
    with pytest.raises(ServiceUnreachable, match="broke off"):
        asyncio.run(AsyncClient("http://service", "bb_1_2", transport=transport).export("ads", tmp_path / "made.csv"))
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("made.csv", "old")]


def test_exports(client, tmp_path):
    client.decide("ads")
    client.export("ads", tmp_path / "made.csv")
    client.export("ads", tmp_path / "all.parquet", table="events")
    assert polars.read_csv(tmp_path / "made.csv").height == 1
    assert polars.read_parquet(tmp_path / "all.parquet")["kind"].to_list()[-1] == "decided"
    with pytest.raises(BadParameter, match=r"use \.csv or \.parquet"):
        client.export("ads", tmp_path / "made.txt")


def test_the_same_with_asyncio(line, client):
    async def run():
        async with line.async_client() as other:
            line.trouble = ["lost answer"]
            async with await other.decide("ads", context={"visitor": 1}) as d:
                await d.settle(reward=1.0, cost=0.25)
            async with await other.decide("ads", exclude=["search"]) as d:
                assert d.arm == "mail"
                await d.fail()
            made = await other.decide_many("ads", 3, arms=["search"])
            assert {each.arm for each in made} == {"search"}
            await other.feedback("ads", made.pop().id, failed=True, cost=0.25)
            for d in made:
                await d.void()
            told = await other.feedback_many("ads", [{"decision": "nothing", "cost": 1.0}])
            assert isinstance(told[0].problem, NotFound)
            with contextlib.suppress(ZeroDivisionError):
                async with await other.decide("ads") as d:
                    raise ZeroDivisionError
            info = await other.campaign("ads")
            assert (info.spent, info.held, [arm.failures for arm in info.arms]) == (0.5, d.hold, [1, 1])
            line.trouble = ["lost request"] * 1000
            other._deadline = 0.1
            with pytest.raises(ServiceUnreachable):
                await other.decide("ads")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAUSE_MIN", 0.001)
        patch.setattr(module, "clock", time.monotonic)
        asyncio.run(run())


def test_operators_work_with_asyncio_too(line, client, tmp_path, monkeypatch):
    monkeypatch.setattr("budgetbandits.client.calls.PAGE", 2)

    async def run():
        async with line.async_client() as other:
            for number in range(3):
                await other.create(f"campaign {number}", 10.0, ARMS)
            line.trouble, line.requests = ["lost answer"], []
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "PAUSE_MIN", 0.001)
                assert (await other.top_up("ads", 5.0)).budget == 15.0  # sent twice, done once
            assert len(line.requests) == 2
            rows = await other.campaigns()
            await other.decide("ads")
            assert await other.export("ads", tmp_path / "made.csv") == 0
            with pytest.raises(NotFound):
                await other.export("nothing", tmp_path / "made.csv")
            return sorted(row.name for row in rows)

    assert asyncio.run(run()) == ["ads", "campaign 0", "campaign 1", "campaign 2"]
    assert polars.read_csv(tmp_path / "made.csv").height == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_a_request_may_say_who_may_answer_and_what_it_will_cost(line):
    arms = {"small": 0.1, "large": 2.0}
    with line.client() as client:
        client.create("models", 50.0, arms, policy="bts-paced", horizon=100, propensity_draws=5)
        line.trouble = ["lost answer"]
        with client.decide("models", segment="code", arms=["large"], prices={"large": 0.5}) as d:
            assert (d.arm, d.hold) == ("large", 0.75)
            d.settle(reward=1.0, cost=0.5)
        made = client.decide_many("models", 4, exclude=["large"], holds={"small": 0.01}, segment="mail")
        assert [(each.arm, each.hold) for each in made] == [("small", 0.01)] * 4
        with made[0] as d:
            assert d.fail(cost=0.005) == 0.0
        for each in made[1:]:
            assert client.feedback("models", each.id, failed=True) == 0.0
        shown = client.campaign("models")
        assert (shown.requests_answered, shown.requests_used, shown.horizon) == (1, 5, 100.0)
        assert shown.segments == ("code", "mail")
        small = next(arm for arm in shown.arms if arm.name == "small")
        assert (small.failures, shown.arms_down) == (4, 1)
        assert small.down_since < time.time()
        assert "small (4 failed, down)" in shown._repr_html_()
        with pytest.raises(UnknownArm, match="no arm 'huge'"):
            client.decide("models", exclude=["huge"])
        with pytest.raises(NoArmLeft):
            client.decide("models", arms=["small"], exclude=["small"])
        with pytest.raises(MissingKnowledge, match="no entry for arm 'large'"):
            client.decide("models", prices={"small": 0.1})
        with pytest.raises(BadParameter, match="put a single name into a list"):
            client.decide("models", arms="small")
        with pytest.raises(BadParameter, match="use a positive number"):
            client.decide("models", prices={"small": float("inf")})
        assert client.change_terms("models", horizon=120).horizon == 120.0
        assert client.verify("models") == []


def test_requests_have_the_features_that_their_campaign_names(line):
    with line.client() as client:
        made = client.create("models", 50.0, ARMS, features=("length", "code"), horizon=100)
        assert (made.policy, made.features) == ("bts-linear", ("length", "code"))
        first = client.decide("models", key="one", features={"length": np.float32(1.5), "code": True})
        assert client.decide("models", key="one", features={"code": 1, "length": 1.5}).id == first.id
        with pytest.raises(Conflict):
            client.decide("models", key="one", features={"length": 2.0, "code": 1})
        assert len(client.decide_many("models", 3, features={"length": 0.5, "code": 0})) == 3
        for features, said in (
            ({"length": 1.0}, "feature 'code' is missing"),
            ({"length": 1.0, "code": 0.0, "day": 1.0}, "there is no feature 'day'"),
            ({"length": float("nan"), "code": 0.0}, "use a number between"),
            (None, "feature 'length' is missing"),
        ):
            with pytest.raises(BadFeature, match=said):
                client.decide("models", features=features)
        with pytest.raises(BadFeature, match="bts looks at no features"):
            client.create("plain", 50.0, ARMS, policy="bts", features=["length"])

    async def run():
        async with line.async_client() as client:
            again = await client.decide("models", key="one", features={"length": 1.5, "code": 1})
            assert again.id == first.id
            assert len(await client.decide_many("models", 2, features={"length": 0.5, "code": 0})) == 2
            with pytest.raises(BadFeature, match="feature 'code' is missing"):
                await client.decide("models", features={"length": 1.5})

    asyncio.run(run())


def test_the_client_and_the_adapter_need_neither_numpy_nor_scipy():
    code = (
        "import sys, budgetbandits.client, budgetbandits.adapters.openai; "
        "print([name for name in ('numpy', 'scipy', 'pydantic', 'openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
