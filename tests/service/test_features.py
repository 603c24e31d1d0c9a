"""Features of requests in the service: named by a campaign, given with each request, learned from and audited."""

import copy
import csv
import json
import math
import os
import random

import numpy as np
import pytest

from budgetbandits.errors import BadFeature, BadParameter, BadState, Conflict, TooManySegments
from budgetbandits.service import campaign_session
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.export import export
from budgetbandits.service.service import DecisionService
from budgetbandits.service.session_rows import arm_state, read_session
from stores import STORES, tamper

ARMS = {"small": 0.1, "large": 1.0}
FEATURES = ["length", "code"]


@pytest.fixture
def store(memory_store):
    return memory_store


def play(engines, campaign, requests, key="", **request):
    """Requests with features, of which each is answered: small is good for short ones alone."""
    chance = random.Random(key)
    for number in range(requests):
        length = chance.gauss(0.0, 1.0)
        engine = engines[number % len(engines)]
        made = engine.decide(campaign, f"{key}{number}", features={"length": length, "code": number % 2}, **request)
        reward = 0.9 if made.arm == "large" or length < 0.0 else 0.1
        other = engines[number // 2 % len(engines)]
        other.feedback(made.decision, reward=reward, cost=made.hold * 0.4)
    return engines[0].describe(campaign)


def test_a_campaign_without_a_policy_has_one_that_looks_at_what_it_names(engine):
    campaign = engine.create("ads", None, budget=50.0, arms=ARMS, features=FEATURES)
    assert engine.describe(campaign).policy == "bts-linear"
    assert engine.describe(campaign).features == ("length", "code")
    horizon = engine.create("paced", None, budget=50.0, arms=ARMS, horizon=100)
    assert engine.describe(horizon).policy == "bts-paced"
    assert engine.describe(engine.create("plain", None, budget=50.0, arms=ARMS)).policy == "bts"


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ([], "give a list of names, or leave it out"),
        ("length", "give a list of names"),
        (["length", "length"], "give each a name of its own"),
        (["length", ""], "give each a name of its own"),
        (["length", 5], "give each a name of its own"),
        ([f"x{number}" for number in range(65)], "name 64 at most"),
    ],
)
def test_names_of_features_that_cannot_be(engine, features, said):
    with pytest.raises(BadFeature, match=said):
        engine.create("ads", "bts-linear", budget=50.0, arms=ARMS, features=features)


def test_features_are_for_policies_that_look_at_them_and_stay_as_they_are(engine):
    with pytest.raises(BadFeature, match="bts-paced looks at no features of requests; leave out features"):
        engine.create("ads", "bts-paced", budget=50.0, arms=ARMS, features=FEATURES)
    campaign = engine.create("ads", "bts-linear", budget=50.0, arms=ARMS, features=FEATURES)
    with pytest.raises(BadParameter, match="'features' cannot be changed"):
        engine.change_terms(campaign, {"features": ["length"]})


def test_arms_times_features_have_a_bound(engine, monkeypatch):
    monkeypatch.setattr(campaign_session, "CELLS_MAX", 8)
    with pytest.raises(BadFeature, match="name fewer features, or have fewer arms"):
        engine.create("wide", "bts-linear", budget=50.0, arms=ARMS, features=["a", "b", "c", "d"])
    campaign = engine.create("ads", "bts-linear", budget=50.0, arms=ARMS, features=FEATURES)
    given = {"length": 1.0, "code": 0.0}
    for segment in ("one", "two"):
        engine.decide(campaign, segment, segment=segment, features=given)
    with pytest.raises(TooManySegments, match="arms times segments and features are 8 at most"):
        engine.decide(campaign, "three", segment="three", features=given)
    with pytest.raises(TooManySegments, match="2 segments and 2 features"):
        engine.add_arm(campaign, "middle", 0.5)


@pytest.mark.parametrize(
    ("request_fields", "said"),
    [
        ({}, "feature 'length' is missing; give every request 'length', 'code'"),
        ({"segment": "mail"}, "feature 'length' is missing"),
        ({"features": {"length": 1.0}}, "feature 'code' is missing"),
        ({"features": {"length": 1.0, "code": 0.0, "day": 3.0}}, "there is no feature 'day'; the features are"),
        ({"features": {"length": math.nan, "code": 0.0}}, "'length' is nan; use a number between"),
        ({"features": {"length": 1.0, "code": -math.inf}}, "'code' is -inf; use a number between"),
        ({"features": [1.0, 2.0]}, "map the names of features to numbers"),
    ],
)
def test_requests_with_other_features_are_refused_and_hold_nothing(engine, request_fields, said):
    campaign = engine.create("ads", "bts-linear", budget=50.0, arms=ARMS, features=FEATURES)
    for decide in (lambda: engine.decide(campaign, "k", **request_fields),
                   lambda: engine.decide_many(campaign, "k", 2, **request_fields)):  # fmt: skip
        with pytest.raises(BadFeature, match=said):
            decide()
    assert engine.account(campaign).held == 0


def test_features_where_none_are_named_are_refused(engine):
    campaign = engine.create("ads", "bts-paced", budget=50.0, arms=ARMS)
    with pytest.raises(BadFeature, match="feature 'length' is not looked at"):
        engine.decide(campaign, "k", features={"length": 1.0})


def test_a_key_is_for_one_set_of_features(engine):
    campaign = engine.create("ads", "bts-linear", budget=50.0, arms=ARMS, features=FEATURES)
    first = engine.decide(campaign, "k", features={"length": 1.5, "code": True})
    assert engine.decide(campaign, "k", features={"code": 1, "length": 1.5}) == first
    with pytest.raises(Conflict):
        engine.decide(campaign, "k", features={"length": 1.25, "code": 1.0})


