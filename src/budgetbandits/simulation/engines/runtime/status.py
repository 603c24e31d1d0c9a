"""What a call of a compiled engine ends with.

A number from 0 on is an arm whose outcomes have run out: the Python side draws more of them and calls again.
"""

from __future__ import annotations

import numpy as np

# as NumPy's integers: Numba would give Python's a type for each value, and compile what they are passed to for each
FINISHED = np.int64(-1)
"""The game at the last budget has ended."""

GOING_ON = np.int64(-2)
"""Nothing to report: the engine plays on. Only between compiled functions."""

GIVEN_UP = np.int64(-5)
"""What was begun has not been done, and the engine goes on in another way. Only between compiled functions."""

ROUND_LIMIT = np.int64(-3)
"""The game needs more rounds than it may take."""

NOT_A_NUMBER = np.int64(-4)
"""An index is NaN, or −∞ where that marks arms that cannot be paid."""
