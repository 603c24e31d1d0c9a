"""Fixtures that several tests need."""

import pytest

from stores import STORES


@pytest.fixture(params=STORES)
def opener(request, tmp_path):
    """A way to open one and the same database, as often as is wanted; of each kind of store."""
    with STORES[request.param](tmp_path) as opener:
        yield opener


@pytest.fixture
def store(opener):
    with opener() as store:
        yield store
