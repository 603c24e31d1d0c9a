"""Features on the pages: which of them move reward and price, and what would be chosen for a request."""

import html
import math
import random
import re

import numpy as np
import pytest

from browsing import Browser
from budgetbandits.policies.base import Knowledge, Request
from budgetbandits.policies.linear import LinearThompson
from budgetbandits.service.http.auth import make_key
from served import served

ARMS = {"small": 0.1, "large": 1.0}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A reward of 0.5 + 0.2 x and a price of a fifth of the cap times exp(x / 2), with both arms; one feature does
    nothing, and one never varies."""
    chance = random.Random(8)
    with served(tmp_path_factory.mktemp("features")) as store:
        engine = store.engine
        engine.create("models", None, 100.0, ARMS, horizon=1000, features=["x", "noise", "constant"])
        engine.create("new", None, 100.0, ARMS, features=["x"])
        engine.create("plain", "bts", 100.0, ARMS)
        for number in range(120):
            x, names = chance.choice([-1.0, 1.0]), list(ARMS)
            given = {"x": x, "noise": chance.random(), "constant": 3.0}
            made = engine.decide("models", str(number), features=given, arms=[names[number % 2]], segment="chat")
            engine.feedback(made.decision, reward=0.5 + 0.2 * x, cost=ARMS[made.arm] / 5 * math.exp(x / 2))
        store.reader = Browser(store.app, make_key(store, ["read"], 0.0))
        yield store


def test_the_effects_are_those_that_are_true(store):
    lines = store.reader("GET", "/campaigns/models?format=json").json()["feature_effects"]
    assert [line["name"] for line in lines] == ["x", "noise", "constant"]  # the surest first
    assert lines[0]["standard_deviation"] == pytest.approx(1.0, abs=0.02)
    for effect in lines[0]["effects"]:
        for kind, true in (("reward", 0.2), ("price", math.expm1(0.5))):
            found = effect[kind]
            assert found["median"] == pytest.approx(true, rel=0.3)  # the guess is that arms are alike, and features 0
            assert 0.0 < found["low"] < found["median"] < found["high"]
    assert all(each["reward"]["low"] < 0.0 < each["reward"]["high"] for each in lines[1]["effects"])
    assert lines[2]["effects"] == []


def test_the_page_shows_effects_and_leads_to_the_form(store):
    page = html.unescape(store.reader("GET", "/campaigns/models").text)
    assert "has not varied yet" in page
    assert page.count('<circle class="median" cx=') >= 8
    assert '/campaigns/models/request">What would be chosen' in page
    assert "Effects are shown once a reward and a cost are reported" in store.reader("GET", "/campaigns/new").text
    assert 'id="features"' not in store.reader("GET", "/campaigns/plain").text
    assert "What would be chosen" not in store.reader("GET", "/campaigns/models/file").text


def asked(store, **typed):
    names = {"x": "feature-0", "noise": "feature-1", "constant": "feature-2"}
    query = "&".join(f"{names.get(name, name)}={value}" for name, value in typed.items())
    return store.reader("GET", f"/campaigns/models/request?format=json&{query}")


def test_a_request_that_is_typed_in_is_answered_and_changes_nothing(store):
    before = store.read(lambda tx: tx.last_event(tx.campaign("models").id))
    high, low = asked(store, x=1).json(), asked(store, x=-1).json()
    assert high == asked(store, x=1).json()
    for answer, x in ((high, 1.0), (low, -1.0)):
        assert sum(each["chance"] for each in answer["answers"]) == pytest.approx(1.0)
        for each in answer["answers"]:
            assert each["reward"] == pytest.approx(0.5 + 0.2 * x, abs=0.06)
            assert each["price"] == pytest.approx(ARMS[each["name"]] / 5 * math.exp(x / 2), rel=0.3)
    assert low["answers"][0]["name"] == "small"  # 1,000 requests of large would cost 230
    assert store.read(lambda tx: tx.last_event(tx.campaign("models").id)) == before


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"x": "long"}, "Feature 'x' is 'long'; use a number between"),
        ({"x": "nan"}, "Feature 'x' is nan; use a number between"),
        ({"segment": "mail"}, "There is no segment 'mail'; choose one"),
    ],
)
def test_a_request_that_cannot_be_is_refused_in_the_form(store, typed, said):
    assert asked(store, **typed).json()["answers"] == []
    names = {"x": "feature-0"}
    [(name, value)] = typed.items()
    page = store.reader("GET", f"/campaigns/models/request?{names.get(name, name)}={value}")
    assert page.status_code == 422
    assert said in html.unescape(page.text)
    if name == "x":
        assert f'value="{value}"' in page.text  # as it was typed


def test_the_form_begins_with_means(store):
    page = store.reader("GET", "/campaigns/models/request").text
    assert re.search(r'name="feature-2" value="3"', page)
    assert "<option>chat</option>" in page
    refused = store.reader("GET", "/campaigns/plain/request?format=json")
    assert (refused.status_code, refused.json()["title"]) == (422, "BadFeature")


def test_means_and_deviations_are_those_of_the_requests_however_large_or_rare():
    policy, rng = LinearThompson(forget=0.0), np.random.default_rng(4)
    state = policy.start(2, Knowledge(budget=1e3, horizon=1e3, features=2))
    rows = np.column_stack([1_764_321_987.0 + 3600.0 * rng.standard_normal(300), rng.random(300) < 0.02])
    for number, row in enumerate(rows):
        policy.observe(state, number % 2, 0.5, 0.1, rng, Request(features=row))
    mean, deviation, *_ = policy.feature_slopes(state)
    assert mean == pytest.approx(rows.mean(axis=0), rel=1e-12)
    assert deviation == pytest.approx(rows.std(axis=0), rel=1e-6)
