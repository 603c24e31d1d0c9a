"""The compiled game: which arm wins each round, without drawing arms that cannot win.

`play_game` is the loop.  Open rounds (`open_round`) draw every hot arm and listen to the alarms of the cold ones.  In
blocks (`advance_block`) a single hot arm, the leader, is pulled untouched until an alarm says that something may
happen: a duel.  Two hot arms with many pulls are pulled in stretches (`advance_near_tie`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import exponential, geometric_from_rate, uniform, waiting_rate
from budgetbandits.simulation.compiled.pointers import float_pointer, whole_pointer
from budgetbandits.simulation.compiled.status import FINISHED
from budgetbandits.simulation.thompson.alarms import first_ringing, widen
from budgetbandits.simulation.thompson.contests import (
    apply_level,
    become_cold,
    become_hot,
    keep_hot_constants,
    keeps_ratio,
    leader_loses,
    open_window,
    refresh_hot_arms,
    search_below,
    set_next_alarm,
    take_tangent,
)
from budgetbandits.simulation.thompson.envelope import SLOPE, draw_best_unpulled, draw_shortfall, log_shortfall
from budgetbandits.simulation.thompson.hot_arms import can_sketch, draw_hot, resolve_hot, sketch_hot
from budgetbandits.simulation.thompson.memory import (
    SETTLED,
    arm_of,
    counts_of,
    hot_arm,
    is_hot,
    next_alarm,
    steps_to_the_end,
    tangent_of,
)
from budgetbandits.simulation.thompson.near_ties import (
    FEWEST,
    chance_to_win,
    look,
    look_ahead,
    play_stretch,
    pulls_above,
)
from budgetbandits.simulation.thompson.outcomes import settle_buffered, settle_finite, settle_one
from budgetbandits.simulation.thompson.planning import (
    PRICE_BLOCK_RING,
    PRICE_COLD_PULL,
    PRICE_DIP,
    PRICE_FALLBACK_ARM,
    PRICE_HOT,
    PRICE_OPEN_RING,
    PRICE_PAIR,
    PRICE_ROUND,
    PRICE_TANGENT,
    PRICE_WINDOW,
    choose_level,
)

POOL = -2
NUDGE = 1.0 + 1e-12  # what a restless game moves its level by: all alarms are set anew, and nothing else changes


@njit(cache=True, nogil=True, error_model="numpy")
def play(games):
    """Play until every budget's game has ended (FINISHED) or an arm needs outcomes (its number); resumable."""
    game = games[0]
    if game.started == 0:
        game.started = 1
        apply_level(game)
        game.try_blocks = 1
    while True:
        if game.settling:
            status = settle_pending(game)
            if status != SETTLED:
                return status
        if game.duel and decide_duel(game):
            continue
        if (game.waste > game.limit or (game.in_blocks and game.window_left == 0)) and game.pending > 0:
            game.settling = 1
            continue
        # Every alarm up to the present round has been answered; those still set are for rounds not yet played.
        if game.waste > game.limit:
            replan(game)
        if game.try_blocks or (game.in_blocks and game.window_left == 0):
            enter_block(game)
        if game.in_blocks:
            advance_block(game)
        elif not (may_be_near_tie(game) and advance_near_tie(game)) and open_round(game) == FINISHED:
            return FINISHED


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def decide(game, slot):
    """The pull of this round is decided and waits to be settled."""
    game.pending = 1
    game.pending_slot = slot


@njit(cache=True, nogil=True, error_model="numpy")
def forget_near_tie(game):
    game.left_1 = game.left_2 = game.pair_retry = 0


