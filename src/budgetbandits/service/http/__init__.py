"""The decision service over HTTP.

Read `app` first: it puts the routes together. `worker_routes` has the parts of a running server (`ServerState`) and the
hot routes (decisions, feedback, health), which are served at once; `operator_app` is imported once the server is ready:
the dashboard, `operator_routes` (campaigns, exports, metrics) and `shared_budget_routes`. `schemas` are the bodies,
`problem_json` the errors, `openapi` the document and its page, `tracing` the spans for OpenTelemetry, `auth` the keys,
`rate_limit` guards against guessed keys, `request_checks` and `connections` refuse early what is too large or too slow,
`subprocess_reads` runs audits and exports, `metrics` counts and `campaign_metrics` reads what Prometheus asks for,
`server` runs it all, and `workers` several processes of it. From outside use `app.create_app`, `server.serve` and the
functions of `auth` that make and drop keys.
"""
