"""LiteLLM on a budget: nothing that a provider bills is missing, and nothing is booked that was never sent."""

import asyncio
import functools
import gc
import inspect
import itertools
import os
import re
import textwrap
from pathlib import Path

import openai
import pytest

from budgetbandits.adapters.calls import TokenPrice
from budgetbandits.client import Client
from budgetbandits.errors import BadParameter
from llm_provider import Provider

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it is fetched from the network
litellm = pytest.importorskip("litellm", reason="no LiteLLM: 'make adapters' installs it")
adapter = pytest.importorskip("budgetbandits.adapters.litellm")
pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's own, of which there are many

PRICES = {"small": (1.0, 4.0), "large": (10.0, 40.0)}
MESSAGES = [{"role": "user", "content": "How far is the moon? " * 5}]
BODY = {"messages": MESSAGES, "max_tokens": 40}
MOST = TokenPrice(*PRICES["small"]).most(BODY)
_numbers = itertools.count()


@pytest.fixture
def name(client):
    """A campaign for a model group with the small model alone."""
    name = f"litellm bill {next(_numbers)}"
    client.create(name, 1.0, {"openai/small": 0.01, "openai/large": 0.02})
    return name


def group(name, address, models=("small",), **more):
    return [
        {
            "model_name": name,
            "litellm_params": {
                "model": f"openai/{model}", "api_base": address, "api_key": "none",
                "input_cost_per_token": PRICES[model][0] / 1e6, "output_cost_per_token": PRICES[model][1] / 1e6, **more,
            },
        }
        for model in models
    ]  # fmt: skip


def run(service, name, deployments, work, **options):
    """The result of `work` for a router and its callback, once nothing is held any more or after five seconds."""

    async def all_of_it():
        callback = adapter.BudgetCallback(*service, [name])
        litellm.callbacks = [callback]
        options.setdefault("disable_cooldowns", True)
        router = litellm.Router(deployments, **{"num_retries": 0, **options})
        try:
            result = await work(router, callback)
            with Client(*service) as client:
                for _ in range(100):
                    if (await asyncio.to_thread(client.campaign, name)).held == 0.0:
                        break
                    await asyncio.sleep(0.05)
                    gc.collect()  # errors refer to the calls they ended
            return result
        finally:
            await callback.close()
            litellm.logging_callback_manager._reset_all_callbacks()

    return asyncio.run(all_of_it())


def booked(client, name):
    info = client.campaign(name)
    assert info.overrun == 0.0
    return info.spent, info.held


def test_an_answer_is_rewarded_as_soon_as_it_is_there(service, client, name):
    """Answers are known by their decisions: all answers of this provider have the same id."""

    async def work(router, callback):
        decisions = []
        for stream in (False, True, False):
            answer = await router.acompletion(name, **BODY, stream=stream)
            await callback.reward(answer, 0.5)
            if stream:
                async for _ in answer:
                    pass
            decisions.append(answer)
        return len(decisions)

    with Provider(PRICES, id="chatcmpl-0").serving() as address:
        assert run(service, name, group(name, address), work) == 3
    rows = client.decisions(name).decisions
    assert [row.reward for row in rows] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("usage", "kind", "stream"),
    [
        (True, "broken", False),
        (True, "no completion", False),
        (False, None, False),
        (False, None, True),
        (True, "silent", True),
        ("each", "silent", True),
        ("each", "cut", True),
    ],
)
def test_what_its_provider_does_not_account_for_costs_its_hold(service, client, name, usage, kind, stream):
    async def work(router, _callback):
        try:
            answer = await router.acompletion(name, **BODY, stream=stream)
            if stream:
                async for _ in answer:
                    pass
        except openai.APIError:
            assert kind is not None

    with Provider(PRICES, failing=float(kind is not None), kinds=(kind,), usage=usage, seed=4).serving() as address:
        run(service, name, group(name, address), work)
    assert booked(client, name) == (pytest.approx(MOST, abs=2e-6), 0.0)


@pytest.mark.parametrize("usage", [True, "each"])
def test_a_stream_that_was_read_to_its_end_pays_its_usage(service, client, name, usage):
    async def work(router, _callback):
        async for _ in await router.acompletion(name, **BODY, stream=True):
            pass

    provider = Provider(PRICES, usage=usage)
    with provider.serving() as address:
        run(service, name, group(name, address), work)
    assert booked(client, name) == (pytest.approx(provider.billed, abs=2e-6), 0.0)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_stream_pays_its_usage_where_another_library_has_wrapped_litellm_too(
    service, client, name, monkeypatch, is_first
):
    async def work(router, _callback):
        async for _ in await router.acompletion(name, **BODY, stream=True):
            pass

    build = inspect.unwrap(litellm.stream_chunk_builder)
    monkeypatch.setattr(litellm, "stream_chunk_builder", build)
    if not is_first:
        adapter._watch_streams()
        build = litellm.stream_chunk_builder
    other = functools.wraps(build)(lambda *args, **kwargs: build(*args, **kwargs))
    monkeypatch.setattr(litellm, "stream_chunk_builder", other)
    provider = Provider(PRICES)
    with provider.serving() as address:
        run(service, name, group(name, address), work)
    assert booked(client, name) == (pytest.approx(provider.billed, abs=2e-6), 0.0)
    assert (litellm.stream_chunk_builder is other) is not is_first  # watched once


