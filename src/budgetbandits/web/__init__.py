"""Everything that the dashboard, the reports and the viewer share as web pages.

`assets` holds every colour of pages and figures, the style sheets, the script of live pages and the templates;
`servers` the listening socket of a server and the server-sent events that keep pages up to date; `view_cache` the
caches that bound how often a page is drawn.

Read `assets` first. Imports only errors, so the service can use it without the laboratory.
"""
