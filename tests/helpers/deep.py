"""Cases that `make test` leaves to `make deep`, which `.ci/run` runs as well."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from budgetbandits import POLICIES

FAMILIES = ("bts", "bts-joint", "bts-paced", "epsilon-first", "kube", "kube-knapsack", "npts-ratio", "ucb-bv2")
"""One policy of each family."""


def deep(*cases: Any) -> list[Any]:
    """These cases of a parametrisation, in `make deep` only; a tuple is one case of several values."""
    return [pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.deep) for case in cases]


def mostly_deep(cases: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """All cases; those that are not kept in `make deep` only."""
    return [made for case in cases for made in ([case] if case in kept else deep(case))]


EVERY_POLICY = mostly_deep(POLICIES, FAMILIES)
"""All policies of the package; in `make test` one of each family."""
