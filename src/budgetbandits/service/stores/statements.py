"""How a transaction of a SQL database runs a statement; the statements themselves are in the modules ``*_sql``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from budgetbandits.service.stores.contract import Transaction


class Statements(Transaction):
    """Plain SQL with ``?`` for values; a database supplies how to run it."""

    wrote = False
    """Whether anything has been."""

    @abstractmethod
    def _do(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; the result can be iterated and has fetchone()."""

    def _change(self, statement: str, values: Sequence[Any] = ()) -> None:
        self.wrote = True
        self._do(statement, values)

    @abstractmethod
    def _do_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None: ...

    def _change_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self.wrote = True
        self._do_many(statement, rows)

    def _change_all(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:  # which is often so, and quicker
            self._change(statement, rows[0])
        elif rows:
            self._change_many(statement, rows)
