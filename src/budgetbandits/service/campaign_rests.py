"""How a campaign's arms rest, in seconds since 1970, and what of it the arms' rows keep (`budgetbandits.rests`)."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

from budgetbandits.learner import Among
from budgetbandits.rests import LONGEST, Rests


class CampaignRests:
    """The rests of so many arms.

    usual  arms that have brought or cost something and never failed: there is nothing to say of their rests
    """

    def __init__(self, arms: int) -> None:
        self._rests = Rests(arms)
        self.usual: set[int] = set()

    @property
    def latest(self) -> int:
        """From this moment on nobody rests."""
        return self._rests.latest

    @property
    def failures(self) -> int:
        """How many there were, of all arms."""
        return int(self._rests.failures.sum())

    def copy(self) -> CampaignRests:
        return copy.deepcopy(self)

    def add(self) -> None:
        """One more arm."""
        self._rests.add()

    def told(self, arm: int, something: bool, at: float) -> None:
        """An outcome was told, which brought or cost something, or neither."""
        self._rests.told(arm, something, math.ceil(at))
        self._note(arm)

    def failed(self, arm: int, at: float, made_at: float) -> None:
        """There was no answer to a decision that was made then: the arm rests.

        Rests are in whole seconds: a decision of the second in which a rest began was made before it.
        """
        self._rests.failed(arm, math.ceil(at), math.ceil(made_at) - 1)
        self._note(arm)

    def awake(self, among: Among, now: float) -> Among:
        """Those of these arms that do not rest; all if all do."""
        awake = None if now >= self._rests.latest else self._rests.awake(int(now))
        if awake is None:
            return among
        both = among & awake
        return both if both.any() else among

    def set_back(self, now: float) -> list[int]:
        """After a clock that was ahead: no arm rests longer than one that fails again and again. The arms that did."""
        latest = math.ceil(now) + LONGEST
        arms = self._rests.beyond(latest)
        self._rests.wake(latest)
        return arms

    def of_arm(self, arm: int) -> dict[str, Any]:
        """What an arm's row says of it beside what was learned: nothing, if its pulls tell all."""
        rests = self._rests
        if arm in self.usual or (not rests.failures[arm] and rests.idle[arm] == 0):
            return {}
        return {"rest": rests.of_arm(arm)}

    def take(self, arm: int, learned: Mapping[str, Any]) -> None:
        """What an arm's row says."""
        new = {"row": 0, "until": 0, "idle": -1 if learned["pulls"] else 0, "failures": 0}
        self._rests.take(arm, learned.get("rest", new))
        self._note(arm)

    def _note(self, arm: int) -> None:
        usual = self._rests.idle[arm] < 0 and not self._rests.failures[arm]
        (self.usual.add if usual else self.usual.discard)(arm)
