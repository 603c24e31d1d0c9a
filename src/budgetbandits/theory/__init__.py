"""Proven bounds on the regret of Budgeted Thompson Sampling, evaluated as numbers next to measurements.

Everything in ``__all__`` is public; docs/explanation/theory.md has the formulas and proofs. Read `constants` first.

constants   the gaps of the paper's analysis; the constants before ln B in proven upper bounds
upper       Theorem 1 at a given budget, term by term
waiting     its last term: how long the best arm can look worse than it is
lower       what no policy can avoid: asymptotic lower bounds
"""

from budgetbandits.theory.constants import (
    bts_constant,
    delta_gaps,
    epsilon_gaps,
    reference_arm,
    ucb_bv1_constant,
    ucb_bv1_constant_quoted,
    ucb_bv2_constant,
)
from budgetbandits.theory.lower import any_law_constant, any_law_distances, distances, lower_constant
from budgetbandits.theory.upper import ArmBound, UpperBound, upper_bound, upper_bounds

__all__ = [
    "ArmBound",
    "UpperBound",
    "any_law_constant",
    "any_law_distances",
    "bts_constant",
    "delta_gaps",
    "distances",
    "epsilon_gaps",
    "lower_constant",
    "reference_arm",
    "ucb_bv1_constant",
    "ucb_bv1_constant_quoted",
    "ucb_bv2_constant",
    "upper_bound",
    "upper_bounds",
]
