"""Transactions of PostgreSQL: one that reads, and a writer's, which reads and writes decisions and leases at once.

What the items of a group are about is locked and read beforehand, in one round trip, and kept in the cache. A
transaction that has leases alone locks these in their campaign's place, so that servers on one campaign need not wait
for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg.errors import LockNotAvailable
from pydantic_core import to_json

from budgetbandits.service.names import normal
from budgetbandits.service.stores.contract import CampaignNeeded, Scope
from budgetbandits.service.stores.group_commit import CachedTransaction, RowCache
from budgetbandits.service.stores.postgres_pipeline import Pipeline, Result, numbered
from budgetbandits.service.stores.postgres_session import (
    OutOfOrder,
)
from budgetbandits.service.stores.records import ArmRow, Campaign, DecisionRow, Event, Lease
from budgetbandits.service.stores.sql import rows
from budgetbandits.service.stores.sql.core import LEASES, SqlTransaction
from budgetbandits.service.stores.sql.hot import NAMED, RowStatements
from budgetbandits.service.stores.sql.rows import listed


class NewestRows(RowStatements):
    """Statements that find the newest version of a row first.

    While anybody looks at an old state of the database, no old version of a row can be cleared away, and by the index
    on its key they are all found. The newest is nearly always the last, so the index is read backwards: a range of one
    key and an order make the database do that, where an equality would not.
    """

    def where_is(self, column: str, expression: str, values: int) -> str:
        value = expression.format(*(f"${number}" for number in range(1, values + 1)))
        return f"{column} >= {value} AND {column} <= {value} ORDER BY {column} DESC LIMIT 1"

    def where(self, first: int, *key: str) -> str:
        *others, last = key
        same = "".join(f"{column} = ${number} AND " for number, column in enumerate(others, first))
        value = f"${first + len(others)}"
        return f"{same}{last} >= {value} AND {last} <= {value} ORDER BY {last} DESC LIMIT 1"

    def where_newest(self, table: str, first: int, *key: str) -> str:
        return f"ctid = (SELECT ctid FROM {table} WHERE {self.where(first, *key)})"


_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::double precision"
_DECISIONS_OF = (
    f"SELECT {listed(rows.DECISION)} FROM json_array_elements_text({{}}) AS asked (value), "
    f"LATERAL (SELECT {listed(rows.DECISION)} FROM decision WHERE {{}} = asked.value LIMIT 1) AS made"
)
"""Decisions are looked up one by one, because of the LIMIT: for a list, a database that has no statistics yet may read
all decisions of a campaign instead."""
_DECISIONS_BY_KEY = _DECISIONS_OF.format("$4", f"campaign = {NAMED.format('$1', '$2', '$3')} AND key")
_DECISIONS_BY_ID = _DECISIONS_OF.format("$1", "id")
_LEASES_NAMED = (
    f"SELECT {listed(rows.LEASE)} FROM (SELECT json_array_elements_text($1) UNION "
    f"SELECT made.lease FROM ({_DECISIONS_OF.format('$2', 'id')}) AS made WHERE made.lease IS NOT NULL ORDER BY 1) "
    f"AS asked (value), LATERAL (SELECT {listed(rows.LEASE)} FROM lease "
    "WHERE id >= asked.value AND id <= asked.value ORDER BY id DESC LIMIT 1 FOR UPDATE) AS found"
)
"""Leases with these ids, and those of these decisions."""
_ADD_DECISIONS = (
    f"WITH made AS (INSERT INTO decision ({listed(rows.DECISION)}) SELECT {listed(rows.DECISION)} "
    "FROM json_populate_recordset(null::decision, $1) RETURNING id, campaign, state, created_at, expires_at) "
    "INSERT INTO pending_decision (expires_at, decision, campaign, created_at) "
    "SELECT expires_at, id, campaign, created_at FROM made WHERE state = 'pending'"
)
_ADD_EVENTS = (
    f"INSERT INTO event ({listed(rows.EVENT)}) SELECT {listed(rows.EVENT)} "
    "FROM json_populate_recordset(null::event, $1)"
)


class PostgresTransaction(SqlTransaction):
    """A transaction of PostgreSQL, which reads beforehand what its work needs and writes in one round trip."""

    ROWS = NewestRows()
    LISTS_PENDING = True

    def now(self) -> float:
        """The database's time: servers' clocks may differ."""
        return float(self._execute(_CLOCK).fetchone()[0])

    def whole(self, number: str) -> str:
        return f"CAST(FLOOR({number}) AS BIGINT)"  # a cast alone would round

    def contains(self, text: str) -> str:
        return f"strpos({text}, ?) > 0"

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Any:
        return self._connection.execute(numbered(statement), values)

    def arms(self, campaign: str, numbers: Sequence[int] | None = None) -> list[ArmRow]:
        if numbers is None:
            return super().arms(campaign)
        results = [self.ask(self.ROWS.arm, (campaign, number)) for number in numbers]
        return [rows.arm_of(row) for result in results for row in result]


class PostgresWritingTransaction(CachedTransaction, PostgresTransaction):
    """A writer's, whose decisions and leases wait as well; all are written in one statement, or in one round trip."""

    LOCK = " FOR UPDATE"

    def __init__(self, connection: Pipeline, cache: RowCache, leases_alone: bool = False) -> None:
        super().__init__(connection, cache)
        self.leases_alone = leases_alone

    def now(self) -> float:
        return super().now() if self._cache.now is None else self._cache.now

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> Result:
        result: Result = self._connection.execute(statement, values)
        return result

    def _execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        for row in rows:
            self._connection.execute(statement, row)

    # --- what is read beforehand ----------------------------------------------------------------------------------

    def lock_campaign(self, scopes: Sequence[Scope], shared_budget: str | None) -> Campaign | None:
        """Lock the campaign, and read the decisions that are named, as the last transaction has left them: in one round
        trip, if this is the name of its shared budget."""
        asked = scopes[0].campaign
        name, cache = normal(asked), self._cache
        row_of_campaign = self._execute(self.ROWS.campaign + self.LOCK, (name, name, asked))
        if shared_budget is not None:
            shared = self._execute(self.ROWS.shared_budget + self.LOCK, (shared_budget,))
        leasing = any(scope.lease is not None for scope in scopes)
        if leasing:  # before the decisions, which others may change under their leases
            leases = self._execute(f"{LEASES} WHERE campaign = ? ORDER BY id FOR UPDATE", (asked,))
        clock, decisions = self._execute(_CLOCK), self._decisions_named(scopes)
        campaign = next(map(rows.campaign_of, row_of_campaign), None)
        if campaign is None:
            return None
        [(cache.now,)] = clock
        self._keep(campaign)
        if shared_budget is not None and shared_budget == campaign.settings.terms.shared_budget:
            cache.shared |= {row[0]: rows.shared_budget_of(row) for row in shared}
        if leasing:
            cache.leases = {row[0]: rows.lease_of(row) for row in leases}
        self._keep_decisions(campaign.id, scopes, decisions)
        return campaign

    def lock_leases(self, scopes: Sequence[Scope]) -> None:
        """Lock leases, in the order of their ids, then read the decisions that are named: in one round trip."""
        own = sorted({scope.lease for scope in scopes if scope.lease})
        ids = [id for scope in scopes for id in scope.decisions]
        leases = self._execute(_LEASES_NAMED, (_as_json(own), _as_json(ids)))
        clock, decisions = self._execute(_CLOCK), self._decisions_named(scopes)
        [(self._cache.now,)] = clock
        self._cache.leases = dict.fromkeys(own) | {row[0]: rows.lease_of(row) for row in leases}
        self._keep_decisions(scopes[0].campaign, scopes, decisions)

    def _decisions_named(self, scopes: Sequence[Scope]) -> list[Result]:
        campaign = scopes[0].campaign
        keys = [key for scope in scopes for key in scope.keys]
        ids = [id for scope in scopes for id in scope.decisions]
        name, result = normal(campaign), []
        if keys:
            result.append(self._execute(_DECISIONS_BY_KEY, (name, name, campaign, _as_json(keys))))
        if ids:
            result.append(self._execute(_DECISIONS_BY_ID, (_as_json(ids),)))
        return result

    def _keep_decisions(self, campaign: str, scopes: Sequence[Scope], results: Sequence[Result]) -> None:
        decisions = self._cache.decisions_by_key
        decisions.update(((campaign, key), None) for scope in scopes for key in scope.keys)
        for decision in (rows.decision_of(row) for result in results for row in result):
            if decision.lease is None or self._cache.leases is not None:
                self._keep_decision(decision)
            else:  # others may change it until its lease is locked
                decisions.pop((decision.campaign, decision.key), None)

    def _keep_decision(self, decision: DecisionRow) -> None:
        self._decisions[decision.id] = decision
        self._cache.decisions_by_key[decision.campaign, decision.key] = decision

    # --- campaigns and leases -------------------------------------------------------------------------------------

    def campaign(self, id_or_name: str) -> Campaign | None:
        if self.leases_alone:
            raise CampaignNeeded
        return super().campaign(id_or_name)

    def lease(self, id: str) -> Lease | None:
        """The lease of this id, locked beforehand if possible."""
        leases = self._cache.leases
        if leases is None:
            return super().lease(id)
        if self.leases_alone and id not in leases:
            raise CampaignNeeded
        return leases.get(id)

    def leases(self, campaign: str) -> list[Lease]:
        if self.leases_alone:
            raise CampaignNeeded
        leases = self._cache.leases
        if leases is None:
            return super().leases(campaign)
        return sorted((lease for lease in leases.values() if lease is not None), key=lambda lease: lease.id)

    def add_lease(self, lease: Lease) -> None:
        """Add a lease."""
        super().add_lease(lease)
        if self._cache.leases is not None:
            self._cache.leases[lease.id] = lease

    def save_lease(self, lease: Lease) -> None:
        """Write a lease when the transaction commits."""
        if self._cache.leases is None:
            super().save_lease(lease)
        else:
            self._cache.leases[lease.id] = self._waiting().leases[lease.id] = lease

    def drop_lease(self, id: str) -> None:
        """Delete a lease."""
        super().drop_lease(id)
        if self._cache.leases is not None:
            self._cache.leases.pop(id, None)

    def _lock_leases(self, statement: str, value: str) -> Any:
        """Wait for the first, in the order of their ids. To wait for more with these locked could be to wait in a
        circle; so the items of this group are run again, each by itself: an item reads one lease, or all at once."""
        if not self._cache.leases_read:
            self._cache.leases_read = True
            return super()._lock_leases(statement, value)
        result = self.ask(f"{statement}{self.LOCK} NOWAIT", (value,))
        try:
            result.fetchall()
        except LockNotAvailable as error:
            raise OutOfOrder(str(error)) from None
        return result

    # --- decisions ------------------------------------------------------------------------------------------------

    def decision_by_key(self, campaign: str, key: str) -> DecisionRow | None:
        """The decision of this key, read beforehand if possible."""
        decisions = self._cache.decisions_by_key
        return decisions[campaign, key] if (campaign, key) in decisions else super().decision_by_key(campaign, key)

    def add_decision(self, decision: DecisionRow) -> None:
        """Add a decision when the transaction commits."""
        self._waiting().new_decisions[decision.id] = decision
        self._keep_decision(decision)

    def save_decision(self, decision: DecisionRow) -> None:
        """Write a decision's feedback when the transaction commits."""
        waiting = self._waiting()
        changed = waiting.new_decisions if decision.id in waiting.new_decisions else waiting.decisions
        changed[decision.id] = decision
        self._keep_decision(decision)

    def forget_key(self, decision: DecisionRow) -> None:
        super().forget_key(decision)
        self._decisions.pop(decision.id, None)
        self._cache.decisions_by_key.pop((decision.campaign, decision.key), None)

    def write_rest(self) -> None:
        waiting = self._cache.unwritten
        for lease in waiting.leases.values():
            self._execute(self.ROWS.save_lease, (*rows.lease_changes(lease), lease.id))
        if waiting.new_decisions:
            # in the order of their keys: servers that add the same keys under different leases cannot wait in a circle
            decisions = sorted(waiting.new_decisions.values(), key=lambda decision: decision.key)
            self._execute(_ADD_DECISIONS, (rows.json_rows(rows.DECISION, rows.decision_values, decisions),))
        for decision in waiting.decisions.values():
            SqlTransaction.save_decision(self, decision)
        super().write_rest()

    def _add_events(self, events: Sequence[Event]) -> None:
        self._execute(_ADD_EVENTS, (rows.json_rows(rows.EVENT, rows.event_values, events),))


def _as_json(values: Sequence[str]) -> str:
    return to_json(values).decode()
