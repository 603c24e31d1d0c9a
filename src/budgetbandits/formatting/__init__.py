"""Text for people: numbers, money, dates and times, small tables, cells of a spreadsheet.

Start with `numbers`. Imports nothing of the package but the errors.
"""
