"""Paced Thompson sampling: a budget that must last for so many requests.

With money B for T requests two things are scarce, and the best ratio is the wrong goal where money is left over at the
end. Before each request the policy draws plausible means θr and θc of every arm, as BTS does, takes

    rate = money not spent yet / requests not answered yet,

and solves the program of `fluid` for the drawn means: of all mixes of arms that cost ``rate`` on average, the one that
brings most. It pulls what that mix says: one arm, or one of two by lot. Without a horizon, T = ∞ and rate = 0: then it
is the rule of BTS, argmax θr/θc. A request counts as answered when its feedback comes, as its cost does. The horizon is
often an estimate; it may be corrected on the way, and past its end all that is left may be spent on the next request.

Posteriors. What is kept of an arm are the number, the sums and the sums of squares of its rewards and costs. θ is drawn
from Beta(κm, κ(1 − m)), where m and s² are the mean and variance of the outcomes together with one 0 and one 1, and

    κ = (n + 2) m(1 − m) / s².

For outcomes 0 and 1, s² = m(1 − m), and that is the Beta(S + 1, F + 1) of BTS. Others vary less, and their posterior is
narrower. Costs begin with ¼ and ¾ in the place of 0 and 1: the largest cost of an arm says how dear it is, and to hope
that it is nearly free would cost as much as a small budget holds, again and again. With ``trials=1`` the posteriors are
BTS's own: uniform priors, and a Bernoulli trial for each outcome between 0 and 1.

Segments. Requests of several segments, such as the features of a product, have posteriors of their own and one price on
money. A segment starts from what all others know, as if it had seen w outcomes of theirs: w is the variance of an arm's
outcomes within segments divided by that of its means between them, as far as is known, starting from ``pooling``. It
starts no surer than 20 outcomes 0 and 1 would make it, and with no posterior whose mass is at 0 or 1 (`pooling.py`).

Drift. With ``forget`` each outcome of an arm makes its earlier ones count so much less: of 0.002, an arm remembers its
last 500 outcomes or so. An arm that is not pulled forgets nothing.

Estimates. Where the price of each arm is estimated before the choice, how many times its estimate a cost is gets
learned too. That number has no upper end, so its mean is drawn from a Gamma law, with the mean m and the shape
(n + 2) m²/s² of the outcomes together with ½ and 3/2. The choice compares what the arms will cost this time.

Ferreira, Simchi-Levi, Wang: Online Network Revenue Management Using Thompson Sampling. Operations Research 66, 2018:
posteriors of the true prior and 0/1 outcomes; a Bayesian regret of O(√(T K ln K)). Nothing is proven for segments,
estimates or κ > n + 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from budgetbandits.arrays import Array
from budgetbandits.errors import BadParameter, BadState
from budgetbandits.fluid import Mix, at_price, best_mix
from budgetbandits.fluid_draws import arms_at_rate
from budgetbandits.policies.base import PLAIN, Request, RequestPolicy, State
from budgetbandits.policies.pooling import MULTIPLES, Prior, pooled
from budgetbandits.policies.sampling import trial

PAID, COUNT, REWARD, COST, REWARD_SQUARED, COST_SQUARED, PRICED, RELATIVE, RELATIVE_SQUARED = range(9)
"""The rows of `Paced.sums`: what was paid; what is learned of rewards and costs; of costs by twice their estimate."""

SMALLEST_COST = 1e-12
"""A drawn cost is never 0; rounding might make it so."""

SMALLEST_VARIANCE = 1e-9
"""Of the largest variance there can be with that mean: the outcomes of an arm may all be alike."""

SQUARES = np.array([1.0, 0.625])[:, None, None]
"""The sums of the squares of the two outcomes that rewards and costs begin with: 0 and 1; ¼ and ¾."""

MOST_POOLING, MOST_FORGETTING = 1e6, 0.5

MOST_RELATIVE = 50.0
"""A cost counts as at most a hundred times its estimate: one such estimate must not outweigh all others."""


def beta_parameters(count: Any, total: Any, squares: Any, weight: Any, mean: Any, square: Any) -> tuple[Any, Any]:
    """The Beta law of a mean, from the number, the sum and the squares of outcomes, beside ``weight`` others with this
    mean and mean square. Numbers or arrays; engines compile it for numbers."""
    n = count + weight
    middle = (total + weight * mean) / n
    most = middle * (1.0 - middle)
    variance = np.maximum((squares + weight * square) / n - middle * middle, SMALLEST_VARIANCE * most)
    kappa = n * most / variance
    return kappa * middle, kappa * (1.0 - middle)


def gamma_parameters(count: Array, total: Array, squares: Array, prior: Prior) -> tuple[Array, Array]:
    """The shape and the scale of the Gamma law of a mean without an upper end, from the same."""
    n = count + prior.weight
    middle = (total + prior.weight * prior.mean) / n
    variance = (squares + prior.weight * prior.square) / n - middle * middle
    shape = n / np.maximum(variance / (middle * middle), SMALLEST_VARIANCE)
    return shape, middle / shape


def note(sums: Any, reward: float, cost: float, rng: np.random.Generator, trials: float, forget: float) -> None:
    """Add one outcome to the first six sums of an arm. Engines compile it, too."""
    sums[PAID] += cost
    if trials > 0.0:
        reward, cost = trial(reward, rng), trial(cost, rng)
    if forget > 0.0:
        sums[COUNT:PRICED] *= 1.0 - forget
    sums[COUNT] += 1.0
    sums[REWARD] += reward
    sums[COST] += cost
    sums[REWARD_SQUARED] += reward * reward
    sums[COST_SQUARED] += cost * cost


@dataclass
class Paced(State):
    """Sums of outcomes as (row, segment, arm), and how many of the pulls were not made with this budget."""

    sums: Array = field(default_factory=lambda: np.zeros((9, 1, 0)))
    past_pulls: int = 0

    @property
    def segments(self) -> int:
        return int(self.sums.shape[1])

    @property
    def scales(self) -> Any:
        """What a cost of 1 is for each arm, in units of the largest: 1, or the arm's own cap."""
        return self.known.get("scales", 1.0)

    @property
    def paid(self) -> float:
        """What this budget has paid."""
        return float((self.sums[PAID] * self.scales).sum())

    @property
    def left(self) -> float:
        """What is left of the budget."""
        return max(float(self.known["budget"]) - self.paid, 0.0)

    @property
    def rate(self) -> float:
        """Money for each request that is still to come; 0 without a horizon."""
        gone = int(self.pulls.sum()) - self.past_pulls + int(self.known.get("failed", 0))
        return self.left / max(float(self.known["horizon"]) - gone, 1.0)

    def widen(self, segments: int) -> None:
        """Make room for this many segments."""
        if segments > self.segments:
            more = np.zeros((len(self.sums), segments - self.segments, len(self.pulls)))
            self.sums = np.concatenate([self.sums, more], axis=1)

    def filled(self, values: Mapping[str, Any]) -> Self:
        try:
            self.widen(np.shape(values["sums"])[1])
        except (KeyError, IndexError, ValueError):
            raise BadState("'sums' has no segments; the saved state is damaged") from None
        return super().filled(values)


