"""What one game keeps: the memory layout shared by the engines.

Everything lives in four arrays that Python allocates once and reuses for every run of a problem, so a game can stop
(no outcomes left in a buffer) and go on. Compiled code sees them through a `Desk` of pointers.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import new_stream
from budgetbandits.simulation.compiled.pointers import float_pointer, whole_pointer

TALLIES = ("reward", "square", "cost", "luck", "rate")
"""Rows of floats that begin a game at 0."""
ARM_FLOATS = (
    *TALLIES, "own", "price", "reward_floor", "cost_top", "reward_before", "square_before", "cost_before",
)  # fmt: skip
GROUP_FLOATS = ("bound", "cap", "bound_key", "expiry_key", "value")
FLOAT_ROWS = ARM_FLOATS + GROUP_FLOATS

COUNTS = ("pulls", "used", "filled")
"""Rows of whole numbers that begin a game at 0."""
LINKS = ("left", "right")
"""Rows of whole numbers that begin a game at -1."""
ARM_WHOLES = (
    *COUNTS, *LINKS, "reward_first", "reward_atoms", "cost_first", "cost_atoms", "pulls_before", "used_before",
)  # fmt: skip
GROUP_WHOLES = (
    "root", "size", "bound_order", "bound_place", "expiry_order", "expiry_place",
    "free", "stack", "candidate", "pool",
)  # fmt: skip
WHOLE_ROWS = ARM_WHOLES + GROUP_WHOLES

NUMBERS = ("rounds", "leader", "stage", "opened", "checkpoint", "pool_size", "groups", "frees", "evaluations",
           "waste", "since", "evaluated_before", "counted_from", "patience", "rounds_before", "swept", "taken_back")  # fmt: skip
AMOUNTS = ("reward_sum", "spent", "fraction", "stride", "floor", "floor_low", "floor_high", "window",
           "turn", "price_paid", "reach", "share", "reward_before", "spent_before", "lazy_price")  # fmt: skip

(ROUNDS, LEADER, STAGE, OPENED, CHECKPOINT, POOL_SIZE, GROUPS, FREES, EVALUATIONS, WASTE, SINCE,
 EVALUATED_BEFORE, COUNTED_FROM, PATIENCE, ROUNDS_BEFORE, SWEPT, TAKEN_BACK) = range(len(NUMBERS))  # fmt: skip
(REWARD_SUM, SPENT, FRACTION, STRIDE, FLOOR, FLOOR_LOW, FLOOR_HIGH, WINDOW,
 TURN, PRICE_PAID, REACH, SHARE, REWARD_BEFORE, SPENT_BEFORE, LAZY_PRICE) = range(len(AMOUNTS))  # fmt: skip

FIRST_PATIENCE = 48
"""Evaluations, or as many as there are arms, after which the lazy engine looks whether sweeps would be faster."""

OPENING, CHOOSING, PULLING = 0, 1, 2
"""Stages of a game: first pulls; the leader has to be found; the leader has been chosen and must be pulled."""

FINISHED, NEEDS_OUTCOMES, ROUND_LIMIT, NOT_A_NUMBER, GOING_ON, GIVEN_UP = 0, 1, 2, 3, 4, 5
"""What a call of an engine ends with; GOING_ON and GIVEN_UP stay inside. With NOT_A_NUMBER (or −∞, which marks arms
that cannot be paid) the arm stands where the leader does."""

Desk = namedtuple(
    "Desk", FLOAT_ROWS + WHOLE_ROWS + ("number", "amount", "table", "tree", "stream", "arms", "slots", "leaves")
)
Rule = namedtuple(
    "Rule",
    (
        "kind",
        "first",
        "second",
        "third",
        "reward_unit",
        "cost_unit",
        "slack",
        "rounds_matter",
        "cost_matters",
        "blocks",
        "sweeps",
    ),
)
Ends = namedtuple("Ends", ("budgets", "count", "tolerance", "affordable", "max_rounds"))
"""Budgets in cost units; ``tolerance`` and ``affordable`` are the slacks of the game and of the policy."""
World = namedtuple("World", ("reward_value", "reward_chance", "cost_value", "cost_chance", "buffer", "chunk"))
Out = namedtuple("Out", ("pulls", "reward", "spend", "rounds"))

CONSTANT, OWN, VARIANCE, FLOOR_SEEN = 0, 1, 2, 3
"""What the first extra argument of an index is: a constant, a number of the arm's own, the variance of its rewards, or
the smallest mean cost of all arms."""


@njit(cache=True, nogil=True)
def open_desk(floats, wholes, number, amount, table, tree, stream):
    """Pointers to every row."""
    arms = floats.shape[1]
    f = floats.ctypes.data
    w = wholes.ctypes.data
    step = 8 * arms
    return Desk(
        float_pointer(f), float_pointer(f + step), float_pointer(f + 2 * step), float_pointer(f + 3 * step),
        float_pointer(f + 4 * step), float_pointer(f + 5 * step), float_pointer(f + 6 * step),
        float_pointer(f + 7 * step), float_pointer(f + 8 * step), float_pointer(f + 9 * step),
        float_pointer(f + 10 * step), float_pointer(f + 11 * step), float_pointer(f + 12 * step),
        float_pointer(f + 13 * step), float_pointer(f + 14 * step), float_pointer(f + 15 * step),
        float_pointer(f + 16 * step),
        whole_pointer(w), whole_pointer(w + step), whole_pointer(w + 2 * step), whole_pointer(w + 3 * step),
        whole_pointer(w + 4 * step), whole_pointer(w + 5 * step), whole_pointer(w + 6 * step),
        whole_pointer(w + 7 * step), whole_pointer(w + 8 * step), whole_pointer(w + 9 * step),
        whole_pointer(w + 10 * step), whole_pointer(w + 11 * step), whole_pointer(w + 12 * step),
        whole_pointer(w + 13 * step), whole_pointer(w + 14 * step), whole_pointer(w + 15 * step),
        whole_pointer(w + 16 * step), whole_pointer(w + 17 * step), whole_pointer(w + 18 * step),
        whole_pointer(w + 19 * step), whole_pointer(w + 20 * step),
        whole_pointer(number.ctypes.data), float_pointer(amount.ctypes.data), whole_pointer(table.ctypes.data),
        float_pointer(tree.ctypes.data), stream, arms, table.shape[0], tree.shape[0] >> 1,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def open_world(reward_value, reward_chance, cost_value, cost_chance, buffer):
    """Pointers to the arms' laws and to pre-drawn outcomes."""
    return World(
        float_pointer(reward_value.ctypes.data), float_pointer(reward_chance.ctypes.data),
        float_pointer(cost_value.ctypes.data), float_pointer(cost_chance.ctypes.data),
        float_pointer(buffer.ctypes.data), buffer.shape[1],
    )  # fmt: skip


