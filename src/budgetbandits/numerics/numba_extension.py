"""What formulas may call from `arrays`, made known to Numba.

Numba imports this by itself before it compiles anything (the entry point ``numba_extensions`` in pyproject.toml), so
`either`, `everywhere` and `trial` compile wherever they are imported from, without any engine of the package.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload, register_jitable

from budgetbandits.numerics.arrays import either, everywhere, trial


def init() -> None:
    """Numba calls this once; importing the module has done everything."""


@overload(either)  # type: ignore[untyped-decorator]
def _either(condition: Any, yes: Any, no: Any) -> Any:
    def pick(condition: Any, yes: Any, no: Any) -> Any:
        return yes if condition else no

    def pick_each(condition: Any, yes: Any, no: Any) -> Any:
        return np.where(condition, yes, no)

    return pick_each if any(isinstance(each, types.Array) for each in (condition, yes, no)) else pick


@overload(everywhere)  # type: ignore[untyped-decorator]
def _everywhere(condition: Any) -> Any:
    def itself(condition: Any) -> Any:
        return condition

    def whole(condition: Any) -> Any:
        return np.all(condition)

    return whole if isinstance(condition, types.Array) else itself


register_jitable(trial)
