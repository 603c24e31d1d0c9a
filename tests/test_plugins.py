"""Policies, laws and families from files and from installed packages."""

import json
import pickle
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import cloudpickle
import pytest

from budgetbandits import Allocation, Problem, family, plugins, simulate
from budgetbandits.cli.simulate import simulate_command
from budgetbandits.errors import BadParameter, BadState, ExperimentError, PluginError, UnknownPolicy
from budgetbandits.experiments.plan import Experiment
from budgetbandits.experiments.results import Results
from budgetbandits.experiments.runner import Workers, run
from budgetbandits.experiments.study import Study
from budgetbandits.policies import POLICY_REGISTRY, parse_policy
from budgetbandits.problems.distributions import KNOWN_LAWS
from budgetbandits.problems.families import KNOWN_FAMILIES
from budgetbandits.simulation.parallel import identity_of

OMEGA = '''
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from budgetbandits.policies import IndexPolicy


def width(rounds, rho):
    return 2.0 * rho * np.log(np.maximum(rounds, 2.0))


def omega(mean_reward, mean_cost, pulls, rounds, rho):
    z = width(rounds, rho)
    wide = np.sqrt(z * (pulls * mean_reward * (1.0 - mean_reward) + z / 4.0))
    thin = np.sqrt(z * (pulls * mean_cost * (1.0 - mean_cost) + z / 4.0))
    return (pulls * mean_reward + z / 2.0 + wide) / np.maximum(pulls * mean_cost + z / 2.0 - thin, 1e-12)


@dataclass(frozen=True)
class OmegaUCB(IndexPolicy):
    """The upper end of Wilson's interval for the reward by the lower end of the cost's."""

    name: ClassVar[str] = "my-omega"
    index = staticmethod(omega)
    rho: float = 0.25

    def extras(self, state):
        return (self.rho,)
'''

LAWS = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from budgetbandits.problems.distributions import Beta, Law


@dataclass(frozen=True)
class Power(Law):
    kind: ClassVar[str] = "power"
    exponent: float

    @property
    def expectation(self):
        return 1.0 / (1.0 + self.exponent)

    def quantile(self, level):
        return np.asarray(level) ** self.exponent


def steep(rng, low, high):
    return Power(1.0 / rng.uniform(max(low, 0.1), high) - 1.0)


