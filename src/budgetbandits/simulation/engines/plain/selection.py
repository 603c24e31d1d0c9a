"""Which request comes next, and which arm answers it by `bts-paced`: `policies.paced.selection.select`, compiled."""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from budgetbandits.numerics import fluid
from budgetbandits.policies.paced import selection as rules
from budgetbandits.policies.paced.selection import COSTS, REWARDS, Candidates
from budgetbandits.policies.paced.statistics import COUNT
from budgetbandits.simulation.engines.plain.loop import request_status
from budgetbandits.simulation.engines.plain.posteriors import SUMS, law_of
from budgetbandits.simulation.engines.runtime.records import GOING_ON, float_pointer, whole_pointer


@njit(cache=True, nogil=True, error_model="numpy")
def next_request(game):
    """Whether there is one: GOING_ON, FINISHED or ROUND_LIMIT; it may be of another part than the one before."""
    status = request_status(game)
    if status != GOING_ON:
        return status
    part = whole_pointer(game.request_parts_at)[game.rounds] if game.listed > 0 else part_of_phase(game)
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


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def rewards_of(game, segment):
    """The mean rewards that were drawn for a segment, of the arms that are planned for."""
    return carray(float_pointer(game.rewards_at + 8 * game.planned * segment), (game.planned,))


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def costs_of(game, segment):
    """The costs of the planned arms in a segment."""
    return carray(float_pointer(game.costs_at + 8 * game.planned * segment), (game.planned,))


@njit(cache=True, nogil=True, error_model="numpy")
def solve(game, rate):
    """Find the arm of each segment, the one that mixes two, and the price on money, for the means that were drawn."""
    shape, segments = (game.segments, game.planned), (game.segments,)
    game.mixed, game.upgrade, game.share, game.price, game.price_if_short = fluid.solve(
        carray(float_pointer(game.rewards_at), shape),
        carray(float_pointer(game.costs_at), shape),
        carray(float_pointer(game.weight_at), segments),
        rate,
        carray(whole_pointer(game.arm_at), segments),
        carray(float_pointer(game.break_price_at), segments),
        carray(whole_pointer(game.break_arm_at), segments),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def select_arm(game, rng, rate):
    """The arm that answers: `selection.select`, with the means that were drawn and then those of the posteriors."""
    candidates = candidates_of(game)
    prune_exploration = game.segments > 1 and game.horizon < np.inf
    requests = game.horizon - float(game.rounds) if prune_exploration else 0.0
    segment, weight = game.segment, float_pointer(game.weight_at)[game.segment]
    rewards, costs = rewards_of(game, segment), costs_of(game, segment)
    arm = whole_pointer(game.arm_at)[segment]
    place = rules.place_in_mix(game, arm, segment, weight, rewards, costs, candidates, requests, rng)
    if prune_exploration:
        take_means(game)
        solve(game, rate)
        coming = requests * max(weight, 1.0 / game.segments)
        place = rules.substitute_place(place, game.price, rewards, costs, candidates, coming)
    return candidates.who[place]


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def candidates_of(game):
    """The candidates among the arms, for the segment of the request."""
    arms, segment = game.arms, game.segment
    sums = carray(float_pointer(game.sums_at + 8 * SUMS * arms * segment), (arms, SUMS))
    return Candidates(
        carray(whole_pointer(game.who_at), (arms,)),
        carray(whole_pointer(game.offer_at + 8 * game.part * arms), (arms,)),
        carray(float_pointer(game.law_at + 32 * arms * segment), (arms, 4)),
        carray(float_pointer(game.scales_at), (arms,)),
        sums[:, COUNT],
    )


@njit(cache=True, nogil=True, error_model="numpy")
def take_means(game):
    """Put the means of the posteriors in the place of those that were drawn."""
    who, scales = whole_pointer(game.who_at), float_pointer(game.scales_at)
    for segment in range(game.segments):
        rewards, costs = rewards_of(game, segment), costs_of(game, segment)
        for place in range(game.planned):
            law = law_of(game, segment, who[place])
            rewards[place] = rules.beta_mean(law, REWARDS)
            costs[place] = rules.beta_mean(law, COSTS) * scales[who[place]]
