"""The order of cells: each once, long ones first, and what is compiled is played while the rest is being compiled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from budgetbandits.experiments import runner
from budgetbandits.experiments.runner import Workers, run
from budgetbandits.experiments.schedule import Schedule, effort, kind_of, one_of_each
from budgetbandits.policies import parse_policy
from budgetbandits.policies.index_policy import IndexPolicy
from budgetbandits.policies.thompson import BetaThompson
from budgetbandits.simulation import engines
from compiling import compile_part_of_an_engine
from studies import small

NAMES = ("kube", "bts", "epsilon-first", "ucb1", "thompson", "bayes-ucb")
CELLS = small(policies=tuple(map(parse_policy, NAMES))).cells()
COMPILE, PLAY = "compile", "play"


def test_one_of_each_policy_the_slowest_to_compile_first():
    found = [cell.policy.name for cell in one_of_each(CELLS)]
    assert sorted(found) == sorted(NAMES)
    assert set(found[:2]) == {"bts", "thompson"}
    assert found[-1] == "epsilon-first"


def test_all_is_played_once_the_longest_first():
    played = [cell for what, cell in Schedule(CELLS, cold=[]).tasks(COMPILE, PLAY) if what == PLAY]
    assert [effort(cell) for cell in played] == sorted(map(effort, CELLS), reverse=True)
    assert sorted(cell.key for cell in played) == sorted(cell.key for cell in CELLS)


def test_what_is_being_compiled_is_played_later():
    cold = [cell for cell in one_of_each(CELLS) if kind_of(cell) in (BetaThompson, IndexPolicy)]
    schedule = Schedule(CELLS, cold)
    tasks = schedule.tasks(COMPILE, PLAY)
    compiled = [next(tasks) for _ in range(2)]  # of five policies, two engines
    assert [(what, kind_of(cell)) for what, cell in compiled] == [(COMPILE, BetaThompson), (COMPILE, IndexPolicy)]
    assert {kind_of(next(tasks)[1]) for _ in range(3)}.isdisjoint({BetaThompson, IndexPolicy})
    schedule.compiled(IndexPolicy)
    assert schedule.compiling
    assert {kind_of(next(tasks)[1]) for _ in range(9)} == {IndexPolicy}
    schedule.compiled(BetaThompson)
    assert not schedule.compiling
    assert {kind_of(cell) for _, cell in tasks} == {BetaThompson}


def test_if_nothing_is_ready_the_soonest_is_next():
    cells = [cell for cell in CELLS if cell.policy.name in ("bts", "kube")]
    tasks = Schedule(cells, one_of_each(cells)).tasks(COMPILE, PLAY)
    assert [kind_of(cell) for _, cell in tasks] == [BetaThompson, IndexPolicy, *[IndexPolicy] * 3, *[BetaThompson] * 3]


@pytest.mark.parametrize("cold", [False, True])
def test_compiling_is_told_only_if_something_is_compiled(cold, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(runner, "_has_to_compile", lambda cell: cell if cold else None)
    run(small(), tmp_path, Workers(jobs=1), progress=lambda doing, done, total: said.append((doing, done)))
    assert said[0] == ("starting", 0)
    assert ("compiling (once on a machine)" in dict(said)) == cold
    assert said[-1] == ("playing", 72)


def test_whether_an_engine_has_to_be_compiled_is_found_out_without_compiling(monkeypatch):
    cell = replace(next(cell for cell in CELLS if cell.policy.name == "kube"), engine="auto")
    monkeypatch.setattr(engines, "warm_up", lambda problem, policy, horizon: None)
    assert runner._has_to_compile(cell) is None
    finished = []
    monkeypatch.setattr(engines, "warm_up", lambda *given: finished.append(compile_part_of_an_engine()))
    assert runner._has_to_compile(cell) is cell
    assert finished == []
    assert runner._has_to_compile(replace(cell, engine="reference")) is None
