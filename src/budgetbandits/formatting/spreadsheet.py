"""Texts in the cells of CSV files that people open with spreadsheets, which compute what looks like a formula."""

from __future__ import annotations

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that a spreadsheet would compute."""


def defused(text: str) -> str:
    """A cell that no spreadsheet takes for a formula, since names and keys come from anywhere: with a ' before it. So
    has a text that begins with ' itself, or nobody could tell the two apart.

    >>> defused("-50% off"), defused("'n sync"), defused("search")
    ("'-50% off", "''n sync", 'search')
    """
    return f"'{text}" if text.startswith((*FORMULA, "'")) else text


def plain(cell: str) -> str:
    """The text of which `defused` has made this cell. A ' before anything else is the text's own.

    >>> plain("'-50% off"), plain("''n sync"), plain("'tis")
    ('-50% off', "'n sync", "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith((*FORMULA, "'")) else cell
