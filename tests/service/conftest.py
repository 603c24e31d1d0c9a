"""Fixtures of tests of the service."""

import pytest

from budgetbandits.service.service import DecisionService
from clock import Clock


@pytest.fixture
def clock():
    return Clock(1000.0)


@pytest.fixture
def engine(store, clock):
    return DecisionService(store, clock)
