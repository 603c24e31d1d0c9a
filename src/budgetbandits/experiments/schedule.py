"""In which order the cells of a study are computed.

Long cells come first, so that no worker is left alone with one at the end. Where an engine has to be compiled, that
comes before anything else, each engine by one worker, and the others play meanwhile what is ready to be played.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from budgetbandits.experiments.plan import Cell
from budgetbandits.policies.epsilon_first import EpsilonFirst
from budgetbandits.policies.index_policy import IndexPolicy
from budgetbandits.policies.sampling import SamplingPolicy
from budgetbandits.policies.thompson import BetaThompson

ENGINES: tuple[type, ...] = (BetaThompson, IndexPolicy, SamplingPolicy, EpsilonFirst)
"""Policies that share an engine; the engine that takes the longest to compile comes first."""

Task = tuple[Callable[[Cell], object], Cell]


def kind_of(cell: Cell) -> type:
    """What a policy has to have compiled, once for all of its kind."""
    return next((kind for kind in ENGINES if isinstance(cell.policy, kind)), type(cell.policy))


def one_of_each(cells: Sequence[Cell]) -> list[Cell]:
    """A cell of each policy: the kinds that take the longest to compile come first."""
    policies = {type(cell.policy): cell for cell in reversed(cells)}
    return sorted(policies.values(), key=lambda cell: _place(kind_of(cell)))


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
    """The cells, handed out one by one. ``cold`` are cells whose kinds have to be compiled first, each kind once."""

    def __init__(self, cells: Sequence[Cell], cold: Sequence[Cell]) -> None:
        self._cold = {kind_of(cell): cell for cell in reversed(cold)}
        self._waiting: dict[type, list[Cell]] = {}
        for cell in sorted(cells, key=effort):
            self._waiting.setdefault(kind_of(cell), []).append(cell)

    @property
    def compiling(self) -> bool:
        return bool(self._cold)

    def compiled(self, kind: type) -> None:
        """From now on cells of this kind may be played."""
        self._cold.pop(kind, None)

    def tasks(self, compile_engine: Callable[[Cell], object], play: Callable[[Cell], object]) -> Iterator[Task]:
        """What to do next, decided when it is asked for: by then more may be compiled."""
        for cell in sorted(self._cold.values(), key=lambda cell: _place(kind_of(cell))):
            yield compile_engine, cell
        while self._waiting:
            kind = self._next_kind()
            yield play, self._waiting[kind].pop()
            if not self._waiting[kind]:
                del self._waiting[kind]

    def _next_kind(self) -> type:
        """That of the longest cell that is ready; if none is, the kind that is compiled the soonest."""
        ready = [kind for kind in self._waiting if kind not in self._cold]
        if not ready:
            return max(self._waiting, key=_place)
        return max(ready, key=lambda kind: effort(self._waiting[kind][-1]))


def _place(kind: type) -> int:
    return ENGINES.index(kind) if kind in ENGINES else -1
