"""The contract between a policy and its driver.

A policy is an immutable set of hyper-parameters. What it has learned lives in a `State` that the driver holds and
passes to every call; randomness comes from a generator that the driver passes, too. So the simulator, an `Allocation`
and the decision service run the same code, and a state can be saved and restored.

    state = policy.start(arms=3)                  # what must be known beforehand goes in as a Knowledge
    arm = policy.choose(state, rng)               # an arm's number, or None: no arm can be afforded
    policy.observe(state, arm, reward=1.0, cost=0.4, rng=rng)

Rewards and costs are numbers in [0, 1]. Feedback may come late, in batches, in any order, or for arms never chosen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, BadState, MissingKnowledge, NotANumber
from budgetbandits.numerics.arrays import ArmMask, Arms, Array
from budgetbandits.validation import number

if TYPE_CHECKING:  # typing has type variables with defaults from Python 3.13 on
    from typing_extensions import TypeVar

    from budgetbandits.numerics.posteriors import ArmPosterior

    S = TypeVar("S", bound="State", default=Any)
else:
    from typing import TypeVar

    S = TypeVar("S")

KNOWLEDGE = {
    "budget": "the budget, in units of the largest possible cost",
    "cost_floor": "a positive lower bound on every arm's mean cost",
    "costs": "every arm's mean cost, known and fixed",
    "horizon": "how many requests the budget is for; without it, as many as can be paid",
}
"""Fields of `Knowledge` that a policy may declare under `needs`."""

SMALLEST_PARAMETER, LARGEST_PARAMETER = 1e-9, 1e15
"""The range of hyper-parameters: any index of one stays a number."""

FORGETTING_MAX = 0.5
"""The largest share by which a request makes earlier outcomes count less."""

SMALLEST_KNOWN = 1e-100
"""The bound that known quantities must exceed, for the same reason."""


NOT_IN_PRINT = "not in print for ratios, as far as known"
"""The `reference` of a policy that this package introduces."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Quantities known before the first pull, in units of the largest possible cost. By default, none is.

    budget      the budget
    horizon     how many requests the budget is for; infinite if for as many as can be paid
    cost_floor  a positive lower bound on every arm's mean cost
    costs       every arm's mean cost, known and fixed
    scales      each arm's own largest cost, where arms have scales of their own (`Policy.own_scales`)
    unlearned   how many requests were used without teaching anything; drivers keep it up to date
    features    how many features each request has (`Policy.uses_features`)

    >>> Knowledge(budget=5.0, costs=[0.5, 1.0]).to_dict()
    {'budget': 5.0, 'costs': [0.5, 1.0]}
    """

    budget: float = math.inf
    horizon: float = math.inf
    cost_floor: float = 0.0
    costs: Array = field(default_factory=lambda: np.zeros(0))
    scales: Array | None = None
    unlearned: int = 0
    features: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", np.asarray(self.costs, dtype=float))
        if self.scales is not None:
            object.__setattr__(self, "scales", np.asarray(self.scales, dtype=float))

    def to_dict(self) -> dict[str, Any]:
        """All that is known, as plain lists and numbers: the arguments that make it again."""
        return {name: _plain(value) for name, value in vars(self).items() if not _is_default(name, value)}


NOTHING_KNOWN = Knowledge()
"""The knowledge that most policies are started with: none."""


@dataclass(frozen=True)
class UnitChange:
    """The old units, as multiples of the new ones.

    reward  the largest reward
    costs   the cost that counts as 1, for each arm
    money   the largest cost of all arms: the unit of budgets and prices
    """

    reward: float
    costs: Array
    money: float

    @property
    def same(self) -> bool:
        """True when no unit has changed."""
        return self.reward == 1.0 and self.money == 1.0 and bool((self.costs == 1.0).all())


def _is_default(name: str, value: Any) -> bool:
    return np.array_equal(value, getattr(NOTHING_KNOWN, name))


@dataclass
class State:
    """The state of a policy: what its next choice needs, and nothing more. The last axis of every array runs over arms.

    active            which arms may be chosen
    pulls             how often each arm was pulled
    known             what the policy knew before the first pull
    first_pulls_done  how many arms, in order, have had their first pull handed out

    Other attributes than fields follow from the fields, and are never saved.

    `Policy.observe` writes only into the entries of its arm and `Policy.choose` into none; one that must change more
    assigns a new array. So a driver that keeps states in a database knows what to write back.
    """

    active: ArmMask
    pulls: NDArray[np.int64]
    known: Knowledge = NOTHING_KNOWN
    first_pulls_done: int = 0
    positive: ClassVar[tuple[str, ...]] = ()
    """Fields that are never 0."""
    symmetric: ClassVar[tuple[str, ...]] = ()
    """Fields that are a symmetric matrix for each arm: a database keeps half of it."""

    @property
    def has_price_estimates(self) -> bool:
        """Whether it has learned from requests whose prices were estimated."""
        return False

    def know(self, **values: Any) -> None:
        """Change fields of `Knowledge`, where they differ."""
        if any(getattr(self.known, name) != value for name, value in values.items()):
            self.known = replace(self.known, **values)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON."""
        return {f.name: _plain(getattr(self, f.name)) for f in fields(self)}

    def filled(self, values: Mapping[str, Any]) -> Self:
        """This state with every field replaced from `to_dict`'s output, in this one's types."""
        for f in fields(self):
            if f.name not in values:
                raise BadState(f"the saved state lacks {f.name!r}; restore it with the policy that wrote it")
            old, new = getattr(self, f.name), values[f.name]
            if isinstance(old, np.ndarray):
                with np.errstate(over="ignore"):  # what is too large becomes infinite, and is checked
                    array = np.array(new, dtype=old.dtype)
                if array.shape != old.shape:
                    raise BadState(f"{f.name!r} has shape {array.shape}, not {old.shape}; the saved state is damaged")
                self.check(f.name, array)
                setattr(self, f.name, array)
            elif f.name != "known":
                setattr(self, f.name, new)
        return self

    def check(self, name: str, array: NDArray[Any]) -> None:
        """Refuse values of a field that no game can have led to."""
        if np.isnan(array).any() or ((array < 0) & (array > -np.inf)).any():
            raise BadState(f"{name!r} holds a negative count or no number; the saved state is damaged")
        if name in self.positive and not (array > 0).all():
            raise BadState(f"{name!r} holds a 0, which it never is; the saved state is damaged")

    def widen(self, segments: int) -> None:
        """Make room for this many segments; only policies that know segments can."""
        raise BadState("the saved state has segments, which this policy knows none of; it is damaged")

    def make_room(self, name: str, shape: tuple[int, ...]) -> None:
        """Make room for a field of this shape, whose second axis, if there is one, runs over the segments."""
        self.widen(shape[1])

    def extend(self, other: Self) -> None:
        """Append the arms of another state of the same policy."""
        for f in fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            if isinstance(mine, np.ndarray):
                setattr(self, f.name, np.concatenate([mine, theirs], axis=-1))
        if len(self.known.costs):
            self.known = replace(self.known, costs=np.concatenate([self.known.costs, other.known.costs]))


