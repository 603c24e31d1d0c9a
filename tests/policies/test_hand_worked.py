"""The paper's policies and the classical ones, an example of each worked by hand, and what parameters of all refuse."""

import math

import numpy as np
import pytest
from scipy import stats

from budgetbandits import POLICIES, Allocation, parse_policy
from budgetbandits.allocation.choosers.beta_ratio import choose_of_few
from budgetbandits.errors import BadParameter, UnknownPolicy
from budgetbandits.policies import PAPER_POLICIES
from budgetbandits.policies.base import LARGEST_PARAMETER, SMALLEST_PARAMETER, Knowledge
from budgetbandits.policies.classical import bayes_ucb, bernoulli_upper, kl_ucb, moss, ucb1, ucb_v
from budgetbandits.policies.cost_floor_ucb import ucb_bv1, ucb_bv2
from budgetbandits.policies.kube import fill, kube, kube_fractional
from budgetbandits.policies.primal_dual import PrimalDualBwK, lower, pd_bwk, upper
from budgetbandits.policies.thompson import BudgetedThompson


def taught(name, history, known=None):
    """A policy that has seen these (pulls, total reward, total cost), with its first pulls behind it."""
    policy = parse_policy(name)
    state = policy.start(len(history), Knowledge(**known or {}))
    for arm, past in enumerate(history):
        policy.add_history(state, arm, *past)
    state.first_pulls_done = len(history)
    if hasattr(state, "past_cost"):
        state.past_cost = 0.0  # as if all of it had been paid out of this budget
    return policy, state


def choice(name, history, known=None):
    policy, state = taught(name, history, known)
    return policy.choose(state, np.random.default_rng(0))


def test_bts_counts_successes_and_failures():
    policy = BudgetedThompson()
    state = policy.start(2)
    rng = np.random.default_rng(0)
    policy.observe(state, 1, 1.0, 0.0, rng)
    policy.observe(state, 1, 1.0, 1.0, rng)
    policy.observe(state, 0, 0.0, 1.0, rng)
    assert state.statistics.tolist() == [[1, 3], [2, 2], [2, 1], [1, 2]]  # successes of both, then failures


def test_bts_turns_a_value_between_into_a_trial():
    """50,000 rewards of 0.3 and costs of 0.8: successes within 5 standard deviations (false alarm 6e-7 each)."""
    policy = BudgetedThompson()
    state = policy.start(1)
    rng = np.random.default_rng(0)
    n = 50_000
    for _ in range(n):
        policy.observe(state, 0, 0.3, 0.8, rng)
    assert state.statistics.sum() == 2 * n + 4
    assert abs(state.statistics[0, 0] - 1 - 0.3 * n) < 5 * math.sqrt(n * 0.3 * 0.7)
    assert abs(state.statistics[1, 0] - 1 - 0.8 * n) < 5 * math.sqrt(n * 0.8 * 0.2)


def test_bts_chooses_by_the_ratio_of_what_it_draws():
    policy, state = taught("bts", [(10, 5, 5), (10, 2, 9)])
    rng, twin = np.random.default_rng(5), np.random.default_rng(5)
    theta = twin.beta(*np.split(state.statistics, 2), size=(1, 2, 2))[0]
    assert policy.choose(state, rng) == int(np.argmax(theta[0] / theta[1]))


def test_priors_and_tempered_counts():
    """Beta(a + κS, b + κF): a reward of 1 at a cost of 0 for arm 1, two of four recalled rewards for arm 0."""
    policy = parse_policy("bts:prior_reward=0.5/0.5,prior_cost=2/8+3/1,kappa=1.5")
    assert policy == BudgetedThompson(prior_reward="jeffreys", prior_cost=[(2, 8), (3, 1)], kappa=1.5)
    state = policy.start(3)
    jeffreys = [0.5, 0.5, 0.5]
    # the third arm has no prior of its cost: uniform
    assert state.statistics.tolist() == [jeffreys, [2, 3, 1], jeffreys, [8, 1, 1]]
    policy.observe(state, 1, 1.0, 0.0, np.random.default_rng(0))
    policy.add_history(state, 0, 4, 2.0, 1.0)
    assert state.statistics.tolist() == [[3.5, 2.0, 0.5], [3.5, 3, 1], [3.5, 0.5, 0.5], [12.5, 2.5, 1]]