@pytest.mark.parametrize("lease", [{}, {"lease": 5.0, "lease_seconds": 10.0}], ids=["own", "leased"])
@pytest.mark.parametrize("name", STORES)
def test_two_servers_learn_the_same_and_the_audit_agrees(name, lease, tmp_path, clock):
    """Each opens segments that the other has not seen, an arm comes, and a third server reads everything from rows."""
    with STORES[name](tmp_path) as opener, opener() as store:
        engines = [DecisionService(store, clock), DecisionService(store, clock)]
        terms = {"horizon": 200, "features": FEATURES, "propensity_draws": 5, **lease}
        campaign = engines[0].create("ads", "bts-linear", 60.0, ARMS, **terms)
        play(engines, campaign, 16, "plain")
        play(engines[::-1], campaign, 12, "code", segment="code")
        play(engines, campaign, 12, "mail", segment="mail")
        engines[1].add_arm(campaign, "middle", 0.5)
        assert len(engines[0].decide_many(campaign, "many", 3, features={"length": 0.5, "code": 1.0})) == 3
        play([*engines, DecisionService(store, clock)], campaign, 20, "all", segment="code")
        engines[0].set_status(campaign, "paused")  # which ends leases
        assert verify(store, campaign) == []
        assert engines[0].describe(campaign).requests_answered == 60
        row = store.read(lambda tx: tx.campaign("ads"))
        arms = store.read(lambda tx: tx.arms(row.id))
        session = read_session(row, arms)
        assert [arm_state(session, arm) for arm in range(3)] == [arm.learned for arm in arms]
        assert session.state.products.shape == (5, 5, 3)  # the level, two features, two segments besides none


def test_what_is_learned_is_written_bit_for_bit_as_text(engine, store, clock):
    campaign = engine.create("ads", "bts-linear", 60.0, ARMS, horizon=200, features=[f"x{n}" for n in range(20)])
    chance = np.random.default_rng(5)
    for number in range(20):
        made = engine.decide(campaign, str(number), features={f"x{n}": chance.normal() for n in range(20)})
        engine.feedback(made.decision, reward=chance.random(), cost=made.hold * chance.random())
    row = store.read(lambda tx: tx.campaign("ads"))
    arms = store.read(lambda tx: tx.arms(row.id))
    kept, again = engine._sessions.kept[campaign].state, read_session(row, arms).state
    for name in ("products", "responses", "totals", "recent", "pulls"):
        assert np.array_equal(getattr(again, name), getattr(kept, name)), name
    assert isinstance(arms[0].learned["products"], dict)
    assert isinstance(arms[0].learned["totals"], list)


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: kept.update(base64=kept["base64"][:-8]),
        lambda kept: kept.update(base64="?" + kept["base64"][1:]),
        lambda kept: kept.update(shape=[1, 2]),
        lambda kept: kept.pop("shape"),
        lambda kept: kept.update(base64=5),
        lambda kept: kept.update(base64="////" * (len(kept["base64"]) // 4)),  # NaN
    ],
)
def test_damaged_text_is_a_bad_state(engine, store, clock, damage):
    campaign = engine.create("ads", "bts-linear", 60.0, ARMS, features=[f"x{n}" for n in range(20)])
    made = engine.decide(campaign, "k", features={f"x{n}": 1.0 for n in range(20)})
    engine.feedback(made.decision, reward=1.0, cost=0.05)
    row = store.read(lambda tx: tx.campaign("ads"))
    rows = copy.deepcopy(store.read(lambda tx: tx.arms(row.id)))
    damage(rows[0].learned["products"])
    with pytest.raises(BadState, match="damaged"):
        read_session(row, rows)


def test_the_export_names_features(engine, store, tmp_path):
    campaign = engine.create("ads", "bts-linear", 60.0, ARMS, features=FEATURES)
    engine.decide(campaign, "k", features={"code": 1.0, "length": 0.1})
    export(store, campaign, tmp_path / "made.csv")
    [row] = csv.DictReader((tmp_path / "made.csv").read_text().splitlines())
    assert json.loads(row["features"]) == {"length": 0.1, "code": 1.0}


def test_the_audit_sees_features_that_were_changed(tmp_path, clock):
    with STORES["sqlite"](tmp_path) as opener:
        with opener() as store:
            engine = DecisionService(store, clock)
            campaign = engine.create("ads", "bts-linear", 60.0, ARMS, horizon=200, features=FEATURES)
            play([engine], campaign, 10)
            assert verify(store, campaign) == []
        change = "UPDATE event SET request = replace(request, ':[', ':[9') WHERE kind = 'decided'"
        assert tamper(tmp_path / "money.db", change) == 10
        with opener() as store:
            assert any("arm 'small'" in each or "arm 'large'" in each for each in verify(store, campaign))


def test_a_budget_with_features_lasts_for_its_requests(store, clock, monkeypatch):
    """There is 0.25 for each request, large costs 0.4 and small 0.04. The best mix of those who know no features earns
    0.73 of them; with large for long requests alone it is 0.9."""
    monkeypatch.setattr(os, "urandom", random.Random(20).randbytes)  # ids seed the draws
    engine = DecisionService(store, clock)
    campaign = engine.create("ads", None, 60.0, ARMS, horizon=240, features=FEATURES)
    told = play([engine], campaign, 240)
    earned = sum(row.reward for row in store.decisions.values())
    assert told.requests_answered == 240
    assert told.spent <= 60.0
    assert earned > 0.8 * 240
