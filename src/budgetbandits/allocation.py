"""Allocation: spend a real budget with a policy, one `ask` and one `tell` at a time."""

from __future__ import annotations

import copy
import json
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from budgetbandits.allocation_table import allocation_table
from budgetbandits.arrays import Array
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
from budgetbandits.holding import amounts_to_hold, estimated
from budgetbandits.learner import Among, Learner
from budgetbandits.open_asks import Ask, OpenAsk, OpenAsks
from budgetbandits.policies import parse_policy
from budgetbandits.policies.base import PLAIN, Policy, Request
from budgetbandits.policies.beliefs import posterior
from budgetbandits.policies.names import label
from budgetbandits.propensity import propensity
from budgetbandits.rests import Rests
from budgetbandits.units import Units, caps_of, checked_names, positive

VERSION = 1
ROUNDING = 1e-9
"""Of the budget: what is left by rounding alone is not money."""


class Allocation:
    """A budget, named arms in the user's own units, and a policy that decides.

    ``cost_max`` and ``reward_max`` are the largest cost and reward a single pull can have; they map the user's units
    to the policy's [0, 1]. ``cost_max`` may map each arm to its own, where prices are far apart: then an arm's costs
    are learned on its own scale, by policies that can. ``horizon`` is how many requests the budget is for. ``history``
    maps an arm to what is known of it from before, as (pulls, total reward, total cost). ``costs`` (a mapping by arm)
    and ``cost_floor`` are for policies that must know them, in the user's units. With ``propensity_draws`` each ask
    says how likely it was, from so many further choices, for `off_policy`; no choice is changed by it.

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
        cost_max: float | Mapping[str, float] = 1.0,
        reward_max: float = 1.0,
        seed: int | None = None,
        history: Mapping[str, tuple[int, float, float]] | None = None,
        costs: Mapping[str, float] | None = None,
        cost_floor: float | None = None,
        horizon: float | None = None,
        propensity_draws: int = 0,
    ) -> None:
        policy = parse_policy(policy) if isinstance(policy, str) else policy
        self._lock = threading.RLock()
        self._budget = positive("budget", budget)
        self._names = checked_names(arms)
        self._units = Units(*_by_units(cost_max, reward_max, self._names, policy))
        self._number = {name: i for i, name in enumerate(self._names)}
        self._spent = 0.0
        self._earned = 0.0
        self._asks = OpenAsks()
        self._told_arms = np.zeros(len(self._names), dtype=np.int64)
        self._rests = Rests(len(self._names))
        self._segments: dict[str | None, int] = {}
        self._failed_cost = 0.0
        known: dict[str, Any] = {"budget": self._budget / self._units.cost_max}
        if cost_floor is not None:
            known["cost_floor"] = self._units.cost_floor(cost_floor)
        if costs is not None:
            known["costs"] = [self._units.known_cost(name, costs) for name in self._names]
        if horizon is not None:
            known["horizon"] = positive("horizon", horizon)
        scales = self._units.scales(self._names)
        self._learner = Learner.new(
            policy, len(self._names), known, scales=None if scales is None else np.array(scales)
        )
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise BadParameter(f"seed is {seed!r:.40}; use a whole number from 0 upwards, or None")
        self._rng = np.random.default_rng(seed)
        self._draws = _checked_draws(propensity_draws)
        self._draws_seed = int(np.random.SeedSequence(seed).generate_state(1)[0])
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
            return tuple(Ask(self._names[ask.arm], number, ask.propensity) for number, ask in self._asks.items())

    @property
    def pulls(self) -> dict[str, int]:
        """How often each arm was told in full, history not counted."""
        with self._lock:
            return dict(zip(self._names, self._told_arms.tolist(), strict=True))

    @property
    def failures(self) -> dict[str, int]:
        """How often each arm has failed."""
        with self._lock:
            return dict(zip(self._names, self._rests.failures.tolist(), strict=True))

    @property
    def resting(self) -> tuple[str, ...]:
        """The arms that are not asked for now: after failures, or because they neither bring nor cost anything."""
        with self._lock:
            awake = self._rests.awake(self._asks.next_number)
            return () if awake is None else tuple(np.array(self._names, dtype=object)[~awake].tolist())

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments that requests have named, in the order in which they first came."""
        with self._lock:
            return tuple(name for name in self._segments if name is not None)

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

    def ask(
        self,
        hold: float | bool = False,
        *,
        segment: str | None = None,
        arms: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        prices: Mapping[str, float] | None = None,
        holds: Mapping[str, float] | None = None,
    ) -> Ask:
        """The arm to pull next.

        With ``hold`` an amount of money is set aside until the cost is told: True for the most that the pull can cost,
        or for its price with a margin if there is one. Nobody else is given what is held; while every ask holds what
        the pull can cost at most, no budget is overdrawn. ``holds`` says what to hold for each arm.

        ``arms`` and ``exclude`` say which arms may answer this request. ``segment`` names the kind of the request, and
        ``prices`` what each of those arms is estimated to cost this time, for policies that look at requests.
        """
        with self._lock:
            among = self._among(arms, exclude)
            request, estimates = self._request(segment, prices, among)
            amounts = amounts_to_hold(hold, holds, estimates, self._names, self._units)
            among = self._paid_for(among, amounts)
            arm = self._learner.choose(self._rng, among, request)
            if arm is None:
                raise BudgetExhausted(
                    f"{self.policy.name} stops with {self.left:g} left: it can afford no arm, or its horizon is over; "
                    "add to the budget with top_up() or start a new allocation"
                )
            amount = amounts if isinstance(amounts, float) else float(amounts[arm])
            price = None if estimates is None else float(estimates[arm])
            chance = self._propensity(arm, among, request)
            ask = OpenAsk(arm, amount, segment=request.segment, price=price, propensity=chance)
            return Ask(self._names[arm], self._asks.add(ask), chance)

    def _propensity(self, arm: int, among: Among, request: Request) -> float | None:
        """By draws from a generator of its own for each ask, so that there is nothing to save."""
        if not self._draws:
            return None
        rng = np.random.default_rng([self._draws_seed, self._asks.next_number])
        return propensity(self._learner, arm, rng, self._draws, among, request)

    def tell(self, ask: str, reward: float | None = None, cost: float | None = None, *, failed: bool = False) -> None:
        """What the pull brought and cost, in the user's units; one now and the other later if need be.

        The cost is booked at once, also when the budget is gone by now. The policy learns when both are known. A plain
        arm name stands for its oldest open ask. With ``failed`` there was no answer, as from a provider that is down:
        what it cost, if anything, is booked, nothing is learned, and the arm rests for a while.
        """
        with self._lock:
            arm = self._arm(ask)
            if failed:
                self._tell_failure(ask, arm, reward, cost)
                return
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
                self._asks.put(number, replace(known, hold=hold, reward=reward, cost=cost, counts=counts))
            else:
                share, price = reward / units.reward_max, cost / units.scale(ask)
                self._learner.learn(arm, share, price, self._rng, self._request_of(known))
                self._asks.close(number)
                self._rests.told(arm, reward > 0.0 or cost > 0.0, self._asks.next_number)
                self._told_arms[arm] += 1
                if counts:
                    self._earned += reward
            self._spent += charge

    def _tell_failure(self, ask: str, arm: int, reward: float | None, cost: float | None) -> None:
        if reward:
            raise BadParameter(
                f"arm {str(ask)!r} has failed and brought {reward:g}; tell the reward, or that it failed"
            )
        number = self._asks.find(ask, arm, reward=True, cost=cost is not None)
        charge = 0.0 if cost is None else self._units.cost(cost, ask)
        self._failed_cost += charge + (self._asks[number].cost or 0.0)
        self._spent += charge
        self._asks.close(number)
        self._rests.failed(arm, self._asks.next_number)
        self._hear_budget()

    def forget(self, ask: str) -> None:
        """Close an ask that was never acted on; nothing is charged or learnt, and what it held is free."""
        with self._lock:
            self._asks.close(self._asks.find(ask, self._arm(ask), reward=True, cost=True))

    # --- changes on the way --------------------------------------------------------------------------------------

    def top_up(self, amount: float) -> None:
        """Add to the budget. A policy that planned with the old one is told the new one."""
        with self._lock:
            self._budget += positive("amount", amount)
            self._hear_budget()

    def new_horizon(self, horizon: float) -> None:
        """The budget is for this many requests in all, those already answered included."""
        with self._lock:
            self._learner.new_horizon(positive("horizon", horizon))

    def add_arm(
        self,
        name: str,
        *,
        history: tuple[int, float, float] | None = None,
        cost: float | None = None,
        cost_max: float | None = None,
    ) -> None:
        """A new arm, from the next ask on; ``cost`` is for policies that must know the costs, ``cost_max`` for arms
        with largest costs of their own; it may not be above the largest of the first arms."""
        with self._lock:
            checked_names([*self._names, name], fewest=1)
            units = self._units_with(name, cost_max)
            known_cost = None
            if "costs" in self._learner.state.known:
                if cost is None:
                    raise MissingKnowledge(f"{self.policy.name} must know the cost of arm {name!r}; pass cost=...")
                known_cost = units.known_cost(name, {name: cost})
            past = None if history is None else units.past(name, history)
            self._units = units
            self._number[name] = self._learner.add(known_cost, units.cap(name) / units.cost_max)
            self._told_arms = np.append(self._told_arms, 0)
            self._rests.add()
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
            costs = [self._units.scale(name) for name in of]
        return posteriors.densities(of, self._units.reward_max, costs, style.sheet(width, dark))

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
                "cost_max": self._units.cost_max if self._units.caps is None else dict(self._units.caps),
                "reward_max": self._units.reward_max,
                "spent": self._spent,
                "earned": self._earned,
                "next_ask": self._asks.next_number,
                "open": self._asks.to_list(),
                "told": self._told_arms.tolist(),
                "rests": self._rests.to_dict(),
                "segments": list(self._segments),
                "failed_cost": self._failed_cost,
                "propensity": {"draws": self._draws, "seed": self._draws_seed},
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
        self._names = checked_names(document["arms"])
        policy = parse_policy(document["policy"])
        self._units = Units(*_by_units(document["cost_max"], document["reward_max"], self._names, policy))
        self._number = {name: i for i, name in enumerate(self._names)}
        self._learner = Learner.from_dict(policy, len(self._names), document)
        # allocations saved before there were these have none
        self._failed_cost = _not_negative({"failed_cost": 0.0, **document}, "failed_cost")
        self._segments = {name: number for number, name in enumerate(document.get("segments", ()))}
        rests = document.get("rests")
        self._rests = Rests(len(self._names)) if rests is None else Rests.from_dict(rests, len(self._names))
        self._spent = _not_negative(document, "spent")
        self._earned = _not_negative(document, "earned")
        self._asks = OpenAsks.from_list(document["open"], document["next_ask"], len(self._names), self._units)
        if any(ask.segment >= max(len(self._segments), 1) for _, ask in self._asks.items()):
            raise BadState("an open ask is of a segment that is not there; restore an undamaged copy")
        self._told_arms = np.array(document["told"], dtype=np.int64)
        if self._told_arms.shape != (len(self._names),) or (self._told_arms < 0).any():
            raise BadState("'told' is not one count for each arm; restore an undamaged copy")
        draws = document.get("propensity", {"draws": 0, "seed": 0})
        self._draws, self._draws_seed = _checked_draws(draws["draws"]), int(draws["seed"])
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

    def _among(self, arms: Iterable[str] | None, exclude: Iterable[str]) -> Among:
        """The arms that may answer a request: active, allowed, and awake if any of those is."""
        active = self._learner.state.active
        awake = self._rests.awake(self._asks.next_number)
        if arms is None and not exclude and awake is None:
            return active
        among = active.copy()
        if arms is not None:
            among[:] = False
            among[[self._arm(name) for name in _names(arms, "arms")]] = True
            among &= active
        among[[self._arm(name) for name in _names(exclude, "exclude")]] = False
        if not among.any():
            raise NoArmLeft("arms and exclude leave no arm that can be asked; allow one that is not retired")
        if awake is not None and (among & awake).any():
            among &= awake
        return among

    def _request(
        self, segment: str | None, prices: Mapping[str, float] | None, among: Among
    ) -> tuple[Request, Array | None]:
        """The request as the policy sees it, and what each arm is estimated to cost, in the user's units."""
        estimates = None if prices is None else estimated(prices, among, self._names, self._units)
        if segment is None and estimates is None and not self._segments:
            return PLAIN, None
        if segment is not None and (not isinstance(segment, str) or not segment):
            raise BadParameter(f"segment is {segment!r:.40}; name it by a text such as 'code'")
        policy, state = self._learner.by_request, self._learner.state
        if segment not in self._segments:
            number = len(self._segments)
            while policy.segments(state) <= number:
                policy.open_segment(state)
            self._segments[segment] = number
        return Request(
            self._segments[segment], None if estimates is None else estimates / self._units.cost_max
        ), estimates

    def _request_of(self, ask: OpenAsk) -> Request:
        """The request that an open ask is for."""
        if ask.price is None:
            return Request(ask.segment) if self._segments else PLAIN
        return Request(ask.segment, np.full(len(self._names), ask.price / self._units.cost_max))

    def _paid_for(self, among: Among, amounts: Array | float) -> Among:
        """Those of the arms for which there is the money to be held."""
        if isinstance(amounts, float):
            self._check_money(amounts)
            return among
        least = float(amounts[among].min())
        self._check_money(least)
        free = self._budget - self._spent - self._asks.held + self._nothing
        if float(amounts[among].max()) <= free:
            return among
        return among & (amounts <= free)

    def _units_with(self, name: str, cost_max: float | None) -> Units:
        """The units when there is one more arm."""
        if self._units.caps is None:
            if cost_max is not None:
                raise BadParameter("cost_max is one number for all arms here; leave it out for a new one")
            return self._units
        if cost_max is None:
            raise MissingKnowledge(f"every arm has a cost_max of its own; pass one for arm {name!r}")
        cap = positive(f"cost_max of arm {name!r}", cost_max)
        if cap > self._units.cost_max:
            raise BadParameter(
                f"cost_max of arm {name!r} is {cap:g}, above the largest of the first arms, {self._units.cost_max:g}; "
                "start a new allocation with history"
            )
        return replace(self._units, caps={**self._units.caps, name: cap})

    def _hear_budget(self) -> None:
        """A policy that plans with the budget plans with what failures have not taken."""
        planned = max(self._budget - self._failed_cost, self._nothing)
        self._learner.new_budget(planned / self._units.cost_max)

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


def _by_units(
    cost_max: float | Mapping[str, float], reward_max: float, arms: Sequence[str], policy: Policy
) -> tuple[float, float, Mapping[str, float] | None, bool]:
    """What `Units` takes."""
    largest, caps = caps_of(cost_max, arms)
    return largest, reward_max, caps, caps is not None and policy.own_scales


def _checked_draws(draws: int) -> int:
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 0:
        raise BadParameter(f"propensity_draws is {draws!r:.40}; use a whole number, 0 for no propensities")
    return draws


def _names(names: Iterable[str], what: str) -> list[str]:
    if isinstance(names, str):
        raise BadParameter(f"{what} is the text {names!r:.40}; pass a list of names")
    return list(names)


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
