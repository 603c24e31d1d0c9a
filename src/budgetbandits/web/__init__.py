"""Everything that the dashboard, the reports and the viewer share as web pages.

`palette` holds every colour of pages and figures; `assets` the style sheets, the script of live pages and the template
environment; `streams` the server-sent events that keep pages up to date; `view_cache` the caches that bound how often
a page is drawn; `sockets` the listening socket of a server.

Read `palette` first. Imports only errors, so the service can use it without the laboratory.
"""
