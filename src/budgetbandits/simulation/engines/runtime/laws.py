"""A problem's laws as flat arrays (`Tables`), and compiled draws from the finite ones: one value, or the sum of many.

In compiled code a law is (values, chances, number of values): pointers into the arrays of `Tables`, which a game's
record holds.
"""

from __future__ import annotations

import math
import weakref
from fractions import Fraction
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.distributions import Bernoulli, Independent, Law
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.engines.runtime.binomials import binomial
from budgetbandits.simulation.engines.runtime.draws import uniform
from budgetbandits.simulation.engines.runtime.records import Floats, Record, Wholes, float_pointer, whole_pointer

FINEST_LATTICE = 1_000_000
"""The finest lattice whose steps are counted: sums stay exact up to 2^53 steps, a budget of nine billion."""


class LawFields(Record):
    """The arrays of `Tables`, to which the record of a game points."""

    reward_value: Floats  # all values of all arms, with their chances
    reward_chance: Floats
    reward_first: Wholes  # where the values of an arm begin, and how many there are, 0 if it uses a buffer
    reward_atoms: Wholes
    reward_floor: Floats  # the smallest value of an arm
    cost_value: Floats
    cost_chance: Floats
    cost_first: Wholes
    cost_atoms: Wholes
    cost_top: Floats  # the largest value of an arm


ZERO_ONE = np.array([0.0, 1.0])
"""Values of a Bernoulli law."""


