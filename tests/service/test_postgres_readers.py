"""Connections that read: an outage is over for the first who asks after it, and none is used that is broken."""

import threading
from types import SimpleNamespace

import pytest

psycopg = pytest.importorskip("psycopg", reason="no psycopg: install the extra postgres")

from psycopg.pq import TransactionStatus  # noqa: E402

from budgetbandits.errors import StoreError  # noqa: E402
from budgetbandits.service.stores import postgres_readers  # noqa: E402
from budgetbandits.service.stores.postgres_readers import Readers  # noqa: E402


class Database:
    """Hands out connections while it is up; those it had handed out are broken once it was down."""

    def __init__(self):
        self.up, self.made, self.tried = True, [], 0

    def connect(self, url, limits):
        self.tried += 1
        if not self.up:
            raise psycopg.OperationalError("connection refused")
        self.made.append(Connection(self))
        return self.made[-1]

    def restart(self):
        for each in self.made:
            each.broken = True
        self.up = True


class Connection:
    def __init__(self, database):
        self.broken = self.closed = self.autocommit = False
        self.info = SimpleNamespace(transaction_status=TransactionStatus.IDLE)

    def execute(self, statement):
        if self.broken:
            raise psycopg.OperationalError("the connection is lost")

    def close(self):
        self.closed = True


@pytest.fixture
def database(monkeypatch):
    made = Database()
    monkeypatch.setattr(postgres_readers, "connect", made.connect)
    return made


def test_an_outage_is_over_for_the_first_who_asks(database):
    """However often it was tried meanwhile, and with no wait in between."""
    readers = Readers("", 2)
    with readers.connection() as first, readers.connection():
        pass
    database.up = False
    for each in database.made:
        each.broken = True
    for _ in range(50):
        with pytest.raises(psycopg.OperationalError, match="refused"), readers.connection():
            pass
    assert first.closed
    database.restart()
    with readers.connection() as again, readers.connection() as another:
        assert not again.broken
        assert not another.broken
    assert database.tried == 2 + 50 + 2


def test_a_connection_is_used_again(database):
    readers = Readers("", 2)
    for _ in range(3):
        with readers.connection():
            pass
    assert len(database.made) == 1


def test_one_that_is_in_the_middle_of_a_transaction_is_not_used_again(database):
    readers = Readers("", 2)
    with readers.connection() as left:
        left.info.transaction_status = TransactionStatus.INERROR
    assert left.closed
    with readers.connection() as other:
        assert other is not left


def test_more_than_there_may_be_wait_and_are_told(database, monkeypatch):
    monkeypatch.setattr(postgres_readers, "PATIENCE", 0.02)
    readers = Readers("", 1)
    with readers.connection(), pytest.raises(StoreError, match="ask again"), readers.connection():
        pass
    monkeypatch.setattr(postgres_readers, "PATIENCE", 10.0)
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with readers.connection():
            entered.set()
            leave.wait(10.0)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(10.0)
    threading.Timer(0.02, leave.set).start()
    with readers.connection():
        assert len(database.made) == 1
    thread.join()


def test_what_nobody_needs_is_closed(database, monkeypatch):
    readers = Readers("", 2)
    with readers.connection() as first, readers.connection() as second:
        pass
    monkeypatch.setattr(postgres_readers, "KEPT", 0.0)
    with readers.connection() as latest:
        pass
    assert [each for each in (first, second) if each.closed] == [each for each in (first, second) if each is not latest]
    readers.close()
    assert latest.closed
