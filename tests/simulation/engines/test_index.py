"""The compiled engines against the reference simulator and against each other.

Two kinds of evidence. On outcomes fixed in advance (an arm's k-th pull always brings the same) and without ties, games
must agree with the reference pull for pull. With drawn outcomes, whole games are compared in distribution: every test
fails with probability below 1e-6 (`comparing.FALSE_ALARM`, Bonferroni) if the engines agree; seeds are fixed.
"""

from __future__ import annotations

import importlib
import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit
from scipy import stats

from budgetbandits import POLICIES
from budgetbandits.errors import BadParameter, RoundLimit
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy
from budgetbandits.policies.index import RISING_INDEX, IndexPolicy, Monotonicity
from budgetbandits.problems.distributions import Bernoulli, Beta, Fixed, Independent, JointTable, Lattice
from budgetbandits.problems.families import family
from budgetbandits.problems.problem import Arm, Problem
from budgetbandits.simulation.engines.epsilon_first.engine import EpsilonFirstGames
from budgetbandits.simulation.engines.index import engine as games_module
from budgetbandits.simulation.engines.index import groups, state
from budgetbandits.simulation.engines.index.conformance import spot_check
from budgetbandits.simulation.engines.index.engine import IndexGames, one_pull_each
from budgetbandits.simulation.engines.index.rules import IndexRule, compiled, completed, rule_of
from budgetbandits.simulation.engines.runtime import binomials
from budgetbandits.simulation.engines.runtime.binomials import binomial
from budgetbandits.simulation.reference import what_is_known
from budgetbandits.testing.engines import FALSE_ALARM, smallest_p
from comparing import chi_square, sample
from deep import deep, mostly_deep
from own_rules import AboveTheFloor, CautiousRatio, Forgetful, Steep
from recorded import naive_sample, play_naively, recorded_problem, rewound, same_games

DEEP = bool(os.environ.get("BUDGETBANDITS_DEEP"))
"""`make deep` plays more games and looks at more points."""

pytestmark = [pytest.mark.deep] if DEEP else []
"""So all tests here are for `make deep`, too."""

LIBRARY = [name for name, kind in POLICIES.items() if issubclass(kind, IndexPolicy) and kind.monotone != Monotonicity()]
"""Policies that declare something of their index: the engines play them."""
ONE_OF_EACH_KIND = ("kube", "ucb1", "kube-fractional", "ucb-v", "ucb-bv2", "ucb-b2", "imed-ratio", "gittins-ratio")
"""Of these, one for each kind of first extra, and one whose index ignores costs."""
WITHOUT_TIES = ["kube", "kube-fractional", "pd-bwk", "primal-dual-bwk", "ucb1", "ucb-v", "moss", "kl-ucb"]
LATER = ["omega-ucb", "omega-star-ucb", "omega-rising:wait=2", "budget-ucb"]
LATER += ["imed-ratio", "imed-fading:fade=9", "imed-moss"]
ALL = [*WITHOUT_TIES, "ucb-bv1", "ucb-bv2"]
MOVING = ["omega-star-ucb", "omega-rising", "ucb-b2", "ucb-b2c", "imed-ratio", "imed-fading:fade=9", "imed-moss"]
"""Indices that depend on variances or on the best ratio."""
OWN: dict[str, Policy] = {p.name: p for p in (CautiousRatio(), Steep(), AboveTheFloor(), Forgetful())}


def policy_of(name: str) -> Policy:
    return OWN[name] if name in OWN else parse_policy(name)


# --- outcomes fixed in advance -----------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def lazy_means_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A moving floor is played lazily only where there are many arms; tests want it with few, too."""
    importlib.import_module("budgetbandits.simulation.dispatch")  # keeps the number as it is now
    monkeypatch.setattr(games_module, "PLAIN_LOOP_ARMS_MAX", 0)


@pytest.mark.parametrize(
    ("name", "arms"),
    [
        *itertools.product([*WITHOUT_TIES, *OWN], (2, 40)),
        *itertools.product(LATER, (3, 40)),
        *deep(*((name, 5) for name in (*WITHOUT_TIES, *OWN))),
    ],
)
def test_pull_for_pull_as_the_reference(name: str, arms: int) -> None:
    policy = policy_of(name)
    budgets = [25.0, 150.3] if name in LATER else [25.0, 90.3, 700.0] if policy.anytime else [400.0]
    for seed in range(3) if DEEP else [int(arms == 40 and name not in LATER)]:
        problem = recorded_problem(arms, seed=100 * arms + seed, low=0.3 if seed == 0 else 0.1)
        expected = play_naively(rewound(problem), policy, budgets, seed)
        for lazy in (True, False):
            games = IndexGames(rewound(problem), policy, budgets, lazy=lazy).play(np.random.SeedSequence(seed))
            assert same_games(expected, games), lazy


