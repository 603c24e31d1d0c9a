"""The program of money and requests against SciPy's solver, and the optimum against enumeration."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from budgetbandits import Problem, family
from budgetbandits.errors import BadParameter, NotALattice
from budgetbandits.numerics.fluid import arms_at_rate, best_mix, price_for_varied
from budgetbandits.problems.oracle_horizon import fluid_mix, fluid_reward, paced_optimum


@pytest.mark.parametrize(("segments", "spread"), [(1, 0.1), (2, 0.5), (5, 1.0)])
def test_at_the_price_for_varied_costs_requests_use_up_the_rate(segments, spread):
    """Requests whose factors are at 4,000 evenly spaced quantiles, each answered by the best arm, cost the rate."""
    rng = np.random.default_rng(segments)
    weight, arms = rng.dirichlet(np.ones(segments)), 4
    factors = np.exp(spread * stats.norm.ppf((np.arange(4000) + 0.5) / 4000) - spread**2 / 2)
    reward, cost = rng.random((20, segments, arms)), rng.random((20, segments, arms)) + 0.05
    seen = set()
    for means, costs in zip(reward, cost, strict=True):
        rate = float(rng.uniform(0.05, costs.max(axis=1).mean()))
        [price] = price_for_varied(means[None], costs[None], weight, rate, spread)
        mix = best_mix(means.tolist(), costs.tolist(), weight.tolist(), rate)
        if mix.price == 0.0 or mix.spend(costs.tolist(), weight.tolist()) > rate * (1 + 1e-9):
            assert price == pytest.approx(mix.price)  # money is not scarce, or nothing else is
            seen.add("an end")
            continue
        values = means[:, None] - price * factors[:, None] * costs[:, None]
        paid = (factors * np.take_along_axis(costs, values.argmax(axis=2), axis=1)).mean(axis=1) @ weight
        assert paid == pytest.approx(rate, rel=5e-3)
        seen.add("between")
    assert seen == {"an end", "between"}


@pytest.mark.parametrize("segments", [1, 2, 7])
def test_the_best_mix_is_what_a_solver_finds(segments):
    """Where the money is enough for the arms at the best ratio."""
    rng = np.random.default_rng(segments)
    checked = 0
    for _ in range(60):
        arms = int(rng.integers(2, 8))
        reward, cost = rng.random((segments, arms)), rng.random((segments, arms)) ** 3 + 1e-3
        weight = rng.dirichlet(np.ones(segments))
        rate = float(rng.random() * cost.mean() * 2)
        mix = best_mix(reward.tolist(), cost.tolist(), weight.tolist(), rate)
        spend, value = mix.spend(cost.tolist(), weight.tolist()), mix.spend(reward.tolist(), weight.tolist())
        if spend > rate * (1 + 1e-9):  # money is the only scarce resource
            assert mix.share == 0.0
            if segments == 1:
                assert mix.arms == [int((reward / cost).argmax())]
            continue
        of = linprog(
            -(weight[:, None] * reward).ravel(),
            A_ub=[(weight[:, None] * cost).ravel()],
            b_ub=[rate],
            A_eq=np.kron(np.eye(segments), np.ones(arms)),
            b_eq=np.ones(segments),
        )
        assert value == pytest.approx(-of.fun, abs=1e-9)
        assert spend <= rate * (1 + 1e-9)
        checked += 1
    assert checked > 20


def test_the_fluid_bound_is_what_a_solver_finds():
    """A linear program over 220 problems has the same optimum: up to 20 arms and 5 segments, money scarce or not, with
    the share f of every segment's requests answered."""
    rng, scarce = np.random.default_rng(9), 0
    for _ in range(220):
        segments, arms = int(rng.integers(1, 6)), int(rng.integers(1, 21))
        reward, cost = rng.random((segments, arms)), rng.random((segments, arms)) ** 3 + 1e-3
        weight = rng.dirichlet(np.ones(segments))
        rate = float(rng.random() ** 2 * cost.mean() * 2 + 1e-4)
        mix = best_mix(reward.tolist(), cost.tolist(), weight.tolist(), rate)
        spend, value = mix.spend(cost.tolist(), weight.tolist()), mix.spend(reward.tolist(), weight.tolist())
        scarce += spend > rate
        of = linprog(
            -np.append(weight[:, None] * reward, 0.0),
            A_ub=[np.append(weight[:, None] * cost, 0.0)],
            b_ub=[rate],
            A_eq=np.column_stack([np.kron(np.eye(segments), np.ones(arms)), -np.ones(segments)]),
            b_eq=np.zeros(segments),
            bounds=[(0, None)] * (segments * arms) + [(0, 1)],
        )
        assert value * min(1.0, rate / spend) == pytest.approx(-of.fun, abs=1e-9)
    assert 30 < scarce < 190


def test_the_price_is_what_more_money_earns():
    reward, cost, weight = [[0.2, 0.8, 0.9], [0.1, 0.3, 0.7]], [[0.1, 0.5, 1.0], [0.2, 0.3, 0.9]], [0.4, 0.6]
    for rate in (0.4, 0.5, 0.7, 0.9):
        mix, more = (best_mix(reward, cost, weight, rate + extra) for extra in (0.0, 1e-6))
        assert (more.spend(reward, weight) - mix.spend(reward, weight)) / 1e-6 == pytest.approx(mix.price)


