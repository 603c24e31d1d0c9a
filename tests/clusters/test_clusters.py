"""A real local Dask cluster gives the bits that one process gives.

Dask is an extra; without it the tests are left out. `make clusters` installs and runs them.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from budgetbandits.errors import StudyError
from budgetbandits.experiments import Results, run, runner
from budgetbandits.experiments.runner import Workers
from studies import small

pytestmark = pytest.mark.filterwarnings("default")  # of the clusters' own code


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return Results.load(run(small(engine="auto"), tmp_path_factory.mktemp("here"), Workers(jobs=1)).folder).table


def test_dask_gives_the_same_table(here, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        workers = Workers(cluster=cluster.scheduler_address)
        study = run(small(engine="auto"), tmp_path, workers)
    assert Results.load(study.folder).table.equals(here)


def test_no_dask_scheduler(tmp_path):
    pytest.importorskip("distributed", reason="needs the extra dask")
    with pytest.raises(StudyError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        run(small(), tmp_path, Workers(cluster="tcp://127.0.0.1:9"))


def test_no_dask_worker(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    monkeypatch.setattr(runner, "DASK_WORKER_SECONDS", 1)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        workers = Workers(cluster=cluster.scheduler_address)
        with pytest.raises(StudyError, match=r"has no worker after 1 seconds; start one with 'dask worker tcp://"):
            run(small(), tmp_path, workers)


def manual():
    """The reader of the manual's tests."""
    file = Path(__file__).parents[1] / "docs/test_blocks.py"
    spec = importlib.util.spec_from_file_location("manual_blocks", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["manual_blocks"] = module  # which its dataclass looks up
    spec.loader.exec_module(module)
    return module


def test_the_page_on_dask_runs_as_it_is_written(tmp_path, monkeypatch):
    """With the blocks that the manual's own test leaves out where there is no Dask."""
    pytest.importorskip("distributed", reason="needs the extra dask")
    reader, left_out = manual(), "<!-- not run: needs the extra dask; make clusters runs it -->\n"
    text = (reader.ROOT / "docs/tutorials/dask.md").read_text()
    assert text.count(left_out) == 4
    copy = tmp_path / "dask.md"
    copy.write_text(text.replace(left_out, ""))
    page = reader.Page(copy, tmp_path)
    page.environment["PYTHONWARNINGS"] = "default"  # of the clusters' own code
    monkeypatch.chdir(tmp_path)
    try:
        for block in reader.code(copy):
            page.run(block)
    finally:
        page.close()
