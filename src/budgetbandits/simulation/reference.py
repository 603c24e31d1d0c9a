"""The reference simulator: any policy, any problem, one round at a time. It is the specification.

The rules of the game. Play goes on while something is left of the budget. A pull that costs more than is left ends the
game and its reward is not counted. With a horizon of T requests the game also ends after T pulls. A policy that does
not need to know the budget is played once, to the largest one, and the games at all smaller budgets are read off on the
way.

Where players know the largest cost of every arm, policies with `own_scales` learn costs as shares of it.

In a stream each request belongs to one of the parts: its arms can answer it, by their laws in this part. A policy that
looks at requests sees their segment. Where requests have features, outcomes follow these; a policy that uses features
sees them, and others play as if there were none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from budgetbandits.errors import BadParameter, RoundLimit
from budgetbandits.numerics.arrays import Array
from budgetbandits.policies.base import Knowledge, Policy, Request, State
from budgetbandits.problems.linear import LinearStream
from budgetbandits.problems.problem import Problem
from budgetbandits.problems.streams import Environment, RequestStream
from budgetbandits.simulation.common_outcomes import CommonOutcomes

Game = tuple[float, float, int, NDArray[np.int64]]
"""How a game ended: reward, spend, rounds and pulls of every arm; in a stream, of every part and arm."""

TOLERANCE = 1e-9
"""Costs are floats: less than this is nothing."""


def play(
    problem: Environment,
    policy: Policy,
    budgets: Sequence[float],
    world: np.random.Generator | CommonOutcomes,
    player: np.random.Generator,
    max_rounds: int,
    horizon: float = math.inf,
    parts: NDArray[np.int64] | None = None,
    arrivals: FeatureRequests | None = None,
) -> list[Game]:
    """One game to the largest of the rising ``budgets``, and how it stood at the end of each. In a stream, ``parts``
    are the numbers of the requests' parts, or ``arrivals`` are requests with features."""
    state = policy.start(len(problem), what_is_known(problem, policy, budgets[-1], horizon))
    arms = [[Pulls(draw) for draw in of_part] for of_part in draws(problem, world)]
    requests = requests_of(problem, policy, state)
    scales = problem.scales if policy.own_scales else None
    if scales is not None:
        state.known = replace(state.known, scales=scales)
    pulls = np.zeros((len(arms), len(problem)), dtype=np.int64)
    part = -1 if isinstance(problem, RequestStream) else 0
    reward = spend = drift = 0.0
    rounds = 0
    ended: list[Game] = []
    while len(ended) < len(budgets):
        if rounds == max_rounds:
            raise round_limit(policy, rounds, budgets[len(ended)], f"{budgets[len(ended)] - spend:g}")
        if parts is not None and isinstance(problem, RequestStream) and rounds < horizon and part != parts[rounds]:
            part = int(parts[rounds])
            state.active = problem.available_arms[part].copy()
        if arrivals is not None and rounds < horizon:
            requests[part] = arrivals.following(policy)
        arm = policy.choose(state, player, *requests[part]) if rounds < horizon else None
        if arm is None:  # the policy can afford nothing more, or every request is answered
            ended.extend((reward, spend, rounds, counted(problem, pulls)) for _ in budgets[len(ended) :])
            break
        earned, paid = arms[part][arm].pull() if arrivals is None else arrivals.pull(arm)
        seen = paid if scales is None else paid / float(scales[arm])
        policy.observe(state, arm, earned, seen, player, *requests[part])
        pulls[part, arm] += 1
        rounds += 1
        while len(ended) < len(budgets) and spend + paid >= budgets[len(ended)] - TOLERANCE:
            fits = spend + paid <= budgets[len(ended)] + TOLERANCE
            ended.append((reward + earned * fits, spend + paid * fits, rounds, counted(problem, pulls)))
        reward += earned
        # compensated, so that a hundred thousand costs of 0.1 are 10,000
        owed = paid - drift
        total = spend + owed
        drift = (total - spend) - owed
        spend = total
    return ended


def round_limit(policy: Policy, rounds: int, budget: float, left: str = "part") -> RoundLimit:
    """The error of a game that takes more rounds than it may."""
    return RoundLimit(
        f"{policy.spec} has played {rounds:,} rounds and {left} of a budget of {budget:g} is left; raise max_rounds "
        f"(--max-rounds) or lower the budget"
    )