@pytest.mark.parametrize("segments", [1, 3])
def test_the_price_if_short_is_that_of_a_little_less_money(segments):
    """The price is that at slightly less money than the mix without its upgrade costs, for one draw and for many."""
    rng = np.random.default_rng(segments)
    weight, seen = rng.dirichlet(np.ones(segments)), set()
    for _ in range(40):
        reward, cost = rng.random((segments, 4)), rng.random((segments, 4)) ** 2 + 0.01
        rate = float(rng.uniform(0.1, 1.0) * cost.max(axis=1) @ weight)
        mix = best_mix(reward.tolist(), cost.tolist(), weight.tolist(), rate)
        plain = mix._replace(share=0.0).spend(cost.tolist(), weight.tolist())
        short = best_mix(reward.tolist(), cost.tolist(), weight.tolist(), plain * (1.0 - 1e-9))
        assert mix.price_if_short == pytest.approx(short.price)
        at_once = arms_at_rate(reward[None], cost[None], weight, rate, 0)
        assert (at_once.price[0], at_once.price_if_short[0]) == pytest.approx((mix.price, short.price))
        seen.add((mix.price > 0.0, short.price > mix.price, short.share > 0.0))
    # money scarce or not, short of the first arms or of a later step
    assert {(True, True, True), (False, True, True), (True, True, False)} <= seen


def test_money_that_is_not_scarce_has_no_price():
    mix = best_mix([[0.2, 0.8, 0.7]], [[0.1, 0.5, 1.0]], [1.0], rate=0.6)
    assert (mix.arms, mix.share, mix.price) == ([1], 0.0, 0.0)


def test_arms_that_cannot_be_chosen_are_left_out():
    mix = best_mix([[-np.inf, 0.8, 0.9]], [[0.1, 0.5, 1.0]], [1.0], rate=0.75)
    assert (mix.arms, mix.upgrade, mix.share) == ([1], 2, 0.5)


def optimum_by_trees(problem, budget, horizon):
    """The optimum by looking at every sequence of outcomes, reward and cost 0 or 1."""
    if horizon == 0 or budget == 0:
        return 0.0
    values = []
    for r, c in zip(problem.reward_means, problem.cost_means, strict=True):
        value = 0.0
        for earned, paid in itertools.product((0, 1), repeat=2):
            chance = (r if earned else 1 - r) * (c if paid else 1 - c)
            value += chance * (earned + optimum_by_trees(problem, budget - paid, horizon - 1))
        values.append(value)
    return max(values)


@pytest.mark.parametrize(("budget", "horizon"), [(1, 1), (1, 4), (2, 4), (3, 4)])
def test_the_optimum_is_that_of_all_trees(budget, horizon):
    problem = Problem.bernoulli([0.2, 0.8, 0.5], [0.1, 0.9, 0.3])
    assert paced_optimum(problem, budget, horizon).reward == pytest.approx(optimum_by_trees(problem, budget, horizon))


def test_a_pull_that_overdraws_earns_nothing():
    arm = '[[arms]]\nname = "{}"\nreward = {{ law = "fixed", value = {} }}\ncost = {{ law = "fixed", value = {} }}\n'
    problem = Problem.from_toml(arm.format("costly", 1.0, 0.75) + arm.format("cheap", 0.3, 0.25))
    best = paced_optimum(problem, budget=1.0, horizon=3)
    assert best.values.tolist() == pytest.approx([0.0, 0.3, 0.6, 1.0, 1.3])
    assert best.choice.tolist()[1:3] == [1, 1]


def test_no_policy_beats_the_fluid_bound_and_the_best_comes_near():
    for seed in range(5):
        problem = family("uniform-bernoulli", 4, seed, low=0.05)
        for budget in (20, 100):
            best, bound = paced_optimum(problem, budget, 200).reward, fluid_reward(problem, budget, 200)
            assert 0.9 * bound < best <= bound + 1e-9


def test_the_bound_without_scarce_requests_is_lemma_1():
    problem = Problem.bernoulli([0.3, 0.6], [0.2, 0.8])
    assert fluid_reward(problem, 10, 1e6) == pytest.approx(15.0)
    assert fluid_mix(problem, 10, 1e6).arms == [0]


def test_what_is_refused():
    problem = Problem.bernoulli([0.3, 0.6], [0.2, 0.8])
    with pytest.raises(BadParameter, match="use a number above 0"):
        fluid_reward(problem, 0, 10)
    with pytest.raises(BadParameter, match="from 1 upwards"):
        fluid_reward(problem, 10, np.inf)
    with pytest.raises(BadParameter, match="round it to one"):
        paced_optimum(problem, 1.5, 10)
    with pytest.raises(BadParameter, match="whole number of requests"):
        paced_optimum(problem, 2, 10.5)
    with pytest.raises(NotALattice):
        paced_optimum(family("uniform-beta", 3, 1), 2, 10)
