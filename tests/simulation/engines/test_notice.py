"""Compiling is told when something is compiled, and only then."""

from __future__ import annotations

import sys

import pytest
from numba import njit

from budgetbandits import family, parse_policy, simulate
from budgetbandits.policies.kube import KUBE
from budgetbandits.simulation import dispatch
from budgetbandits.simulation.engines.index.rules import CompiledIndex
from budgetbandits.simulation.engines.runtime import policy_functions
from budgetbandits.simulation.engines.runtime.cache import on_compile, say_compiling
from compiling import compile_part_of_an_engine

PROBLEM = family("uniform-bernoulli", 3, seed=1, low=0.2)


@pytest.fixture
def told():
    return []


def test_a_part_of_an_engine_is_told_once(told):
    with on_compile(lambda: told.append(1)):
        assert told == []
        compile_part_of_an_engine()
        compile_part_of_an_engine()
    compile_part_of_an_engine()
    assert told == [1]


def test_rules_and_other_peoples_functions_are_not(told, monkeypatch):
    monkeypatch.setattr(policy_functions, "can_be_kept", lambda function: False)
    with on_compile(lambda: told.append(1)):
        CompiledIndex(KUBE.index)
        njit(lambda x: x + 1)(1)
    assert told == []


def test_simulate_tells_when_its_engine_is_compiled(told, monkeypatch):
    simulate(PROBLEM, "kube", [5.0], 1)  # compiled or loaded, whichever it is
    simulate(PROBLEM, "kube", [5.0], 1, compiling=lambda: told.append(1))
    assert told == []
    monkeypatch.setattr(dispatch, "warm_up", compile_part_of_an_engine)
    simulate(PROBLEM, "kube", [5.0], 1, compiling=lambda: told.append(1))
    assert told == [1]


def test_whoever_watches_reads_a_line(monkeypatch, capsys):
    monkeypatch.setattr(dispatch, "warm_up", compile_part_of_an_engine)
    simulate(PROBLEM, "kube", [5.0], 1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    simulate(PROBLEM, "kube", [5.0], 1)
    assert capsys.readouterr().err.startswith("compiling an engine (once on this machine")


def test_a_notebook_counts_as_a_watcher(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    say_compiling()
    assert "compiling" in capsys.readouterr().err


def test_a_policy_warms_up_once_on_each_kind_of_problem(monkeypatch):
    played = []
    player = dispatch.player
    monkeypatch.setattr(dispatch, "_WARM_KINDS", set())
    monkeypatch.setattr(dispatch, "player", lambda *given: played.append(given[1].spec) or player(*given))
    beta = family("uniform-beta", 3, seed=1, low=0.2)
    for problem in (PROBLEM, family("uniform-bernoulli", 3, seed=2, low=0.2), beta, beta):
        for name in ("ucb1", "epsilon-first", "epsilon-first:epsilon=0.2"):
            dispatch.warm_up(problem, parse_policy(name))
    assert played == 2 * ["ucb1", "epsilon-first", "epsilon-first:epsilon=0.2"]