def test_fractional_kube_stops_when_nothing_is_affordable() -> None:
    for seed in range(10):
        problem = recorded_problem(6, seed=seed, low=0.2, fixed_cost=True)
        policy = parse_policy("kube-fractional")
        for budget in (0.3, 1.7, 40.05):
            expected = play_naively(rewound(problem), policy, [budget], seed)
            for lazy in (True, False):
                games = IndexGames(rewound(problem), policy, [budget], lazy=lazy).play(np.random.SeedSequence(seed))
                assert same_games(expected, games)


# --- drawn outcomes ----------------------------------------------------------------------------------------------

PROBLEMS: dict[str, tuple[Problem, list[float]]] = {
    "near tie": (Problem.bernoulli([0.6, 0.58], [0.4, 0.4]), [20.0, 60.0, 400.0]),
    "ten": (family("uniform-bernoulli", 10, seed=4, low=0.1), [30.5, 100.0, 300.0]),
    "fifty on a lattice": (family("uniform-multinomial", 50, seed=1, low=0.2), [20.0, 40.25, 60.0]),
    "one tiny cost": (Problem.bernoulli([0.5, 0.6, 0.3], [0.5, 0.02, 0.4]), [5.0, 20.0, 40.0]),
    "all alike": (Problem.bernoulli([0.5] * 6, [0.5] * 6), [10.0, 40.0, 120.0]),
}


PAIRS = [(which, name) for name in (*ALL, *MOVING) for which in PROBLEMS]
KEPT = [(which, ALL[(4 * place) % len(ALL)]) for place, which in enumerate(PROBLEMS)]  # every problem with one policy
KEPT += [(which, MOVING[0]) for which in ("near tie", "fifty on a lattice", "all alike")]


@pytest.mark.parametrize(("which", "name"), mostly_deep(PAIRS, KEPT))
def test_blocks_have_the_distribution_of_the_plain_loop(which: str, name: str) -> None:
    problem, budgets = PROBLEMS[which]
    policy = policy_of(name)
    runs = 600 if DEEP else 300
    lazy = sample(IndexGames(problem, policy, budgets, lazy=True), runs, seed=1)
    assert smallest_p(lazy, sample(IndexGames(problem, policy, budgets, lazy=False), runs, seed=2)) > FALSE_ALARM


@pytest.mark.deep
@pytest.mark.parametrize("name", ["kube", "ucb-bv1", "pd-bwk", "ucb-v"])
def test_long_games_have_the_distribution_of_the_plain_loop(name: str) -> None:
    problem = Problem.bernoulli([0.5, 0.45, 0.8], [0.6, 0.55, 0.9])
    policy = policy_of(name)
    budgets = [500.0, 2_000.0] if policy.anytime else [2_000.0]
    lazy = sample(IndexGames(problem, policy, budgets, lazy=True), 1500, seed=3)
    assert smallest_p(lazy, sample(IndexGames(problem, policy, budgets, lazy=False), 1500, seed=4)) > FALSE_ALARM


@pytest.mark.deep
@pytest.mark.parametrize("name", ["kube", "ucb1", "ucb-bv2"])
def test_the_plain_loop_has_the_distribution_of_the_reference(name: str) -> None:
    """Ties and all: the plain loop is the yardstick of the tests above."""
    policy = policy_of(name)
    for problem in (PROBLEMS["all alike"][0], family("uniform-multinomial", 4, seed=2, low=0.2)):
        budgets = [5.0, 20.0]
        plain = sample(IndexGames(problem, policy, budgets, lazy=False), 800, seed=5)
        assert smallest_p(plain, naive_sample(problem, policy, budgets, 800, seed=10_000)) > FALSE_ALARM


@pytest.mark.deep
def test_mixed_laws_are_played_from_buffers() -> None:
    laws = [
        Independent(Bernoulli(0.4), Beta(2.0, 3.0)),
        JointTable([[1, 1, 0.5], [0, 0.5, 0.5]]),
        Independent(Lattice([0.1, 0.7], [1, 2]), Fixed(0.3)),
    ]
    problem = Problem(tuple(Arm(f"arm-{i}", law) for i, law in enumerate(laws)))
    for name in ("kube", "ucb-bv2"):
        lazy = sample(IndexGames(problem, policy_of(name), [8.0, 30.0], lazy=True), 1000, seed=6)
        plain = sample(IndexGames(problem, policy_of(name), [8.0, 30.0], lazy=False), 1000, seed=7)
        assert smallest_p(lazy, plain) > FALSE_ALARM


