"""Tags: which change of a campaign a server knows of, and which arms have changed since."""

from __future__ import annotations

from budgetbandits.service.stores.records import Campaign

TAGS = 8
"""How many of its latest changes a campaign keeps, each as a tag and the arms that changed. A server whose tag is among
them reads only those arms ..."""

NAMED_ARMS = 16
"""... unless it was more than this many at once."""


def newest_tag(row: Campaign) -> str:
    """The tag of the campaign's latest change."""
    return str(row.learned["changes"][0][0])


def changed_since(row: Campaign, tag: str) -> list[int] | None:
    """The arms that have changed since the campaign had this tag, in order; None if any may have."""
    changed: set[int] = set()
    for newer, arms in row.learned["changes"]:
        if newer == tag:
            return sorted(changed)
        if arms is None:
            return None
        changed.update(arms)
    return None
