"""The compiled loops of games with a horizon play the games of the reference simulator."""

import os

import numpy as np
import pytest

from budgetbandits import Problem, simulate
from budgetbandits.errors import BadParameter, RoundLimit
from budgetbandits.policies import parse_policy
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.policies.primal_dual import PrimalDualBwK
from budgetbandits.problems.distributions import Beta, Copula, Fixed, Independent, Lattice
from budgetbandits.problems.problem import Arm
from budgetbandits.problems.streams import RequestStream, StreamPart, drifting
from budgetbandits.simulation.dispatch import engine_for
from budgetbandits.testing.engines import FALSE_ALARM, GAMES, rows, smallest_p
from deep import mostly_deep
from own_rules import with_own

ANY_LAW, TEN = GAMES["laws of every kind"][0], GAMES["ten arms"][0]
OWN_SCALES = Problem(
    (
        Arm("dear", Copula(Beta(8, 2), Beta(2, 3), 0.6), cost_max=1.0),
        Arm("cheap", Independent(Beta(3, 3), Lattice([0.002, 0.01], [1, 2])), cost_max=0.02),
        Arm("middle", Independent(Lattice([0.1, 0.9], [1, 2]), Fixed(0.07)), cost_max=0.3),
    )
)
THREE = RequestStream(
    (
        StreamPart(Problem(TEN.arms[:4]), 0, "easy", 0.5),
        StreamPart(Problem(TEN.arms[3:7]), 0, "hard", 0.3),
        StreamPart(Problem(TEN.arms[1:5]), 0, "rare", 0.2),
        StreamPart(Problem(TEN.arms[2:8]), 50, "easy", 0.2),
        StreamPart(TEN, 50, "hard", 0.6),
        StreamPart(Problem(TEN.arms[:2]), 50, "rare", 0.2),
    )
)
"""Segments with arms of their own, which change."""
PLAYED = {
    "two segments": RequestStream.of_segments({"easy": (0.7, TEN), "hard": (0.3, Problem(TEN.arms[::-1]))}),
    "segments and scales": RequestStream.of_segments(
        {"one": (0.6, OWN_SCALES), "other": (0.4, Problem(OWN_SCALES.arms[1:]))}
    ),
    "segments of any law": RequestStream.of_segments({"a": (0.5, ANY_LAW), "b": (0.3, ANY_LAW), "c": (0.2, ANY_LAW)}),
    "segments that change": THREE,
    "any law": ANY_LAW,
    "scales of their own": OWN_SCALES,
    "ten arms": TEN,
    "a price is cut": drifting(TEN, "price-cut", 40),
    "an arm comes": drifting(TEN, "new-arm", 40),
    "arms come and go": RequestStream.phases([(0, Problem(TEN.arms[:4])), (30, Problem(TEN.arms[2:])), (31, TEN)]),
}


POLICIES = [
    *("bts-paced", "bts-paced:forget=0.1,pooling=2.0", "bts-paced:trials=1"),
    *("primal-dual-bwk", "primal-dual-bwk:horizon=77"),
]
HOPEFUL = "bts-paced:hope=2.0"
PAIRS = [(policy, name) for policy in [*POLICIES, HOPEFUL] for name in PLAYED]
FEW = [(POLICIES[place % len(POLICIES)], name) for place, name in enumerate(PLAYED)]
"""Every problem once, every policy twice; then one that draws nothing."""
FEW += [(HOPEFUL, "segments that change"), (HOPEFUL, "scales of their own"), (HOPEFUL, "an arm comes")]


@pytest.mark.parametrize(("policy", "name"), mostly_deep(PAIRS, FEW))
def test_the_loops_play_the_games_of_the_reference(policy, name):
    """Broken by a draw more or less anywhere, another batch of outcomes, a sum or a price that is updated otherwise."""
    runs = 6 if os.environ.get("BUDGETBANDITS_DEEP") else 2
    played = (simulate(PLAYED[name], policy, [4, 45.5], runs, horizon=120, engine=e) for e in ("fast", "reference"))
    fast, slow = played
    assert (fast.engine, fast.engine_reason) == ("paced plain loop", "")
    assert np.array_equal(rows(fast), rows(slow))
    if isinstance(PLAYED[name], RequestStream):
        assert np.array_equal(fast.part_pulls, slow.part_pulls)
        assert (fast.part_pulls.sum(axis=(0, 1))[~PLAYED[name].available_arms] == 0).all()


