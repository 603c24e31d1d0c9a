"""Calls of language models: their holds, the meaning of errors, and retries, without any network."""

import json

import httpx
import openai
import pytest

from budgetbandits.adapters.calls import (
    Attempts,
    StreamUsage,
    TokenPrice,
    decision_of,
    failure_of,
    prompt_tokens_max,
    request_fields,
)
from budgetbandits.answers import ArmAnswer, CampaignDetailAnswer
from budgetbandits.errors import BadParameter

PRICE = TokenPrice(1.0, 4.0)
BODY = {"messages": [{"role": "user", "content": "How far is the moon?"}], "max_tokens": 40}


def status(code, message="no", **headers):
    response = httpx.Response(code, headers=headers, request=httpx.Request("POST", "http://x"))
    return openai.APIStatusError(message, response=response, body=None)


def campaign(**caps):
    arms = tuple(ArmAnswer(name, cap, True, 0) for name, cap in caps.items())
    money = dict.fromkeys(("budget", "spent", "held", "leased", "left", "overrun", "created_at"), 1.0)
    return CampaignDetailAnswer(id="1", name="models", policy="bts", status="active", arms=arms, **money)


# --- what is held ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"extra_body": {"documents": [{"text": "x" * 9_000}]}},
        {"function_call": {"name": "x" * 9_000}},
        {"functions": [{"name": "f", "description": "x" * 9_000}]},
        {"tools": [{"function": {"name": "f", "description": "x" * 9_000}}]},
        {"chat_template": "x" * 9_000},
        {"messages": [{"role": "assistant", "function_call": {"name": "f", "arguments": "x" * 9_000}}]},
        {"messages": [{"role": "assistant", "reasoning_content": "x" * 9_000}]},
        {"extra_body": {"messages": [{"role": "user", "content": "x" * 9_000}]}},
    ],
    ids=lambda more: "-".join([*more, *(more.get("extra_body") or {})]),
)
def test_whatever_is_sent_counts_in_what_is_held(more):
    assert prompt_tokens_max(BODY | more) >= 9_000
    assert PRICE.most(BODY | more) >= 9_000 / 1e6


@pytest.mark.parametrize(
    ("more", "answers"),
    [
        ({"extra_body": {"max_tokens": 4_000}}, 4_000),
        ({"extra_body": {"max_completion_tokens": 4_000}}, 4_000),
        ({"n": 2, "extra_body": {"n": 8}}, 320),
        ({"extra_body": {"best_of": 8}}, 320),
    ],
)
def test_the_answers_are_those_that_extra_body_asks_for(more, answers):
    assert PRICE.most(BODY | more) - PRICE.most(BODY) >= (answers - 40) * 4.0 / 1e6


@pytest.mark.parametrize(
    "more",
    [
        {"max_tokens": -1},  # "no limit" of some servers
        {"max_tokens": 0},
        {"extra_body": {"max_tokens": None}},
        {"n": "2"},
        {"prediction": {"content": "x"}},
        {"web_search_options": {}},
        {"service_tier": "priority"},
        {"audio": {"voice": "x"}},
        {"messages": [{"role": "assistant", "audio": {"id": "x"}}]},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
        {"messages": [{"role": "user", "content": ({"type": "image_url", "image_url": {"url": "x"}},)}]},
    ],
    ids=json.dumps,
)
def test_what_its_tokens_do_not_bound_holds_the_cap(more):
    assert PRICE.most(BODY | more) is None


def test_an_iterator_holds_the_cap_and_is_left_to_the_sdk():
    parts = iter([{"type": "image_url", "image_url": {"url": "x"}}])
    messages = iter([{"role": "user", "content": "x" * 9_000}])
    assert PRICE.most(BODY | {"messages": [{"role": "user", "content": parts}]}) is None
    assert PRICE.most(BODY | {"messages": messages}) is None
    assert (len(list(parts)), len(list(messages))) == (1, 1)


def test_settings_that_are_no_part_of_the_prompt_hold_nothing():
    assert PRICE.most(BODY | {"temperature": 0.5, "seed": 7, "user": "u-17", "extra_headers": {"x": "y" * 99}}) == (
        PRICE.most(BODY)
    )


def test_a_cached_price_above_the_price_of_input_counts_in_what_is_held():
    dear = TokenPrice(1.0, 4.0, cached_input=3.0)
    tokens = prompt_tokens_max(BODY)
    usage = {"prompt_tokens": tokens, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": tokens}}
    assert dear.most(BODY) == dear.cost(usage) == pytest.approx((3.0 * tokens + 4.0 * 40) / 1e6)


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 160}, (100 + 60 * 4) / 1e6),
        ({"prompt_tokens": -1, "completion_tokens": 10}, None),
        ({"prompt_tokens": 100, "completion_tokens": None}, None),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 900}}, 90 / 1e6),
    ],
    ids=["tokens that only the total has", "negative", "unknown", "more cached than sent"],
)
def test_a_usage_never_costs_less_than_it_says(usage, cost):
    assert TokenPrice(1.0, 4.0, cached_input=0.5).cost(usage) == (cost if cost is None else pytest.approx(cost))


