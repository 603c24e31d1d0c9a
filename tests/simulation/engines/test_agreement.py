"""Every fast engine against the reference simulator, through `simulate`: the same law of pulls, rounds and rewards.

Each comparison is a set of two-sample tests (chi-square on quantiles, Kolmogorov-Smirnov) of every arm's pulls, the
rounds, the reward and the spend at every budget, with Bonferroni; a correct engine fails one with probability 1e-6.
What would break them: a rule of the game misread, ties broken unevenly, a posterior updated wrongly, a law sampled
wrongly, a checkpoint read off a round too early. With 150 or 200 games of the reference a mean that is off by 0.6
standard deviations is found nine times in ten. Sharper tests of each engine's inside stand in test_thompson and
test_index.
"""

import os

import numpy as np
import pytest

from budgetbandits import Problem, family, parse_policy, simulate
from budgetbandits.problems.distributions import JointTable
from budgetbandits.problems.problem import Arm
from budgetbandits.testing.engines import FALSE_ALARM, GAMES, rows, smallest_p
from deep import deep, mostly_deep

DEEP = bool(os.environ.get("BUDGETBANDITS_DEEP"))

PROBLEMS = {
    **GAMES,
    "fifty arms on a lattice": (family("uniform-multinomial", 50, seed=1, low=0.2), [10.0, 25.25], 200),
    "one tiny cost": (Problem.bernoulli([0.5, 0.6, 0.3], [0.5, 0.02, 0.4]), [1.0, 3.0], 300),
}


POLICIES = ["bts", "epsilon-first:epsilon=0.3", "kube", "thompson", "ucb-bv1", "pd-bwk"]
PAIRS = [(policy, which) for policy in POLICIES for which in PROBLEMS]
FEW = [*zip(POLICIES, PROBLEMS, strict=False), ("bts", "laws of every kind")]
"""Every problem, and for the engine of one policy the hardest one as well."""


@pytest.mark.parametrize(("policy", "which"), mostly_deep(PAIRS, FEW))
def test_the_fast_engine_plays_the_same_game(policy, which):
    problem, budgets, runs = PROBLEMS[which]
    slow, fast = (
        simulate(problem, parse_policy(policy), budgets, number, seed=7, engine=engine)
        for engine, number in (("reference", runs if DEEP else runs // 2), ("fast", 3 * runs))
    )
    assert slow.engine == "reference"
    assert fast.engine in ("thompson", "epsilon-first", "index blocks")
    assert smallest_p(rows(slow), rows(fast)) > FALSE_ALARM


@pytest.mark.deep
@pytest.mark.parametrize(
    ("policy", "which"),
    [
        ("bts:prior_reward=jeffreys,prior_cost=0.4/2,kappa=1.5", "ten arms"),
        ("thompson:kappa=2,prior_reward=3/1", "laws of every kind"),
        ("bts-gaussian", "ten arms"),
        ("bts-joint", "laws of every kind"),
    ],
)
def test_the_plain_loop_plays_the_law_of_policies_that_draw_all_arms_at_once(policy, which):
    problem, budgets, _ = PROBLEMS[which]
    slow, fast = (
        simulate(problem, parse_policy(policy), budgets, runs, seed=7, engine=engine)
        for engine, runs in (("reference", 150), ("fast", 600))
    )
    assert fast.engine == "sampling plain loop"
    assert smallest_p(rows(slow), rows(fast)) > FALSE_ALARM


BLOCKS = ["omega-ucb", "i-ucb", "c-ucb", "m-ucb", "ucb-sc", "kl-ucb-sc", "kl-ucb-sc-plus", "ucb-b1"]
BOUNDS = ["omega-rising", "ucb-b2", "ucb-b2c", "imed-fading", "imed-moss"]


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("budget-ucb", "index blocks"),
        ("omega-star-ucb", "index bounds"),
        ("imed-ratio", "index bounds"),
        ("gittins-ratio", "index bounds"),
        ("b-greedy", "index plain loop"),
        ("npts-ratio", "sampling plain loop"),
        *deep(
            *((name, "index blocks") for name in BLOCKS),
            *((name, "index bounds") for name in BOUNDS),
            ("maillard-ratio", "index plain loop"),
        ),
    ],
)
def test_policies_after_the_paper_play_the_same_game(name, engine):
    """Twelve Bernoulli arms, ties and arms that have cost nothing included."""
    problem, policy = family("uniform-bernoulli", 12, seed=4, low=0.1), parse_policy(name)
    slow_runs = (80 if name.startswith(("kl", "gittins", "npts")) else 150) * (2 if DEEP else 1)
    fast = simulate(problem, policy, [4.0, 9.0], runs=1_500, seed=3)
    slow = simulate(problem, policy, [4.0, 9.0], runs=slow_runs, seed=3, engine="reference")
    assert fast.engine == engine
    assert smallest_p(rows(fast), rows(slow)) > FALSE_ALARM


