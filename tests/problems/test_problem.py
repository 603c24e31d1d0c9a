"""Problems: reading, writing, refusing."""

import pytest

from budgetbandits import Problem, family
from budgetbandits.errors import BadParameter, ProblemError
from budgetbandits.problems import families
from budgetbandits.problems.distributions import Bernoulli, Copula, Fixed, Independent, JointTable
from budgetbandits.problems.problem import Arm

GOOD = """
[[arms]]
name = "search"
reward = { law = "bernoulli", mean = 0.31 }
cost = { law = "lattice", support = [0, 0.25, 0.5, 0.75, 1], weights = [1, 2, 1, 0, 1] }

[[arms]]
name = "Überraschung \\"42\\""
reward = { law = "beta", a = 2, b = 3 }
cost = { law = "fixed", value = 0.5 }

[[arms]]
name = "tied"
joint = { law = "table", outcomes = [[1, 1, 0.5], [0, 0.25, 0.5]] }

[[arms]]
name = "bent"
[arms.joint]
law = "copula"
reward = { law = "bernoulli", mean = 0.5 }
cost = { law = "beta", a = 2, b = 2 }
correlation = 0.5
"""


def test_reads_every_law():
    problem = Problem.from_toml(GOOD)
    assert problem.names == ("search", 'Überraschung "42"', "tied", "bent")
    assert problem.reward_means == pytest.approx([0.31, 0.4, 0.5, 0.5])
    assert problem.cost_means == pytest.approx([0.4, 0.5, 0.625, 0.5])
    assert isinstance(problem.arms[2].law, JointTable)
    assert isinstance(problem.arms[3].law, Copula)
    assert not problem.is_bernoulli


def test_writing_and_reading_changes_nothing():
    problem = Problem.from_toml(GOOD)
    again = Problem.from_toml(problem.to_toml())
    assert again == problem
    assert again.to_toml() == problem.to_toml()
    assert again.identity == problem.identity


ARM = '[[arms]]\nname = "{name}"\nreward = {{ law = "bernoulli", mean = {reward} }}\ncost = {cost}\n'
FINE = ARM.format(name="fine", reward=0.5, cost='{ law = "fixed", value = 0.5 }')
COST = '{ law = "bernoulli", mean = 0.5 }'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FINE, "at least two arms"),
        ("", "at least two arms"),
        (FINE + FINE, "arm 'fine' is there twice"),
        (
            FINE + ARM.format(name="free", reward=0.5, cost='{ law = "bernoulli", mean = 0 }'),
            "arm 'free': the mean cost",
        ),
        (FINE + ARM.format(name="big", reward=1.5, cost=COST), "arm 'big': reward: mean is 1.5, outside"),
        (
            FINE + ARM.format(name="w", reward=0.5, cost='{ law = "lattice", support = [0, 1], weights = [0, 0] }'),
            "arm 'w': cost: the weights sum to 0",
        ),
        (FINE + ARM.format(name="odd", reward=0.5, cost=COST) + "colour = 3\n", "arm 'odd': unknown key 'colour'"),
        (FINE + ARM.format(name="", reward=0.5, cost=COST), "printable"),
        (FINE + "[[arms]]\nreward = 1\n", "arm number 2 has no name"),
        (FINE + '[[arms]]\nname = "half"\nreward = { law = "fixed", value = 1 }\n', "arm 'half': no cost"),
        (FINE + '[[arms]]\nname = "both"\njoint = {}\nreward = {}\n', "arm 'both': joint stands for both"),
        (FINE + '[[arms]]\nname = "j"\njoint = { law = "tabel" }\n', "arm 'j': joint: unknown law"),
        (FINE + FINE.replace("fine", "two") + "[budget]\nx = 1\n", "unknown key 'budget'"),
        (
            FINE + ARM.format(name="tiny", reward=0.5, cost='{ law = "fixed", value = 1e-310 }'),
            "arm 'tiny'",
        ),
        (FINE + ARM.format(name="long", reward="1" + "0" * 400, cost=COST), "arm 'long': reward: mean is 1000"),
        (FINE + ARM.format(name="longer", reward="1" + "0" * 5000, cost=COST), "not TOML"),
        (FINE + ARM.format(name="l", reward=0.5, cost="{ law = [1], mean = 1 }"), "arm 'l': cost: unknown law"),
        ("x = " + "[" * 5000 + "]" * 5000, "not TOML"),
        ("arms = 3", "not a list"),
        ("arms = [1, 2]", "not a list"),
        ("[[arms]", "not TOML"),
    ],
)
def test_bad_problems_are_refused(text, words):
    with pytest.raises(ProblemError, match=words):
        Problem.from_toml(text)


def test_files(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text(GOOD, encoding="utf-8")
    assert Problem.load(path) == Problem.from_toml(GOOD)
    with pytest.raises(ProblemError, match=r"none\.toml"):
        Problem.load(tmp_path / "none.toml")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProblemError, match="cannot read"):
        Problem.load(path)
    path.write_text(FINE, encoding="utf-8")
    with pytest.raises(ProblemError, match=r"p\.toml: a problem needs at least two"):
        Problem.load(path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("normal", 10, 0), "choose one of uniform-bernoulli"),
        (("uniform-bernoulli", 1, 0), "from 2 upwards"),
        (("uniform-bernoulli", 10, -1), "seed"),
        (("uniform-bernoulli", 10, 0, 0.5, 0.5), "range"),
        (("uniform-bernoulli", 10, 0, -0.5, 0.5), "range"),
        (("uniform-bernoulli", 10, 0, float("nan"), 0.5), "range"),
        (("uniform-multinomial", 10, 0, 0.99999, 1.0), "widen"),
    ],
)
def test_bad_families_are_refused(arguments, words, monkeypatch):
    monkeypatch.setattr(families, "ATTEMPTS_MAX", 100)
    with pytest.raises(BadParameter, match=words):
        family(*arguments)


def test_bernoulli_wants_one_mean_of_each_kind():
    with pytest.raises(ProblemError, match="2 mean rewards but 3"):
        Problem.bernoulli([0.1, 0.2], [0.1, 0.2, 0.3])


def test_an_arm_may_have_a_largest_cost():
    arm = Arm("a", Independent(Bernoulli(0.5), Fixed(0.2)), 0.25)
    problem = Problem((arm, Arm("b", Independent(Bernoulli(0.5), Fixed(0.2)), 1.0)))
    assert Problem.from_toml(problem.to_toml()) == problem
    assert problem.scales.tolist() == [0.25, 1.0]
    assert Problem((arm, Arm("b", arm.law))).scales is None
    assert problem.identity != Problem((Arm("a", arm.law), Arm("b", arm.law))).identity


@pytest.mark.parametrize("cap", [0.1, 0.0, 1.5, True, "much"])
def test_what_largest_costs_are_refused(cap):
    with pytest.raises(ProblemError, match="cost_max"):
        Arm("a", Independent(Bernoulli(0.5), Fixed(0.2)), cap)