class Scoring(Protocol):
    """A policy that names the arm with the best of scores, each drawn independently of the others."""

    def draw(self, state: Any, rng: np.random.Generator, rounds: int, arms: Arms | None = None) -> Array:
        """The scores of these arms (all of them if None) in ``rounds`` independent rounds, as (round, arm)."""

    def draw_each(self, state: Any, rng: np.random.Generator, arms: Sequence[int]) -> list[float]:
        """The scores of these arms in one round, drawn one after the other."""


class ChoiceWork(NamedTuple):
    """The work of a choice, in microseconds of one core, about.

    prepared  what is done once, and again when something was learned
    chosen    what each choice takes besides
    """

    prepared: float = 0.0
    chosen: float = 0.0


class FeatureSlopes(NamedTuple):
    """The effect of each feature on each arm, as (feature, arm), when it rises by its standard deviation.

    means, deviations  of each feature among the requests so far; the deviation is 0 if it has not varied
    reward             how much the mean reward rises
    log_cost           how much the logarithm of the mean cost rises
    unsure             the standard deviations of both, as (reward or log_cost, feature, arm)
    """

    means: Array
    deviations: Array
    reward: Array
    log_cost: Array
    unsure: Array


@dataclass(frozen=True)
class Policy(ABC, Generic[S]):
    """Immutable hyper-parameters and the rule they parametrise; ``S`` is the kind of its states."""

    name: ClassVar[str]
    """How the policy is named in text: ``bts``."""
    label: ClassVar[str]
    """How its paper writes the name, for figures and tables; without one, its `name`."""
    reference: ClassVar[str]
    """The publication of the rule, or `NOT_IN_PRINT`."""
    proven: ClassVar[str]
    """Proven bounds of its regret against the budget B, with the parameters of the proof, often not the defaults."""
    own_scales: ClassVar[bool] = False
    """Whether arms may have scales of their own: `Knowledge.scales` says what a cost of 1 is for each."""
    uses_features: ClassVar[bool] = False
    """Whether it looks at the features of requests: `Knowledge.features` says how many these have."""
    looks_at_requests: ClassVar[bool] = False
    """Whether it looks at the segments and prices of requests: a `RequestPolicy`."""
    first_pulls: ClassVar[bool] = False
    """Whether every arm is pulled once, in order, before any other choice."""
    random_choices: ClassVar[bool] = False
    """Whether a choice is drawn at random and leaves no trace in the state, so that it can be drawn again and again."""

    def rule_kind(self, horizon: float) -> str:
        """The kind of rule with which it plays a budget for this number of requests: "index", "score", "beta",
        "explore first", "paced" or "priced", for which there may be a compiled engine; empty for a rule of no kind."""
        return ""

    @property
    def priors(self) -> tuple[tuple[tuple[float, float], ...], ...]:
        """The priors that were given to it, each as one pair for all arms or one for each; none for most."""
        return ()

    @property
    def needs(self) -> frozenset[str]:
        """The names of `KNOWLEDGE` that must be known before the game; none for most. A class may set an attribute."""
        return frozenset()

    @property
    def anytime(self) -> bool:
        """Whether one game played to the largest budget contains the games of all smaller ones."""
        return "budget" not in self.needs

    @abstractmethod
    def start(self, arms: int, known: Knowledge = NOTHING_KNOWN) -> S:
        """The state before the first round. ``known`` holds what `needs` names, or more."""

    def new_arm_state(self, state: S, known: Knowledge) -> S:
        """The state of one more arm, for `State.extend`."""
        return self.start(1, known)

    def make_segments(self, state: S, count: int) -> bool:
        """Open segments until there are ``count``; False if the policy does not look at requests."""
        return False

    @abstractmethod
    def choose(self, state: S, rng: np.random.Generator) -> int | None:
        """The arm to pull next, or None when the policy can afford none."""

    def can_continue(self, state: S) -> bool:
        """Whether `choose` would name an arm; False for a policy that has stopped."""
        return True

    @abstractmethod
    def observe(self, state: S, arm: int, reward: float, cost: float, rng: np.random.Generator) -> None:
        """Learn from one pull."""

    def discard_choice(self, state: S, arm: int) -> None:
        """Take back a choice of this arm that was never acted on; for policies that count their choices."""

    @abstractmethod
    def add_history(self, state: S, arm: int, pulls: int, reward: float, cost: float) -> None:
        """Learn from ``pulls`` past pulls with this total reward and total cost."""

    # --- what it has learned, for those who show it, carry it over, or answer in its place --------------------------

    def totals(self, state: S, arm: int) -> tuple[float, float, float] | None:
        """The number of remembered outcomes of an arm, and the sums of their rewards and costs; None if the policy does
        not say, so that nothing can be carried over from it."""
        return None

    def means(self, state: S, arm: int) -> tuple[float, float] | None:
        """The mean reward and mean cost of an arm; None if nothing is known of it."""
        count, reward, cost = self.totals(state, arm) or (0.0, 0.0, 0.0)
        return (reward / count, cost / count) if count > 0.0 else None

    def kept_posterior(self, state: S, arm: int) -> ArmPosterior | None:
        """The posterior of an arm, for a policy that keeps one."""
        return None

    def rescaled(self, state: S, units: UnitChange) -> S | None:
        """The state as if its outcomes had been reported in the new units; None if it must begin again with the totals
        of each arm. The old state is not used any more."""
        return None

    def set_spent(self, state: S, spent: float) -> None:
        """Take note of how much money of this budget is spent, where history makes the state; for policies that derive
        it from what they have learned."""

    # --- what those who drive it ask -------------------------------------------------------------------------------

    @property
    def for_requests(self) -> RequestPolicy[S]:
        """This policy as one that looks at requests; an error by name if it does not."""
        raise BadParameter(f"{self.name} looks at neither segments nor prices of requests; use bts-paced")

    @property
    def scoring(self) -> Scoring | None:
        """This policy as one that names the arm with the best of scores, drawn independently; None if it does not."""
        return None

    @property
    def draws_beta_ratios(self) -> bool:
        """Whether its scores are those of Budgeted Thompson Sampling, for which there are quicker ways to choose."""
        return False

    @property
    def sums_by_segment(self) -> bool:
        """Whether its states hold the sums of all outcomes by arm and segment."""
        return False

    def work(self, arms: int, columns: int, draws: int, priced: bool) -> ChoiceWork:
        """The work of a choice among this many arms, where requests have ``columns`` segments, or features and
        segments. ``draws`` are further draws that tell how likely it was; ``priced`` says whether prices have been
        estimated. A policy that only looks at its arms takes next to nothing."""
        return ChoiceWork()

    def keeps_pace(self, state: S) -> bool:
        """Whether it plans money for a number of requests."""
        return False

    def planned_substitute(
        self, state: S, arm: int, available: ArmMask, rng: np.random.Generator, request: Request
    ) -> int | None:
        """The available arm that answers in place of one cooling down, where the policy keeps a pace; None if none
        does."""
        raise NotImplementedError

    def expected(self, state: S, request: Request) -> tuple[Array, Array]:
        """The mean reward and the mean cost of every arm for a request, by what was learned; ½ before that."""
        means = np.array([self.means(state, arm) or (0.5, 0.5) for arm in range(len(state.pulls))])
        scales = 1.0 if state.known.scales is None else state.known.scales
        return means[:, 0], means[:, 1] * scales

    def feature_slopes(self, state: S) -> FeatureSlopes | None:
        """The effects of the features of requests; None if the policy does not say."""
        return None

    watches_money: ClassVar[bool] = False
    """Whether it looks at the money left: `set_remaining` tells it."""

    def set_remaining(self, state: S, money: float, requests_used: int) -> None:
        """Take note of the money left and of the number of requests used up, with or without feedback."""

    @property
    def spec(self) -> str:
        """The policy as text, such as ``epsilon-first:epsilon=0.2``; defaults are left out."""
        changed = [f for f in fields(self) if getattr(self, f.name) != f.default]
        return self.name + "".join(
            (":" if i == 0 else ",") + f"{f.name}={written(getattr(self, f.name))}" for i, f in enumerate(changed)
        )

    def select_knowledge(self, known: Knowledge) -> Knowledge:
        """The part of the knowledge that this policy needs, checked."""
        chosen = {name: getattr(known, name) for name in sorted(self.needs)}
        for name, value in chosen.items():
            if _is_default(name, value):
                if name == "horizon":  # as many requests as can be paid
                    continue
                raise MissingKnowledge(f"{self.name} must know {KNOWLEDGE[name]}; pass {name}=..., positive and finite")
            if not np.all(value > SMALLEST_KNOWN) or not np.all(np.isfinite(value)):
                raise BadParameter(f"{name} is {value}; {self.name} needs it positive and finite")
            chosen[name] = value if name == "costs" else float(value)
        return Knowledge(**chosen)

    def positive(self, **values: float | None) -> None:
        """Refuse hyper-parameters that are not positive numbers of a sane size; None means: not given."""
        self.between(SMALLEST_PARAMETER, LARGEST_PARAMETER, **values)

    def between(self, low: float, high: float, **values: float | None) -> None:
        """Refuse hyper-parameters outside a range of positive numbers; None means: not given."""
        for name, value in values.items():
            if value is not None and not low <= number(value) <= high:
                raise BadParameter(
                    f"{self.name}: {name} is {value!r:.40}; use a positive number from {low:g} to {high:g}"
                )


