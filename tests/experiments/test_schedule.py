"""The order of cells: each once, long ones first, and what is ready is played while the rest is being compiled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from budgetbandits.experiments import runner
from budgetbandits.experiments.runner import Schedule, Workers, duration, kind_of, run
from budgetbandits.policies import parse_policy
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.thompson import BetaThompson
from budgetbandits.simulation import dispatch
from studies import small

NAMES = ("kube", "bts", "epsilon-first", "ucb1", "thompson", "bayes-ucb")
CELLS = small(policies=tuple(map(parse_policy, NAMES))).cells()
PREPARE, PLAY = "prepare", "play"


def test_all_is_played_once_the_longest_first():
    schedule = Schedule(CELLS)
    for kind in set(map(kind_of, CELLS)):
        schedule.ready(kind)
    played = [cell for what, cell in schedule.tasks(PREPARE, PLAY) if what == PLAY]
    assert [duration(cell) for cell in played] == sorted(map(duration, CELLS), reverse=True)
    assert sorted(cell.key for cell in played) == sorted(cell.key for cell in CELLS)


def test_what_is_being_prepared_is_played_later():
    schedule = Schedule(CELLS)
    tasks = schedule.tasks(PREPARE, PLAY)
    prepared = [next(tasks) for _ in range(3)]  # six policies, three engines
    assert [what for what, _ in prepared] == [PREPARE] * 3
    assert [{cell.policy.name for cell in cells} for _, cells in prepared] == [
        {"bts", "thompson"}, {"kube", "ucb1", "bayes-ucb"}, {"epsilon-first"}
    ]  # fmt: skip
    schedule.ready(EpsilonFirst)
    assert {kind_of(next(tasks)[1]) for _ in range(3)} == {EpsilonFirst}
    schedule.ready(IndexPolicy)
    assert schedule.preparing
    assert {kind_of(next(tasks)[1]) for _ in range(9)} == {IndexPolicy}
    schedule.ready(BetaThompson)
    assert not schedule.preparing
    assert {kind_of(cell) for _, cell in tasks} == {BetaThompson}


def test_if_nothing_is_ready_the_soonest_is_next():
    cells = [cell for cell in CELLS if cell.policy.name in ("bts", "kube")]
    played = [cell for what, cell in Schedule(cells).tasks(PREPARE, PLAY) if what == PLAY]
    assert [kind_of(cell) for cell in played] == [*[IndexPolicy] * 3, *[BetaThompson] * 3]


def test_preparing_is_told_before_playing(tmp_path):
    said = []
    run(small(), tmp_path, Workers(jobs=1), progress=lambda doing, done, total: said.append((doing, done)))
    assert said[:2] == [("starting", 0), ("preparing engines (compiled once on a machine)", 0)]
    assert said[-1] == ("playing", 72)


@pytest.mark.parametrize(("engine", "ready"), [("auto", ["kube"]), ("reference", [])])
def test_an_engine_is_prepared_by_the_first_policy_that_it_plays(engine, ready, monkeypatch):
    cells = {cell.policy.name: replace(cell, engine=engine) for cell in CELLS}
    found = []
    monkeypatch.setattr(dispatch, "warm_up", lambda problem, policy, horizon: found.append(policy.name))
    assert runner._prepare([cells["bayes-ucb"], cells["kube"], cells["ucb1"]]) is IndexPolicy
    assert found == ready
