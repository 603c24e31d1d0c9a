"""LiteLLM on a budget, against a provider on this machine: its router with 200 calls at once, and its proxy."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml

from budgetbandits.adapters.calls import TokenPrice
from budgetbandits.client import Client
from budgetbandits.errors import BadParameter, HoldRefused
from llm_provider import Provider
from servers import free_port

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it is fetched from the network
litellm = pytest.importorskip("litellm", reason="no LiteLLM: 'make adapters' installs it")
adapter = pytest.importorskip("budgetbandits.adapters.litellm")
pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM's own, of which there are many

PRICES = {"small": (1.0, 4.0), "lab/large": (10.0, 40.0)}
MESSAGES = [{"role": "user", "content": "How far is the moon? " * 5}]
MOST = TokenPrice(*PRICES["small"]).most({"messages": MESSAGES, "max_tokens": 40})


def create(client, name, budget=1.0):
    client.create(name, budget, {"openai/small": 0.01, "openai/lab/large": 0.02})


def group(name, address, models=PRICES, **more):
    """The model list of a router: a deployment for each model."""
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


def calls(service, name, address, work, **options):
    """The result of `work` for a router whose calls are decided by the campaign of this name."""

    async def run():
        litellm.callbacks = [adapter.BudgetCallback(*service, [name])]
        options.setdefault("num_retries", 0)
        router = litellm.Router(group(name, address), disable_cooldowns=True, **options)
        try:
            result = await work(router, litellm.callbacks[0])
            await quiet(service, name)
            return result
        finally:
            await litellm.callbacks[0].close()
            litellm.logging_callback_manager._reset_all_callbacks()

    return asyncio.run(run())


async def quiet(service, name):
    """Wait until nothing is held: LiteLLM reports calls when they are over, in the background."""
    with Client(*service) as client:
        for _ in range(300):
            if (await asyncio.to_thread(client.campaign, name)).held == 0.0:
                return
            await asyncio.sleep(0.1)


PROXY = Path(sys.prefix) / "proxy" / "bin" / "litellm"


@contextlib.contextmanager
def proxy(service, name, address, folder):
    """A client of LiteLLM's proxy in an environment of its own, configured as the manual says."""
    config = {
        "model_list": group(name, address),
        "litellm_settings": {"callbacks": "budgetbandits.adapters.litellm.callback", "num_retries": 0},
        "router_settings": {"disable_cooldowns": True},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    port, key = free_port(), "sk-" + os.urandom(32).hex()
    names = ("BUDGETBANDITS_URL", "BUDGETBANDITS_KEY", "BUDGETBANDITS_CAMPAIGNS", "LITELLM_MASTER_KEY")
    variables = os.environ | dict(zip(names, (*service, name, key), strict=True))
    command = [PROXY, "--config", folder / "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    with (folder / "said").open("w") as output:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=output, stderr=subprocess.STDOUT)
    headers = {"Authorization": f"Bearer {key}"}
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as http:
            while True:
                assert process.poll() is None, (folder / "said").read_text()
                with contextlib.suppress(httpx.HTTPError):
                    http.get("/health/liveliness").raise_for_status()
                    break
                time.sleep(0.2)
            yield http
    finally:
        process.terminate()
        process.wait(20)


def test_a_call_pays_its_price_and_is_rewarded(service, client):
    create(client, "plain router")
    provider = Provider(PRICES)

    async def work(router, callback):
        answer = await router.acompletion("plain router", messages=MESSAGES, max_tokens=40)
        stream = await router.acompletion("plain router", messages=MESSAGES, max_tokens=40, stream=True)
        async for _ in stream:
            pass
        await callback.reward(answer, 1.0)
        await callback.reward(stream, 0.5)

    with provider.serving() as address:
        calls(service, "plain router", address, work)
    info = client.campaign("plain router")
    assert (info.held, info.overrun) == (0.0, 0.0)
    assert info.spent == pytest.approx(provider.billed, abs=3e-6)
    assert sum(arm.pulls for arm in info.arms) == 2
    assert client.verify("plain router") == []


@pytest.mark.parametrize(
    ("price", "prices", "charged"),
    [
        (0.0, {"response_cost": 0.0}, False),
        (1e-6, {"response_cost": 0.0, "cache_hit": True}, False),
        (1e-6, {"response_cost": None}, True),
    ],
    ids=["free", "cached", "unknown"],
)
def test_only_a_price_that_is_not_known_is_charged_as_the_hold(service, client, price, prices, charged):
    """Not that of a model on one's own machine, nor of an answer from LiteLLM's cache."""
    name = f"charged {price} {len(prices)}"
    create(client, name)
    prices_known = {"input_cost_per_token": price, "output_cost_per_token": price}
    deployments = [{"litellm_params": {"model": "openai/small", **prices_known}}]

    async def call():
        callback, asked = adapter.BudgetCallback(*service, [name]), {"max_tokens": 40}
        assert await callback.async_filter_deployments(name, deployments, MESSAGES, asked) == deployments
        held = client.campaign(name).held
        await callback.async_log_success_event({"litellm_params": asked, **prices}, {"id": name}, None, None)
        await callback.close()
        return held

    held = asyncio.run(call())
    assert client.campaign(name).spent == (pytest.approx(held) if charged else 0.0)
    assert client.campaign(name).held == 0.0


def test_other_groups_are_left_alone(service, client):
    provider = Provider(PRICES)
    with provider.serving() as address:

        async def work(router, callback):
            litellm.callbacks[0]._campaigns = frozenset()
            return await router.acompletion("other", messages=MESSAGES, max_tokens=40)

        create(client, "other")
        assert calls(service, "other", address, work).choices
    assert client.campaign("other").spent == 0.0


@pytest.mark.parametrize(("stream", "budget"), [(False, 0.015), (True, 9.0)])
def test_two_hundred_calls_at_once_never_cost_more_than_the_budget(service, client, stream, budget):
    name = f"busy {stream}"
    create(client, name, budget)
    provider = Provider(PRICES, failing=0.05, seed=30, gate=200 if budget > 1.0 else 1)

    async def call(router):
        answer = await router.acompletion(name, messages=MESSAGES, max_tokens=40, stream=stream)
        if stream:
            async for _ in answer:
                pass
        return True

    async def work(router, _callback):
        return await asyncio.gather(*(call(router) for _ in range(200)), return_exceptions=True)

    with provider.serving() as address:
        results = calls(service, name, address, work)
    info = client.campaign(name)
    refused = [result for result in results if isinstance(result, HoldRefused)]
    assert info.spent + info.held <= budget
    assert (info.overrun, info.held, info.status) == (0.0, 0.0, "active")
    assert provider.billed <= info.spent + 1e-9
    assert bool(refused) == (budget < 1.0)
    assert provider.most_at_once >= provider.gate
    assert results.count(True) >= 0.85 * (200 - len(refused))
    assert client.verify(name) == []


@pytest.mark.parametrize(("kind", "failures", "charged"), [("500", 1, False), ("400", 0, False), ("lost", 1, True)])
def test_errors_fail_or_void(service, client, kind, failures, charged):
    name = f"error {kind}"
    create(client, name)

    async def ask(router, _callback):
        try:
            await router.acompletion(name, messages=MESSAGES, max_tokens=40)
        except (litellm.exceptions.BadRequestError, litellm.exceptions.InternalServerError) as error:
            return error

    with Provider(PRICES, failing=1.0, kinds=(kind,)).serving() as address:
        assert calls(service, name, address, ask) is not None
    info = client.campaign(name)
    assert (info.held, info.overrun, sum(arm.failures for arm in info.arms)) == (0.0, 0.0, failures)
    assert (info.spent >= MOST - 1e-6) if charged else info.spent == 0.0


def test_a_retry_is_a_decision_of_its_own(service, client):
    create(client, "retries")
    provider = Provider(PRICES, failing=0.5, kinds=("500",), seed=3)

    async def work(router, _callback):
        return [await router.acompletion("retries", messages=MESSAGES, max_tokens=40) for _ in range(5)]

    with provider.serving() as address:
        assert len(calls(service, "retries", address, work, num_retries=6, retry_after=0)) == 5
    info = client.campaign("retries")
    assert sum(arm.failures for arm in info.arms) == provider.failed["500"] >= 1
    assert info.spent == pytest.approx(provider.billed, abs=6e-6)
    assert info.held == 0.0


def test_the_callback_of_the_configuration_needs_its_variables(monkeypatch):
    for name in ("BUDGETBANDITS_URL", "BUDGETBANDITS_KEY", "BUDGETBANDITS_CAMPAIGNS"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BadParameter, match="BUDGETBANDITS_URL, BUDGETBANDITS_KEY, BUDGETBANDITS_CAMPAIGNS not set"):
        _ = adapter.callback


@pytest.mark.skipif(not PROXY.exists(), reason="no proxy of LiteLLM: 'make adapters' installs it")
def test_the_proxy_by_one_line_of_its_configuration(service, client, tmp_path):
    client.create("proxied", 0.0035, {"openai/small": 0.001, "openai/lab/large": 0.003})
    provider = Provider(PRICES, failing=0.2, kinds=("500",), seed=5)
    body = {"model": "proxied", "messages": MESSAGES, "max_tokens": 40}
    with provider.serving() as address, proxy(service, "proxied", address, tmp_path) as http:
        answers = []
        while not answers or answers[-1].status_code != 402:
            answers.append(http.post("/v1/chat/completions", json=body | {"stream": len(answers) % 2 == 1}))
            asyncio.run(quiet(service, "proxied"))
            assert len(answers) < 100
    *answers, refused = answers
    assert "top up the budget" in refused.text
    given = [answer.headers["x-budgetbandits-decision"] for answer in answers if answer.is_success]
    for decision in given:
        client.feedback("proxied", decision, reward=1.0)
    info = client.campaign("proxied")
    assert (info.held, info.overrun) == (0.0, 0.0)
    assert sum(arm.pulls for arm in info.arms) == len(given) >= 5
    assert sum(arm.failures for arm in info.arms) == provider.failed["500"] == len(answers) - len(given) >= 1
    assert info.spent == pytest.approx(provider.billed, abs=1e-5)
    assert info.spent <= 0.0035
    assert client.verify("proxied") == []
