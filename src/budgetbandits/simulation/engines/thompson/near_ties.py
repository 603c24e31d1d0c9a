"""Near ties, played in stretches: many rounds of two hot arms at once.

`near_tie_chances` says what a near tie, its coin and its chance are, and which rounds are decided without knowing the
chance. A stretch is these rounds in a row. The round that ends it is looked at, with the counts of that moment.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.engines.runtime.binomials import binomial
from budgetbandits.simulation.engines.runtime.draws import exponential, geometric_from_rate, uniform, waiting_rate
from budgetbandits.simulation.engines.runtime.records import whole_pointer
from budgetbandits.simulation.engines.thompson.near_tie_chances import (
    DENSITY,
    Outlook,
    chance_in_full,
    chance_to_win,
    look_ahead,
    pulls_above,
    reach,
)
from budgetbandits.simulation.engines.thompson.outcomes import settle_finite
from budgetbandits.simulation.engines.thompson.state import (
    PRICE,
    arm_of,
    decide,
    hot_arms,
    next_alarm,
    steps_to_the_end,
)

LOG_WIDENING = 1.16  # log(1/(1-x)) <= LOG_WIDENING x for x <= 1/4
RARE_WIN_CHANCE = 0.2  # chance of the rarer winner below which its wins are walked through
SMALLEST_CHANCE = 1e-4  # below this an alarm does as well
SHORTEST_STRETCH = 8  # rounds at a time that are worth it


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def may_be_near_tie(game):
    """Whether a stretch of two hot arms may begin."""
    return game.hot_count == 2 and game.active == game.arms and not game.buffered and game.round >= game.near_tie_retry


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def advance_near_tie(game):
    """Play a stretch of rounds of two hot arms; False when an open round comes next.

    Neither the end of a game nor an alarm may fall into a stretch. It is planned without looking at the alarms and cut
    where the next one rings, so that of these no more is known than the rounds played tell.
    """
    cost_top = whole_pointer(game.cost_top_at)
    first, second = hot_arms(game)[0], hot_arms(game)[1]
    top = max(cost_top[arm_of(game, first)], cost_top[arm_of(game, second)])
    limit = (steps_to_the_end(game) - 1) // top
    fresh = game.left_1 == 0
    won = np.int64(-1)
    if limit >= SHORTEST_STRETCH:
        if fresh:
            plan_near_tie(game, first, second)
        elif not game.anchored:
            game.chance, game.z, _, _, _ = chance_to_win(game, first, second)
        won, lost, low, high = play_stretch(game, limit)
        game.anchored = 0
    if won < 0:
        game.left_1 = game.left_2 = 0
        if limit >= SHORTEST_STRETCH and fresh:
            pulls = whole_pointer(game.pulls_at)
            game.near_tie_retry = game.round + (pulls[arm_of(game, first)] + pulls[arm_of(game, second)]) // 64
        # what was left of the last look ahead was too little
        return limit >= SHORTEST_STRETCH and not fresh
    for slot, count in ((first, won), (second, lost)):
        if count > 0:
            settle_finite(game, arm_of(game, slot), slot, count)
    game.round += won + lost
    game.left_1 -= won
    game.left_2 -= lost
    game.stale = 1
    game.waste += PRICE.stretch
    game.stretched += won + lost
    if high > low:
        look_at_the_tie(game, first, second, low, high)
        return True
    # An alarm that cut the stretch has been seen: the round that comes now answers it, before re-planning can set it
    # again.
    return next_alarm(game) > game.round


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def plan_near_tie(game, first, second):
    """How many pulls of either one look ahead is good for, and how far they may move the chance."""
    game.anchored = 0
    game.left_1, game.left_2 = pulls_above(game, first, second, game.level)
    game.chance, game.z, game.move_1, game.move_2, game.bend, game.skewest, game.error = look_ahead(
        game, first, second, game.left_1, game.left_2
    )


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def look_at_the_tie(game, first, second, low, high):
    """The round that a stretch ended at, whose coin is in [low, high): with the chance as it is now."""
    game.looks += 1
    game.chance, game.z, _, _, _ = chance_to_win(game, first, second)
    coin = low + uniform(game.stream_at) * (high - low)
    chance = game.chance
    if abs(coin - chance) <= game.error:
        chance = chance_in_full(game, first, second)
    game.anchored = 1
    game.round += 1
    decide(game, first if coin < chance else second)
    game.settling = 1


@njit(cache=True, nogil=True, error_model="numpy")
def plan_stretch(outlook, since, limit_1, limit_2, limit):
    """Plan a stretch: (most pulls of the rarer winner, most rounds, error, change of the chance by a pull of each arm).

    0 pulls if it is not worth while. The first arm is the rarer winner; chance and z are those of ``since`` pulls ago.
    A stretch is so long that most end with a look, and so short that looks do not become the rule.
    """
    chance, z, move_1, move_2, bend, skewest, error = outlook
    if chance < SMALLEST_CHANCE or skewest == np.inf or min(limit_1, limit_2) < 2:
        return 0.0, 0.0, 0.0, 0.0, 0.0
    even = chance >= RARE_WIN_CHANCE
    steep = 1.3 * DENSITY * math.exp(-0.5 * z * z)
    if even:
        growth = steep * max(move_1, move_2) / chance
        rounds = min(min(3.0 / math.sqrt(growth), 0.2 / growth), float(min(limit, min(limit_1, limit_2))))
        pulls = rounds
    else:
        growth = steep * (move_1 + move_2 / chance)
        pulls = min(min(2.0 * math.sqrt(chance / growth), 0.4 * chance / growth), float(limit_1))
        rounds = min(2.0 * pulls / chance, float(min(limit, limit_2)))
        pulls = min(pulls, rounds)
    per_1, per_2 = reach(z, since + pulls, since + rounds, move_1, move_2, bend, skewest)
    error += since * max(per_1, per_2)
    # What the bounds have become over the whole length may still be too much: then the length is cut.
    if even:
        cut = min(1.0, (0.25 * chance - error) / (max(per_1, per_2) * rounds))
    else:
        cut = min(1.0, (0.9 * chance - error) / (per_1 * pulls + per_2 * rounds))
    pulls *= cut
    rounds *= cut
    if not (rounds >= SHORTEST_STRETCH and pulls >= 2.0):
        pulls = 0.0
    return pulls, rounds, error, per_1, per_2


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def play_stretch(game, limit):
    """(pulls of the first arm, of the second, low, high): rounds up to one to look at, whose coin is in [low, high).

    low = high if no round is to be looked at; -1 pulls if too few can be played so. How long a stretch is planned to be
    does not depend on the next alarm, which cuts it.
    """
    # one pull of each is kept for the look
    limit_1, limit_2 = game.left_1 - 1, game.left_2 - 1
    outlook = Outlook(game.chance, game.z, game.move_1, game.move_2, game.bend, game.skewest, game.error)
    swapped = game.chance > 0.5
    if swapped:
        outlook = seen_from_the_second(outlook)
        limit_1, limit_2 = limit_2, limit_1
    pulls, rounds, error, per_1, per_2 = plan_stretch(outlook, 1.0 if game.anchored else 0.0, limit_1, limit_2, limit)
    if pulls == 0.0:
        return np.int64(-1), np.int64(0), 0.0, 0.0
    stream, chance, silent = game.stream_at, outlook.chance, next_alarm(game) - game.round
    if chance >= RARE_WIN_CHANCE:
        won, lost, low, high = play_even(stream, chance, error, max(per_1, per_2), np.int64(rounds), silent)
    else:
        won, lost, low, high = play_uneven(
            stream, chance, error, per_1, per_2, np.int64(pulls), np.int64(rounds), silent
        )
    if swapped:
        return lost, won, 1.0 - high, 1.0 - low
    return won, lost, low, high


@njit(cache=True, nogil=True, error_model="numpy")
def seen_from_the_second(outlook):
    """The outlook with the two arms exchanged."""
    chance, z, move_1, move_2, bend, skewest, error = outlook
    return Outlook(1.0 - chance, z, move_2, move_1, bend, skewest, error)


@njit(cache=True, nogil=True, error_model="numpy")
def play_even(stream, chance, error, per_pull, rounds, silent):
    """A stretch in which both arms win often.

    Round j is looked at with a chance of at least what p can have moved by then, in the same proportion on either side
    of the coin, so that the rounds before are plain coins.
    """
    base = error / chance
    slope = per_pull / chance
    level = exponential(stream) / LOG_WIDENING
    place = 2.0 * level / (base + math.sqrt(base * base + 2.0 * slope * level))
    last = min(rounds, silent)
    if place >= last:
        wins = binomial(stream, last, chance)
        return wins, last - wins, 0.0, 0.0
    look = np.int64(place)
    wins = binomial(stream, look, chance)
    looked = -math.expm1(-LOG_WIDENING * (base + slope * (look + 0.5)))
    return wins, look - wins, chance * (1.0 - looked), chance * (1.0 - looked) + looked


@njit(cache=True, nogil=True, error_model="numpy")
def play_uneven(stream, chance, error, per_1, per_2, pulls, rounds, silent):
    """A stretch in which the first arm wins seldom: from one of its wins to the next."""
    widest = error + per_1 * pulls + per_2 * rounds
    rate = waiting_rate(math.log(chance + widest))
    last = min(rounds, silent)
    wins = np.int64(0)
    played = np.int64(0)
    while wins < pulls:
        wait = geometric_from_rate(stream, rate)
        if wait > last - played:
            return wins, last - wins, 0.0, 0.0
        played += wait
        coin = uniform(stream) * (chance + widest)
        moved = error + per_1 * wins + per_2 * (played - 1 - wins)
        if coin < chance - moved:
            wins += 1
        elif coin < chance + moved:
            return wins, played - 1 - wins, chance - moved, chance + moved
    return wins, played - wins, 0.0, 0.0