def test_a_request_carries_segment_features_and_prices_of_the_arms_that_may_answer():
    prices = {"small": PRICE, "large": TokenPrice(10.0, 40.0), "tiny": TokenPrice(0.1, 0.4)}
    request = {
        "segment": "chat",
        "features": {"length": 5.0},
        "prices": {"small": 0.001, "large": 0.01, "tiny": 0.0001},
        "exclude": ["tiny"],
        "metadata": {"user": "u-17"},
    }
    fields = request_fields(campaign(small=0.01, large=1e-6, tiny=0.01), prices, BODY, prices, request)
    assert fields == {
        "arms": ["small"],  # the large one's call could cost more than its cap
        "holds": {"small": PRICE.most(BODY)},
        "prices": {"small": 0.001},
        "segment": "chat",
        "features": {"length": 5.0},
        "metadata": {"user": "u-17"},
    }
    unbounded = request_fields(campaign(small=0.01), prices, BODY | {"max_tokens": None}, prices, request)
    assert unbounded["holds"] == {"small": 0.01}  # not 1.5 times its estimate
    with pytest.raises(BadParameter, match="request has holds; it may have segment"):
        request_fields(campaign(small=0.01), prices, BODY, prices, {"holds": {"small": 1.0}})


# --- usage of streams ------------------------------------------------------------------------------------------------


def chunk(finish=None, usage=None, index=0):
    return {"choices": [{"index": index, "finish_reason": finish}], "usage": usage}


def test_the_usage_of_a_stream_counts_once_every_answer_has_ended():
    part, whole = {"prompt_tokens": 10, "completion_tokens": 1}, {"prompt_tokens": 10, "completion_tokens": 9}
    for chunks, answers, final in (
        ([chunk(usage=part), chunk(usage=part)], 1, None),  # a usage with each chunk, of what came until then
        ([chunk(usage=part), chunk("stop", whole)], 1, whole),
        ([chunk(usage=part), chunk("stop"), {"choices": [], "usage": whole}], 1, whole),
        ([chunk("stop", part), chunk(usage=part, index=1)], 2, None),
        ([chunk("stop", part), chunk("length", whole, index=1)], 2, whole),
        ([chunk("stop")], 1, None),
    ):
        usage = StreamUsage(answers)
        for piece in chunks:
            usage.add(piece)
        assert usage.final == final


# --- what an error means ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message", "elsewhere"),
    [
        (400, "This model's maximum context length is 4096 tokens. However, you requested 5000", True),
        (400, "{'code': 'context_length_exceeded'}", True),
        (400, "prompt is too long: 210000 tokens > 200000 maximum", True),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", True),
        (400, "max_tokens is too large: 9000. This model supports at most 4096 completion tokens", True),
        (400, "llama2 does not support tools", True),
        (400, "`tool calling` is not supported with this model", True),
        (400, '"auto" tool choice requires --enable-auto-tool-choice', True),
        (400, "Unsupported parameter: 'response_format' is not supported with this model.", True),
        (413, "Request too large", True),
        (400, "no messages", False),
        (400, "Your request was rejected by the content policy", False),
        (422, "messages.0.role: invalid", False),
    ],
)
def test_a_refusal_for_length_or_tools_is_tried_at_another_arm(code, message, elsewhere):
    failure = failure_of(status(code, message))
    assert (failure.report, failure.charged, failure.again, failure.elsewhere) == ("void", False, False, elsewhere)


@pytest.mark.parametrize("cause", [httpx.UnsupportedProtocol("no"), httpx.ProxyError("no"), httpx.ConnectTimeout("no")])
def test_what_no_provider_was_sent_costs_nothing(cause):
    error = openai.APIConnectionError(request=httpx.Request("POST", "http://x"))
    error.__cause__ = cause
    assert not failure_of(error).charged


def test_an_error_before_anything_was_sent_is_void_whatever_it_is():
    for error in (TypeError("create() got an unexpected keyword"), openai.APIConnectionError(request=None)):
        failure = failure_of(error, sent=False)
        assert (failure.report, failure.charged, failure.again) == ("void", False, False)


def test_an_answer_that_cannot_be_read_is_charged():
    broken = json.JSONDecodeError("no", "{", 0)
    assert (failure_of(broken).report, failure_of(broken).charged, failure_of(broken).again) == ("fail", True, True)


