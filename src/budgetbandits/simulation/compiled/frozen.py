"""What a policy's function reads from outside itself: Numba freezes it, and its disk cache does not notice a change."""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from budgetbandits.fingerprint import values_read
from budgetbandits.simulation.known import Unsuited


def frozen_values(function: FunctionType, name: str) -> tuple[tuple[str, Any], ...]:
    """Names and values that a compiled function would take for constant; `Unsuited` if one of them can change."""
    if function.__module__.startswith("budgetbandits."):
        return ()
    reads = tuple((key, value) for key, value in values_read(function).items() if not _lasting(value))
    try:
        hash(reads)
    except TypeError:
        names = ", ".join(key for key, _ in reads)
        raise Unsuited(f"its {name} reads {names}, which compiled code would take for constant") from None
    return reads


def can_be_kept(function: FunctionType, reads: tuple[tuple[str, Any], ...]) -> bool:
    """Whether the compiled function may be kept on disk: it reads nothing that may change, and another process finds
    the module it is from by name. The module of a policy's file has no name that others know."""
    module = sys.modules.get(function.__module__)
    return not reads and module is not None and vars(module) is function.__globals__


def _lasting(value: Any) -> bool:
    """Whether something is the same in every process: a library's, or the package's."""
    return isinstance(value, ModuleType | np.ufunc) or (getattr(value, "__module__", "") or "").startswith(
        "budgetbandits."
    )
