"""`compiled`: the mark of a formula that compiled code may call.

The formula stays a plain Python function. A compiler, Numba for the processor or another one, gets all
marked formulas by `compile_formulas`. The mark imports nothing, and costs
nothing where nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Formula = TypeVar("Formula", bound=Callable[..., Any])
"""The type of a formula, which marking does not change."""

_formulas: list[Callable[..., Any]] = []
_compilers: list[Callable[[Callable[..., Any]], object]] = []


def compiled(formula: Formula) -> Formula:
    """Mark a formula: plain arithmetic, `math`, NumPy's ufuncs, loops, and other marked formulas."""
    _formulas.append(formula)
    for compiler in _compilers:
        compiler(formula)
    return formula


def compile_formulas(compiler: Callable[[Callable[..., Any]], object]) -> None:
    """Call the compiler with every marked formula, now for those that are loaded and later for others."""
    _compilers.append(compiler)
    for formula in _formulas:
        compiler(formula)
