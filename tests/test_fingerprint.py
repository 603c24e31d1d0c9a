"""Policies and laws from outside the package are known by their code and values: equal if they do the same."""

from __future__ import annotations

import pickle
import sys
import threading
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from budgetbandits import Problem, parse_policy, simulate
from budgetbandits.errors import BadParameter, ExperimentError
from budgetbandits.experiments.experiment_file import NamedProblem
from budgetbandits.experiments.plan import Cell, Experiment
from budgetbandits.fingerprint import fingerprint
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.simulation.parallel import identity_of
from own_rules import Forgetful

PROBLEM = Problem.bernoulli([0.5, 0.6], [0.4, 0.3])


def ranked_by(index):
    class Mine(IndexPolicy):
        name = "mine"

    Mine.index = staticmethod(index)
    return Mine()


ONE = ranked_by(lambda mean_reward, mean_cost, pulls, rounds: mean_reward)
ANOTHER = ranked_by(lambda mean_reward, mean_cost, pulls, rounds: -mean_cost)


def made(width, index=None):
    """Classes of one name, one qualified name and one source: they differ in what they close over."""

    class Mine(IndexPolicy):
        name = "mine"

        def extras(self, state):
            return (width,)

    if index is not None:
        Mine.index = staticmethod(index)
    return Mine()


HELP = 1.0


def helped(mean_reward, mean_cost, pulls, rounds, width):
    return mean_reward * HELP + helper(width)


def helper(width):
    return width + 0.5


def key(policy):
    return Cell((NamedProblem("p", "p", PROBLEM),), policy, (5.0,), 3, 0, 6, "reference", None).key


def test_two_classes_of_one_name_share_neither_cells_nor_seeds():
    for first, second in ((ONE, ANOTHER), (made(0.1), made(0.2)), (made(0.1), made(0.1, helped))):
        assert first.spec == second.spec
        assert type(first).__qualname__.rpartition(".")[2] == type(second).__qualname__.rpartition(".")[2]
        assert identity_of(first) != identity_of(second)
        assert key(first) != key(second)
    first, second = (simulate(PROBLEM, policy, [40.0], 5, engine="reference") for policy in (ONE, ANOTHER))
    assert not np.array_equal(first.pulls, second.pulls)


def test_the_same_code_is_the_same_policy():
    assert fingerprint(made(0.1)) == fingerprint(made(0.1))
    assert fingerprint(Forgetful()) == fingerprint(pickle.loads(pickle.dumps(Forgetful())))
    assert identity_of(Forgetful()).startswith("forgetful ")


@pytest.mark.parametrize(("name", "value"), [("HELP", 2.0), ("helper", lambda width: width)])
def test_what_an_index_reads_belongs_to_it(name, value, monkeypatch):
    before = fingerprint(made(0.1, helped))
    monkeypatch.setattr(f"{__name__}.{name}", value)
    assert fingerprint(made(0.1, helped)) != before


@dataclass(frozen=True)
class Loaded(IndexPolicy):
    """Keeps a table that its spec cannot tell."""

    name: ClassVar[str] = "loaded"
    index = staticmethod(helped)

    def __init__(self, table):
        object.__setattr__(self, "table", table)

    __hash__ = None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.arange(5_000.0), np.where(np.arange(5_000) == 2_500, 7.0, np.arange(5_000.0))),
        ([1, 2], [2, 1]),
        ({"a": 1.0}, {"a": 1}),
        ({"x", "y"}, {"x", "z"}),
        (frozenset(), ()),
        (parse_policy("bts"), parse_policy("thompson")),
        (parse_policy("epsilon-first"), parse_policy("epsilon-first:epsilon=0.3")),
        (np.float64(1.0), np.float32(1.0)),
        (Fraction(1, 3), Fraction(2, 3)),
        (np.random.default_rng(0), np.random.default_rng(1)),
        (helper, helped),
    ],
)
def test_values_belong_to_a_policy(first, second):
    assert fingerprint(Loaded(first)) != fingerprint(Loaded(second))
    assert key(Loaded(first)) != key(Loaded(second))


def test_what_a_module_of_ones_own_holds_belongs_to_it(monkeypatch):
    settings = ModuleType("my_settings")
    settings.WIDTH, settings.unread = 1.0, 1.0
    monkeypatch.setitem(sys.modules, "my_settings", settings)
    monkeypatch.setitem(globals(), "settings", settings)
    policy = made(0.5, lambda mean_reward, mean_cost, pulls, rounds, width: mean_reward * settings.WIDTH)
    reading = made(0.5, reads_a_module)
    first, other = fingerprint(reading), fingerprint(policy)
    settings.unread = 2.0
    assert (fingerprint(reading), fingerprint(policy)) == (first, other)
    settings.WIDTH = 2.0
    assert fingerprint(reading) != first
    assert fingerprint(policy) != other


def reads_a_module(mean_reward, mean_cost, pulls, rounds, width):
    return mean_reward * settings.WIDTH  # noqa: F821  set by the test


def test_methods_with_underscores_belong_to_a_class():
    def scaled(factor):
        class Scale:
            def __call__(self, value):
                return value * factor

        return made(Scale())

    assert fingerprint(scaled(1.0)) != fingerprint(scaled(2.0))
    assert fingerprint(scaled(1.0)) == fingerprint(scaled(1.0))


def test_defaults_belong_to_a_function():
    def positional(width):
        def index(mean_reward, mean_cost, pulls, rounds, width=width):
            return mean_reward * width

        return fingerprint(made(0.1, index))

    def keyword(width):
        def index(mean_reward, mean_cost, pulls, rounds, *, width=width):
            return mean_reward * width

        return fingerprint(made(0.1, index))

    for function in (positional, keyword):
        assert function(1.0) == function(1.0) != function(2.0)


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(BadParameter, match="a lock cannot be distinguished from another one; let your own"):
        fingerprint(Loaded(threading.Lock()))


def test_a_study_with_two_policies_of_one_name_is_refused():
    with pytest.raises(ExperimentError, match="policies names mine twice; name each once, with a name of its own"):
        Experiment("two", (NamedProblem("p", "p", PROBLEM),), (ONE, ANOTHER), (5.0,), 3)
