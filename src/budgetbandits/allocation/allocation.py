"""Allocation: spend a real budget with a policy, one `ask` and one `tell` at a time."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from budgetbandits.allocation.asks import ArmTotals, Ask, OpenAsk, OpenAsks
from budgetbandits.allocation.cooldowns import Cooldowns
from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.money import Money
from budgetbandits.allocation.propensity import Propensities
from budgetbandits.allocation.session import ArmSession, checked_features, chosen_from
from budgetbandits.allocation.state import AllocationState, planned_requests
from budgetbandits.allocation.units import Units, amounts_to_hold, checked_names, estimated
from budgetbandits.errors import (
    BadParameter,
    BudgetExhausted,
    CostOverrun,
    HoldRefused,
    MissingKnowledge,
    NoArmLeft,
    UnknownArm,
    UnknownAsk,
)
from budgetbandits.numerics.arrays import ArmMask, Array
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge, Policy, Request
from budgetbandits.policies.files import policy_of
from budgetbandits.validation import Number, RequestFields, RequestOptions, integer, positive


def default_policy(cost_max: Number | Mapping[str, Number], horizon: Number | None, features: Sequence[str]) -> str:
    """The policy of an allocation that names none."""
    if len(features):
        return "bts-linear"
    if horizon is not None:
        return "bts-paced"
    return "bts" if isinstance(cost_max, Mapping) else "gittins-ratio"


class Allocation(AllocationState):
    """A budget, named arms in the user's own units, and a policy that decides.

    ``policy`` is a policy, its class, or its text: "bts", "bts:kappa=2", "mine.py:MyPolicy". Without one, `policy` says
    which was taken: ``bts-linear`` with ``features``, ``bts-paced`` with a ``horizon``, ``bts`` where arms have scales
    of their own, and else ``gittins-ratio``.

    ``cost_max`` and ``reward_max`` are the largest cost and reward a single pull can have; they map the user's units
    to the policy's [0, 1]. ``cost_max`` may map each arm to its own, where prices are far apart: then an arm's costs
    are learned on its own scale, by policies that can. ``horizon`` is how many requests the budget is for, for policies
    that plan with them: each ask is one, whether it is answered or fails. ``features`` are the names of the numbers
    that each ask gives of its request, for policies that look at them. ``history`` maps an arm to what is known of
    it from before, as (pulls, total reward, total cost). ``costs`` (a mapping by arm) and ``cost_floor`` are for
    policies that must know them, in the user's units. With ``propensity_draws`` each ask says how likely it was, from
    that many further choices, and which arms there were to choose from, for `off_policy`; no choice is changed by it.

    Several asks may be open at once, and feedback may come in any order. The pull that overdraws the budget ends the
    game: what it cost is in `spent`, its reward is not in `earned`, as in the paper, and so it is for all feedback that
    comes later.

    Threads may share an allocation: each call is done as a whole before the next one begins.

    >>> from budgetbandits import BudgetedThompson
    >>> spend = Allocation(BudgetedThompson(), ["search", "social"], budget=20.0, cost_max=2.0, seed=1)
    >>> while not spend.exhausted:
    ...     ask = spend.ask()
    ...     reward, cost = {"search": (1, 0.5), "social": (0, 0.5)}[ask.arm]
    ...     spend.tell(ask, reward=reward, cost=cost)
    >>> spend.spent, sum(spend.pulls.values())
    (20.0, 40)
    """

    def __init__(
        self,
        policy: Policy | type[Policy] | str | None = None,
        arms: Sequence[str] = (),
        budget: Number | None = None,
        *,
        cost_max: Number | Mapping[str, Number] = 1.0,
        reward_max: Number = 1.0,
        seed: int | None = None,
        history: Mapping[str, tuple[Number, Number, Number]] | None = None,
        costs: Mapping[str, Number] | None = None,
        cost_floor: Number | None = None,
        horizon: Number | None = None,
        features: Sequence[str] = (),
        propensity_draws: int = 0,
    ) -> None:
        if isinstance(policy, list | tuple):
            raise BadParameter(f"policy is {policy!r:.40}; write arms=[…], or name a policy before the arms")
        if budget is None:
            raise BadParameter("budget is missing; write budget=…, the money that may be spent")
        policy = policy_of(default_policy(cost_max, horizon, features) if policy is None else policy)
        self._lock = threading.RLock()
        self._money = Money(positive("budget", budget))
        names = checked_names(arms)
        self._units = Units.of(cost_max, reward_max, names, policy.own_scales)
        self._asks = OpenAsks()
        self._totals = ArmTotals(len(names))
        features = checked_features(policy, features)
        knowledge: dict[str, Any] = {"budget": self._money.budget / self._units.cost_max, "features": len(features)}
        if cost_floor is not None:
            knowledge["cost_floor"] = self._units.cost_floor(cost_floor)
        if costs is not None:
            knowledge["costs"] = [self._units.known_cost(name, costs) for name in names]
        if horizon is not None:
            knowledge["horizon"] = planned_requests(policy, horizon)
        scales = self._units.scales(names)
        own = None if scales is None else np.array(scales)
        learner = Learner.new(policy, len(names), Knowledge(**knowledge), scales=own)
        self._session = ArmSession(learner, names, Cooldowns(len(names)), features)
        if seed is not None:
            integer("seed", seed, hint=", or None")
        self._rng = np.random.default_rng(seed)
        self._propensities = Propensities(propensity_draws, int(np.random.SeedSequence(seed).generate_state(1)[0]))
        if history is not None and not isinstance(history, Mapping):
            raise BadParameter(f"history is {history!r:.40}; map each arm's name to (pulls, total reward, total cost)")
        for name, past in (history or {}).items():
            learner.add_history(self._session.number(name), *self._units.past(name, past))
        self._update_plan_inputs()

    # --- ask and tell --------------------------------------------------------------------------------------------

    def ask(self, hold: Number | bool = False, **options: Unpack[RequestFields]) -> Ask:
        """The arm to pull next.

        With ``hold`` an amount of money is set aside until the cost is reported: True for the most that the pull can
        cost, or for its price with a margin if there is one. Nobody else is given what is held; while every ask holds
        what the pull can cost at most, no budget is overdrawn. ``holds`` says what to hold for each arm.

        ``arms`` and ``exclude`` say which arms may answer this request. ``segment`` names the kind of the request, and
        ``prices`` what each of those arms is estimated to cost this time, for policies that look at requests.
        ``features`` maps every feature that the allocation has to its number.
        """
        with self._lock:
            session, learner = self._session, self._session.learner
            allowed = payable = learner.state.active
            features: Array | None = None
            estimates: Array | None = None
            amounts: Array | float = 0.0
            segment = options.get("segment")
            if hold is False and not options and not session.features:  # most asks say nothing of their request
                self._money.check(0.0, self._asks.held)
            else:
                allowed, estimates, amounts, features = self._resolve(hold, options)
                payable = self._money.affordable(allowed, amounts, self._asks.held)
            request = NO_REQUEST_INFO
            if segment is not None or estimates is not None or session.segments or session.features:
                shares = None if estimates is None else estimates / self._units.cost_max
                # may open a segment: after all checks
                request = session.request(segment, shares, features, pending=len(self._asks) > 0)
            now, chances = self._asks.next_number, None
            available, cooling = session.cooldowns.available(payable, now)
            if self._propensities.draws:
                chances = self._propensities.before(learner, now, available, request, cooling)
            arm = learner.choose(self._rng, available, request, cooling)
            if arm is None:
                raise BudgetExhausted(
                    f"{self.policy.name} stops with {self.left:g} left: it can afford no arm, or its horizon is over; "
                    "add to the budget with top_up() or start a new allocation"
                )
            if isinstance(amounts, float):
                amount = self._money.wanted = amounts
            else:
                amount = float(amounts[arm])
                self._money.wanted = np.where(allowed, amounts, np.inf).tolist()
            ask = OpenAsk(arm, amount)
            if request is not NO_REQUEST_INFO:
                ask.segment = request.segment
            if features is not None:
                ask.features = features.tolist()
            if estimates is not None:
                ask.prices = [None if math.isnan(price) else price for price in estimates.tolist()]
            if chances is not None:
                # by their numbers, also if they are all: there may be more of them later
                ask.propensity = chances.of(arm)
                ask.could = np.flatnonzero(chosen_from(available, cooling, arm)).tolist()
            session.cooldowns.record_ask(arm, now)
            number = self._asks.add(ask)
            return Ask(number, session.names[arm]) if chances is None else self._named(number, ask)

    def can_ask(self, hold: Number | bool = False, **options: Unpack[RequestFields]) -> bool:
        """Whether `ask` with these arguments would name an arm now: the money to be held is there, neither spent nor
        held by others, and the policy goes on.

        >>> spend = Allocation("bts", ["search", "social"], budget=5.0, cost_max=2.0, seed=1)
        >>> while spend.can_ask(hold=True):
        ...     spend.tell(spend.ask(hold=True), reward=1, cost=1.5)
        >>> spend.spent
        4.5
        """
        with self._lock:
            learner, (allowed, estimates, amounts, _) = self._session.learner, self._resolve(hold, options)
            if estimates is not None or options.get("segment") is not None:
                _ = learner.policy.for_requests  # an error for policies that look at neither
            try:
                payable = self._money.affordable(allowed, amounts, self._asks.held)
            except (BudgetExhausted, HoldRefused):
                return False
            with learner.restricted_to(payable):
                return learner.can_continue

    def tell(
        self, ask: Ask | int | str, *, reward: Number | None = None, cost: Number | None = None, failed: bool = False
    ) -> None:
        """Report the reward and the cost of a pull, in the user's units; one now and the other later if need be.

        ``ask`` is what `ask` returned, or its id; an arm's name stands for the oldest open ask of that arm. The cost is
        booked at once, also when the budget is spent by now, and also what of it is above ``cost_max``: then the policy
        learns of ``cost_max``, and there is a warning, `errors.CostOverrun`. The policy learns when both are known.
        With ``failed`` there was no answer, as from a provider that is down: what it cost, if anything, is booked,
        nothing is learned, its request counts for the horizon, and after a few of them in a row the arm cools down for
        a while.
        """
        with self._lock:
            if failed:
                self._tell_failure(ask, reward, cost)
                return
            if reward is None and cost is None:
                raise BadParameter(f"neither reward nor cost is given for {ask!r}; tell at least one")
            number, asked = self._find(ask, reward is not None, cost is not None)
            arm, units, session = asked.arm, self._units, self._session
            name = session.names[arm]
            reward = asked.reward if reward is None else units.reward(reward, name)
            hold, overrun, counts, charge = asked.hold, asked.overrun, asked.counts, 0.0
            if cost is None:
                cost = asked.cost
            else:
                cost, charge = units.cost(cost, name)
                hold, overrun, counts = 0.0, charge - cost, self._money.covers(charge)
                if overrun:
                    _warn(name, charge, cost, 3)
                session.cooldowns.record_answer(arm, self._asks.next_number, number)
            if reward is None or cost is None:
                self._asks.replace(
                    number, replace(asked, hold=hold, reward=reward, cost=cost, overrun=overrun, counts=counts)
                )
            else:
                share, price = reward / units.reward_max, cost / units.scale(name)
                plain = asked.prices is None and asked.features is None and not session.segments
                request = NO_REQUEST_INFO if plain else self._request_of(asked)
                session.learn(arm, share, price, self._rng, request, self._asks.next_number)
                self._asks.close(number)
                self._totals.add(arm, reward, cost + overrun)
                if counts:
                    self._money.earned += reward
            self._money.spent += charge
            self._money.overrun += overrun - asked.overrun
            if reward is None or asked.cost is not None or overrun:  # the two come one after the other
                self._update_plan_inputs()

    def _tell_failure(self, ask: Ask | int | str, reward: Number | None, cost: Number | None) -> None:
        number, asked = self._find(ask, reward=True, cost=cost is not None)
        name = self._session.names[asked.arm]
        earned = 0.0 if reward is None else self._units.reward(reward, name)
        if earned > 0.0:
            raise BadParameter(f"arm {name!r} has failed and earned {earned:g}; tell the reward, or that it failed")
        learned, charge = (0.0, 0.0) if cost is None else self._units.cost(cost, name)
        if charge > learned:
            _warn(name, charge, learned, 4)
        self._money.failed += learned + (asked.cost or 0.0)
        self._money.spent += charge
        self._money.overrun += charge - learned
        self._asks.close(number)
        self._session.cooldowns.record_failure(asked.arm, self._asks.next_number, number)
        self._update_plan_inputs()

    def forget(self, ask: Ask | int | str) -> None:
        """Close an ask that was never acted on; nothing is charged or learned, and what it held is free."""
        with self._lock:
            number, asked = self._find(ask, reward=True, cost=True)
            self._asks.close(number)
            self._session.learner.discard_choice(asked.arm)

    # --- changes on the way --------------------------------------------------------------------------------------

    def top_up(self, amount: Number) -> None:
        """Add to the budget. A policy that plans with it gets the new one."""
        with self._lock:
            self._money.budget = positive(
                "the budget with this amount", self._money.budget + positive("amount", amount)
            )
            self._update_plan_inputs()

    def set_horizon(self, horizon: Number) -> None:
        """The budget is for this many requests in all, those already answered included."""
        with self._lock:
            self._session.learner.set_horizon(planned_requests(self.policy, horizon))

    def add_arm(
        self,
        name: str,
        *,
        history: tuple[Number, Number, Number] | None = None,
        cost: Number | None = None,
        cost_max: Number | None = None,
    ) -> None:
        """A new arm, from the next ask on; ``cost`` is for policies that must know the costs, ``cost_max`` for arms
        with largest costs of their own; it may not be above the largest of the first arms."""
        with self._lock:
            session = self._session
            checked_names([*session.names, name], fewest=1)
            units = self._units.joined_by(name, cost_max)
            known_cost = None
            if "costs" in self.policy.needs:
                if cost is None:
                    raise MissingKnowledge(f"{self.policy.name} must know the cost of arm {name!r}; pass cost=...")
                known_cost = units.known_cost(name, {name: cost})
            past = None if history is None else units.past(name, history)
            self._units = units
            arm = session.add_arm(name, known_cost, units.cap(name) / units.cost_max)
            self._totals.add_arm()
            self._money.joined_by(units.cap(name))
            if past is not None:
                session.learner.add_history(arm, *past)

    def retire(self, name: str) -> None:
        """Never choose this arm again; its open asks can still be reported on."""
        with self._lock:
            arm, active = self._session.number(name), self._session.state.active
            if active.sum() == 1 and active[arm]:
                raise NoArmLeft(f"{name!r} is the last arm; add another with add_arm() before retiring it")
            self._session.retire(arm)

    # --- checks --------------------------------------------------------------------------------------------------

    def _find(self, ask: Ask | int | str, reward: bool, cost: bool) -> tuple[int, OpenAsk]:
        """The open ask of which the reward, the cost or both can be reported, and its number."""
        if isinstance(ask, Ask):
            number, asked = ask.id, self._asks.find(ask.id, reward, cost)
            if self._session.names[asked.arm] != ask.arm:
                raise UnknownAsk(f"{ask!r} is none of this allocation; `pending` lists those that are open")
            return number, asked
        if isinstance(ask, str):
            number = self._asks.oldest(ask, self._session.number(ask), reward, cost)
        elif isinstance(ask, bool) or not isinstance(ask, int | np.integer):
            raise UnknownArm(f"no arm or ask {ask!r:.40}; pass what ask() returned, its id, or the name of an arm")
        else:
            number = int(ask)
        return number, self._asks.find(number, reward, cost)

    def _resolve(
        self, hold: Number | bool, fields: RequestFields
    ) -> tuple[ArmMask, Array | None, Array | float, Array | None]:
        """The arms that may answer a request, their prices if it says any, what an ask of each would hold, and the
        features of the request if there are any."""
        if "metadata" in fields:
            raise TypeError("unexpected argument 'metadata'; an allocation keeps none: decisions of the service do")
        options, names = RequestOptions.checked(**fields), self._session.names
        allowed = self._session.allowed(options)
        estimates = estimated(options, allowed, names, self._units)
        amounts = amounts_to_hold(hold, options, estimates, names, self._units)
        return allowed, estimates, amounts, self._session.feature_values(options.features)

    def _request_of(self, ask: OpenAsk) -> Request:
        """The request that an open ask is for."""
        features = None if ask.features is None else np.array(ask.features)
        if ask.prices is None:
            return Request(ask.segment, features=features)
        prices = np.array(ask.prices, dtype=float)  # None becomes NaN
        return Request(ask.segment, self._session.prices(None, prices / self._units.cost_max), features=features)


def _warn(arm: str, charge: float, cap: float, level: int) -> None:
    """Warn of an overrun before anything is changed: where warnings are errors, the call can be repeated."""
    warnings.warn(
        f"arm {arm!r} has cost {charge:g}, above its cost_max {cap:g}; all of it is booked, and nothing is to be done. "
        "If such costs are real, start the next allocation with a larger cost_max",
        CostOverrun,
        stacklevel=level,
    )