FAMILIES = {"steep": steep}
"""

PROBLEM = Problem.bernoulli([0.6, 0.4, 0.5], [0.4, 0.4, 0.6])


@pytest.fixture(autouse=True)
def _nothing_is_left():
    """Remove after each test the plugins that it has added."""
    registries = POLICY_REGISTRY, KNOWN_LAWS, KNOWN_FAMILIES
    before = [dict(registry._added) for registry in registries]
    yield
    for registry, added in zip(registries, before, strict=True):
        registry._added.clear()
        registry._added.update(added)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(OMEGA)
    (tmp_path / "laws.py").write_text(LAWS)
    return tmp_path


def test_a_policy_in_a_file_goes_by_its_name_and_parameters(folder):
    policy = plugins.find_policy("mine.py:OmegaUCB:rho=0.5", folder)
    assert policy.spec == "my-omega:rho=0.5"
    assert parse_policy("my-omega:rho=0.5") == policy
    assert plugins.find_policy(f"{folder / 'mine.py'}:OmegaUCB").spec == "my-omega"
    assert plugins.find_policy("bts").spec == "bts"


def test_the_only_policy_of_a_file_need_not_be_named(folder):
    assert plugins.find_policy("mine.py", folder).spec == "my-omega"
    assert plugins.find_policy("mine.py:rho=0.5", folder).spec == "my-omega:rho=0.5"
    assert plugins.sweep("mine.py:rho=[1, 2]") == ["mine.py:rho=1", "mine.py:rho=2"]


def test_a_file_is_run_once_until_it_changes(folder):
    first = type(plugins.find_policy("mine.py:OmegaUCB", folder))
    assert type(plugins.find_policy("mine.py:OmegaUCB:rho=2", folder)) is first
    (folder / "mine.py").write_text(OMEGA.replace("rho: float = 0.25", "rho: float = 0.125"))
    assert plugins.find_policy("mine.py:OmegaUCB", folder).rho == 0.125
    assert "mine" not in sys.modules


def test_it_plays_on_the_fast_engine(folder):
    outcome = simulate(PROBLEM, plugins.find_policy("mine.py:OmegaUCB", folder), [50.0], runs=10)
    assert outcome.policy == "my-omega"
    assert outcome.engine.startswith("index")


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("mine.py:Omega", PluginError, "mine.py has no policy 'Omega'; it has OmegaUCB"),
        ("mine.py:np", PluginError, "has no policy 'np'"),
        ("none.py:OmegaUCB", PluginError, "no file"),
        ("mine.py:OmegaUCB:rho=x", BadParameter, "write rho=NUMBER"),
        ("mine.py:OmegaUCB:width=1", BadParameter, "it takes rho"),
        ("two.py", PluginError, r"two.py has 2 policies \(OmegaUCB, Other\); name one, as two.py:OmegaUCB"),
        ("laws.py", PluginError, r"laws.py has 0 policies \(none\); define one"),
        ("none.py", PluginError, "no file"),
        ("nobody", UnknownPolicy, "unknown policy 'nobody'"),
        ("broken.py:OmegaUCB", PluginError, "line 2: SyntaxError"),
        ("raising.py:OmegaUCB", PluginError, "ZeroDivisionError"),
        ("taken.py:OmegaUCB", PluginError, "the package has a policy 'bts' of its own; give yours another name"),
        ("nameless.py:OmegaUCB", PluginError, "has no name that can be typed"),
    ],
)
def test_errors_name_the_file_and_the_remedy(folder, text, error, words):
    (folder / "two.py").write_text(OMEGA + "class Other(OmegaUCB):\n    name = 'other'\n")
    (folder / "broken.py").write_text("x = 1\ndef f(:\n")
    (folder / "raising.py").write_text("1 / 0\n")
    (folder / "taken.py").write_text(OMEGA.replace("my-omega", "bts"))
    (folder / "nameless.py").write_text(OMEGA.replace('"my-omega"', '"omega, 1"'))
    with pytest.raises(error, match=words):
        plugins.find_policy(text, folder)


def test_a_whole_file_adds_policies_laws_and_families(folder):
    assert plugins.load(folder / "mine.py") == {"policies": ["my-omega"], "laws": [], "families": []}
    assert plugins.load(folder / "laws.py") == {"policies": [], "laws": ["power"], "families": ["steep"]}
    one = family("steep", 3, seed=1, low=0.2)
    assert one.reward_means.tolist() == family("steep", 3, seed=1, low=0.2).reward_means.tolist()
    assert one.reward_means.tolist() != family("steep", 3, seed=2, low=0.2).reward_means.tolist()
    text = '[[arms]]\nname = "a"\nreward = { law = "power", exponent = 1.0 }\ncost = { law = "fixed", value = 0.5 }\n'
    assert Problem.from_toml(text + text.replace('"a"', '"b"')).reward_means.tolist() == [0.5, 0.5]
    (folder / "empty.py").write_text("x = 1\n")
    with pytest.raises(PluginError, match="no policy, no law and no FAMILIES"):
        plugins.load(folder / "empty.py")


STUDY = """
name = "mine"
runs = 4
budgets = [20, 50]
policies = ["bts", "mine.py:OmegaUCB:rho=[0.25, 1]"]
plugins = ["laws.py"]
[[problems]]
name = "steep ones"
family = "steep"
arms = 3
count = 2
low = 0.2
"""


def test_a_study_sweeps_and_sends_them_to_workers(folder):
    (folder / "study.toml").write_text(STUDY)
    experiment = Experiment.load(folder / "study.toml")
    assert [policy.spec for policy in experiment.policies] == ["bts", "my-omega", "my-omega:rho=1.0"]
    (folder / "mine.py").unlink()  # workers are sent the class itself
    run(experiment, folder / "out", Workers(jobs=2))
    results = Results.load(folder / "out")
    assert results.policies == ["bts", "my-omega", "my-omega:rho=1.0"]
    assert results.table.height == 2 * 3 * 4 * 2
    assert {effort.engine for effort in Study(folder / "out").efforts().values()} == {"thompson", "index plain loop"}
    (folder / "study.toml").write_text(STUDY.replace("laws.py", "none.py"))
    with pytest.raises(ExperimentError, match="plugins: there is no file"):
        Experiment.load(folder / "study.toml")


def test_an_allocation_is_read_by_the_name_and_never_runs_a_file(folder):
    spend = Allocation(plugins.find_policy("mine.py:OmegaUCB", folder), ["a", "b"], budget=10.0, cost_max=1.0)
    saved = spend.to_json()
    assert Allocation.from_json(saved).to_json() == saved
    document = json.loads(saved)
    document["policy"] = f"{folder / 'mine.py'}:OmegaUCB"
    with pytest.raises(BadState, match="load one of your own first"):
        Allocation.from_json(json.dumps(document))


def test_an_installed_package_offers_one(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    offers = [
        EntryPoint("omega", "mine:OmegaUCB", "budgetbandits.policies"),
        EntryPoint("lost", "nowhere:Policy", "budgetbandits.policies"),
    ]
    monkeypatch.setattr(POLICY_REGISTRY, "_offered", {offer.name: offer for offer in offers})
    assert "omega" in POLICY_REGISTRY
    assert "mine" not in sys.modules  # not before it is needed
    assert parse_policy("omega:rho=1").rho == 1.0
    assert list(POLICY_REGISTRY)[-2:] == ["omega", "lost"]
    with pytest.raises(PluginError, match="nowhere:Policy cannot be imported"):
        parse_policy("lost")
    sys.modules.pop("mine", None)


@pytest.mark.deep
def test_the_command_line(folder):
    (folder / "problem.toml").write_text(PROBLEM.to_toml())

    def say(*words):
        command = [str(Path(sys.executable).with_name("budgetbandits")), *words]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)

    game = ["problem.toml", "--budget", "20", "--runs", "2", "--json"]
    for _ in range(2):  # the second process finds what the first has left on disk
        played = say("simulate", *game, "--policy", "mine.py:OmegaUCB:rho=[1, 2]", "--policy", "bts")
        assert [result["policy"] for result in json.loads(played.stdout)["results"]] == [
            "my-omega:rho=1.0", "my-omega:rho=2.0", "bts",
        ]  # fmt: skip
    assert "my-omega" in say("--plugin", "mine.py", "policies").stdout
    unknown = say("simulate", *game, "--policy", "mine.py:Omega")
    assert unknown.returncode == 2
    assert "it has OmegaUCB" in unknown.stderr


def test_a_nan_index_is_refused_by_name(folder):
    (folder / "nan.py").write_text(OMEGA.replace("return 2.0", "return np.nan * 2.0"))
    with pytest.raises(Exception, match=r"omega.*not a number|not a number.*omega|NaN"):
        simulate(PROBLEM, plugins.find_policy("nan.py:OmegaUCB", folder), [50.0], runs=2)


def test_a_file_beside_it_is_imported_and_sent_to_workers(tmp_path):
    """Two folders have a file of the same name, and each policy has its own; workers play with neither at hand."""
    jitable = "from numba.extending import register_jitable\n@register_jitable\n"
    for place, added, decorated in (("one", "1.0", jitable), ("two", "3.0", "")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "shifts.py").write_text(decorated + f"def shift(x):\n    return x + {added}\n")
        (tmp_path / place / "mine.py").write_text(BESIDE.replace('"shifted"', f'"shifted-{place}"'), encoding="utf-8")
    one, two = (plugins.find_policy(f"{tmp_path / place / 'mine.py'}:Shifted") for place in ("one", "two"))
    assert [type(policy).index(0.5, 0.5, 1.0, 1.0) for policy in (one, two)] == [3.0, 7.0]
    assert "shifts" not in sys.modules
    assert str(tmp_path / "one") not in sys.path
    sent = [pickle.loads(cloudpickle.dumps(policy)) for policy in (one, two)]
    for copy in sent:  # Numba knows nothing of what was sent, decorated or not
        assert simulate(PROBLEM, copy, [5.0], runs=1).engine == "index plain loop"
    assert [type(policy).index(0.5, 0.5, 1.0, 1.0) for policy in sent] == [3.0, 7.0]
    assert identity_of(one) != identity_of(two)


def test_a_file_is_run_again_if_one_changes_that_it_imports(tmp_path):
    (tmp_path / "mine.py").write_text(BESIDE)
    for added in (1.0, 3.0, 4.0):  # of the same length, in the same second
        (tmp_path / "shifts.py").write_text(
            f"from amounts import added\ndef shift(x):\n    return x + added - {added}\n"
        )
        (tmp_path / "amounts.py").write_text(f"added = {2 * added}\n")
        first, again = (type(plugins.find_policy("mine.py", tmp_path)) for _ in range(2))
        assert first is again
        assert first.index(0.5, 0.5, 1.0, 1.0) == 1.0 + 2.0 * added
    (tmp_path / "amounts.py").write_text("added = 5.0\n")  # only what the imported file imports
    assert type(plugins.find_policy("mine.py", tmp_path)).index(0.5, 0.5, 1.0, 1.0) == 1.0 + 2.0 * (5.0 - 4.0)
    (tmp_path / "amounts.py").unlink()
    with pytest.raises(PluginError, match="No module named 'amounts'"):
        plugins.find_policy("mine.py", tmp_path)


BESIDE = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from shifts import shift

from budgetbandits.policies import IndexPolicy


@dataclass(frozen=True)
class Shifted(IndexPolicy):
    name: ClassVar[str] = "shifted"
    index = staticmethod(lambda reward, cost, pulls, rounds: shift(reward) / np.maximum(cost, 1e-9))
"""


