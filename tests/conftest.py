"""Fixtures that several tests need."""

import pytest
from hypothesis import settings

from stores import STORES

settings.register_profile("tests", deadline=None)  # how long an example takes says how busy the machine is
settings.load_profile("tests")


@pytest.fixture(params=STORES)
def opener(request, tmp_path):
    """A way to open one and the same database, as often as is wanted; of each kind of store."""
    with STORES[request.param](tmp_path) as opener:
        yield opener


@pytest.fixture
def store(opener):
    with opener() as store:
        yield store
