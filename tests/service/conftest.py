"""Fixtures of tests of the service."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import structlog

from budgetbandits.service.audit.audit import verify
from budgetbandits.service.service import DecisionService
from clock import Clock
from memory_store import MemoryStore

IN_MEMORY = "/dev/shm"
"""Where Linux has files in memory."""


@pytest.fixture(autouse=True)
def _plain_tracebacks():
    """An error that is logged is not drawn with the variables of all its frames, which takes a second each time."""
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], renderer])


@pytest.fixture(autouse=True)
def _whole_groups(monkeypatch):
    """Work that waits shares a transaction however busy the machine is."""
    monkeypatch.setattr("budgetbandits.service.stores.sqlite.GROUP_SECONDS", 60.0)


@pytest.fixture
def tmp_path(tmp_path):
    """In memory, if there are files: a commit then waits for no disk, which takes most of the time of a decision."""
    if not os.access(IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=IN_MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def clock():
    return Clock(1000.0)


@pytest.fixture
def engine(store, clock):
    return DecisionService(store, clock)


@pytest.fixture
def engines(store, clock):
    """Two servers on one store."""
    return DecisionService(store, clock), DecisionService(store, clock)


@pytest.fixture
def memory_store(request):
    """A store in memory. When the test is over every campaign agrees with its events, unless it was ``tampered``."""
    store = MemoryStore()
    yield store
    if "tampered" not in request.fixturenames:
        for campaign in store.campaigns:
            assert verify(store, campaign) == []


@pytest.fixture
def real_store(opener):
    """A database, for modules whose `store` is in memory."""
    with opener() as store:
        yield store


@pytest.fixture
def tampered():
    """For a test that leaves rows and events that do not agree."""
