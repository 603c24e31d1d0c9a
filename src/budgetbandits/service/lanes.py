"""Lanes: what takes long for one campaign is done in turns, so that others have theirs in between.

A slice of a batch and a decision whose choice is made ahead (`choices_ahead`) each take their campaign's turn. So a
server has one of them under way for each campaign, however many clients ask, and between two of them it serves others.
While a turn lasts, what else is asked of the campaign waits for it, too: feedback would change what the choice
follows from, and it would be made in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lane:
    """The turn of a campaign, and how many have it or wait for it."""

    def __init__(self) -> None:
        self.turn, self.users = asyncio.Lock(), 0


class Lanes:
    """The lanes of campaigns for which something is being done, by their ids."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}

    def __contains__(self, campaign: str) -> bool:
        return campaign in self._lanes

    @asynccontextmanager
    async def turn(self, campaign: str) -> AsyncIterator[None]:
        """The campaign's turn, for the duration of the block; first come, first served."""
        lane = self._lanes.setdefault(campaign, Lane())
        lane.users += 1
        try:
            async with lane.turn:
                yield
        finally:
            lane.users -= 1
            if not lane.users:
                del self._lanes[campaign]
