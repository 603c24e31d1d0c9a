"""One game of Thompson sampling: where it stands, what it was set to do, and where its arrays are.

A `GAME` is one record. Compiled functions take it, and what they decide about, and nothing else; a record is passed as
one address, so this costs nothing. Arrays are held by their addresses (`posterior_at` is that of the posterior): the
player keeps them alive while compiled code runs.

What the loop calls from one place is inlined by Numba (``inline="always"``), which is quicker to compile and to run than
a call; small functions with several callers are inlined by LLVM (``forceinline=True``); the rest is called.

A slot is a place in the tables of arms that were pulled; `arm_of_slot` says whose. Slots from `active` on are the pool.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.records import float_pointer, whole_pointer

STATE = (
    "round", "pending", "pending_slot", "settling", "active", "base", "hot_count", "in_blocks", "try_blocks", "started",
    "leader", "window", "window_left", "dip", "duel", "duel_slot", "duel_coin", "duel_dip",
    "left_1", "left_2", "near_tie_retry", "anchored", "stale", "spent_steps", "checkpoint", "rounds",
)  # fmt: skip
"""Whole numbers: the round being played, pulls decided and not yet settled, and whose; the leader's block, the duel it is
in, the near tie; the money spent in steps, the budgets that have ended."""

FLOAT_STATE = (
    "level", "tilt", "log_ceiling", "log_half", "duel_ratio", "waste", "limit", "patience", "rung",
    "chance", "z", "move_1", "move_2", "bend", "skewest", "error", "reward", "spent", "drift",
)  # fmt: skip

SETTINGS = (
    "kappa", "log_hot", "log_largest_dip", "caution", "log_direct", "near_ties_from", "restless",
    "tolerance", "reward_unit", "cost_unit",
)  # fmt: skip
SIZES = ("arms", "budgets", "reward_width", "cost_width", "chunk", "classical", "frozen", "buffered", "allow_blocks")

LAWS = (
    "reward_values", "reward_chances", "cost_steps", "cost_trials", "cost_chances", "cost_chance", "cost_top", "bernoulli",
)  # fmt: skip
"""Arrays that describe the arms."""

ARRAYS = (
    "stream", "posterior", "tangents", "constants", "tree", "hot", "hot_place", "next_check", "arm_of_slot", "pulls",
    "ends", "whole", "budget", "buffer", "used", "filled", "out_pulls", "out_reward", "out_spend", "out_rounds",
)  # fmt: skip
"""Arrays of one run."""

COUNTERS = (
    "open_rounds", "hot_draws", "rings", "accepted", "fallbacks", "block_rings", "duels", "dips", "dips_below",
    "windows", "settlements", "plans", "level_changes", "tangents", "leader_spared", "plan_tangents",
    "sketched", "stretched", "looks",
)  # fmt: skip
"""How often the engine did what, for tests and figures."""

GAME = np.dtype(
    [(name, np.int64) for name in (*STATE, *SIZES)]
    + [(name, np.float64) for name in (*FLOAT_STATE, *SETTINGS)]
    + [(f"{name}_at", np.int64) for name in (*ARRAYS, *LAWS)]
    + [(name, np.int64) for name in COUNTERS]
)

LOG_BOUND, SLOPE, X, Y, RATE, KIND = range(6)
"""Columns of the table of tangents."""

SETTLED = -2
"""The status that settling ends with, unless the game is FINISHED or an arm needs outcomes."""


@njit(cache=True, nogil=True, error_model="numpy")
def counts_of(game, slot):
    """The four parameters of an arm's posterior: Beta(a, b) of its reward, Beta(c, d) of its cost.

    Trials are counted in whole numbers from 1 on; each weighs ``kappa``.
    """
    posterior = whole_pointer(game.posterior_at)
    return (
        1.0 + game.kappa * (posterior[4 * slot] - 1), 1.0 + game.kappa * (posterior[4 * slot + 1] - 1),
        1.0 + game.kappa * (posterior[4 * slot + 2] - 1), 1.0 + game.kappa * (posterior[4 * slot + 3] - 1),
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def arm_of(game, slot):
    return whole_pointer(game.arm_of_slot_at)[slot]


@njit(cache=True, nogil=True, error_model="numpy")
def next_alarm(game):
    """The round in which the first alarm rings."""
    return whole_pointer(game.tree_at)[1]


@njit(cache=True, nogil=True, error_model="numpy")
def is_hot(game, slot):
    return whole_pointer(game.hot_place_at)[slot] >= 0


@njit(cache=True, nogil=True, error_model="numpy")
def hot_arms(game):
    """The slots of the hot arms, `hot_count` of them."""
    return whole_pointer(game.hot_at)


@njit(cache=True, nogil=True, error_model="numpy")
def steps_to_the_end(game):
    """How far the next budget's end is, in steps of cost."""
    return whole_pointer(game.ends_at)[game.checkpoint] - game.spent_steps


@njit(cache=True, nogil=True, error_model="numpy")
def tangent_of(game, slot):
    """(kind, log of the bound, slope, x, y): a cold arm's bound at the level."""
    tangents = float_pointer(game.tangents_at)
    return (
        tangents[8 * slot + KIND], tangents[8 * slot + LOG_BOUND], tangents[8 * slot + SLOPE],
        tangents[8 * slot + X], tangents[8 * slot + Y],
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def slope_of(game, slot):
    return float_pointer(game.tangents_at)[8 * slot + SLOPE]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def decide(game, slot):
    """The pull of this round is decided and waits to be settled."""
    game.pending = 1
    game.pending_slot = slot


@njit(cache=True, nogil=True, error_model="numpy")
def forget_near_tie(game):
    game.left_1 = game.left_2 = game.near_tie_retry = 0


# --- prices ----------------------------------------------------------------------------------------------------------


class Prices(NamedTuple):
    """Nanoseconds of the steps of a game on one machine; only proportions matter, and only for speed."""

    round: float = 45.0  # an open round before anything is drawn
    hot: float = 45.0  # drawing one hot arm
    sketch: float = 25.0  # sketching it, when there are two
    stretch: float = 350.0  # a stretch of rounds of two hot arms that ends with a look
    win: float = 15.0  # of the arm that wins seldom, in such a stretch
    pool: float = 30.0  # drawing the best of the arms never pulled
    open_ring: float = 110.0  # an alarm in an open round
    block_ring: float = 60.0  # an alarm while the leader is pulled in blocks
    cold_pull: float = 350.0  # a new tangent and alarm after pulling a cold arm
    fallback_arm: float = 14.0
    fallback_draw: float = 100.0
    window: float = 450.0
    dip: float = 800.0
    tangent: float = 180.0


PRICE = Prices()
