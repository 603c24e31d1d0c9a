"""In which order the cells of a study are computed.

Long cells come first, so that no worker is left alone with one at the end. Engines come before anything else, each
compiled or loaded by one worker, and the others play meanwhile what is ready to be played.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from budgetbandits.experiments.plan import Cell
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.policies.thompson import BetaThompson

ENGINES: tuple[type, ...] = (BetaThompson, IndexPolicy, SamplingPolicy, EpsilonFirst)
"""Policies that share an engine; the engine that takes the longest to compile comes first."""

Task = tuple[Callable[[Any], object], Cell | list[Cell]]


def kind_of(cell: Cell) -> type:
    """What a policy has to have compiled, once for all of its kind."""
    return next((kind for kind in ENGINES if isinstance(cell.policy, kind)), type(cell.policy))


def effort(cell: Cell) -> float:
    """Roughly how long a cell takes, to order them by."""
    together = sum if "budget" in cell.policy.needs else max
    efforts = []
    for named in cell.problems:
        costs = named.problem.cost_means
        rounds = [budget / float(costs[costs > 0.0].min()) for budget in cell.budgets_of(named.problem)]
        efforts.append(min(together(rounds), len(rounds) * cell.requests) * math.sqrt(len(named.problem)))
    return cell.runs * sum(efforts)


class Schedule:
    """The cells, handed out one by one. Before them come their kinds: one cell of each policy, to prepare an engine."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._waiting: dict[type, list[Cell]] = {}
        for cell in sorted(cells, key=effort):
            self._waiting.setdefault(kind_of(cell), []).append(cell)
        self._cold = sorted(self._waiting, key=_place)

    @property
    def preparing(self) -> bool:
        return bool(self._cold)

    def ready(self, kind: type) -> None:
        """From now on cells of this kind may be played."""
        self._cold.remove(kind)

    def tasks(self, prepare: Callable[[list[Cell]], object], play: Callable[[Cell], object]) -> Iterator[Task]:
        """What to do next, decided when it is asked for: by then more may be ready."""
        for kind in list(self._cold):
            yield prepare, list({type(cell.policy): cell for cell in self._waiting[kind]}.values())
        while self._waiting:
            kind = self._next_kind()
            yield play, self._waiting[kind].pop()
            if not self._waiting[kind]:
                del self._waiting[kind]

    def _next_kind(self) -> type:
        """That of the longest cell that is ready; if none is, the kind that is prepared the soonest."""
        ready = [kind for kind in self._waiting if kind not in self._cold]
        if not ready:
            return max(self._waiting, key=_place)
        return max(ready, key=lambda kind: effort(self._waiting[kind][-1]))


def _place(kind: type) -> int:
    return ENGINES.index(kind) if kind in ENGINES else -1
