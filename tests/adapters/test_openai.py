"""The OpenAI SDK on a budget, against a provider on this machine: money, failures, streams and rewards."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import openai
import pytest

from budgetbandits.adapters.calls import TokenPrice, failure_of, price_table, prompt_tokens_max
from budgetbandits.adapters.openai import AsyncBudgetedOpenAI, BudgetedOpenAI
from budgetbandits.client import AsyncClient, Client
from budgetbandits.errors import BadParameter, HoldRefused, NotFound
from deep import deep
from llm_provider import Provider

PRICES = {"small": (1.0, 4.0), "lab/large": (10.0, 40.0)}
MESSAGES = [{"role": "user", "content": "How far is the moon? " * 5}]
MOST = {name: TokenPrice(*price).most({"messages": MESSAGES, "max_tokens": 40}) for name, price in PRICES.items()}


def create(client, name, budget=1.0, **more):
    client.create(name, budget, {"small": 0.01, "lab/large": 0.02}, reward_max=1.0, **more)


def sdk(address, **more):
    return openai.OpenAI(base_url=address, api_key="none", **more)


def test_a_call_holds_the_most_it_can_cost_and_pays_what_it_did(client):
    create(client, "plain")
    provider = Provider(PRICES)
    with provider.serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "plain", PRICES)
        answer = models.chat.completions.create(messages=MESSAGES, max_tokens=40)
    assert answer.choices[0].message.content.startswith("word")
    info = client.campaign("plain")
    assert (info.held, info.overrun) == (0.0, 0.0)
    assert info.spent == pytest.approx(provider.billed, abs=1e-6)  # micros, rounded up
    assert info.spent <= MOST[answer.model]
    assert (provider.asked[0]["max_tokens"], len(provider.asked)) == (40, 1)
    models.reward(answer, 0.5)
    models.reward(answer, 0.5)  # reported twice, counted once
    assert sum(arm.pulls for arm in client.campaign("plain").arms) == 1
    with pytest.raises(NotFound, match="chatcmpl-unknown"):
        models.reward("chatcmpl-unknown", 1.0)


def test_the_largest_hold_is_a_bound_on_the_price(client):
    """The hold of a decision while its call is under way, seen by the provider."""
    create(client, "held")
    held = []
    provider = Provider(PRICES)
    answered = provider._answered
    provider._answered = lambda body: (held.append((body["model"], client.campaign("held").held)), answered(body))[1]
    with provider.serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "held", PRICES)
        models.chat.completions.create(messages=MESSAGES, max_tokens=40)
        models.chat.completions.create(messages=MESSAGES)  # nothing bounds it: the cap
        picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}]}]
        models.chat.completions.create(messages=picture, max_tokens=40)
    caps = {"small": 0.01, "lab/large": 0.02}
    assert held[0][1] == pytest.approx(MOST[held[0][0]], abs=1e-6)
    assert [amount for _, amount in held[1:]] == [caps[model] for model, _ in held[1:]]


@pytest.mark.parametrize(
    ("stream", "budget", "calls", "failing"),
    [(False, 0.015, 80, 0.1), (True, 9.0, 80, 0.1), *deep((False, 0.015, 200, 0.05), (True, 9.0, 200, 0.05))],
)
def test_many_calls_at_once_never_cost_more_than_the_budget(service, client, stream, budget, calls, failing):
    """A provider that fails some calls, in every way there is, and a budget that lasts or does not."""
    name = f"busy {stream} {calls}"
    create(client, name, budget)
    provider = Provider(PRICES, failing=failing, seed=30, gate=calls if budget > 1.0 else 1)

    async def run(address):
        async with AsyncClient(*service) as worker, openai.AsyncOpenAI(base_url=address, api_key="none") as sdk:
            models = AsyncBudgetedOpenAI(sdk, worker, name, PRICES)

            async def call():
                answer = await models.chat.completions.create(messages=MESSAGES, max_tokens=40, stream=stream)
                if stream:
                    async for _ in answer:
                        pass
                await models.reward(answer, 1.0)
                return True

            return await asyncio.gather(*(call() for _ in range(calls)), return_exceptions=True)

    with provider.serving() as address:
        results = asyncio.run(run(address))
    refused = [result for result in results if isinstance(result, HoldRefused)]
    other = [result for result in results if isinstance(result, Exception) and not isinstance(result, HoldRefused)]
    info = client.campaign(name)
    assert info.spent + info.held <= budget
    assert (info.overrun, info.held, info.status) == (0.0, 0.0, "active")
    assert provider.billed <= info.spent + 1e-9  # nothing that was charged is missing, whatever got lost
    assert bool(refused) == (budget < 1.0)
    assert min(provider.failed.values()) >= (budget > 1.0)  # where all were called, each kind of failure has happened
    assert all(isinstance(error, openai.APIError | httpx.TransportError) for error in other)
    assert len(other) <= 1.2 * failing * calls  # only streams that broke off, and calls that failed three times
    assert results.count(True) + len(refused) + len(other) == calls
    assert provider.most_at_once >= provider.gate
    assert client.verify(name) == []


def test_threads_do_the_same(client):
    create(client, "threads", 0.02)
    provider = Provider(PRICES, failing=0.1)
    with provider.serving() as address, ThreadPoolExecutor(16) as pool:
        models = BudgetedOpenAI(sdk(address), client, "threads", PRICES)

        def call(_):
            with suppress(HoldRefused, openai.APIError):
                models.chat.completions.create(messages=MESSAGES, max_tokens=40)

        list(pool.map(call, range(80)))
    info = client.campaign("threads")
    assert info.spent + info.held <= 0.02
    assert (info.overrun, info.held) == (0.0, 0.0)
    assert provider.billed <= info.spent + 1e-9


def test_a_failed_call_goes_to_another_arm(client):
    create(client, "fails")
    provider = Provider({"small": PRICES["small"]})  # knows no large model: 404
    with provider.serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "fails", PRICES)
        assert {models.chat.completions.create(messages=MESSAGES, max_tokens=9).model for _ in range(9)} == {"small"}
        with pytest.raises(openai.NotFoundError):
            models.chat.completions.create(model="lab/large", messages=MESSAGES, max_tokens=9)
    failed = {arm.name: arm.failures for arm in client.campaign("fails").arms}
    assert failed["small"] == 0
    assert failed["lab/large"] >= 3
    assert client.campaign("fails").held == 0.0


def test_a_request_that_is_refused_is_void_and_asked_once(client):
    create(client, "refused")
    provider = Provider(PRICES)
    with provider.serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "refused", PRICES)
        with pytest.raises(openai.BadRequestError):
            models.chat.completions.create(messages=[], max_tokens=9)
    info = client.campaign("refused")
    assert (info.spent, info.held, len(provider.asked), sum(arm.failures for arm in info.arms)) == (0.0, 0.0, 1, 0)


def test_a_provider_that_is_not_there_costs_nothing_and_one_whose_answer_is_lost_the_hold(client):
    create(client, "down")
    models = BudgetedOpenAI(sdk("http://127.0.0.1:9/v1"), client, "down", PRICES, attempts=1)
    with pytest.raises(openai.APIConnectionError):
        models.chat.completions.create(messages=MESSAGES, max_tokens=40)
    assert (client.campaign("down").spent, client.campaign("down").held) == (0.0, 0.0)
    with Provider(PRICES, failing=1.0, kinds=("lost",)).serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "down", PRICES, attempts=1)
        with pytest.raises(openai.APIConnectionError):
            models.chat.completions.create(model="small", messages=MESSAGES, max_tokens=40)
    assert client.campaign("down").spent == pytest.approx(MOST["small"], abs=1e-6)


def test_a_stream_is_settled_when_it_ends(client):
    create(client, "streams")
    provider = Provider(PRICES)
    with provider.serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "streams", PRICES)
        with models.chat.completions.create(messages=MESSAGES, max_tokens=40, stream=True) as stream:
            chunks = list(stream)
        assert all(chunk.choices for chunk in chunks)  # the one with the usage alone was not asked for
        assert client.campaign("streams").spent == pytest.approx(provider.billed, abs=1e-6)
        models.reward(stream, 1.0)
        wanted = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(models.chat.completions.create(messages=MESSAGES, max_tokens=40, **wanted))
        assert chunks[-1].usage.completion_tokens > 0
        before = client.campaign("streams").spent
        stream = models.chat.completions.create(model="small", messages=MESSAGES, max_tokens=40, stream=True)
        next(stream)
        stream.close()  # what was answered until then is charged, and nobody says how much: the hold
        stream.close()
    info = client.campaign("streams")
    assert (info.spent - before, info.held) == (pytest.approx(MOST["small"], abs=2e-6), 0.0)


def test_an_answer_without_usage_costs_its_hold(client):
    create(client, "silent")
    with Provider(PRICES, usage=False).serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "silent", PRICES)
        for stream in (False, True):
            answer = models.chat.completions.create(model="small", messages=MESSAGES, max_tokens=40, stream=stream)
            list(answer) if stream else None
    assert client.campaign("silent").spent == pytest.approx(2 * MOST["small"], abs=3e-6)


def test_an_answer_is_not_lost_because_the_service_is(client, service, caplog):
    create(client, "gone")
    with Client(*service, deadline=0.2) as own, Provider(PRICES).serving() as address:
        models = BudgetedOpenAI(sdk(address), own, "gone", PRICES)

        def unreachable(*_, **__):
            raise httpx.ConnectError("no")

        create_answer = models._openai.chat.completions.create

        def answered(**body):
            own._http._transport.handle_request = unreachable
            return create_answer(**body)

        models._openai.chat.completions.create = answered
        assert models.chat.completions.create(messages=MESSAGES, max_tokens=9).choices
    assert "was not settled, so its hold is charged when it expires" in caplog.text
    assert client.campaign("gone").held > 0.0


def test_caps_that_change_are_noticed(client):
    create(client, "changes")
    with Provider(PRICES | {"third": (1.0, 1.0)}).serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "changes", PRICES | {"third": (1.0, 1.0)})
        models.chat.completions.create(messages=MESSAGES, max_tokens=9)
        with pytest.raises(BadParameter, match="no arm of 'changes' has a price"):
            models.chat.completions.create(model="third", messages=MESSAGES, max_tokens=9)
        client.add_arm("changes", "third", 0.01)
        assert models.chat.completions.create(model="third", messages=MESSAGES, max_tokens=9).model == "third"


def test_what_a_request_may_say(client):
    create(client, "says")
    with Provider(PRICES).serving() as address:
        models = BudgetedOpenAI(sdk(address), client, "says", PRICES)
        request = {"metadata": {"user": "u-1"}, "exclude": ["small"]}
        assert models.chat.completions.create(messages=MESSAGES, max_tokens=9, request=request).model == "lab/large"
        for body, says in (
            ({"request": {"holds": {"small": 1.0}}}, "name one arm by model="),
            ({"model": "unknown"}, "model 'unknown' has no price"),
            ({"max_tokens": 10**6}, "above its cap, and more with the others; ask for fewer"),
        ):
            with pytest.raises(BadParameter, match=re.escape(says)):
                models.chat.completions.create(**({"messages": MESSAGES, "max_tokens": 9} | body))
    assert client.campaign("says").held == 0.0


def test_prices_and_bounds_by_hand():
    table = price_table({"a": (1.0, 4.0), "b": TokenPrice(2.0, 8.0, cached_input=0.5)})
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    assert table["a"].cost(usage) == pytest.approx(0.0014)
    assert table["b"].cost(usage) == pytest.approx((600 * 2.0 + 400 * 0.5 + 100 * 8.0) / 1e6)
    assert table["a"].cost(None) is table["a"].cost({}) is None
    body = {"messages": [{"role": "user", "content": "äb"}], "max_tokens": 10, "n": 3}
    assert prompt_tokens_max(body) == 64 + 16 + 3 + len("user")
    assert table["a"].most(body) == pytest.approx((87 * 1.0 + 30 * 4.0) / 1e6)
    assert table["a"].most({"messages": []}) is None
    for wrong, says in (
        ({}, "map each arm"),
        ({"a": 3.0}, "'a' is 3.0; give TokenPrice"),
        ({"a": (-1, 2)}, "input is -1"),
    ):
        with pytest.raises(BadParameter, match=says):
            price_table(wrong)


def test_what_errors_mean():
    request = httpx.Request("POST", "http://x")

    def status(code):
        return openai.APIStatusError("no", response=httpx.Response(code, request=request), body=None)

    for code in (400, 413, 422):
        assert (failure_of(status(code)).report, failure_of(status(code)).again) == ("void", False)
    for code in (401, 403, 404, 408, 429, 500, 503):
        assert (failure_of(status(code)).report, failure_of(status(code)).charged) == ("fail", False)
    assert failure_of(openai.APITimeoutError(request)).charged
    never = openai.APIConnectionError(request=request)
    never.__cause__ = httpx.ConnectError("no")
    assert (failure_of(never).report, failure_of(never).charged) == ("fail", False)
    assert failure_of(KeyError("mine")).report == "leave"


class _Mapped(Exception):
    """An error of a package that hides the SDK's, as LiteLLM does."""

    status_code = 500


