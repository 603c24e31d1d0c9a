"""Sweeps of the index engine: all arms down to a level in any order, against the reference and the plain loop.

Sweeps read tapes. A test may write them itself: then the engine and the reference simulator see the same outcomes, and
without ties they must agree pull for pull, wherever sweeps begin, end or are taken back. With drawn outcomes, ties
included, whole games are compared in distribution (false alarms below 1e-6, `comparing.FALSE_ALARM`; seeds are fixed).
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import stats

from budgetbandits.errors import RoundLimit
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy
from budgetbandits.problems.distributions import Fixed, Independent, Lattice
from budgetbandits.problems.families import family
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.engines.index.engine import IndexGames
from budgetbandits.simulation.engines.index.pulls import first_pulls, lengthen
from budgetbandits.simulation.engines.index.sweeps import remember, sweep
from budgetbandits.simulation.engines.runtime.records import GOING_ON
from budgetbandits.testing.engines import FALSE_ALARM, smallest_p
from comparing import sample
from deep import deep, mostly_deep
from own_rules import CautiousRatio, Steep
from recorded import play_naively, recorded_problem, rewound, same_games

POLICIES: dict[str, Policy] = {
    name: parse_policy(name)
    for name in ("kube", "kube-fractional", "pd-bwk", "primal-dual-bwk", "ucb1", "ucb-v", "moss", "kl-ucb")
} | {"cautious-ratio": CautiousRatio(), "steep": Steep()}


class TapedGames(IndexGames):
    """Plays zero-one arms, but from tapes that hold the outcomes of a recorded problem with the same means."""

    def __init__(self, recorded: Problem, policy: Policy, budgets: list[float]) -> None:
        super().__init__(Problem.bernoulli(recorded.reward_means, recorded.cost_means), policy, budgets)
        clear, tapes = self._record.begin, self._record.arrays["buffer"]

        def clear_and_write(start: np.ndarray, words: np.ndarray) -> None:
            clear(start, words)
            for arm, hidden in enumerate(rewound(recorded).arms):
                tapes[arm] = np.stack(hidden.law.sample(np.random.default_rng(), tapes.shape[1]), axis=1)
            self._record.arrays["filled"][:] = tapes.shape[1]

        self._record.begin = clear_and_write  # type: ignore[method-assign]


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("arms", [7, *deep(2, 40)])
def test_sweeps_pull_for_pull_as_the_reference(name: str, arms: int) -> None:
    """Arms hard to tell apart: nearly all rounds are swept, and budgets end within what would have been a sweep."""
    policy = POLICIES[name]
    budgets = [300.0, 700.0, 720.5, 1000.0] if policy.anytime else [1000.0]
    problem = recorded_problem(arms, seed=arms, low=0.45, high=0.5)
    expected = play_naively(rewound(problem), policy, budgets, 0)
    games = TapedGames(problem, policy, budgets)
    assert same_games(expected, games.play(np.random.SeedSequence(0)))
    assert games.counters["swept"] > 0.3 * expected[-1][2]


def test_sweeps_that_are_taken_back_leave_no_trace() -> None:
    """A budget ends every few dozen rounds, and arms differ: levels are missed all the time."""
    taken_back = 0
    for seed in range(6):
        policy = parse_policy(("kube", "ucb1", "ucb-v")[seed % 3])
        problem = recorded_problem(6, seed=seed, low=0.2, high=0.6)
        budgets = [float(40 * i) for i in range(1, 30)]
        expected = play_naively(rewound(problem), policy, budgets, 0)
        games = TapedGames(problem, policy, budgets)
        assert same_games(expected, games.play(np.random.SeedSequence(0)))
        taken_back += games.counters["taken_back"]
    assert taken_back >= 20


@njit
def sweep_to(games, index, levels, patience):
    """The first pulls and a sweep to each level: whether all of them ended well."""
    game = games[0]
    first_pulls(game)
    for level in levels:
        remember(game)
        status, _ = sweep(game, index, level, patience, 1 << 40, 1 << 40)
        if status != GOING_ON:
            return False
    return True


@pytest.mark.parametrize("patience", [30, *deep(1, 10_000)])
@pytest.mark.parametrize(("name", "first"), [("kube", 3.0), ("ucb1", 1.4), ("pd-bwk", 3.0)])
def test_a_sweep_ends_where_the_policy_is_in_that_round(name: str, first: float, patience: int) -> None:
    """However long bounds are to hold: the pulls are those of the arm with the highest index in every round."""
    policy = parse_policy(name)
    games = TapedGames(recorded_problem(9, seed=3, low=0.4, high=0.5), policy, [1e6])
    record, index = games._record, games._index
    tapes = record.arrays["buffer"]
    for levels in ([first], [0.85 * first, 0.7 * first], [0.65 * first]):
        games._begin([1e6], np.ones(4, dtype=np.uint64), 1 << 60)
        assert sweep_to(record.game, index, np.array(levels), patience)
        rounds = record.rounds
        assert rounds > 50
        pulls = np.ones(9, dtype=np.int64)
        sums = tapes[:, 0].copy()
        extras = record.game[["first", "second", "third"]][0].tolist()
        while pulls.sum() < rounds:
            values = [index(*(sums[a] / pulls[a]), float(pulls[a]), float(pulls.sum()), *extras) for a in range(9)]
            best = int(np.argmax(values))
            sums[best] += tapes[best, pulls[best]]
            pulls[best] += 1
        assert pulls.tolist() == record.arrays["pulls"].tolist()


def test_a_limit_of_rounds_is_kept_in_sweeps() -> None:
    games = IndexGames(Problem.bernoulli([0.5] * 4, [0.5] * 4), parse_policy("ucb1"), [5000.0])
    with pytest.raises(RoundLimit, match="has played 3,000 rounds"):
        games.play(np.random.SeedSequence(0), max_rounds=3000)
    assert games.counters["swept"] > 1000


ALIKE = Independent(Lattice([0.0, 0.25, 1.0], [1, 1, 2]), Lattice([0.5, 1.0], [1, 1]))
TIED: dict[str, Problem] = {
    "zero-one": Problem.bernoulli([0.5] * 5, [0.5] * 5),
    "lattice": Problem(tuple(Arm(f"arm-{i}", ALIKE) for i in range(4))),
    "fixed costs": Problem(tuple(Arm(f"arm-{i}", Independent(ALIKE.reward, Fixed(0.5))) for i in range(4))),
    "thirty": family("uniform-multinomial", 30, seed=3, low=0.7),
}


POLICIES_TIED = ["kube", "ucb-bv1", "pd-bwk", "kube-fractional"]


@pytest.mark.parametrize(
    ("which", "name"),
    mostly_deep([(which, name) for which in TIED for name in POLICIES_TIED], [*zip(TIED, POLICIES_TIED, strict=True)]),
)
def test_sweeps_have_the_distribution_of_the_plain_loop(which: str, name: str) -> None:
    problem, policy = TIED[which], parse_policy(name)
    budgets = [150.0, 700.0] if policy.anytime else [700.0]
    swept = IndexGames(problem, policy, budgets, lazy=True)
    first = sample(swept, 500, seed=11)
    second = sample(IndexGames(problem, policy, budgets, lazy=False), 500, seed=12)
    assert smallest_p(first, second) > FALSE_ALARM
    assert swept.counters["swept"] > 0


@njit
def fill_tape(games, arm, times):
    for _ in range(times):
        lengthen(games[0], arm, 64)


@pytest.mark.deep
@pytest.mark.parametrize("which", ["zero-one", "lattice", "fixed costs"])
def test_tapes_have_the_law_of_the_arm(which: str) -> None:
    games = IndexGames(TIED[which], parse_policy("kube"), [1.0])
    record, tables = games._record, games._tables
    games._begin([1.0], np.random.SeedSequence(5).generate_state(4, np.uint64), 1 << 60)
    fill_tape(record.game, 1, 900)
    tape = record.arrays["buffer"][1, : 900 * 64]
    assert record.arrays["filled"][1] == len(tape)
    law = TIED[which].arms[1].law
    assert isinstance(law, Independent)
    seen, expected = [], []
    for reward, reward_chance in zip(*law.reward.atoms(), strict=True):
        for cost, cost_chance in zip(*law.cost.atoms(), strict=True):
            hits = (tape[:, 0] == reward * tables.reward_scale) & (tape[:, 1] == cost * tables.cost_scale)
            seen.append(int(hits.sum()))
            expected.append(reward_chance * cost_chance * len(tape))
    assert sum(seen) == len(tape)
    assert stats.chisquare(seen, expected).pvalue > FALSE_ALARM
