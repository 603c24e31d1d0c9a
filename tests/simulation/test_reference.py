"""The rules of the game, on problems small enough to check by hand: the reference simulator and the fast engines."""

from functools import partial

import numpy as np
import pytest

import budgetbandits
from budgetbandits import BudgetedThompson, Problem, best_ratio, family, parse_policy
from budgetbandits.errors import BadParameter, RoundLimit
from budgetbandits.policies.base import Policy
from budgetbandits.policies.thompson import BetaThompson
from budgetbandits.problems.distributions import Bernoulli, Fixed, Independent
from budgetbandits.problems.problem import Arm
from budgetbandits.simulation.reference import play
from budgetbandits.testing.engines import GAMES, rows


@pytest.fixture(params=["reference", "fast"])
def simulate(request):
    return partial(budgetbandits.simulate, engine=request.param)


def fixed(*pairs):
    return Problem(tuple(Arm(f"a{i}", Independent(Fixed(r), Fixed(c))) for i, (r, c) in enumerate(pairs)))


@pytest.mark.parametrize(
    ("cost", "policy", "budget", "ended"),
    [
        pytest.param(0.25, "ucb1", 1.0, (4.0, 1.0, 4), id="a pull that fits exactly counts"),
        pytest.param(0.4, "ucb1", 1.0, (2.0, 0.8, 3), id="a pull that overdraws ends the game and earns nothing"),
        pytest.param(0.1, "ucb1", 1.0, (10.0, 1.0, 10), id="ten tenths are one"),
        pytest.param(
            0.1,
            "epsilon-first",
            1e3,
            (1e4, pytest.approx(1e3), 10_000),
            id="ten thousand tenths are a thousand",
        ),
    ],
)
def test_where_a_game_ends(simulate, cost, policy, budget, ended):
    outcome = simulate(fixed((1.0, cost), (1.0, cost)), policy, [budget], runs=1)
    assert (outcome.reward[0, 0], outcome.spend[0, 0], outcome.rounds[0, 0]) == ended
    assert outcome.pulls[0, 0].sum() == ended[2]


def test_a_tie_for_the_most_pulls_identifies_nobody(simulate):
    outcome = simulate(Problem.bernoulli([0.9, 0.1], [1, 1]), "ucb1", [2.0], runs=1)
    assert outcome.pulls.tolist() == [[[1, 1]]]
    assert not outcome.best_arm_identified.any()


def test_one_game_contains_the_games_at_smaller_budgets(simulate):
    """A budget between two sums is overdrawn there and then; the larger game goes on as if nothing had happened."""
    problem = fixed((0.5, 0.4), (1.0, 0.4))
    together = simulate(problem, "ucb1", [2.0, 0.8, 1.0], runs=1)
    assert together.budgets.tolist() == [2.0, 0.8, 1.0]
    for b, budget in enumerate(together.budgets):
        alone = simulate(problem, "ucb1", [budget], runs=1)
        for part in ("reward", "spend", "rounds", "pulls"):
            assert getattr(alone, part)[:, 0].tolist() == getattr(together, part)[:, b].tolist()
    assert together.rounds[0].tolist() == [5, 2, 3]


@pytest.mark.parametrize("policy", ["bts", "kube", "thompson"])
def test_smaller_budgets_of_an_anytime_policy_are_the_same_game(simulate, policy):
    problem = family("uniform-multinomial", 5, seed=1)
    several = simulate(problem, policy, [20, 50], runs=5, seed=3)
    one = simulate(problem, policy, [20], runs=5, seed=3)
    assert np.array_equal(several.pulls[:, 0], one.pulls[:, 0])
    assert np.array_equal(several.reward[:, 0], one.reward[:, 0])


def test_a_policy_that_knows_the_budget_is_played_anew(simulate):
    problem = family("uniform-bernoulli", 5, seed=1, low=0.2)
    outcome = simulate(problem, "epsilon-first:epsilon=0.5", [40, 80], runs=3)
    # half of the budget is explored in turn: at each budget the counts of the arms not settled on differ by 1 at most
    for b in range(2):
        for pulls in outcome.pulls[:, b]:
            assert np.ptp(np.delete(pulls, pulls.argmax())) <= 1


