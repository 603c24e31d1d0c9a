"""The promises of every policy. The policies are found by the registry: a new one is held to this without more work.

The checks themselves are `budgetbandits.testing`'s, so that policies from outside are held to the same.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from budgetbandits import POLICIES
from budgetbandits.policies import IndexPolicy, Policy
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.index import RISING_INDEX, Monotonicity
from budgetbandits.policies.kube import KUBE
from budgetbandits.policies.linear import LinearThompson
from budgetbandits.policies.thompson import BudgetedThompson
from budgetbandits.testing import check_policy
from budgetbandits.testing.contract import CONTRACT, Violation, knowledge
from budgetbandits.testing.engines import ENGINES, GAMES
from deep import EVERY_POLICY

EVERY = pytest.mark.parametrize("name", EVERY_POLICY)


@pytest.fixture(autouse=True)
def _shorter_games(monkeypatch, request):
    """A long game is as long for a policy's author as in `make deep`; a fifth of it has every kind of state already,
    which is enough where each pull is a regression."""
    callspec = getattr(request.node, "callspec", None)
    is_regression = callspec is not None and callspec.params.get("name") == "bts-linear"
    if is_regression or not os.environ.get("BUDGETBANDITS_DEEP"):
        monkeypatch.setattr("budgetbandits.testing.contract.ROUNDS", 20_000)


@EVERY
@pytest.mark.parametrize("check", CONTRACT)
def test_the_contract(name, check):
    reason = CONTRACT[check](POLICIES[name]())
    expected = {
        "first pulls in turn": "bts bts-gaussian bts-joint bts-linear bts-paced gittins-ratio npts-ratio thompson",
        "a new arm gets its chance": "epsilon-first epsilon-first-greedy",
        "history counts": "epsilon-first epsilon-first-greedy",
        "features tell requests apart": " ".join(policy for policy in POLICIES if policy != "bts-linear"),
    }
    assert (reason is not None) == (name in expected.get(check, "").split())


@EVERY
def test_history_decides_every_choice(name):
    policy = POLICIES[name]()
    state = policy.start(4, knowledge(4))
    for arm in range(4):
        policy.add_history(state, arm, 40_000, *((36_000.0, 4_000.0) if arm == 1 else (2_000.0, 36_000.0)))
    if not name.startswith("epsilon-first"):
        assert [policy.choose(state, np.random.default_rng(seed)) for seed in range(20)] == [1] * 20


# --- a check that cannot fail is none: each finds out a policy that breaks its promise ------------------------------


def breaking(parent, **methods):
    return type("Breaking", (parent,), methods)


OWN = np.random.default_rng()
IMPATIENT = breaking(BudgetedThompson, choose=lambda self, state, _: BudgetedThompson.choose(self, state, OWN))
NAMELESS = breaking(BudgetedThompson, spec=property(lambda self: "ucb1"))
TURNS: dict[int, int] = {}


def keeps_turns_outside_of_the_state(self, state, rng):
    TURNS[id(state)] = turn = TURNS.get(id(state), 0) + 1
    return turn // 7 % len(state.pulls)


def stops_when_every_arm_was_pulled(self, state, rng):
    return None if state.pulls.min() > 3 else BudgetedThompson.choose(self, state, rng)


def starts_with_the_budget(self, arms, knowledge):
    _ = knowledge.budget
    return KUBE.start(self, arms, knowledge)


def learns_of_the_next_arm_too(self, state, arm, reward, cost, rng):
    BudgetedThompson.observe(self, state, arm, reward, cost, rng)
    state.statistics[..., (arm + 1) % len(state.pulls)] += 1


def counts_pulls_alone(self, state, arm, pulls, reward, cost):
    state.pulls[arm] += pulls


def forgets_to_count(self, state, arm, reward, cost, rng):
    KUBE.observe(self, state, arm, reward, cost, rng)
    state.pulls[arm] -= state.pulls[arm] == 1000


BREAKING: dict[str, type[Policy]] = {
    "same seed same choices": IMPATIENT,
    "a saved state goes on": breaking(KUBE, choose=keeps_turns_outside_of_the_state),
    "any number of arms": breaking(KUBE, choose=lambda self, state, rng: np.int64(KUBE.choose(self, state, rng))),
    "feedback at any time": breaking(BudgetedThompson, choose=stops_when_every_arm_was_pulled),
    "first pulls in turn": breaking(
        KUBE, choose=lambda self, state, rng: 0 if state.pulls.sum() == 0 else KUBE.choose(self, state, rng)
    ),
    "reads what it declares": breaking(KUBE, start=starts_with_the_budget),
    "learns about one arm at a time": breaking(BudgetedThompson, observe=learns_of_the_next_arm_too),
    "retired arms rest": breaking(
        BudgetedThompson, choose=lambda self, state, rng: int(self.draw(state, rng, 1)[0].argmax())
    ),
    "a new arm gets its chance": breaking(KUBE, choose=lambda self, state, rng: KUBE.choose(self, state, rng) % 3),
    "history counts": breaking(BudgetedThompson, add_history=counts_pulls_alone),
    "totals are those of the outcomes": breaking(KUBE, totals=lambda self, state, arm: (1.0, 1.0, 1.0)),
    "features tell requests apart": breaking(
        LinearThompson, choose=lambda self, state, rng, request: LinearThompson.choose(self, state, rng)
    ),
    "its text names it": NAMELESS,
    "a saved allocation goes on": IMPATIENT,
    "a long game of numbers": breaking(KUBE, observe=forgets_to_count),
}


@pytest.mark.parametrize("check", CONTRACT)
def test_each_check_finds_out_who_breaks_it(check):
    with pytest.raises((Violation, ValueError, AttributeError)):
        CONTRACT[check](BREAKING[check]())


def test_a_policy_that_uses_features_must_see_requests():
    blind = breaking(BudgetedThompson, uses_features=True)()
    with pytest.raises(Violation, match="make it a RequestPolicy"):
        CONTRACT["features tell requests apart"](blind)


def backwards(mean_reward, mean_cost, pulls, rounds):
    return mean_reward / (mean_cost + 0.1) + np.sqrt(pulls / np.maximum(rounds, 1.0))


@dataclass(frozen=True)
class Backwards(IndexPolicy):
    name: ClassVar[str] = "backwards"
    index = staticmethod(backwards)
    monotone: ClassVar[Monotonicity] = RISING_INDEX  # it rises with pulls


def test_a_wrong_declaration_is_found_out():
    with pytest.raises(
        Violation, match=r"backwards: its index backwards does not fall with pulls.*leave that declaration out"
    ):
        ENGINES["declares the truth"](Backwards())


@pytest.fixture
def _small(monkeypatch):
    monkeypatch.setattr("budgetbandits.testing.contract.ROUNDS", 1000)
    games = {name: (problem, budgets[:1], 100) for name, (problem, budgets, _) in GAMES.items() if name != "ten arms"}
    monkeypatch.setattr("budgetbandits.testing.engines.GAMES", games | {"ten arms": (GAMES["ten arms"][0], [6.0], 50)})


@pytest.mark.usefixtures("_small")
@pytest.mark.parametrize("kind", [KUBE, EpsilonFirst])
def test_the_packages_own_pass_the_whole_check(kind):
    report = check_policy(kind())
    report.assert_holds()
    assert [finding.verdict for finding in report.findings if finding.check == "engines agree"] == ["holds"]
    assert report.engine is not None
    assert report.engine.name == {KUBE: "index blocks", EpsilonFirst: "epsilon-first"}[kind]


@pytest.mark.usefixtures("_small")
def test_a_report_says_what_is_broken():
    heard = []
    report = check_policy(NAMELESS(), heard.append)
    assert report.findings == heard
    assert not report.holds
    with pytest.raises(AssertionError, match="its text names it"):
        report.assert_holds()
    assert "broken: its text names it" in str(report)


OUT_OF_ORDER = """
from typing import ClassVar
from budgetbandits.policies import IndexPolicy

