"""The record of `bts-paced` and `primal-dual-bwk`, and the rule of the first: draw means, solve, learn.

The arms may change on the way, in *phases*: from a request on there are other laws, and other arms are offered. In each
phase every segment has a *part* of its own, and the parts of requests come in a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from budgetbandits.policies import planning
from budgetbandits.policies.paced import hope, statistics
from budgetbandits.policies.paced.selection import COSTS, REWARDS
from budgetbandits.policies.paced.statistics import COUNT, PAID, SMALLEST_COST
from budgetbandits.simulation.engines.plain.loop import PlainRecord, loop_of, pull_of
from budgetbandits.simulation.engines.plain.posteriors import SUMS, law_of, over_segments, renew, sums_of
from budgetbandits.simulation.engines.plain.selection import (
    costs_of,
    next_request,
    rewards_of,
    select_arm,
    solve,
    take_means,
)
from budgetbandits.simulation.engines.runtime.records import (
    GOING_ON,
    PULLING,
    Floats,
    Wholes,
    add_money,
    float_pointer,
    largest_budget,
    read_outcome,
    whole_pointer,
)


class PacedRecord(PlainRecord):
    """The record of a game and its arrays: phases that begin at these requests, parts that offer these arms and for
    which is planned with those, and the number of segments that the policy tells apart.

    The last fields are of `primal-dual-bwk`, those before them of `bts-paced`.
    """

    segments: int  # how many the policy tells apart
    width: int  # how many there are
    parts: int
    listed: int  # whether the parts of the requests are listed
    segment: int  # of the request
    planned: int  # how many arms are planned for
    every: int  # after how many requests outcomes fade, 0 for never
    opened: int  # how many arms have had their first pull handed out
    unpriced: int  # how many arms have no cost yet
    mixed: int  # the segment that mixes two arms, and the more expensive one
    upgrade: int
    first: Wholes  # the first request of each phase
    request_parts: Wholes  # the parts of all requests
    offer: Wholes  # the arms that each part offers
    plan: Wholes  # the arms that are planned for in each part
    sums: Floats  # of outcomes, by segment and arm
    law: Floats  # parameters of posteriors, by segment and arm
    shift: Floats  # how far segments are apart, by segment and arm
    rewards: Floats  # drawn means, by segment and arm, as the next
    costs: Floats
    scales: Floats  # what a cost of 1 is, by arm
    who: Wholes  # the numbers of the arms that are planned for now
    answered: Floats  # requests of each segment that were answered
    weight: Floats  # how often each segment comes by that
    arm: Wholes  # the arm of each segment in the program
    break_price: Floats  # the price at which the segment would have a more expensive arm, and that arm
    break_arm: Wholes
    trials: float  # parameters of the policy, as the next two
    pooling: float
    hope: float
    kept: float  # what is kept of outcomes when they fade
    reward_squares: float  # the squares of the two outcomes that rewards begin with, as the next of costs
    cost_squares: float
    share: float  # of the more expensive arm where two are mixed
    price: float  # on money
    price_if_short: float  # what it would be if there were too little for the others
    log_money: float  # the logarithms of the prices of both resources
    log_time: float
    width_of_bounds: float  # what the methods of `primal-dual-bwk` of the same names say, as the next four
    money_use: float
    time_use: float
    money_growth: float
    time_growth: float

    def __init__(
        self, first: Sequence[int], offer: NDArray[np.bool_], plan: NDArray[np.bool_], segments: int, chunk: int
    ) -> None:
        parts, arms = offer.shape
        super().__init__(arms, parts * arms, 1, chunk)
        self.point_to(sums=np.zeros((segments, arms, SUMS)), law=np.zeros((segments, arms, 4)))
        self.point_to(shift=np.zeros((segments, arms, 4)), scales=np.ones(arms))
        self.point_to(rewards=np.zeros((segments, arms)), costs=np.zeros((segments, arms)))
        self.point_to(who=np.zeros(arms, dtype=np.int64), first=np.array([*first], dtype=np.int64))
        self.point_to(answered=np.zeros(segments), weight=np.ones(segments), break_price=np.zeros(segments))
        self.point_to(**{name: np.zeros(segments, dtype=np.int64) for name in ("arm", "break_arm")})
        self.point_to(offer=offer.astype(np.int64), plan=plan.astype(np.int64))
        self.point_to(request_parts=np.zeros(0, dtype=np.int64))
        self.set(segments=segments, width=parts // len(first), parts=parts, part=-1, unpriced=arms)
        self._start = self.fields()

    def clear(self) -> None:
        super().clear()
        self.sums[:] = self.answered[:] = 0.0

    def list_requests(self, parts: Wholes) -> None:
        """Let requests be of these parts, one after the other."""
        self.point_to(request_parts=parts)
        self.set(listed=1)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_and_mix(game, rank, rng):
    """Draw or hope for means of all segments and the arms planned for, and make an arm of the best mix the leader."""
    status = next_request(game)
    if status != GOING_ON:
        return status
    renew(game)
    weigh_segments(game)
    rate = rate_of(game)
    if game.hope > 0.0:
        hope_for_means(game, rate)
    else:
        draw_means(game, rng)
    solve(game, rate)
    game.leader = select_arm(game, rng, rate)
    game.stage = PULLING
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def draw_means(game, rng):
    """Rewards first, then costs."""
    who, scales = whole_pointer(game.who_at), float_pointer(game.scales_at)
    for segment in range(game.segments):
        rewards = rewards_of(game, segment)
        for place in range(game.planned):
            law = law_of(game, segment, who[place])
            rewards[place] = max(rng.beta(law[REWARDS], law[REWARDS + 1]), SMALLEST_COST)
    for segment in range(game.segments):
        costs = costs_of(game, segment)
        for place in range(game.planned):
            law = law_of(game, segment, who[place])
            costs[place] = max(rng.beta(law[COSTS], law[COSTS + 1]), SMALLEST_COST) * scales[who[place]]


@njit(cache=True, nogil=True, error_model="numpy")
def hope_for_means(game, rate):
    """The same without a draw: `PacedThompson.hoped`."""
    who, scales = whole_pointer(game.who_at), float_pointer(game.scales_at)
    take_means(game)
    solve(game, rate)
    requests, money = max(game.horizon - float(game.rounds), 1.0), money_left(game)
    for segment in range(game.segments):
        rewards, costs = rewards_of(game, segment), costs_of(game, segment)
        for place in range(game.planned):
            arm = who[place]
            law, scale = law_of(game, segment, arm), scales[arm]
            reward_count, cost_count = law[REWARDS] + law[REWARDS + 1], law[COSTS] + law[COSTS + 1]
            reward, cost = law[REWARDS] / reward_count, law[COSTS] / cost_count
            left = hope.pulls_left(cost * scale, float_pointer(game.weight_at)[segment], requests, money)
            outcomes, price = sums_of(game, segment, arm)[COUNT], game.price * scale
            rewards[place], cost = hope.hoped_means(
                reward, reward_count, cost, cost_count, price, outcomes, left, game.hope
            )
            costs[place] = cost * scale


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_segments(game):
    """How often each segment has come, and once more."""
    answered, weight = float_pointer(game.answered_at), float_pointer(game.weight_at)
    total = float(game.rounds + game.segments)
    for segment in range(game.segments):
        weight[segment] = (answered[segment] + 1.0) / total


@njit(cache=True, nogil=True, error_model="numpy")
def rate_of(game):
    """Money for each request that is still to come."""
    return money_left(game) / max(game.horizon - float(game.rounds), 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def money_left(game):
    """The money that is left of the budget."""
    scales, paid = float_pointer(game.scales_at), 0.0
    for segment in range(game.segments):
        for arm in range(game.arms):
            paid += sums_of(game, segment, arm)[PAID] * scales[arm]
    return max(largest_budget(game) - paid, 0.0)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def learn_outcome(game, place, reward, cost, learn, rng):
    """Learn what the leader brought in the request's segment."""
    relative = cost / float_pointer(game.scales_at)[game.leader]
    if game.every > 0 and game.rounds % game.every == 0:
        fade(game)
    statistics.add_outcome(sums_of(game, game.segment, game.leader), reward, relative, rng, game.trials)
    float_pointer(game.answered_at)[game.segment] += 1.0
    add_money(game, reward, cost)


@njit(cache=True, nogil=True, error_model="numpy")
def fade(game):
    """Let everything that was learned so far count less: `planning.Fading`."""
    for arm in range(game.arms):
        share = game.kept
        if arm != game.leader:
            share = planning.kept_share(over_segments(game, arm, COUNT), game.kept)
        for segment in range(game.segments):
            sums_of(game, segment, arm)[COUNT:] *= share


pull_paced = pull_of("paced", read_outcome, learn_outcome)
play_paced = loop_of("paced", draw_and_mix, pull_paced)
"""The loop of `bts-paced`."""
