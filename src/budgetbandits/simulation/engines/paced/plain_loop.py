"""The plain loops of policies with a budget and a horizon: `reference.play`, compiled, with the same draws in order.

Outcomes are drawn by the Python side, in the batches of the reference simulator: any law will do. The formulas are the
policies' own functions, compiled.

A `GAME` is one record, as in the other engines. Its arrays are held by address and kept alive by a `PacedRecord`.
The arms may change on the way, in *phases*: from a request on there are other laws, and other arms are offered. In each
phase every segment has a *part* of its own, and the parts of requests come in a list.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.typing import NDArray

from budgetbandits.policies import planning
from budgetbandits.policies.paced import hope, statistics
from budgetbandits.policies.paced.selection import COSTS, REWARDS
from budgetbandits.policies.paced.statistics import COST, COUNT, PAID, REWARD, SMALLEST_COST
from budgetbandits.policies.primal_dual import lower
from budgetbandits.simulation.engines.index import rules as index_rules  # noqa: F401 - lets `lower`, `hoped_means` be called here
from budgetbandits.simulation.engines.paced.posteriors import SUMS, law_of, over_segments, renew, sums_of
from budgetbandits.simulation.engines.paced.selection import (
    costs_of,
    next_request,
    offered,
    rewards_of,
    select_arm,
    solve,
    take_means,
)
from budgetbandits.simulation.engines.runtime.records import (
    FINISHED,
    GOING_ON,
    Record,
    add_cost,
    budget_end,
    float_pointer,
    place_of_equal,
    read_outcome,
    whole_pointer,
)
from budgetbandits.simulation.engines.sampling import engine as sampling_engine  # noqa: F401 - lets `add_outcome` call `trial`
from budgetbandits.simulation.reference import TOLERANCE

for function in (statistics.add_outcome, planning.kept_share, hope.pulls_left, hope.hoped_means):
    register_jitable(function)

SIZES = (
    "arms",
    "segments",
    "width",
    "parts",
    "chunk",
    "listed",
    "max_rounds",
    "rounds",
    "part",
    "segment",
    "planned",
    "every",
)
"""Sizes: the arms, the segments that the policy tells apart, the segments that there are, and the parts; whether the
requests' parts are listed; the rounds played, the request's part and segment, how many arms are planned for; and
after how many requests outcomes fade, 0 for never."""

CHOICE = ("leader", "last", "opened", "unpriced", "mixed", "upgrade")
"""The arm that was chosen and not pulled and the one that was pulled last (-1 if none); how many arms have had their
first pull handed out, and how many have no cost yet; the segment that mixes two arms, and the more expensive one."""

MONEY = ("budget", "horizon", "reward", "spent", "drift", "tolerance")
"""Both resources; sums so far, and what rounding has left out of the money spent."""

PACED_FIELDS = (
    *("trials", "kept", "pooling", "hope", "reward_squares", "cost_squares"),
    *("share", "price", "price_if_short"),
)
"""Of `bts-paced`: its parameters, what is kept of outcomes when they fade, the squares of the two outcomes that rewards
and costs begin with, the share of the costlier arm where two are mixed, the price on money, and what it would be if
there were too little for the others."""

PRICE_FIELDS = ("log_money", "log_time", "width_of_bounds", "money_use", "time_use", "money_growth", "time_growth")
"""Of `primal-dual-bwk`: the logarithms of its prices, and what its methods of the same names say."""

ARM_ARRAYS = ("sums", "law", "shift", "scales", "rewards", "costs", "who")
"""Of segments and arms: sums of outcomes, parameters of posteriors, how far segments are apart, drawn means; of arms:
what a cost of 1 is, and the numbers of those that are planned for now."""

SEGMENT_ARRAYS = ("answered", "weight", "arm", "break_price", "break_arm")
"""How many of its requests were answered, and how often it comes by that; the arm that it has in the program, the price
at which it would have a more expensive one, and that."""

PART_ARRAYS = ("first", "list", "offer", "plan", "buffer", "used", "filled", "pulls")
"""The first request of each phase, the parts of all requests; which arms each part offers, and which are planned for
then; its arms' outcomes that were drawn ahead, and pulls."""

GAME = np.dtype(
    [(name, np.int64) for name in (*SIZES, *CHOICE)]
    + [(name, np.float64) for name in (*MONEY, *PACED_FIELDS, *PRICE_FIELDS)]
    + [(f"{name}_at", np.int64) for name in (*ARM_ARRAYS, *SEGMENT_ARRAYS, *PART_ARRAYS)]
)