def test_without_a_horizon_too():
    for policy in ("bts-paced", HOPEFUL):
        fast, slow = (simulate(TEN, policy, [25], 4, engine=engine) for engine in ("fast", "reference"))
        assert np.array_equal(fast.pulls, slow.pulls)


@pytest.mark.deep
@pytest.mark.parametrize("policy", ["bts", "kube"])
def test_other_plain_loops_end_at_the_horizon(policy):
    """Two-sample tests with the reference; false alarms at 1e-6. A horizon of one request more is another game."""
    budgets = [6.0, 20.0]
    fast, longer = (simulate(TEN, policy, budgets, 300, horizon=h) for h in (31, 32))
    slow = simulate(TEN, policy, budgets, 300, horizon=31, engine="reference")
    assert fast.engine.endswith("plain loop")
    assert smallest_p(rows(fast), rows(slow)) > FALSE_ALARM
    assert smallest_p(rows(longer), rows(slow)) < FALSE_ALARM


def test_outcomes_may_be_common():
    """The first pull of an arm brings both policies the same: ten arms are pulled once each before anything else."""
    fast, slow = (
        simulate(TEN, "primal-dual-bwk", [50], 3, horizon=10, common=True, engine=e) for e in ("fast", "reference")
    )
    assert np.array_equal(fast.reward, slow.reward)
    assert (fast.pulls == 1).all()


@pytest.mark.deep
def test_many_games_with_segments_have_the_law_of_the_reference():
    """Two-sample tests; false alarms at 1e-6. If one segment comes less often, it is another game."""
    here, there = (
        RequestStream.of_segments({"a": (share, OWN_SCALES), "b": (1.0 - share, Problem(OWN_SCALES.arms[1:]))})
        for share in (0.6, 0.1)
    )
    fast, other = (simulate(stream, "bts-paced", [4.0], 150, horizon=40) for stream in (here, there))
    slow = simulate(here, "bts-paced", [4.0], 150, seed=1, horizon=40, engine="reference")
    assert smallest_p(rows(fast), rows(slow)) > FALSE_ALARM
    assert smallest_p(rows(other), rows(slow)) < FALSE_ALARM


@pytest.mark.parametrize(
    ("problem", "policy", "why"),
    [
        (PLAYED["an arm comes"], "bts", "knows streams"),
        (TEN, "epsilon-first", "knows no horizon"),
        (OWN_SCALES, "bts", "scales of the arms' own"),
        (TEN, "kube-knapsack", "of its own"),
    ],
)
def test_what_is_left_to_the_reference(problem, policy, why):
    engine = engine_for(problem, parse_policy(policy), 50.0)
    assert engine.name == "reference"
    assert why in engine.reason
    with pytest.raises(BadParameter, match="no fast engine"):
        simulate(problem, policy, [5], 1, horizon=50, engine="fast")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (PacedThompson, "all_laws"),
        (PacedThompson, "hoped"),
        (PacedThompson, "observe"),
        (PrimalDualBwK, "growth"),
        (PrimalDualBwK, "extras"),
    ],
)
def test_a_method_of_its_own(kind, name):
    assert f"{name} of its own" in engine_for(TEN, with_own(kind, name)(), 50.0).reason


def test_a_game_that_goes_on_too_long():
    with pytest.raises(RoundLimit, match="has played 50 rounds"):
        simulate(TEN, "bts-paced", [500.0], 1, max_rounds=50, horizon=400)


def test_a_stream_is_listed_request_by_request():
    with pytest.raises(BadParameter, match="use at most 100,000,000 requests with a stream"):
        simulate(PLAYED["two segments"], "bts-paced", [5.0], 1, horizon=10**12)
