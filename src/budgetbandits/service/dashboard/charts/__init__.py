"""The charts of a campaign's page: plain data in `timeline` and `shares`, SVG in `time_charts` and `cell_charts`.

`timeline` cuts the history into slots and knows budgets, plans and prices over time; `shares` stacks decisions and
spend by arm. `time_charts` draws charts with a time axis; `cell_charts` draws bars, spark lines and densities inside
tables. Colours are classes of the style sheet. Used by `campaign` and by the templates.
"""
