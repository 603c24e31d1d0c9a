"""The compiled plain loop of sampling policies plays the games of the reference simulator, draw for draw."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats

from budgetbandits import Problem, parse_policy, simulate
from budgetbandits.errors import NotANumber, RoundLimit
from budgetbandits.policies import SamplingPolicy, trial
from budgetbandits.policies.posteriors import GaussianThompson, JointThompson
from budgetbandits.policies.thompson import BudgetedThompson, Thompson
from budgetbandits.simulation.dispatch import engine_for
from budgetbandits.simulation.engine_support import EngineUnsupported
from budgetbandits.simulation.engines.plain.sampling_games import LOOP_METHODS, SamplingGames, rehearse
from budgetbandits.simulation.reference import ReferencePlayer
from budgetbandits.testing.engines import ENGINES, FALSE_ALARM, GAMES, rows, smallest_p
from comparing import sample
from deep import deep
from own_rules import with_own

ANY_LAW, TEN = GAMES["laws of every kind"][0], GAMES["ten arms"][0]
CLEAR = Problem.bernoulli([0.9, 0.5, 0.3], [0.4, 0.5, 0.6])
BUDGETS = [2.0, 15.5, 40.0]


# --- policies from outside the package ---------------------------------------------------------------------------


def wide_score(statistics, rng, low, high, spread):
    mean = statistics[0] / statistics[2]
    return max(low, min(high, mean + spread * rng.standard_normal() / math.sqrt(statistics[2])))


def wide_learn(statistics, reward, cost, rng, low, high, spread):
    statistics[0] += trial(reward, rng)
    statistics[1] += cost
    statistics[2] += 1.0


class Unreminded(SamplingPolicy):
    """Simulations add no history."""

    def add_history(self, state, arm, pulls, reward, cost):
        raise NotImplementedError


@dataclass(frozen=True)
class Clipped(Unreminded):
    """Scores that are often equal, so that ties are broken all the time."""

    name: ClassVar[str] = "clipped"
    score = staticmethod(wide_score)
    learn = staticmethod(wide_learn)
    spread: float = 2.0

    def prior(self):
        return 0.5, 0.5, 1.0

    def extras(self):
        return (0.0, 1.0, self.spread)


def noise(rng, a, b, c, d, e):
    return (a + 2.0 * b + 4.0 * c + 8.0 * d + 16.0 * e) * rng.standard_normal()


def five_score(statistics, rng, a, b, c, d, e):
    return statistics[0] / statistics[1] + noise(rng, a, b, c, d, e)


def five_learn(statistics, reward, cost, rng, a, b, c, d, e):
    statistics[0] += reward
    statistics[1] += cost + e


@dataclass(frozen=True)
class Five(Unreminded):
    """More extras than the loop has places for, and a helper."""

    name: ClassVar[str] = "five"
    score = staticmethod(five_score)
    learn = staticmethod(five_learn)

    def prior(self):
        return 0.5, 0.5

    def extras(self):
        return (0.01, 0.02, 0.03, 0.04, 0.05)


def tired_score(statistics, rng):
    return rng.random() if statistics[0] > 0.0 else -math.inf


def tired_learn(statistics, reward, cost, rng):
    statistics[0] -= 1.0


@dataclass(frozen=True)
class Tired(Unreminded):
    """Stops when every arm has been pulled three times."""

    name: ClassVar[str] = "tired"
    score = staticmethod(tired_score)
    learn = staticmethod(tired_learn)

    def prior(self):
        return (3.0,)


class GaussianInTurn(GaussianThompson):
    """Draws arm after arm, as the loop does."""

    name = "gaussian-in-turn"
    draw = SamplingPolicy.draw


class JointInTurn(JointThompson):
    name = "joint-in-turn"
    draw = SamplingPolicy.draw


@pytest.mark.parametrize("problem", [ANY_LAW, TEN], ids=["any law", "ten arms"])
@pytest.mark.parametrize(
    "policy", [Clipped(), Clipped(0.3), Tired(), GaussianInTurn(0.3), *deep(Five(), JointInTurn())], ids=str
)
def test_the_loop_plays_the_games_of_the_reference(policy, problem):
    """Broken by a draw more or less anywhere, ties broken otherwise, another batch of outcomes, a budget misread."""
    fast, slow = (simulate(problem, policy, BUDGETS, 4, engine=engine) for engine in ("fast", "reference"))
    assert (fast.engine, fast.engine_reason) == ("sampling plain loop", "")
    assert np.array_equal(rows(fast), rows(slow))


def test_a_tie_is_broken_uniformly():
    """In its first round about half of the scores are 1; the first pulls of 2,000 games, chi-square at 1e-6."""
    policy, rounds = Clipped(50.0), 2_000
    games = SamplingGames(Problem.bernoulli([0.5] * 4, [1.0] * 4), policy, [1.0])
    first = sum(games.play(np.random.SeedSequence(run))[0][3] for run in range(rounds))
    assert first.sum() == rounds
    assert stats.chisquare(first).pvalue > 1e-6


# --- the package's own -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy",
    [BudgetedThompson((0.5, 0.5), 1.5, [(2, 8), (0.3, 4)]), *deep(BudgetedThompson(), Thompson("jeffreys", 2.0))],
    ids=lambda policy: policy.spec,
)
def test_the_loop_plays_the_games_of_beta_posteriors_arm_after_arm(policy):
    """With scores drawn one by one, as the loop draws them; `draw` of the policies takes all rewards first."""
    in_turn = type("InTurn", (type(policy),), {"draw": SamplingPolicy.draw})
    twin = in_turn(*(getattr(policy, field.name) for field in fields(policy)))
    for problem in (ANY_LAW, TEN):
        for run in range(2):
            fast, slow = (
                kind(problem, each, BUDGETS).play(np.random.SeedSequence(run), 1 << 40)
                for kind, each in ((SamplingGames, policy), (ReferencePlayer, twin))
            )
            for one, other in zip(fast, slow, strict=True):
                assert one[:3] == other[:3]
                assert one[3].tolist() == other[3].tolist()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ("bts:prior_reward=1/1+9/2,prior_cost=1/1+1/7", TEN),  # some arms stay in the pool of those that are alike
        ("bts:kappa=2.5", CLEAR),  # nearly all of it is one arm's pulls, in blocks
        ("bts:prior_reward=2/3,prior_cost=4/1", ANY_LAW),
        ("thompson:prior_reward=9/1+1/1+2/6", TEN),
        ("bts:kappa=0.4", ANY_LAW),
        ("thompson:kappa=3", TEN),
    ],
)
def test_the_lazy_engine_plays_whole_priors_and_weighted_trials(policy, problem):
    """Two-sample tests with the plain loop, Bonferroni; false alarms at 1e-6."""
    policy = parse_policy(policy)
    budgets = [40.0, 160.0] if problem is CLEAR else BUDGETS[:2]
    outcome = simulate(problem, policy, budgets, 3_000, seed=1)
    assert outcome.engine == "thompson"
    plain, uniform = (sample(SamplingGames(problem, each, budgets), 700, seed=2) for each in (policy, type(policy)()))
    assert smallest_p(rows(outcome), plain) > FALSE_ALARM
    assert smallest_p(rows(outcome), uniform) < FALSE_ALARM  # it can fail: another posterior is another game


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("bts:kappa=1.5,prior_cost=2/1", "kappa"),
        ("bts:prior_cost=1.5/1", "whole"),
        ("bts:prior_reward=jeffreys", "whole"),
    ],
)
def test_what_the_lazy_engine_leaves_to_the_plain_loop(policy, why):
    engine = engine_for(TEN, parse_policy(policy))
    assert engine.name == "sampling plain loop"
    assert why in engine.reason


# --- refusals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOOP_METHODS)
def test_any_method_the_loop_stands_in_for(name):
    assert f"{name} of its own" in engine_for(TEN, with_own(Clipped, name)()).reason


def overflowing(statistics, rng):
    return rng.random() / float(1 << min(int(statistics[0]), 200))  # in Python a whole number has any size


def doubling(statistics, reward, cost, rng):
    statistics[0] += 40.0


def unreadable(statistics, rng):
    return rng.dirichlet([1.0, statistics[0]])[0]


LEVELS = [0.5]


def changeable(statistics, rng):
    return LEVELS[0] * rng.random()


def needy(statistics, rng, width):
    return width * rng.random()


@pytest.mark.parametrize(
    ("score", "why"),
    [
        (unreadable, "Numba cannot compile its score"),
        (changeable, "its score reads LEVELS"),
        (needy, "its score does not take what the engine gives it"),
        (np.random.random, "it has no score that could be compiled"),
        (overflowing, "in a rehearsal"),
    ],
)
def test_what_cannot_be_played_is_left_to_the_reference(score, why):
    own = type("Own", (Tired,), {"name": "own", "score": staticmethod(score), "learn": staticmethod(doubling)})
    engine = engine_for(TEN, own())
    assert engine.name == "reference"
    assert why in engine.reason


def test_a_rehearsal_can_fail_and_the_check_says_so():
    own = type("Own", (Tired,), {"name": "own", "score": staticmethod(overflowing), "learn": staticmethod(doubling)})
    with pytest.raises(EngineUnsupported, match="compiled, its score or learn does something else"):
        rehearse(own())
    with pytest.raises(AssertionError, match="does something else"):
        ENGINES["declares the truth"](own())
    assert ENGINES["declares the truth"](Clipped()) is None


def nothing(statistics, rng):
    return statistics[0] * rng.random() if statistics[0] < 5.0 else math.nan


def test_a_score_that_is_not_a_number():
    own = type("Own", (Tired,), {"name": "own", "score": staticmethod(nothing), "prior": lambda self: (5.0,)})
    with pytest.raises(NotANumber, match="let score return a number there"):
        SamplingGames(TEN, own(), [9.0]).play(np.random.SeedSequence(1))


def test_a_game_that_goes_on_too_long():
    with pytest.raises(RoundLimit, match="has played 50 rounds"):
        simulate(TEN, parse_policy("bts-joint"), [500.0], 1, max_rounds=50)
