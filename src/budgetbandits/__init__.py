"""Budgeted multi-armed bandits: choose well when every choice has an unknown payoff and an unknown price."""

from budgetbandits.allocation import Allocation, Ask
from budgetbandits.oracle import Optimum, best_arms, best_ratio, optimum
from budgetbandits.policies import POLICIES, parse_policy
from budgetbandits.policies.thompson import BudgetedThompson, Thompson
from budgetbandits.problem import Arm, Problem, family
from budgetbandits.simulation import Outcome, simulate

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
    "simulate",
]

__version__ = "0.1.0"
