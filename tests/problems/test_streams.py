"""Request streams: parts, files, drift, and what the best player earns."""

from dataclasses import replace

import numpy as np
import pytest

from budgetbandits import Problem, simulate
from budgetbandits.errors import BadParameter, ProblemError
from budgetbandits.numerics.fluid import best_mix
from budgetbandits.problems.distributions import Beta, Copula, Fixed, Independent, JointTable, Lattice
from budgetbandits.problems.oracle_horizon import fluid_plan, fluid_reward
from budgetbandits.problems.problem import Arm
from budgetbandits.problems.streams import RequestStream, StreamPart, drifting, load, scaled, without

SMALL = Problem.bernoulli([0.2, 0.8, 0.7], [0.1, 0.5, 0.9])
OTHER = Problem.bernoulli([0.6, 0.3, 0.9], [0.2, 0.3, 1.0])
BOTH = RequestStream(
    (
        StreamPart(SMALL, 0, "code", 0.25),
        StreamPart(OTHER, 0, "talk", 0.75),
        StreamPart(OTHER, 40, "code", 0.5),
        StreamPart(without(SMALL, "arm-2"), 40, "talk", 0.5),
    )
)


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [BOTH, RequestStream.phases([(0, SMALL), (7, OTHER)])], ids=["both", "phases"])
def test_a_file_is_read_as_it_was_written(stream, tmp_path):
    path = tmp_path / "stream.toml"
    path.write_text(stream.to_toml())
    assert RequestStream.load(path) == load(path) == stream
    assert stream.identity == RequestStream.load(path).identity != RequestStream.phases([(0, SMALL)]).identity
    path.write_text(SMALL.to_toml())
    assert load(path) == SMALL


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("parts = 3", "nothing but"),
        ("[[parts]]\nfrom = 0\nspeed = 2", "part 1: unknown key 'speed'"),
        ("parts = [1]", "part 1: it is no table"),
        ("[[parts]]\nfrom = 0", "part 1: a problem needs at least two arms"),
        ("parts = [", "not TOML"),
    ],
)
def test_what_files_are_refused(text, why, tmp_path):
    path = tmp_path / "stream.toml"
    path.write_text(text)
    with pytest.raises(ProblemError, match=why) as caught:
        load(path)
    assert str(path) in str(caught.value)
    with pytest.raises(ProblemError, match="this is a request stream"):
        Problem.from_toml(BOTH.to_toml())


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([StreamPart(SMALL, 5)], "begins at request 0"),
        ([], "begins at request 0"),
        ([StreamPart(SMALL), StreamPart(OTHER)], "the same segment"),
        ([StreamPart(SMALL, 0, "a", 0.5), StreamPart(OTHER, 0, "b", 0.4)], "sum to 0.9"),
        ([StreamPart(SMALL), StreamPart(SMALL, 9), StreamPart(SMALL, 4)], "4 comes late"),
        ([StreamPart(SMALL), StreamPart(SMALL, 9, "a")], "the same segments in every phase"),
        ([StreamPart(SMALL), StreamPart(replace(SMALL, cost_max=2.0), 9)], "different cost_max"),
    ],
)
def test_what_parts_are_refused(parts, why):
    with pytest.raises(ProblemError, match=why):
        RequestStream(tuple(parts))


@pytest.mark.parametrize("wrong", [{"first": -1}, {"first": 1.5}, {"segment": "\n"}, {"share": 0.0}, {"problem": "x"}])
def test_what_a_part_refuses(wrong):
    with pytest.raises(ProblemError):
        StreamPart(**{"problem": SMALL} | wrong)


