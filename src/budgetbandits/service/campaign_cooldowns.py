"""How a campaign's arms rest (`allocation.cooldowns`), in milliseconds since 1970, and what their rows keep of it."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from budgetbandits.allocation.cooldowns import Rests
from budgetbandits.allocation.learner import ArmMask

SECOND = 1000
"""Rests are counted in milliseconds."""


class Rest(NamedTuple):
    """How an arm stands, by its row: all its failures, those in a row since its last answer, since when it has been
    down and until when it rests, in seconds; None if it is not or does not."""

    failures: int
    in_a_row: int
    down_since: float | None
    until: float | None

    @classmethod
    def of(cls, learned: Mapping[str, Any], now: float) -> Rest:
        rests = Rests(1, SECOND)
        rests.take(0, learned.get("rest", {}))
        rest, resting = rests.arm_state(0), rests.resting(int(now * SECOND))
        down, until = rest["began"] / SECOND if rest["since"] else None, rest["until"] / SECOND
        return cls(rest["failures"], rest["row"], down, None if resting is None else until)


class CampaignRests:
    """The rests of so many arms; ``down`` are those that have failed so often in a row that they rest, and have not
    answered since."""

    def __init__(self, arms: int) -> None:
        self._rests = Rests(arms, SECOND)
        self.down: set[int] = set()

    def copy(self) -> CampaignRests:
        return copy.deepcopy(self)

    def add(self) -> None:
        """One more arm."""
        self._rests.add()

    def told(self, arm: int, something: bool, at: float, made_at: float) -> None:
        """There is an outcome of a decision that was made then, which brought or cost something, or neither."""
        self._rests.told(arm, something, math.ceil(at * SECOND), math.ceil(made_at * SECOND))
        self._note(arm)

    def failed(self, arm: int, at: float, made_at: float, answers: int) -> None:
        """There was no answer to a decision that was made then; so many of the arm's were answered so far."""
        self._rests.failed(arm, math.ceil(at * SECOND), math.ceil(made_at * SECOND), answers)
        self._note(arm)

    def decided(self, arm: int, at: float) -> bool:
        """A decision for this arm was made. Whether that began a further rest: see `Rests.asked`."""
        return arm in self.down and self._rests.asked(arm, math.ceil(at * SECOND))

    def row_of(self, arm: int) -> tuple[int, float]:
        """How often an arm that is down has failed in a row, and since when."""
        return int(self._rests.row[arm]), int(self._rests.began[arm]) / SECOND

    def offered(self, among: ArmMask, now: float) -> tuple[ArmMask, ArmMask | None]:
        """The arms among these that may be named now, and those of them that are down and rest, if any."""
        return self._rests.offered(among, int(now * SECOND))

    def set_back(self, now: float) -> list[int]:
        """After a clock that was ahead: see `Rests.set_back`. The arms that have changed."""
        return self._rests.set_back(math.ceil(now * SECOND))

    def arm_state(self, arm: int) -> dict[str, Any]:
        """What an arm's row says of it next to what was learned: all that is not 0."""
        known = {name: value for name, value in self._rests.arm_state(arm).items() if value}
        return {"rest": known} if known else {}

    def take(self, arm: int, learned: Mapping[str, Any]) -> None:
        """What an arm's row says."""
        self._rests.take(arm, learned.get("rest", {"idle": -1 if learned["pulls"] else 0}))
        self._note(arm)

    def _note(self, arm: int) -> None:
        (self.down.add if self._rests.since[arm] else self.down.discard)(arm)
