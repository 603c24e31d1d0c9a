"""The record of a game: how Python fills it, and how compiled code reads its arrays and ends its budgets.

Compiled functions take the record, which is passed as one address, and what they decide about. Handing NumPy arrays,
or a tuple of them, to a compiled function that is not inlined counts references at every call: a dozen atomic
operations around a heap step of ten nanoseconds. So a record holds the addresses of its arrays. A pointer knows neither
its length nor its owner: the owner of the record keeps the arrays alive while compiled code runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.simulation.reference import LARGEST_BATCH, Draw, Game, batch_size

LARGEST_BUFFER = 1 << 22
"""Outcomes kept at once, over all places of a buffer."""

RESULTS = ("out_pulls", "out_reward", "out_spend", "out_rounds")
"""Arrays that a record with several budgets points to: how the game stood at the end of each."""


@lru_cache(maxsize=16)
def places(kind: np.dtype[Any]) -> dict[str, tuple[int, bool]]:
    """Of each field: at which word it stands, and whether it is a whole number."""
    if kind.names is None or kind.itemsize != 8 * len(kind.names):
        raise TypeError(f"{kind} is no record whose fields have eight bytes each")
    return {name: (place, kind[name].kind == "i") for place, name in enumerate(kind.names)}


def buffer_size(places: int) -> int:
    """How many outcomes a buffer holds for each of its places."""
    return min(LARGEST_BATCH, max(1, LARGEST_BUFFER // places))


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

    def keep_results(self, arms: int, budgets: int) -> None:
        """Make room for the state of the game at the end of each budget."""
        self.point_to(out_pulls=np.zeros((budgets, arms), dtype=np.int64), out_rounds=np.zeros(budgets, dtype=np.int64))
        self.point_to(out_reward=np.zeros(budgets), out_spend=np.zeros(budgets))

    def results(self, budgets: int) -> list[Game]:
        """How the game stood at the end of each of the first ``budgets``."""
        rows = [self.arrays[name][:budgets].tolist() for name in ("out_reward", "out_spend", "out_rounds")]
        return list(zip(*rows, self.arrays["out_pulls"][:budgets].copy(), strict=True))

    def refill(self, place: int, draw: Draw) -> None:
        """Draw the next batch of outcomes for this place of the buffer, of the size that `reference.Pulls` draws."""
        size = min(self.arrays["buffer"].shape[1], batch_size(int(self.arrays["filled"][place])))
        self.fill(place, *draw(size))

    def fill(self, place: int, rewards: Array, costs: Array) -> None:
        """Let these outcomes be the next of this place of the buffer."""
        self.arrays["buffer"][place, : len(rewards), 0] = rewards
        self.arrays["buffer"][place, : len(costs), 1] = costs
        self.arrays["used"][place] = 0
        self.arrays["filled"][place] = len(rewards)

    def fields(self) -> NDArray[np.int64]:
        """All fields as they are now, to `restart` with."""
        return self._words.copy()

    def restart(self, fields: NDArray[np.int64]) -> None:
        self._words[:] = fields


# --- pointers --------------------------------------------------------------------------------------------------------


def _pointer_to(kind):
    """A function of compiled code that makes an address a pointer to numbers of this kind."""

    @intrinsic
    def pointer(typing_context, address):
        def code(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], context.get_value_type(kind).as_pointer())

        return types.CPointer(kind)(types.int64), code

    return pointer


float_pointer, whole_pointer, word_pointer = map(_pointer_to, (types.float64, types.int64, types.uint64))


# --- status: how a call of a compiled engine ends --------------------------------------------------------------------


# as NumPy's integers: Numba would give Python's a type for each value, and compile what they are passed to for each
FINISHED = np.int64(-1)
"""The game at the last budget has ended."""

GOING_ON = np.int64(-2)
"""Nothing to report: the engine plays on. Only between compiled functions."""

GIVEN_UP = np.int64(-5)
"""The attempt failed, and the engine goes on in another way. Only between compiled functions."""

ROUND_LIMIT = np.int64(-3)
"""The game needs more rounds than it may take."""

NOT_A_NUMBER = np.int64(-4)
"""An index is NaN, or −∞ where that marks arms that cannot be paid."""


# --- the end of a budget ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def budget_end(after, budget, tolerance):
    """(whether a game at this budget ends with so much spent ``after`` a pull, whether that pull is covered)."""
    return after >= budget - tolerance, after <= budget + tolerance


@njit(cache=True, nogil=True, error_model="numpy")
def close_budget(game, reward, spent):
    """The game at the next budget has ended like this, in the units of the game."""
    pulls, out_pulls = whole_pointer(game.pulls_at), whole_pointer(game.out_pulls_at)
    for arm in range(game.arms):
        out_pulls[game.checkpoint * game.arms + arm] = pulls[arm]
    float_pointer(game.out_reward_at)[game.checkpoint] = reward * game.reward_unit
    float_pointer(game.out_spend_at)[game.checkpoint] = spent * game.cost_unit
    whole_pointer(game.out_rounds_at)[game.checkpoint] = game.rounds
    game.checkpoint += 1


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def close_budgets(game, reward, cost):
    """End the games at all budgets that a pull reaches; its outcome counts where its cost is still covered.

    FINISHED if the last game has ended, else GOING_ON.
    """
    budget, after = float_pointer(game.budget_at), game.spent + cost
    while game.checkpoint < game.budgets:
        ends, covered = budget_end(after, budget[game.checkpoint], game.tolerance)
        if not ends:
            return GOING_ON
        close_budget(game, game.reward + reward * covered, game.spent + cost * covered)
    return FINISHED


@njit(cache=True, nogil=True, error_model="numpy")
def stop(game):
    """Nothing more can be afforded, or every request is answered: all open games end as they stand."""
    while game.checkpoint < game.budgets:
        close_budget(game, game.reward, game.spent)
    return FINISHED


@njit(cache=True, nogil=True, error_model="numpy")
def add_cost(game, cost):
    """A cost is spent; compensated, as in the reference."""
    owed = cost - game.drift
    total = game.spent + owed
    game.drift = (total - game.spent) - owed
    game.spent = total


# --- outcomes drawn ahead, and ties -----------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def read_outcome(game, place):
    """(whether there is one, reward, cost): the next outcome that was drawn ahead for a place of the buffer."""
    used = whole_pointer(game.used_at)
    if used[place] == whole_pointer(game.filled_at)[place]:
        return False, 0.0, 0.0
    outcome = float_pointer(game.buffer_at + 16 * (game.chunk * place + used[place]))
    used[place] += 1
    return True, outcome[0], outcome[1]


@njit(cache=True, nogil=True, error_model="numpy")
def place_of_equal(scores, top, number):
    """Where the highest score stands for the time of this number, counted from 0."""
    place = 0
    while scores[place] != top or number > 0:
        number -= scores[place] == top
        place += 1
    return place


# --- a tournament tree -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def set_leaf(tree, node, value):
    """Change the number at a leaf, and what follows from it above."""
    tree[node] = value
    while node > 1:
        node >>= 1
        smaller = min(tree[2 * node], tree[2 * node + 1])
        if tree[node] == smaller:
            return
        tree[node] = smaller