def test_recorded_outcomes_by_segment(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(
        "model,reward,cost,source\na,1,0.02,x\nb,5,0.04,x\na,0,0.01,y\nb,4,0.02,y\nc,2,0.01,y\na,3,0.01,y\n"
    )
    stream = RequestStream.from_csv(path, {"arm": "model", "segment": "source"})
    assert stream.names == ("a", "b", "c")
    assert [part.share for part in stream.parts] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert stream.available_arms.tolist() == [[True, True, False], [True, True, True]]
    assert stream.reward_means == pytest.approx(np.array([[0.2, 1.0, 0.0], [0.3, 0.8, 0.4]]))
    assert (stream.parts[0].problem.cost_max, stream.parts[1].problem.reward_max) == (0.04, 5.0)
    with pytest.raises(ProblemError, match="no column says segment"):
        RequestStream.from_csv(path, {"arm": "model"})


# --- drift ---------------------------------------------------------------------------------------------------------


def test_a_price_cut_halves_every_cost():
    laws = [
        Independent(Fixed(0.5), Fixed(0.8)),
        Independent(Beta(2, 2), Lattice([0.4, 1.0], [1, 3])),
        JointTable([[1, 1, 0.5], [0.2, 0.5, 0.5]]),
        Copula(Beta(1, 1), Fixed(0.6), 0.5),
    ]
    problem = Problem(tuple(Arm(f"arm-{number}", law) for number, law in enumerate(laws)))
    for number in range(len(laws)):
        cut = scaled(problem, f"arm-{number}", cost=0.5)
        wanted = problem.cost_means * np.where(np.arange(len(laws)) == number, 0.5, 1.0)
        assert cut.cost_means == pytest.approx(wanted)
        assert cut.reward_means == pytest.approx(problem.reward_means)
    with pytest.raises(BadParameter, match="write the phases out"):
        scaled(problem, "arm-1", reward=0.5)
    with pytest.raises(BadParameter, match="no arm 'x'"):
        scaled(problem, "x", cost=0.5)
    with pytest.raises(BadParameter, match="from 0 to 1"):
        scaled(problem, "arm-0", cost=2.0)


def test_what_may_happen_to_a_problem():
    price, quality, new = (drifting(SMALL, name, 9) for name in ("price-cut", "quality-drop", "new-arm"))
    assert price.cost_means[1] == pytest.approx(np.array([0.1, 0.25, 0.9]))
    assert quality.reward_means[1] == pytest.approx(np.array([0.2, 0.4, 0.7]))
    assert new.names == ("arm-1", "arm-3", "arm-2")
    assert new.available_arms[0].tolist() == [True, True, False]
    with pytest.raises(BadParameter, match="unknown drift"):
        drifting(SMALL, "weather", 9)


# --- requests --------------------------------------------------------------------------------------------------------


def test_requests_come_in_their_shares():
    """Binomial counts within five standard deviations."""
    parts = BOTH.sequence(4040, np.random.default_rng(1))
    counts = np.bincount(parts[:40], minlength=4), np.bincount(parts[40:], minlength=4)
    assert counts[0][2:].tolist() == counts[1][:2].tolist() == [0, 0]
    assert counts[0][0] == pytest.approx(10, abs=5 * np.sqrt(7.5))
    assert counts[1][2] == pytest.approx(2000, abs=5 * np.sqrt(1000))
    assert BOTH.requests(4040).tolist() == [10.0, 30.0, 2000.0, 2000.0]
    assert BOTH.requests(20).tolist() == [5.0, 15.0, 0.0, 0.0]


# --- the oracle ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [3.0, 30.0, 45.0, 90.0, 200.0])
def test_of_one_part_the_plan_is_the_mix(budget):
    """Split in phases, which are all alike, it is the same bound."""
    bound = fluid_reward(SMALL, budget, 100)
    assert fluid_reward(RequestStream.phases([(0, SMALL)]), budget, 100) == pytest.approx(bound)
    assert fluid_reward(RequestStream.phases([(0, SMALL), (20, SMALL), (70, SMALL)]), budget, 100) == pytest.approx(
        bound
    )


@pytest.mark.parametrize("rate", [0.15, 0.3, 0.5, 0.9])
def test_of_segments_the_plan_is_the_program_of_the_policy(rate):
    stream = RequestStream.of_segments({"code": (0.25, SMALL), "talk": (0.75, OTHER)})
    means = [table.tolist() for table in (stream.reward_means, stream.cost_means)]
    mix = best_mix(*means, [0.25, 0.75], rate)
    answered = min(100.0, 100.0 * rate / mix.spend(means[1], [0.25, 0.75]))
    assert fluid_reward(stream, 100 * rate, 100) == pytest.approx(answered * mix.spend(means[0], [0.25, 0.75]))


def optimum(phases, budget):
    """The most any policy earns on phases of Bernoulli problems, by dynamic programming."""
    value = np.zeros(budget + 1)
    for problem in reversed(phases):
        paying = np.concatenate([[0.0], value[:-1]])
        rows = [r + c * paying + (1 - c) * value for r, c in zip(problem.reward_means, problem.cost_means, strict=True)]
        value = np.max(rows, axis=0)
        value[0] = 0.0
    return float(value[-1])


@pytest.mark.parametrize(("budget", "most"), [(5, 1.25), (20, 1.1), (40, 1.05)])
def test_nobody_earns_more_than_the_plan(budget, most):
    """Forty requests of one kind and sixty of another; with money for all of them the best policy is near the bound."""
    for first, then in ((SMALL, OTHER), (OTHER, SMALL)):
        best = optimum([first] * 40 + [then] * 60, budget)
        assert best <= fluid_reward(RequestStream.phases([(0, first), (40, then)]), budget, 100) < most * best


def test_it_pays_to_end_early_where_later_arms_are_poor():
    """All the money goes to the first phase: the game ends when it is spent."""
    poor = Problem.bernoulli([0.01, 0.02], [0.5, 0.9])
    good = Problem.bernoulli([0.5, 0.9], [0.5, 0.9])
    plan = fluid_plan(RequestStream.phases([(0, good), (50, poor)]), 25, 100)
    assert plan[1].sum() == pytest.approx(0.0, abs=1e-6)
    assert plan[0] @ good.cost_means == pytest.approx(25.0)


# --- games -----------------------------------------------------------------------------------------------------------


def test_segments_are_handed_over_and_pay():
    """Two segments with opposite arms: with them the policy learns which is which, without them it cannot."""
    first, second = Problem.bernoulli([0.9, 0.1], [0.5, 0.5]), Problem.bernoulli([0.1, 0.9], [0.5, 0.5])
    stream = RequestStream.of_segments({"here": (0.5, first), "there": (0.5, second)})
    paced, plain = (simulate(stream, policy, [400], 4, horizon=400) for policy in ("bts-paced", "bts"))
    assert paced.part_pulls.shape == (4, 1, 2, 2)
    assert np.array_equal(paced.part_pulls.sum(axis=2), paced.pulls)
    assert paced.reward.mean() > 320
    assert plain.reward.mean() < 260
    assert paced.best_arm_identified.all()
    assert not plain.best_arm_identified.all()
    assert paced.pseudo_regret == pytest.approx(
        360.0 - (paced.part_pulls * stream.reward_means).sum(axis=(2, 3)), abs=1e-6
    )


def test_a_new_arm_answers_from_its_request_on():
    played = simulate(drifting(SMALL, "new-arm", 50), "kube", [200], 3, horizon=150)
    assert (played.part_pulls[:, :, 0, 2] == 0).all()
    assert (played.part_pulls[:, :, 1, 2] > 0).all()


def test_what_is_refused():
    with pytest.raises(BadParameter, match="say how many there are"):
        simulate(BOTH, "bts", [5], 1)
    with pytest.raises(BadParameter, match="no common outcomes"):
        simulate(BOTH, "bts", [5], 1, horizon=9, common=True)
    with pytest.raises(BadParameter, match="must know every arm's cost"):
        simulate(BOTH, "kube-fractional", [5], 1, horizon=9)