# --- settling -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def settle_pending(game):
    """Draw what the decided pulls bring, and look at the arm anew; SETTLED unless the game stops here."""
    slot = game.pending_slot
    arm = arm_of(game, slot)
    game.settlements += 1
    if game.buffered:
        status = settle_buffered(game, arm, slot, game.pending)
    elif game.pending == 1 and settle_one(game, arm, slot):
        status = np.int64(SETTLED)
    else:
        status = np.int64(settle_finite(game, arm, slot, game.pending))
    if status == SETTLED:
        game.pending = 0
        game.settling = 0
        if game.left_1 > 0 and is_hot(game, slot):
            count_near_tie(game, slot)
        look_at(game, slot, whole_pointer(game.pulls_at)[arm])
    return status


@njit(cache=True, nogil=True, error_model="numpy")
def count_near_tie(game, slot):
    """Whatever way an arm of a near tie came to be pulled, the look ahead covers so many pulls and no more."""
    if slot == hot_arm(game, 0):
        game.left_1 -= 1
    else:
        game.left_2 -= 1
    if min(game.left_1, game.left_2) <= 0:
        game.left_1 = game.left_2 = 0


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def look_at(game, slot, pulls):
    """A cold arm's alarm was set for the posterior it had; a hot one may have cooled down."""
    next_check = whole_pointer(game.next_check_at)
    hot = is_hot(game, slot)
    if hot and (game.in_blocks or pulls < next_check[slot]):
        if not game.in_blocks:
            keep_hot_constants(game, slot)
        return
    game.tangents += 1
    game.waste += PRICE_TANGENT
    next_check[slot] = pulls + pulls // 8 + 1
    if take_tangent(game, slot):
        if hot:
            forget_near_tie(game)
            become_cold(game, slot)
            game.try_blocks = 1
        set_next_alarm(game, slot, game.round - 1)
        return
    if not hot:
        forget_near_tie(game)
        become_hot(game, slot)
        if game.in_blocks:
            game.in_blocks = 0
            keep_hot_constants(game, game.leader)
    keep_hot_constants(game, slot)


# --- planning -----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def replan(game):
    """Look for a cheaper level; a new one sorts every arm anew."""
    game.plans += 1
    if game.restless > 0.0:
        chosen, work = game.level * NUDGE if game.plans % 2 == 0 else game.level / NUDGE, 0
    else:
        chosen, work = choose_level(
            game.level, whole_pointer(game.posterior_at), float_pointer(game.tangents_at),
            whole_pointer(game.hot_place_at), game.active, game.arms - game.active, game.classical, game.log_hot,
            game.allow_blocks > 0, game.pairs_from,
        )  # fmt: skip
    game.plan_tangents += work
    cost = work * PRICE_TANGENT
    if chosen != game.level:
        game.level_changes += 1
        game.level = chosen
        apply_level(game)
        cost += game.active * PRICE_TANGENT
        game.patience = max(3.0, game.patience * 0.5)
        game.in_blocks = 0
        forget_near_tie(game)
    else:
        game.patience = min(64.0, game.patience * 2.0)
    game.limit = game.restless if game.restless > 0.0 else cost * game.patience
    game.waste = 0.0
    game.try_blocks = 1 - game.in_blocks


# --- blocks -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def enter_block(game):
    """Open a window for the leader, if a single hot arm is left that hardly ever falls below the level."""
    game.try_blocks = 0
    was_block = game.in_blocks
    game.in_blocks = 0
    if game.allow_blocks and game.hot_count == 1 and game.active == game.arms:
        game.leader = hot_arm(game, 0)
        open_window(game)
        game.windows += 1
        game.waste += PRICE_WINDOW
        if game.log_ceiling < game.log_largest_dip:
            game.in_blocks = 1
            game.dip = game.round - 1 + geometric_from_rate(game.stream_at, waiting_rate(game.log_ceiling))
            game.pending_slot = game.leader
    if was_block and not game.in_blocks:
        refresh_hot_arms(game)