def test_an_arm_that_comes_later_has_the_prior_of_its_place():
    spend = Allocation(parse_policy("bts:prior_cost=2/8+3/1+5/6"), ["a", "b"], budget=10.0, seed=1)
    spend.add_arm("c")
    spend.add_arm("d")
    for each in (spend, Allocation.from_json(spend.to_json())):
        assert each._session.learner.state.statistics[[1, 3]].tolist() == [[2, 3, 5, 1], [8, 1, 6, 1]]


def test_gaussian_posteriors():
    """Arm 0 after rewards 0.2 and 0.6 and costs 0.5 and 0.1: N(1.3/3, σ²/3) and N(1.1/3, σ²/3), within [0, 1]."""
    policy = parse_policy("bts-gaussian:sigma=0.25")
    state, rng = policy.start(2), np.random.default_rng(0)
    policy.observe(state, 0, 0.2, 0.5, rng)
    policy.observe(state, 0, 0.6, 0.1, rng)
    assert state.statistics[:, 0] == pytest.approx([3, 1.3, 1.1])
    assert state.statistics[:, 1].tolist() == [1, 0.5, 0.5]
    policy.add_history(state, 1, 10, 4.0, 2.0)
    assert state.statistics[:, 1].tolist() == [11, 4.5, 2.5]
    scale = 0.25 / math.sqrt(3)
    reward, cost = (stats.truncnorm(-m / scale, (1 - m) / scale, m, scale) for m in (1.3 / 3, 1.1 / 3))
    grid = (np.arange(20_000) + 0.5) / 20_000  # P(θr/θc > ρ), over the quantiles of the cost

    def law(ratios):
        return np.array([reward.cdf(ratio * cost.ppf(grid)).mean() for ratio in ratios])

    together = policy.draw(state, rng, 3_000, np.array([0]))[:, 0]
    alone = [policy.draw_each(state, rng, [0])[0] for _ in range(3_000)]
    levels = np.quantile(together, np.linspace(0.02, 0.98, 13))
    for drawn in (together, alone):  # each share within 5 standard deviations: false alarm 6e-7 each
        below = (np.asarray(drawn)[:, None] <= levels).mean(axis=0)
        exact = law(levels)
        assert (abs(below - exact) < 5 * np.sqrt(exact * (1 - exact) / 3_000)).all()


def test_joint_posteriors_count_the_four_outcomes():
    policy = parse_policy("bts-joint")
    state, rng = policy.start(2), np.random.default_rng(0)
    for reward, cost in ((1, 1), (1, 1), (1, 0), (0, 1), (0, 0), (0, 0)):
        policy.observe(state, 0, float(reward), float(cost), rng)
    assert state.statistics[:, 0].tolist() == [2.5, 1.5, 1.5, 2.5]
    policy.add_history(state, 1, 10, 5.0, 2.0)  # as if independent: 10 times ½·⅕, ½·⅘, ½·⅕, ½·⅘
    assert state.statistics[:, 1] == pytest.approx([1.5, 4.5, 1.5, 4.5])


def test_joint_posteriors_keep_the_covariance_of_a_pair():
    """50,000 pulls of (0.9, 0.8) or (0.1, 0.3), one as likely as the other: both trials succeed in
    (0.9·0.8 + 0.1·0.3)/2 = 0.375 of them, not in 0.5·0.55 = 0.275; within 5 standard deviations (6e-7)."""
    policy = parse_policy("bts-joint")
    state, rng, n = policy.start(1), np.random.default_rng(0), 50_000
    for turn in range(n):
        policy.observe(state, 0, *((0.9, 0.8) if turn % 2 else (0.1, 0.3)), rng)
    both, paid, charged, _ = state.statistics[:, 0] / n
    for share, exact in ((both, 0.375), (both + paid, 0.5), (both + charged, 0.55)):
        assert abs(share - exact) < 5 * math.sqrt(exact * (1 - exact) / n)


