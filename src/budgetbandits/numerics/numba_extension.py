"""Numba's implementations of marked formulas (`compiled`), and of the functions of `arrays` that they call.

Numba imports this by itself before it compiles anything (the entry point ``numba_extensions`` in pyproject.toml), so
they compile wherever they are imported from, without any engine of the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from budgetbandits.numerics.arrays import all_true, where
from budgetbandits.numerics.compilation import compile_formulas


def init() -> None:
    """Do nothing: Numba calls this once, and importing the module has done everything."""


@overload(where)  # type: ignore[untyped-decorator]
def _where(condition: Any, yes: Any, no: Any) -> Any:
    def pick(condition: Any, yes: Any, no: Any) -> Any:
        return yes if condition else no

    def pick_each(condition: Any, yes: Any, no: Any) -> Any:
        return np.where(condition, yes, no)

    return pick_each if any(isinstance(kind, types.Array) for kind in (condition, yes, no)) else pick


@overload(all_true)  # type: ignore[untyped-decorator]
def _all_true(condition: Any) -> Any:
    def itself(condition: Any) -> Any:
        return condition

    def whole(condition: Any) -> Any:
        return np.all(condition)

    return whole if isinstance(condition, types.Array) else itself


compile_formulas(register_jitable)
