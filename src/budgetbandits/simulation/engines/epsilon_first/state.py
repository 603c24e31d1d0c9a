"""One game of ε-first: where it stands, what it was set to do, and where its arrays are.

A `GAME` is one record. Compiled functions take it, and what they decide about, and nothing else. Arrays are held by
their addresses (`pulls_at` is that of the pulls): the player keeps them alive while compiled code runs. Money and
rewards are counted in the units of `laws.Tables`.
"""

from __future__ import annotations

import numpy as np

from budgetbandits.simulation.engines.runtime.laws import LAWS

STATE = ("rounds",)
FLOAT_STATE = ("reward", "spent")
SIZES = ("arms", "max_rounds")
SETTINGS = ("budget", "exploration", "tolerance", "reward_scale", "cost_scale")
"""``exploration`` is the money to explore with."""

ARRAYS = ("stream", "pulls", "rewards", "costs")
"""Arrays of one game; rewards and costs are sums of each arm."""

GAME = np.dtype(
    [(name, np.int64) for name in (*STATE, *SIZES)]
    + [(name, np.float64) for name in (*FLOAT_STATE, *SETTINGS)]
    + [(f"{name}_at", np.int64) for name in (*ARRAYS, *LAWS)]
)
