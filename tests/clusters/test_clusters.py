"""A real local Dask cluster and a real local Ray give the bits that one process gives.

Both are extras; without them the tests are left out. `make clusters` installs and runs them.
"""

from __future__ import annotations

import pytest

from budgetbandits.errors import StudyError
from budgetbandits.experiments import Results, run
from budgetbandits.experiments.runner import Workers
from studies import small

pytestmark = pytest.mark.filterwarnings("default")  # of the clusters' own code


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return Results.load(run(small(engine="auto"), tmp_path_factory.mktemp("here"), Workers(jobs=1)).folder).table


def test_dask_gives_the_same_table(here, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        workers = Workers("dask", address=cluster.scheduler_address)
        study = run(small(engine="auto"), tmp_path, workers)
    assert Results.load(study.folder).table.equals(here)


def test_no_dask_scheduler(tmp_path):
    pytest.importorskip("distributed", reason="needs the extra dask")
    with pytest.raises(StudyError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9"):
        run(small(), tmp_path, Workers("dask", address="tcp://127.0.0.1:9"))


def test_ray_gives_the_same_table(here, tmp_path):
    pytest.importorskip("ray", reason="needs the extra ray")
    assert Results.load(run(small(engine="auto"), tmp_path, Workers("ray", jobs=2)).folder).table.equals(here)
