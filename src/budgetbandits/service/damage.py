"""Rows that nobody can have written: the error is named, and stays with the campaign whose rows they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from budgetbandits.errors import BadState, BudgetBanditsError
from budgetbandits.service.stores.contract import AnyTransaction, T

UNREADABLE = (LookupError, ArithmeticError, TypeError, ValueError, AttributeError, AssertionError)
"""What comes of taking a damaged row for a good one."""


def damaged(campaign: str | None, error: Exception) -> BadState:
    """What is said of such an error: it names the campaign and what to do."""
    whose = "a campaign" if campaign is None else f"campaign {campaign!r:.60}"
    return BadState(
        f"what the store has of {whose} is damaged ({error!r:.80}); "
        "'budgetbandits campaign verify' says where, restore an undamaged copy"
    )


def isolated(campaign: str | None, work: Callable[[AnyTransaction], T]) -> Callable[[AnyTransaction], T]:
    """The work, whose errors are named if the campaign's rows are damaged."""

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
