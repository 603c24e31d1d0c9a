"""Every fast engine against the reference simulator, through `simulate`: the same law of pulls, rounds and rewards.

Each comparison is a set of two-sample tests (chi-square on quantiles, Kolmogorov-Smirnov) of every arm's pulls, the
rounds, the reward and the spend at every budget, with Bonferroni; a correct engine fails one with probability 1e-6.
What would break them: a rule of the game misread, ties broken unevenly, a posterior updated wrongly, a law sampled
wrongly, a checkpoint read off a round too early. Sharper tests of each engine's inside stand in test_thompson and
test_index.
"""

import numpy as np
import pytest

from budgetbandits import Problem, family, parse_policy, simulate
from budgetbandits.problems.distributions import Beta, Copula, Fixed, Independent, JointTable, Lattice
from budgetbandits.problems.problem import Arm
from budgetbandits.testing.engines import FALSE_ALARM, rows, smallest_p
from deep import mostly_deep

PROBLEMS = {
    "near tie": (Problem.bernoulli([0.6, 0.58], [0.4, 0.4]), [5.0, 25.0], 400),
    "ten arms": (family("uniform-bernoulli", 10, seed=4, low=0.1), [6.0, 15.0, 15.5], 400),
    "fifty arms on a lattice": (family("uniform-multinomial", 50, seed=1, low=0.2), [10.0, 25.25], 200),
    "one tiny cost": (Problem.bernoulli([0.5, 0.6, 0.3], [0.5, 0.02, 0.4]), [1.0, 3.0], 300),
    "any law": (
        Problem(
            (
                Arm("table", JointTable([[1, 1, 0.5], [0, 0.5, 0.5]])),
                Arm("copula", Copula(Beta(2, 2), Beta(1, 3), 0.6)),
                Arm("mixed", Independent(Lattice([0.1, 0.7], [1, 2]), Fixed(0.3))),
            )
        ),
        [2.0, 10.0],
        400,
    ),
}


POLICIES = ["bts", "epsilon-first:epsilon=0.3", "kube", "thompson", "ucb-bv1", "pd-bwk"]
PAIRS = [(policy, which) for policy in POLICIES for which in PROBLEMS]
FEW = [*zip(POLICIES, PROBLEMS, strict=False), ("bts", "any law"), ("kube", "one tiny cost")]
"""Every problem, and for the engines of one policy and of many the hardest one as well."""


@pytest.mark.parametrize(("policy", "which"), mostly_deep(PAIRS, FEW))
def test_the_fast_engine_plays_the_same_game(policy, which):
    problem, budgets, runs = PROBLEMS[which]
    slow, fast = (
        simulate(problem, parse_policy(policy), budgets, n * runs, seed=7, engine=engine)
        for engine, n in (("reference", 1), ("fast", 3))
    )
    assert slow.engine == "reference"
    assert fast.engine in ("thompson", "epsilon-first", "index blocks")
    assert smallest_p(rows(slow), rows(fast)) > FALSE_ALARM


@pytest.mark.deep
@pytest.mark.parametrize(
    ("policy", "which"),
    [
        ("bts:prior_reward=jeffreys,prior_cost=0.4/2,kappa=1.5", "ten arms"),
        ("thompson:kappa=2,prior_reward=3/1", "any law"),
        ("bts-gaussian", "ten arms"),
        ("bts-joint", "any law"),
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


@pytest.mark.parametrize("policy", ["bts", "thompson", "kube", "pd-bwk", "epsilon-first", "bts-joint"])
def test_threads_give_the_same_bits(policy):
    problem = family("uniform-bernoulli", 8, seed=3, low=0.1)
    one, three = (simulate(problem, parse_policy(policy), [50, 200], runs=40, seed=2, jobs=j) for j in (1, 3))
    for part in ("reward", "spend", "rounds", "pulls"):
        assert np.array_equal(getattr(one, part), getattr(three, part))


def test_a_billion_fits():
    """A budget of 10⁹ and a million arms: what is not drawn costs nothing."""
    long = simulate(Problem.bernoulli([0.9, 0.2, 0.5], [0.3, 0.6, 0.5]), parse_policy("bts"), [1e9], runs=2)
    assert np.all(long.spend == 1e9)
    assert np.all(long.pulls[:, 0, 1:] < 10_000)
