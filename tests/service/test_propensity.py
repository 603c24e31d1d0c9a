"""How likely each choice was: near the exact probability, repeatable, and without effect on the choices."""

import csv
import json

import numpy as np
import pytest
from scipy import stats

from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.propensity import chances
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge, Request
from budgetbandits.service.audit.audit import verify
from budgetbandits.service.audit.export import export
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore

ARMS = {"a": 1.0, "b": 0.5}


@pytest.fixture
def store(memory_store):
    return memory_store


def learner_of(policy, scales=None):
    """Two arms with a few pulls each, and one that was never pulled."""
    learner, rng = Learner.new(parse_policy(policy), 3, Knowledge(50.0), scales=scales), np.random.default_rng(1)
    for arm, reward in [(0, 1.0), (0, 0.0), (0, 1.0), (1, 1.0)]:
        learner.learn(arm, reward, 1.0, rng)
    return learner


@pytest.mark.parametrize(("scales", "factor"), [(None, 1.0), (np.array([1.0, 0.25, 1.0]), 4.0)])
def test_it_is_near_the_exact_probability(scales, factor):
    """Of 40,000 draws: within 4.5 standard deviations, a false alarm in 10⁵ runs; the seed is fixed."""
    learner, among = learner_of("bts", scales), np.array([True, True, False])
    grid = (np.arange(400) + 0.5) / 400
    sides = []
    for reward, cost, scale in (((3, 2), (4, 1), 1.0), ((2, 1), (2, 1), factor)):
        logs = np.log(stats.beta(*reward).ppf(grid))[:, None] - np.log(stats.beta(*cost).ppf(grid)) + np.log(scale)
        sides.append(np.sort(logs.ravel()))
    p = float(np.searchsorted(sides[1], sides[0]).mean() / len(sides[1]))
    found = chances(learner, np.random.default_rng(5), 40_000, among).of(0)
    assert abs(found - p) < 4.5 * np.sqrt(p * (1 - p) / 40_000) + 1e-3  # the quadrature is that fine


@pytest.mark.parametrize("policy", ["bts", "thompson", "bts-paced"])
def test_drawn_as_arrays_or_one_by_one_it_is_the_same(policy):
    """The share of 600 plain choices, next to another 600: within 4.5 standard deviations of their difference, a false
    alarm in 10⁵; the seed is fixed. Shares that differ by 0.16 are found nearly always."""
    learner, among = learner_of(policy), np.array([True, False, True])
    rng = np.random.default_rng(3)
    for request in (
        (NO_REQUEST_INFO,) if policy != "bts-paced" else (NO_REQUEST_INFO, Request(0, np.array([0.1, 0.1, 0.15])))
    ):
        share = np.mean([learner.choose(rng, among, request) == 2 for _ in range(600)])
        found = chances(learner, rng, 600, among, request).of(2)
        assert 0.02 < share < 0.98
        assert abs(found - share) < 4.5 * np.sqrt(2 * share * (1 - share) / 600)


def test_dividing_by_it_is_nearly_unbiased():
    """E[(1 + n)/(1 + m)] = (1 − (1 − p)^(n+1)) / p, by enumeration of m."""
    for p, n in ((0.02, 100), (0.3, 20), (0.9, 5)):
        m = np.arange(n + 1)
        mean = float((stats.binom(n, p).pmf(m) * (1 + n) / (1 + m)).sum())
        assert mean == pytest.approx((1 - (1 - p) ** (n + 1)) / p, rel=1e-9)


def test_it_changes_no_choice_and_the_audit_repeats_it(engine, store, tampered):
    campaign = engine.create("ads", "bts", budget=1000.0, arms=ARMS, propensity_draws=50)
    for number in range(40):
        answer = engine.decide(campaign, str(number), **({} if number % 4 else {"arms": ["a"]}))
        made = store.decisions[answer.decision]
        assert made.propensity == store.events[-1].propensity
        assert made.propensity == 1.0 if number % 4 == 0 else 0.0 < made.propensity <= 1.0
        assert (made.propensity * 51) % 1 in (pytest.approx(0.0, abs=1e-9), pytest.approx(1.0, abs=1e-9))
        engine.feedback(answer.decision, reward=0.5, cost=0.25)
    assert verify(store, campaign) == []
    engine.change_terms(campaign, {"propensity_draws": None})  # the same choices are found without them
    assert store.decisions[engine.decide(campaign, "without").decision].propensity is None
    assert verify(store, campaign) == []
    event = next(each for each in store.events if each.propensity not in (None, 1.0))
    event.propensity += 1 / 51
    assert any("propensity would have been" in text for text in verify(store, campaign))


