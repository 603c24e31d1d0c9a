"""A real server of the service, for adapters to ask."""

import pytest

from budgetbandits.client import Client
from servers import admin_key, running


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """The address and the admin key of a real server, which all tests share: each names campaigns of its own."""
    folder = tmp_path_factory.mktemp("service")
    with running(folder) as (address, _):
        yield address, admin_key(folder)


@pytest.fixture
def client(service):
    with Client(*service) as client:
        yield client
