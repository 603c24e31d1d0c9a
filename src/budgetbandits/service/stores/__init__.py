"""Where campaigns are kept: SQLite for one host, PostgreSQL for many.

Read `contract` first: a store and a transaction; then `records`, the rows. `sql/` has the statements that both
databases share, `schema` and `migrations/` the tables. Work waits in a `work_queue`. `group_commit` runs what waits in
one transaction and writes each changed row once at its end. SQLite needs nothing else. On PostgreSQL an event loop
gathers groups for the writers' threads (`loop_groups`). What a group is about is read in one round trip
(`postgres_transaction`), and what it has changed is written in another (`postgres_pipeline`). `postgres_session` has
the settings and errors of a connection.

From outside: `open_store`, `contract`, `records`, and the types of results in `sql.dashboard` and `sql.rollups`.
"""

from __future__ import annotations

from pathlib import Path

from budgetbandits.errors import StoreError, install
from budgetbandits.service.stores.contract import Store
from budgetbandits.service.stores.sqlite import SQLiteStore


def open_store(address: str, must_exist: bool = False) -> Store:
    """Open a PostgreSQL database by its address, or a SQLite file by its path."""
    if address.startswith(("postgresql://", "postgres://")):
        try:
            from budgetbandits.service.stores.postgres import PostgresStore
        except ImportError as error:
            raise StoreError(f"PostgreSQL needs {error.name}; {install('postgres')}") from None

        return PostgresStore(address)
    if must_exist and not Path(address).exists():
        raise StoreError(f"no database {address!r}; say where it is with --store, or make one with 'serve'")
    return SQLiteStore(address)
