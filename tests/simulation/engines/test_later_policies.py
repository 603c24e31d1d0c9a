"""The policies that came after the paper, by the compiled engines and by the reference simulator.

On outcomes fixed in advance and without ties, games must agree pull for pull. Drawn games are compared in distribution,
each comparison with a false alarm of 1e-6 (`FALSE_ALARM`, Bonferroni); seeds are fixed. What would break them: a sum
that a pull does not add to, a window in which a bound does not hold, a softmax or an exploration drawn wrongly.
"""

from __future__ import annotations

import numpy as np
import pytest

from budgetbandits import Problem, family, parse_policy, simulate
from budgetbandits.problems.distributions import JointTable
from budgetbandits.problems.problem import Arm
from budgetbandits.simulation.engines.index.engine import IndexGames
from budgetbandits.testing.engines import FALSE_ALARM, rows, smallest_p
from comparing import sample
from deep import deep
from recorded import play_naively, recorded_problem, rewound

BLOCKS = ["omega-ucb", "i-ucb", "c-ucb", "m-ucb", "ucb-sc", "kl-ucb-sc", "kl-ucb-sc-plus", "ucb-b1"]
BOUNDS = ["omega-rising", "ucb-b2", "ucb-b2c", "imed-fading", "imed-moss"]


@pytest.mark.parametrize("arms", [3, 40])
@pytest.mark.parametrize(
    "name",
    [
        "omega-ucb",
        "omega-star-ucb",
        "omega-rising:wait=2",
        "budget-ucb",
        "imed-ratio",
        "imed-fading:fade=9",
        "imed-moss",
    ],
)
def test_pull_for_pull_as_the_reference(name, arms):
    policy, budgets = parse_policy(name), [25.0, 150.3]
    problem = recorded_problem(arms, seed=arms, low=0.3)
    expected = play_naively(rewound(problem), policy, budgets, 1)
    for lazy in (True, False):
        games = IndexGames(rewound(problem), policy, budgets, lazy=lazy).play(np.random.SeedSequence(1))
        for one, other in zip(expected, games, strict=True):
            assert (one[3] == other[3]).all(), lazy
            assert one[:2] == pytest.approx(other[:2])


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("budget-ucb", "index blocks"),
        ("omega-star-ucb", "index bounds"),
        ("imed-ratio", "index bounds"),
        ("b-greedy", "index plain loop"),
        ("npts-ratio", "sampling plain loop"),
        *deep(
            *((name, "index blocks") for name in BLOCKS),
            *((name, "index bounds") for name in BOUNDS),
            ("maillard-ratio", "index plain loop"),
        ),
    ],
)
def test_the_engine_plays_the_same_game_as_the_reference(name, engine):
    """Twelve Bernoulli arms, ties and arms that have cost nothing included."""
    problem, policy = family("uniform-bernoulli", 12, seed=4, low=0.1), parse_policy(name)
    fast = simulate(problem, policy, [4.0, 9.0], runs=900, seed=3)
    slow = simulate(problem, policy, [4.0, 9.0], runs=120 if name.startswith("kl") else 300, seed=3, engine="reference")
    assert fast.engine == engine
    assert smallest_p(rows(fast), rows(slow)) > FALSE_ALARM


PROBLEMS = {
    "near tie": (Problem.bernoulli([0.6, 0.58], [0.4, 0.4]), [20.0, 200.0]),
    "on a lattice": (family("uniform-multinomial", 40, seed=1, low=0.2), [20.0, 60.25]),
    "all alike": (Problem.bernoulli([0.5] * 6, [0.5] * 6), [10.0, 120.0]),
}


@pytest.mark.parametrize("which", PROBLEMS)
@pytest.mark.parametrize(
    "name",
    ["omega-star-ucb", *deep("omega-rising", "ucb-b2", "ucb-b2c", "imed-ratio", "imed-fading:fade=9", "imed-moss")],
)
def test_bounds_have_the_distribution_of_the_plain_loop(which, name):
    problem, budgets = PROBLEMS[which]
    lazy = sample(IndexGames(problem, parse_policy(name), budgets, lazy=True), 400, seed=1)
    plain = sample(IndexGames(problem, parse_policy(name), budgets, lazy=False), 400, seed=2)
    assert smallest_p(lazy, plain) > FALSE_ALARM


def test_the_outcome_says_why_no_blocks_are_played():
    problem = family("uniform-bernoulli", 4, seed=1, low=0.2)
    reasons = {
        "ucb-b2": "its index depends on variances, which blocks of pulls do not tell",
        "imed-ratio": "its index depends on the best ratio, which moves with every pull",
        "b-greedy": "it draws the arm at random, so every index counts in every round",
    }
    for name, reason in reasons.items():
        assert simulate(problem, parse_policy(name), [5.0], runs=1).engine_reason == reason


def test_a_reason_names_no_folder_of_this_machine():
    reason = simulate(family("uniform-bernoulli", 4, seed=1, low=0.2), "bayes-ucb", [5.0], runs=1).engine_reason
    assert "Unknown attribute 'betainccinv' of type Module(<module 'scipy.special'>)" in reason


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
