"""The order of cells, and running them: stopped, resumed, shared, damaged."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from budgetbandits.errors import StudyError
from budgetbandits.experiments import Results, run, runner
from budgetbandits.experiments.runner import Schedule, Workers, duration, kind_of
from budgetbandits.policies import parse_policy
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.thompson import BetaThompson
from budgetbandits.simulation import dispatch
from budgetbandits.simulation.simulate import simulate
from studies import SMALL, small

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


def test_preparing_is_reported_before_playing(tmp_path):
    said = []
    run(small(), tmp_path, Workers(jobs=1), progress=lambda doing, done, total: said.append((doing, done)))
    assert said[:2] == [("starting", 0), ("compiling engines, once", 0)]
    assert said[-1] == ("playing", 72)


@pytest.mark.parametrize(("engine", "ready"), [("auto", ["kube"]), ("reference", [])])
def test_an_engine_is_prepared_by_the_first_policy_that_it_plays(engine, ready, monkeypatch):
    cells = {cell.policy.name: replace(cell, engine=engine) for cell in CELLS}
    found = []
    monkeypatch.setattr(dispatch, "warm_up", lambda problem, policy, horizon: found.append(policy.name))
    assert runner._prepare([cells["bayes-ucb"], cells["kube"], cells["ucb1"]]) is IndexPolicy
    assert found == ready


ONE = Workers(jobs=1)


def stamps(study) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in study.parts.iterdir()}


def contents(study) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in study.parts.iterdir()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(small(), tmp_path_factory.mktemp("undisturbed"), ONE)


def test_parts_hold_what_simulate_returns(undisturbed):
    table = Results.load(undisturbed.folder).table
    experiment = small()
    for named in experiment.problems:
        for policy in experiment.policies:
            outcome = simulate(named.problem, policy, experiment.budgets, 6, seed=3, engine="reference")
            rows = table.filter((pl.col("problem") == named.name) & (pl.col("policy") == policy.spec))
            assert rows["run"].to_list() == [run for run in range(6) for _ in range(2)]
            assert rows["regret"].to_list() == outcome.regret.ravel().tolist()
            assert rows["pseudo_regret"].to_list() == outcome.pseudo_regret.ravel().tolist()
            assert rows["rounds"].to_list() == outcome.rounds.ravel().tolist()
            assert rows["identified"].to_list() == outcome.best_arm_identified.ravel().tolist()


def test_two_workers_give_the_same_bits(undisturbed, tmp_path):
    assert contents(run(small(), tmp_path, Workers(jobs=2))) == contents(undisturbed)


def test_common_outcomes_are_played_and_compared_run_by_run(undisturbed, tmp_path):
    experiment = small().changed(common=True)
    results = Results.load(run(experiment, tmp_path, ONE).folder)
    assert results.paired
    assert not Results.load(undisturbed.folder).paired
    assert contents(undisturbed).keys().isdisjoint(cell.key for cell in experiment.cells())
    named, policy = experiment.problems[0], experiment.policies[0]
    outcome = simulate(named.problem, policy, experiment.budgets, 6, seed=3, engine="reference", common=True)
    rows = results.table.filter((pl.col("problem") == named.name) & (pl.col("policy") == policy.spec))
    assert rows["regret"].to_list() == outcome.regret.ravel().tolist()


def test_a_second_time_nothing_is_computed(tmp_path):
    study = run(small(), tmp_path, ONE)
    before = stamps(study)
    said = []
    run(small(), tmp_path, ONE, progress=lambda *what: said.append(what))
    assert stamps(study) == before
    assert said == [("nothing to do", 72, 72)]


def test_only_what_changed_is_computed(tmp_path):
    study = run(small(), tmp_path, ONE)
    before = stamps(study)
    changed = small(policies=small().policies[1:])
    run(changed.changed(problems=changed.problems[:2]), tmp_path, ONE)
    assert stamps(study) == before
    run(small(seed=4), tmp_path, ONE)
    after = stamps(study)
    assert {name: after[name] for name in before} == before
    assert len(after) == 2 * len(before)
    # the table is that of the experiment asked for last, whatever else lies there
    assert len(Results.load(tmp_path).table) == 12 * 6 * 2


def test_a_lost_part_comes_back_the_same(undisturbed, tmp_path):
    study = run(small(), tmp_path, ONE)
    lost = sorted(study.parts.iterdir())[3]
    lost.unlink()
    with pytest.raises(StudyError, match="is not finished: 11 of 12 parts are there; run the experiment again"):
        Results.load(tmp_path)
    (study.parts / "half.parquet.1.tmp").write_bytes(b"half")
    run(small(), tmp_path, ONE)
    assert contents(study) == contents(undisturbed)


def test_a_damaged_part_is_named(tmp_path):
    damaged = sorted(run(small(), tmp_path, ONE).parts.iterdir())[0]
    damaged.write_bytes(b"PAR1 no more")
    with pytest.raises(StudyError, match=f"cannot read .*{damaged.name}.*delete it and run the experiment again"):
        Results.load(tmp_path)


def test_a_full_disk_leaves_whole_parts_only(undisturbed, tmp_path, monkeypatch):
    flush, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) > 5:
            raise OSError(28, "No space left on device")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match=r"cannot write into .*No space left on device; make room"):
        run(small(), tmp_path, ONE)
    monkeypatch.undo()
    left = [path.name for path in (tmp_path / "parts").iterdir()]
    assert len(left) == 4  # the fifth write that went well was study.json
    assert all(name.endswith(".parquet") for name in left)
    assert contents(run(small(), tmp_path, ONE)) == contents(undisturbed)


def test_a_game_that_cannot_be_played_is_named(tmp_path):
    with pytest.raises(StudyError, match=r"bts on 'inline': .*more than 3 rounds|bts on 'inline': .*max_rounds"):
        run(small(max_rounds=3, policies=small().policies[:1]), tmp_path, ONE)


def test_interrupted_it_says_how_to_go_on(tmp_path):
    (tmp_path / "study.toml").write_text(SMALL.replace("runs = 6", "runs = 2000"))
    command = [str(Path(sys.executable).with_name("budgetbandits")), "run", "study.toml", "--jobs", "1", "--out", "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    while not list(tmp_path.glob("out/parts/*.parquet")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "finished runs are kept; the same command continues\nstopped\n" in err
    assert "Traceback" not in err
    assert "report" not in out
    assert all(path.suffix == ".parquet" for path in (tmp_path / "out" / "parts").iterdir())


@pytest.mark.crashes
def test_killed_ten_times_it_ends_with_the_same_bits(tmp_path):
    """SIGKILL at random moments, whatever it is doing then; the last start is left alone."""
    (tmp_path / "study.toml").write_text(SMALL.replace("runs = 6", "runs = 250"))
    command = [str(Path(sys.executable).with_name("budgetbandits")), "run", "study.toml", "--jobs", "2", "--out"]
    subprocess.run([*command, "calm"], cwd=tmp_path, check=True, capture_output=True)
    calm, stormy = tmp_path / "calm", tmp_path / "stormy"
    rng = random.Random(11)
    done = [0]

    def parts() -> int:
        return len(list(stormy.glob("parts/*.parquet")))

    for _ in range(10):
        process = subprocess.Popen(
            [*command, "stormy"], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        if rng.random() < 0.3:
            time.sleep(rng.uniform(0.1, 1.5))  # before there is anything
        else:
            enough = done[-1] + rng.randrange(1, 5)
            while parts() < enough and process.poll() is None:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.05))
        assert process.poll() is None, "it came to an end before it was killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        done.append(parts())
    assert 5 < done[-1] < 60
    subprocess.run([*command, "stormy"], cwd=tmp_path, check=True, capture_output=True)
    assert {p.name: p.read_bytes() for p in (calm / "parts").iterdir()} == {
        p.name: p.read_bytes() for p in (stormy / "parts").iterdir()
    }
    assert len(list((calm / "parts").iterdir())) == 60
    assert (calm / "results.parquet").read_bytes() == (stormy / "results.parquet").read_bytes()
    assert (calm / "summary.csv").read_text() == (stormy / "summary.csv").read_text()