def test_two_policies_of_one_name_are_not_shown_in_one_table(folder):
    (folder / "again.py").write_text((folder / "mine.py").read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "p.toml").write_text(Problem.bernoulli([0.3, 0.6], [0.2, 0.8]).to_toml())
    policies = [f"{folder / name}:OmegaUCB" for name in ("mine.py", "again.py")]
    with pytest.raises(BadParameter, match="policies names my-omega twice; name each once"):
        simulate_command(folder / "p.toml", policies, [20.0])


JITTED = """
import numpy as np
from numba import njit
from budgetbandits.policies import where, all_true

@njit
def ratio(reward, cost):
    return where(all_true(cost > 0.0), reward / cost, 2.0)

@njit
def ratios(rewards, costs):
    return where(costs > 0.0, rewards / costs, np.inf)

print(ratio(1.0, 4.0), ratio(1.0, -1.0), ratios(np.ones(2), np.array([-1.0, 2.0])))
"""


@pytest.mark.deep
def test_what_formulas_call_compiles_without_an_engine_being_imported(tmp_path):
    """Numba is told by an entry point; so a policy of compiled functions needs nothing but the import of the manual."""
    (extension,) = entry_points(group="numba_extensions", name="init").select(
        module="budgetbandits.numerics.numba_extension"
    )
    extension.load()()
    process = subprocess.run([sys.executable, "-c", JITTED], capture_output=True, text=True, check=True)
    assert process.stdout == "0.25 2.0 [inf 0.5]\n"