@njit(cache=True, nogil=True, error_model="numpy")
def advance_block(game):
    """Pull the leader up to the next alarm, dip or end of the window; what happens there may be a duel."""
    game.pending_slot = game.leader
    upcoming = min(next_alarm(game), game.dip)
    free = min(upcoming - game.round, game.window_left)
    game.pending += free
    game.round += free
    game.window_left -= free
    if game.window_left == 0:
        return
    game.duel_slot = -1
    game.duel_coin = 0
    game.duel_dip = np.int64(game.dip == game.round)
    game.duel_ratio = 0.0
    while next_alarm(game) == game.round:
        answer_in_block(game)
    if game.duel_slot < 0 and game.duel_dip == 0:
        game.pending += 1
        game.round += 1
        game.window_left -= 1
        return
    game.duel = 1
    game.settling = np.int64(game.pending > 0)


@njit(cache=True, nogil=True, error_model="numpy")
def answer_in_block(game):
    """A cold arm may exceed the level: if it does it challenges the leader, unless that surely draws more."""
    stream = game.stream_at
    slot = first_ringing(whole_pointer(game.tree_at), game.base)
    game.block_rings += 1
    game.waste += PRICE_BLOCK_RING
    excess = exponential(stream) / tangent_of(game, slot, SLOPE)
    set_next_alarm(game, slot, game.round)
    coin = np.int64(0)
    if game.duel_dip == 0 and game.duel_slot < 0 and next_alarm(game) > game.round:
        log_chance = min(game.log_ceiling + game.tilt * excess, game.log_half + 0.5 * game.tilt * excess)
        if log_chance < game.log_direct:
            if exponential(stream) < -log_chance:
                game.leader_spared += 1
                return
            coin = np.int64(1)
    ratio = game.level * math.exp(excess)
    if ratio > game.duel_ratio and keeps_ratio(game, slot, ratio):
        game.accepted += 1
        game.duel_ratio = ratio
        game.duel_slot = slot
        game.duel_coin = coin


@njit(cache=True, nogil=True, error_model="numpy")
def decide_duel(game):
    """The leader's pulls up to this round are settled now, so its posterior is the one of this round.

    True when another arm has won, whose pull is to be settled at once.
    """
    game.duel = 0
    winner = game.leader
    below = np.inf
    if game.duel_dip > 0:
        below = take_dip(game)
    if below < np.inf:
        game.dips_below += 1
        if game.duel_slot >= 0:
            winner = game.duel_slot
        else:
            game.fallbacks += 1
            game.waste += PRICE_FALLBACK_ARM * game.active
            winner = search_below(game, below, game.leader)
    elif game.duel_slot >= 0:
        game.duels += 1
        if leader_loses(game):
            winner = game.duel_slot
    decide(game, winner)
    game.round += 1
    if winner == game.leader:
        game.window_left -= 1
        return False
    game.settling = 1
    return True


@njit(cache=True, nogil=True, error_model="numpy")
def take_dip(game):
    """The leader's ratio if it falls below the level in this round, else infinite."""
    game.dips += 1
    game.waste += PRICE_DIP
    game.dip = game.round + geometric_from_rate(game.stream_at, waiting_rate(game.log_ceiling))
    a, b, c, d = counts_of(game, game.leader)
    log_now = log_shortfall(a, b, c, d, game.level, game.tilt, game.classical)
    if exponential(game.stream_at) >= game.log_ceiling - log_now:
        return draw_shortfall(game.stream_at, a, b, c, d, game.level, game.tilt, game.classical)
    return np.inf


# --- near ties ----------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def may_be_near_tie(game):
    return game.hot_count == 2 and game.active == game.arms and not game.buffered and game.round >= game.pair_retry


