"""Where an allocation stands: what it knows of itself, how it shows itself, and how it is saved."""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from budgetbandits.allocation import substitutes
from budgetbandits.allocation.asks import Ask, OpenAsk, OpenAsks
from budgetbandits.allocation.cooldowns import Rests
from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.money import Money
from budgetbandits.allocation.observations import Observed
from budgetbandits.allocation.propensity import Propensities
from budgetbandits.allocation.saved import not_negative, read, wanted_of, written
from budgetbandits.allocation.segments import Segments
from budgetbandits.allocation.table import allocation_table
from budgetbandits.allocation.units import Units, checked_names
from budgetbandits.errors import BadParameter, BadState, UnknownArm, UnknownPolicy
from budgetbandits.policies import label, parse_policy
from budgetbandits.policies.base import Policy
from budgetbandits.policies.paced.statistics import PacedState
from budgetbandits.policies.posteriors import posterior
from budgetbandits.validation import positive


class Down(NamedTuple):
    """An arm that is down: how often it has failed in a row, which of the others has the best ratio, and how many times
    the price that one costs; None if nothing is known of it."""

    failures: int
    stand_in: str | None
    times: float | None


class AllocationState:
    """Everything that an `Allocation` remembers. Whoever looks at it or changes it holds the lock."""

    _lock: threading.RLock
    _money: Money
    _names: list[str]
    _number: dict[str, int]
    _units: Units
    _asks: OpenAsks
    _rests: Rests
    _learner: Learner
    _segments: Segments
    _observed: Observed
    _rng: np.random.Generator
    _propensities: Propensities

    # --- what it knows -------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        return self._learner.policy

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that may be chosen; retired ones are left out."""
        with self._lock:
            return tuple(name for name, active in zip(self._names, self._learner.state.active, strict=True) if active)

    @property
    def budget(self) -> float:
        return self._money.budget

    @property
    def spent(self) -> float:
        """All costs that were told."""
        return self._money.spent

    @property
    def held(self) -> float:
        """What open asks hold whose cost was not told yet."""
        with self._lock:
            return self._asks.held

    @property
    def left(self) -> float:
        """What is left of the budget beside what is held; never negative."""
        with self._lock:
            return self._money.left(self._asks.held)

    @property
    def overrun(self) -> float:
        """Of what is spent, that which pulls have cost above ``cost_max``: what no hold could have kept."""
        return self._money.overrun

    @property
    def earned(self) -> float:
        """The rewards of the pulls whose cost still fitted the budget when it was told."""
        return self._money.earned

    @property
    def exhausted(self) -> bool:
        """Whether the budget is gone, or less is unspent than an ask that holds what the last one did must hold for any
        of the arms, or the policy stops because nothing it knows of is affordable any more. Before the first ask, where
        holds or prices vary, and while others are open, `can_ask` says whether an ask can be made."""
        with self._lock:
            return self._money.ended(self._learner.state.active) or not self._learner.can_continue

    @property
    def pending(self) -> tuple[Ask, ...]:
        """The asks that were not told, or not in full, oldest first."""
        with self._lock:
            return tuple(self._named(number, ask) for number, ask in self._asks.items())

    @property
    def pulls(self) -> dict[str, int]:
        """How often each arm was told in full, history not counted."""
        with self._lock:
            return dict(zip(self._names, self._observed.pulls, strict=True))

    @property
    def failures(self) -> dict[str, int]:
        """How often each arm has failed."""
        with self._lock:
            return dict(zip(self._names, self._rests.failures.tolist(), strict=True))

    @property
    def resting(self) -> tuple[str, ...]:
        """The arms that are not asked for now if others can be: after several failures in a row, or because they
        neither bring nor cost anything."""
        with self._lock:
            resting = self._rests.resting(self._asks.next_number)
            return () if resting is None else tuple(np.array(self._names, dtype=object)[resting].tolist())

    @property
    def down(self) -> dict[str, Down]:
        """The arms that have failed so often in a row that they rest, and have not answered since; and who answers in
        their place at what price (`stand_in`)."""
        with self._lock:
            state, down = self._learner.state, self._rests.since > 0
            found = {}
            for arm in np.flatnonzero(down & state.active).tolist():
                other, times = substitutes.likely(self.policy, state, arm, state.active & ~down) or (None, None)
                name = None if other is None else self._names[other]
                found[self._names[arm]] = Down(int(self._rests.row[arm]), name, times)
            return found

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments that requests have named, in the order in which they first came."""
        with self._lock:
            return tuple(name for name in self._segments if name is not None)

    def __repr__(self) -> str:
        with self._lock:
            return (
                f"Allocation({self.policy.spec!r}, {len(self._names)} arms, spent {self._money.spent:g} of "
                f"{self._money.budget:g}, {len(self._asks)} open)"
            )

    def _repr_html_(self) -> str:
        with self._lock:
            table = allocation_table(
                self._names, self._observed, self.policy, self._learner.state, self._units, self._rests.since > 0
            )  # fmt: skip
            spent, held, left = (f"{amount:,.6g}" for amount in (self._money.spent, self._asks.held, self.left))
            title = f"{label(self.policy.spec)}: spent {spent} of {self._money.budget:,.6g}, held {held}, left {left}"
        return replace(table, title=title).to_html()

    def _named(self, number: int, ask: OpenAsk) -> Ask:
        """An open ask as it is handed out."""
        if ask.could is None:
            return Ask(number, self._names[ask.arm])
        return Ask(number, self._names[ask.arm], ask.propensity, tuple(self._names[arm] for arm in ask.could))

    def _update_plan_inputs(self) -> None:
        """A policy that plans with money and requests plans without what is gone and was not learned from: that of
        failures and overruns, and of asks whose cost is told and whose reward is not. To others the budget is a
        constant."""
        if not self.policy.needs:
            return
        asks, cost = self._asks.paid
        plans = isinstance(self._learner.state, PacedState)
        self._learner.set_budget((self._money.planned(cost) if plans else self._money.budget) / self._units.cost_max)
        self._learner.set_unlearned_requests(int(self._rests.failures.sum()) + asks)

    def _arm(self, name: str) -> int:
        arm = self._number.get(name) if isinstance(name, str) else None
        if arm is None:
            shown = ", ".join(repr(known) for known in self._names[:8]) + (", …" if len(self._names) > 8 else "")
            raise UnknownArm(f"no arm {name!r}; the arms are {shown}: correct the name or add it with add_arm()")
        return arm

    # --- looking ---------------------------------------------------------------------------------------------------

    def plot(self, *, width: str | float = "page", dark: bool = False) -> Any:
        """A Matplotlib figure of what is believed of each arm, in the user's units: densities of its mean reward, its
        mean cost and their ratio; of more than twenty arms, of those pulled most.

        They are the posteriors that the policy keeps; for policies that keep sums, the posteriors that these make of
        uniform priors. ``width`` is "paper", "page", "phone" or inches.
        """
        from budgetbandits.figures import (
            posteriors,
            style,  # Matplotlib is in the extra lab
        )

        with self._lock:
            state = self._learner.state
            most_pulled = np.argsort(-np.where(state.active, state.pulls, -1), kind="stable")[: posteriors.SHOWN]
            shown = sorted(most_pulled[state.active[most_pulled]].tolist())
            of = {self._names[arm]: posterior(self.policy, state, arm) for arm in shown}
            costs = [self._units.scale(name) for name in of]
        return posteriors.densities(of, self._units.reward_max, costs, style.sheet(width, dark))

    # --- saving --------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything, as versioned JSON: `from_json` goes on bit for bit."""
        with self._lock:
            document = {
                "policy": self.policy.spec,
                "arms": self._names,
                "budget": self._money.budget,
                "cost_max": self._units.cost_max if self._units.caps is None else dict(self._units.caps),
                "reward_max": self._units.reward_max,
                "spent": self._money.spent,
                "earned": self._money.earned,
                "next_ask": self._asks.next_number,
                "open": self._asks.to_list(),
                "told": self._observed.to_list(),
                "rests": self._rests.to_dict(),
                "segments": list(self._segments),
                "failed_cost": self._money.failed,
                "overrun": self._money.overrun,
                "wanted": self._money.wanted,
                "propensities": vars(self._propensities),
                **self._learner.to_dict(),
                "generator": self._rng.bit_generator.state,
            }
            return written(document)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: everything but the lock, as it was at one moment."""
        with self._lock:
            return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_lock"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """An allocation as `to_json` left it."""
        document = read(text)
        try:
            return cls._restored(document)
        except BadState:
            raise
        except UnknownPolicy as error:
            raise BadState(f"{error}; load one of your own first: budgetbandits.plugins.load('mine.py')") from None
        except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
            raise BadState(f"the saved allocation is damaged ({error!r}); restore an undamaged copy") from None

    @classmethod
    def _restored(cls, document: dict[str, Any]) -> Self:
        self = cls.__new__(cls)
        self._lock = threading.RLock()
        budget = positive("budget", document["budget"])
        self._names = checked_names(document["arms"])
        policy = parse_policy(document["policy"])
        self._units = Units.of(document["cost_max"], document["reward_max"], self._names, policy.own_scales)
        self._number = {name: i for i, name in enumerate(self._names)}
        self._learner = Learner.from_dict(policy, len(self._names), document)
        self._propensities = Propensities(**document["propensities"])
        spent, earned, failed, overrun = (
            not_negative(document, name) for name in ("spent", "earned", "failed_cost", "overrun")
        )
        self._money = Money(budget, spent, earned, failed, overrun, wanted_of(document["wanted"], len(self._names)))
        self._segments = Segments(document["segments"])
        self._rests = Rests.from_dict(document["rests"], len(self._names))
        self._asks = OpenAsks.from_list(document["open"], document["next_ask"], len(self._names), self._units)
        self._update_plan_inputs()
        if any(ask.segment >= max(len(self._segments), 1) for _, ask in self._asks.items()):
            raise BadState("an open ask is of a segment that is not there; restore an undamaged copy")
        self._observed = Observed.from_list(document["told"], len(self._names))
        self._rng = np.random.default_rng()
        self._rng.bit_generator.state = document["generator"]
        return self


def planned_requests(policy: Policy, horizon: float) -> float:
    """A number of requests for a policy that plans with it; an error for one that does not."""
    if "horizon" not in policy.needs:
        raise BadParameter(
            f"{policy.spec} does not plan with a number of requests; leave out horizon, or use bts-paced"
        )
    return positive("horizon", horizon)
