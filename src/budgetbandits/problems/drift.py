"""Drift: what may happen to the arms of a problem at a request, as traffic of two phases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from budgetbandits.errors import BadParameter
from budgetbandits.problems.distributions import Copula, Fixed, Independent, Lattice, Law, OutcomeLaw, Table
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import RequestStream


def scaled(problem: Problem, arm: str, *, reward: float = 1.0, cost: float = 1.0) -> Problem:
    """The problem with every reward and every cost of one arm multiplied by these, as after a change of its price."""
    for what, factor in (("reward", reward), ("cost", cost)):
        if not 0.0 <= factor <= 1.0:
            raise BadParameter(f"{what} is {factor:g}; use a factor from 0 to 1, so that outcomes stay in [0, 1]")
    _check_arm(problem, arm)
    arms = [replace(each, law=_times(each.law, reward, cost)) if each.name == arm else each for each in problem.arms]
    return replace(problem, arms=tuple(arms))


def without(problem: Problem, arm: str) -> Problem:
    """The problem as it is before this arm comes."""
    _check_arm(problem, arm)
    return replace(problem, arms=tuple(each for each in problem.arms if each.name != arm))


def _check_arm(problem: Problem, arm: str) -> None:
    if arm not in problem.names:
        raise BadParameter(f"no arm {arm!r}; the arms are {', '.join(problem.names)}")


def _times(law: OutcomeLaw, reward: float, cost: float) -> OutcomeLaw:
    if isinstance(law, Table):
        return Table([[r * reward, c * cost, weight] for r, c, weight in law.outcomes])
    if isinstance(law, Independent | Copula):
        return replace(law, reward=_marginal(law.reward, reward), cost=_marginal(law.cost, cost))
    raise BadParameter(f"a {law.kind} law cannot be multiplied; write the phases out, each with its own laws")


def _marginal(law: Law, factor: float) -> Law:
    if factor == 1.0:
        return law
    if isinstance(law, Fixed):
        return Fixed(law.value * factor)
    atoms = law.atoms()
    if atoms is None:
        raise BadParameter(f"a {law.kind} law cannot be multiplied; write the phases out, each with its own laws")
    return Lattice((atoms[0] * factor).tolist(), atoms[1].tolist())


def _most_rewarding(problem: Problem) -> str:
    return problem.names[int(problem.reward_means.argmax())]


def price_cut(problem: Problem, at: int) -> RequestStream:
    """The arm with the highest mean reward costs half from request ``at`` on."""
    return RequestStream.phases([(0, problem), (at, scaled(problem, _most_rewarding(problem), cost=0.5))])


def quality_drop(problem: Problem, at: int) -> RequestStream:
    """The arm with the highest mean reward brings half from request ``at`` on."""
    return RequestStream.phases([(0, problem), (at, scaled(problem, _most_rewarding(problem), reward=0.5))])


def new_arm(problem: Problem, at: int) -> RequestStream:
    """The arm with the highest mean reward comes with request ``at``."""
    return RequestStream.phases([(0, without(problem, _most_rewarding(problem))), (at, problem)])


DRIFTS: dict[str, Callable[[Problem, int], RequestStream]] = {
    "price-cut": price_cut,
    "quality-drop": quality_drop,
    "new-arm": new_arm,
}
"""What may happen to a problem at a request."""


def drifting(problem: Problem, drift: str, at: int) -> RequestStream:
    """A problem to which something happens at a request.

    >>> drifting(Problem.bernoulli([0.2, 0.5, 0.8], [0.1, 0.3, 0.5]), "new-arm", at=100).offered.tolist()
    [[True, True, False], [True, True, True]]
    """
    if drift not in DRIFTS:
        raise BadParameter(f"unknown drift {drift!r}; choose one of {', '.join(DRIFTS)}")
    return DRIFTS[drift](problem, at)