class Made(Exception):
    """An error whose status a package like LiteLLM has made up: the provider had answered 200."""

    status_code = 500


Made.__module__ = "litellm.exceptions"


@pytest.mark.parametrize(("inner", "charged"), [(ValueError("Invalid response"), True), (status(503), False)])
def test_only_a_status_of_the_provider_says_that_nothing_was_charged(inner, charged):
    error = Made()
    error.__context__ = inner
    assert (failure_of(error).report, failure_of(error).charged) == ("fail", charged)


def test_the_error_of_an_earlier_attempt_says_nothing_of_this_one():
    first = Made()
    first.__context__ = httpx.ConnectError("no")
    assert not failure_of(first).charged
    second, inner = Made(), ValueError("Invalid response")
    second.__context__, inner.__context__ = inner, first
    assert failure_of(second).charged


# --- when it is asked again ------------------------------------------------------------------------------------------


def attempts(most=3):
    now = [100.0]
    tries = Attempts(most, {}, clock=lambda: now[0])
    tries.able = ["small", "large"]
    return tries, now


def test_an_arm_that_failed_waits_and_another_is_asked_at_once():
    tries, now = attempts()
    assert tries.again("small", failure_of(status(429, **{"Retry-After": "2"})))
    assert (tries.turn(), tries.pause) == (["large"], 0.0)
    assert tries.again("large", failure_of(status(500)))
    assert tries.turn() == ["large"]
    assert 0.0 < tries.pause <= 1.0
    now[0] += 3.0
    assert (set(tries.turn()), tries.pause) == ({"small", "large"}, 0.0)
    assert not tries.again("large", failure_of(status(500)))  # the third


@pytest.mark.parametrize(
    ("headers", "shortest", "longest"),
    [({"Retry-After": "2"}, 2.0, 2.0), ({}, 0.25, 0.5), ({"Retry-After": "soon"}, 0.25, 0.5)],
)
def test_the_only_arm_is_asked_again_after_the_time_it_named(headers, shortest, longest):
    tries, _ = attempts()
    tries.able = ["small"]
    assert tries.again("small", failure_of(status(429, **headers)))
    assert tries.turn() == ["small"]
    assert shortest <= tries.pause <= longest


def test_a_provider_that_wants_a_long_pause_is_not_waited_for():
    tries, _ = attempts()
    tries.able = ["small"]
    assert not tries.again("small", failure_of(status(429, **{"Retry-After": "3600"})))


def test_an_arm_that_refused_the_call_is_never_asked_again():
    tries, _ = attempts()
    assert tries.again("small", failure_of(status(400, "prompt is too long")))
    assert tries.turn() == ["large"]
    assert not tries.again("large", failure_of(status(400, "prompt is too long")))


def test_another_call_leaves_out_an_arm_that_wants_a_pause_and_waits_if_it_is_the_only_one():
    resting = {}
    first = Attempts(3, resting, clock=lambda: 100.0)
    first.able = ["small", "large"]
    first.again("small", failure_of(status(429, **{"Retry-After": "2"})))
    second = Attempts(3, resting, clock=lambda: 101.0)
    second.able = ["small", "large"]
    assert (second.turn(), second.pause) == (["large"], 0.0)
    second.able = ["small"]
    assert (second.turn(), second.pause) == (["small"], 1.0)
    later = Attempts(3, resting, clock=lambda: 102.5)
    later.able = ["small", "large"]
    assert later.turn() == ["small", "large"]


def test_a_call_waits_for_the_arm_that_is_ready_first_whichever_call_it_failed():
    resting = {"small": 130.0}
    tries = Attempts(3, resting, clock=lambda: 100.0)
    tries.able = ["small", "large"]
    assert tries.again("large", failure_of(status(500)))
    assert tries.turn() == ["large"]
    assert 0.25 <= tries.pause <= 0.5
    resting["large"] = 140.0
    assert (tries.turn(), tries.pause) == (["small"], 30.0)


def test_a_new_call_asks_an_arm_that_wants_a_long_pause_at_once_so_that_the_provider_says_so():
    tries = Attempts(3, {"small": 3_700.0}, clock=lambda: 100.0)
    tries.able = ["small"]
    assert (tries.turn(), tries.pause) == (["small"], 0.0)
    assert not tries.again("small", failure_of(status(429)))


def test_a_decision_is_found_at_its_answer_and_an_answers_id_is_none():
    assert decision_of("d-1") == "d-1"
    assert decision_of({"decision": "d-2"}) == "d-2"
    with pytest.raises(BadParameter, match="pass what create returned, or a decision's id"):
        decision_of(object())
