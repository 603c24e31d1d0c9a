"""Where campaigns are kept: the contract in `base`, SQLite for one host, PostgreSQL for many."""

from __future__ import annotations

from pathlib import Path

from budgetbandits.errors import StoreError
from budgetbandits.service.stores.contract import Store
from budgetbandits.service.stores.sqlite import SQLiteStore


def open_store(address: str, must_exist: bool = False) -> Store:
    """A PostgreSQL by its address, or a SQLite file by its path."""
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from budgetbandits.service.stores.postgres import PostgresStore
        except ImportError as error:
            raise StoreError(f"PostgreSQL needs {error.name}; pip install 'budgetbandits[postgres]'") from None

        return PostgresStore(address)
    if must_exist and not Path(address).exists():
        raise StoreError(f"no database {address!r}; say where it is with --store, or make one with 'serve'")
    return SQLiteStore(address)
