"""The record of a game, as Python sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Record:
    """One record, and the arrays whose addresses it holds, kept alive.

    All fields are whole numbers or floats of eight bytes; ``NAME_at`` is the address of the array NAME.
    """

    def __init__(self, kind: np.dtype[Any]) -> None:
        self.game = np.zeros(1, dtype=kind)
        self.arrays: dict[str, NDArray[Any]] = {}
        self._words = self.game.view(np.int64)  # copied as a whole: NumPy copies records field by field, slowly

    def set(self, **fields: float) -> None:
        for name, value in fields.items():
            self.game[name] = value

    def whole(self, name: str) -> int:
        return int(self.game[name][0])

    def point_to(self, **arrays: NDArray[Any]) -> None:
        for name, array in arrays.items():
            self.arrays[name] = array
            self.game[f"{name}_at"] = array.ctypes.data

    def fields(self) -> NDArray[np.int64]:
        """All fields as they are now, to `restart` with."""
        return self._words.copy()

    def restart(self, fields: NDArray[np.int64]) -> None:
        self._words[:] = fields
