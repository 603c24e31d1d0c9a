"""PacedState Thompson sampling: its posteriors, its program and its budget, against what they must be."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from budgetbandits import parse_policy
from budgetbandits.errors import BadParameter, BadState
from budgetbandits.numerics.fluid import best_mix
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge, Request
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.paced.pooling import pooled
from budgetbandits.policies.paced.statistics import COST, COST_SQUARED, COUNT, REWARD, REWARD_SQUARED
from budgetbandits.policies.posteriors import posterior
from budgetbandits.policies.thompson import BudgetedThompson
from deep import deep


def taught(policy, outcomes, budget=1000.0, horizon=1000.0, arms=2, segments=1):
    """A state that has seen these (segment, arm, reward, cost)."""
    state, rng = policy.start(arms, Knowledge(budget=budget, horizon=horizon)), np.random.default_rng(0)
    state.widen(segments)
    for segment, arm, reward, cost in outcomes:
        policy.observe(state, arm, reward, cost, rng, Request(segment))
    return state


def drawn(policy, state, rows, rounds=4000, first=1.0):
    """Means drawn of one row, as (round, segment, arm)."""
    rng = np.random.default_rng(5)
    return rng.beta(*policy.shapes(*(state.sums[row] for row in rows), first), size=(rounds, *state.sums.shape[1:]))


def test_of_outcomes_0_and_1_the_posterior_is_that_of_bts():
    """Kolmogorov–Smirnov; false alarm 1e-4 for each of four."""
    policy = PacedThompson()
    state = taught(policy, [(0, 0, 1.0, 0.0)] * 7 + [(0, 0, 0.0, 1.0)] * 3 + [(0, 1, 1.0, 1.0)] * 2)
    for rows, beta in (
        ((COUNT, REWARD, REWARD_SQUARED), [(8, 4), (3, 1)]),
        ((COUNT, COST, COST_SQUARED), [(4, 8), (3, 1)]),
    ):
        means = drawn(policy, state, rows)[:, 0]
        for arm, parameters in enumerate(beta):
            assert stats.kstest(means[:, arm], stats.beta(*parameters).cdf).pvalue > 1e-4


def test_outcomes_that_vary_less_have_a_narrower_posterior():
    """All outcomes 0.9: with one 0 and one 1, mean and variance worked out by hand."""
    policy = PacedThompson(forget=0.0)
    means = drawn(policy, taught(policy, [(0, 0, 0.9, 0.5)] * 98), (COUNT, REWARD, REWARD_SQUARED))[:, 0, 0]
    mean = (98 * 0.9 + 1) / 100
    variance = (98 * 0.81 + 1) / 100 - mean**2
    kappa = 100 * mean * (1 - mean) / variance
    assert kappa == pytest.approx(1184.07, abs=0.01)
    assert stats.kstest(means, stats.beta(kappa * mean, kappa * (1 - mean)).cdf).pvalue > 1e-4


def test_costs_begin_with_a_quarter_and_three_quarters():
    """Never pulled: mean ½, variance 1/16, so Beta(4, 4); with trials Beta(1, 1), as in BTS."""
    for policy, parameters in ((PacedThompson(), (4, 4)), (PacedThompson(trials=1.0), (1, 1))):
        state, costs = policy.start(2, Knowledge(budget=1.0, horizon=1.0)), []

        def keep(reward, cost, weight, rate, costs=costs):
            costs.append(cost[0][0])
            return best_mix(reward, cost, weight, rate)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("budgetbandits.policies.paced.selection.best_mix", keep)
            rng = np.random.default_rng(7)
            for _ in range(2000):
                policy.choose(state, rng)
        assert stats.kstest(costs, stats.beta(*parameters).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("costs", "first"),
    [
        ([], (0.25, 0.75)),
        ([0.0, 0.0], (0.25, 0.75)),
        ([0.0, 1.0, 0.0], (0.25, 0.75)),
        ([0.6, 0.5], (0.25, 0.75)),  # a unit of money has met costs of 0.61/1.1
        ([0.01], (0.005, 0.015)),
        ([0.01, 0.03], (0.0125, 0.0375)),  # of 0.001/0.04 on average
    ],
)
def test_the_first_costs_follow_those_that_were_seen(costs, first):
    """The parameters of the Betas by hand, from the outcomes and the first two."""
    policy = PacedThompson()
    shapes = policy.all_laws(taught(policy, [(0, 0, 1.0, cost) for cost in costs]).sums)
    for arm, seen in enumerate((np.array([*costs, *first]), np.array(first))):  # of the second arm there is no outcome
        kappa = len(seen) * seen.mean() * (1 - seen.mean()) / seen.var()
        found = [each[1, 0, arm] for each in shapes]
        assert found == pytest.approx([kappa * seen.mean(), kappa * (1 - seen.mean())])
    shapes = policy.all_laws(taught(policy, [(0, 0, 1.0, cost) for cost in costs], segments=2).sums)
    begins = shapes[0][1, 1, 0] / (shapes[0] + shapes[1])[1, 1, 0]
    assert begins == pytest.approx(np.mean([*costs, *first]))  # the second segment, with what the first knows


def test_a_largest_cost_far_above_all_costs_takes_little_reward():
    """A price list in which nothing costs more than a thousandth of the largest cost, 300 requests, money for half of
    them to have the costly arm: it earns nearly what it earns with the right largest cost."""
    earned = []
    for scale in (1.0, 1e-3):
        policy, rng = PacedThompson(), np.random.default_rng(4)
        state, total = policy.start(2, Knowledge(budget=150 * scale, horizon=300.0)), 0.0
        while state.pulls.sum() < 300 and state.left > 0.0:
            arm = policy.choose(state, rng)
            cost = (0.1, 0.9)[arm] * scale * rng.uniform(0.8, 1.1)
            total += (0.3, 0.8)[arm]
            policy.observe(state, arm, (0.3, 0.8)[arm], cost, rng)
        earned.append(total)
    assert earned[1] > 0.95 * earned[0]


def test_with_trials_it_learns_outcomes_0_and_1_and_still_counts_what_was_paid():
    state = taught(PacedThompson(trials=1.0, forget=0.0), [(0, 0, 0.9, 0.25)] * 400)
    assert state.sums[REWARD, 0, 0] == state.sums[REWARD_SQUARED, 0, 0] == pytest.approx(360, abs=24)
    assert state.sums[COST, 0, 0] == state.sums[COST_SQUARED, 0, 0] == pytest.approx(100, abs=35)
    assert state.left == 900.0


def test_it_forgets_what_it_has_learned_and_not_what_it_has_paid():
    """Three outcomes, each of which halves what counts of those before; worked by hand."""
    policy = PacedThompson(forget=0.5)
    prices = np.array([0.5, 0.5])
    state, rng = policy.start(2, Knowledge(budget=9.0, horizon=9.0)), np.random.default_rng(0)
    for reward, cost in ((1.0, 0.5), (1.0, 0.5), (0.0, 1.0)):
        policy.observe(state, 0, reward, cost, rng, Request(0, prices))
    assert state.sums[:, 0, 0].tolist() == [2.0, 1.75, 0.75, 1.375, 0.75, 1.1875, 1.75, 1.375, 1.1875]
    assert state.left == 7.0
    assert state.pulls.tolist() == [3, 0]
    assert posterior(policy, state, 0).reward.mean == 1.75 / 3.75  # what is shown of it has forgotten as much


def test_without_a_horizon_it_chooses_as_bts_does():
    """The shares of arm 0, two samples of 4,000: false alarm 1e-4."""
    outcomes = [(0, 0, 1.0, 1.0), (0, 0, 1.0, 0.0), (0, 1, 0.0, 1.0), (0, 1, 1.0, 0.0)]
    paced, plain, rng = PacedThompson(trials=1.0), BudgetedThompson(), np.random.default_rng(3)
    one, other = taught(paced, outcomes, horizon=np.inf), plain.start(2)
    for _, arm, reward, cost in outcomes:
        plain.observe(other, arm, reward, cost, rng)
    assert one.rate == 0.0
    hits = [
        sum(policy.choose(state, rng) == 0 for _ in range(4000)) for policy, state in ((paced, one), (plain, other))
    ]
    table = [[hit, 4000 - hit] for hit in hits]
    assert 0.02 < hits[1] / 4000 < 0.98
    assert stats.chi2_contingency(table).pvalue > 1e-4


def known_well(policy, rate, requests=1.0):
    """Three arms known to a hundredth, and so much money for each request to come."""
    state = policy.start(3, Knowledge(budget=1.0, horizon=1.0))
    for arm, (reward, cost) in enumerate([(0.2, 0.1), (0.8, 0.5), (0.9, 1.0)]):
        state.pulls[arm] = 20_000
        state.sums[:6, 0, arm] = 20_000 * np.array([cost, 1.0, reward, cost, reward**2, cost**2])
    state.known = replace(state.known, horizon=60_000 + requests)
    state.known = replace(state.known, budget=float(state.sums[0].sum()) + rate * requests)
    return state


def test_it_mixes_the_two_arms_that_the_money_lies_between():
    policy, rng = PacedThompson(), np.random.default_rng(8)
    state = known_well(policy, 0.3)
    chosen = np.bincount([policy.choose(state, rng) for _ in range(2000)], minlength=3)
    assert chosen[2] == 0
    assert chosen[1] == pytest.approx(1000, abs=4 * np.sqrt(500))  # half of 2,000; four standard deviations


@pytest.mark.parametrize(("rate", "arm"), [(0.01, 0), (0.5, 1), (1.5, 2)])
def test_the_best_ratio_for_little_money_and_the_best_reward_for_much(rate, arm):
    policy, rng = PacedThompson(), np.random.default_rng(8)
    state = known_well(policy, rate)
    assert np.mean([policy.choose(state, rng) == arm for _ in range(50)]) > 0.8


def test_money_and_requests_count_when_they_are_reported():
    policy, rng = PacedThompson(), np.random.default_rng(1)
    state = policy.start(2, Knowledge(budget=10.0, horizon=20.0))
    assert state.rate == 0.5
    for _ in range(5):
        policy.choose(state, rng)
    assert state.rate == 0.5
    policy.observe(state, 0, 1.0, 0.7, rng)
    assert state.rate == pytest.approx(9.3 / 19)
    policy.add_history(state, 1, 100, 50.0, 80.0)  # another budget's money
    assert state.rate == pytest.approx(9.3 / 19)
    # an estimate that was too low: all that is left may go to the next request
    state.known = replace(state.known, horizon=0.5)
    assert state.rate == pytest.approx(9.3)


def test_a_segment_starts_from_the_others():
    """Four segments alike: a fifth knows arm 0 at once, as if from 40 outcomes of its own: Beta(36, 4) has a standard
    deviation of 0.047. Those that differ leave it unsure."""
    policy = PacedThompson()
    rng = np.random.default_rng(2)
    outcomes = [(s, 0, float(rng.random() < 0.9), 0.5) for s in range(4) for _ in range(200)]
    fifth = drawn(policy, taught(policy, outcomes, segments=5), (COUNT, REWARD, REWARD_SQUARED), 1000)[:, 4, :]
    assert fifth[:, 0].mean() == pytest.approx(0.9, abs=0.03)
    assert fifth[:, 0].std() == pytest.approx(0.047, abs=0.004)
    assert fifth[:, 1].mean() == pytest.approx(0.5, abs=0.05)  # nobody has seen arm 1
    different = [(s, 0, float(s % 2), 0.5) for s in range(4) for _ in range(200)]
    unsure = drawn(policy, taught(policy, different, segments=5), (COUNT, REWARD, REWARD_SQUARED), 1000)[:, 4, 0]
    assert unsure.std() > 0.2


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
def test_a_segment_is_as_unsure_of_quiet_outcomes_as_of_others(noise):
    """How little outcomes vary says little of how far segments are apart: with four alike, a fifth is as sure as 40
    outcomes 0 and 1 would make it, Beta(22, 18). If it were as sure as the others are of themselves, to 0.01, it would
    never try an arm that they have found middling."""
    policy, rng = PacedThompson(), np.random.default_rng(3)
    spread = np.resize([-noise, noise], 100)
    outcomes = [(s, 0, 0.55 + float(more), 0.5) for s in range(4) for more in rng.permutation(spread)]
    fifth = drawn(policy, taught(policy, outcomes, segments=5), (COUNT, REWARD, REWARD_SQUARED), 1000)[:, 4, 0]
    assert fifth.mean() == pytest.approx(0.55, abs=0.02)
    assert stats.kstest(fifth, stats.beta(22, 18).cdf).pvalue > 1e-4


def moved_by_hand(outcomes, segments, arms):
    """What `pooling` takes each segment and arm to be above the others' mean, one number after the other."""
    here = {(s, a): [r for t, b, r, _ in outcomes if (t, b) == (s, a)] for s in range(segments) for a in range(arms)}
    there = {(s, a): [r for t, b, r, _ in outcomes if b == a and t != s] + [0.0, 1.0] for s, a in here}
    apart = {at: np.mean(seen) - np.mean(there[at]) if (seen := here[at]) else 0.0 for at in here}
    sure = {at: len(here[at]) * len(there[at]) / (len(here[at]) + len(there[at])) for at in here}
    predicted = {}
    for s, a in here:
        others = [(s, b) for b in range(arms) if b != a]
        predicted[s, a] = sum(sure[at] * apart[at] for at in others) / (sum(sure[at] for at in others) + 2.0)
    right, expected = (sum(sure[at] * predicted[at] * each[at] for at in here) for each in (apart, predicted))
    slope = min(max((1.0 + right) / (1.0 + expected), 0.0), 1.0)
    return {at: float(np.mean(there[at])) + slope * predicted[at] for at in here}, slope