@njit(cache=True, nogil=True, error_model="numpy")
def advance_near_tie(game):
    """Play a stretch of rounds of two hot arms; False when an open round comes next.

    Neither the end of a game nor an alarm may fall into a stretch. It is planned without looking at the alarms and cut
    where the next one rings, so that of these no more is known than the rounds played tell.
    """
    posterior, cost_top = whole_pointer(game.posterior_at), whole_pointer(game.cost_top_at)
    first, second = hot_arm(game, 0), hot_arm(game, 1)
    top = max(cost_top[arm_of(game, first)], cost_top[arm_of(game, second)])
    most = (steps_to_the_end(game) - 1) // top
    fresh = game.left_1 == 0
    won = np.int64(-1)
    if most >= FEWEST:
        if fresh:
            plan_near_tie(game, first, second)
        elif not game.anchored:
            game.chance, game.z, _, _, _ = chance_to_win(posterior, first, second, game.classical)
        # one pull of each is kept for the look
        won, lost, low, high = play_stretch(
            game.stream_at, game.chance, game.z, 1.0 if game.anchored else 0.0, game.move_1, game.move_2, game.bend,
            game.skewest, game.error, game.left_1 - 1, game.left_2 - 1, most, next_alarm(game) - game.round,
        )  # fmt: skip
        game.anchored = 0
    if won < 0:
        game.left_1 = game.left_2 = 0
        if most >= FEWEST and fresh:
            pulls = whole_pointer(game.pulls_at)
            game.pair_retry = game.round + (pulls[arm_of(game, first)] + pulls[arm_of(game, second)]) // 64
        # what was left of the last look ahead was too little
        return most >= FEWEST and not fresh
    for slot, count in ((first, won), (second, lost)):
        if count > 0:
            settle_finite(game, arm_of(game, slot), slot, count)
    game.round += won + lost
    game.left_1 -= won
    game.left_2 -= lost
    game.stale = 1
    game.waste += PRICE_PAIR
    game.paired += won + lost
    if high > low:
        look_at_the_tie(game, first, second, low, high)
        return True
    # An alarm that cut the stretch has been seen: the round that comes now answers it, before re-planning can set it
    # anew.
    return next_alarm(game) > game.round


@njit(cache=True, nogil=True, error_model="numpy")
def plan_near_tie(game, first, second):
    """How many pulls of either one look ahead is good for, and how far they may move the chance."""
    posterior = whole_pointer(game.posterior_at)
    game.anchored = 0
    game.left_1, game.left_2 = pulls_above(posterior, first, second, game.level, game.pairs_from, game.classical)
    game.chance, game.z, game.move_1, game.move_2, game.bend, game.skewest, game.error = look_ahead(
        posterior, first, second, game.left_1, game.left_2, game.classical
    )


@njit(cache=True, nogil=True, error_model="numpy")
def look_at_the_tie(game, first, second, low, high):
    """The round that a stretch ended at, whose coin is in [low, high): with the chance as it is now."""
    game.looks += 1
    wins, game.chance, game.z = look(
        game.stream_at, whole_pointer(game.posterior_at), first, second, low, high, game.error, game.classical
    )
    game.anchored = 1
    game.round += 1
    decide(game, first if wins else second)
    game.settling = 1


# --- open rounds --------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, error_model="numpy")
def open_round(game):
    """Draw every hot arm, answer the alarms; FINISHED when the last game has ended, which only frozen arms can do."""
    if game.stale:
        game.stale = 0
        refresh_hot_arms(game)
    game.open_rounds += 1
    game.hot_draws += game.hot_count
    game.waste += PRICE_ROUND + game.hot_count * PRICE_HOT
    best = 0.0
    winner = np.int64(-1)
    if game.hot_count == 2 and game.active == game.arms and sketchable(game):
        best, winner = draw_two(game)
    else:
        if game.active < game.arms:
            best = draw_best_unpulled(game.stream_at, float(game.arms - game.active), game.classical)
            winner = np.int64(POOL)
        best, winner = draw_all(game, best, winner)
    if best < np.inf:
        best, winner = answer_alarms(game, best, winner)
        if best < game.level:
            game.fallbacks += 1
            game.waste += PRICE_FALLBACK_ARM * (game.active - game.hot_count)
            winner = search_below(game, best, winner)
    game.round += 1
    if winner == POOL:
        place = game.active + np.int64(uniform(game.stream_at) * (game.arms - game.active))
        if game.frozen:
            # Frozen arms never leave the pool; count the pull and go on.
            return settle_finite(game, arm_of(game, place), place, np.int64(1))
        winner = take_from_pool(game, place)
    elif not is_hot(game, winner):
        game.waste += PRICE_COLD_PULL - PRICE_TANGENT
    decide(game, winner)
    game.settling = 1
    return SETTLED


