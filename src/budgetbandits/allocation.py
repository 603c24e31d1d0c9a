"""Allocation: spend a real budget with a policy, one `ask` and one `tell` at a time."""

from __future__ import annotations

import copy
import json
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from budgetbandits.allocation_table import allocation_table
from budgetbandits.errors import (
    BadParameter,
    BadState,
    BudgetExhausted,
    HoldRefused,
    MissingKnowledge,
    NoArmLeft,
    UnknownArm,
    UnknownPolicy,
)
from budgetbandits.learner import Learner
from budgetbandits.open_asks import Ask, OpenAsk, OpenAsks
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import Policy
from budgetbandits.policies.beliefs import posterior
from budgetbandits.policies.names import label
from budgetbandits.units import Units, checked_names, positive

VERSION = 1
ROUNDING = 1e-9
"""Of the budget: what is left by rounding alone is not money."""


class Allocation:
    """A budget, named arms in the user's own units, and a policy that decides.

    ``cost_max`` and ``reward_max`` are the largest cost and reward a single pull can have; they map the user's units
    to the policy's [0, 1]. ``history`` maps an arm to what is known of it from before, as (pulls, total reward, total
    cost). ``costs`` (a mapping by arm) and ``cost_floor`` are for policies that must know them, in the user's units.

    Several asks may be open at once and be told in any order. The pull that overdraws the budget ends the game: what
    it cost is in `spent`, its reward is not in `earned`, as in the paper, and so it is for all that are told later.

    Threads may share an allocation: each call is done as a whole before the next one begins.

    >>> from budgetbandits import BudgetedThompson
    >>> spend = Allocation(BudgetedThompson(), ["search", "social"], budget=20.0, cost_max=2.0, seed=1)
    >>> while not spend.exhausted:
    ...     spend.tell(spend.ask(), reward=1, cost=0.5)
    >>> spend.earned, spend.spent
    (40.0, 20.0)
    """

    def __init__(
        self,
        policy: Policy | str,
        arms: Sequence[str],
        budget: float,
        *,
        cost_max: float = 1.0,
        reward_max: float = 1.0,
        seed: int | None = None,
        history: Mapping[str, tuple[int, float, float]] | None = None,
        costs: Mapping[str, float] | None = None,
        cost_floor: float | None = None,
    ) -> None:
        policy = parse_policy(policy) if isinstance(policy, str) else policy
        self._lock = threading.RLock()
        self._budget = positive("budget", budget)
        self._units = Units(cost_max, reward_max)
        self._names = checked_names(arms)
        self._number = {name: i for i, name in enumerate(self._names)}
        self._spent = 0.0
        self._earned = 0.0
        self._asks = OpenAsks()
        self._told_arms = np.zeros(len(self._names), dtype=np.int64)
        known: dict[str, Any] = {"budget": self._budget / self._units.cost_max}
        if cost_floor is not None:
            known["cost_floor"] = self._units.cost_floor(cost_floor)
        if costs is not None:
            known["costs"] = [self._units.known_cost(name, costs) for name in self._names]
        self._learner = Learner.new(policy, len(self._names), known)
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise BadParameter(f"seed is {seed!r:.40}; use a whole number from 0 upwards, or None")
        self._rng = np.random.default_rng(seed)
        if history is not None and not isinstance(history, Mapping):
            raise BadParameter(f"history is {history!r:.40}; map each arm's name to (pulls, total reward, total cost)")
        for name, past in (history or {}).items():
            self._recall(name, past)

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
        return self._budget

    @property
    def spent(self) -> float:
        """All costs that were told."""
        return self._spent

    @property
    def held(self) -> float:
        """What open asks hold whose cost was not told yet."""
        with self._lock:
            return self._asks.held

    @property
    def left(self) -> float:
        """What is left of the budget beside what is held; never negative."""
        with self._lock:
            return max(self._budget - self._spent - self._asks.held, 0.0)

    @property
    def earned(self) -> float:
        """The rewards of the pulls whose cost still fitted the budget when it was told."""
        return self._earned

    @property
    def exhausted(self) -> bool:
        """Whether the budget is gone, or the policy stops because nothing it knows of is affordable any more."""
        with self._lock:
            return self._budget - self._spent <= self._nothing or not self._learner.goes_on

    @property
    def _nothing(self) -> float:
        """An amount that is no money, only rounding."""
        return ROUNDING * self._budget

    @property
    def pending(self) -> tuple[Ask, ...]:
        """The asks that were not told, or not in full, oldest first."""
        with self._lock:
            return tuple(Ask(self._names[ask.arm], number) for number, ask in self._asks.items())

    @property
    def pulls(self) -> dict[str, int]:
        """How often each arm was told in full, history not counted."""
        with self._lock:
            return dict(zip(self._names, self._told_arms.tolist(), strict=True))

    def __repr__(self) -> str:
        with self._lock:
            return (
                f"Allocation({self.policy.spec!r}, {len(self._names)} arms, spent {self._spent:g} of {self._budget:g}, "
                f"{len(self._asks)} open)"
            )

    def _repr_html_(self) -> str:
        with self._lock:
            table = allocation_table(
                self._names, self._told_arms, self.policy, self._learner.state, self._units
            )  # fmt: skip
            spent, held, left = (f"{amount:,.6g}" for amount in (self._spent, self._asks.held, self.left))
            title = f"{label(self.policy.spec)}: spent {spent} of {self._budget:,.6g}, held {held}, left {left}"
        return replace(table, title=title).to_html()

    # --- ask and tell --------------------------------------------------------------------------------------------

    def ask(self, hold: float | bool = False) -> Ask:
        """The arm to pull next.

        With ``hold`` an amount of money is set aside until the cost is told: True for ``cost_max``, the most that the
        pull can cost. Nobody else is given what is held; while every ask holds ``cost_max``, no budget is overdrawn.
        """
        with self._lock:
            amount = self._amount(hold)
            self._check_money(amount)
            arm = self._learner.choose(self._rng)
            if arm is None:
                raise BudgetExhausted(
                    f"{self.policy.name} stops with {self.left:g} left: it can afford no arm, or its horizon is over; "
                    "add to the budget with top_up() or start a new allocation"
                )
            return Ask(self._names[arm], self._asks.add(arm, amount))

    def tell(self, ask: str, reward: float | None = None, cost: float | None = None) -> None:
        """What the pull brought and cost, in the user's units; one now and the other later if need be.

        The cost is booked at once, also when the budget is gone by now. The policy learns when both are known. A plain
        arm name stands for its oldest open ask.
        """
        with self._lock:
            arm = self._arm(ask)
            if reward is None and cost is None:
                raise BadParameter(f"neither reward nor cost is given for arm {str(ask)!r}; tell at least one")
            number = self._asks.find(ask, arm, reward is not None, cost is not None)
            known, units = self._asks[number], self._units
            reward = known.reward if reward is None else units.reward(reward, ask)
            hold, counts, charge = known.hold, known.counts, 0.0
            if cost is None:
                cost = known.cost
            else:
                cost = charge = units.cost(cost, ask)
                hold, counts = 0.0, self._spent + charge <= self._budget + self._nothing
            if reward is None or cost is None:
                self._asks.put(number, OpenAsk(arm, hold, reward, cost, counts))
            else:
                self._learner.learn(arm, reward / units.reward_max, cost / units.cost_max, self._rng)
                self._asks.close(number)
                self._told_arms[arm] += 1
                if counts:
                    self._earned += reward
            self._spent += charge

    def forget(self, ask: str) -> None:
        """Close an ask that was never acted on; nothing is charged or learnt, and what it held is free."""
        with self._lock:
            self._asks.close(self._asks.find(ask, self._arm(ask), reward=True, cost=True))

    # --- changes on the way --------------------------------------------------------------------------------------

    def top_up(self, amount: float) -> None:
        """Add to the budget. A policy that planned with the old one is told the new one."""
        with self._lock:
            self._budget += positive("amount", amount)
            self._learner.new_budget(self._budget / self._units.cost_max)

    def add_arm(self, name: str, *, history: tuple[int, float, float] | None = None, cost: float | None = None) -> None:
        """A new arm, from the next ask on; ``cost`` is for policies that must know the costs."""
        with self._lock:
            checked_names([*self._names, name], fewest=1)
            known_cost = None
            if "costs" in self._learner.state.known:
                if cost is None:
                    raise MissingKnowledge(f"{self.policy.name} must know the cost of arm {name!r}; pass cost=...")
                known_cost = self._units.known_cost(name, {name: cost})
            past = None if history is None else self._units.past(name, history)
            self._number[name] = self._learner.add(known_cost)
            self._told_arms = np.append(self._told_arms, 0)
            self._names.append(name)
            if past is not None:
                self._learner.recall(self._number[name], *past)

    def retire(self, name: str) -> None:
        """Never choose this arm again; its open asks can still be told."""
        with self._lock:
            arm, active = self._arm(name), self._learner.state.active
            if active.sum() == 1 and active[arm]:
                raise NoArmLeft(f"{name!r} is the last arm; add another with add_arm() before retiring it")
            self._learner.retire(arm)

    # --- looking ---------------------------------------------------------------------------------------------------

    def plot(self, *, width: str | float = "page", dark: bool = False) -> Any:
        """A Matplotlib figure of what is believed of each arm, in the user's units: densities of its mean reward, its
        mean cost and their ratio; of more than twenty arms, of those pulled most.

        They are the posteriors that the policy keeps; for policies that keep sums, the posteriors that these make of
        uniform priors. ``width`` is "paper", "page", "phone" or inches.
        """
        from budgetbandits.drawing import posteriors, style  # Matplotlib is in the extra lab

        with self._lock:
            state = self._learner.state
            most_pulled = np.argsort(-np.where(state.active, state.pulls, -1), kind="stable")[: posteriors.SHOWN]
            shown = sorted(most_pulled[state.active[most_pulled]].tolist())
            of = {self._names[arm]: posterior(self.policy, state, arm) for arm in shown}
        return posteriors.densities(of, self._units.reward_max, self._units.cost_max, style.sheet(width, dark))

    # --- saving --------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything, as versioned JSON: `from_json` goes on bit for bit."""
        with self._lock:
            document = {
                "format": "budgetbandits-allocation",
                "version": VERSION,
                "policy": self.policy.spec,
                "arms": self._names,
                "budget": self._budget,
                "cost_max": self._units.cost_max,
                "reward_max": self._units.reward_max,
                "spent": self._spent,
                "earned": self._earned,
                "next_ask": self._asks.next_number,
                "open": self._asks.to_list(),
                "told": self._told_arms.tolist(),
                **self._learner.to_dict(),
                "generator": self._rng.bit_generator.state,
            }
            return json.dumps(_without_infinity(document), allow_nan=False)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: everything but the lock, as it was at one moment."""
        with self._lock:
            return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_lock"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    @classmethod
    def from_json(cls, text: str) -> Allocation:
        """An allocation as `to_json` left it."""
        try:
            document = _with_infinity(json.loads(text))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise BadState(f"not JSON: {error}; pass what to_json() returned, whole") from None
        if not isinstance(document, dict) or document.get("format") != "budgetbandits-allocation":
            raise BadState("this is not a saved allocation; pass what to_json() returned")
        if document.get("version") != VERSION:
            raise BadState(
                f"saved by format version {document.get('version')}, this package reads {VERSION}; "
                "restore it with the version of budgetbandits that wrote it"
            )
        try:
            return cls._restored(document)
        except BadState:
            raise
        except UnknownPolicy as error:
            raise BadState(f"{error}; load one of your own first: budgetbandits.plugins.load('mine.py')") from None
        except (KeyError, TypeError, IndexError, AttributeError, ValueError, OverflowError) as error:
            raise BadState(f"the saved allocation is damaged ({error!r}); restore an undamaged copy") from None

    @classmethod
    def _restored(cls, document: dict[str, Any]) -> Allocation:
        self = cls.__new__(cls)
        self._lock = threading.RLock()
        self._budget = positive("budget", document["budget"])
        self._units = Units(document["cost_max"], document["reward_max"])
        self._names = checked_names(document["arms"])
        self._number = {name: i for i, name in enumerate(self._names)}
        self._learner = Learner.from_dict(parse_policy(document["policy"]), len(self._names), document)
        self._spent = _not_negative(document, "spent")
        self._earned = _not_negative(document, "earned")
        self._asks = OpenAsks.from_list(document["open"], document["next_ask"], len(self._names), self._units)
        self._told_arms = np.array(document["told"], dtype=np.int64)
        if self._told_arms.shape != (len(self._names),) or (self._told_arms < 0).any():
            raise BadState("'told' is not one count for each arm; restore an undamaged copy")
        self._rng = np.random.default_rng()
        self._rng.bit_generator.state = document["generator"]
        return self

    # --- checks --------------------------------------------------------------------------------------------------

    def _arm(self, name: str) -> int:
        arm = self._number.get(name) if isinstance(name, str) else None
        if arm is None:
            shown = ", ".join(repr(known) for known in self._names[:8]) + (", …" if len(self._names) > 8 else "")
            raise UnknownArm(f"no arm {name!r}; the arms are {shown}: correct the name or add it with add_arm()")
        return arm

    def _amount(self, hold: float | bool) -> float:
        """The money that an ask is to hold."""
        if hold is False:
            return 0.0
        amount = self._units.cost_max if hold is True else positive("hold", hold)
        if amount > self._units.cost_max:
            raise BadParameter(f"hold is {amount:g}, above cost_max {self._units.cost_max:g}; hold that or less")
        return amount

    def _check_money(self, amount: float) -> None:
        """Refuse an ask that would hold this amount if it cannot be paid, now or at all."""
        unspent, held, nothing = self._budget - self._spent, self._asks.held, self._nothing
        if unspent <= nothing:
            raise BudgetExhausted(
                f"{self._spent:g} of the budget of {self._budget:g} is spent; add to it with top_up()"
            )
        if amount > unspent + nothing:
            raise BudgetExhausted(
                f"{unspent:g} left, {amount:g} to be held; hold less, or add to the budget with top_up()"
            )
        free = unspent - held
        if free <= nothing or amount > free + nothing:
            raise HoldRefused(
                "blocked_by_holds",
                f"open asks hold {held:g} of the {unspent:g} left; tell what one of them cost or forget() it, "
                "then ask again, or add to the budget with top_up()",
            )

    def _recall(self, name: str, past: tuple[int, float, float]) -> None:
        self._learner.recall(self._arm(name), *self._units.past(name, past))


def _not_negative(document: dict[str, Any], what: str) -> float:
    number = float(document[what])
    if not 0.0 <= number < math.inf:
        raise BadState(f"{what!r} is {number}; restore an undamaged copy")
    return number


_INFINITY = {"+inf": math.inf, "-inf": -math.inf}


def _without_infinity(value: Any) -> Any:
    """JSON has no infinity: it is written as the text "+inf" or "-inf", under a key that says so."""
    if isinstance(value, float) and math.isinf(value):
        return {"number": "+inf" if value > 0 else "-inf"}
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_infinity(item) for item in value]
    return value


def _with_infinity(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"number"}:
            return _INFINITY[str(value["number"])]
        return {key: _with_infinity(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_infinity(item) for item in value]
    return value