def test_a_stream_that_is_dropped_is_charged_when_it_is_collected(service, client, name):
    async def work(router, _callback):
        stream = await router.acompletion(name, **BODY, stream=True)
        async for _ in stream:
            break
        await stream.aclose()

    with Provider(PRICES).serving() as address:
        run(service, name, group(name, address), work)
    assert booked(client, name) == (pytest.approx(MOST, abs=2e-6), 0.0)


def test_an_error_before_anything_was_sent_books_nothing(service, client, name):
    """An argument that LiteLLM cannot pass on, a message that it cannot read, and a check after the choice."""

    async def work(router, _callback):
        for wrong in ({"tools": 3}, {"messages": ["not a message"]}, {"timeout": "soon"}, {"n": object()}):
            try:
                await router.acompletion(name, **(BODY | wrong))
            except Exception:
                continue
        router.routing_plugins = [Plugin()]
        with pytest.raises(ValueError, match="No deployments left"):
            await router.acompletion(name, **BODY)

    class Plugin:
        async def run(self, context):
            context.candidate_models = []
            return context

    provider = Provider(PRICES)
    with provider.serving() as address:
        run(service, name, group(name, address), work)
    assert booked(client, name) == (pytest.approx(provider.billed, abs=5e-6), 0.0)


def test_what_extra_body_sends_is_held(service, client, name):
    long = [{"role": "user", "content": "x " * 2_000}]

    async def work(router, _callback):
        await router.acompletion(name, **BODY, extra_body={"messages": long})

    for deployments in ({}, {"extra_body": {"messages": long}}):
        with Provider(PRICES).serving() as address:
            run(service, name, group(name, address, **deployments), work)
        row = client.decisions(name).decisions[0]
        assert row.hold >= row.cost > 2 * MOST
    assert client.campaign(name).status == "active"


def test_the_metadata_of_a_request_says_its_segment_features_and_prices(service, client):
    name = "says litellm"
    arms = {"openai/small": 0.01, "openai/large": 0.02}
    client.create(name, 1.0, arms, policy="bts-linear", horizon=100, features=["length"])
    request = {
        "segment": "chat", "features": {"length": 3.0}, "prices": {"openai/small": 0.001, "openai/large": 0.01},
        "metadata": {"user": "u-17"},
    }  # fmt: skip

    async def work(router, _callback):
        await router.acompletion(name, **BODY, metadata={"budgetbandits": request})

    with Provider(PRICES).serving() as address:
        run(service, name, group(name, address, PRICES), work)
    [row] = client.decisions(name).decisions
    assert (row.segment, row.metadata) == ("chat", {"user": "u-17"})


def test_with_all_deployments_cooling_the_error_is_litellms_own(service, client, name):
    async def work(router, _callback):
        errors = []
        for _ in range(4):
            try:
                await router.acompletion(name, **BODY)
            except Exception as error:
                errors.append(error)
        return errors

    provider = Provider(PRICES, refusals={"small": (429, "slow down"), "large": (429, "slow down")})
    with provider.serving() as address:
        deployments = group(name, address) + group(name, address)
        errors = run(service, name, deployments, work, disable_cooldowns=False, allowed_fails=0, cooldown_time=60)
    assert isinstance(errors[-1], litellm.types.router.RouterRateLimitError)
    assert booked(client, name) == (0.0, 0.0)


def test_a_call_that_does_not_wait_for_callbacks_is_refused(service, client, name):
    async def work(router, _callback):
        with pytest.raises(BadParameter, match=r"use Router\.acompletion"):
            await asyncio.to_thread(router.completion, name, **BODY)

    provider = Provider(PRICES)
    with provider.serving() as address:
        run(service, name, group(name, address), work)
    assert provider.asked == []


def test_the_lines_of_the_manual_work(service, client):
    page = (Path(__file__).parents[2] / "docs/howto/language_models.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    lines = [block for block in blocks if "router.acompletion" in block]
    assert len(lines) == 2
    caps = {"openai/gpt-4o-mini": 0.002, "openai/gpt-4o": 0.03}
    client.create("chat", 1.0, caps, horizon=1_000, reward_max=1.0)
    text = "".join(lines).replace("http://localhost:8013", service[0])
    source = "async def manual(router, key, messages):\n" + textwrap.indent(text, "    ")
    exec(source, names := {})

    async def work(router, _callback):
        await names["manual"](router, service[1], MESSAGES)
        await litellm.callbacks[0].close()

    with Provider({"gpt-4o-mini": (0.15, 0.60), "gpt-4o": (2.50, 10.00)}).serving() as address:
        models = ("gpt-4o-mini", "gpt-4o")
        plain = [
            {
                "model_name": "chat",
                "litellm_params": {"model": f"openai/{model}", "api_base": address, "api_key": "none"},
            }
            for model in models
        ]
        run(service, "chat", plain, work)
    rows = client.decisions("chat").decisions
    assert (len(rows), [row.reward for row in rows][-1]) == (2, 1.0)