def counted(problem: Environment, pulls: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pulls by part and arm; of a problem, which is a single part, by arm."""
    return pulls.copy() if isinstance(problem, RequestStream) else pulls[0].copy()


def requests_of(problem: Environment, policy: Policy, state: State) -> list[tuple[Request, ...]]:
    """The requests of each part, as a policy that looks at requests sees them; other policies see nothing."""
    if not isinstance(problem, RequestStream):
        return [()]
    if not policy.make_segments(state, len(problem.segments)):
        return [()] * len(problem.parts)
    return [(Request(part % len(problem.segments), future_arms=arms),) for part, arms in enumerate(problem.future_arms)]


class ReferencePlayer:
    """A single game to the largest budget, or one game for each if the policy must know it."""

    def __init__(
        self, problem: Environment, policy: Policy, budgets: Sequence[float], horizon: float = math.inf
    ) -> None:
        self._problem = problem
        self._policy = policy
        self._budgets = budgets
        self._horizon = horizon

    def play(self, seed: np.random.SeedSequence, max_rounds: int, outcomes: CommonOutcomes | None = None) -> list[Game]:
        if self._policy.anytime:
            return self._game(self._budgets, seed, max_rounds, outcomes)
        return [game for b in self._budgets for game in self._game([b], own_seed(seed, b), max_rounds, outcomes)]

    def _game(
        self, budgets: Sequence[float], seed: np.random.SeedSequence, max_rounds: int, outcomes: CommonOutcomes | None
    ) -> list[Game]:
        world, player, order = (np.random.default_rng(child) for child in seed.spawn(3))
        problem = self._problem
        parts = problem.sequence(int(self._horizon), order) if isinstance(problem, RequestStream) else None
        arrivals = FeatureRequests(problem, order, world) if isinstance(problem, LinearStream) else None
        return play(
            problem, self._policy, budgets, outcomes or world, player, max_rounds, self._horizon, parts, arrivals
        )


def own_seed(seed: np.random.SeedSequence, budget: float) -> np.random.SeedSequence:
    """The randomness of the game at one budget: the same whatever other budgets are played."""
    identity = int.from_bytes(np.float64(budget).tobytes(), "little")
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, identity))


def what_is_known(problem: Environment, policy: Policy, budget: float, horizon: float = math.inf) -> Knowledge:
    """Exactly what the policy declares that it needs, and nothing else."""
    if not isinstance(problem, Problem) and "costs" in policy.needs:
        raise BadParameter(f"{policy.spec} must know every arm's cost, which in a stream changes; leave it out")
    if isinstance(problem, RequestStream):
        truth = Knowledge(budget, horizon, cost_floor=float(problem.cost_means[problem.available_arms].min()))
    else:
        truth = Knowledge(budget, horizon, float(problem.cost_means.min()), problem.cost_means)
    knowledge = Policy.select_knowledge(policy, truth)  # whatever the policy makes of it
    if isinstance(problem, LinearStream) and policy.uses_features:
        return replace(knowledge, features=len(problem.features))
    return knowledge


Draw = Callable[[int], tuple[Array, Array]]
"""Gives the rewards and costs of a number of pulls of one arm."""


def draws(problem: Environment, world: np.random.Generator | CommonOutcomes) -> list[list[Draw]]:
    """One for each part and arm; a problem is a single part."""
    if isinstance(world, CommonOutcomes):
        following = world.reader()
        return [[partial(following, arm) for arm in range(len(problem))]]
    if isinstance(problem, Problem):
        return [[partial(arm.sample, world) for arm in problem.arms]]
    if isinstance(problem, LinearStream):
        return [[]]  # one request at a time, by its features
    return [
        [partial(arms[name].sample, world) if name in arms else _nothing for name in problem.names]
        for arms in ({arm.name: arm for arm in part.problem.arms} for part in problem.parts)
    ]


def _nothing(size: int) -> tuple[Array, Array]:
    raise BadParameter("a policy has pulled an arm that is not offered; let choose name one of state.active")


class FeatureRequests:
    """The requests of a stream with features, one after the other, and what arms pay and cost for the last of them."""

    def __init__(self, stream: LinearStream, order: np.random.Generator, world: np.random.Generator) -> None:
        self._stream, self._world = stream, world
        self._rows = stream.requests(order)
        self._row: Array = np.zeros(len(stream.features))

    def following(self, policy: Policy) -> tuple[Request, ...]:
        """The next request, as the policy sees it."""
        self._row = next(self._rows)
        return (Request(features=self._row),) if policy.uses_features else ()

    def pull(self, arm: int) -> tuple[float, float]:
        """Draw the outcome of an arm for the present request."""
        return self._stream.outcome(arm, self._row, self._world)


LARGEST_BATCH = 1024
"""Most outcomes of an arm that are drawn at once."""


def batch_size(before: int) -> int:
    """How many outcomes of an arm are drawn at once; ``before`` is the size of the batch before."""
    return min(max(16, 2 * before), LARGEST_BATCH)


class Pulls:
    """The outcomes of one arm, drawn in growing batches: a call for each pull would cost more than the pull."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._next = 0
        self._rewards: Array = np.zeros(0)
        self._costs: Array = np.zeros(0)

    def pull(self) -> tuple[float, float]:
        """The next outcome of the arm."""
        if self._next == len(self._rewards):
            self._rewards, self._costs = self._draw(batch_size(self._next))
            self._next = 0
        self._next += 1
        return float(self._rewards[self._next - 1]), float(self._costs[self._next - 1])