def test_how_alike_segments_are_by_hand():
    """Two segments with 100 outcomes each, 40 and 60 of them 1, a third without, and a 0 and a 1 that all begin with.
    Σ n (m − ½)² = 2, of which (2 − 1) · within is by chance; 20 outcomes as alike as pooling = 2 says count besides."""
    count, total = np.array([[100.0], [100.0], [0.0]]), np.array([[40.0], [60.0], [0.0]])
    prior = pooled(count, total, total, 1.0, 2.0)
    within = 0.25 - 2.0 / 202
    alike = (20 + 202 - 2 * 100**2 / 202) / (20 / 2.0 + 2.0 / within - 1)
    assert prior.weight[:, 0] == pytest.approx([alike] * 3)
    assert prior.mean[:, 0] == pytest.approx([61 / 102, 41 / 102, 101 / 202])


@pytest.mark.parametrize("specialists", [False, True])
def test_a_segment_is_different_where_its_other_arms_are(specialists):
    """A segment without outcomes of an arm starts from the others' mean, moved by what its other arms say; by nothing
    where each segment has a best arm of its own, since then one arm says nothing of another."""
    policy, rng = PacedThompson(forget=0.0), np.random.default_rng(4)
    mean = (
        np.where(np.eye(4), 0.8, 0.2) if specialists else np.linspace(0.2, 0.5, 4)[:, None] + np.linspace(0.0, 0.3, 4)
    )
    cells = [(s, a) for s in range(4) for a in range(4) if (s, a) not in ((0, 3), (3, 1))]
    outcomes = [(s, a, float(rng.random() < mean[s, a]), 0.5) for s, a in cells for _ in range(5 + 3 * a + s)]
    a, b = policy.all_laws(taught(policy, outcomes, arms=4, segments=4).sums)
    by_hand, slope = moved_by_hand(outcomes, 4, 4)
    assert slope == 0.0 if specialists else slope > 0.5
    for at in ((0, 3), (3, 1)):
        assert (a / (a + b))[0][at] == pytest.approx(by_hand[at])


