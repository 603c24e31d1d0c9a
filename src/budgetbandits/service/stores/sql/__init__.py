"""The SQL that SQLite and PostgreSQL share.

`rows` lists the columns of each record and converts rows; `statements` says how a transaction runs SQL and how it asks
for the events of one campaign. `core` has the statements of campaigns, arms, decisions, leases, events and keys,
`shared_budgets` those of budgets over several campaigns, `dashboard` those of pages, `rollups` the sums over events. A
store supplies a `core.SqlTransaction` that runs them; nothing here is used from outside but the types of results.
"""
