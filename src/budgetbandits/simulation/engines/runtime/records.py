"""The record of a game, as Python sees it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray


@lru_cache(maxsize=16)
def places(kind: np.dtype[Any]) -> dict[str, tuple[int, bool]]:
    """Of each field: at which word it stands, and whether it is a whole number."""
    if kind.names is None or kind.itemsize != 8 * len(kind.names):
        raise TypeError(f"{kind} is no record whose fields have eight bytes each")
    return {name: (place, kind[name].kind == "i") for place, name in enumerate(kind.names)}


class Record:
    """One record, and the arrays whose addresses it holds, kept alive.

    All fields are whole numbers or floats of eight bytes; ``NAME_at`` is the address of the array NAME.
    """

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.game = np.zeros(1, dtype=kind)
        self.arrays: dict[str, NDArray[Any]] = {}
        # NumPy reads, writes and copies records field by field, slowly
        self._words, self._reals = self.game.view(np.int64), self.game.view(np.float64)
        self._places = places(kind)

    def set(self, **fields: float) -> None:
        for name, value in fields.items():
            place, whole = self._places[name]
            (self._words if whole else self._reals)[place] = value

    def whole(self, name: str) -> int:
        return int(self._words[self._places[name][0]])

    def point_to(self, **arrays: NDArray[Any]) -> None:
        for name, array in arrays.items():
            self.arrays[name] = array
            self._words[self._places[f"{name}_at"][0]] = array.__array_interface__["data"][0]

    def fields(self) -> NDArray[np.int64]:
        """All fields as they are now, to `restart` with."""
        return self._words.copy()

    def restart(self, fields: NDArray[np.int64]) -> None:
        self._words[:] = fields