def test_segments_with_best_arms_of_their_own_find_them():
    """Each of four arms pays 0.9 in one segment and 0.15 elsewhere; two games of 400 requests, money not scarce."""
    policy, mean, earned = PacedThompson(), np.where(np.eye(4), 0.9, 0.15), []
    for seed in range(2):
        state, rng = policy.start(4, Knowledge(budget=400.0, horizon=400.0)), np.random.default_rng(seed)
        state.widen(4)
        for _ in range(400):
            segment = int(rng.integers(4))
            arm = policy.choose(state, rng, Request(segment))
            earned.append(mean[segment, arm])
            policy.observe(state, arm, float(rng.random() < mean[segment, arm]), 0.3, rng, Request(segment))
    assert np.mean(earned) > 0.65


def test_segments_weigh_what_was_answered_with_this_budget():
    """Whatever is known from before, is forgotten or is of arms that are retired."""
    policy, rng = PacedThompson(forget=0.2), np.random.default_rng(0)
    state = policy.start(3, Knowledge(budget=99.0, horizon=200.0))
    state.widen(2)
    policy.add_history(state, 2, 1000, 500.0, 500.0)
    for number in range(40):
        policy.observe(state, 1 if number % 4 else 0, 0.5, 0.5, rng, Request(1 if number % 4 == 3 else 0))
    state.active[1] = False
    assert policy.draw(state, NO_REQUEST_INFO, rng).weight.tolist() == [31 / 42, 11 / 42]


