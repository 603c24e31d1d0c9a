"""Which compiled engine plays which policy. Importing this needs Numba."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from budgetbandits.policies.base import Policy
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.thompson import BudgetedThompson, Thompson
from budgetbandits.problem import Problem
from budgetbandits.simulation.epsilon_first import EpsilonFirstGames
from budgetbandits.simulation.index.games import Games as IndexGames
from budgetbandits.simulation.index.library import rule_of
from budgetbandits.simulation.thompson.games import ThompsonGames

Fast = ThompsonGames | IndexGames | EpsilonFirstGames


def plays(policy: Policy) -> bool:
    """Whether there is a fast engine for this policy."""
    thompson = type(policy) in (BudgetedThompson, Thompson)
    return thompson or isinstance(policy, EpsilonFirst) or rule_of(policy) is not None


def player(problem: Problem, policy: Policy, budgets: Sequence[float]) -> Fast:
    """The engine, ready to play."""
    if isinstance(policy, BudgetedThompson | Thompson):
        return ThompsonGames(problem, policy, budgets)
    if isinstance(policy, EpsilonFirst):
        return EpsilonFirstGames(problem, policy, budgets)
    return IndexGames(problem, policy, budgets)


def warm_up(problem: Problem, policy: Policy) -> None:
    """Have everything compiled that this policy's games on this kind of problem need, by playing a tiny one."""
    small = Problem(problem.arms[:2])
    player(small, policy, [2.0]).play(np.random.SeedSequence(0), 1 << 60)
