"""How PostgreSQL reads the events of one campaign among very many: by that campaign's index, whatever it has counted.

A database that was analysed when there was one campaign believes that any event is of any campaign. No plan may rest on
that: neither one for the values that are asked for, nor one that is kept for all values.
"""

import json
import re

import pytest

from budgetbandits.service.audit.slices import Cut
from budgetbandits.service.dashboard.overview import overview
from budgetbandits.service.dashboard.query import ListQuery
from budgetbandits.service.ledger import Hold
from budgetbandits.service.stores.records import DecisionRow, Watermark
from budgetbandits.service.stores.sql.dashboard import DecisionFilter
from stores import STORES

CAMPAIGNS, EVENTS = 60, 2000
"""One campaign has all these events; each of the others has three."""
ORDERS = ("never", "empty", "one", "one's events", "others", "all")
"""When the database was analysed: of nothing, with the first campaign, only what is not events, and at the end."""

_SETTINGS = '{"terms": {}, "cost_max": 1000000, "chooser": "plain"}'
_CAMPAIGNS = (
    "INSERT INTO campaign_name (id, name, cost_max, folded_name) "
    "SELECT md5(g::text), 'ads ' || g, 1000000, 'ads ' || g FROM generate_series({0}, {1}) g",
    "INSERT INTO campaign (id, name, policy, budget, status, settings, learned, created_at, overrun) "
    "SELECT md5(g::text), 'ads ' || g, 'bts', 9000000, 'active', '{2}', '{{}}', 1.0, 1 "
    "FROM generate_series({0}, {1}) g",
)
_DECISIONS = (
    "INSERT INTO decision (id, campaign, arm, hold, state, reported, key, request_digest, created_at, expires_at) "
    "SELECT md5(g || '.' || n), md5(g::text), 0, 1, 'settled', TRUE, n::text, '', 1.0, 2.0 "
    "FROM generate_series({0}, {1}) g, generate_series(1, {2}) n"
)
_EVENTS = (
    "INSERT INTO event (campaign, kind, at, decision, arm, amount) SELECT campaign, kind, 1.0, id, 0, 1 "
    "FROM decision, (VALUES ('decided'), ('settled')) AS k (kind) WHERE campaign {} md5('0')"
)
_RESUMED = "INSERT INTO event (campaign, kind, at) SELECT id, 'active', 1.0 FROM campaign_name WHERE id {} md5('0')"