def test_joint_posteriors_draw_the_ratio_of_dirichlet_marginals():
    """P(θr > θc) = P(p10 > p01) = P(Beta(a10, a01) > ½), and θr/θc of the Dirichlet's own draws at other levels."""
    policy, state = taught("bts-joint", [(0, 0.0, 0.0)])
    state.statistics[:, 0] = 3.5, 4.5, 2.5, 6.0
    rng, n = np.random.default_rng(2), 20_000
    together = policy.draw(state, rng, n)[:, 0]
    alone = np.array([policy.draw_each(state, rng, [0])[0] for _ in range(n)])
    both, paid, charged, _ = rng.dirichlet(state.statistics[:, 0], size=n).T
    exact = stats.beta(4.5, 2.5).sf(0.5)
    for drawn in (together, alone):
        assert abs((drawn > 1.0).mean() - exact) < 5 * math.sqrt(exact * (1 - exact) / n)
        assert stats.ks_2samp(drawn, (both + paid) / (both + charged)).pvalue > 1e-6


def test_thompson_ignores_costs():
    # arm 0 pays a little more and costs ten times as much
    assert choice("thompson", [(10_000, 9_000, 9_999), (10_000, 5_000, 900)]) == 0
    assert choice("bts", [(10_000, 9_000, 9_999), (10_000, 5_000, 900)]) == 1


def test_ucb_bv1():
    # s = √(ln 99 / 50) = 0.303154, λ = 0.4: 0.6/0.5 + (1 + 2.5)·0.30315/(0.4 − 0.30315)
    s = math.sqrt(math.log(99) / 50)
    assert s == pytest.approx(0.303154, abs=1e-6)
    assert ucb_bv1(0.6, 0.5, 50.0, 100.0, 0.4) == pytest.approx(1.2 + 3.5 * s / (0.4 - s))
    assert ucb_bv1(0.6, 0.5, 50.0, 100.0, 0.3) == math.inf  # λ ≤ s
    with np.errstate(divide="ignore"):
        assert ucb_bv1(0.6, np.float64(0.0), 50.0, 100.0, 0.4) == math.inf
    assert choice("ucb-bv1:cost_floor=0.4", [(50, 30, 25), (50, 10, 40)]) == 0


def test_ucb_bv2_takes_the_smallest_mean_cost_seen():
    s = math.sqrt(math.log(99) / 50)
    assert ucb_bv2(0.6, 0.5, 50.0, 100.0, 0.5) == pytest.approx(1.2 + 2.0 * (1 + 1 / (0.5 - s)) * s)
    policy, state = taught("ucb-bv2", [(50, 30, 25), (50, 10, 40)])
    assert policy.extras(state) == (0.5,)
    assert policy.choose(state, np.random.default_rng(0)) == 0


def test_kube_variant():
    # (0.6 + √(2 ln 100 / 50)) / 0.5
    assert kube(0.6, 0.5, 50.0, 100.0) == pytest.approx((0.6 + math.sqrt(2 * math.log(100) / 50)) / 0.5)
    # costly and good against cheap and poor: 0.9 + 0.4292 over 0.9, against 0.2 + 0.4292 over 0.1
    assert choice("kube", [(50, 45, 45), (50, 10, 5)]) == 1
    # an arm that has cost nothing so far has index +∞
    assert choice("kube", [(50, 45, 45), (50, 0, 0)]) == 1


def test_fractional_kube_divides_by_the_known_cost_and_stops_when_nothing_fits():
    assert kube_fractional(0.6, None, 50.0, 100.0, 0.25) == pytest.approx(
        (0.6 + math.sqrt(2 * math.log(100) / 50)) / 0.25
    )
    history = [(50, 45, 45), (50, 30, 5)]
    # 49.8 of the 50 are not spent in these 100 pulls: all is affordable; then 0.2 is left and only arm 1 fits
    assert choice("kube-fractional", history, {"budget": 100.0, "costs": np.array([0.9, 0.1])}) == 1
    assert choice("kube-fractional", history, {"budget": 50.2, "costs": np.array([0.2, 0.3])}) == 0
    assert choice("kube-fractional", history, {"budget": 50.1, "costs": np.array([0.2, 0.3])}) is None


