"""Lists of names as callers give them: to an allocation, to the client and to the service."""

from __future__ import annotations

from collections.abc import Iterable

from budgetbandits.errors import BadParameter


def listed(what: str, names: Iterable[str]) -> list[str]:
    """The names as a list; whether each is one is for whoever looks it up.

    >>> listed("arms", ("search", "mail"))
    ['search', 'mail']
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise BadParameter(f"{what} is {names!r:.60}; pass a list of names; put a single name into a list")
    return list(names)


def listed_texts(what: str, names: Iterable[str]) -> list[str]:
    """The same for who sends them on or keeps them, and takes nothing but text."""
    texts = listed(what, names)
    for name in texts:
        if not isinstance(name, str):
            raise BadParameter(f"{what} has {name!r:.60}, which is no name; pass a list of names")
    return texts
