"""Features of a call of a language model: what moves them, and who fills them in."""

import pytest

from budgetbandits.adapters.calls import TokenPrice, request_fields
from budgetbandits.adapters.request_features import REQUEST_FEATURES, TEXT_MAX, request_features
from budgetbandits.answers import ArmAnswer, CampaignDetailAnswer


def chat(text, **more):
    return {"messages": [{"role": "user", "content": text}]} | more


@pytest.mark.parametrize(
    ("name", "less", "more"),
    [
        ("text_length", chat("Hi"), chat("Hi there")),
        ("text_lines", chat("a b"), chat("a\nb")),
        ("text_sentences", chat("So it is"), chat("So. It is!")),
        ("text_numbers", chat("12345"), chat("1 2 3")),
        ("text_mathematics", chat("Who is it?"), chat("How many is twice the total?")),
        ("text_writing", chat("Who is it?"), chat("Translate this")),
        ("text_reasoning", chat("Who is it?"), chat("Explain why")),
        ("text_word_length", chat("a bc"), chat("antidisestablishmentarianism")),
        ("text_digits", chat("one"), chat("1ne")),
        ("text_capitals", chat("one"), chat("ONE")),
        ("text_punctuation", chat("one two"), chat("one, two")),
        ("text_code", chat("f of x"), chat("f(x);")),
        ("text_foreign", chat("green"), chat("grün")),
        ("context_length", chat("Hi"), {"messages": [{"content": "Be kind."}, {"content": "Hi"}]}),
        ("turns", chat("Hi"), {"messages": [{"content": "Hi"}] * 3}),
        ("answer_length", chat("Hi", max_tokens=5), chat("Hi", max_completion_tokens=50)),
        ("has_tools", chat("Hi"), chat("Hi", tools=[{"type": "function"}])),
        ("has_pictures", chat("Hi"), chat([{"type": "text", "text": "Hi"}, {"type": "image_url"}])),
        (
            "wants_json",
            chat("Hi", response_format={"type": "text"}),
            chat("Hi", response_format={"type": "json_object"}),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_feature_grows_with_what_it_is_called_after(name, less, more):
    assert request_features(less)[name] < request_features(more)[name]


def test_the_features_are_those_that_are_named():
    assert tuple(request_features(chat("Hi"))) == REQUEST_FEATURES


@pytest.mark.parametrize(
    "body",
    [
        {
            "messages": [
                {"role": "system", "content": "x"},
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            ]
        },
        {"input": "Hi"},
        {"prompt": "Hi"},
        {"input": [{"role": "user", "content": "Hi"}]},
    ],
)
def test_the_text_is_that_of_the_last_message_whatever_the_protocol(body):
    assert request_features(body)["text_length"] == request_features(chat("Hi"))["text_length"]


@pytest.mark.parametrize(
    "messages", [None, [], 7, [None], [{}], [{"content": None}], [{"content": [None, {"text": 3}]}]]
)
def test_a_body_without_text_has_features_too(messages):
    features = request_features({"messages": messages, "max_tokens": "many", "response_format": "json"})
    assert set(features.values()) <= {0.0, features["turns"]}


def test_the_middle_of_a_long_text_is_not_looked_at():
    head, tail = "Explain " * 200, " 1 + 1" * 300
    texts = [head + middle + tail for middle in ("a" * 100_000, "1" * 100_000)]
    short, long = (request_features(chat(text)) for text in texts)
    assert len(head + tail) > TEXT_MAX
    assert short == long


def named(*features):
    arms = (ArmAnswer("small", 1.0, True, 0),)
    money = dict.fromkeys(("budget", "spent", "held", "leased", "left", "overrun", "created_at"), 1.0)
    return CampaignDetailAnswer(
        id="1", name="models", policy="bts-linear", status="active", arms=arms, features=features or None, **money
    )


def test_the_features_that_a_campaign_names_are_filled_in_and_those_of_the_request_win():
    body, prices = chat("Explain why", max_tokens=5), {"small": TokenPrice(1.0, 1.0)}
    campaign = named("text_reasoning", "turns", "premium")
    fields = request_fields(campaign, prices, body, ["small"], {"features": {"premium": 1.0, "turns": 9.0}})
    assert fields["features"] == {
        "text_reasoning": request_features(body)["text_reasoning"], "turns": 9.0, "premium": 1.0
    }  # fmt: skip
    assert "features" not in request_fields(named(), prices, body, ["small"])
    assert "features" not in request_fields(named("premium"), prices, body, ["small"])