def test_the_knapsack_is_filled_in_order_of_density():
    # 1.0 holds two of 0.4, then 0.2 is left: 0.3 does not fit, 0.1 fits twice
    assert fill(np.array([3.0, 2.0, 1.0]), np.array([0.4, 0.3, 0.1]), 1.0).tolist() == [2, 0, 2]
    # the greedy filling is the rule; the best filling would be 0.3 + 0.3 + 0.4
    assert fill(np.array([1.0, 0.9]), np.array([0.7, 0.3]), 1.0).tolist() == [1, 1]
    # 0.1 fits ten times in 1.0 whatever the floats say
    assert fill(np.array([1.0]), np.array([0.1]), 1.0).tolist() == [10]


def test_kube_pulls_in_proportion_to_the_copies():
    """Copies (2, 0, 2) give arms 0 and 2 half each: 4,000 draws within 5 standard deviations."""
    # 101 pulls each; the densities are 3 : 2 : 1 with room 1.0 left
    history = [(101, 60, 0), (101, 30, 0), (101, 5, 0)]
    policy, state = taught("kube-knapsack", history, {"budget": 1.0, "costs": np.array([0.4, 0.3, 0.1])})
    density = kube_fractional(state.mean_reward, None, state.seen, 303.0, state.known.costs)
    order = np.argsort(-density).tolist()
    copies = fill(density, state.known.costs, 1.0)
    rng = np.random.default_rng(0)
    counts = np.bincount([policy.choose(state, rng) for _ in range(4_000)], minlength=3)
    expected = copies / copies.sum()
    assert order[0] == int(np.argmax(density))
    assert np.all(np.abs(counts - 4_000 * expected) <= 5 * np.sqrt(4_000 * expected * (1 - expected)) + 1e-9)


def test_epsilon_first_explores_in_turn_then_commits():
    policy = parse_policy("epsilon-first:epsilon=0.5")
    state = policy.start(3, Knowledge(budget=8.0))
    rng = np.random.default_rng(0)
    outcomes = {0: (0.5, 1.0), 1: (1.0, 0.5), 2: (0.1, 1.0)}  # ratios 0.5, 2, 0.1
    chosen = []
    for _ in range(9):
        arm = policy.choose(state, rng)
        chosen.append(arm)
        policy.observe(state, arm, *outcomes[arm], rng)
    # spends 1 + ½ + 1 + 1 + ½ = 4 = ½ · 8 exploring, then stays with arm 1 whatever comes
    assert chosen == [0, 1, 2, 0, 1, 1, 1, 1, 1]
    policy.add_history(state, 0, 100, 100.0, 0.0)
    assert policy.choose(state, rng) == 1


def test_epsilon_first_commits_among_what_it_has_seen():
    policy = parse_policy("epsilon-first")
    state = policy.start(100, Knowledge(budget=100.0))
    rng = np.random.default_rng(0)
    for _ in range(10):  # ten pulls of cost 1 are all that a tenth of the budget buys
        policy.observe(state, policy.choose(state, rng), 0.5, 1.0, rng)
    assert len({policy.choose(state, rng) for _ in range(50)}) == 1
    assert policy.choose(state, rng) < 10


def test_original_epsilon_first_is_greedy_by_density():
    costs = np.array([0.9, 0.5, 0.2])
    policy = parse_policy("epsilon-first-greedy:epsilon=0.5")
    state = policy.start(3, Knowledge(budget=6.4, costs=costs))
    rng = np.random.default_rng(0)
    rewards = [0.9, 0.3, 0.1]  # densities 1, 0.6, 0.5
    chosen = []
    while (arm := policy.choose(state, rng)) is not None:
        chosen.append(arm)
        policy.observe(state, arm, rewards[arm], costs[arm], rng)
    # explores two full turns (3.2), then 3.2 buys three of the densest; of the 0.5 left the next densest takes all
    assert chosen == [0, 1, 2, 0, 1, 2, 0, 0, 0, 1]