def test_a_prior_fitted_to_all_arms_plays_the_same_game():
    """Every pull costs 1, which the prior of the costs finds out: without it other arms are pulled."""
    laws = [JointTable([[1.0, 1.0, mean], [0.0, 1.0, 1.0 - mean]]) for mean in np.linspace(0.1, 0.8, 12)]
    problem = Problem(tuple(Arm(f"arm-{i}", law) for i, law in enumerate(laws)))
    fast = simulate(problem, "gittins-ratio", [80.0], runs=300, seed=3)
    slow = simulate(problem, "gittins-ratio", [80.0], runs=60, seed=3, engine="reference")
    fixed = simulate(problem, "gittins-ratio:lead=1000", [80.0], runs=300, seed=3)
    assert smallest_p(rows(fast), rows(slow)) > FALSE_ALARM > smallest_p(rows(fast), rows(fixed))


@pytest.mark.deep
@pytest.mark.parametrize("name", ["ucb-b2", "ucb-b2c"])
def test_variances_narrow_the_interval_in_both_engines(name):
    """Costs that vary little open the gate after some 250 pulls of each arm; before that all indices are infinite."""
    laws = [JointTable([[high, 1.0, 0.5], [high - 0.1, 0.9, 0.5]]) for high in (0.9, 0.2)]
    problem = Problem(tuple(Arm(f"arm-{i}", law) for i, law in enumerate(laws)))
    fast = simulate(problem, parse_policy(name), [650.0], runs=200, seed=3)
    slow = simulate(problem, parse_policy(name), [650.0], runs=12, seed=3, engine="reference")
    assert fast.engine == "index bounds"
    assert (fast.pulls[:, 0, 0] > 1.2 * fast.pulls[:, 0, 1]).all()
    assert smallest_p(rows(fast), rows(slow)) > FALSE_ALARM


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        *((policy, {}) for policy in ("bts", "thompson", "kube", "pd-bwk", "epsilon-first", "bts-joint")),
        *((policy, {"common": True}) for policy in ("bts", "kube", "epsilon-first")),
        ("bts-paced", {"horizon": 50}),
    ],
)
def test_threads_give_the_same_bits(policy, options):
    problem = family("uniform-bernoulli", 8, seed=3, low=0.1)
    one, three = (simulate(problem, policy, [50, 200], runs=40, seed=2, jobs=jobs, **options) for jobs in (1, 3))
    assert np.array_equal(rows(one), rows(three))


def test_a_billion_fits():
    """A budget of 10⁹ and a million arms: what is not drawn costs nothing."""
    long = simulate(Problem.bernoulli([0.9, 0.2, 0.5], [0.3, 0.6, 0.5]), parse_policy("bts"), [1e9], runs=2)
    assert np.all(long.spend == 1e9)
    assert np.all(long.pulls[:, 0, 1:] < 10_000)
