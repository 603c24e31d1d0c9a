"""Probabilities of choices: the program solved for many draws at once, and (1 + m) / (1 + n), against exact values."""

import copy

import numpy as np
import pytest
from scipy import stats

from budgetbandits import Allocation, parse_policy
from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.propensity import chances, counts
from budgetbandits.errors import BadParameter
from budgetbandits.numerics.fluid import arms_at_rate, best_mix
from budgetbandits.policies.base import Knowledge, Request, RequestPolicy
from budgetbandits.problems.records import ReplayTable, read_table
from budgetbandits.simulation.replay import logged
from deep import EVERY_POLICY, deep


@pytest.mark.parametrize(("segments", "arms"), [(1, 2), (4, 3), (3, 1), *deep((1, 6), (9, 3))])
def test_many_programs_at_once_have_the_solutions_of_each(segments, arms):
    rng = np.random.default_rng(segments * 10 + arms)
    draws = 200
    reward = rng.random((draws, segments, arms))
    cost = rng.random((draws, segments, arms)) ** 3 + 1e-6
    weight = rng.dirichlet(np.ones(segments))
    for rate in (0.0, 1e-3, 0.05, 0.2, 0.6, 2.0):
        lot = rng.random(draws)
        for segment in range(segments):
            mixes = arms_at_rate(reward, cost, weight, rate, segment)
            chosen = np.where(lot < mixes.share, mixes.upgrade, mixes.arm)
            for each in range(draws):
                mix = best_mix(reward[each].tolist(), cost[each].tolist(), weight.tolist(), rate)
                upgraded = segment == mix.mixed and lot[each] < mix.share
                assert chosen[each] == (mix.upgrade if upgraded else mix.arms[segment]), (rate, each)
                prices = mixes.price[each], mixes.price_if_short[each]
                assert prices == pytest.approx((mix.price, mix.price_if_short), rel=1e-9)


def told(policy, requests, rng):
    """A learner of three arms that has seen requests of these segments."""
    learner = Learner.new(policy, 3, Knowledge(budget=30.0, horizon=100.0))
    for segment in requests:
        arm = int(rng.integers(3))
        request = {}
        if isinstance(policy, RequestPolicy):
            while policy.segments(learner.state) <= segment:
                policy.open_segment(learner.state)
            request = {"request": Request(segment)}
        learner.learn(arm, float(rng.random() < 0.3 + 0.2 * arm), 0.1 + 0.3 * arm, rng, **request)
    return learner


def same_law(some, others):
    """By a chi-square test of two samples; a false alarm in 1 of 10,000 runs of other seeds."""
    both = np.array([some, others])[:, (some + others) > 0]
    assert both.shape[1] > 1, "this test would show nothing"
    return stats.chi2_contingency(both).pvalue > 1e-4


@pytest.mark.parametrize("spec", ["bts-paced", "bts", *deep("bts-paced:trials=1", "bts-gaussian")])
def test_choices_at_once_have_the_law_of_choices_one_by_one(spec):
    rng = np.random.default_rng(5)
    policy = parse_policy(spec)
    learner = told(policy, [0, 1, 1, 2, 0, 1], rng)
    request = (Request(1),) if isinstance(policy, RequestPolicy) else ()
    before = learner.state.to_dict()
    at_once = counts(learner, rng, 4000, None, *request)
    assert learner.state.to_dict() == before
    one_by_one = np.bincount([policy.choose(learner.state, rng, *request) for _ in range(800)], minlength=3)
    assert same_law(at_once, one_by_one)
    some = np.array([True, False, True])
    two = counts(learner, rng, 4000, some, *request)
    assert (two[1], two.sum()) == (0, 4000)
    one_by_one = np.bincount([learner.choose(rng, some, *request) for _ in range(800)], minlength=3)
    assert same_law(two, one_by_one)


def test_a_policy_that_counts_its_choices_is_not_changed():
    rng = np.random.default_rng(5)
    learner = told(parse_policy("epsilon-first"), [0], rng)
    before = learner.state.to_dict()
    assert counts(learner, rng, 30).sum() == 30
    assert learner.state.to_dict() == before


@pytest.mark.deep
def test_prices_of_a_request_are_looked_at():
    rng = np.random.default_rng(6)
    policy = parse_policy("bts-paced")
    learner = told(policy, [0, 1, 2] * 5, rng)
    request = Request(0, np.array([0.9, 0.05, 0.9]))
    at_once = counts(learner, rng, 4000, None, request)
    one_by_one = np.bincount([policy.choose(learner.state, rng, request) for _ in range(800)], minlength=3)
    assert same_law(at_once, one_by_one)