def test_pd_bwk_variant():
    # ν = ¼ ln(1000 · 2) = 1.90023; φ(0.6, 50) = √(ν·0.6/50) + ν/50
    nu = 0.25 * math.log(2000)
    radius = math.sqrt(nu * 0.6 / 50) + nu / 50
    assert upper(0.6, 50.0, nu) == pytest.approx(0.6 + radius)
    assert upper(0.95, 50.0, nu) == 1.0
    assert lower(0.01, 50.0, nu) == 0.0
    assert pd_bwk(0.6, 0.6, 50.0, 100.0, nu) == pytest.approx((0.6 + radius) / (0.6 - radius))
    with np.errstate(divide="ignore"):
        assert pd_bwk(0.6, np.float64(0.01), 50.0, 100.0, nu) == math.inf
    policy, state = taught("pd-bwk", [(50, 30, 30), (50, 10, 40)], {"budget": 1000.0})
    assert policy.extras(state) == (pytest.approx(nu),)
    assert policy.choose(state, np.random.default_rng(0)) == 0


def test_the_original_equals_the_variant_without_a_horizon():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        pulls = rng.integers(1, 300, size=5)
        history = [(int(n), float(n * rng.random()), float(n * rng.random())) for n in pulls]
        known = {"budget": 2000.0}
        assert choice("primal-dual-bwk", history, known) == choice("pd-bwk", history, known)


def test_prices_of_money_and_time():
    """B = 100, T = 400: a pull uses ¼ of time; ln(1 + ε) with ε = √(ln 2 / 100) times the lower bounds is added."""
    policy = PrimalDualBwK(horizon=400.0)
    state = policy.start(2, Knowledge(budget=100.0))
    policy.add_history(state, 0, 60, 50.0, 30.0)
    policy.add_history(state, 1, 60, 10.0, 50.0)
    state.first_pulls_done = 2
    nu = 0.25 * math.log(200)
    rng = np.random.default_rng(0)
    assert policy.choose(state, rng) == 0
    assert (state.log_money, state.log_time) == (0.0, 0.0)  # until something is observed, by what was known before it
    policy.observe(state, 0, 1.0, 0.9, rng)
    growth = math.log1p(math.sqrt(math.log(2) / 100))
    assert state.log_money == pytest.approx(growth * lower(0.5, 60.0, nu))
    assert state.log_time == pytest.approx(growth * 0.25)
    width, money, time = policy.extras(state)
    index = PrimalDualBwK.index(50 / 60, 0.5, 60.0, 120.0, width, money, time)
    price = math.exp(state.log_money) * lower(0.5, 60.0, nu) + math.exp(state.log_time) * 0.25
    scale = math.exp(max(state.log_money, state.log_time))
    assert index == pytest.approx(upper(50 / 60, 60.0, nu) / price * scale)


def test_time_runs_out():
    policy = PrimalDualBwK(horizon=3.0)
    state = policy.start(2, Knowledge(budget=100.0))
    rng = np.random.default_rng(0)
    assert [policy.choose(state, rng) for _ in range(4)][3] is None


def test_ucb1():
    assert ucb1(0.6, None, 50.0, 100.0) == pytest.approx(0.6 + math.sqrt(2 * math.log(100) / 50))
    assert choice("ucb1", [(50, 30, 50), (10, 5, 0)]) == 1  # 0.6 + 0.405 against 0.5 + 0.905


def test_ucb_v_prefers_the_arm_that_varies():
    explored = 1.2 * math.log(100) / 50
    assert ucb_v(0.6, None, 50.0, 100.0, 0.24, 1.2) == pytest.approx(0.6 + math.sqrt(0.48 * explored) + 3 * explored)
    policy = parse_policy("ucb-v")
    state = policy.start(2)
    rng = np.random.default_rng(0)
    for i in range(50):
        policy.observe(state, 0, 0.5, 0.0, rng)
        policy.observe(state, 1, float(i % 2), 0.0, rng)
    state.first_pulls_done = 2
    assert policy.extras(state)[0].tolist() == [0.0, 0.25]
    assert policy.choose(state, rng) == 1


def test_moss():
    # T/(Kn) = 1000/(2·50) = 10
    assert moss(0.6, None, 50.0, 100.0, 500.0) == pytest.approx(0.6 + math.sqrt(math.log(10) / 50))
    assert moss(0.6, None, 600.0, 100.0, 500.0) == 0.6
    assert choice("moss:horizon=1000", [(50, 30, 0), (10, 5, 0)]) == 1
    assert parse_policy("moss").needs == {"budget"}


