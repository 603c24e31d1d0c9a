"""Which changes of a campaign and its arms can be made: asked before a change is made, and by whoever offers one."""

from __future__ import annotations

from collections.abc import Sequence

from budgetbandits.errors import BadParameter, Conflict, NoArmLeft, TooManySegments, UnknownArm
from budgetbandits.service import campaign_learner, ledger
from budgetbandits.service.stores.records import Campaign

COMING_AND_GOING = ("arm added", "arm retired", "arm brought back")
"""The events after which there are other arms to choose from."""


def check_not_closed(row: Campaign) -> None:
    if row.account.status == "closed":
        raise Conflict(f"campaign {row.name!r} is closed for good; create a new one")


def check_new_arm(row: Campaign, names: Sequence[str], name: str, cap: int) -> None:
    """Refuse an arm of this name and cap, in micros, beside those there are."""
    if name in names:
        raise Conflict(f"there is an arm {name!r:.60} already; give this one another name")
    most = row.settings["cost_max"]
    if cap > most:
        asked, allowed = ledger.in_words(row.account, cap, most)
        raise BadParameter(f"{name!r:.60} may cost {asked}, the campaign's most is {allowed}; lower it")
    if "costs" in row.settings.get("known", ()):
        raise BadParameter(f"{row.policy} knows all costs beforehand; create a new campaign with the new arm")
    number, segments, most = len(names) + 1, len(row.learned.get("segments", ())), campaign_learner.MOST_CELLS
    if number * segments > most:
        raise TooManySegments(
            f"arm {name!r:.60} would be number {number:,}, with {segments} segments; arms times segments are {most:,} "
            "at most: create a new campaign that names fewer kinds"
        )


def arm_to_retire(names: Sequence[str], active: Sequence[bool], name: str) -> int:
    """The place of an arm that can be retired."""
    arm = _place(names, name)
    if not active[arm]:
        raise Conflict(f"arm {name!r:.60} is retired already; there is nothing to retire")
    if sum(active) == 1:
        raise NoArmLeft(f"{name!r:.60} is the last arm; add another before retiring it")
    return arm


def arm_to_bring_back(names: Sequence[str], active: Sequence[bool], name: str) -> int:
    """The place of an arm that is retired."""
    arm = _place(names, name)
    if active[arm]:
        raise Conflict(f"arm {name!r:.60} is not retired; there is nothing to bring back")
    return arm


def _place(names: Sequence[str], name: str) -> int:
    if name not in names:
        more = ", ..." if len(names) > 8 else ""
        raise UnknownArm(f"no arm {name!r:.60}; the arms are {', '.join(names[:8])}{more}")
    return names.index(name)