@dataclass(frozen=True)
class PacedThompson(RequestPolicy):
    """Thompson sampling for a budget that must last for so many requests, with segments and price estimates.

    >>> policy, rng = PacedThompson(), np.random.default_rng(1)
    >>> state = policy.start(2, {"budget": 300.0, "horizon": 1000.0})
    >>> for _ in range(1000):
    ...     arm = policy.choose(state, rng)
    ...     policy.observe(state, arm, reward=(0.2, 0.8)[arm], cost=(0.1, 0.5)[arm], rng=rng)
    >>> state.pulls.tolist(), round(state.left, 6)
    ([500, 500], 0.0)
    """

    name: ClassVar[str] = "bts-paced"
    own_scales: ClassVar[bool] = True
    pooling: float = 8.0
    trials: float = 0.0
    forget: float = 0.0

    def __post_init__(self) -> None:
        self.between(1.0, MOST_POOLING, pooling=self.pooling)
        if not 0.0 <= self.forget <= MOST_FORGETTING:
            raise BadParameter(f"{self.name}: forget is {self.forget}; use a share from 0 to {MOST_FORGETTING}")
        if self.trials not in (0.0, 1.0):
            raise BadParameter(f"{self.name}: trials is {self.trials}; use 1 for Bernoulli trials, 0 for none")

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"budget", "horizon"})

    def start(self, arms: int, known: Mapping[str, Any]) -> Paced:
        return Paced(
            active=np.ones(arms, dtype=bool),
            pulls=np.zeros(arms, dtype=np.int64),
            known=self.take(known),
            sums=np.zeros((9, 1, arms)),
        )

    def one_more(self, state: State, known: Mapping[str, Any]) -> Paced:
        assert isinstance(state, Paced)
        arm = self.start(1, known)
        arm.widen(state.segments)
        return arm

    def segments(self, state: State) -> int:
        assert isinstance(state, Paced)
        return state.segments

    def open_segment(self, state: State) -> int:
        assert isinstance(state, Paced)
        state.widen(state.segments + 1)
        return state.segments - 1

    def choose(self, state: State, rng: np.random.Generator, request: Request = PLAIN) -> int | None:
        assert isinstance(state, Paced)
        if not state.active.any():
            return None
        arms = np.flatnonzero(state.active)
        sums = state.sums if len(arms) == len(state.active) else state.sums[:, :, arms]
        scales = np.broadcast_to(state.scales, state.pulls.shape)[arms]
        first = 1.0 if self.trials else SQUARES
        means = self.draw(sums[COUNT], sums[REWARD:REWARD_SQUARED], sums[REWARD_SQUARED:PRICED], first, rng)
        reward, cost = means[0].tolist(), (means[1] * scales).tolist()
        answered = sums[COUNT].sum(axis=1) + 1.0
        mix = best_mix(reward, cost, (answered / answered.sum()).tolist(), state.rate)
        if request.prices is not None:
            here = (2.0 * request.prices[arms] * self.draw_relative(sums[PRICED:], rng)[request.segment]).tolist()
            return int(arms[at_price(reward[request.segment], here, mix.price)])
        return int(arms[_drawn(mix, request.segment, rng)])

    def choices(
        self, state: State, rng: np.random.Generator, draws: int, request: Request = PLAIN
    ) -> NDArray[np.int64]:
        """What `choose` would name, so many times over: the same law, drawn all at once."""
        assert isinstance(state, Paced)
        arms = np.flatnonzero(state.active)
        sums = state.sums[:, :, arms]
        first = 1.0 if self.trials else SQUARES
        shapes = self.shapes(sums[COUNT], sums[REWARD:REWARD_SQUARED], sums[REWARD_SQUARED:PRICED], first)
        means = _means(rng.beta(*shapes, size=(draws, *shapes[0].shape)))
        answered = sums[COUNT].sum(axis=1) + 1.0
        cost = means[:, 1] * np.broadcast_to(state.scales, state.pulls.shape)[arms]
        chosen, price = arms_at_rate(
            means[:, 0], cost, answered / answered.sum(), state.rate, request.segment, rng.random(draws)
        )
        if request.prices is not None:
            here = 2.0 * request.prices[arms] * self.draw_relative(sums[PRICED:], rng, draws)[:, request.segment]
            chosen = (means[:, 0, request.segment] - price[:, None] * here).argmax(axis=1)
        return np.asarray(arms[chosen])

    def draw(self, count: Array, total: Array, squares: Array, first: float | Array, rng: np.random.Generator) -> Array:
        """Plausible means of every segment and arm, from the number, the sum and the squares of outcomes as (segment,
        arm), and the squares of the first two; sums of several kinds of outcome have a further axis in front."""
        return _means(rng.beta(*self.shapes(count, total, squares, first)))

    def shapes(self, count: Array, total: Array, squares: Array, first: float | Array) -> tuple[Array, Array]:
        """The parameters of the Betas that the means are drawn from."""
        return beta_parameters(count, total, squares, *pooled(count, total, squares, first, self.pooling))

    def draw_relative(self, sums: Array, rng: np.random.Generator, draws: int | None = None) -> Array:
        """Plausible means of costs as shares of twice their estimate, from the last three rows of sums."""
        count, total, squares = sums
        prior = pooled(count, total, squares, float(SQUARES[1, 0, 0]), self.pooling, MULTIPLES)
        shape, scale = gamma_parameters(count, total, squares, prior)
        return _means(rng.gamma(shape, scale, size=None if draws is None else (draws, *shape.shape)))

    def relative(self, cost: float, price: float) -> float:
        """A cost as a share of twice its estimate."""
        return min(cost / (2.0 * price), MOST_RELATIVE)

    def observe(
        self,
        state: State,
        arm: int,
        reward: float,
        cost: float,
        rng: np.random.Generator,
        request: Request = PLAIN,
    ) -> None:
        assert isinstance(state, Paced)
        state.pulls[arm] += 1
        sums = state.sums[:, request.segment, arm]
        if request.prices is not None:
            scale = float(np.broadcast_to(state.scales, state.pulls.shape)[arm])
            relative = self.relative(cost * scale, float(request.prices[arm]))
            sums[PRICED:] = (1.0 - self.forget) * sums[PRICED:] + (1.0, relative, relative * relative)
        note(sums, reward, cost, rng, self.trials, self.forget)

    def recall(self, state: State, arm: int, pulls: int, reward: float, cost: float) -> None:
        assert isinstance(state, Paced)
        state.pulls[arm] += pulls
        # squares of numbers in [0, 1] are at most the numbers: the largest variance that the sums allow
        state.sums[COUNT:PRICED, 0, arm] += (pulls, reward, cost, reward, cost)
        state.past_pulls += pulls


def _means(drawn: Array) -> Array:
    return np.asarray(np.maximum(drawn, SMALLEST_COST))


def _drawn(mix: Mix, segment: int, rng: np.random.Generator) -> int:
    """The arm that the mix names for a request of this segment."""
    if segment == mix.mixed and mix.share > 0.0 and rng.random() < mix.share:
        return mix.upgrade
    return mix.arms[segment]
