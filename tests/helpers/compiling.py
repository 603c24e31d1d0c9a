"""Something that Numba compiles in no time, and that counts as a part of an engine."""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.engines.runtime import special


def compile_part_of_an_engine(*_: object) -> None:
    """Anew, as if the disk cache were empty."""
    njit(special.stirling_series.py_func)(9.0)