@dataclass(frozen=True)
class Request:
    """A request, before its arm is chosen.

    segment      the number of its segment
    prices       an estimate of what each arm will cost, in units of the largest cost; None if there is none
    features     its features, as many as `Knowledge.features` says, for policies that look at them; None if unknown
    future_arms  the arms that requests to come may have; None if those are the active ones, as this request may have
    """

    segment: int = 0
    prices: Array | None = None
    future_arms: ArmMask | None = None
    features: Array | None = None


NO_REQUEST_INFO = Request()
"""An empty request: no segment, prices or features."""


@dataclass(frozen=True)
class RequestPolicy(Policy[S]):
    """A policy that looks at the request."""

    looks_at_requests = True
    random_choices = True

    @property
    def for_requests(self) -> RequestPolicy[S]:
        return self

    def work(self, arms: int, columns: int, draws: int, priced: bool) -> ChoiceWork:
        cells = arms * columns
        return ChoiceWork(chosen=300.0 + 0.8 * cells + (5.0 + 0.15 * cells) * draws)

    def check_forgetting(self, forget: float | None) -> None:
        """Refuse a share by which each request makes earlier outcomes count less, if it is out of range."""
        if forget is not None and not 0.0 <= forget <= FORGETTING_MAX:
            raise BadParameter(f"{self.name}: forget is {forget}; use a share from 0 to {FORGETTING_MAX}")

    @abstractmethod
    def segments(self, state: S) -> int:
        """How many segments there are."""

    @abstractmethod
    def open_segment(self, state: S) -> int:
        """One more segment, by its number."""

    def make_segments(self, state: S, count: int) -> bool:
        while self.segments(state) < count:
            self.open_segment(state)
        return True

    @abstractmethod
    def choose(self, state: S, rng: np.random.Generator, request: Request = NO_REQUEST_INFO) -> int | None:
        """The arm to pull for this request, or None when the policy can afford none."""

    @abstractmethod
    def observe(
        self,
        state: S,
        arm: int,
        reward: float,
        cost: float,
        rng: np.random.Generator,
        request: Request = NO_REQUEST_INFO,
    ) -> None:
        """Learn from one pull for this request."""


