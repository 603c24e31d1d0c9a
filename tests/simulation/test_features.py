"""Games on streams of requests with features: what policies see, what they earn, and what is refused."""

import numpy as np
import pytest

from budgetbandits import Problem, simulate, simulate_many
from budgetbandits.errors import BadParameter
from budgetbandits.policies.linear import LinearThompson
from budgetbandits.policies.paced.policy import PacedThompson
from budgetbandits.problems import BernoulliFeature, JointTable, LinearArm, LinearStream, NormalFeature
from budgetbandits.problems.families import linear
from budgetbandits.problems.oracle_horizon import fluid_requests, fluid_reward
from budgetbandits.simulation.reference import ReferencePlayer, what_is_known

CROSSED = LinearStream(
    (BernoulliFeature("code", 0.5),),
    (LinearArm("a", 0.2, 0.2, (0.6,), (0.0,)), LinearArm("b", 0.8, 0.1, (-0.6,), (float(np.log(2.0)),))),
    cost_spread=0.0,
)
"""The arm that pays 0.8 for one kind of requests pays 0.2 for the other."""


def watched(kind, seen):
    """A policy that notes the requests it is given."""

    def choose(self, state, rng, *request):
        seen.append((state.known.features, *request))
        return kind.choose(self, state, rng, *request)

    return type("Watched", (kind,), {"choose": choose})()


def test_a_policy_that_uses_features_sees_those_of_each_request():
    none = (0.0, 0.0)
    arms = LinearArm("a", 0.5, 0.1, none, none), LinearArm("b", 0.6, 0.2, none, none)
    stream = LinearStream((NormalFeature("x", 100.0, 1.0), BernoulliFeature("y", 0.5)), arms)
    seen = []
    ReferencePlayer(stream, watched(LinearThompson, seen), [1.0, 50.0], 60.0).play(np.random.SeedSequence(1), 1000)
    rows = np.array([request.features for _, request in seen])
    assert {known for known, _ in seen} == {2}
    assert rows.shape[1] == 2
    assert len(np.unique(rows[:, 0])) == len(rows) > 60  # another request each time, at both budgets
    assert rows[:, 0] == pytest.approx(100.0, abs=6.0)
    assert set(rows[:, 1]) == {0.0, 1.0}


def test_a_policy_that_uses_none_sees_nothing():
    seen = []
    ReferencePlayer(CROSSED, watched(PacedThompson, seen), [5.0], 20.0).play(np.random.SeedSequence(1), 1000)
    assert seen == [(0,)] * len(seen)
    assert len(seen) == 20


def test_features_are_worth_what_they_tell():
    """Without features no player earns more than 0.5 for a request; with them 0.8. The standard error of the mean of
    4 games of 300 requests is 0.015 at most."""
    blind, seeing = (simulate(CROSSED, name, [60], runs=4, horizon=300) for name in ("bts-paced", "bts-linear"))
    assert fluid_reward(CROSSED, 60, 300) == pytest.approx(0.8 * 300)
    assert blind.reward.mean() < 0.56 * 300
    assert seeing.reward.mean() > 0.7 * 300
    assert (seeing.spend <= 60 + 1e-9).all()


def test_without_features_a_stream_is_the_problem_of_what_its_arms_do_on_average():
    """`bts` on the stream and on the problem with the same joint laws: the means of reward and pulls of 300 games each,
    within four standard errors of their difference, a false alarm in 1 of 5,000."""
    rewards, costs = CROSSED.means(np.array([[0.0], [1.0]]))
    laws = [
        JointTable([[paid, costs[x, arm], abs(1.0 - paid - rewards[x, arm])] for x in (0, 1) for paid in (0.0, 1.0)])
        for arm in (0, 1)
    ]
    worlds = CROSSED, Problem.numbered(laws)
    first, second = (simulate(world, "bts", [6], runs=300, horizon=60, engine="reference") for world in worlds)
    for name in ("reward", "rounds", "spend"):
        one, other = getattr(first, name), getattr(second, name)
        assert abs(one.mean() - other.mean()) < 4 * np.sqrt((one.var() + other.var()) / 300)
    assert abs(first.pulls[..., 0].mean() - second.pulls[..., 0].mean()) < 4 * np.sqrt(
        (first.pulls[..., 0].var() + second.pulls[..., 0].var()) / 300
    )


def test_regret_is_measured_against_the_program_over_requests():
    played = simulate(CROSSED, "bts", [20, 5], runs=3, horizon=100)
    bounds = np.array([fluid_requests(CROSSED, budget, 100.0).reward for budget in (20.0, 5.0)])
    assert played.regret == pytest.approx(bounds - played.reward)
    assert (played.pseudo_regret == played.regret).all()
    assert played.part_pulls is None
    assert played.pulls.sum(axis=2).tolist() == played.rounds.tolist()
    assert played.best_arm_identified.shape == (3, 2)
    assert played.to_frame()["regret"].to_list() == pytest.approx(played.regret.ravel().tolist())
    alone = simulate_many({"crossed": CROSSED}, ["bts"], [20], runs=2, horizon=100)
    assert alone["reward"].to_list() == played.reward[:2, 0].tolist()


def test_the_best_arm_is_the_one_that_the_best_player_pulls_most():
    best = LinearStream((), (LinearArm("good", 0.9, 0.1), LinearArm("bad", 0.1, 0.3)))
    assert simulate(best, "bts", [30], runs=3, horizon=300).best_arm_identified.all()
    assert not simulate(best, "epsilon-first:epsilon=0.5", [1], runs=8, horizon=300).best_arm_identified.all()


def test_the_same_seed_gives_the_same_games_in_parts():
    stream = linear(3, 3, 1)
    whole = simulate(stream, "bts-linear", [5], runs=3, horizon=50, seed=4)
    assert simulate(stream, "bts-linear", [5], runs=1, first_run=2, horizon=50, seed=4).reward[0] == whole.reward[2]
    assert (simulate(stream, "bts-linear", [5], runs=3, horizon=50, seed=5).spend != whole.spend).all()


def test_no_compiled_engine_plays():
    played = simulate(CROSSED, "bts-paced", [5], runs=1, horizon=20)
    assert (played.engine, played.engine_reason) == ("reference", "no compiled engine knows requests with features")
    with pytest.raises(BadParameter, match="no fast engine plays bts: no compiled engine knows requests with features"):
        simulate(CROSSED, "bts", [5], runs=1, horizon=20, engine="fast")


def test_what_is_refused():
    with pytest.raises(BadParameter, match="say how many there are: horizon"):
        simulate(CROSSED, "bts-linear", [5], runs=1)
    with pytest.raises(BadParameter, match="no common outcomes"):
        simulate(CROSSED, "bts-linear", [5], runs=1, horizon=20, common=True)
    with pytest.raises(BadParameter, match="must know every arm's cost, which in a stream changes"):
        simulate(CROSSED, "kube-knapsack", [5], runs=1, horizon=20)
    with pytest.raises(BadParameter, match=r"which in a stream changes; see outcome.pulls"):
        simulate(CROSSED, "bts", [5], runs=1, horizon=20).plot("pulls")


def test_policies_know_what_they_need_and_how_many_features_there_are():
    assert what_is_known(CROSSED, LinearThompson(), 5.0, 20.0).to_dict() == {
        "budget": 5.0,
        "horizon": 20.0,
        "features": 1,
    }
    assert what_is_known(CROSSED, PacedThompson(), 5.0, 20.0).to_dict() == {"budget": 5.0, "horizon": 20.0}
