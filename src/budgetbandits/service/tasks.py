"""A piece of work for a store, and what is prepared between two of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from budgetbandits.service.stores.contract import DecisionTransaction, Scope, Store

T = TypeVar("T")


class Task(NamedTuple, Generic[T]):
    """What `Store.submit` and `Store.perform` are called with."""

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
