"""The leaderboard's settings with problems and games that no choice has seen, played once.

    python benchmarks/fresh_problems.py out/fresh

Every family's problems are drawn from seed 2,000,000 on, 10,000 apart, twice as many as the leaderboard has, and
the games from a seed of their own. The policies are those that may be the default and their rivals: who plays was
fixed before the first game. `champion.py` writes what came out.
"""

from __future__ import annotations

import re
import sys
from itertools import count
from pathlib import Path

from budgetbandits.experiments import leaderboard
from budgetbandits.experiments.experiment_file import SUITE, shipped_text
from budgetbandits.experiments.suite import Suite

SEED, FIRST, STEP = 20_261_119, 2_000_000, 10_000
"""Seed of the games, seed of the first setting's problems, and step of the seed from a setting to the next."""
TIMES = 2
"""Factor by which there are more problems than in the leaderboard."""
POLICIES = (
    "gittins-ratio", "gittins-ratio:lead=1000", "gittins-ratio:width=[1, 1.5]", "bts", "omega-star-ucb",
    "omega-ucb:rho=[0.25, 1]", "kube", "i-ucb", "c-ucb", "m-ucb", "b-greedy", "ucb-sc", "kl-ucb-sc-plus", "pd-bwk",
    "thompson", "imed-moss:kappa=2", "imed-ratio:kappa=2", "imed-fading",
)  # fmt: skip


def fresh_suite(suite: str | None = None) -> Suite:
    """The settings with many problems of a suite's text, or of the shipped one, and these policies."""
    _, *settings = re.split(r"(?m)^(?=\[\[settings\]\])", suite or shipped_text(SUITE))
    seeds, named = count(FIRST, STEP), ", ".join(f'"{policy}"' for policy in POLICIES)
    parts = [f'name = "Fresh problems"\nseed = {SEED}\npolicies = [{named}]\n']
    for text in settings:
        many = re.search(r"(?m)^count = (\d+)$", text)
        if many is not None:
            without = re.sub(r"(?m)^(seed|without) = .*\n", "", text)
            problems = f"count = {TIMES * int(many[1])}\nseed = {next(seeds)}"
            parts.append(without.replace(many[0], problems))
    return Suite.from_toml("\n".join(parts))


def main(out: Path) -> None:
    leaderboard.play(
        fresh_suite(), out, progress=lambda doing, finished, total: print(doing, finished, total, file=sys.stderr)
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