@njit(cache=True, nogil=True)
def open_ends(budgets, limits, out_pulls, out_reward, out_spend, out_rounds):
    """Pointers to where games end and where their results go."""
    ends = Ends(float_pointer(budgets.ctypes.data), budgets.shape[0], limits[0], limits[1], limits[2])
    out = Out(
        whole_pointer(out_pulls.ctypes.data), float_pointer(out_reward.ctypes.data),
        float_pointer(out_spend.ctypes.data), whole_pointer(out_rounds.ctypes.data),
    )  # fmt: skip
    return ends, out


class Memory:
    """The arrays of one game, for ``arms`` arms; `clear` makes them fit for the next run."""

    def __init__(self, arms: int) -> None:
        self.floats = np.zeros((len(FLOAT_ROWS), arms))
        self.wholes = np.zeros((len(WHOLE_ROWS), arms), dtype=np.int64)
        self.number = np.zeros(len(NUMBERS), dtype=np.int64)
        self.amount = np.zeros(len(AMOUNTS))
        # a table twice as long as there can be groups keeps probes short
        self.table = np.full(max(4, 1 << (2 * arms - 1).bit_length()), -1, dtype=np.int64)
        leaves = 1 << max(0, (arms - 1).bit_length())
        self.tree = np.full(2 * leaves, np.inf)
        self.stream = np.zeros(4, dtype=np.uint64)

    def row(self, name: str) -> np.ndarray:
        if name in FLOAT_ROWS:
            return self.floats[FLOAT_ROWS.index(name)]
        return self.wholes[WHOLE_ROWS.index(name)]

    def clear(self, words: np.ndarray) -> None:
        self.floats[: len(TALLIES)] = 0.0
        self.wholes[: len(COUNTS)] = 0
        self.wholes[len(COUNTS) : len(COUNTS) + len(LINKS)] = -1
        self.number[:] = 0
        self.number[LEADER] = -1
        self.number[PATIENCE] = max(FIRST_PATIENCE, self.floats.shape[1])
        self.amount[:] = 0.0
        self.amount[FRACTION] = 0.25
        self.amount[STRIDE] = 1.0
        self.amount[WINDOW] = 1e-4
        self.amount[TURN] = 2.0
        self.amount[PRICE_PAID] = np.inf
        self.amount[REACH] = 1.0
        self.amount[SHARE] = 1.0 / self.floats.shape[1]
        self.table[:] = -1
        self.tree[:] = np.inf
        self.stream[:] = new_stream(words)
