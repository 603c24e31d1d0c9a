"""Custom laws: subclasses of `Law` and `OutcomeLaw` from outside the package.

The package's laws lie in [0, 1] by construction and are written to files. Nothing is known of any other law, so
it is tried out when an arm is made of it, and its outcomes are checked wherever it is drawn from.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from budgetbandits.errors import ProblemError
from budgetbandits.numerics.arrays import Array
from budgetbandits.problems.distributions import LAWS, Copula, Independent, JointTable, Law, OutcomeLaw

DRAWS = 256
"""How many outcomes are drawn to try a law out."""

LEVELS = np.concatenate([[0.0, 2.0**-53], np.linspace(0.001, 0.999, 99), [1.0 - 2.0**-53]])
"""Where quantiles are looked at: the smallest and the largest are the ends of what can be drawn."""


def standard(law: Law | OutcomeLaw) -> bool:
    """Whether the law, and each one it is made of, is exactly one of the package's."""
    if type(law) in (Independent, Copula):
        return standard(law.reward) and standard(law.cost)  # type: ignore[union-attr]
    return type(law) is JointTable or type(law) in LAWS.values()


def try_out(arm: str, law: OutcomeLaw) -> None:
    """Raise a `ProblemError` if the law is seen to leave [0, 1]; rare values are caught when they are drawn."""
    _inside(arm, "mean reward", np.array([law.reward_mean]))
    _inside(arm, "mean cost", np.array([law.cost_mean]))
    for what, marginal in _marginals(law):
        _inside(arm, what, marginal.quantile(LEVELS))
        if (atoms := marginal.atoms()) is not None:
            _inside(arm, what, atoms[0])
    if (costs := law.cost_atoms()) is not None:
        _inside(arm, "cost", costs[0])
        _inside(arm, "expected reward at a cost", costs[2])
    draw(arm, law, np.random.default_rng(0), DRAWS)


def draw(arm: str, law: OutcomeLaw, rng: np.random.Generator, size: int) -> tuple[Array, Array]:
    """``size`` rewards and costs, each looked at."""
    rewards, costs = law.sample(rng, size)
    for what, values in (("reward", rewards), ("cost", costs)):
        if np.shape(values) != (size,):
            raise ProblemError(
                f"arm {arm!r}: {size} draws gave an array of {what}s of shape {np.shape(values)}; "
                f"return one {what} for each draw"
            )
        _inside(arm, what, values)
    return rewards, costs


def _marginals(law: OutcomeLaw) -> Iterator[tuple[str, Law]]:
    if isinstance(law, Independent | Copula):
        yield "reward", law.reward
        yield "cost", law.cost


def _inside(arm: str, quantity: str, values: Array) -> None:
    values = np.asarray(values, dtype=float)
    outside = values[~((values >= 0.0) & (values <= 1.0))]  # also what is no number
    if len(outside):
        worst = outside[np.abs(outside - 0.5).argmax()]
        raise ProblemError(f"arm {arm!r}: a {quantity} is {worst:g}, outside [0, 1]; rescale the law into that range")
