"""The decision service over HTTP.

Read `serve` first: it has the table of routes, checks each request and calls the function of its row. `route` says what
a row is; the rows stand next to their functions in `worker_routes` (decisions, feedback, health), `operator_routes`
(campaigns, exports, keys) and `shared_budget_routes`. `app` puts the table and the pages together. `schemas` are the
bodies, `problem_json` the errors, `document` the OpenAPI document and its page, both read off the table, `tracing` the
spans for OpenTelemetry, `auth` the keys, `rate_limit` guards against guessed keys, `request_checks` and `connections`
refuse early what is too large or too slow, `subprocess_reads` runs audits and exports, `metrics` counts and
`campaign_metrics` reads what Prometheus asks for, `server` runs it all, and `workers` several processes of it. From
outside use `app.create_app`, `server.serve` and the functions of `auth` that make and drop keys.
"""
