"""Long reads in slices: each in a transaction of its own, so that nobody keeps a view of the database for long.

A view that is kept for minutes keeps SQLite from shortening its log, and PostgreSQL from clearing away old rows.
Events never change, and all that were there when the number of the latest was read are found, whenever they are read.
Without leases no others are: a campaign's events are numbered in the order of their commits. Events of leases may come
between them later; who must know which has a `Cut`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from budgetbandits.service.stores.contract import Store, T, Transaction
from budgetbandits.service.stores.records import Decision, Event

SLICE = 1000
"""Rows that are read at once."""


def event_slices(store: Store, campaign: str, after: int, last: int) -> Iterator[list[Event]]:
    """The campaign's events above number ``after`` up to ``last``, in order."""
    return _slices(store, lambda tx, since: [(e.seq, e) for e in tx.events(campaign, since, SLICE)], after, last)


def decision_slices(store: Store, campaign: str, last: int) -> Iterator[list[tuple[int, Decision]]]:
    """The campaign's decisions up to the event ``last``, each with the number of the event that tells of it, in the
    order they were made; each as it is when it is read."""

    def page(tx: Transaction, since: int) -> list[tuple[int, tuple[int, Decision]]]:
        return [(number, (number, made)) for number, made in tx.decisions(campaign, since, SLICE)]

    return _slices(store, page, 0, last)


def _slices(
    store: Store, page_after: Callable[[Transaction, int], list[tuple[int, T]]], after: int, last: int
) -> Iterator[list[T]]:
    def read(tx: Transaction) -> list[tuple[int, T]]:
        return page_after(tx, after)

    while after < last and (page := store.read(read)):
        yield [row for number, row in page if number <= last]
        after = page[-1][0]