def test_any_number_of_processes_gives_the_same_bits():
    """Threads, which play the compiled engines, are in test_agreement."""
    play = partial(budgetbandits.simulate, family("uniform-beta", 4, seed=2, low=0.2), "bts", [10, 30], 7, seed=9)
    one, two = (play(engine="reference", jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(rows(one), rows(two))


def test_a_run_does_not_depend_on_how_many_there_are(simulate):
    problem = family("uniform-bernoulli", 4, seed=2, low=0.2)
    few, many = (simulate(problem, BudgetedThompson(), [30], runs=runs) for runs in (3, 6))
    assert np.array_equal(few.pulls, many.pulls[:3])
    assert not np.array_equal(few.pulls, simulate(problem, BudgetedThompson(), [30], runs=3, seed=1).pulls)


def test_any_law_can_be_played(simulate):
    problem = GAMES["laws of every kind"][0]
    outcome = simulate(problem, BudgetedThompson(), [5.5, 30.0], runs=4)
    assert np.all(outcome.spend <= outcome.budgets)
    assert np.all(outcome.spend > outcome.budgets - 1)
    assert np.all(outcome.pulls.sum(axis=2) == outcome.rounds)
    assert np.allclose(outcome.regret, best_ratio(problem) * outcome.budgets - outcome.reward)


def test_pseudo_regret_by_hand(simulate):
    problem = Problem.bernoulli([0.5, 0.5], [0.25, 0.5])  # ratios 2 and 1: a pull of the second costs ½ · 1
    outcome = simulate(problem, "kube", [50], runs=6)
    assert np.allclose(outcome.pseudo_regret, 0.5 * outcome.pulls[:, :, 1])
    assert outcome.best_arm_identified.tolist() == (outcome.pulls[:, :, 0] > outcome.pulls[:, :, 1]).tolist()


def test_epsilon_first_reports_its_misses(simulate):
    """The paper argues from the runs that settle on the wrong arm: they are told apart, and cost more."""
    problem = Problem.bernoulli([0.50, 0.45] + [0.3] * 8, [0.5] * 10)
    outcome = simulate(problem, "epsilon-first:epsilon=0.05", [600], runs=60)
    hit = outcome.best_arm_identified[:, 0]
    assert 5 < hit.sum() < 55
    assert outcome.pseudo_regret[~hit].mean() > 1.5 * outcome.pseudo_regret[hit].mean()


def test_a_game_without_end_is_stopped(simulate):
    with pytest.raises(RoundLimit, match=r"rounds.*raise max_rounds"):
        simulate(fixed((1.0, 0.001), (1.0, 0.001)), "ucb1", [10.0], runs=1, max_rounds=50)


def test_progress_is_reported(simulate):
    seen = []
    simulate(fixed((1.0, 0.5), (1.0, 0.5)), "ucb1", [1.0], runs=3, progress=seen.append)
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budgets": []}, "no budget"),
        ({"budgets": [0.0]}, "budget is 0"),
        ({"budgets": [float("nan")]}, "budget is nan"),
        ({"budgets": 50}, "give a list"),
        ({"budgets": "100"}, "give a list"),
        ({"budgets": ["x"]}, "a budget is not a number"),
        ({"runs": 0}, "runs is 0"),
        ({"runs": 2.5}, "runs is 2.5; use a whole number"),
        *(({"seed": seed}, f"seed is {seed!r}") for seed in (-1, 1.5, True, "1")),
        ({"jobs": 0}, "jobs is 0"),
        ({"max_rounds": -1}, "max_rounds is -1"),
        ({"max_rounds": "x"}, "max_rounds is 'x'; use a whole number"),
        ({"engine": "quick"}, "choose one of auto, fast, reference"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(BadParameter, match=words):
        budgetbandits.simulate(fixed((1.0, 0.5), (1.0, 0.5)), "bts", **({"budgets": [1.0], "runs": 1} | arguments))


class Curious(BetaThompson):
    """A policy that tries to learn what it did not declare."""

    name = "curious"

    def start(self, arms, known):
        assert known.to_dict() == {}
        return super().start(arms, known)

    draw = BudgetedThompson.draw
    score = BudgetedThompson.score


def test_a_policy_is_handed_nothing_it_did_not_declare():
    assert issubclass(Curious, Policy)
    budgetbandits.simulate(fixed((1.0, 0.5), (1.0, 0.5)), Curious(), [1.0], runs=1)


@pytest.mark.parametrize("policy", ["bts", "bts-paced"])
def test_costs_are_told_on_the_arms_own_scales(policy):
    """Arms whose largest cost is known to be a half, and the same with all costs and the budget doubled: both are told
    the same, and pull the same. Broken by a cost that is told as it is, or a budget that is reckoned on that scale."""
    halves, wholes = (
        Problem(
            tuple(
                Arm(name, Independent(Bernoulli(mean), Fixed(cost * scale)), cap)
                for name, mean, cost in (("a", 0.3, 0.5), ("b", 0.8, 1.0))
            )
        )
        for scale, cap in ((0.5, 0.5), (1.0, None))
    )
    player = parse_policy(policy)
    seeds = [np.random.SeedSequence(1).spawn(2) for _ in range(2)]
    one, other = (
        play(problem, player, [budget], *map(np.random.default_rng, pair), 10_000, 60.0)
        for problem, budget, pair in ((halves, 10.0, seeds[0]), (wholes, 20.0, seeds[1]))
    )
    assert one[0][3].tolist() == other[0][3].tolist()
    assert one[0][1] == other[0][1] / 2
    engine = {"bts": "reference", "bts-paced": "paced plain loop"}[policy]
    assert budgetbandits.simulate(halves, player, [5.0], 1).engine == engine