def test_the_inverse_of_a_propensity_is_as_unbiased_as_is_said():
    """E[(1 + n) / (1 + m)] = (1 − (1 − p)ⁿ⁺¹) / p: by its sum over m, and by the function, for two equal arms."""
    for p, n in ((0.5, 10), (0.02, 100), (0.9, 3)):
        m = np.arange(n + 1)
        mean = (stats.binom.pmf(m, n, p) * (1 + n) / (1 + m)).sum()
        assert mean == pytest.approx((1 - (1 - p) ** (n + 1)) / p)
    rng = np.random.default_rng(7)
    learner = Learner.new(parse_policy("bts"), 2)
    inverses = [1.0 / chances(learner, rng, 20).of(int(learner.choose(rng))) for _ in range(2000)]
    assert np.mean(inverses) == pytest.approx(2.0, abs=4.5 * np.std(inverses) / 2000**0.5)  # 1 false alarm in 10⁵


def test_a_choice_without_an_alternative_has_propensity_1():
    rng = np.random.default_rng(8)
    assert chances(Learner.new(parse_policy("bts"), 3), rng, 50, np.array([False, True, False])).of(1) == 1.0


KNOWN = {"costs": {"a": 0.3, "b": 0.5, "c": 0.4}, "cost_floor": 0.2}
SURE = ("kube", "i-ucb", "ucb1", "epsilon-first", "omega-ucb")
"""Policies that leave nothing to chance where no two arms are alike."""


@pytest.mark.parametrize("name", EVERY_POLICY)
def test_a_propensity_is_that_of_the_choice_before_it_is_made(name):
    """Of every policy: counted from the state before the ask, by the ask's own generator. From the state after it, a
    policy that counts its choices would name the next arm."""
    policy = parse_policy(name)
    known = {word: KNOWN[word] for word in KNOWN if word in policy.needs}
    spend = Allocation(policy, ["a", "b", "c"], 30.0, seed=3, propensity_draws=6, **known)
    worth, seen = {"a": (0.31, 0.32), "b": (0.62, 0.53), "c": (0.73, 0.44)}, []
    for number in range(7):
        before = copy.deepcopy(spend._session.learner)
        ask = spend.ask()
        named = counts(before, np.random.default_rng([spend._propensities.seed, number]), 6)
        assert ask.propensity == (1 + named["abc".index(ask.arm)]) / 7
        seen.append(ask.propensity)
        reward, cost = worth[ask.arm]
        spend.tell(ask, reward=reward, cost=cost)
    if name in SURE:
        assert seen == [1.0] * 7


def test_a_log_of_a_policy_without_chance_has_propensity_1():
    rows = [(n, arm, r, c) for n in range(20) for arm, r, c in (("small", 0.51, 0.1), ("large", 0.9, 0.4))]
    table = ReplayTable.from_records(
        read_table(dict(zip(("request", "arm", "reward", "cost"), zip(*rows, strict=True), strict=True)))
    )
    for name in ("kube", "epsilon-first"):
        log = logged(table, parse_policy(name), 0.3, draws=20)
        assert log["propensity"] == [1.0] * 20
        assert log["failed"] == [0] * 20


def test_asks_say_how_likely_they_were_and_choices_stay_the_same():
    """Also when they are taken up again from JSON."""

    def play(spend, rounds):
        asks = []
        for number in range(rounds):
            asks.append(spend.ask(segment="ab"[number % 2]))
            spend.tell(asks[-1], reward=float(asks[-1].arm == "good"), cost=0.5)
        return asks

    def made(**more):
        return Allocation("bts-paced", ["good", "poor"], 50.0, seed=3, horizon=80, **more)

    plain, recorded = made(), made(propensity_draws=50)
    assert [ask.propensity for ask in play(plain, 12)] == [None] * 12
    asks = play(recorded, 12)
    assert [ask.arm for ask in asks] == [ask.arm for ask in play(made(), 12)]
    assert all(0.0 < ask.propensity <= 1.0 for ask in asks)
    assert len({ask.propensity for ask in asks}) > 2
    again = Allocation.from_json(recorded.to_json())
    assert [(ask.arm, ask.propensity) for ask in play(again, 9)] == [
        (ask.arm, ask.propensity) for ask in play(recorded, 9)
    ]
    ask = again.ask(segment="a")
    assert Allocation.from_json(again.to_json()).pending[0].propensity == ask.propensity
    with pytest.raises(BadParameter, match="propensity_draws is -1; give a whole number"):
        made(propensity_draws=-1)
