"""The state of an allocation: its properties, its table and plot, and its JSON."""

from __future__ import annotations

import copy
import json
import math
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from budgetbandits.allocation.asks import ArmTotals, Ask, OpenAsk, OpenAsks
from budgetbandits.allocation.cooldowns import Cooldowns
from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.money import Money
from budgetbandits.allocation.propensity import Propensities
from budgetbandits.allocation.session import ArmDown, ArmSession, Segments, checked_features
from budgetbandits.allocation.units import Units, checked_names
from budgetbandits.errors import BadParameter, BadState, UnknownPolicy
from budgetbandits.formatting.tables import MOST_ROWS, Table, column, left_out
from budgetbandits.policies import label, parse_policy
from budgetbandits.policies.base import Policy
from budgetbandits.policies.posteriors import posterior
from budgetbandits.validation import Number, positive

FORMAT, VERSION = "budgetbandits-allocation", 1
"""The name and the version of the JSON of an allocation."""

_INFINITY = {"+inf": math.inf, "-inf": -math.inf}

ENDS = np.array([0.025, 0.975])
"""The quantiles at the ends of a 95 % interval."""

HEADS = ("arm", "pulls", "mean reward", "mean cost", "ratio", "believed ratio, 95 %")
"""The heads of the columns of the table."""

SEEN = "Pulls, means and their ratio are of the feedback so far."
"""Note below the table of arms on feedback."""

BELIEVED = "The believed ratio is the policy's posterior, with its prior and the history it was given."
"""Note below the table of arms on the policy's beliefs."""


