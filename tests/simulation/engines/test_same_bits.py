"""What "the same bits" promises, and what it does not: docs/explanation/simulation.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from budgetbandits import Problem, family, parse_policy, simulate
from budgetbandits.experiments.experiment_file import NamedProblem
from budgetbandits.experiments.plan import Cell
from budgetbandits.simulation.parallel import identity_of
from budgetbandits.testing.engines import FALSE_ALARM, smallest_p
from deep import deep
from own_rules import Forgetful

PROBLEM = family("uniform-bernoulli", 4, seed=3, low=0.2)
PARTS = ("reward", "spend", "rounds", "pulls")


def at_the_largest(budgets, policy, engine, runs, seed=1):
    """Reward, spend, rounds and pulls of each run at the largest of these budgets."""
    outcome = simulate(PROBLEM, policy, budgets, runs, seed=seed, engine=engine)
    last = int(np.argmax(outcome.budgets))
    return np.hstack([getattr(outcome, part)[:, last].reshape(runs, -1) for part in PARTS])


@pytest.mark.parametrize("engine", ["reference", "fast"])
@pytest.mark.parametrize(
    "policy", ["ucb-bv2", "pd-bwk", "epsilon-first", "kube-fractional", "bts", Forgetful()], ids=str
)
def test_other_budgets_change_no_bit_where_that_is_promised(policy, engine):
    """In the reference and the plain loops (ucb-bv2 and one's own), and of policies that must know the budget."""
    if policy == "bts" and engine == "fast":
        pytest.skip("the Thompson engine promises the same law, which is tested below")
    alone, among = (at_the_largest(budgets, policy, engine, 8) for budgets in ([60.0], [60.0, 11.0, 35.5, 11.0]))
    assert np.array_equal(alone, among)


@pytest.mark.parametrize("policy", ["bts", *deep("thompson", "kube", "ucb-v")])
def test_other_budgets_change_no_law(policy):
    """Chi-square and Kolmogorov-Smirnov over all numbers of a game, Bonferroni; false alarms at 1e-6, fixed seeds."""
    alone, among = (
        at_the_largest(budgets, parse_policy(policy), "fast", 2_000, seed)
        for seed, budgets in enumerate(([60.0], [11.0, 35.5, 60.0]))
    )
    assert smallest_p(alone, among) > FALSE_ALARM


def cell(policy, problem=PROBLEM, engine="auto"):
    return Cell((NamedProblem("p", "p", problem),), policy, (5.0, 20.0), 3, 0, 6, engine, None)


def test_the_package_s_own_policies_keep_their_cells_and_seeds():
    """A hash of what a cell says: cells computed before policies of your own were told apart are found again."""
    problem = Problem.bernoulli([0.9, 0.2, 0.5], [0.3, 0.6, 0.5])
    assert cell(parse_policy("bts"), problem, "reference").key == "d194ec558d0aec20494aadbe53cf728f"
    assert identity_of(parse_policy("epsilon-first:epsilon=0.3")) == "epsilon-first:epsilon=0.3"
    two = Problem.bernoulli([0.5, 0.6], [0.4, 0.3])
    outcome = simulate(two, parse_policy("epsilon-first:epsilon=0.3"), [50.0], 2, seed=5, engine="reference")
    assert outcome.rounds.tolist() == [[191], [149]]


MODULE = """
import sys
from budgetbandits import Problem, simulate
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.simulation.parallel import identity_of

class Mine(EpsilonFirst):
    name = "mine"

    def ratio(self, state):
        return super().ratio(state) * 1.0

if __name__ == "__main__":
    problem = Problem.bernoulli([0.5, 0.6], [0.4, 0.3])
    print(identity_of(Mine()))
    print(simulate(problem, Mine(), [20.0], 4, jobs=int(sys.argv[1]), engine="reference").reward.ravel().tolist())
"""


def test_a_policy_of_ones_own_is_known_by_its_code_in_any_process(tmp_path: Path):
    """The same code gives the same games with any number of workers; an edit gives others."""
    said = []
    for code, workers in ((MODULE, 1), (MODULE + "# a remark\n", 2), (MODULE.replace("1.0", "2.0"), 1)):
        (tmp_path / "mine.py").write_text(code)
        command = [sys.executable, "mine.py", str(workers)]
        said.append(
            subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split("\n")
        )
    assert said[0] == said[1]
    assert said[0][0] != said[2][0]
    assert said[0][1] != said[2][1]
