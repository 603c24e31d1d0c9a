"""The record of a game: how Python fills it, and how compiled code reads its arrays and ends its budgets.

Compiled functions take the record, which is passed as one address, and what they decide about. Handing NumPy arrays,
or a tuple of them, to a compiled function that is not inlined counts references at every call: a dozen atomic
operations around a heap step of ten nanoseconds. So a record holds the addresses of its arrays. A pointer knows neither
its length nor its owner: the owner of the record keeps the arrays alive while compiled code runs.
"""

from __future__ import annotations

from inspect import get_annotations
from typing import Any, ClassVar

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.simulation.reference import LARGEST_BATCH, Draw, Game, batch_size

LARGEST_BUFFER = 1 << 22
"""Outcomes kept at once, over all places of a buffer."""


def buffer_size(places: int) -> int:
    """How many outcomes a buffer holds for each of its places."""
    return min(LARGEST_BATCH, max(1, LARGEST_BUFFER // places))


Floats = NDArray[np.float64]
Wholes = NDArray[np.int64]
Words = NDArray[np.uint64]
"""The arrays that a record may point to."""


class RecordField:
    """A field of a record: a number, or an array, of which the record holds the address.

    name   its name
    kind   its annotation as it is written, by which fields are found
    value  the type of its value: int, float or an array
    place  at which word it stands
    """

    def __init__(self, name: str, kind: str, value: Any, place: int) -> None:
        self.name, self.kind, self.place = name, kind, place
        self.is_array, self.is_whole = value not in (int, float), value is not float

    def __get__(self, record: Record, owner: type[Record]) -> Any:
        if self.is_array:
            return record.arrays[self.name]
        return (record.words if self.is_whole else record.reals)[self.place].item()


class Record:
    """One record, and the arrays whose addresses it holds, kept alive.

    A subclass has an annotated line for each field: an int, a float, or an array. Compiled code reads and writes the
    numbers by their names, eight bytes each, and finds the address of the array NAME under ``NAME_at``.
    """

    described: ClassVar[dict[str, RecordField]]
    layout: ClassVar[np.dtype[Any]]

    def __init_subclass__(cls) -> None:
        kinds: dict[str, tuple[str, Any]] = {}
        for base in reversed(cls.__mro__[:-2]):
            values = get_annotations(base, eval_str=True)
            kinds |= {name: (kind, values[name]) for name, kind in get_annotations(base).items()}
        cls.described = {name: RecordField(name, *kind, place) for place, (name, kind) in enumerate(kinds.items())}
        for name, field in cls.described.items():
            setattr(cls, name, field)
        cls.layout = np.dtype(
            [
                (f"{name}_at" if field.is_array else name, np.int64 if field.is_whole else np.float64)
                for name, field in cls.described.items()
            ]
        )

    def __init__(self) -> None:
        self.game = np.zeros(1, dtype=self.layout)
        self.arrays: dict[str, NDArray[Any]] = {}
        # NumPy reads, writes and copies records field by field, slowly
        self.words, self.reals = self.game.view(np.int64), self.game.view(np.float64)

    @classmethod
    def fields_of_kind(cls, *kinds: str) -> list[str]:
        """The names of the fields with these annotations, in order."""
        return [name for kind in kinds for name, field in cls.described.items() if field.kind == kind]

    def set(self, **fields: float) -> None:
        """Set numbers by the names of their fields."""
        for name, value in fields.items():
            field = self.described[name]
            (self.words if field.is_whole else self.reals)[field.place] = value

    def point_to(self, **arrays: NDArray[Any]) -> None:
        """Let fields point to these arrays, which are kept alive."""
        for name, array in arrays.items():
            self.arrays[name] = array
            self.words[self.described[name].place] = array.__array_interface__["data"][0]

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
        return self.words.copy()

    def restart(self, fields: NDArray[np.int64]) -> None:
        """Set all fields to those that `fields` has returned."""
        self.words[:] = fields


class GameRecord(Record):
    """The fields of a game with several budgets, and of outcomes that are drawn ahead.

    A place is an arm in a part of a stream; a problem is a single part.
    """

    arms: int
    places: int
    budgets: int  # how many there are
    checkpoint: int  # how many have ended
    rounds: int  # how many have been played
    chunk: int  # the length of a place of the buffer
    reward: float  # the sum so far, as that of the money spent
    spent: float
    drift: float  # what rounding has left out of the money spent
    tolerance: float
    reward_unit: float  # what a reward and a cost of 1 are in the results
    cost_unit: float
    pulls: Wholes  # by place
    budget: Floats
    buffer: Floats  # outcomes drawn ahead: for each place rewards and costs
    used: Wholes  # how many of them have been read, by place
    filled: Wholes  # how many of them there are, by place
    out_pulls: Wholes  # how the game stood at the end of each budget, as the next three
    out_reward: Floats
    out_spend: Floats
    out_rounds: Wholes

    def keep_results(self, places: int, budgets: int) -> None:
        """Make room for the state of the game at the end of each budget."""
        self.set(places=places)
        self.point_to(
            out_pulls=np.zeros((budgets, places), dtype=np.int64), out_rounds=np.zeros(budgets, dtype=np.int64)
        )
        self.point_to(out_reward=np.zeros(budgets), out_spend=np.zeros(budgets))

    def results(self, budgets: int) -> list[Game]:
        """How the game stood at the end of each of the first ``budgets``."""
        rows = [self.arrays[name][:budgets].tolist() for name in ("out_reward", "out_spend", "out_rounds")]
        return list(zip(*rows, self.out_pulls[:budgets].copy(), strict=True))


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


CHOOSING, PULLING = 0, 1
"""Stages of a game: the leader has to be found; it has been chosen and must be pulled."""

# --- the end of a budget ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def budget_end(after, budget, tolerance):
    """(whether a game at this budget ends with so much spent ``after`` a pull, whether that pull is covered)."""
    return after >= budget - tolerance, after <= budget + tolerance


@njit(cache=True, nogil=True, error_model="numpy")
def close_budget(game, reward, spent):
    """The game at the next budget has ended like this, in the units of the game."""
    pulls, out_pulls = whole_pointer(game.pulls_at), whole_pointer(game.out_pulls_at)
    for place in range(game.places):
        out_pulls[game.checkpoint * game.places + place] = pulls[place]
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def add_money(game, reward, cost):
    """Add the reward and the cost of a pull."""
    game.reward += reward
    add_cost(game, cost)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def largest_budget(game):
    """The largest budget of a game."""
    return float_pointer(game.budget_at)[game.budgets - 1]


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