@pytest.mark.parametrize("name", ["epsilon-first:epsilon=0.3", "epsilon-first-greedy:epsilon=0.3"])
@pytest.mark.parametrize("which", ["fixed", *deep("lattice", "bernoulli", "alike", "beta")])
def test_epsilon_first_has_the_distribution_of_the_reference(which: str, name: str) -> None:
    fixed = [Independent(Bernoulli(r), Fixed(c)) for r, c in [(0.5, 0.25), (0.5, 0.5), (0.9, 0.75)]]
    problem, budgets = {
        "bernoulli": (Problem.bernoulli([0.6, 0.5], [0.4, 0.3]), [1.0, 3.5, 30.0]),
        "lattice": (family("uniform-multinomial", 4, seed=1, low=0.2), [0.75, 5.25, 20.0]),
        "alike": (Problem.bernoulli([0.5] * 4, [0.5] * 4), [4.0, 20.0]),
        "beta": (family("uniform-beta", 3, seed=2, low=0.1), [2.0, 12.0]),
        "fixed": (Problem(tuple(Arm(f"arm-{i}", law) for i, law in enumerate(fixed))), [0.6, 2.0, 10.3]),
    }[which]
    policy = parse_policy(name)
    quick = sample(EpsilonFirstGames(problem, policy, budgets), 1_000, seed=8)
    assert smallest_p(quick, naive_sample(problem, policy, budgets, 300, seed=20_000)) > FALSE_ALARM


# --- ties --------------------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_equal_arms_are_pulled_in_an_order_that_is_uniform() -> None:
    """Four arms whose outcomes never vary tie in every round: each sweep is a random permutation, whatever the last."""
    problem = Problem(tuple(Arm(f"arm-{i}", Independent(Fixed(0.5), Fixed(0.5))) for i in range(4)))
    games = IndexGames(problem, parse_policy("ucb1"), [0.5 * pull for pull in range(4, 13)])
    seen = np.zeros((256, 256), dtype=np.int64)
    for run in range(15_000):
        pulls = np.array([game[3] for game in games.play(np.random.SeedSequence(run))])
        order = np.diff(pulls, axis=0).argmax(axis=1)
        seen[order[:4] @ [64, 16, 4, 1], order[4:] @ [64, 16, 4, 1]] += 1
    counts = seen[seen > 0]
    assert len(counts) == 24 * 24
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


@pytest.mark.parametrize("name", ["ucb1", "ucb-bv2", *deep("kube", "moss", "kl-ucb", "ucb-bv1")])
def test_arms_alike_are_treated_alike(name: str) -> None:
    """With equal laws the pulls of any two arms are exchangeable: arms join groups that have given others away."""
    budget = 8.0
    games = IndexGames(Problem.bernoulli([0.5] * 4, [0.5] * 4), policy_of(name), [budget])
    pulls = np.array([games.play(np.random.SeedSequence(run))[0][3] for run in range(6_000)])
    for first, second in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
        more, less = (pulls[:, first] > pulls[:, second]).sum(), (pulls[:, first] < pulls[:, second]).sum()
        assert stats.binomtest(more, more + less).pvalue > FALSE_ALARM / 6


@njit
def newcomer_chosen(games):
    """Three arms of one state; one is given away; a fourth joins: is it the next to be given away?"""
    game = games[0]
    for arm in range(3):
        group, _ = groups.join(game, arm)
    groups.give(game, group)
    groups.join(game, 3)
    return groups.give(game, group) == 3


@pytest.mark.deep
def test_an_arm_that_joins_a_group_has_the_same_chance_as_those_that_stayed() -> None:
    own = state.IndexRecord(arms=4, budgets=1, chunk=1)
    own.set(frees=4, cost_matters=True)
    start = own.fields()
    chosen = 0
    for run in range(20_000):
        own.begin(start, np.random.SeedSequence(run).generate_state(4, np.uint64))
        own.arrays["pulls"][:] = 1
        own.arrays["free"][:] = range(4)
        chosen += newcomer_chosen(own.game)
    assert stats.binomtest(chosen, 20_000, 1.0 / 3.0).pvalue > FALSE_ALARM


# --- draws -------------------------------------------------------------------------------------------------------


@njit
def draw_counts(stream, n, p, size, by_bits):
    counts = np.empty(size, dtype=np.int64)
    for i in range(size):
        counts[i] = binomials.ones(binomials.trials(stream, p, n)) if by_bits else binomial(stream, n, p)
    return counts


@pytest.mark.parametrize("by_bits", [True, False])
@pytest.mark.parametrize("n", [1, 7, 64])
@pytest.mark.parametrize("p", [1e-3, 0.3, 0.5, 0.97])
def test_small_binomials(n: int, p: float, by_bits: bool) -> None:
    words = np.random.SeedSequence(n).generate_state(4, np.uint64)
    counts = draw_counts(words.ctypes.data, n, p, 100_000, by_bits)
    assert chi_square(np.bincount(counts, minlength=n + 1), stats.binom.pmf(np.arange(n + 1), n, p)) > FALSE_ALARM


