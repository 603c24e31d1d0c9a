"""Fixtures that several tests need."""

import gc
import re
from functools import cache

import pytest
import typer.testing
from _pytest.doctest import DoctestModule
from hypothesis import settings

from stores import STORES

settings.register_profile("tests", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("tests")


def pytest_ignore_collect(collection_path, config):
    """The cases of `make attack`'s fuzzing take seconds to make, which other suites need not wait for."""
    return True if collection_path.name == "test_fuzz.py" and config.option.markexpr not in ("", "attack") else None


def pytest_collection_finish():
    """Spare the garbage collector a million objects that stay until the end: one second of thirty."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """No doctests are looked for in tests: it would import every helper a second time, under another name."""
    return [module for module in (yield) if not isinstance(module, DoctestModule)]


@pytest.fixture(autouse=True, scope="session")
def one_tree_of_commands():
    """Typer makes the tree of all commands again for every call, which takes longer than most commands do."""
    command = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", command)
        patch.setattr("typer.testing._get_command", command)
        yield


@pytest.fixture(params=STORES)
def opener(request, tmp_path):
    """A way to open one and the same database, as often as is wanted; of each kind of store."""
    with STORES[request.param](tmp_path) as opener:
        yield opener


@pytest.fixture
def store(opener):
    with opener() as store:
        yield store


@pytest.fixture
def postgres(tmp_path):
    """A way to open one PostgreSQL."""
    with STORES["postgres"](tmp_path) as opener:
        yield opener


@pytest.fixture
def trips(monkeypatch):
    """The statements of every round trip to a PostgreSQL that is written: what each does, and with which table."""
    batches, queued = [], []
    pipeline = pytest.importorskip("budgetbandits.service.stores.postgres_pipeline").Pipeline
    queue, sync = pipeline._queue, pipeline.sync

    def noted(self, statement, values):
        tables = re.findall(r"(?:INTO|UPDATE|FROM) ([a-z_]+) ", statement)
        queued.append(" ".join([statement.split()[0], *(["lease"] if "lease" in tables else tables[:1])]))
        return queue(self, statement, values)

    def counted(self):
        batches.append(queued.copy())
        queued.clear()
        sync(self)

    monkeypatch.setattr(pipeline, "_queue", noted)
    monkeypatch.setattr(pipeline, "sync", counted)
    return batches
