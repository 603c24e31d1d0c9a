"""A store with a service on it by the test's own clock, and people who look at its pages."""

import pytest

from browsing import Browser
from budgetbandits.service.http.auth import make_key
from served import served


@pytest.fixture
def store(tmp_path):
    with served(tmp_path) as store:
        yield store


def signed_in(store, scope):
    """One browser for each store and scope, however many tests share the store."""
    name = f"{scope} browser"
    if name not in vars(store):
        vars(store)[name] = Browser(store.app, make_key(store, [scope], 0.0))
    return vars(store)[name]


@pytest.fixture
def admin(store):
    return signed_in(store, "admin")


@pytest.fixture
def reader(store):
    return signed_in(store, "read")