def test_kl_ucb_solves_its_equation():
    grid = np.array([0.0, 1e-9, 0.01, 0.3, 0.5, 0.9, 0.999])
    for level in (1e-6, 0.01, 0.3, 2.0, 20.0):
        q = bernoulli_upper(grid, level)
        assert np.all(q >= grid)
        with np.errstate(divide="ignore", invalid="ignore"):
            kl = np.where(grid > 0, grid * np.log(grid / q), 0.0) + (1 - grid) * np.log((1 - grid) / (1 - q))
        inside = q < 1 - 1e-12  # beyond that 1 − q has too few digits to check the equation with
        assert kl[inside] == pytest.approx(level, rel=1e-4)
    assert bernoulli_upper(1.0, 0.3) == 1.0
    assert kl_ucb(0.0, None, 50.0, 100.0, 0.0) == pytest.approx(1 - 100 ** (-1 / 50))  # −ln(1 − q) = ln t / n
    assert choice("kl-ucb", [(50, 30, 0), (10, 5, 0)]) == 1


def test_bayes_ucb_is_a_quantile():
    # Beta(1, 2) after one failure: 1 − (1 − q)² = 1 − 1/t
    assert bayes_ucb(0.0, None, 1.0, 100.0) == pytest.approx(0.9)
    assert choice("bayes-ucb", [(50, 30, 0), (10, 5, 0)]) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epsilon-first:epsilon=1.5", "epsilon"),
        ("epsilon-first:epsilon=nan", "epsilon"),
        ("epsilon-first:epsilon=much", "NUMBER"),
        ("epsilon-first:epsilon=0.1,epsilon=0.2", "twice"),
        ("epsilon-first:eps=0.1", "it takes epsilon"),
        ("ucb1:epsilon=0.1", "no parameters"),
        ("bts:epsilon=0.1", "it takes prior_reward, kappa, prior_cost"),
        ("bts:kappa=0", "from 0.01 to 100"),
        ("bts:kappa=nan", "kappa"),
        ("bts:prior_reward=0.5", "a/b such as 0.5/0.5"),
        ("bts:prior_cost=0.5/0.5+1", "joined by"),
        ("bts:prior_cost=0/1", "from 0.1 to 1e\\+09"),
        ("thompson:prior_reward=nan/1", "from 0.1"),
        ("thompson:prior_cost=1/1", "no parameter 'prior_cost'"),
        ("bts-gaussian:sigma=2", "from 0.001 to 1"),
        ("bts-joint:weight=0", "from 0.1"),
        ("ucb-bv1:cost_floor=0", "positive"),
        ("moss:horizon=-3", "positive"),
        ("ucb-v:zeta=inf", "positive"),
        ("ucb-v:zeta=1e308", "from 1e-09 to 1e\\+15"),
        ("ucb-bv1:cost_floor=5e-324", "from 1e-09 to 1e\\+15"),
        ("kl-ucb:lower_order=1e308", "from 0 to 1e6"),
        ("kl-ucb:lower_order=-1", "lower_order"),
        ("primal-dual-bwk:horizon=0", "positive"),
        ("omega-ucb:rho=0", "positive"),
        ("omega-star-ucb:rho=nan", "positive"),
        ("omega-rising:wait=0", "positive"),
        ("m-ucb:alpha=-1", "positive"),
        ("b-greedy:alpha=0", "positive"),
        ("budget-ucb:width=0", "positive"),
        ("kl-ucb-sc:lower_order=-1", "from 0 to 1e6"),
        ("ucb-b1:alpha=2", "above 2"),
        ("ucb-b1:cost_variance=0.3", "from 0 to 0.25"),
        ("ucb-b2:alpha=nan", "above 2"),
        ("imed-ratio:kappa=0", "positive"),
        ("imed-fading:fade=0", "positive"),
        ("maillard-ratio:beta=1", "it takes kappa"),
    ],
)
def test_bad_parameters_name_the_remedy(text, words):
    with pytest.raises(BadParameter, match=words):
        parse_policy(text)


def test_the_error_for_an_unknown_policy_lists_the_names():
    with pytest.raises(UnknownPolicy, match="bts, epsilon-first"):
        parse_policy("thomson")


