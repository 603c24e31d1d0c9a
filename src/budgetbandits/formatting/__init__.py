"""Text for people: every number, amount, date and table of pages, reports and the command line is written here.

`numbers` has numbers, counts and names; `money` amounts with the decimals that they need; `datetimes` moments and
durations; `tables` small tables as HTML, Markdown and LaTeX, and CSV cells that are never read as formulas.

Read `numbers` first. Imports only the errors, and everything may use it.
"""
