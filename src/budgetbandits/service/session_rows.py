"""The rows of a campaign's session: what it has learned, written to the store and read again.

A policy's state has arrays that run over the arms and a few single values. The arms' parts are kept with the arms, the
rest with the campaign, so that learning from one pull writes one row however many arms there are.

Each change of a campaign gets a tag. The campaign's row has the tags of its latest changes and the arms that each of
them changed, so that a server that is behind reads those arms alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from budgetbandits.allocation.cooldowns import Cooldowns
from budgetbandits.allocation.session import Segments
from budgetbandits.errors import BadState, BudgetBanditsError, Conflict
from budgetbandits.service.campaign_session import TICKS, CampaignSession
from budgetbandits.service.own_policies import policy_of
from budgetbandits.service.stores.records import ArmRow, Campaign

CHANGES_KEPT = 8
"""The number of its latest changes that a campaign's row keeps."""

CHANGED_ARMS_MAX = 16
"""Arms that a kept change lists. Where more have changed, a server that is behind reads all of them."""


def read_session(row: Campaign, arms: Sequence[ArmRow]) -> CampaignSession:
    """The session that `campaign_row` and `arm_row` have written."""
    caps = [arm.cost_cap for arm in arms]
    try:
        session = CampaignSession.new(policy_of(row), [arm.name for arm in arms], caps, row.settings)
    except Conflict:  # the code of its policy is not here
        raise
    except BudgetBanditsError as error:  # nobody can have created it so
        raise _damaged(row, error) from None
    _load(session, row, arms)
    return session


def catch_up(session: CampaignSession, row: Campaign, arms: Sequence[ArmRow]) -> None:
    """Go on to the campaign's present row, where other servers have changed these arms."""
    for arm in arms:
        if arm.number == len(session.names):
            session.add(arm.name, arm.cost_cap)
    session.set_terms(row.settings)
    _load(session, row, arms)


def _load(session: CampaignSession, row: Campaign, arms: Sequence[ArmRow]) -> None:
    try:
        session.learner.load_state(row.learned["single"], {arm.number: arm.learned for arm in arms})
    except BadState as error:
        raise _damaged(row, error) from None
    session.segments = Segments(row.learned.get("segments", ()))
    for arm in arms:
        session.cooldowns.load_arm(arm.number, arm.learned.get("cooldown", {}))
        if session.sums is not None:
            session.sums.load_state(arm.number, arm.learned)
    session.set_budget(row.account.budget)
    session.tag = row.tag


def _damaged(row: Campaign, error: BudgetBanditsError) -> BadState:
    return BadState(
        f"campaign {row.name!r}: {error}; 'budgetbandits campaign verify' says where, restore an undamaged copy"
    )


def campaign_row(session: CampaignSession, row: Campaign, arms: Sequence[int] | None = ()) -> Campaign:
    """The campaign's row with what is known now, where these arms have changed, or, if it is None, everything.

    The session gets a new tag: a change undone never passes for one that was made.
    """
    session.tag = os.urandom(6).hex()
    few = arms is not None and len(arms) <= CHANGED_ARMS_MAX
    change = [session.tag, [int(arm) for arm in arms or ()] if few else None]
    changes = [change, *row.learned.get("changes", ())][:CHANGES_KEPT]
    learned = {"changes": changes, "single": session.learner.shared_state()}
    if session.segments:
        learned["segments"] = list(session.segments)
    if session.cooldowns.down:
        learned["down"] = [{"arm": name, **down._asdict()} for name, down in session.arms_down().items()]
    return row.with_learned(learned)


def arm_row(session: CampaignSession, campaign: Campaign, arm: int) -> ArmRow:
    """The row of one arm."""
    cap, active = int(session.caps[arm]), bool(session.state.active[arm])
    return ArmRow(campaign.id, arm, session.names[arm], cap, arm_state(session, arm), active)


def arm_state(session: CampaignSession, arm: int) -> dict[str, Any]:
    """All that is known of one arm, for its row."""
    learned = session.learner.arm_state(arm)
    if session.sums is not None:
        learned |= session.sums.arm_state(arm)
    cooldown = session.cooldowns.arm_state(arm)
    return learned | {"cooldown": cooldown} if cooldown else learned


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


class ArmStatus(NamedTuple):
    """How an arm stands, by its row. Times are in seconds.

    failures    all its failures
    in_a_row    failures since its last answer
    down_since  since when it has been down; None if it is not
    until       until when it cools down; None if it does not
    """

    failures: int
    in_a_row: int
    down_since: float | None
    until: float | None

    @classmethod
    def from_row(cls, learned: Mapping[str, Any], now: float) -> ArmStatus:
        """The status of the arm whose row says that this was learned."""
        cooldowns = Cooldowns(1, TICKS)
        cooldowns.load_arm(0, learned.get("cooldown", {}))
        seen = cooldowns.arms[0]
        return cls(
            seen.failures, seen.row, seen.began / TICKS if cooldowns.down else None,
            None if cooldowns.cooling(now) is None else seen.until / TICKS,
        )  # fmt: skip
