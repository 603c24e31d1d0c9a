"""Schemathesis sends whatever the OpenAPI document allows, and much that it does not: nothing may end in a 5xx."""

import atexit
import itertools
import tempfile
from pathlib import Path

import hypothesis
import pytest
import schemathesis
from schemathesis.specs.openapi import checks

from budgetbandits.service.http.app import create_app
from budgetbandits.service.http.auth import make_key
from budgetbandits.service.service import DecisionService
from budgetbandits.service.stores.sqlite import SQLiteStore
from reads_here import ReadsHere

folder = tempfile.TemporaryDirectory()
store = SQLiteStore(Path(folder.name) / "budgetbandits.db")
atexit.register(folder.cleanup)
atexit.register(store.close)  # before its folder goes
engine = DecisionService(store)
app = create_app(engine, store, reads=ReadsHere(store))
key = make_key(store, ["admin"], 0.0)
numbers = itertools.count()
schema = schemathesis.openapi.from_asgi("/openapi.json", app)


def target():
    """A campaign with one open decision, for paths that need one."""
    name = f"campaign {next(numbers)}"
    engine.create(name, "bts", budget=100.0, arms={"a": 1.0, "b": 0.5})
    return name, engine.decide(name, "one").decision


@pytest.mark.attack
@schema.parametrize()
@hypothesis.settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck)
)
def test_no_request_ends_in_a_5xx(case):
    """Half of the requests go to a campaign and a decision that exist."""
    if next(numbers) % 2:
        campaign, decision = target()
        for name, value in {"campaign": campaign, "decision": decision, "arm": "a"}.items():
            if name in case.path_parameters:
                case.path_parameters[name] = value
    answer = case.call(headers={"Authorization": f"Bearer {key}"})
    documented = [checks.content_type_conformance, checks.response_schema_conformance, checks.status_code_conformance]
    case.validate_response(answer, checks=[schemathesis.checks.not_a_server_error, *documented])
