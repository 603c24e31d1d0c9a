"""The OpenAI SDK on a budget: nothing that a provider bills is missing, whatever becomes of an answer or a stream."""

import asyncio
import gc
import itertools
import json
import time

import openai
import pytest

from budgetbandits.adapters.calls import TokenPrice
from budgetbandits.adapters.openai import AsyncBudgetedOpenAI, BudgetedOpenAI
from budgetbandits.client import AsyncClient
from budgetbandits.errors import BadParameter
from llm_provider import Provider

PRICES = {"small": (1.0, 4.0), "large": (10.0, 40.0)}
MESSAGES = [{"role": "user", "content": "How far is the moon? " * 5}]
BODY = {"messages": MESSAGES, "max_tokens": 40}
MOST = TokenPrice(*PRICES["small"]).most(BODY)
_numbers = itertools.count()


@pytest.fixture
def models(client):
    """Makes clients of a provider, each with a campaign of its own."""

    def make(address, caps=(0.01, 0.02), **more):
        name = f"bill {next(_numbers)}"
        client.create(name, 1.0, dict(zip(PRICES, caps, strict=True)), reward_max=1.0)
        return BudgetedOpenAI(openai.OpenAI(base_url=address, api_key="none"), client, name, PRICES, **more), name

    return make


def ends(client, name):
    """The campaign when nothing is held any more, or five seconds later."""
    for _ in range(250):
        info = client.campaign(name)
        if info.held == 0.0:
            break
        time.sleep(0.02)
    return info


def ask(models, **more):
    return models.chat.completions.create(**BODY, **more)


@pytest.mark.parametrize(("usage", "kind"), [("each", "closed"), ("each", "silent"), (True, "silent"), ("each", "cut")])
def test_a_stream_that_does_not_reach_its_end_costs_its_hold(client, models, usage, kind):
    """Its usage, where each chunk has one, is of what came until then, and the provider bills what it produced."""
    provider = Provider(PRICES, failing=float(kind != "closed"), kinds=(kind,), usage=usage, seed=4)
    with provider.serving() as address:
        budgeted, name = models(address)
        stream = ask(budgeted, model="small", stream=True)
        next(stream)
        if kind == "closed":
            stream.close()
        else:
            try:
                list(stream)
            except Exception:
                assert kind == "cut"
    info = client.campaign(name)
    assert (info.spent, info.held) == (pytest.approx(MOST, abs=2e-6), 0.0)


def test_a_stream_with_usage_in_each_chunk_pays_the_last_one(client, models):
    provider = Provider(PRICES, usage="each")
    with provider.serving() as address:
        budgeted, name = models(address)
        assert all(chunk.choices for chunk in ask(budgeted, model="small", stream=True))
    assert client.campaign(name).spent == pytest.approx(provider.billed, abs=1e-6)


def test_a_stream_that_is_dropped_is_charged_when_it_is_collected(client, models):
    with Provider(PRICES).serving() as address:
        budgeted, name = models(address)
        stream = ask(budgeted, model="small", stream=True)
        next(stream)
        assert client.campaign(name).held > 0.0
        del stream
        gc.collect()
        info = ends(client, name)
    assert (info.spent, info.held) == (pytest.approx(MOST, abs=2e-6), 0.0)


def test_a_stream_that_is_dropped_on_an_event_loop_is_charged_when_it_is_collected(service, client):
    client.create("dropped async", 1.0, dict.fromkeys(PRICES, 0.01))

    async def run(address):
        async with AsyncClient(*service) as worker, openai.AsyncOpenAI(base_url=address, api_key="none") as sdk:
            budgeted = AsyncBudgetedOpenAI(sdk, worker, "dropped async", PRICES)
            stream = await budgeted.chat.completions.create(**BODY, model="small", stream=True)
            async for _ in stream:
                break
            del stream
            gc.collect()
            return await asyncio.to_thread(ends, client, "dropped async")

    with Provider(PRICES).serving() as address:
        info = asyncio.run(run(address))
    assert (info.spent, info.held) == (pytest.approx(MOST, abs=2e-6), 0.0)


def test_an_answer_that_cannot_be_read_costs_its_hold(client, models):
    with Provider(PRICES, failing=1.0, kinds=("broken",)).serving() as address:
        budgeted, name = models(address, attempts=1)
        with pytest.raises(json.JSONDecodeError):
            ask(budgeted, model="small")
    info = client.campaign(name)
    assert (info.spent, info.held) == (pytest.approx(MOST, abs=2e-6), 0.0)
    assert [arm.failures for arm in info.arms] == [1, 0]


def test_what_extra_body_sends_is_held(client, models):
    with Provider(PRICES).serving() as address:
        budgeted, name = models(address, caps=(0.01, 0.02))
        ask(budgeted, model="small", extra_body={"messages": [{"role": "user", "content": "x " * 4_000}]})
        with pytest.raises(BadParameter, match="extra_body has a model, which the campaign chooses"):
            ask(budgeted, extra_body={"model": "large"})
    [row] = client.decisions(name).decisions
    assert row.hold >= row.cost > 2 * MOST


def test_answers_with_the_same_id_are_rewarded_apart(client, models):
    with Provider(PRICES, id="chatcmpl-0").serving() as address:
        budgeted, name = models(address)
        first, second = ask(budgeted), ask(budgeted)
        stream = ask(budgeted, stream=True)
        list(stream)
    for answer, reward in ((first, 0.25), (second, 0.5), (stream, 1.0)):
        budgeted.reward(answer, reward)
        assert client.decision(name, answer.decision).reward == reward
    assert first.model_dump()["decision"] == first.decision  # which may be kept with the answer


@pytest.mark.parametrize("message", ["maximum context length is 10 tokens", "this model does not support tools"])
def test_a_call_that_one_model_cannot_do_is_answered_by_another(client, models, message):
    provider = Provider(PRICES, refusals={"small": (400, message)})
    with provider.serving() as address:
        budgeted, name = models(address)
        assert {ask(budgeted).model for _ in range(4)} == {"large"}
        asked = len(provider.asked)
        with pytest.raises(openai.BadRequestError):
            ask(budgeted, model="small")
        assert len(provider.asked) == asked + 1
    info = client.campaign(name)
    assert sum(arm.failures for arm in info.arms) == 0
    assert info.spent == pytest.approx(provider.billed, abs=4e-6)


def test_the_only_model_is_not_asked_again_before_the_time_it_names(client, models):
    provider = Provider(PRICES, refusals={"small": (429, "slow down")}, headers={"Retry-After": "0.4"})
    with provider.serving() as address:
        budgeted, name = models(address)
        with pytest.raises(openai.RateLimitError):
            ask(budgeted, model="small")
        first, second, third = provider.asked_at
        assert min(second - first, third - second) >= 0.4
        provider.headers = {"Retry-After": "3600"}
        with pytest.raises(openai.RateLimitError):
            ask(budgeted, model="small")
        assert provider.asked_at[3] - third >= 0.4  # another call waits as well
        assert len(provider.asked) == 4  # nobody waits an hour
    assert (client.campaign(name).spent, client.campaign(name).held) == (0.0, 0.0)


def test_a_call_that_was_never_sent_costs_nothing_and_is_no_failure(client, models):
    with Provider(PRICES).serving() as address:
        budgeted, name = models(address)
        with pytest.raises(TypeError):
            ask(budgeted, model="small", mesages=[])
        with pytest.raises(TypeError):
            ask(budgeted, model="small", extra_headers={"x": object()})
    info = client.campaign(name)
    assert (info.spent, info.held, sum(arm.failures for arm in info.arms)) == (0.0, 0.0, 0)