def test_an_export_says_among_which_arms_each_was_chosen(tmp_path, clock):
    """Arms that come, go, rest and cannot be paid, and those that a request leaves out; nothing if all could be."""
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store, clock)
        engine.create("ads", "bts", budget=3.5, arms={"a": 1.0, "b": 0.5, "c": 2.0}, propensity_draws=10)

        def decide(key, **request):
            engine.void(engine.decide("ads", key, **request).decision)

        decide("before d")
        engine.add_arm("ads", "d", 0.25)
        decide("all")
        decide("some", exclude=["a", "b"])
        for number in range(4):
            engine.feedback(engine.decide("ads", f"fails {number}", arms=["a"]).decision, failed=True)
        decide("a rests")
        decide("a rests, b out", exclude=["b"])
        clock.now += 10.0
        engine.retire_arm("ads", "d")
        decide("no d")
        clock.now += 10.0  # a may have been asked, and then cools down for 5
        engine.bring_back_arm("ads", "d")
        engine.decide("ads", "dear", arms=["c"])
        decide("c cannot be paid")
        export(store, "ads", tmp_path / "out.csv")
        assert verify(store, "ads") == []
    with (tmp_path / "out.csv").open() as file:
        arms = {row["key"]: json.loads(row["arms"]) if row["arms"] else "" for row in csv.DictReader(file)}
    assert arms == {
        "before d": ["a", "b", "c"], "all": "", "some": ["c", "d"], "a rests": ["b", "c", "d"],
        "a rests, b out": ["c", "d"], "no d": ["a", "b", "c"], "dear": ["c"], "c cannot be paid": ["a", "b", "d"],
        **{f"fails {number}": ["a"] for number in range(4)},
    }  # fmt: skip


def test_the_audit_finds_another_set_of_arms_to_choose_from(engine, store, tampered):
    campaign = engine.create("ads", "bts", budget=100.0, arms=ARMS | {"c": 1.0})
    for number in range(4):
        engine.feedback(engine.decide(campaign, f"fails {number}", arms=["a"]).decision, failed=True)
    made = engine.decide(campaign, "a rests")
    event = next(each for each in store.events if each.decision == made.decision)
    assert event.request == store.decisions[made.decision].request == '{"unavailable":[0]}'
    assert verify(store, campaign) == []
    for text in (None, '{"unavailable":[0,2]}'):
        event.request = store.decisions[made.decision].request = text
        assert any("could not have been chosen" in found for found in verify(store, campaign))


def test_an_export_has_what_was_said_of_the_request(tmp_path):
    with SQLiteStore(tmp_path / "money.db") as store:
        engine = DecisionService(store)
        engine.create("ads", "bts-paced", budget=10.0, arms=ARMS, horizon=20, propensity_draws=10)
        plain = engine.decide("ads", "plain")
        said = engine.decide("ads", "said", segment="code", exclude=["a"], prices={"b": 0.2})
        engine.feedback(plain.decision, failed=True)
        export(store, "ads", tmp_path / "out.csv")
        export(store, "ads", tmp_path / "events.csv", "events")
        assert verify(store, "ads") == []
    with (tmp_path / "out.csv").open() as file:
        rows = {row["decision"]: row for row in csv.DictReader(file)}
    first, second = rows[plain.decision], rows[said.decision]
    assert [first[name] for name in ("segment", "arms", "price", "failed")] == ["", "", "", "1"]
    assert 0.0 < float(first["propensity"]) <= 1.0
    assert [second[name] for name in ("segment", "arms", "price", "propensity", "failed")] == [
        "code", '["b"]', "0.2", "1.0", "0",
    ]  # fmt: skip
    with (tmp_path / "events.csv").open() as file:
        requests = [row["request"] for row in csv.DictReader(file) if row["kind"] == "decided"]
    assert json.loads(requests[1]) == {"segment": "code", "arms": [1], "prices": [200000], "holds": [300000]}
