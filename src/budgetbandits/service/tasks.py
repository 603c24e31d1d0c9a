"""Work for a store: a task, the time in its transaction, and the error that names a damaged row.

`Store.write`, `submit` and `perform` are called with a task, so that an operation is the same for callers that wait and
for those that do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

from budgetbandits.errors import BadState, BudgetBanditsError
from budgetbandits.service.stores.contract import AnyTransaction, DecisionTransaction, Scope, Store

T = TypeVar("T")

Clock = Callable[[], float]
"""Seconds since 1970."""

UNREADABLE = (LookupError, ArithmeticError, TypeError, ValueError, AttributeError, AssertionError)
"""Errors that come of reading a damaged row."""


class Task(NamedTuple, Generic[T]):
    """Work in a transaction, and what it is about."""

    work: Callable[[DecisionTransaction], T]
    scope: Scope


class Prefetch:
    """Prepares what is likely to be needed next, when a store has nothing else to do."""

    def __init__(self, store: Store) -> None:
        self.next: Callable[[], None] | None = None
        store.on_idle = self._prepare

    def _prepare(self) -> None:
        prepare, self.next = self.next, None
        if prepare is not None:
            prepare()


def moment(tx: DecisionTransaction, clock: Clock | None) -> float:
    """The time: by this clock, or by the store's if there is none. On PostgreSQL that is the database's, which all
    servers share; on SQLite that of the only host."""
    return tx.now() if clock is None else clock()


def damaged(campaign: str | None, error: Exception) -> BadState:
    """The error for a damaged row: it names the campaign and what to do."""
    whose = "a campaign" if campaign is None else f"campaign {campaign!r:.60}"
    return BadState(
        f"what the store has of {whose} is damaged ({error!r:.80}); "
        "'budgetbandits campaign verify' says where, restore an undamaged copy"
    )


def isolated(campaign: str | None, work: Callable[[AnyTransaction], T]) -> Callable[[AnyTransaction], T]:
    """The work, with errors that name the campaign if its rows are damaged."""

    def run(tx: AnyTransaction) -> T:
        with named_damage(campaign):
            return work(tx)

    return run


@contextmanager
def named_damage(campaign: str | None) -> Iterator[None]:
    """The same for a block."""
    try:
        yield
    except UNREADABLE as error:
        if isinstance(error, BudgetBanditsError):
            raise
        raise damaged(campaign, error) from error
