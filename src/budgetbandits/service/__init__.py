"""The decision service: spend a real budget from many workers, durably, and never a cent too much.

Read `service` first, then `decisions` and `ledger`. A decision goes from `decisions` to the `funds` that pay for it, to
the `campaign_session` that chooses, the `ledger` that holds the money, and the store.

campaigns, campaign_checks   for operators: create, change, look at; what can be created and changed
decisions, feedback          for workers: ask; report, void
work                         how large a choice may be
scheduler, lanes             tasks in an event loop, in turns, so that no campaign keeps the others waiting
choices_ahead, choice_processes, choice_process   choices that take long, made by another process
expiry                       holds without feedback in time
request, names               the request of a decision, rules for names
funds, ledger, leases        whose money, the rules of money, money lent to a server
shared_budgets               one budget over several campaigns
campaign_session, session_cache, session_rows   what a campaign has learned: at work, in memory, in rows
randomness                   the same draws for a replay
standing, projection         how campaigns do, and when their money runs out
reading                      decisions and events, page by page
webhooks, deliveries         changes of standing and overruns, reported to addresses
rollups, segment_sums        a campaign's events by minute, hour and day; rewards and costs by segment: for pages
audit, stores, http, dashboard   replay and export; databases; the API; the operators' pages
"""
