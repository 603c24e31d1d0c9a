"""The table kept in one file: read when it is the parts' own, and never when it is not."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import polars as pl
import pytest

from budgetbandits.errors import StudyError
from budgetbandits.experiments import Results, data, run
from budgetbandits.experiments.runner import Workers
from budgetbandits.experiments.study import Study
from studies import small

ONE = Workers(jobs=1)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    run(small(), folder, ONE)
    return folder


@pytest.fixture
def folder(done, tmp_path):
    """A study of its own whose table was kept."""
    copy = shutil.copytree(done, tmp_path / "study")
    Results.load(copy)
    return copy


@pytest.fixture
def parts_read(monkeypatch):
    """How often the parts were opened."""
    calls = []
    read = data._parts
    monkeypatch.setattr(data, "_parts", lambda paths: calls.append(1) or read(paths))
    return calls


def changed(part):
    """The same games with other rewards, as many bytes and the same time: what only a new inode gives away."""
    games = pl.read_parquet(part)
    before = part.stat()
    other = part.with_name("other")
    for shift in (1.0, -1.0, 2.0, -2.0, 3.0):
        games.with_columns(pl.col("reward") + shift).write_parquet(other, compression="zstd")
        if other.stat().st_size == before.st_size:
            break
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(part)


def test_the_second_reader_opens_one_file(folder, parts_read):
    kept = Results.load(folder)
    assert parts_read == []
    (folder / data.TABLE).unlink()
    assert kept.table.equals(Results.load(folder).table)
    assert parts_read == [1]


def test_a_replaced_part_is_read_again(folder, parts_read):
    before = Results.load(folder).table
    changed(sorted((folder / "parts").iterdir())[2])
    after = Results.load(folder).table
    assert parts_read == [1]
    assert (after["reward"] != before["reward"]).sum() == 6 * 2
    assert Results.load(folder).table.equals(after)
    assert parts_read == [1]


def test_a_part_replaced_while_it_is_read_is_not_kept(done, tmp_path, monkeypatch):
    folder = shutil.copytree(done, tmp_path / "study")
    read = data._parts

    def slow(paths):
        found = read(paths)
        changed(sorted((folder / "parts").iterdir())[0])
        return found

    monkeypatch.setattr(data, "_parts", slow)
    Results.load(folder)
    assert not (folder / data.TABLE).exists()


def test_a_lost_part_is_missed_though_the_table_is_there(folder, parts_read):
    lost = sorted((folder / "parts").iterdir())[3]
    lost.unlink()
    with pytest.raises(StudyError, match="11 of 12 parts are there"):
        Results.load(folder)
    run(small(), folder, ONE)
    assert len(Results.load(folder).table) == 12 * 6 * 2
    assert parts_read == [1]


def test_other_names_for_the_same_parts(folder, parts_read):
    """Renamed problems are played no second time, and yet the table's labels are new."""
    experiment = small()
    renamed = tuple(replace(each, name=f"new {each.name}", group=f"new {each.group}") for each in experiment.problems)
    run(experiment.changed(problems=renamed), folder, ONE)
    assert Results.load(folder).table["group"].unique().sort().to_list() == ["new inline", "new random"]
    assert parts_read == [1]


def test_results_of_another_program_are_not_ours(folder, parts_read):
    Results.load(folder).table.with_columns(reward=pl.lit(0.0)).write_parquet(folder / data.TABLE)
    assert Results.load(folder).table["reward"].sum() > 0.0
    assert parts_read == [1]


def test_killed_between_the_two_files(folder, monkeypatch, parts_read):
    """The old digest next to a new table fits neither the old parts nor the new ones."""
    changed(sorted((folder / "parts").iterdir())[0])
    write = Study.write

    def killed(self, path, content):
        if path.name == data.DIGEST:
            raise KeyboardInterrupt
        return write(self, path, content)

    monkeypatch.setattr(Study, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        Results.load(folder)
    monkeypatch.setattr(Study, "write", write)
    parts_read.clear()
    Results.load(folder)
    assert parts_read == [1]


def test_half_a_table_is_not_read(folder, parts_read):
    """A file cut short in place, so that its inode is the same."""
    kept = folder / data.TABLE
    os.truncate(kept, kept.stat().st_size // 2)
    assert len(Results.load(folder).table) == 12 * 6 * 2
    assert parts_read == [1]


def test_where_nothing_can_be_written_the_parts_are_read(done, tmp_path, monkeypatch):
    folder = shutil.copytree(done, tmp_path / "study")

    def full(descriptor):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fsync", full)
    assert len(Results.load(folder).table) == 12 * 6 * 2
    assert sorted(path.name for path in folder.iterdir()) == ["efforts.jsonl", "parts", "study.json"]
