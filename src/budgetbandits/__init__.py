"""Budgeted multi-armed bandits: choose well when every choice has an unknown payoff and an unknown price.

    Allocation      `ask` which arm to pull and `tell` what it paid and cost, in your own program
    simulate        play policies on a `Problem` or a `RequestStream` whose arms are known
    parse_policy    a policy by name: "bts", "epsilon-first:epsilon=0.1"; `POLICIES` lists them
    best_ratio      what a player who knows every arm would do

Further public packages: `problems` (the distributions of arms), `policies` (what an author of a policy subclasses),
`experiments` (studies), `client` (the decision service), `theory`, `off_policy`, `testing`, `figures`, `plugins` and
`errors`. Everything else is internal. Importing this package imports no extra.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from budgetbandits.allocation.allocation import Allocation
    from budgetbandits.allocation.asks import Ask
    from budgetbandits.policies import POLICIES, parse_policy
    from budgetbandits.policies.paced.policy import PacedThompson
    from budgetbandits.policies.thompson import BudgetedThompson, Thompson
    from budgetbandits.problems.families import family
    from budgetbandits.problems.oracle import Optimum, best_arms, best_ratio, optimum
    from budgetbandits.problems.problem import Arm, Problem
    from budgetbandits.problems.streams import RequestStream
    from budgetbandits.simulation.game_table import random_problems, simulate_many
    from budgetbandits.simulation.outcome import Outcome
    from budgetbandits.simulation.replay import replay
    from budgetbandits.simulation.simulate import simulate

__all__ = [
    "POLICIES",
    "Allocation",
    "Arm",
    "Ask",
    "BudgetedThompson",
    "Optimum",
    "Outcome",
    "PacedThompson",
    "Problem",
    "RequestStream",
    "Thompson",
    "best_arms",
    "best_ratio",
    "family",
    "optimum",
    "parse_policy",
    "random_problems",
    "replay",
    "simulate",
    "simulate_many",
]

__version__ = "0.1.0"

_HOMES = {
    "allocation.allocation": ("Allocation",),
    "allocation.asks": ("Ask",),
    "policies": ("POLICIES", "parse_policy"),
    "policies.paced.policy": ("PacedThompson",),
    "policies.thompson": ("BudgetedThompson", "Thompson"),
    "problems.families": ("family",),
    "problems.oracle": ("Optimum", "best_arms", "best_ratio", "optimum"),
    "problems.problem": ("Arm", "Problem"),
    "problems.streams": ("RequestStream",),
    "simulation.game_table": ("random_problems", "simulate_many"),
    "simulation.outcome": ("Outcome",),
    "simulation.replay": ("replay",),
    "simulation.simulate": ("simulate",),
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: the client and the command line need no SciPy to start."""
    for module, names in _HOMES.items():
        if name in names:
            globals()[name] = value = getattr(import_module(f"{__name__}.{module}"), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
