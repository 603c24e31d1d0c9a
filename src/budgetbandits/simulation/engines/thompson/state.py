"""One game of Thompson sampling: where it stands, what it was set to do, and where its arrays are.

Compiled functions take the record, and what they decide about, and nothing else; a record is passed as one address, so
this costs nothing.

What the loop calls from one place is inlined by Numba (``inline="always"``), which is quicker to compile and to run than
a call; small functions with several callers are inlined by LLVM (``forceinline=True``); the rest is called.

A slot is a place in the tables of arms that were pulled; `arm_of_slot` says whose. Slots from `active` on are the pool.
"""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from budgetbandits.simulation.engines.runtime.records import (
    Floats,
    GameRecord,
    Wholes,
    Words,
    float_pointer,
    whole_pointer,
)

LawFloats = Floats
LawWholes = Wholes
Counter = int
"""Kinds of fields: arrays that describe the arms, and counts of what the engine did."""


class ThompsonRecord(GameRecord):
    """The record of a game and its arrays. Rounds and places of slots, arms and budgets are whole numbers."""

    round: int  # the one being played
    pending: int  # pulls decided and not yet settled, and the slot whose they are
    pending_slot: int
    settling: int
    active: int  # how many slots are of arms that were pulled
    base: int
    hot_count: int
    in_blocks: int  # the leader is pulled in a block; its window, and the duel that it is in
    try_blocks: int
    started: int
    leader: int
    window: int
    window_left: int
    dip: int
    duel: int
    duel_slot: int
    duel_coin: int
    duel_dip: int
    left_1: int  # pulls that the bounds of a near tie still cover
    left_2: int
    near_tie_retry: int
    anchored: int
    stale: int
    spent_steps: int  # the money spent, in steps of cost
    reward_width: int
    cost_width: int
    classical: int  # whether costs are ignored
    frozen: int
    buffered: int
    allow_blocks: int
    level: float
    tilt: float
    log_ceiling: float
    log_half: float
    duel_ratio: float
    waste: float
    limit: float
    patience: float
    rung: float
    chance: float
    z: float
    move_1: float
    move_2: float
    bend: float
    skewest: float
    error: float
    kappa: float
    log_hot: float
    log_largest_dip: float
    caution: float
    log_direct: float
    near_ties_from: float
    restless: float
    stream: Words
    posterior: Wholes
    tangent_rows: Floats
    constants: Floats
    tree: Wholes
    hot: Wholes
    hot_place: Wholes
    next_check: Wholes
    arm_of_slot: Wholes
    ends: Wholes
    whole: Wholes
    reward_values: LawFloats
    reward_chances: LawFloats
    cost_steps: LawWholes
    cost_trials: LawFloats
    cost_chances: LawFloats
    cost_chance: LawFloats
    cost_top: LawFloats
    bernoulli: LawFloats
    open_rounds: Counter  # how often the engine did what, for tests and figures, as all that follow
    hot_draws: Counter
    rings: Counter
    accepted: Counter
    fallbacks: Counter
    block_rings: Counter
    duels: Counter
    dips: Counter
    dips_below: Counter
    windows: Counter
    settlements: Counter
    plans: Counter
    level_changes: Counter
    tangents: Counter
    leader_spared: Counter
    plan_tangents: Counter
    sketched: Counter
    stretched: Counter
    looks: Counter


COUNTERS = tuple(ThompsonRecord.fields_of_kind("Counter"))
"""Names of the counters of a game."""

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
    """The arm in a slot."""
    return whole_pointer(game.arm_of_slot_at)[slot]


@njit(cache=True, nogil=True, error_model="numpy")
def next_alarm(game):
    """The round in which the first alarm rings."""
    return whole_pointer(game.tree_at)[1]


@njit(cache=True, nogil=True, error_model="numpy")
def is_hot(game, slot):
    """Whether the arm in a slot is hot."""
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
    tangents = float_pointer(game.tangent_rows_at)
    return (
        tangents[8 * slot + KIND], tangents[8 * slot + LOG_BOUND], tangents[8 * slot + SLOPE],
        tangents[8 * slot + X], tangents[8 * slot + Y],
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy")
def slope_of(game, slot):
    """The slope of the tangent of a slot's envelope."""
    return float_pointer(game.tangent_rows_at)[8 * slot + SLOPE]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def decide(game, slot):
    """The pull of this round is decided and waits to be settled."""
    game.pending = 1
    game.pending_slot = slot


@njit(cache=True, nogil=True, error_model="numpy")
def forget_near_tie(game):
    """End the stretch of a near tie, without a time to wait for the next."""
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
"""Prices that estimate the time of each way to play."""
