"""The compiled game: which arm wins each round, without drawing arms that cannot win.

Open rounds draw every hot arm and listen to the alarms of the cold ones.  In block rounds a single hot arm, the
leader, is pulled untouched until an alarm says that something may happen.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from budgetbandits.simulation.compiled.draws import exponential, geometric_from_rate, pointer_to, uniform, waiting_rate
from budgetbandits.simulation.thompson.alarms import NEVER, first_ringing, set_alarm, widen
from budgetbandits.simulation.thompson.contests import (
    apply_level,
    keeps_ratio,
    leader_loses,
    open_window,
    search_below,
    take_tangent,
)
from budgetbandits.simulation.thompson.envelope import RATE, SLOPE, draw_best_unpulled, draw_shortfall, log_shortfall
from budgetbandits.simulation.thompson.hot_arms import can_sketch, draw_hot, keep_constants, resolve_hot, sketch_hot
from budgetbandits.simulation.thompson.near_ties import (
    FEWEST,
    chance_to_win,
    look,
    look_ahead,
    play_stretch,
    pulls_above,
)
from budgetbandits.simulation.thompson.outcomes import (
    CHECKPOINT,
    FINISHED,
    SETTLED,
    SPENT_STEPS,
    settle_buffered,
    settle_finite,
    settle_one,
)
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

OPEN, BLOCK = 0, 1
NO_EVENT, DUEL = 0, 1
POOL = -2

# Counters of what the engine did.
(
    OPEN_ROUNDS, HOT_DRAWS, RINGS, ACCEPTED, FALLBACKS, BLOCK_RINGS, DUELS, DIPS, DIPS_BELOW, WINDOWS,
    SETTLEMENTS, PLANS, LEVEL_CHANGES, TANGENTS, LEADER_SPARED, PLAN_TANGENTS, SKETCHED, PAIRED, LOOKS, COUNTERS,
) = range(20)  # fmt: skip

# Whole-number state kept between calls.
(
    ROUND, PENDING, PENDING_SLOT, MODE, LEADER, WINDOW, WINDOW_LEFT, DIP, ACTIVE, HOT_COUNT, EVENT, EVENT_SLOT,
    EVENT_COIN, EVENT_DIP, BASE, SETTLING, TRY_BLOCKS, STARTED, WHOLE_STATE,
) = range(19)  # fmt: skip
# Float state kept between calls.
LEVEL, TILT, LOG_CEILING, LOG_HALF, EVENT_RATIO, WASTE, LIMIT, PATIENCE, FLOAT_STATE = range(9)
# Settings.
LOG_HOT, ALLOW_BLOCKS, LOG_LARGEST_DIP, CAUTION, LOG_DIRECT, PAIRS_FROM, RESTLESS, SETTINGS = range(8)

NUDGE = 1.0 + 1e-12  # what a restless game moves its level by: all alarms are set anew, and nothing else changes


@njit(cache=True, nogil=True, error_model="numpy")
def play_on_pointers(
    stream, classical, frozen, buffered, settings, state, state_float, counters,
    posterior, tangents, constants, tree, hot, hot_place, rung, next_check, arm_of_slot, pulls, ledger, ledger_float,
    ends, whole, step, reward_values, reward_chances, cost_steps, cost_trials, cost_chances, cost_chance, cost_top, bernoulli,
    budgets, buffer, used, filled, out_pulls, out_reward, out_spend, out_rounds,
    arms, number, reward_width, cost_width, chunk,
):  # fmt: skip
    """Play until every budget's game has ended (FINISHED) or an arm needs outcomes (its number); resumable."""
    log_hot = settings[LOG_HOT]
    blocks = settings[ALLOW_BLOCKS] > 0.0
    log_largest_dip = settings[LOG_LARGEST_DIP]
    log_direct = settings[LOG_DIRECT]
    time = state[ROUND]
    pending = state[PENDING]
    pending_slot = state[PENDING_SLOT]
    mode = state[MODE]
    leader = state[LEADER]
    window = state[WINDOW]
    window_left = state[WINDOW_LEFT]
    dip = state[DIP]
    active = state[ACTIVE]
    hot_count = state[HOT_COUNT]
    event = state[EVENT]
    event_slot = state[EVENT_SLOT]
    event_coin = state[EVENT_COIN]
    event_dip = state[EVENT_DIP]
    base = state[BASE]
    settling = state[SETTLING] > 0
    level = state_float[LEVEL]
    tilt = state_float[TILT]
    log_ceiling = state_float[LOG_CEILING]
    log_half = state_float[LOG_HALF]
    event_ratio = state_float[EVENT_RATIO]
    waste = state_float[WASTE]
    limit = state_float[LIMIT]
    patience = state_float[PATIENCE]
    try_blocks = state[TRY_BLOCKS] > 0
    pairs_from = settings[PAIRS_FROM]
    restless = settings[RESTLESS]
    # Of two hot arms; never kept between calls, since games of finite laws are played in one.
    left_1 = np.int64(0)
    left_2 = np.int64(0)
    pair_retry = np.int64(0)
    anchored = False
    stale = False
    chance, z, move_1, move_2, bend, skewest, error = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if state[STARTED] == 0:
        state[STARTED] = 1
        hot_count = apply_level(
            stream, time, level, active, classical, log_hot, posterior, tangents, constants, tree, base, hot, hot_place
        )  # fmt: skip
        try_blocks = True
    while True:
        if settling:
            arm = arm_of_slot[pending_slot]
            counters[SETTLEMENTS] += 1
            if buffered:
                status, pending = settle_buffered(
                    stream, arm, pending_slot, pending, frozen, posterior, pulls, ledger, ledger_float, budgets,
                    buffer, used, filled, arms, number, chunk, out_pulls, out_reward, out_spend, out_rounds,
                )  # fmt: skip
            elif pending == 1 and settle_one(
                stream, arm, pending_slot, frozen, posterior, pulls, ledger, ledger_float, ends, cost_top, bernoulli
            ):  # fmt: skip
                status = SETTLED
            else:
                status = settle_finite(
                    stream, arm, pending_slot, pending, frozen, settings[CAUTION], posterior, pulls, ledger,
                    ledger_float, ends, whole, step, reward_values, reward_chances, cost_steps, cost_trials,
                    cost_chances, cost_chance, cost_top, bernoulli, arms, number, reward_width, cost_width, out_pulls, out_reward, out_spend, out_rounds,
                )  # fmt: skip
            if status != SETTLED:
                break
            pending = np.int64(0)
            settling = False
            slot = pending_slot
            if left_1 > 0 and hot_place[slot] >= 0:
                # Whatever way an arm of a near tie came to be pulled, the look ahead covers so many pulls and no more.
                if slot == hot[0]:
                    left_1 -= 1
                else:
                    left_2 -= 1
                if min(left_1, left_2) <= 0:
                    left_1 = left_2 = np.int64(0)
            if hot_place[slot] < 0 or (mode == OPEN and pulls[arm] >= next_check[slot]):
                # A cold arm's alarm was set for the posterior it had; a hot one may have cooled down.
                counters[TANGENTS] += 1
                waste += PRICE_TANGENT
                next_check[slot] = pulls[arm] + pulls[arm] // 8 + 1
                if take_tangent(tangents, posterior, slot, level, classical, log_hot):
                    place = hot_place[slot]
                    if place >= 0:
                        left_1 = left_2 = pair_retry = np.int64(0)
                        hot_count -= 1
                        hot[place] = hot[hot_count]
                        hot_place[hot[place]] = place
                        hot_place[slot] = -1
                        try_blocks = True
                    set_alarm(tree, base, slot, time - 1 + geometric_from_rate(stream, tangents[8 * slot + RATE]))
                else:
                    if hot_place[slot] < 0:
                        left_1 = left_2 = pair_retry = np.int64(0)
                        set_alarm(tree, base, slot, np.int64(NEVER))
                        hot_place[slot] = hot_count
                        hot[hot_count] = slot
                        hot_count += 1
                        if mode == BLOCK:
                            mode = OPEN
                            keep_constants(constants, posterior, leader)
                    keep_constants(constants, posterior, slot)
            elif mode == OPEN:
                keep_constants(constants, posterior, slot)

        if event == DUEL:
            # The leader's pulls up to this round are settled now, so its posterior is the one of this round.
            event = NO_EVENT
            winner = leader
            below = np.inf
            a, b = float(posterior[4 * leader + 0]), float(posterior[4 * leader + 1])
            c, d = float(posterior[4 * leader + 2]), float(posterior[4 * leader + 3])
            if event_dip > 0:
                counters[DIPS] += 1
                waste += PRICE_DIP
                dip = time + geometric_from_rate(stream, waiting_rate(log_ceiling))
                if exponential(stream) >= log_ceiling - log_shortfall(a, b, c, d, level, tilt, classical):
                    below = draw_shortfall(stream, a, b, c, d, level, tilt, classical)
            if below < np.inf:
                counters[DIPS_BELOW] += 1
                if event_slot >= 0:
                    winner = event_slot
                else:
                    counters[FALLBACKS] += 1
                    waste += PRICE_FALLBACK_ARM * active
                    winner = search_below(
                        stream, level, below, leader, active, posterior, tangents, hot_place, classical, rung
                    )
            elif event_slot >= 0:
                counters[DUELS] += 1
                if leader_loses(
                    stream,
                    a,
                    b,
                    c,
                    d,
                    level,
                    event_ratio,
                    tilt,
                    log_ceiling,
                    log_half,
                    event_coin > 0,
                    log_direct,
                    classical,
                ):
                    winner = event_slot
            pending = np.int64(1)
            pending_slot = winner
            time += 1
            if winner == leader:
                window_left -= 1
            else:
                settling = True
                continue

        if waste > limit:
            # Every alarm up to the present round has been answered; those still set are for rounds not yet played.
            if pending > 0:
                settling = True
                continue
            counters[PLANS] += 1
            if restless > 0.0:
                chosen, work = level * NUDGE if counters[PLANS] % 2 == 0 else level / NUDGE, 0
            else:
                chosen, work = choose_level(
                    level, posterior, tangents, hot_place, active, arms - active, classical, log_hot, blocks, pairs_from
                )
            counters[PLAN_TANGENTS] += work
            cost = work * PRICE_TANGENT
            if chosen != level:
                counters[LEVEL_CHANGES] += 1
                level = chosen
                hot_count = apply_level(
                    stream, time, level, active, classical, log_hot, posterior, tangents, constants, tree, base,
                    hot, hot_place,
                )  # fmt: skip
                cost += active * PRICE_TANGENT
                patience = max(3.0, patience * 0.5)
                mode = OPEN
                left_1 = left_2 = pair_retry = np.int64(0)
            else:
                patience = min(64.0, patience * 2.0)
            limit = restless if restless > 0.0 else cost * patience
            waste = 0.0
            try_blocks = mode == OPEN

        if mode == BLOCK and window_left == 0:
            if pending > 0:
                settling = True
                continue
            try_blocks = True

        if try_blocks:
            try_blocks = False
            was_block = mode == BLOCK
            mode = OPEN
            if blocks and hot_count == 1 and active == arms:
                leader = hot[0]
                a, b = float(posterior[4 * leader + 0]), float(posterior[4 * leader + 1])
                c, d = float(posterior[4 * leader + 2]), float(posterior[4 * leader + 3])
                wider = (
                    posterior[4 * leader + 0]
                    + posterior[4 * leader + 1]
                    + posterior[4 * leader + 2]
                    + posterior[4 * leader + 3]
                )
                window_left, tilt, log_ceiling, log_half, window = open_window(
                    a, b, c, d, level, classical, window, wider
                )
                counters[WINDOWS] += 1
                waste += PRICE_WINDOW
                if log_ceiling < log_largest_dip:
                    mode = BLOCK
                    dip = time - 1 + geometric_from_rate(stream, waiting_rate(log_ceiling))
                    pending_slot = leader
            if mode == OPEN and was_block:
                for place in range(hot_count):
                    keep_constants(constants, posterior, hot[place])

        if mode == BLOCK:
            upcoming = min(tree[1], dip)
            if upcoming - time >= window_left:
                pending += window_left
                time += window_left
                window_left = np.int64(0)
                pending_slot = leader
                continue
            pending += upcoming - time
            window_left -= upcoming - time
            time = upcoming
            pending_slot = leader
            event_slot = np.int64(-1)
            event_coin = np.int64(0)
            event_dip = np.int64(dip == time)
            event_ratio = 0.0
            while tree[1] == time:
                slot = first_ringing(tree, base)
                counters[BLOCK_RINGS] += 1
                waste += PRICE_BLOCK_RING
                excess = exponential(stream) / tangents[8 * slot + SLOPE]
                set_alarm(tree, base, slot, time + geometric_from_rate(stream, tangents[8 * slot + RATE]))
                alone = event_dip == 0 and event_slot < 0 and tree[1] > time
                coin = np.int64(0)
                if alone:
                    log_chance = min(log_ceiling + tilt * excess, log_half + 0.5 * tilt * excess)
                    if log_chance < log_direct:
                        if exponential(stream) < -log_chance:
                            counters[LEADER_SPARED] += 1
                            continue
                        coin = np.int64(1)
                ratio = level * math.exp(excess)
                if ratio > event_ratio and keeps_ratio(stream, tangents, posterior, slot, ratio):
                    counters[ACCEPTED] += 1
                    event_ratio = ratio
                    event_slot = slot
                    event_coin = coin
            if event_slot < 0 and event_dip == 0:
                pending += 1
                time += 1
                window_left -= 1
                continue
            event = DUEL
            settling = pending > 0
            continue

        if hot_count == 2 and active == arms and not buffered and time >= pair_retry:
            first, second = hot[0], hot[1]
            # Neither the end of a game nor an alarm may fall into a stretch. It is planned without looking at the alarms
            # and cut where the next one rings, so that of these no more is known than the rounds played tell.
            top = max(cost_top[arm_of_slot[first]], cost_top[arm_of_slot[second]])
            most = (ends[ledger[CHECKPOINT]] - ledger[SPENT_STEPS] - 1) // top
            fresh = left_1 == 0
            won = np.int64(-1)
            if most >= FEWEST:
                if fresh:
                    anchored = False
                    left_1, left_2 = pulls_above(posterior, first, second, level, pairs_from, classical)
                    chance, z, move_1, move_2, bend, skewest, error = look_ahead(
                        posterior, first, second, left_1, left_2, classical
                    )
                elif not anchored:
                    chance, z, _, _, _ = chance_to_win(posterior, first, second, classical)
                # one pull of each is kept for the look
                won, lost, low, high = play_stretch(
                    stream, chance, z, 1.0 if anchored else 0.0, move_1, move_2, bend, skewest, error, left_1 - 1,
                    left_2 - 1, most, tree[1] - time,
                )  # fmt: skip
                anchored = False
            if won >= 0:
                for place in range(2):
                    slot, count = (first, won) if place == 0 else (second, lost)
                    if count > 0:
                        settle_finite(
                            stream, arm_of_slot[slot], slot, count, frozen, settings[CAUTION], posterior,
                            pulls, ledger, ledger_float, ends, whole, step, reward_values, reward_chances, cost_steps,
                            cost_trials, cost_chances, cost_chance, cost_top, bernoulli, arms, number, reward_width,
                            cost_width, out_pulls, out_reward, out_spend, out_rounds,
                        )  # fmt: skip
                time += won + lost
                left_1 -= won
                left_2 -= lost
                stale = True
                waste += PRICE_PAIR
                counters[PAIRED] += won + lost
                if high > low:
                    counters[LOOKS] += 1
                    wins, chance, z = look(stream, posterior, first, second, low, high, error, classical)
                    anchored = True
                    time += 1
                    pending = np.int64(1)
                    pending_slot = first if wins else second
                    settling = True
                    continue
                # An alarm that cut the stretch has been seen: the round that comes now answers it, before re-planning
                # can set it anew.
                if tree[1] > time:
                    continue
            else:
                left_1 = left_2 = np.int64(0)
                if most >= FEWEST:
                    if not fresh:
                        continue  # what was left of the last look ahead was too little
                    pair_retry = time + (pulls[arm_of_slot[first]] + pulls[arm_of_slot[second]]) // 64
        if stale:
            stale = False
            for place in range(hot_count):
                keep_constants(constants, posterior, hot[place])

        # An open round.
        counters[OPEN_ROUNDS] += 1
        counters[HOT_DRAWS] += hot_count
        waste += PRICE_ROUND + hot_count * PRICE_HOT
        best = 0.0
        winner = -1
        ties = 1
        if active < arms:
            best = draw_best_unpulled(stream, float(arms - active), classical)
            winner = POOL
        sketched = hot_count == 2 and active == arms and not classical
        sketched = sketched and can_sketch(constants, hot[0]) and can_sketch(constants, hot[1])
        if sketched:
            first, first_margin, first_normal = sketch_hot(stream, constants, hot[0])
            second, second_margin, second_normal = sketch_hot(stream, constants, hot[1])
            lower = max(first * (1.0 - first_margin), second * (1.0 - second_margin))
            apart = abs(first - second) > first * first_margin + second * second_margin
            if apart and lower > level and tree[1] > time:
                counters[SKETCHED] += 1
                winner = hot[0] if first > second else hot[1]
                time += 1
                pending = np.int64(1)
                pending_slot = winner
                settling = True
                continue
            if first_margin > 0.0:
                first = resolve_hot(stream, constants, hot[0], first_normal)
            if second_margin > 0.0:
                second = resolve_hot(stream, constants, hot[1], second_normal)
        for place in range(hot_count):
            if sketched:
                ratio = first if place == 0 else second
            else:
                ratio = draw_hot(stream, constants, hot[place], classical)
            if ratio > best:
                best = ratio
                winner = hot[place]
                ties = 1
            elif ratio == best:
                # Equal floats happen at huge counts; each of the tied arms gets the same chance.
                ties += 1
                if uniform(stream) * ties < 1.0:
                    winner = hot[place]
        while tree[1] == time:
            slot = first_ringing(tree, base)
            counters[RINGS] += 1
            waste += PRICE_OPEN_RING
            ratio = level * math.exp(exponential(stream) / tangents[8 * slot + SLOPE])
            set_alarm(tree, base, slot, time + geometric_from_rate(stream, tangents[8 * slot + RATE]))
            if ratio > best and keeps_ratio(stream, tangents, posterior, slot, ratio):
                counters[ACCEPTED] += 1
                best = ratio
                winner = slot
        if best < level:
            counters[FALLBACKS] += 1
            waste += PRICE_FALLBACK_ARM * (active - hot_count)
            winner = search_below(stream, level, best, winner, active, posterior, tangents, hot_place, classical, rung)
        time += 1
        if winner == POOL:
            place = active + np.int64(uniform(stream) * (arms - active))
            if frozen:
                # Frozen arms never leave the pool; count the pull and go on.
                pending_slot = place
                status = settle_finite(
                    stream, arm_of_slot[place], place, np.int64(1), frozen, settings[CAUTION], posterior, pulls, ledger,
                    ledger_float, ends, whole, step, reward_values, reward_chances, cost_steps, cost_trials,
                    cost_chances, cost_chance, cost_top, bernoulli, arms, number, reward_width, cost_width, out_pulls, out_reward, out_spend, out_rounds,
                )  # fmt: skip
                if status == FINISHED:
                    break
                continue
            chosen_arm = arm_of_slot[place]
            arm_of_slot[place] = arm_of_slot[active]
            arm_of_slot[active] = chosen_arm
            winner = active
            hot_place[winner] = -1
            active += 1
            if active > base:
                base = widen(tree, base)
            if active == arms:
                try_blocks = True
        elif hot_place[winner] < 0:
            waste += PRICE_COLD_PULL - PRICE_TANGENT
        pending = np.int64(1)
        pending_slot = winner
        settling = True

    state[ROUND] = time
    state[PENDING] = pending
    state[PENDING_SLOT] = pending_slot
    state[MODE] = mode
    state[LEADER] = leader
    state[WINDOW] = window
    state[WINDOW_LEFT] = window_left
    state[DIP] = dip
    state[ACTIVE] = active
    state[HOT_COUNT] = hot_count
    state[EVENT] = event
    state[EVENT_SLOT] = event_slot
    state[EVENT_COIN] = event_coin
    state[EVENT_DIP] = event_dip
    state[BASE] = base
    state[SETTLING] = np.int64(settling)
    state[TRY_BLOCKS] = np.int64(try_blocks)
    state_float[LEVEL] = level
    state_float[TILT] = tilt
    state_float[LOG_CEILING] = log_ceiling
    state_float[LOG_HALF] = log_half
    state_float[EVENT_RATIO] = event_ratio
    state_float[WASTE] = waste
    state_float[LIMIT] = limit
    state_float[PATIENCE] = patience
    return status