@njit(cache=True, nogil=True, error_model="numpy")
def sketchable(game):
    constants = float_pointer(game.constants_at)
    return not game.classical and can_sketch(constants, hot_arm(game, 0)) and can_sketch(constants, hot_arm(game, 1))


@njit(cache=True, nogil=True, error_model="numpy")
def draw_two(game):
    """(ratio, arm): the better of two hot arms. An infinite ratio says that its size does not matter: it is above the
    level and no alarm rings."""
    stream, constants = game.stream_at, float_pointer(game.constants_at)
    one, other = hot_arm(game, 0), hot_arm(game, 1)
    first, first_margin, first_normal = sketch_hot(stream, constants, one)
    second, second_margin, second_normal = sketch_hot(stream, constants, other)
    lower = max(first * (1.0 - first_margin), second * (1.0 - second_margin))
    apart = abs(first - second) > first * first_margin + second * second_margin
    if apart and lower > game.level and next_alarm(game) > game.round:
        game.sketched += 1
        return np.inf, one if first > second else other
    if first_margin > 0.0:
        first = resolve_hot(stream, constants, one, first_normal)
    if second_margin > 0.0:
        second = resolve_hot(stream, constants, other, second_normal)
    if first > second:
        return first, one
    if second > first:
        return second, other
    # Equal floats happen at huge counts; each of the tied arms gets the same chance.
    return first, other if uniform(stream) * 2.0 < 1.0 else one


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def draw_all(game, best, winner):
    """(ratio, arm): the best of the hot arms if it is better than this."""
    stream, constants, classical = game.stream_at, float_pointer(game.constants_at), game.classical
    hot = whole_pointer(game.hot_at)
    ties = 1
    for place in range(game.hot_count):
        slot = hot[place]
        ratio = draw_hot(stream, constants, slot, classical)
        if ratio > best:
            best = ratio
            winner = slot
            ties = 1
        elif ratio == best:
            # Equal floats happen at huge counts; each of the tied arms gets the same chance.
            ties += 1
            if uniform(stream) * ties < 1.0:
                winner = slot
    return best, winner


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def answer_alarms(game, best, winner):
    """(ratio, arm): the best of the cold arms whose alarms ring in this round, if it is better than this."""
    while next_alarm(game) == game.round:
        slot = first_ringing(whole_pointer(game.tree_at), game.base)
        game.rings += 1
        game.waste += PRICE_OPEN_RING
        ratio = game.level * math.exp(exponential(game.stream_at) / tangent_of(game, slot, SLOPE))
        set_next_alarm(game, slot, game.round)
        if ratio > best and keeps_ratio(game, slot, ratio):
            game.accepted += 1
            best = ratio
            winner = slot
    return best, winner


@njit(cache=True, nogil=True, error_model="numpy")
def take_from_pool(game, place):
    """An arm of the pool is pulled for the first time: it gets the next slot, and goes on as a cold one."""
    arm_of_slot = whole_pointer(game.arm_of_slot_at)
    slot = game.active
    arm = arm_of_slot[place]
    arm_of_slot[place] = arm_of_slot[slot]
    arm_of_slot[slot] = arm
    whole_pointer(game.hot_place_at)[slot] = -1
    game.active += 1
    if game.active > game.base:
        game.base = widen(whole_pointer(game.tree_at), game.base)
    if game.active == game.arms:
        game.try_blocks = 1
    return slot
