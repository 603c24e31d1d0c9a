"""The work of a choice, and the terms, features, arms and segments that are refused because it would be too much."""

import pytest

from budgetbandits.errors import TooMuchWork
from budgetbandits.policies import parse_policy
from budgetbandits.service import work
from budgetbandits.service.http.problem_json import describe
from budgetbandits.service.work import ChoiceSize

ARMS = {"a": 1.0, "b": 0.5}
FEATURES = tuple(f"x{number}" for number in range(64))
MANY = {f"arm {number}": 1.0 for number in range(50)}


@pytest.mark.parametrize(
    ("policy", "arms", "terms", "said"),
    [
        ("bts-linear", 50, {"features": FEATURES, "propensity_draws": 1000},
         "50 arms, 64 features, 1,000 propensity_draws would take .* lower propensity_draws to 1[0-9][0-9], or have"),
        ("bts-paced", 100, {"propensity_draws": 10_000}, "lower propensity_draws to"),
        ("bts", 100, {"propensity_draws": 10_000}, "lower propensity_draws to"),
        ("bts-linear", 150, {"features": FEATURES}, "have fewer arms, features or segments"),
        ("bts-linear", 20, {"features": FEATURES, "lease": 5.0}, "3 ms is the most: lower them, or leave lease out"),
    ],
)  # fmt: skip
def test_a_campaign_whose_choices_would_take_too_long_is_refused(engine, policy, arms, terms, said, monkeypatch):
    monkeypatch.setattr(work, "WORK_MAX", 70_000.0 if arms == 150 else work.WORK_MAX)
    with pytest.raises(TooMuchWork, match=said) as refused:
        engine.create("ads", policy, 1e3, {f"arm {number}": 1.0 for number in range(arms)}, **terms)
    assert describe(refused.value).status == 422
    assert engine.names() == []


@pytest.mark.parametrize(
    ("policy", "arms", "terms"),
    [
        ("bts", 2, {"propensity_draws": 10_000}), ("bts-paced", 5, {"propensity_draws": 10_000}),
        ("bts-linear", 50, {"features": FEATURES, "propensity_draws": 100}), ("bts", 10_000, {}),
        ("kube", 10_000, {}), ("bts-linear", 10_000, {}), ("bts-paced", 10_000, {}),
        ("bts-linear", 5, {"features": FEATURES[:20], "lease": 5.0}),
    ],
)  # fmt: skip
def test_ordinary_sizes_are_within_the_bounds(policy, arms, terms):
    work.check_work(parse_policy(policy), work.Terms(**terms), arms)


def test_the_draws_that_an_error_names_are_the_most_that_are_taken():
    size = ChoiceSize(parse_policy("bts-linear"), 50, 65, 1000)
    assert ChoiceSize(size.policy, 50, 65, size.draws_max).work <= work.WORK_MAX
    assert ChoiceSize(size.policy, 50, 65, size.draws_max + 1).work > work.WORK_MAX


def test_a_change_of_terms_that_would_make_choices_too_long_changes_nothing(engine):
    campaign = engine.create("ads", "bts-linear", 1e3, MANY, features=FEATURES)
    with pytest.raises(TooMuchWork, match="lower propensity_draws to"):
        engine.change_terms(campaign, {"propensity_draws": 10_000})
    engine.change_terms(campaign, {"propensity_draws": 100})
    assert engine.describe(campaign).propensity_draws == 100


def test_another_policy_that_would_make_choices_too_long_is_refused(engine, monkeypatch):
    campaign = engine.create("ads", "bts", 1e3, ARMS)
    monkeypatch.setattr(work, "WORK_MAX", 1_000.0)
    with pytest.raises(TooMuchWork):
        engine.change_terms(campaign, {"policy": "bts-linear"})


def test_a_new_segment_or_arm_that_would_make_choices_too_long_is_refused(engine, monkeypatch):
    campaign = engine.create("ads", "bts-linear", 1e3, ARMS, features=FEATURES[:2])
    given = {"features": {"x0": 1.0, "x1": 0.0}}
    for segment in ("one", "two"):
        engine.decide(campaign, segment, segment=segment, **given)
    monkeypatch.setattr(work, "WORK_MAX", work.size_of(parse_policy("bts-linear"), work.Terms(), 2, 5).work - 1.0)
    with pytest.raises(TooMuchWork, match="2 arms, 2 features, 3 segments would take"):
        engine.decide(campaign, "three", segment="three", **given)
    engine.decide(campaign, "two again", segment="two", **given)
    with pytest.raises(TooMuchWork, match="3 arms, 2 features, 2 segments"):
        engine.add_arm(campaign, "middle", 0.5)
    assert engine.describe(campaign).segments == ("one", "two")
    assert len(engine.describe(campaign).arms) == 2


def test_prices_for_very_many_arms_are_refused_by_a_policy_with_features(engine, monkeypatch):
    campaign = engine.create("ads", "bts-linear", 1e3, ARMS)
    monkeypatch.setattr(work, "WORK_MAX", 1_510.0)
    engine.decide(campaign, "plain")
    with pytest.raises(TooMuchWork):
        engine.decide(campaign, "priced", prices={"a": 0.5, "b": 0.25})


def test_a_batch_that_would_take_too_long_says_how_many_to_ask_for(engine, monkeypatch):
    campaign = engine.create("ads", "bts-linear", 1e3, ARMS)
    monkeypatch.setattr(work, "BATCH_WORK_MAX", 10_000.0)
    with pytest.raises(TooMuchWork, match="ask for 6 at most"):
        engine.decide_many(campaign, "many", 7)
    assert len(engine.decide_many(campaign, "many", 6)) == 6