@njit(cache=True, nogil=True)
def play(
    stream, classical, frozen, buffered, settings, state, state_float, counters, posterior, tangents, constants, tree,
    hot, hot_place, rung, next_check, arm_of_slot, pulls, ledger, ledger_float, ends, whole, step, reward_values,
    reward_chances, cost_steps, cost_trials, cost_chances, cost_chance, cost_top, bernoulli, budgets, buffer, used,
    filled, out_pulls, out_reward, out_spend, out_rounds,
):  # fmt: skip
    """The game on arrays; the caller keeps them alive."""
    arms = arm_of_slot.shape[0]
    number = out_reward.shape[0]
    reward_width = reward_values.shape[1]
    cost_width = cost_steps.shape[1]
    chunk = buffer.shape[1]
    return play_on_pointers(
        stream, classical, frozen, buffered, pointer_to(settings), pointer_to(state), pointer_to(state_float),
        pointer_to(counters), pointer_to(posterior), pointer_to(tangents), pointer_to(constants), pointer_to(tree),
        pointer_to(hot), pointer_to(hot_place), pointer_to(rung), pointer_to(next_check), pointer_to(arm_of_slot), pointer_to(pulls),
        pointer_to(ledger), pointer_to(ledger_float), pointer_to(ends), pointer_to(whole), step,
        pointer_to(reward_values), pointer_to(reward_chances), pointer_to(cost_steps), pointer_to(cost_trials),
        pointer_to(cost_chances), pointer_to(cost_chance), pointer_to(cost_top), pointer_to(bernoulli), pointer_to(budgets),
        pointer_to(buffer), pointer_to(used), pointer_to(filled), pointer_to(out_pulls), pointer_to(out_reward),
        pointer_to(out_spend), pointer_to(out_rounds), arms, number, reward_width, cost_width, chunk,
    )  # fmt: skip