class Tables:
    """Values and chances of every arm with independent finite laws; any other arm has no atoms and uses a buffer."""

    def __init__(self, problem: Problem, sampled: bool = False) -> None:
        """``sampled`` has every arm use a buffer: its outcomes are drawn elsewhere."""
        self.arms = problem.arms
        pairs = [None if sampled else _atoms(arm) for arm in self.arms]
        rewards = [pair[0] if pair else None for pair in pairs]
        costs = [pair[1] if pair else None for pair in pairs]
        # buffered outcomes can be any number: then nothing is counted in steps
        self.reward_scale = 1 if None in rewards else lattice([values for values, _ in rewards])  # type: ignore[misc]
        self.cost_scale = 1 if None in costs else lattice([values for values, _ in costs])  # type: ignore[misc]
        self.reward_value, self.reward_chance, self.reward_first, self.reward_atoms = _flat(rewards, self.reward_scale)
        self.cost_value, self.cost_chance, self.cost_first, self.cost_atoms = _flat(costs, self.cost_scale)
        self.reward_floor, self.cost_top = np.zeros(len(self.arms)), np.ones(len(self.arms))
        finite = self.reward_atoms > 0  # and so are the costs: an arm has both or neither
        if finite.any():
            self.reward_floor[finite] = np.minimum.reduceat(self.reward_value[:-1], self.reward_first[finite])
            self.cost_top[finite] = np.maximum.reduceat(self.cost_value[:-1], self.cost_first[finite])

    @property
    def buffered(self) -> bool:
        """Whether some costs are continuous, so that outcomes are drawn ahead."""
        return bool((self.cost_atoms == 0).any())

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the record, by name."""
        return {name: getattr(self, name) for name in LawFields.described}


_tables: dict[int, Tables] = {}


def tables_of(problem: Problem, sampled: bool = False) -> Tables:
    """The tables of a problem, made once for all who play it, and kept for as long as the problem is there."""
    if sampled:
        return Tables(problem, sampled)
    if id(problem) not in _tables:
        _tables[id(problem)] = Tables(problem)
        weakref.finalize(problem, _tables.pop, id(problem), None)
    return _tables[id(problem)]


def _atoms(arm: Arm) -> tuple[tuple[Array, Array], tuple[Array, Array]] | None:
    # a law from outside the package is sampled: nothing proves that its atoms fit its draws
    law = arm.law
    if not isinstance(law, Independent) or not arm.standard:
        return None
    reward, cost = _possible(law.reward), _possible(law.cost)
    return None if reward is None or cost is None else (reward, cost)


def _possible(law: Law) -> tuple[Array, Array] | None:
    if isinstance(law, Bernoulli) and 0.0 < law.mean < 1.0:  # the general way takes seconds for a million arms
        return ZERO_ONE, np.array([1.0 - law.mean, law.mean])
    atoms = law.atoms()
    if atoms is None:
        return None
    values, chances = atoms
    return atoms if chances.all() else (values[chances > 0.0], chances[chances > 0.0])


def lattice(supports: list[Array]) -> int:
    """The number of steps to 1 of the coarsest lattice that holds all values; 1 if there is none fine enough.

    >>> lattice([np.array([0.0, 0.25]), np.array([0.1, 1.0])])
    20
    """
    steps = 1
    for value in np.unique(np.concatenate(supports)):
        near = Fraction(float(value)).limit_denominator(FINEST_LATTICE)
        if abs(float(near) - value) > 4e-16:
            return 1
        steps = math.lcm(steps, near.denominator)
        if steps > FINEST_LATTICE:
            return 1
    return steps


def _on(values: Array, scale: int) -> Array:
    return np.rint(values) if scale > 1 else values


def _flat(
    laws: list[tuple[Array, Array] | None], scale: int
) -> tuple[Array, Array, NDArray[np.int64], NDArray[np.int64]]:
    sizes = np.array([0 if law is None else len(law[0]) for law in laws], dtype=np.int64)
    values = np.concatenate([law[0] for law in laws if law is not None] + [np.zeros(1)]) * scale
    chances = np.concatenate([law[1] for law in laws if law is not None] + [np.zeros(1)])
    return _on(values, scale), chances, np.cumsum(sizes) - sizes, sizes


def padded(values: Array, chances: Array, atoms: NDArray[np.int64]) -> tuple[Array, Array]:
    """One row an arm; arms with fewer values than the widest get values that never come up.

    The last possible value comes last in its row: a multinomial leaves it what the others leave.
    """
    wide = max(1, int(atoms.max(initial=1)))
    all_values, all_chances = np.zeros((len(atoms), wide)), np.zeros((len(atoms), wide))
    place = 0
    for arm, size in enumerate(atoms):
        all_values[arm, wide - size :] = values[place : place + size]
        all_chances[arm, wide - size :] = chances[place : place + size] / chances[place : place + size].sum()
        place += size
    return all_values, all_chances


# --- compiled draws --------------------------------------------------------------------------------------------------


COMPARED_VALUES_MAX = 8
"""Most values that are all compared with the draw, which is cheaper than a jump that no processor predicts."""


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def reward_law(game, arm):
    """Addresses and numbers that describe the law of an arm's rewards."""
    first = 8 * whole_pointer(game.reward_first_at)[arm]
    return (
        float_pointer(game.reward_value_at + first),
        float_pointer(game.reward_chance_at + first),
        whole_pointer(game.reward_atoms_at)[arm],
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def cost_law(game, arm):
    """Addresses and numbers that describe the law of an arm's costs."""
    first = 8 * whole_pointer(game.cost_first_at)[arm]
    return (
        float_pointer(game.cost_value_at + first),
        float_pointer(game.cost_chance_at + first),
        whole_pointer(game.cost_atoms_at)[arm],
    )


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def one_value(stream, law):
    """One draw; the last value takes whatever rounding leaves."""
    values, chances, atoms = law
    last = atoms - 1
    if last == 0:
        return values[0]
    u = uniform(stream)
    if atoms <= COMPARED_VALUES_MAX:
        reached = 0.0
        drawn = 0
        for place in range(last):
            reached += chances[place]
            drawn += np.int64(u >= reached)
        return values[drawn]
    for place in range(last):
        if u < chances[place]:
            return values[place]
        u -= chances[place]
    return values[last]


@njit(cache=True, nogil=True, error_model="numpy")
def block_sum(stream, law, count):
    """The sum and the sum of squares of ``count`` draws: one conditional binomial for each value."""
    values, chances, atoms = law
    total = 0.0
    squares = 0.0
    if atoms > 2 and count <= 16:
        for _ in range(count):
            value = one_value(stream, law)
            total += value
            squares += value * value
        return total, squares
    left = np.int64(count)
    rest = 1.0
    for place in range(atoms):
        if left == 0:
            break
        drawn = left
        if place < atoms - 1:
            share = chances[place] / rest if chances[place] < rest else 1.0
            drawn = binomial(stream, left, share)
        left -= drawn
        rest -= chances[place]
        total += drawn * values[place]
        squares += drawn * (values[place] * values[place])
    return total, squares


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def outcome(game, arm):
    """(reward, cost) of one pull."""
    reward = one_value(game.stream_at, reward_law(game, arm))
    return reward, one_value(game.stream_at, cost_law(game, arm))


@njit(cache=True, nogil=True, error_model="numpy")
def outcomes(game, arm, count):
    """(reward, sum of squared rewards, cost) of that many pulls together."""
    reward, squares = block_sum(game.stream_at, reward_law(game, arm), count)
    cost, _ = block_sum(game.stream_at, cost_law(game, arm), count)
    return reward, squares, cost