def priced_game(rate, spread, seed, requests=500):
    """A game in which prices are as estimated, 0.1 and 0.5 times a factor of each request's own, for rewards of 0.2 and
    0.8: the share of the money spent after each fifth, what was earned, and what the best of all choices would earn."""
    rng = np.random.default_rng(seed)
    factors = np.minimum(np.exp(spread * rng.standard_normal(requests) - spread**2 / 2), 2.0)
    policy = PacedThompson()
    state = policy.start(2, Knowledge(budget=rate * requests, horizon=float(requests)))
    spent, earned = [], 0.0
    for number, factor in enumerate(factors.tolist()):
        prices = factor * np.array([0.1, 0.5])
        arm = policy.choose(state, rng, Request(0, prices))
        if prices[arm] > state.left:
            break
        policy.observe(state, arm, (0.2, 0.8)[arm], float(prices[arm]), rng, Request(0, prices))
        earned += (0.2, 0.8)[arm]
        if (number + 1) % (requests // 5) == 0:
            spent.append(1.0 - state.left / state.known.budget)
    costlier = np.cumsum(np.sort(0.4 * factors))
    best = 0.2 * requests + 0.6 * np.searchsorted(costlier, rate * requests - 0.1 * factors.sum())
    return spent, earned, best


@pytest.mark.parametrize("spread", [0.0, 0.7])
@pytest.mark.parametrize("seed", [0, *deep(1)])
def test_money_lasts_where_prices_are_estimated(spread, seed):
    """The costlier arm goes to the requests for which it is cheapest; where all are alike, to some of them by lot."""
    spent, earned, best = priced_game(0.3, spread, seed)
    assert spent[:4] == pytest.approx([0.2, 0.4, 0.6, 0.8], abs=0.08)
    assert earned > 0.94 * best


def test_costs_far_above_their_estimate_are_learned():
    """A hundred costs of exactly four times their estimate, after the first two of ½ and 3/2 times it: the mean and the
    shape of the Gamma law by hand, Kolmogorov–Smirnov, false alarm 1e-4. A cost counts as at most 100 times."""
    policy, prices = PacedThompson(forget=0.0), np.array([0.1, 0.1])
    state, rng = policy.start(2, Knowledge(budget=99.0, horizon=200.0)), np.random.default_rng(0)
    for _ in range(100):
        policy.observe(state, 0, 1.0, 0.4, rng, Request(0, prices))
    times = 2.0 * policy.draw_relative(state.sums[6:], rng, 3000)[:, 0]
    mean = (100 * 4.0 + 2.0) / 102
    shape = 102 * mean**2 / ((100 * 16.0 + 2.5) / 102 - mean**2)
    assert stats.kstest(times[:, 0], stats.gamma(shape, scale=mean / shape).cdf).pvalue > 1e-4
    assert stats.kstest(times[:, 1], stats.gamma(8.0, scale=1 / 8).cdf).pvalue > 1e-4  # never pulled
    policy.observe(state, 1, 1.0, 1.0, rng, Request(0, np.array([0.1, 1e-6])))
    assert state.sums[7, 0, 1] == 50.0


def test_how_much_estimates_vary_by_hand():
    """Two estimates with the mean 0.2 and the variance 0.01, a quarter of its square, and one that varies by nothing;
    an arm without any has none. Estimates are varied by a tenth besides, and taken to be at most a factor e apart."""
    state = PacedThompson().start(3, Knowledge(budget=99.0, horizon=200.0))
    usual, spread = state.typical_prices()
    assert (np.isnan(usual).all(), spread) == (True, 0.1)
    for prices in ((0.1, 0.7, np.nan), (0.3, np.nan, np.nan)):
        state.record_price_estimates(np.array(prices))
    usual, spread = state.typical_prices()
    assert usual == pytest.approx([0.2, 0.7, np.nan], nan_ok=True)
    assert spread**2 == pytest.approx(np.log1p((2 * 0.25 + 1 * 0.0) / 3) + 0.1**2)
    for _ in range(9):
        state.record_price_estimates(np.array([1e-6, 1e-6, np.nan]))
    assert state.typical_prices()[1] ** 2 == pytest.approx(1.0 + 0.1**2)


def test_what_is_known_from_before_varies_as_much_as_it_may():
    """Of sums alone: as outcomes 0 and 1 do, so that the posterior is that of BTS. They are no requests of this budget,
    and those that failed are."""
    policy = PacedThompson()
    state = policy.start(2, Knowledge(budget=99.0, horizon=200.0))
    state.known = replace(state.known, unlearned=7)
    policy.add_history(state, 0, 10, 4.0, 5.0)
    a, b = policy.all_laws(state.sums)
    assert (a[0, 0, 0], b[0, 0, 0]) == pytest.approx((5.0, 7.0))
    assert (state.requests, state.left) == (193.0, 99.0)


def test_segments_share_one_price_on_money():
    """Money for one good answer in two: it goes to the segment where the costly arm pays more."""
    policy, rng = PacedThompson(forget=0.0), np.random.default_rng(4)
    pay = {(0, 0): 0.5, (0, 1): 0.6, (1, 0): 0.1, (1, 1): 0.9}
    outcomes = [(s, a, pay[s, a], (0.1, 1.0)[a]) for s in (0, 1) for a in (0, 1) for _ in range(5000)]
    state = taught(policy, outcomes, segments=2)
    state.known = replace(state.known, horizon=20_001.0, budget=float(state.sums[0].sum()) + 0.55)
    easy, hard = ([policy.choose(state, rng, Request(s)) for _ in range(50)] for s in (0, 1))
    assert np.mean(easy) < 0.1
    assert np.mean(hard) > 0.9


def test_estimates_decide_for_this_request():
    """Both arms cost as estimated. The costly one is worth 0.3 more: at a price of 1 it is taken up to 0.3 costlier."""
    policy, rng = PacedThompson(forget=0.0), np.random.default_rng(6)
    state = policy.start(2, Knowledge(budget=1e9, horizon=1.0))
    for number in range(6000):
        prices = np.array([0.2, (0.2, 0.5, 0.8)[number % 3]])
        arm = number % 2
        policy.observe(state, arm, (0.5, 0.8)[arm], float(prices[arm]), rng, Request(0, prices))
    state.known = replace(state.known, horizon=6001.0, budget=float(state.sums[0].sum()) + 0.35)
    cheap, costly = (Request(0, np.array([0.2, price])) for price in (0.3, 0.9))
    assert {policy.choose(state, rng, cheap) for _ in range(30)} == {1}
    assert {policy.choose(state, rng, costly) for _ in range(30)} == {0}


def test_arms_on_scales_of_their_own():
    policy, rng = PacedThompson(), np.random.default_rng(6)
    state = policy.start(2, Knowledge(budget=10.0, horizon=100.0))
    state.known = replace(state.known, scales=np.array([0.002, 1.0]))
    policy.observe(state, 0, 1.0, 0.5, rng)
    policy.observe(state, 1, 1.0, 0.5, rng)
    assert state.left == pytest.approx(10.0 - 0.001 - 0.5)


def test_a_state_with_segments_is_read_as_it_was_written():
    policy = PacedThompson()
    state = taught(policy, [(2, 1, 0.5, 0.3), (0, 0, 1.0, 0.1)], segments=3)
    written = json.dumps(state.to_dict())
    again = policy.start(2, Knowledge(**json.loads(written)["known"])).filled(json.loads(written))
    assert json.dumps(again.to_dict()) == written
    with pytest.raises(BadState, match="no segments"):
        policy.start(2, state.known).filled(state.to_dict() | {"sums": 3.0})


def test_an_arm_that_comes_later_has_every_segment():
    policy = PacedThompson()
    state = taught(policy, [(2, 1, 0.5, 0.3)], segments=3)
    state.extend(policy.new_arm_state(state, state.known))
    assert state.sums.shape[1:] == (3, 3)


@pytest.mark.parametrize(
    "spec",
    [
        "bts-paced:pooling=0",
        "bts-paced:trials=0.5",
        "bts-paced:forget=0.6",
        "bts-paced:forget=-1",
        "bts-paced:horizon=9",
    ],
)
def test_what_it_refuses(spec):
    with pytest.raises(BadParameter):
        parse_policy(spec)
