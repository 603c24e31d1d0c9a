"""Which request comes next, and who may answer it."""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.engines.runtime.records import FINISHED, GOING_ON, ROUND_LIMIT, whole_pointer


@njit(cache=True, nogil=True, error_model="numpy")
def next_request(game):
    """Whether there is one: GOING_ON, FINISHED or ROUND_LIMIT; it may be of another part than the one before."""
    if game.rounds == game.max_rounds:
        return ROUND_LIMIT
    if game.rounds >= game.horizon:
        return FINISHED
    part = whole_pointer(game.list_at)[game.rounds] if game.listed > 0 else part_of_phase(game)
    if part != game.part:
        enter(game, part)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def part_of_phase(game):
    """The part of the request where there is one segment, so that each phase has one part."""
    first = whole_pointer(game.first_at)
    part = max(game.part, 0)
    while part + 1 < game.parts and game.rounds >= first[part + 1]:
        part += 1
    return part


@njit(cache=True, nogil=True, error_model="numpy")
def enter(game, part):
    """The request is of this part: see which arms are planned for."""
    game.part = part
    game.segment = part % game.width if game.segments > 1 else 0
    plan, who = whole_pointer(game.plan_at + 8 * game.arms * part), whole_pointer(game.who_at)
    game.planned = 0
    for arm in range(game.arms):
        if plan[arm] > 0:
            who[game.planned] = arm
            game.planned += 1


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def offered(game, arm):
    """Whether this arm may answer the request."""
    return whole_pointer(game.offer_at)[game.part * game.arms + arm] > 0
