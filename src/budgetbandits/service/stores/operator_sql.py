"""The statements and rows of what operators do: changes under keys of theirs, and API keys; and the heartbeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from budgetbandits.service.stores.contract import ANSWERS
from budgetbandits.service.stores.records import Key
from budgetbandits.service.stores.statements import Statements

_KEY = "prefix, digest, scopes, created_at, campaign"
_FORGET_ANSWERS = (
    "UPDATE operation SET answer = NULL WHERE campaign = ? AND answer IS NOT NULL AND at < "
    "(SELECT at FROM operation WHERE campaign = ? AND answer IS NOT NULL ORDER BY at DESC LIMIT 1 OFFSET ?)"
)


class OperatorTransaction(Statements):
    """What `SqlTransaction` does for operators."""

    def operation(self, campaign: str, key: str) -> str | None:
        row = self._do("SELECT payload FROM operation WHERE campaign = ? AND key = ?", (campaign, key)).fetchone()
        return None if row is None else str(row[0])

    def answer(self, campaign: str, key: str) -> str | None:
        row = self._do("SELECT answer FROM operation WHERE campaign = ? AND key = ?", (campaign, key)).fetchone()
        return None if row is None else row[0]

    def add_operation(self, campaign: str, key: str, payload: str, at: float, answer: str | None = None) -> None:
        self._change(
            "INSERT INTO operation (campaign, key, payload, at, answer) VALUES (?, ?, ?, ?, ?)",
            (campaign, key, payload, at, answer),
        )
        self._change(_FORGET_ANSWERS, (campaign, campaign, ANSWERS - 1))

    def add_key(self, key: Key) -> None:
        self._change(
            f"INSERT INTO api_key ({_KEY}) VALUES (?, ?, ?, ?, ?)",
            (key.prefix, key.digest, " ".join(key.scopes), key.created_at, key.campaign),
        )

    def key(self, prefix: str) -> Key | None:
        row = self._do(f"SELECT {_KEY} FROM api_key WHERE prefix = ?", (prefix,)).fetchone()
        return None if row is None else _key(row)

    def keys(self) -> list[Key]:
        return [_key(row) for row in self._do(f"SELECT {_KEY} FROM api_key ORDER BY created_at, prefix")]

    def drop_key(self, prefix: str) -> None:
        self._change("DELETE FROM api_key WHERE prefix = ?", (prefix,))

    def beat(self, now: float) -> None:
        self._change(
            "INSERT INTO heartbeat (number, at) VALUES (1, ?) ON CONFLICT (number) DO UPDATE SET at = excluded.at",
            (now,),
        )


def _key(row: Sequence[Any]) -> Key:
    prefix, digest, scopes, created_at, campaign = row
    return Key(prefix, digest, tuple(scopes.split()), created_at, campaign)
