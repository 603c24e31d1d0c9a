"""Replace each conditional draw of the Thompson engine by an unconditional one: the test named beside it must fail.

Every mutant is a copy of the package in a temporary folder with one piece of text replaced. A mutant that survives
means that the named test does not test what it claims. Not part of `make test`, because each mutant is compiled anew.

    make mutants                    # or: .venv/bin/python tests/simulation/engines/mutants.py NAME ...
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Mutant:
    file: str
    old: str
    new: str
    test: str
    test_file: str = "test_thompson.py"


MUTANTS = {
    "open_ring_unconditional": Mutant(
        "thompson/rounds.py",
        "if ratio > best and keeps_ratio(game, slot, ratio):",
        "if ratio > best:",
        "test_frozen_round[rings]",
    ),
    "fallback_proposal_may_pass_the_level": Mutant(
        "thompson/level.py",
        "                if ratio > ceiling:\n                    continue\n            else:",
        "            else:",
        "test_frozen_round[rings_only]",
    ),
    "fallback_plain_draw_may_pass_the_level": Mutant(
        "thompson/level.py",
        "                if ratio > ceiling:\n                    continue\n                if ratio <= best:",
        "                if ratio <= best:",
        "test_frozen_round[rings_only]",
    ),
    "second_rung_forgets_the_first": Mutant(
        "thompson/level.py",
        "        above = gap\n",
        "        above = 1e-9\n",
        "test_frozen_round[mostly_fallback]",
    ),
    "block_ring_unconditional": Mutant(
        "thompson/blocks.py",
        "if ratio > game.duel_ratio and keeps_ratio(game, slot, ratio):",
        "if ratio > game.duel_ratio:",
        "test_frozen_round[blocks]",
    ),
    "spared_whatever_the_rival": Mutant(
        "thompson/blocks.py",
        "log_chance = min(game.log_ceiling + game.tilt * excess, game.log_half + 0.5 * game.tilt * excess)",
        "log_chance = game.log_ceiling",
        "test_frozen_round[blocks]",
    ),
    "leader_draw_unconditional": Mutant(
        "thompson/blocks.py",
        "            if drawn >= level:\n                return drawn < ratio",
        "            return drawn < ratio",
        "test_frozen_round[leader_below_level]",
    ),
    "leader_proposal_unconditional": Mutant(
        "thompson/blocks.py",
        "        if drawn >= level:\n            return True",
        "        return True",
        "test_frozen_round[leader_coin_below_level]",
    ),
    "window_rate_not_thinned": Mutant(
        "thompson/blocks.py",
        "        if exponential(stream) < log_ceiling - log_present:\n            return False\n",
        "",
        "test_frozen_round[blocks_coin_only]",
    ),
    "half_tilt_keeps_the_full_bound": Mutant(
        "thompson/blocks.py",
        "        tilt *= 0.5\n        log_ceiling = game.log_half\n",
        "        log_ceiling = game.log_half\n",
        "test_frozen_round[blocks_coin_only]",
    ),
    "dip_not_thinned": Mutant(
        "thompson/blocks.py",
        "if exponential(game.stream_at) >= game.log_ceiling - log_now:",
        "if True:",
        "test_frozen_round[leader_below_level]",
    ),
    "dip_unconditional": Mutant(
        "thompson/envelope.py",
        "    if exponential(stream) >= -scaled_log(tilt, ratio - level, ratio, level):\n        return ratio\n    return np.inf",
        "    return ratio",
        "test_frozen_round[leader_below_level]",
    ),
    "classical_ring_unconditional": Mutant(
        "thompson/envelope.py",
        "    else:\n        v = ratio\n",
        "    else:\n        return ratio < 1.0\n",
        "test_frozen_round[classical_rings]",
    ),
    "pool_of_one": Mutant(
        "thompson/envelope.py",
        "log_below = -exponential(stream) / members",
        "log_below = -exponential(stream)",
        "test_frozen_round[pool]",
    ),
    "undecided_sketch_drawn_anew": Mutant(
        "thompson/rounds.py",
        "first = resolve_hot(stream, constants, one, first_normal)",
        "first = draw_hot(stream, constants, one, game.classical)",
        "test_frozen_round[sketches]",
    ),
    "sketch_ignores_the_level": Mutant(
        "thompson/rounds.py",
        "if apart and lower > game.level and next_alarm(game) > game.round:",
        "if apart and next_alarm(game) > game.round:",
        "test_frozen_round[sketches_below_level]",
    ),
    "rest_not_kept_in_the_ball": Mutant(
        "thompson/hot_arms.py",
        "if not inside or square <= BALL:",
        "if True:",
        "test_the_rest_is_normal_across_the_direction[True]",
        "test_hot_arms.py",
    ),
    "stale_spread_taken_for_fresh": Mutant(
        "thompson/hot_arms.py",
        "fresh &= 0.0 <= 9.0 * centre * spread * spread - 1.0 <= SPREAD_LAG",
        "fresh &= spread > 0.0",
        "test_games[ten_arms]",
    ),
    "stale_alarm_after_a_pull": Mutant(
        "thompson/level.py",
        "        set_next_alarm(game, slot, game.round - 1)\n",
        "",
        "test_games[ten_arms]",
    ),
    "looked_at_with_a_fresh_coin": Mutant(
        "thompson/near_ties.py",
        "coin = low + uniform(game.stream_at) * (high - low)",
        "coin = uniform(game.stream_at)",
        "test_a_round_that_is_looked_at_has_the_chance_of_that_moment[False]",
        "test_near_ties.py",
    ),
    "wins_move_no_chance": Mutant(
        "thompson/near_ties.py",
        "moved = error + per_1 * wins + per_2 * (played - 1 - wins)",
        "moved = error",
        "test_stretches_leave_room_for_what_can_have_moved[uneven]",
        "test_near_ties.py",
    ),
    "chance_as_steep_as_it_was": Mutant(
        "thompson/near_tie_chances.py",
        "nearest = max(0.0, abs(z) - move_1 * pulls_1 - move_2 * pulls_2)",
        "nearest = abs(z)",
        "test_no_pulls_move_the_chance_farther_than_its_reach[ratios]",
        "test_near_ties.py",
    ),
    "stretches_over_alarms": Mutant(
        "thompson/near_ties.py",
        "silent = game.stream_at, outlook.chance, next_alarm(game) - game.round",
        "silent = game.stream_at, outlook.chance, limit",
        "test_frozen_round[near_ties]",
    ),
    "stretch_planned_by_the_next_alarm": Mutant(
        "thompson/near_ties.py",
        "limit = (steps_to_the_end(game) - 1) // top",
        "limit = min(next_alarm(game) - game.round, (steps_to_the_end(game) - 1) // top)",
        "test_frozen_round[restless_near_ties]",
    ),
    "replans_while_an_alarm_that_was_looked_at_is_unanswered": Mutant(
        "thompson/near_ties.py",
        "    return next_alarm(game) > game.round\n",
        "    return next_alarm(game) > game.round or game.waste > game.limit\n",
        "test_frozen_round[restless_near_ties]",
    ),
    "walk_with_replacement": Mutant(
        "thompson/outcomes.py",
        "if uniform(stream) * walk_pulls < walk_events:",
        "if uniform(stream) < chance:",
        "test_rounds_of_one_arm_are_negative_binomial[0.3]",
    ),
    "overdrawing_pull_earns": Mutant(
        "thompson/outcomes.py",
        "game.reward + earned if reached else game.reward,",
        "game.reward + earned,",
        "test_games[lattice_two]",
    ),
}


def fails(mutant: Mutant) -> bool:
    """Whether the named test fails, by an assertion, in a copy of the package changed by the mutant."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "src" / "budgetbandits"
        shutil.copytree(ROOT / "src" / "budgetbandits", package, ignore=shutil.ignore_patterns("__pycache__"))
        path = package / "simulation" / "engines" / mutant.file
        text = path.read_text()
        if text.count(mutant.old) != 1:
            raise SystemExit(f"{mutant.file}: the text to replace occurs {text.count(mutant.old)} times, not once")
        path.write_text(text.replace(mutant.old, mutant.new))
        environment = {**os.environ, "PYTHONPATH": str(package.parent), "BUDGETBANDITS_DEEP": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "no:xdist"]
        test = f"tests/simulation/engines/{mutant.test_file}::{mutant.test}"
        done = subprocess.run([*command, test], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        # a mutant that does not even compile must not count as found out
        if done.returncode not in (0, 1) or (done.returncode == 1 and "AssertionError" not in done.stdout):
            raise SystemExit(done.stdout + done.stderr)
        return done.returncode == 1


def main() -> None:
    survivors = []
    for name in sys.argv[1:] or MUTANTS:
        killed = fails(MUTANTS[name])
        print(f"{name}: {'found out' if killed else 'SURVIVES'} ({MUTANTS[name].test})", flush=True)
        if not killed:
            survivors.append(name)
    raise SystemExit(f"survivors: {survivors}" if survivors else 0)


if __name__ == "__main__":
    main()
