"""What tests of commands share."""

import pytest
from typer.testing import CliRunner

from budgetbandits.cli import app
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore


@pytest.fixture
def say(tmp_path, monkeypatch):
    """Run a command on a new store; what it printed. ``fails`` is what an error must say."""
    monkeypatch.chdir(tmp_path)
    SQLiteStore(tmp_path / "budgetbandits.db").close()

    def say(*words, fails=None, code=0):
        result = CliRunner().invoke(app, list(words), env={"COLUMNS": "80"})
        if fails is not None:
            assert fails in str(result.exception)
            return ""
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    return say


@pytest.fixture
def store(say, tmp_path):
    """The same store, as a server would have it open meanwhile."""
    with SQLiteStore(tmp_path / "budgetbandits.db") as store:
        yield store


@pytest.fixture
def engine(store):
    return DecisionService(store)