# --- rules -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", mostly_deep(LIBRARY, ONE_OF_EACH_KIND))
def test_declared_monotonicity_survives_spot_checks(name: str) -> None:
    policy = parse_policy(name)
    rule, problem = rule_of(policy), PROBLEMS["ten"][0]
    extras = policy.extras(one_pull_each(policy, len(problem), what_is_known(problem, policy, 100.0)))
    extras = tuple(0.5 if np.ndim(extra) else float(extra) for extra in completed(rule.index, extras))
    spot_check(rule, extras, points=5_000 if DEEP else 1_000)


def test_a_false_declaration_is_refuted() -> None:
    with pytest.raises(BadParameter, match="does not"):
        spot_check(IndexRule(Forgetful.index, RISING_INDEX))


def test_the_compiled_index_is_the_policy_s_own() -> None:
    rng = np.random.default_rng(0)
    for name in LIBRARY:
        index = rule_of(parse_policy(name)).index
        f = compiled(index)
        for _ in range(50):
            point = [rng.random(), rng.random(), float(rng.integers(1, 500)), float(rng.integers(500, 10_000))]
            point += [rng.random(), 1.2, 0.1, 0.3, 0.7, 0.9, 1.1, 0.8][: index.__code__.co_argcount - 4]
            with np.errstate(divide="ignore", invalid="ignore"):
                expected = float(index(*point))
            assert f(*point) == expected or f(*point) == pytest.approx(expected, rel=1e-12), name


# --- the machinery -----------------------------------------------------------------------------------------------


def test_a_run_depends_on_its_seed_alone() -> None:
    problem, budgets = PROBLEMS["ten"]
    policy = parse_policy("kube")

    def play(run: int) -> list[int]:
        return IndexGames(problem, policy, budgets).play(np.random.SeedSequence(run))[-1][3].tolist()

    alone = [play(run) for run in range(8)]
    games = IndexGames(problem, policy, budgets)
    backwards = [games.play(np.random.SeedSequence(run))[-1][3].tolist() for run in reversed(range(8))]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(play, range(8)))
    assert alone == backwards[::-1] == threaded


def test_a_round_limit_is_an_error() -> None:
    problem, budgets = PROBLEMS["ten"]
    for lazy in (True, False):
        with pytest.raises(RoundLimit):
            IndexGames(problem, parse_policy("kube"), budgets, lazy=lazy).play(
                np.random.SeedSequence(0), max_rounds=200
            )


@pytest.mark.deep
def test_many_arms_and_large_budgets() -> None:
    """A hundred thousand arms with thousands in the same state, and a budget of a hundred million."""
    rng = np.random.default_rng(0)
    problem = Problem.bernoulli(rng.uniform(0.1, 1.0, 100_000), rng.uniform(0.1, 1.0, 100_000))
    games = IndexGames(problem, parse_policy("ucb1"), [200_000.0])
    ((_, spend, rounds, pulls),) = games.play(np.random.SeedSequence(0))
    assert spend == 200_000.0
    assert pulls.sum() == rounds
    assert games.counters["evaluations"] < 40 * rounds
    games = IndexGames(Problem.bernoulli([0.5, 0.6], [0.5, 0.5]), parse_policy("kube"), [1e8])
    ((_, spend, rounds, pulls),) = games.play(np.random.SeedSequence(0))
    assert spend == 1e8
    assert games.counters["evaluations"] < rounds / 50


def test_a_second_process_takes_everything_from_the_cache() -> None:
    code = (
        "import numpy as np;"
        "from budgetbandits.simulation.engines.index.engine import IndexGames;"
        "from budgetbandits.simulation.engines.index.loops import play_lazily;"
        "from budgetbandits.problems.problem import Problem; from budgetbandits.policies import parse_policy;"
        "IndexGames(Problem.bernoulli([.5,.6],[.5,.5]), parse_policy('kube'), [9.]).play(np.random.SeedSequence(0));"
        "assert not play_lazily.stats.cache_misses and play_lazily.stats.cache_hits"
    )
    IndexGames(Problem.bernoulli([0.5, 0.6], [0.5, 0.5]), parse_policy("kube"), [9.0]).play(np.random.SeedSequence(0))
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_kind_of_extra_is_covered() -> None:
    kinds = {state.CONSTANT, state.OWN, state.VARIANCE, state.MOMENTS, state.FLOOR_SEEN, state.BEST_RATIO, state.MONEY}
    assert {rule_of(parse_policy(name)).kind for name in LIBRARY} == kinds