def written(value: Any) -> str:
    """A hyper-parameter as text: a number, or pairs of numbers.

    >>> written(0.25), written(((0.5, 0.5), (2.0, 8.0)))
    ('0.25', '0.5/0.5+2/8')
    """
    if isinstance(value, tuple):
        return "+".join("/".join(str(float(number)).removesuffix(".0") for number in pair) for pair in value)
    return str(float(value))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.to_dict() if isinstance(value, Knowledge) else value


def first_pull(state: State) -> int | None:
    """The next arm that has not been offered its first pull, or None; arms with a history need none."""
    while state.first_pulls_done < len(state.pulls):
        arm = state.first_pulls_done
        state.first_pulls_done += 1
        if state.pulls[arm] == 0 and state.active[arm]:
            return arm
    return None


def best(score: Array, rng: np.random.Generator) -> int | None:
    """The arm with the highest score; exact ties are broken uniformly at random; None if all are −∞."""
    arm = int(score.argmax())
    top = score[arm]
    if top == -np.inf:
        return None
    ties = (score == top).nonzero()[0]
    if len(ties) == 1:
        return arm
    if len(ties) == 0:  # argmax takes NaN for the largest, and NaN equals nothing
        raise NotANumber(f"the score of arm {arm} is not a number; fix the policy so that every score is a number")
    return int(ties[rng.integers(len(ties))])
