"""Prices and budgets in other libraries, read from their installed code: docs/explanation/comparison.md.

    python -m venv /tmp/others
    /tmp/others/bin/pip install --no-deps mabwiser river pybandits rovingbandit obp optuna botorch litellm
    /tmp/others/bin/pip install vowpalwabbit
    /tmp/others/bin/python benchmarks/comparison.py

Nothing is installed, and nothing but vowpalwabbit is imported: a library's files are parsed. A library that is not
installed is named as such; a statement that its code does not bear out is printed as wrong, and ends with status 1.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata

MONEY = ("budget", "cost", "price", "knapsack")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


class Wrong(Exception):
    """The code says something else."""


class Library:
    """An installed distribution, as syntax trees."""

    def __init__(self, name: str) -> None:
        distribution = metadata.distribution(name)
        self.version = distribution.version
        self._files = {str(file): file for file in distribution.files or () if file.suffix == ".py"}

    def named(self, words: Sequence[str], under: str = "") -> list[str]:
        """Classes, functions and parameters below a folder whose names have one of the words."""
        names = {
            name
            for file in self._files
            if file.startswith(under)
            for name in _names(self._tree(file))
            if any(word in name.lower() for word in words)
        }
        return sorted(names)

    def parameters(self, file: str, function: str) -> list[str]:
        """The parameters of a function, or of "Class.method"."""
        owner, _, name = function.rpartition(".")
        body: Sequence[ast.stmt] = self._tree(file).body
        if owner:
            body = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == owner).body
        constructor = next(node for node in body if isinstance(node, FUNCTION) and node.name == name)
        return [argument.arg for argument in _arguments(constructor.args) if argument.arg != "self"]

    def assigned(self, file: str, function: str) -> list[str]:
        """Attributes of self that a method assigns to."""
        owner, _, name = function.rpartition(".")
        kind = next(node for node in self._tree(file).body if isinstance(node, ast.ClassDef) and node.name == owner)
        method = next(node for node in kind.body if isinstance(node, FUNCTION) and node.name == name)
        stored = [node for node in ast.walk(method) if isinstance(node, ast.Attribute | ast.Subscript)]
        return [ast.unparse(node) for node in stored if isinstance(node.ctx, ast.Store)]

    def _tree(self, file: str) -> ast.Module:
        if file not in self._files:
            raise Wrong(f"there is no {file}")
        return ast.parse(self._files[file].read_text(encoding="utf-8"))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | FUNCTION):
            yield node.name
        if isinstance(node, ast.arguments):
            yield from (argument.arg for argument in _arguments(node))


def _arguments(given: ast.arguments) -> list[ast.arg]:
    star = [argument for argument in (given.vararg, given.kwarg) if argument is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *star]


def expect(holds: bool, otherwise: object) -> None:
    if not holds:
        raise Wrong(str(otherwise))


def no_money(under: str = "", words: Sequence[str] = MONEY) -> Callable[[Library], str]:
    """Nothing is named after money."""

    def check(library: Library) -> str:
        names = library.named(words, under)
        expect(not names, names[:5])
        return f"no class, function or parameter is named after {', '.join(words)}"

    return check


def takes(file: str, function: str, *expected: str) -> Callable[[Library], str]:
    """A function has these parameters."""

    def check(library: Library) -> str:
        names = library.parameters(file, function)
        expect(set(expected) <= set(names), names)
        return f"{function}({', '.join(names)})"

    return check


def given_costs(library: Library) -> str:
    file, kind = "rovingbandit/policies/regret_minimization/budgeted_thompson.py", "BudgetedThompsonSampling"
    expect("costs" in library.parameters(file, f"{kind}.__init__"), "no costs")
    changed = library.assigned(file, f"{kind}.update")
    expect(not changed, changed)
    return f"{kind}(costs=…), whose update() assigns nothing of its own"


def vowpal_options(_: Library) -> str:
    from vowpalwabbit import Workspace

    learner = Workspace("--cb_explore_adf --quiet")
    names = [option.name for groups in learner.get_config().values() for _, options in groups for option in options]
    learner.finish()
    expect(len(names) > 50, names)
    matches = [name for name in names if "budget" in name or "price" in name]
    expect(not matches, matches)
    return f"none of {len(names)} options of --cb_explore_adf is named after budget or price"


def cost_control(library: Library) -> str:
    expect("SmabBernoulliCC" in library.named(["cc"]), "no SmabBernoulliCC")
    expect(not library.named(["budget"]), library.named(["budget"]))
    names = library.parameters("pybandits/mab.py", "BaseMab.update")
    expect(not [name for name in names if "cost" in name], names)
    return f"SmabBernoulliCC; BaseMab.update({', '.join(names)}); nothing named after budget"


@dataclass(frozen=True)
class Statement:
    library: str
    says: str
    check: Callable[[Library], str]


STATEMENTS = (
    Statement("mabwiser", "learns rewards, knows no prices", no_money()),
    Statement("mabwiser", "is fed decisions and rewards", takes("mabwiser/mab.py", "MAB.partial_fit", "rewards")),
    Statement("river", "its bandits learn rewards, know no prices", no_money("river/bandit/")),
    Statement("pybandits", "prices are given with the arms and not learned; no budget", cost_control),
    Statement("rovingbandit", "its budgeted Thompson sampling is given the prices", given_costs),
    Statement("rovingbandit", "its budgeted UCB learns them",
              takes("rovingbandit/policies/regret_minimization/budgeted_ucb.py", "BudgetedUCB.update", "cost")),
    Statement("rovingbandit", "a budget ends a simulated run",
              takes("rovingbandit/runners/online.py", "OnlineRunner.run_with_budget", "budget", "environment")),
    Statement("vowpalwabbit", "contextual bandits without a budget", vowpal_options),
    Statement("obp", "evaluates policies from logs; no budget or price",
              no_money(words=("budget", "price", "knapsack"))),
    Statement("optuna", "asks and tells for parameters; ends by trials or time",
              takes("optuna/study/study.py", "Study.optimize", "n_trials", "timeout")),
    Statement("optuna", "is not given what a trial cost", takes("optuna/study/study.py", "Study.tell", "values")),
    Statement("botorch", "weighs information by its cost",
              takes("botorch/acquisition/cost_aware.py", "InverseCostWeightedUtility.__init__", "cost_model")),
    Statement("litellm", "deployments of providers that have exceeded their budget are filtered out",
              takes("litellm/router_strategy/budget_limiter.py", "RouterBudgetLimiting.async_filter_deployments",
                    "healthy_deployments")),
    Statement("litellm", "its adaptive router weighs a drawn quality and the list price by fixed weights",
              takes("litellm/router_strategy/adaptive_router/bandit.py", "score", "quality_weight", "cost_weight")),
    Statement("litellm", "that router is not given the budget",
              no_money("litellm/router_strategy/adaptive_router/", ["budget"])),
)  # fmt: skip


def main() -> int:
    wrong, libraries = 0, dict.fromkeys(statement.library for statement in STATEMENTS)
    for name in libraries:
        try:
            library = Library(name)
        except metadata.PackageNotFoundError:
            print(f"{name}: not installed")
            continue
        print(f"{name} {library.version}")
        for statement in (statement_of for statement_of in STATEMENTS if statement_of.library == name):
            try:
                print(f"  {statement.says}\n      {statement.check(library)}")
            except (Wrong, StopIteration) as error:
                wrong += 1
                print(f"  WRONG: {statement.says}\n      {error}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
