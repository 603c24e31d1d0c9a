"""The rules of leases: money that a campaign lends to a server, which decides with it under a row of its own. Pure.

A lease is an account whose budget is the amount lent. Decisions place and resolve their holds in it by the rules of
`ledger`, and the campaign's account does not change: all it knows is how much is leased. Whatever happens,

    of the campaign   spent + held + leased ≤ budget
    of the lease      spent + held ≤ amount

after every step. From time to time a lease is

    merged     what it has spent is the campaign's spending from now on; then it may be resized
    returned   merged, and ended: its open holds are the campaign's from now on, the rest is free again

Only what cannot become an overrun is booked in a lease: a pending hold that is settled for no more than its arm's cap
and what the lease can pay, voided, or expired.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce

from budgetbandits.service.ledger import Account, Hold

NO_DAY = -1.0
"""The time of a hold that was placed in a lease: a campaign that leases has no daily cap, so nobody counts its days."""

SHARES = 4
"""A lease is at most this part of what is free, so that servers meet the end of the budget with small ones."""


def size(free: int, wanted: int) -> int:
    """How large a lease may be when so much is free."""
    return min(wanted, free // SHARES)


def lend(account: Account, amount: int) -> tuple[Account, Account]:
    """The campaign's account, and that of a new lease."""
    return replace(account, leased=account.leased + amount), Account(amount)


def place(lease: Account, amount: int) -> tuple[Account, Hold]:
    """Set the whole amount aside; the caller has seen that it fits."""
    return Account(lease.budget, lease.spent, lease.held + amount, requests_used=lease.requests_used), Hold(
        amount, placed_at=NO_DAY
    )


def merge(account: Account, lease: Account) -> tuple[Account, Account]:
    """Both accounts when what the lease has spent is the campaign's, and so are the requests it was for."""
    spent, requests_used = lease.spent, account.requests_used + lease.requests_used
    return (
        replace(account, spent=account.spent + spent, leased=account.leased - spent, requests_used=requests_used),
        replace(lease, budget=lease.budget - spent, spent=0, requests_used=0),
    )


def resize(account: Account, lease: Account, amount: int) -> tuple[Account, Account]:
    """Both accounts when the lease is of this amount."""
    return replace(account, leased=account.leased + amount - lease.budget), replace(lease, budget=amount)


def give_back(account: Account, lease: Account) -> Account:
    """The campaign's account when the lease has ended."""
    account, lease = merge(account, lease)
    return replace(account, held=account.held + lease.held, leased=account.leased - lease.budget)


def all_given_back(account: Account, leases: Iterable[Account]) -> Account:
    """The campaign's account when all these leases have ended, as they do before an operator changes anything."""
    return reduce(give_back, leases, account)
