"""The statements that an event loop prepares on its connections to PostgreSQL: see `postgres_loop`."""

from __future__ import annotations

from budgetbandits.service.stores.lease_sql import EVENT, LEASE, LEASE_EVENTS
from budgetbandits.service.stores.rows import ARM, CAMPAIGN, DECISION

_NAMED = "(SELECT id FROM campaign_name WHERE name = $1)"
_NOW = "extract(epoch FROM clock_timestamp())::double precision"
_MADE = (
    f"SELECT {DECISION} FROM json_array_elements_text({{}}) AS asked (value), "
    f"LATERAL (SELECT {DECISION} FROM decision WHERE {{}} = asked.value LIMIT 1) AS made"
)
"""Decisions that are looked up one by one, because of the LIMIT: for a list, a database that has no statistics yet may
read all decisions of a campaign instead."""
_MONEY = "budget = $2, spent = $3, held = $4, overrun = $5, day = $6, today = $7, leased = $8, gone = $9, status = $10"
_ONE = "id >= {0} AND id <= {0} ORDER BY id DESC LIMIT 1"
_CAMPAIGN = _LEASE = _ONE.format("$1")
_ARM = "campaign = $1 AND number >= $2 AND number <= $2 ORDER BY number DESC LIMIT 1"
"""A row that changes all the time, by its key. While somebody looks at an old state of the database, no old version of
a row can be cleared away, and by the index on its key they are all found. The newest is nearly always the last, so the
index is read backwards: a range of one key and an order make the database do that, where an equality would not."""
_LEASES = (
    "SELECT json_array_elements_text($1) UNION "
    f"SELECT made.lease FROM ({_MADE.format('$2', 'id')}) AS made WHERE made.lease IS NOT NULL ORDER BY 1"
)
"""The ids of leases: these, and those of these decisions."""

STATEMENTS = {
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "campaign": f"SELECT {CAMPAIGN}, {_NOW} FROM campaign WHERE {_CAMPAIGN} FOR UPDATE",
    "campaign named": f"SELECT {CAMPAIGN}, {_NOW} FROM campaign WHERE id = {_NAMED} FOR UPDATE",
    "keys": _MADE.format("$2", "campaign = $1 AND key"),
    "keys named": _MADE.format("$2", f"campaign = {_NAMED} AND key"),
    "decisions": _MADE.format("$1", "id"),
    "leases": f"SELECT {LEASE}, {_NOW} FROM ({_LEASES}) AS asked (value), LATERAL "
    f"(SELECT {LEASE} FROM lease WHERE {_ONE.format('asked.value')} FOR UPDATE) AS found",
    "all leases": f"SELECT {LEASE} FROM lease WHERE campaign = $1 ORDER BY id FOR UPDATE",
    "lease events": LEASE_EVENTS.format("$1", "$2"),
    "arms": f"SELECT {ARM} FROM arm WHERE campaign = $1 ORDER BY number",
    "arm": f"SELECT {ARM} FROM arm WHERE {_ARM}",
    "save money": f"UPDATE campaign SET {_MONEY} WHERE ctid = (SELECT ctid FROM campaign WHERE {_CAMPAIGN})",
    "save campaign": f"UPDATE campaign SET {_MONEY}, learned = $11, down = $12 "
    f"WHERE ctid = (SELECT ctid FROM campaign WHERE {_CAMPAIGN})",
    "save lease": "UPDATE lease SET amount = $2, spent = $3, held = $4, gone = $5, expires_at = $6, turn = $7, "
    f"merged = $8, tag = $9 WHERE ctid = (SELECT ctid FROM lease WHERE {_LEASE})",
    "save arm": f"UPDATE arm SET learned = $3, active = $4 WHERE ctid = (SELECT ctid FROM arm WHERE {_ARM})",
    "add decisions": f"WITH made AS (INSERT INTO decision ({DECISION}) SELECT {DECISION} "
    "FROM json_populate_recordset(null::decision, $1) RETURNING id, campaign, state, created_at, expires_at) "
    "INSERT INTO pending (expires_at, decision, campaign, created_at) "
    "SELECT expires_at, id, campaign, created_at FROM made WHERE state = 'pending'",
    "drop pending": "DELETE FROM pending WHERE expires_at = $1 AND decision = $2",
    "save decision": "UPDATE decision SET state = $1, charged = $2, overrun = $3, reported = $4, cost = $5, "
    "reward = $6, failed = $7 WHERE id = $8",
    "add events": f"INSERT INTO event ({EVENT}) SELECT {EVENT} FROM json_populate_recordset(null::event, $1)",
    "beat": "INSERT INTO heartbeat (number, at) VALUES (1, $1) ON CONFLICT (number) DO UPDATE SET at = excluded.at",
}
