"""Budgeted multi-armed bandits: choose well when every choice has an unknown payoff and an unknown price."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from budgetbandits.allocation.allocation import Allocation
    from budgetbandits.allocation.asks import Ask
    from budgetbandits.policies import POLICIES, parse_policy
    from budgetbandits.policies.thompson import BudgetedThompson, Thompson
    from budgetbandits.problems.oracle import Optimum, best_arms, best_ratio, optimum
    from budgetbandits.problems.problem import Arm, Problem, family
    from budgetbandits.simulation.many import random_problems, simulate_many
    from budgetbandits.simulation.outcome import Outcome
    from budgetbandits.simulation.simulate import simulate

__all__ = [
    "POLICIES",
    "Allocation",
    "Arm",
    "Ask",
    "BudgetedThompson",
    "Optimum",
    "Outcome",
    "Problem",
    "Thompson",
    "best_arms",
    "best_ratio",
    "family",
    "optimum",
    "parse_policy",
    "random_problems",
    "simulate",
    "simulate_many",
]

__version__ = "0.1.0"

_HOMES = {
    "allocation.allocation": ("Allocation",),
    "allocation.asks": ("Ask",),
    "problems.oracle": ("Optimum", "best_arms", "best_ratio", "optimum"),
    "policies": ("POLICIES", "parse_policy"),
    "policies.thompson": ("BudgetedThompson", "Thompson"),
    "problems.problem": ("Arm", "Problem", "family"),
    "simulation.many": ("random_problems", "simulate_many"),
    "simulation.outcome": ("Outcome",),
    "simulation.simulate": ("simulate",),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the client and the command line need no SciPy to start."""
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
