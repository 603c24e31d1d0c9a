"""How fast the compiled loop of games with a horizon is, next to the reference simulator.

    python benchmarks/paced_engine.py

One core, processor time. Bernoulli problems with means from U(0.05, 1), 10,000 requests, a tight budget (see paced.py).
The reference plays fewer games: its price for a request does not depend on how many games there are.
"""

from __future__ import annotations

import time

import numpy as np
from paced import SHARES, problems, rate

from budgetbandits import simulate
from budgetbandits.problems.streams import RequestStream

HORIZON, GAMES, FEW = 10_000, 20, 1


def microseconds(policy: str, arms: int, engine: str, games: int) -> float:
    """Processor time for each request, in microseconds."""
    requests, seconds = 0, 0.0
    for problem in problems(arms, 3):
        budget = max(1, round(rate(problem, SHARES["tight"]) * HORIZON))
        simulate(problem, policy, [1], runs=1, horizon=10, engine=engine)  # compiled, or loaded
        began = time.process_time()
        played = simulate(problem, policy, [budget], runs=games, horizon=HORIZON, engine=engine)
        seconds += time.process_time() - began
        requests += int(np.sum(played.rounds))
    return seconds / requests * 1e6


def of_segments(engine: str, games: int) -> float:
    """The same of `bts-paced` for three segments, each with a problem of five arms."""
    members = list(problems(5, 3))
    stream = RequestStream.of_segments(
        {str(number): (1.0 / len(members), problem) for number, problem in enumerate(members)}
    )
    budget = max(1, round(float(np.mean([rate(problem, SHARES["tight"]) for problem in members])) * HORIZON))
    simulate(stream, "bts-paced", [1], runs=1, horizon=10, engine=engine)
    began = time.process_time()
    played = simulate(stream, "bts-paced", [budget], runs=games, horizon=HORIZON, engine=engine)
    return (time.process_time() - began) / int(np.sum(played.rounds)) * 1e6


def row(policy: str, arms: str, fast: float, slow: float) -> str:
    minutes = fast * 1e-6 * HORIZON * 10_000 / 2 / 60
    return f"| `{policy}` | {arms} | {fast:.2f} | {slow:.1f} | {slow / fast:.0f} | {minutes:.1f} min |"


def main() -> None:
    print("| policy | arms | µs a request | reference | times | 10,000 games on two cores |")
    print("|---|---|---|---|---|---|")
    print(
        row(
            "bts-paced",
            "5, three segments",
            *(of_segments(*engine_games) for engine_games in (("fast", GAMES), ("reference", FEW))),
        )
    )
    for policy in ("bts-paced", "primal-dual-bwk", "bts", "ucb-bv1"):
        for arms in (5, 10, 20):
            fast = microseconds(policy, arms, "fast", GAMES)
            print(row(policy, str(arms), fast, microseconds(policy, arms, "reference", FEW)), flush=True)


if __name__ == "__main__":
    main()