class PacedRecord(Record):
    """The record of a game and its arrays: phases that begin at these requests, parts that offer these arms and for
    which is planned with those, and the number of segments that the policy tells apart."""

    def __init__(
        self, first: Sequence[int], offer: NDArray[np.bool_], plan: NDArray[np.bool_], segments: int, chunk: int
    ) -> None:
        super().__init__(GAME)
        parts, arms = offer.shape
        self.point_to(sums=np.zeros((segments, arms, SUMS)), law=np.zeros((segments, arms, 4)))
        self.point_to(shift=np.zeros((segments, arms, 4)), scales=np.ones(arms))
        self.point_to(rewards=np.zeros((segments, arms)), costs=np.zeros((segments, arms)))
        self.point_to(who=np.zeros(arms, dtype=np.int64), first=np.array([*first], dtype=np.int64))
        self.point_to(answered=np.zeros(segments), weight=np.ones(segments), break_price=np.zeros(segments))
        self.point_to(**{name: np.zeros(segments, dtype=np.int64) for name in ("arm", "break_arm")})
        self.point_to(
            offer=offer.astype(np.int64), plan=plan.astype(np.int64), buffer=np.zeros((parts * arms, chunk, 2))
        )
        self.point_to(**{name: np.zeros(parts * arms, dtype=np.int64) for name in ("used", "filled", "pulls")})
        self.point_to(list=np.zeros(0, dtype=np.int64))
        self.set(arms=arms, segments=segments, width=parts // len(first), parts=parts, chunk=chunk)
        self.set(leader=-1, last=-1, part=-1, unpriced=arms, tolerance=TOLERANCE)
        self._start = self.fields()

    def clear(self, listed: NDArray[np.int64] | None = None, **fields: float) -> None:
        """Make everything ready for a game with these fields, and with requests of the listed parts."""
        self.restart(self._start)
        if listed is not None:
            self.point_to(list=listed)
            self.set(listed=1)
        self.set(**fields)
        for name in ("sums", "answered", "used", "filled", "pulls"):
            self.arrays[name][:] = 0


@njit(cache=True, nogil=True, error_model="numpy")
def play_paced(games, rng):
    """A game of `bts-paced`, until it ends or an arm needs outcomes; resumable. Returns a `status`."""
    game = games[0]
    status = GOING_ON
    while status == GOING_ON:
        status = draw_and_mix(game, rng) if game.leader < 0 else pull(game, rng)
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def play_priced(games, index, rng):
    """The same of `primal-dual-bwk`."""
    game = games[0]
    status = GOING_ON
    while status == GOING_ON:
        status = best_index(game, index, rng) if game.leader < 0 else pull(game, rng)
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def draw_and_mix(game, rng):
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
    return max(game.budget - paid, 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def best_index(game, index, rng):
    """Make the next arm without a pull the leader, else the arm with the highest index, and raise the prices; exact
    ties are broken uniformly, as `policies.base.best` does."""
    status = next_request(game)
    if status != GOING_ON:
        return status
    while game.opened < game.arms:
        arm = game.opened
        game.opened += 1
        if offered(game, arm) and sums_of(game, 0, arm)[COUNT] == 0.0:
            game.leader = arm
            return GOING_ON
    top = max(game.log_money, game.log_time)
    money = math.exp(game.log_money - top) * game.money_use
    time = math.exp(game.log_time - top) * game.time_use
    scores, who = rewards_of(game, 0), whole_pointer(game.who_at)
    best, ties = -np.inf, 0
    for place in range(game.planned):
        sums = sums_of(game, 0, who[place])
        pulls = sums[COUNT]
        value = np.inf
        if pulls > 0.0:
            means = sums[REWARD] / pulls, sums[COST] / pulls
            value = index(means[0], means[1], pulls, float(game.rounds), game.width_of_bounds, money, time, np.int64(0))
        scores[place] = value
        if value > best:
            best, ties, game.leader = value, 1, who[place]
        elif value == best:
            ties += 1
    if ties > 1:
        game.leader = who[place_of_equal(scores, best, rng.integers(0, ties))]
    raise_prices(game)
    return GOING_ON


@njit(cache=True, nogil=True, error_model="numpy")
def raise_prices(game):
    """By what the chosen arm is sure to use of either resource; an arm never pulled uses nothing yet."""
    sums = sums_of(game, 0, game.leader)
    pulls = sums[COUNT]
    if pulls > 0.0:
        game.log_money += game.money_growth * lower(sums[COST] / pulls, pulls, game.width_of_bounds)
        game.log_time += game.time_growth


@njit(cache=True, nogil=True, error_model="numpy")
def pull(game, rng):
    """Pull the leader: GOING_ON, FINISHED, or the place in the buffer whose outcomes have run out; then nothing has
    happened."""
    place = game.part * game.arms + game.leader
    found, reward, cost = read_outcome(game, place)
    if not found:
        return place
    relative = cost / float_pointer(game.scales_at)[game.leader]
    if game.every > 0 and (game.rounds + 1) % game.every == 0:
        fade(game)
    statistics.add_outcome(sums_of(game, game.segment, game.leader), reward, relative, rng, game.trials)
    whole_pointer(game.pulls_at)[place] += 1
    float_pointer(game.answered_at)[game.segment] += 1.0
    game.rounds += 1
    game.last, game.leader = game.leader, -1
    return pay(game, reward, cost)


@njit(cache=True, nogil=True, error_model="numpy")
def fade(game):
    """What was learned so far counts less, of all arms: `planning.Fading`."""
    for arm in range(game.arms):
        share = game.kept
        if arm != game.leader:
            share = planning.kept_share(over_segments(game, arm, COUNT), game.kept)
        for segment in range(game.segments):
            sums_of(game, segment, arm)[COUNT:] *= share


@njit(cache=True, nogil=True, error_model="numpy")
def pay(game, reward, cost):
    """A cost that reaches the budget ends the game; the reward counts where the cost is still covered."""
    ends, covered = budget_end(game.spent + cost, game.budget, game.tolerance)
    if ends:
        game.reward += reward * covered
        game.spent += cost * covered
        return FINISHED
    game.reward += reward
    add_cost(game, cost)
    return GOING_ON
