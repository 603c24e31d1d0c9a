"""The dashboard: the service's web pages for operators. Extra ``service``.

One module per page: `overview` (the list of campaigns), `campaign` (all that a campaign's page and the one of its
events show, and their JSON), `decision` (one decision, and the search for it), `connect` (lines for programs), `keys`,
`webhooks`, `shared_budgets` and `new_campaign`; `actions/` is everything that an operator does to a campaign.
`pages` holds the routes, the sign-in and the live streams that all pages go through; `rendering` the templates, assets
and responses.

A campaign's page is made of its `standing` and `projection`, which are the service's, `arms` and `beliefs` (what
feedback says of each arm), `requests` and `charts/`. `query` reads and writes addresses, `sessions` knows who is
signed in.

Read `campaign` first, then `pages`. Outside this package only `service.http` uses it.
"""