class AllocationState:
    """Everything that an `Allocation` remembers. Readers and writers hold the lock."""

    _lock: threading.RLock
    _money: Money
    _units: Units
    _asks: OpenAsks
    _session: ArmSession
    _totals: ArmTotals
    _rng: np.random.Generator
    _propensities: Propensities

    # --- what it knows -------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy that decides."""
        return self._session.policy

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that may be chosen; retired ones are left out."""
        with self._lock:
            session = self._session
            return tuple(name for name, active in zip(session.names, session.state.active, strict=True) if active)

    @property
    def budget(self) -> float:
        """The money that may be spent."""
        return self._money.budget

    @property
    def spent(self) -> float:
        """All costs that were reported."""
        return self._money.spent

    @property
    def held(self) -> float:
        """The money held by open asks whose cost is not reported yet."""
        with self._lock:
            return self._asks.held

    @property
    def left(self) -> float:
        """The part of the budget that is neither spent nor held; never negative."""
        with self._lock:
            return self._money.left(self._asks.held)

    @property
    def overrun(self) -> float:
        """The money that pulls have cost above ``cost_max``: no hold could have kept it. It is part of `spent`."""
        return self._money.overrun

    @property
    def earned(self) -> float:
        """The rewards of the pulls whose cost still fitted the budget when it was reported."""
        return self._money.earned

    @property
    def exhausted(self) -> bool:
        """Whether the budget is spent, or less is unspent than an ask that holds what the last one did must hold for
        any of the arms, or the policy stops because nothing it knows of is affordable any more. Before the first ask,
        where holds or prices vary, and while others are open, `can_ask` says whether an ask can be made."""
        with self._lock:
            return self._money.ended(self._session.state.active) or not self._session.learner.can_continue

    @property
    def pending(self) -> tuple[Ask, ...]:
        """The asks that still wait for their cost or reward, oldest first."""
        with self._lock:
            return tuple(self._named(number, ask) for number, ask in self._asks.items())

    @property
    def unpaid(self) -> tuple[Ask, ...]:
        """The pending asks whose cost was not reported: after a crash, those that may have cost what they hold."""
        with self._lock:
            return tuple(self._named(number, ask) for number, ask in self._asks.items() if ask.cost is None)

    @property
    def pulls(self) -> dict[str, int]:
        """How often each arm's cost and reward were both reported, history not counted."""
        with self._lock:
            return dict(zip(self._session.names, self._totals.pulls, strict=True))

    @property
    def totals(self) -> dict[str, tuple[int, float, float]]:
        """Each arm's pulls, the sum of their rewards and that of their costs: the ``history`` of another allocation."""
        with self._lock:
            totals = self._totals
            return dict(zip(self._session.names, zip(*vars(totals).values(), strict=True), strict=True))

    @property
    def failures(self) -> dict[str, int]:
        """How often each arm has failed."""
        with self._lock:
            return dict(zip(self._session.names, self._session.cooldowns.failures, strict=True))

    @property
    def cooling(self) -> tuple[str, ...]:
        """The arms that are not asked for now if others can be: after several failures in a row, or because they
        neither bring nor cost anything."""
        with self._lock:
            cooling = self._session.cooldowns.cooling(self._asks.next_number)
            return () if cooling is None else tuple(np.array(self._session.names, dtype=object)[cooling].tolist())

    @property
    def down(self) -> dict[str, ArmDown]:
        """The arms that have failed so often in a row that they cool down, and have not answered since; and which arm
        answers in their place, at what price (`substitutes`). Times are numbers of asks."""
        with self._lock:
            return self._session.arms_down()

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments that requests have named, in the order in which they first came."""
        with self._lock:
            return tuple(name for name in self._session.segments if name is not None)

    @property
    def features(self) -> tuple[str, ...]:
        """The names of the features that every ask gives."""
        return self._session.features

    def __repr__(self) -> str:
        with self._lock:
            return (
                f"Allocation({self.policy.spec!r}, {len(self._session.names)} arms, spent {self._money.spent:g} of "
                f"{self._money.budget:g}, {len(self._asks)} open)"
            )

    def _repr_html_(self) -> str:
        with self._lock:
            table = allocation_table(self._session, self._totals, self._units)
            spent, held, left = (f"{amount:,.6g}" for amount in (self._money.spent, self._asks.held, self.left))
            title = f"{label(self.policy.spec)}: spent {spent} of {self._money.budget:,.6g}, held {held}, left {left}"
        return replace(table, title=title).to_html()

    def _named(self, number: int, ask: OpenAsk) -> Ask:
        """An open ask as it is handed out."""
        if ask.could is None:
            return Ask(number, self._session.names[ask.arm])
        return Ask(
            number, self._session.names[ask.arm], ask.propensity, tuple(self._session.names[arm] for arm in ask.could)
        )

    def _update_plan_inputs(self) -> None:
        """Subtract what was used up and not learned from from the budget and requests of a policy that watches what is
        left: failures, overruns, and asks that still wait for their reward. For others the budget is a constant."""
        if not self.policy.needs:
            return
        asks, cost = self._asks.paid
        budget = self._money.planned(cost) if self.policy.watches_money else self._money.budget
        self._session.plan_with(budget / self._units.cost_max, sum(self._session.cooldowns.failures) + asks)

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
            state = self._session.state
            most_pulled = np.argsort(-np.where(state.active, state.pulls, -1), kind="stable")[
                : posteriors.ARMS_SHOWN_MAX
            ]
            shown = sorted(most_pulled[state.active[most_pulled]].tolist())
            of = {self._session.names[arm]: posterior(self.policy, state, arm) for arm in shown}
            costs = [self._units.scale(name) for name in of]
        return posteriors.densities(of, self._units.reward_max, costs, style.figure_spec(width, dark))

    # --- saving --------------------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Everything, as versioned JSON: `from_json` goes on bit for bit."""
        with self._lock:
            document = {
                "policy": self.policy.spec,
                "arms": self._session.names,
                "budget": self._money.budget,
                "cost_max": self._units.cost_max if self._units.caps is None else dict(self._units.caps),
                "reward_max": self._units.reward_max,
                "spent": self._money.spent,
                "earned": self._money.earned,
                "next_ask": self._asks.next_number,
                "open": self._asks.to_list(),
                "totals": vars(self._totals),
                "cooldowns": self._session.cooldowns.to_dict(),
                "segments": list(self._session.segments),
                "features": list(self._session.features),
                "failed_cost": self._money.failed,
                "overrun": self._money.overrun,
                "wanted": self._money.wanted,
                "propensities": vars(self._propensities),
                **self._session.learner.to_dict(),
                "generator": self._rng.bit_generator.state,
            }
            return to_text(document)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock, as it was at one moment: for pickle and copy."""
        with self._lock:
            return copy.deepcopy({name: value for name, value in vars(self).items() if name != "_lock"})

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """An allocation as `to_json` left it."""
        document = from_text(text)
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
        names = checked_names(document["arms"])
        policy = parse_policy(document["policy"])
        self._units = Units.of(document["cost_max"], document["reward_max"], names, policy.own_scales)
        learner = Learner.from_dict(policy, len(names), document)
        features = checked_features(policy, document["features"])
        if len(features) != learner.state.known.features:
            raise BadState("the features of requests are not those of the policy; restore an undamaged copy")
        self._session = ArmSession(learner, names, Cooldowns.from_dict(document["cooldowns"], len(names)), features)
        self._session.segments = Segments(document["segments"])
        self._propensities = Propensities(**document["propensities"])
        spent, earned, failed, overrun = (
            not_negative(document, name) for name in ("spent", "earned", "failed_cost", "overrun")
        )
        self._money = Money(budget, spent, earned, failed, overrun, wanted_of(document["wanted"], len(names)))
        self._asks = OpenAsks.from_list(document["open"], document["next_ask"], len(names), self._units, len(features))
        self._update_plan_inputs()
        if any(ask.segment >= max(len(self._session.segments), 1) for _, ask in self._asks.items()):
            raise BadState("an open ask is of a segment that is not there; restore an undamaged copy")
        self._totals = ArmTotals.from_dict(document["totals"], len(names))
        self._rng = np.random.default_rng()
        self._rng.bit_generator.state = document["generator"]
        return self


def planned_requests(policy: Policy, horizon: Number) -> float:
    """A number of requests for a policy that plans with it; an error for one that does not."""
    if "horizon" not in policy.needs:
        raise BadParameter(
            f"{policy.spec} does not plan with a number of requests; leave out horizon, or use bts-paced"
        )
    return positive("horizon", horizon)


# --- a table for notebooks ----------------------------------------


def allocation_table(session: ArmSession, totals: ArmTotals, units: Units) -> Table:
    """Pulls and means of the first arms, and the posterior's interval of the ratio if there is one."""
    names, state = session.names, session.state
    arms = range(min(len(names), MOST_ROWS))
    reward, cost = np.array([totals.means(arm) for arm in arms]).T
    ratio = np.divide(reward, cost, out=np.full(len(arms), np.nan), where=cost > 0.0)
    columns = [column(values.tolist()) for values in (reward, cost, ratio)]
    rows, believed = [], False
    for arm in arms:
        note = " (retired)" if not state.active[arm] else " (down)" if arm in session.cooldowns.down else ""
        kept, interval = session.policy.kept_posterior(state, arm), "–"
        if kept is not None:
            low, high = kept.ratio.quantile(ENDS) * (units.reward_max / units.scale(names[arm]))
            interval, believed = f"{low:,.3g} – {high:,.3g}", True
        rows.append((f"{names[arm]}{note}", f"{totals.pulls[arm]:,}", *(values[arm] for values in columns), interval))
    more = left_out(len(names))
    notes = [f"{more}."] if more else []
    return Table(HEADS, rows, note=" ".join([*notes, SEEN, *([BELIEVED] if believed else [])]))


