"""Play policies on recorded outcomes: what each arm brought and cost for each request.

The rules. Requests come in a shuffled order, and there is a budget for all of them. For each the policy names an arm
among those that were recorded and whose price fits the money left, as a limit on the price of an answer would have it;
so no policy spends more than there is. It sees the outcome of that arm alone. A request for which no arm fits stays
unanswered and earns 0. Policies that look at segments or features see those of the request; others do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from budgetbandits.allocation.learner import Learner
from budgetbandits.allocation.propensity import Chances, chances
from budgetbandits.errors import BadParameter
from budgetbandits.numerics.arrays import ArmMask, Array
from budgetbandits.numerics.fluid import arms_at_rate, best_mix
from budgetbandits.policies.base import NO_REQUEST_INFO, Knowledge, Policy, Request
from budgetbandits.policies.paced.statistics import SMALLEST_COST
from budgetbandits.problems.records import ReplayTable
from budgetbandits.validation import integer, positive


@dataclass(frozen=True)
class ReplayResult:
    """One policy at one budget: an entry for each order.

    reward      mean reward of a request
    used        share of the budget that was spent
    unanswered  requests that no arm could be paid for
    """

    policy: str
    budget_per_request: float
    reward: Array
    used: Array
    unanswered: Array


def replay(
    table: ReplayTable,
    policy: Policy,
    budget_per_request: float,
    orders: int = 20,
    seed: int = 0,
    *,
    learn_on: ReplayTable | None = None,
    progress: Callable[[int], None] | None = None,
) -> ReplayResult:
    """Play a policy on the table in several shuffled orders. With ``learn_on`` it plays that table first, at the same
    budget per request, and keeps what it has learned.

    >>> from budgetbandits import parse_policy
    >>> from budgetbandits.problems.records import read_table
    >>> rows = [(n, arm, r, c) for n in range(200) for arm, r, c in (("small", 0.5, 0.001), ("large", 0.9, 0.1))]
    >>> columns = dict(zip(("request", "arm", "reward", "cost"), zip(*rows)))
    >>> played = replay(ReplayTable.from_records(read_table(columns)), parse_policy("bts-paced"), 0.05, orders=3)
    >>> played.reward.round(2).tolist(), bool(played.used.max() <= 1.0)
    ([0.7, 0.7, 0.7], True)
    """
    positive("budget_per_request", budget_per_request, hint=", in the table's units")
    integer("orders", orders, 1)
    integer("seed", seed)
    if learn_on is not None:
        _check_alike(learn_on, table)
    tables = [table] if learn_on is None else [learn_on, table]
    rows = []
    for order in range(orders):
        rows.append(_one_order(tables, policy, budget_per_request, np.random.SeedSequence(seed, spawn_key=(order,))))
        if progress is not None:
            progress(order + 1)
    reward, used, unanswered = np.array(rows).T
    return ReplayResult(policy.spec, budget_per_request, reward, used, unanswered)


def _check_alike(learn_on: ReplayTable, table: ReplayTable) -> None:
    _check_same("arms", learn_on.arms, table.arms, "record the same arms in both")
    if table.segments[: len(learn_on.segments)] != learn_on.segments:
        raise BadParameter(
            "the two tables number their segments otherwise; read the second with segments=first.segments"
        )
    _check_same("features", learn_on.feature_names, table.feature_names, "read both with the same, or without")


def _check_same(what: str, names: tuple[str, ...], others: tuple[str, ...], remedy: str) -> None:
    if names != others:
        apart = sorted(set(names) ^ set(others)) or ["in another order"]
        raise BadParameter(f"the two tables have different {what} ({', '.join(apart)}); {remedy}")


def fluid_reward_of(table: ReplayTable, budget_per_request: float) -> float:
    """The mean reward of the best mix, the means of each segment known: one mix for all requests of a segment for which
    the same arms were recorded, because no other arm can answer them."""
    recorded = ~np.isnan(table.costs)
    alike, kind = np.unique(np.column_stack([table.segment, recorded]), axis=0, return_inverse=True)
    weight = (np.bincount(kind.ravel()) / len(table)).tolist()
    # the program divides by costs: an arm that is free costs next to nothing
    least = SMALLEST_COST * (float(np.nanmax(table.costs)) or 1.0)
    rewards, costs = [], []
    for segment, *could in alike.tolist():
        of_segment = table.segment == segment
        rewards.append(np.where(could, _means(table.rewards[of_segment]), -np.inf).tolist())
        costs.append(np.maximum(_means(table.costs[of_segment]), least).tolist())
    mix = best_mix(rewards, costs, weight, budget_per_request)
    spend = mix.spend(costs, weight)
    return mix.spend(rewards, weight) * min(1.0, budget_per_request / spend)


def hindsight_reward_of(table: ReplayTable, budget_per_request: float) -> float:
    """The mean reward of the best arm for each request, all recorded rewards and prices known beforehand.

    It is the value of the program of `fluid` in which each request has a part of its own, by its dual: what the money
    is worth at the price that solves it, and the best reward less cost of each request at that price.
    """
    recorded = ~np.isnan(table.costs)
    least = SMALLEST_COST * (float(np.nanmax(table.costs)) or 1.0)
    rewards = np.where(recorded, table.rewards, -np.inf)
    costs = np.where(recorded, np.maximum(table.costs, least), 1.0)
    weight = np.full(len(table), 1.0 / len(table))
    price = float(arms_at_rate(rewards[None], costs[None], weight, budget_per_request, 0).price[0])
    return price * budget_per_request + float((rewards - price * costs).max(axis=1).mean())


def _means(values: Array) -> Array:
    """The mean of each arm; 1 for an arm that was not recorded."""
    seen = ~np.isnan(values)
    totals = np.where(seen, values, 0.0).sum(axis=0)
    return np.asarray(np.where(seen.any(axis=0), totals / np.maximum(seen.sum(axis=0), 1), 1.0))


LOG_COLUMNS = ("arm", "reward", "cost", "propensity", "segment", "arms", "features", "failed")
"""Columns of a log of decisions."""


@dataclass
class DecisionLog:
    """The decisions of one order, column by column, with their propensities, estimated from ``draws`` draws each.

    It is a log that `off_policy.read_log` takes.
    """

    table: ReplayTable
    draws: int
    rng: np.random.Generator
    columns: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in LOG_COLUMNS})

    def add(self, chances: Chances, arm: int, among: ArmMask, number: int, reward: float, cost: float) -> None:
        """Add the decision for the request of this number."""
        names, segments, features = self.table.arms, self.table.segments, self.table.feature_names
        row = {
            "arm": names[arm], "reward": reward, "cost": cost,
            "propensity": chances.of(arm),
            "segment": segments[self.table.segment[number]] if segments else None,
            "arms": json.dumps([names[arm] for arm in np.flatnonzero(among)]),
            "features": json.dumps(dict(zip(features, self.table.features[number].tolist(), strict=True)))
            if features else None,
            "failed": 0,
        }  # fmt: skip
        for name, value in row.items():
            self.columns[name].append(value)


def logged(
    table: ReplayTable,
    policy: Policy,
    budget_per_request: float,
    draws: int = 200,
    seed: int = 0,
    requests: Sequence[int] | None = None,
    learn_on: ReplayTable | None = None,
) -> dict[str, list[Any]]:
    """The decisions of a policy that is played on the table once, in a shuffled order, or for these ``requests``.

    It has learned on the other table before, if there is one.
    """
    if learn_on is not None and requests is not None:
        raise BadParameter("the requests are those of one table; leave out learn_on, or requests")
    play, extra = np.random.SeedSequence(seed, spawn_key=(0,)), np.random.SeedSequence(seed, spawn_key=(1,))
    log = DecisionLog(table, draws, np.random.default_rng(extra))
    tables = [table] if learn_on is None else [learn_on, table]
    _one_order(tables, policy, budget_per_request, play, log, requests)
    return log.columns


def _one_order(
    tables: Sequence[ReplayTable],
    policy: Policy,
    budget_per_request: float,
    seed: np.random.SeedSequence,
    log: DecisionLog | None = None,
    requests: Sequence[int] | None = None,
) -> tuple[float, float, int]:
    """Results on the last table: reward for each request, share of the budget used, requests unanswered."""
    shuffle, player = (np.random.default_rng(child) for child in seed.spawn(2))
    arms = len(tables[-1].arms)
    caps = np.nanmax(np.vstack([table.costs for table in tables]), axis=0, initial=0.0)
    top = float(caps.max()) or 1.0
    caps = np.where(caps > 0.0, caps, top)
    reward_max = max(float(np.nanmax(table.rewards)) for table in tables) or 1.0
    spent, asked = 0.0, 0
    learner = None
    for table in tables:
        order = shuffle.permutation(len(table)).tolist() if requests is None else list(requests)
        money = budget_per_request * len(order)
        if learner is None:
            features = len(table.feature_names) if policy.uses_features else 0
            knowledge = Knowledge(budget=money / top, horizon=float(len(order)), features=features)
            learner = Learner.new(policy, arms, knowledge, scales=caps / top)
            scale = caps if policy.own_scales else np.full(arms, top)
        else:
            learner.set_budget((spent + money) / top)
            learner.set_horizon(float(asked + len(order)))
        game = _TableGame(learner, table, money, scale, reward_max)
        for request in order:
            game.answer(request, player, log if table is tables[-1] else None)
        spent, asked = spent + game.spent, asked + len(order) - game.unanswered
    return game.earned / len(order), game.spent / money, game.unanswered


class _TableGame:
    """A learner on one table, with money of its own."""

    def __init__(self, learner: Learner, table: ReplayTable, money: float, scale: Array, reward_max: float) -> None:
        self._learner, self._table, self._money = learner, table, money
        self._scale, self._reward_max = scale, reward_max
        self._by_request = learner.policy.make_segments(learner.state, len(table.segments))
        self.spent = self.earned = 0.0
        self.unanswered = 0

    def _request(self, number: int) -> Request:
        """The request as the policy sees it."""
        policy, table = self._learner.policy, self._table
        if not self._by_request:
            return NO_REQUEST_INFO
        features = table.features[number] if policy.uses_features and table.feature_names else None
        return Request(int(table.segment[number]), features=features)

    def answer(self, number: int, rng: np.random.Generator, log: DecisionLog | None = None) -> None:
        """Choose for a request, and learn what came of it; the choice is added to ``log`` if there is one."""
        costs, learner = self._table.costs[number], self._learner
        fits = costs <= self._money - self.spent  # NaN, an arm not recorded, does not
        request = self._request(number)
        among = learner.state.active if fits.all() else fits
        likely = chances(learner, log.rng, log.draws, among, request) if log is not None and fits.any() else None
        arm = learner.choose(rng, among, request) if fits.any() else None
        if arm is None:
            self.unanswered += 1
            return
        cost, reward = float(costs[arm]), float(self._table.rewards[number, arm])
        if log is not None and likely is not None:
            log.add(likely, arm, among, number, reward, cost)
        self.spent += cost
        self.earned += reward
        learner.learn(arm, reward / self._reward_max, cost / float(self._scale[arm]), rng, request)
