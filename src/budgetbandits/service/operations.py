"""What operators change, once: under an idempotency key a change is made one time, however often it is asked for.

The key is kept in the transaction of the change, so that both are there or neither, and with it the answer: whoever
asks again is told the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from budgetbandits.errors import BadParameter, Conflict
from budgetbandits.service.names import check_text
from budgetbandits.service.stores.contract import Transaction


@dataclass(frozen=True)
class Operation:
    """A change that was asked for, and the key it was asked for under, if any."""

    key: str | None
    asked: tuple[Any, ...]
    """What to do, and with what: the same key with anything else is a conflict."""

    def __post_init__(self) -> None:
        if self.key is not None and not (isinstance(self.key, str) and 0 < len(self.key) <= 200):
            raise BadParameter("key must be text of 1 to 200 characters: one for each change, the same when retried")
        check_text("key", self.key or "")

    def done(self, tx: Transaction, campaign: str) -> bool:
        """Whether it was done to this campaign before."""
        payload = None if self.key is None else tx.operation(campaign, self.key)
        if payload is not None and payload != self._payload():
            raise Conflict(f"key {self.key!r:.60} was used for another change; use a new key for a new change")
        return payload is not None

    def note(self, tx: Transaction, campaign: str, at: float, answer: Callable[[], str]) -> None:
        """It is done now, and this is what to answer."""
        if self.key is not None:
            tx.add_operation(campaign, self.key, self._payload(), at, answer())

    def _payload(self) -> str:
        return hashlib.sha256(json.dumps(self.asked, sort_keys=True).encode()).hexdigest()
