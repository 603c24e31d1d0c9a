"""Laws from outside the package: held to [0, 1] in every engine, played as they are drawn, never written to a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from budgetbandits import Problem, parse_policy, simulate
from budgetbandits.errors import ProblemError, StudyError
from budgetbandits.experiments import Experiment, Results, run
from budgetbandits.experiments.experiment_file import NamedProblem
from budgetbandits.experiments.plan import Cell
from budgetbandits.experiments.runner import Workers
from budgetbandits.problems.distributions import Bernoulli, Copula, Fixed, Independent, Law, OutcomeLaw
from budgetbandits.problems.problem import Arm

ENGINES = [("bts", "fast"), ("kube", "fast"), ("ucb-bv2", "fast"), ("epsilon-first", "fast"), ("kube", "reference")]


@dataclass(frozen=True)
class Uniform(Law):
    low: float
    high: float
    kind = "uniform"

    @property
    def expectation(self):
        return (self.low + self.high) / 2.0

    def quantile(self, level):
        return self.low + (self.high - self.low) * np.asarray(level)


@dataclass(frozen=True)
class Steps(Uniform):
    """Says of its atoms what its draws do not say."""

    def atoms(self):
        return np.array([0.5, 1.2]), np.array([0.5, 0.5])


class Sure(Bernoulli):
    """A Bernoulli law by name that always pays 1."""

    def quantile(self, level):
        return np.ones(np.shape(level))


@dataclass(frozen=True)
class Spiky(OutcomeLaw):
    """Leaves [0, 1] once in a thousand times."""

    chance: float = 1e-3
    value: float = 1.5
    reward_mean = 0.5
    cost_mean = 0.5
    kind = "spiky"

    def sample(self, rng, size):
        return np.where(rng.random(size) < self.chance, self.value, 0.5), np.full(size, 0.5)

    def cost_atoms(self):
        return None


@dataclass(frozen=True)
class Wrong(Spiky):
    shape: tuple = ()

    def sample(self, rng, size):
        return np.full((size, *self.shape), 0.5), np.full(size, 0.5)


def problem(law):
    return Problem((Arm("good", Independent(Bernoulli(0.5), Fixed(0.5))), Arm("mine", law)))


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (Independent(Uniform(0.0, 1.1), Fixed(0.5)), "a reward is 1.1, outside"),
        (Independent(Fixed(0.5), Uniform(-0.1, 1.0)), "a cost is -0.1, outside"),
        (Independent(Uniform(0.0, 1.0 + 1e-9), Fixed(0.5)), "a reward is 1, outside"),
        (Independent(Steps(0.0, 1.0), Fixed(0.5)), "a reward is 1.2, outside"),
        (Independent(Uniform(0.9, 1.3), Fixed(0.5)), "a mean reward is 1.1, outside"),
        (Copula(Uniform(0.0, 2.0), Fixed(0.5), 0.5), "a reward is 2, outside"),
        (Independent(Uniform(0.0, np.nan), Fixed(0.5)), "a mean reward is nan, outside"),
        (Spiky(chance=0.5), "a reward is 1.5, outside"),
        (Spiky(chance=0.5, value=np.nan), "a reward is nan, outside"),
        (Wrong(shape=(2,)), r"256 draws gave an array of rewards of shape \(256, 2\); return one reward"),
    ],
)
def test_a_law_outside_0_to_1_is_refused_by_name_before_any_game(law, words):
    with pytest.raises(ProblemError, match=f"arm 'mine': {words}"):
        problem(law)


@pytest.mark.parametrize(("policy", "engine"), ENGINES)
def test_a_value_outside_0_to_1_that_seldom_comes_stops_the_game(policy, engine):
    mine = problem(Spiky())
    with pytest.raises(ProblemError, match=r"arm 'mine': a reward is 1\.5, outside"):
        simulate(mine, parse_policy(policy), [2_000.0], runs=20, engine=engine)


@pytest.mark.parametrize(("policy", "engine"), ENGINES)
def test_a_law_is_played_as_it_is_drawn(policy, engine):
    """Not as the class it is derived from, nor as the atoms it inherits."""
    law = Independent(Sure(0.1), Fixed(0.5))
    outcome = simulate(Problem((Arm("one", law), Arm("two", law))), parse_policy(policy), [20.0], runs=3, engine=engine)
    assert outcome.reward.tolist() == outcome.rounds.tolist() == [[40]] * 3
    assert not Problem((Arm("one", law), Arm("two", law))).is_bernoulli


class Alike(Independent):
    """A reward is what it costs: no longer independent."""

    def sample(self, rng, size):
        _, costs = super().sample(rng, size)
        return costs, costs


@pytest.mark.parametrize(("policy", "engine"), ENGINES)
def test_a_pair_of_laws_is_played_as_it_is_drawn(policy, engine):
    laws = [Alike(Bernoulli(0.5), Bernoulli(cost)) for cost in (0.3, 0.6)]
    arms = Problem(tuple(Arm(f"arm-{i}", law) for i, law in enumerate(laws)))
    outcome = simulate(arms, parse_policy(policy), [20.0], runs=3, engine=engine)
    assert outcome.reward.tolist() == outcome.spend.tolist() == [[20.0]] * 3


@pytest.mark.parametrize(
    "law",
    [
        Independent(Uniform(0.0, 0.5), Fixed(0.5)),
        Independent(Sure(0.5), Fixed(0.5)),
        Copula(Sure(0.5), Fixed(0.5), 0.1),
        Alike(Bernoulli(0.5), Bernoulli(0.5)),
        Spiky(),
    ],
    ids=lambda law: type(law).__name__,
)
def test_what_no_file_can_hold_is_not_written(law):
    mine = problem(law)
    assert not mine.writable
    with pytest.raises(ProblemError, match=r"arm 'mine': .* holds a law from outside the package, .*; use one of bern"):
        mine.to_toml()


def test_laws_of_one_name_share_neither_cells_nor_seeds():
    def key(law):
        return Cell((NamedProblem("p", "p", problem(law)),), parse_policy("bts"), (5.0,), 3, 0, 6, "auto", None).key

    laws = [Independent(kind(0.5), Fixed(0.5)) for kind in (Bernoulli, Sure, type("Sure", (Bernoulli,), {}))]
    laws += [Spiky(), Spiky(value=1.25)]
    assert len({key(law) for law in laws}) == len({problem(law).identity for law in laws}) == len(laws)
    assert key(laws[1]) == key(Independent(Sure(0.5), Fixed(0.5)))


def test_a_study_with_a_law_of_ones_own(tmp_path):
    mine = NamedProblem("mine", "mine", problem(Independent(Uniform(0.0, 0.5), Fixed(0.5))))
    experiment = Experiment("own", (mine,), (parse_policy("bts"),), (5.0,), 3, engine="reference")
    results = Results.load(run(experiment, tmp_path, Workers(jobs=1)).folder)
    assert len(results.table) == 3
    with pytest.raises(StudyError, match="'mine' has laws from outside the package, which a study does not keep"):
        results.problems()