@pytest.mark.parametrize(("cause", "charged"), [(httpx.ReadError("cut"), True), (httpx.ConnectError("no"), False)])
def test_what_led_to_an_error_counts_and_an_earlier_attempt_does_not(cause, charged):
    request = httpx.Request("POST", "http://x")

    def attempt(kind):
        try:
            try:
                if kind == "status":
                    raise openai.APIStatusError("no", response=httpx.Response(500, request=request), body=None)
                raise openai.APIConnectionError(request=request) from cause
            except openai.APIError:
                raise RuntimeError("hidden once")  # noqa: B904
        except RuntimeError:
            raise _Mapped  # noqa: B904

    with pytest.raises(_Mapped) as lost:
        attempt("connection")
    assert (failure_of(lost.value).report, failure_of(lost.value).charged) == ("fail", charged)
    try:
        attempt("connection")
    except _Mapped:
        with pytest.raises(_Mapped) as again:
            attempt("status")
    assert (failure_of(again.value).report, failure_of(again.value).charged) == ("fail", False)


def test_the_example_of_the_manual_is_eight_lines():
    page = (Path(__file__).parents[2] / "docs/howto/language_models.md").read_text()
    [example] = re.findall(r"```python\n(from openai import OpenAI.*?)```", page, re.DOTALL)
    lines = [line for line in example.splitlines() if line.strip()]
    assert len(lines) <= 8