# --- a saved allocation as text: versioned JSON --------------------


def to_text(document: Mapping[str, Any]) -> str:
    """The text of a document, headed by the format and its version."""
    headed = {"format": FORMAT, "version": VERSION, **document}
    return json.dumps(_without_infinity(headed), allow_nan=False)


def from_text(text: str) -> dict[str, Any]:
    """The document of a text that `to_text` has made; BadState if it is another."""
    try:
        document = _with_infinity(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadState(f"not JSON: {error}; pass what to_json() returned, whole") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadState("this is not a saved allocation; pass what to_json() returned")
    if document.get("version") != VERSION:
        raise BadState(
            f"saved by format version {document.get('version')}, this package reads {VERSION}; "
            "restore it with the version of budgetbandits that wrote it"
        )
    return document


def not_negative(document: Mapping[str, Any], name: str) -> float:
    """A finite number from 0 upwards; BadState if it is another."""
    number = float(document[name])
    if not 0.0 <= number < math.inf:
        raise BadState(f"{name!r} is {number}; restore an undamaged copy")
    return number


def wanted_of(saved: Any, arms: int) -> float | list[float]:
    """The saved amount that the last ask had to hold: one, or one for each arm; BadState if it is neither."""
    if not isinstance(saved, list):
        return not_negative({"wanted": saved}, "wanted")
    amounts = [float(amount) for amount in saved]
    if len(amounts) != arms or not all(amount >= 0.0 for amount in amounts) or min(amounts) == math.inf:
        raise BadState("'wanted' is not one amount for each arm; restore an undamaged copy")
    return amounts


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
