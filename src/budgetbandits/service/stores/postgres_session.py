"""How the service is connected to PostgreSQL: nobody waits without limit, and what was acknowledged is durable.

A server that stands still in the middle of a transaction, because it was stopped or its host is lost, keeps a campaign
from all others. The database ends such a transaction after `IDLE_SECONDS`, sooner than others give up waiting. When
that server goes on, its connection is closed, so it cannot finish what it had begun.
"""

from __future__ import annotations

import logging
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import IdleInTransactionSessionTimeout, LockNotAvailable, QueryCanceled

from budgetbandits import errors
from budgetbandits.errors import StoreError
from budgetbandits.service.stores.group_commit import one_line

CONNECT_SECONDS = 5
"""Time to open a connection."""

IDLE_SECONDS = 2.0
"""How long a transaction that writes may wait for its server."""
LOCK_SECONDS = 3.0
"""How long a server waits for a campaign that another one is changing."""
STATEMENT_SECONDS = 5.0
"""How long a statement of a transaction that writes may take, waiting included."""
READ_SECONDS = 60.0
"""All three for readers, which keep nobody waiting, and for the one that makes the tables."""

WRITE_LIMITS = {"lock_timeout": LOCK_SECONDS, "idle_in_transaction_session_timeout": IDLE_SECONDS,
           "statement_timeout": STATEMENT_SECONDS}  # fmt: skip
READ_LIMITS = dict.fromkeys(WRITE_LIMITS, READ_SECONDS)
"""Limits of time of a reader."""

_NETWORK = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1, "keepalives_idle": 2, "keepalives_interval": 1, "keepalives_count": 3,
    "tcp_user_timeout": 5000,
}  # fmt: skip
"""A lost host is noticed within about five seconds; settings in the address take precedence."""

_DURABLE_COMMITS = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') != 'remote_apply'"
)
"""A database may be set to acknowledge what it could lose. Only remote_apply promises more than on."""

_ISOLATION_LEVEL = "SET default_transaction_isolation = 'read committed'"
"""A transaction that waited for a row goes on with its newest version. A database or a role may be set to a level that
refuses."""

_FLOAT_DIGITS = "SET extra_float_digits = 1"
"""Numbers are read as text, with every digit."""

_NO_BITMAPS = "SET enable_bitmapscan = off"
"""Rows are read in the order of an index, up to a limit. A bitmap of all that an index has is read whole and sorted for
the first few: a slice of a long campaign would take as long as all of it."""

_NO_TABLE_SCANS = "SET enable_seqscan = off"
"""Plans are made once for a connection. One that was made while a table was small would read it whole ever after."""

_NO_TABLE_JOINS = ("SET enable_hashjoin = off", "SET enable_mergejoin = off")
"""Settings by which joined rows are looked up by their index, one at a time. The other ways to join read a whole
table, which is faster only if the database has guessed a campaign's number of rows rightly."""

_NO_PARALLEL_WORKERS = "SET max_parallel_workers_per_gather = 0"
_NO_COMPILATION = "SET jit = off"
"""A query that must read a whole table has a prohibitive cost by these settings, for which PostgreSQL compiles it, or
starts processes. That takes up to a second, and the longest of these queries takes some milliseconds."""


log = logging.getLogger("budgetbandits")


def arguments(url: str) -> dict[str, Any]:
    """The arguments of a connection."""
    given: dict[str, Any] = conninfo_to_dict(url)
    return _NETWORK | given | {"client_encoding": "UTF8"}


def prepare(connection: psycopg.Connection[Any], limits: dict[str, float]) -> None:
    """Set what holds for this connection until its end."""
    autocommit, connection.autocommit = connection.autocommit, True
    for statement in settings(limits):
        connection.execute(statement)
    connection.autocommit = autocommit


def settings(limits: dict[str, float]) -> list[str]:
    """The statements that `prepare` runs."""
    return [
        _DURABLE_COMMITS,
        _ISOLATION_LEVEL,
        _FLOAT_DIGITS,
        _NO_BITMAPS,
        _NO_TABLE_SCANS,
        *_NO_TABLE_JOINS,
        _NO_PARALLEL_WORKERS,
        _NO_COMPILATION,
        *(f"SET {name} = '{round(seconds * 1000)}ms'" for name, seconds in limits.items()),
    ]


def connect(url: str, limits: dict[str, float]) -> psycopg.Connection[Any]:
    """A connection with these limits of time."""
    connection = psycopg.connect(**arguments(url))
    try:
        prepare(connection, limits)
    except BaseException:
        connection.close()
        raise
    return connection


def check_encoding(connection: psycopg.Connection[Any]) -> None:
    """Refuse a database that cannot keep every name."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"the database's encoding is {encoding}, which cannot keep every name; "
            "make one with 'createdb --encoding=UTF8 --template=template0'"
        )


class OutOfOrder(psycopg.OperationalError):  # type: ignore[misc]
    """A second lease that another server has would have had to be waited for, with the first one locked."""


class LostInCommit(psycopg.OperationalError):  # type: ignore[misc]
    """The connection was lost after the database had been asked to commit."""


def reason(error: Exception) -> str:
    """The cause of an error and its remedy, for the client; only the log has the database's address."""
    if isinstance(error, LockNotAvailable):
        return f"another server has kept the campaign for {LOCK_SECONDS:g} seconds; ask again"
    if isinstance(error, QueryCanceled):
        return f"the database took more than {STATEMENT_SECONDS:g} seconds; ask again"
    if isinstance(error, IdleInTransactionSessionTimeout):
        return f"this server stood still for {IDLE_SECONDS:g} seconds, so the database has undone its work; ask again"
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        log.warning("the database cannot be reached: %s", one_line(error))
        return "the database cannot be reached, the server's log says why; ask again"
    return one_line(error)


def cannot_write(error: Exception) -> StoreError:
    """The error for a client whose request was not written, or may not have been."""
    if isinstance(error, LostInCommit):
        log.warning("the connection to the database was lost during a commit: %s", one_line(error))
        return errors.OutcomeUnknown(
            "the database was lost during the commit: what was asked may have been done, or not; "
            "ask again under the same key, so that nothing is done twice"
        )
    return StoreError(f"cannot write: {reason(error)}; nothing was decided")
