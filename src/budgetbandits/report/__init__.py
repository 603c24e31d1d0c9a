"""Reports of studies: one self-contained HTML page each, with its figures and tables next to it as files.

`page` writes a report; `study`, `paper` and `leaderboard` collect what the three kinds of page show. `summary` says in
three sentences what was found, `tables` holds the tables, `figures` draws every figure for two widths. `viewer/` serves
the studies of a folder, running ones too.

Read `page` first. Used from outside: `page.write_report`, `leaderboard.write_page`, and `viewer` by the command line.
"""