def fill(connection, analysed):
    """The first campaign, then all others; analysed in between as is asked for."""
    if analysed == "empty":
        connection.execute("ANALYZE")
    for first, last, decisions, which in ((0, 0, EVENTS // 2, "="), (1, CAMPAIGNS, 1, "<>")):
        for statement in _CAMPAIGNS:
            connection.execute(statement.format(first, last, _SETTINGS))
        connection.execute(_DECISIONS.format(first, last, decisions))
        connection.execute(_EVENTS.format(which))
        connection.execute(_RESUMED.format(which))
        if first == 0 and analysed in ("one", "one's events"):
            connection.execute("ANALYZE event" if analysed == "one's events" else "ANALYZE")
    connection.execute(
        "INSERT INTO rollup_watermark (campaign, seq, activity_seq, last_overrun_event) "
        "SELECT campaign, MAX(seq), MAX(seq), MIN(seq) FROM event GROUP BY campaign"
    )
    if analysed in ("others", "all"):
        connection.execute(
            "ANALYZE" if analysed == "all" else "ANALYZE campaign_name, campaign, rollup_watermark, decision"
        )


def reads(campaign):
    """Whatever is read of events, by what it is called."""
    return {
        "behind": lambda tx: tx.rollups().behind(),
        "list": lambda tx: overview(tx, ListQuery(), None),
        "glances": lambda tx: tx.pages().summaries([campaign], tx.now()),
        "last event": lambda tx: tx.last_event(campaign),
        "cut": lambda tx: Cut.of(tx, campaign),
        "events": lambda tx: tx.events(campaign, 5),
        "events of a kind": lambda tx: tx.events(campaign, 5, kind="settled"),
        "decisions": lambda tx: tx.decisions(campaign, 5),
        "prunable": lambda tx: tx.pruning().prunable(campaign, 5, 10**6, 10),
        "slice": lambda tx: tx.rollups().slice_end(campaign, 5, 10**6, 10),
        "tail": lambda tx: tx.rollups().tail(campaign, Watermark(seq=5), 10**6),
        "latest decisions": lambda tx: tx.pages().decisions(campaign, 10),
        "held decisions": lambda tx: tx.pages().decisions(campaign, 10, DecisionFilter("held", 0), before=10**6),
        "operators": lambda tx: tx.pages().operator_events(campaign, 10, kinds=["active"]),
        "numbers": lambda tx: tx.pages().event_numbers(campaign, "active"),
        "summary by a mark": lambda tx: tx.pages().summaries([campaign], tx.now(), Watermark(last_overrun_event=5)),
        "events of a time": lambda tx: tx.pages().search().last_event_before(campaign, 2.0),
        "events of a decision": lambda tx: (
            tx.pages().search().events(DecisionRow("0" * 32, campaign, 0, Hold(1), "7", "", 1.0, 2.0))
        ),
    }


def scans(plan):
    """Every node of a plan that reads a table or an index."""
    if "Index Name" in plan or "Relation Name" in plan:
        yield plan
    for each in plan.get("Plans", ()):
        yield from scans(each)


def plans(tx, statement, values):
    """For these values, and for any."""
    from budgetbandits.service.stores.postgres_pipeline import numbered

    yield tx._connection.execute("EXPLAIN (FORMAT JSON) " + numbered(statement), values).fetchone()[0]
    tx._connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    tx._connection.execute("PREPARE asked AS " + numbered(statement))
    given = ", ".join(["%s"] * len(values))
    execute = f"EXPLAIN (FORMAT JSON) EXECUTE asked{f' ({given})' if values else ''}"
    from psycopg import ClientCursor

    yield ClientCursor(tx._connection).execute(execute, values).fetchone()[0]
    tx._connection.execute("DEALLOCATE asked")


def wrong(node):
    """What a scan of events or decisions does that others' rows are read by."""
    index, table = node.get("Index Name", ""), node.get("Relation Name", "")
    if not (index or table).startswith(("event", "decision")):
        return None
    if node["Node Type"].startswith("Bitmap"):
        return f"all of {index or table} before the first"
    condition = node.get("Index Cond", "")
    if index in ("event_campaign", "event_operators"):
        # of one campaign, and no further than a number
        return None if re.search(r"\bcampaign = ", condition) else condition or index
    if index in ("event_pkey", "event_expired", "event_lease", "decision_pkey"):
        return None if re.match(r"\(+(seq|decision|lease|id) = ", condition) else f"{index}: {condition}"
    return f"{node['Node Type']} of {table} by {index or 'nothing'}"


@pytest.mark.parametrize("analysed", ORDERS)
def test_postgres_reads_the_events_of_one_campaign_alone_whatever_it_has_counted(tmp_path, monkeypatch, analysed):
    import psycopg

    with STORES["postgres"](tmp_path) as opener, opener() as store:
        with psycopg.connect(opener.keywords["url"], autocommit=True) as connection:
            fill(connection, analysed)
            [campaign] = connection.execute("SELECT md5('7')").fetchone()
        name, asked, found = "", set(), []
        transaction = store.read(type)
        do = transaction._execute

        def explained(tx, statement, values=()):
            if re.search(r"\bevent\b", statement) and (name, statement) not in asked:
                asked.add((name, statement))
                for kind, plan in zip(("custom", "generic"), plans(tx, statement, values), strict=True):
                    nodes = plan if isinstance(plan, list) else json.loads(plan)
                    found.extend((name, kind, wrong(node)) for node in scans(nodes[0]["Plan"]) if wrong(node))
            return do(tx, statement, values)

        monkeypatch.setattr(transaction, "_execute", explained)
        for each, read in reads(campaign).items():
            name = each
            store.read(read)
        assert {name for name, _ in asked} == set(reads(campaign))
        assert found == []
