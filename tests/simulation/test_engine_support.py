"""Policies from outside the package that fail, and arguments that make no sense: each is refused by name."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from scipy.special import comb

from budgetbandits import Problem, family, random_problems, simulate, simulate_many
from budgetbandits.errors import BadParameter, PolicyFailed
from budgetbandits.experiments import Results
from budgetbandits.policies import RISING_INDEX, IndexPolicy, SamplingPolicy

PROBLEM = Problem.bernoulli([0.3, 0.6], [0.2, 0.8])


@dataclass(frozen=True)
class NoIndex(IndexPolicy):
    name: ClassVar[str] = "no-index"


def wrong_key(mean_reward, mean_cost, pulls, rounds):
    return {}["missing"]


@dataclass(frozen=True)
class Raising(IndexPolicy):
    name: ClassVar[str] = "raising"
    index = staticmethod(wrong_key)


@dataclass(frozen=True)
class NoScore(SamplingPolicy):
    name: ClassVar[str] = "no-score"

    def prior(self):
        return (1.0,)

    def add_history(self, state, arm, pulls, reward, cost):
        pass


def falling(mean_reward, mean_cost, pulls, rounds):
    return -mean_reward + 0.0 * rounds


@dataclass(frozen=True)
class NotRising(IndexPolicy):
    name: ClassVar[str] = "not-rising"
    index = staticmethod(falling)
    monotone = RISING_INDEX


def calling(mean_reward, mean_cost, pulls, rounds):
    return comb(2.0, 1.0) * mean_reward / np.maximum(mean_cost, 1e-9)


@dataclass(frozen=True)
class Calling(IndexPolicy):
    name: ClassVar[str] = "calling"
    index = staticmethod(calling)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_what_is_missing_is_named(engine):
    with pytest.raises(BadParameter, match=r"no-index has no index; write index = staticmethod"):
        simulate(PROBLEM, NoIndex(), [50], 2, engine=engine)
    with pytest.raises(BadParameter, match=r"no-score has no score; write score = staticmethod"):
        simulate(PROBLEM, NoScore(), [50], 2, engine=engine)


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_an_index_that_raises_is_named_with_its_line(engine):
    with pytest.raises(
        PolicyFailed, match=r"raising fails: KeyError: 'missing' \(in wrong_key, .*test_engine_support.py, line"
    ):
        simulate(PROBLEM, Raising(), [50], 2, engine=engine)


def test_a_wrong_declaration_names_the_policy():
    with pytest.raises(
        BadParameter, match=r"not-rising: its index falling does not rise with mean_reward.*leave that declaration out"
    ):
        simulate(PROBLEM, NotRising(), [50], 2)


def test_a_function_that_is_not_compiled_is_named():
    assert "it calls comb, a function of a library that is not compiled; write it with NumPy's functions" in (
        simulate(PROBLEM, Calling(), [20], 1).engine_reason
    )


NO_LIST = [
    (lambda: simulate("x", "bts", [5], 2), "problem is 'x'; give a Problem"),
    (lambda: simulate(PROBLEM, "bts", [5], True), "runs is True; use a whole number"),
    (lambda: simulate(PROBLEM, "bts:prior_reward=1/2+2/3+3/4", [5], 2), "has priors of 3 arms, and the problem has 2"),
    (lambda: simulate_many([PROBLEM], None, [5], 2), "policies is None; give a list"),
    (lambda: simulate_many([PROBLEM], "bts", [5, 5.0], 2), "the same budget twice"),
    (lambda: random_problems("uniform-bernoulli", 3, "1"), "count is '1'"),
    (lambda: random_problems("uniform-bernoulli", "3", 1), "arms is '3'; use a whole number from 2"),
    (lambda: random_problems("uniform-bernoulli", 3, 1, seed="x"), "seed is 'x'; use a whole number from 0"),
    (lambda: family("uniform-bernoulli", 3, 0, low="x"), r"the range is \['x', 1.0\]; use numbers"),
    (lambda: Results.of(3), "the table is 3; give a polars DataFrame"),
    (lambda: Problem.bernoulli(3, 4), "rewards or costs is no list"),
]


@pytest.mark.parametrize(("call", "words"), NO_LIST, ids=[words for _, words in NO_LIST])
def test_arguments_that_make_no_sense_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
