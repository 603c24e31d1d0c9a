"""The kinds of array that the package passes around."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
AnyArray = np.ndarray[Any, Any]