class OutOfOrder(IndexPolicy):
    name: ClassVar[str] = "out-of-order"
    index = staticmethod(lambda reward, cost, pulls, rounds: reward)

    def choose(self, state, rng):
        return 4 - int(state.pulls.sum()) % 5
"""
CHECK = """
import sys
import budgetbandits.testing as testing
from budgetbandits.cli import main

testing.CONTRACT = {name: check for name, check in testing.CONTRACT.items() if name == "first pulls in turn"}
testing.ENGINES = {}
sys.argv = ["budgetbandits", "check", "mine.py:OutOfOrder"]
main()
"""


def test_the_check_finds_what_is_broken_where_python_leaves_assertions_out(tmp_path):
    (tmp_path / "mine.py").write_text(OUT_OF_ORDER)
    command = [sys.executable, "-O", "-c", CHECK]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 1, process.stderr
    assert "the first five choices without feedback are [4, 4, 4, 4, 4]" in process.stdout


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import budgetbandits.testing as testing
from budgetbandits import parse_policy

testing.ENGINES = {"declares the truth": testing.ENGINES["declares the truth"]}
testing.CONTRACT = {}
for name in ("kube", "bts"):
    print(testing.check_policy(parse_policy(name)))
"""


def test_a_policy_is_not_broken_where_numba_is_not_installed():
    process = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, check=True)
    verdict = "does not apply: declares the truth (this needs numba, which is not installed; pip install"
    assert process.stdout.count(f"{verdict} 'budgetbandits[lab]', or '.[lab]' in a clone)") == 2, process.stdout
