"""Where the Thompson engine's time goes: what it does in a game, counted, and what each thing costs.

Writes docs/figures/engine.svg. The shares are the engine's own counters times the prices that its
planner reckons with, scaled to the time measured.

    .venv/bin/python benchmarks/engine_figure.py
"""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib
import numpy as np
from engine import problems

from budgetbandits import Problem
from budgetbandits.simulation.engines.runtime.laws import Tables
from budgetbandits.simulation.engines.thompson import state
from budgetbandits.simulation.engines.thompson.engine import Run, Settings, engine_laws
from budgetbandits.simulation.engines.thompson.state import COUNTERS

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Patch

ARMS = (10, 100, 1000)
COLOURS = ["#1b4965", "#5fa8d3", "#74b3a5", "#ca6702", "#d19a33", "#8a817c"]
SETTLING = 45.0  # ns: outcome and bookkeeping of one settlement, measured by hand


def shares(counts: dict[str, float], arms: int) -> dict[str, float]:
    """Nanoseconds a run by activity."""
    sketches = 2.0 * counts["sketched"]
    return {
        "drawing hot arms": counts["open_rounds"] * state.PRICE.round
        + (counts["hot_draws"] - sketches) * state.PRICE.hot
        + sketches * state.PRICE.sketch,
        "alarms of cold arms": counts["rings"] * state.PRICE.open_ring + counts["block_rings"] * state.PRICE.block_ring,
        "no arm above the level": counts["fallbacks"] * (state.PRICE.fallback_arm * arms + state.PRICE.cold_pull),
        "the leader below the level": counts["dips"] * state.PRICE.dip + counts["windows"] * state.PRICE.window,
        "outcomes and money": counts["settlements"] * SETTLING,
        "bounds and planning": (counts["tangents"] + counts["plan_tangents"]) * state.PRICE.tangent,
    }


def measure(arms: int, instances: int = 8) -> tuple[dict[str, float], dict[str, float], float, float]:
    """(shares, counters, rounds, milliseconds), means of one run on each of several problems."""
    counts = dict.fromkeys(COUNTERS, 0.0)
    rounds = seconds = 0.0
    for number, (rewards, costs) in enumerate(problems(arms, instances)):
        laws = engine_laws(Tables(Problem.bernoulli(rewards.tolist(), costs.tolist())))
        words = np.random.SeedSequence(number).generate_state(8, np.uint64)
        run = Run(laws, np.array([50_000.0]), False, Settings())
        run.clear(words)
        began = time.perf_counter()
        run.play()
        seconds += (time.perf_counter() - began) / instances
        rounds += run.arrays["out_rounds"][0] / instances
        for name, value in run.counters.items():
            counts[name] += value / instances
    return shares(counts, arms), counts, rounds, 1e3 * seconds


def main() -> None:
    measure(2, 1)
    plt.rcParams.update(
        {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "engine"}
    )
    figure, (work, where) = plt.subplots(1, 2, figsize=(9.2, 3.4), layout="constrained")
    drawn = ("rounds", "settlements", "open rounds", "alarms")
    for row, arms in enumerate(ARMS):
        parts, counts, rounds, milliseconds = measure(arms)
        alarms = counts["rings"] + counts["block_rings"]
        bars = (rounds, counts["settlements"], counts["open_rounds"], alarms)
        work.barh([row + 0.28 - 0.19 * i for i in range(4)], bars, height=0.17, color=COLOURS[:3] + COLOURS[4:5])
        left = 0.0
        scale = milliseconds / sum(parts.values())
        for colour, (name, value) in zip(COLOURS, parts.items(), strict=True):
            share = 100 * value * scale / milliseconds
            where.barh(row, share, left=left, color=colour, height=0.6, label=name if row == 0 else None)
            left += share
        where.text(101, row, f"{milliseconds:.1f} ms", va="center")
    work.set_xscale("log")
    work.set_xlim(500, 2e6)
    work.set_yticks(range(len(ARMS)), [f"K = {arms:,}" for arms in ARMS])
    work.set_xlabel("times in one game, B = 50,000")
    handles = [Patch(color=c) for c in COLOURS[:3] + COLOURS[4:5]]
    work.legend(handles, drawn, frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(-0.12, 1.0), fontsize=8,
                handlelength=1.0, columnspacing=1.0)  # fmt: skip
    where.set_yticks(range(len(ARMS)), [])
    where.set_xlim(0, 112)
    where.set_xticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])
    where.set_xlabel("share of the time of one game")
    where.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), fontsize=8, handlelength=1.0)
    folder = Path(__file__).parent.parent / "docs" / "figures"
    folder.mkdir(exist_ok=True)
    figure.savefig(folder / "engine.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
