"""Whether a rewritten engine still plays the same games, bit for bit.

    python tests/simulation/engines/game_bits.py before.json   # writes the file, or compares with it if it is there

Run it before a change that should change nothing but the code, and after it. The games cover every counter of the
Thompson engine, every index policy by each of the index engines, both ε-first policies, finite and continuous laws.
Digests depend on the machine's mathematical library, so a file is good on the machine that wrote it.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "helpers")]

import test_thompson  # noqa: E402

from budgetbandits import POLICIES, Problem, family, parse_policy  # noqa: E402
from budgetbandits.policies.index import IndexPolicy  # noqa: E402
from budgetbandits.problems.problem import Arm  # noqa: E402
from budgetbandits.simulation.dispatch import engine_for, player  # noqa: E402
from budgetbandits.simulation.engines.index.engine import IndexGames  # noqa: E402
from budgetbandits.simulation.engines.thompson.engine import SampledLaws, Settings  # noqa: E402
from engine_runs import RunResults, bernoulli, simulate_runs  # noqa: E402

PROBLEMS = {
    "few": family("uniform-bernoulli", 5, 1, 0.2),
    "near tie": Problem.bernoulli([0.5, 0.505, 0.2], [0.5, 0.5, 0.4]),
    "many": family("uniform-bernoulli", 120, 2, 0.1),
    "lattice": family("uniform-multinomial", 40, 3, 0.1),
    "continuous": family("uniform-beta", 6, 4, 0.2),
    "equal": Problem(tuple(Arm(f"arm-{i}", family("uniform-bernoulli", 2, 5, 0.2).arms[0].law) for i in range(60))),
}
BUDGETS = (3.0, 40.0, 700.0)


def digest(values: Iterable[Any]) -> str:
    found = hashlib.blake2b(digest_size=16)
    for value in values:
        found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()


def of_runs(results: RunResults) -> str:
    return digest([results.pulls, results.reward, results.spend, results.rounds, *results.counters.values()])


def thompson_games() -> Iterator[tuple[str, RunResults]]:
    for name, (posterior, classical, settings, _) in test_thompson.FROZEN.items():
        laws = bernoulli(np.zeros(len(posterior)), np.ones(len(posterior)))
        yield f"frozen {name}", simulate_runs(
            laws, [100_000], 1, 1, classical=classical, posterior=posterior, frozen=True,
            settings=Settings(planning=False, **settings),
        )  # fmt: skip
    for name, (laws, budgets, _, _, classical) in test_thompson.GAMES.items():
        yield f"game {name}", simulate_runs(laws, [*budgets, 20_000.0], 20, 2, classical=classical)
        yield (
            f"incautious {name}",
            simulate_runs(laws, budgets, 20, 3, classical=classical, settings=Settings(caution=-2.0)),
        )

    def sample(arm: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.beta(1.0 + arm, 3.0, (count, 2))

    yield "game sampled", simulate_runs(SampledLaws(5, sample), [5.0, 400.0], 10, 4)
    yield (
        "game restless",
        simulate_runs(
            bernoulli([0.5, 0.501, 0.2], [0.5, 0.5, 0.5]), [30_000.0], 3, 5, settings=Settings(restless=3000.0)
        ),
    )


def other_games() -> Iterator[tuple[str, list[Any]]]:
    for spec in POLICIES:
        policy = parse_policy(spec)
        for name, problem in PROBLEMS.items():
            if not engine_for(problem, policy).compiled:
                continue
            players = {"": player(problem, policy, BUDGETS)}
            if isinstance(policy, IndexPolicy):
                players[" plain"] = IndexGames(problem, policy, BUDGETS, lazy=False)
            for kind, games in players.items():
                yield (
                    f"{spec}{kind}, {name}",
                    [
                        part
                        for run in range(4)
                        for game in games.play(np.random.SeedSequence(6, spawn_key=(run,)), 1 << 60)
                        for part in game
                    ],
                )


def record() -> dict[str, str]:
    found, counted = {}, {}
    for name, results in thompson_games():
        found[name] = of_runs(results)
        for counter, values in results.counters.items():
            counted[counter] = counted.get(counter, 0) + int(values.sum())
    missing = [counter for counter, count in counted.items() if count == 0]
    assert not missing, f"no game here counts {missing}: a branch is not covered"
    for name, parts in other_games():
        found[name] = digest(parts)
    return found


def main(path: Path) -> None:
    found = record()
    if not path.exists():
        path.write_text(json.dumps(found, indent=1))
        print(f"{len(found)} sets of games written to {path}")
        return
    before = json.loads(path.read_text())
    apart = [name for name in {**before, **found} if before.get(name) != found.get(name)]
    print(f"{len(found)} sets of games, {len(apart)} differ" + "".join(f"\n  {name}" for name in apart))
    sys.exit(bool(apart))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