def test_ties_are_broken_at_random():
    """UCB1 with two equal arms: 2,000 choices within 5 standard deviations of half."""
    policy, state = taught("ucb1", [(10, 5, 5), (10, 5, 5)])
    rng = np.random.default_rng(0)
    first = sum(policy.choose(state, rng) == 0 for _ in range(2_000))
    assert abs(first - 1_000) < 5 * math.sqrt(500)


def test_the_knapsack_breaks_ties_at_random():
    """Three equal arms: 900 choices within 5 standard deviations of a third each."""
    policy, state = taught("kube-knapsack", [(10, 5, 0)] * 3, {"budget": 0.5, "costs": np.full(3, 0.5)})
    rng = np.random.default_rng(0)
    counts = np.bincount([policy.choose(state, rng) for _ in range(900)], minlength=3)
    assert np.all(np.abs(counts - 300) < 5 * math.sqrt(900 * 2 / 9))


def test_a_short_horizon_scales_money_instead():
    """B = 100, T = 50: both resources have the budget 50, so a cost counts half and a pull one."""
    policy = PrimalDualBwK(horizon=50.0)
    assert policy.extras(policy.start(2, Knowledge(budget=100.0)))[1:] == (0.5, 1.0)


def test_numbers_that_are_equal_make_equal_policies():
    assert PrimalDualBwK(horizon=1000).spec == parse_policy("primal-dual-bwk:horizon=1000").spec


def test_the_papers_policies_come_first_and_the_others_in_alphabetical_order():
    first = len(PAPER_POLICIES)
    assert set([*POLICIES][:first]) == set(PAPER_POLICIES)
    assert [*POLICIES][first:] == sorted(POLICIES.keys() - set(PAPER_POLICIES))


@pytest.mark.parametrize("arms", [1, 2, 10, 12, 13])
def test_a_few_arms_are_drawn_one_by_one_and_chosen_as_if_all_at_once(arms):
    """The very same choices, and a generator that is left in the very same place; also with arms that are retired."""
    policy = BudgetedThompson()
    state = policy.start(arms)
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    for turn in range(200):
        state.active[:] = [turn % 3 == 0 or (arm + turn) % 4 > 0 for arm in range(arms)]
        chosen = choose_of_few(state, one)
        assert chosen == policy.choose(state, other)
        assert (chosen is None) == (not state.active.any())
        assert one.bit_generator.state == other.bit_generator.state
        policy.add_history(state, chosen or 0, 1, float(turn % 2), 0.5)


@pytest.mark.parametrize(
    "policy",
    [
        f"{parameter}={value}"
        for parameter in ("ucb-bv1:cost_floor", "ucb-v:zeta", "moss:horizon", "primal-dual-bwk:horizon",
                          "omega-ucb:rho", "omega-star-ucb:rho", "omega-rising:wait", "i-ucb:alpha", "m-ucb:alpha",
                          "b-greedy:alpha", "budget-ucb:width", "budget-ucb:cost_floor", "imed-ratio:kappa",
                          "maillard-ratio:kappa", "imed-fading:kappa", "imed-fading:fade", "imed-moss:kappa",
                          "empirical-imed:kappa")
        for value in (SMALLEST_PARAMETER, LARGEST_PARAMETER)
    ]
    + ["kl-ucb:lower_order=1e6", "epsilon-first:epsilon=5e-324", "kl-ucb-sc:lower_order=1e6", "ucb-b1:alpha=1e15",
       "ucb-b1:cost_variance=0", "ucb-b2c:alpha=1e15", "ucb-m1:alpha=1e15",
       "ucb-m1:reward_variance=0,cost_variance=0", "npts-ratio:steps=1", "npts-ratio:steps=100"],
)  # fmt: skip
def test_every_parameter_that_is_taken_can_be_played(policy):
    known = {"cost_floor": 0.1} if policy.startswith("budget-ucb:width") else {}
    spend = Allocation(parse_policy(policy), ["a", "b", "c"], budget=1e6, seed=1, **known)
    for number in range(200):
        if spend.exhausted:
            break
        spend.tell(spend.ask(), reward=(number % 3) / 2, cost=(number % 4) / 3)
