"""The viewer: studies and their reports in a browser, those that are still running too.

`folder` finds studies and pages below a folder; `pages` answers requests; `server` is the HTTP server on this machine.
Nothing is written into the folder. Used by `budgetbandits view`.
"""
