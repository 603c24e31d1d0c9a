"""The compiled game: which arm wins each round, without drawing arms that cannot win.

`play` is the loop. Open rounds draw every hot arm and listen to the alarms of the cold ones. In blocks a single hot
arm, the leader, is pulled untouched until something may happen to it: a duel. Two hot arms with many pulls are pulled
in stretches.
"""

from __future__ import annotations

from numba import njit

from budgetbandits.simulation.engines.runtime.status import FINISHED
from budgetbandits.simulation.engines.thompson.blocks import advance_block, enter_block
from budgetbandits.simulation.engines.thompson.duels import decide_duel
from budgetbandits.simulation.engines.thompson.level import apply_level, replan
from budgetbandits.simulation.engines.thompson.open_rounds import open_round
from budgetbandits.simulation.engines.thompson.settling import settle_pending
from budgetbandits.simulation.engines.thompson.state import SETTLED
from budgetbandits.simulation.engines.thompson.stretches import advance_near_tie, may_be_near_tie


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
