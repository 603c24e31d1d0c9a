"""Gittins-ratio against what is Bayes-optimal, by dynamic programming: docs/measurements/findings.md.

    python benchmarks/bayes_optimal.py indices    # its index and Gittins' exact one, when every pull costs 1
    python benchmarks/bayes_optimal.py games      # Bayes regret of the optimum and of policies, two arms
    python benchmarks/bayes_optimal.py long       # regret in long games with ten arms, by simulation
    python benchmarks/bayes_optimal.py            # all three

A game has two Bernoulli arms. All four means are independent: rewards have the prior Beta(1, 1), costs Beta(2, 1). With
Beta(1, 1) for the costs even the value of one arm would be infinite. A state is what was seen of both arms,
(pulls, successes, paid) each, and the money left is the budget less what both have cost, so each state has one value.

A pull may cost nothing, so no number of pulls is certain to end a game. From some number on, every policy commits to
the arm whose ratio has the larger posterior mean, E[r] E[1/c] = (S + 1)/(C + 1), and earns that times the money left.
The optimum without that limit lies between this one and the one that is given the means then.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from scipy.special import betainc

from budgetbandits import family, simulate
from budgetbandits.experiments.statistics import student
from budgetbandits.formatting.numbers import estimate, number
from budgetbandits.numerics.arrays import Array
from budgetbandits.numerics.divergence import largest_weighted_ratio, relative_entropy
from budgetbandits.numerics.stopping import allowed_evidence
from budgetbandits.policies import Knowledge, parse_policy
from budgetbandits.policies.gittins_ratio import GittinsRatio, scatter
from budgetbandits.policies.index import IndexPolicy
from budgetbandits.policies.thompson import BudgetedThompson

COST_PRIOR = 2.0, 1.0
ORACLE = 40.0 / 27.0
"""E[max ρ] before the first pull: F(x) = 2x/3 up to 1 and 1 − 1/(3x²) from there on, and ∫ 1 − F² = 40/27."""


# --- indices ----------------------------------------------------------------------------------------------------------


def exact_index(good: float, bad: float, horizon: int) -> float:
    """Gittins' index of a Bernoulli arm with the posterior Beta(good, bad) for this many pulls that cost 1 each.

    The rate at which the best way to try the arm and stop is worth nothing, by bisection; right to 1e-9.

    >>> round(exact_index(1, 1, 1), 6), round(exact_index(1, 1, 2), 6)  # the mean; ½ − λ + ½(⅔ − λ) = 0
    (0.5, 0.555556)
    """
    low, high = good / (good + bad), 1.0
    for _ in range(30):
        rate = (low + high) / 2.0
        value = np.zeros(horizon + 1)
        for count in range(horizon - 1, -1, -1):
            mean = (good + np.arange(count + 1)) / (good + bad + count)
            value = np.maximum(mean - rate + mean * value[1 : count + 2] + (1.0 - mean) * value[: count + 1], 0.0)
        low, high = (rate, high) if value[0] > 1e-13 else (low, rate)
    return low


STEP_SHIFT = 0.5825971579390107
"""−ζ(½)/√2π: how far a walk with normal steps stops inside of Brownian motion's boundary, in deviations of a step
(Chernoff, Annals of Mathematical Statistics 36, 1965). It is ½ for a fair coin."""


def closed_index(good: float, bad: float, horizon: float, width: float = 1.0, shift: float = 0.0) -> float:
    """The index of `gittins-ratio` where every pull is known to cost 1: the largest λ with n′ kl(p, λ) ≤ A h²/2.

    ``shift`` is taken from h, in steps of the walk: h − shift/√n′, or 0 if that is negative.
    """
    counted = good + bad
    boundary = np.sqrt(2.0 * allowed_evidence(counted / (counted + horizon))) - shift / np.sqrt(counted)
    level = width * max(boundary, 0.0) ** 2 / 2.0 / counted
    low, high = good / counted, 1.0
    for _ in range(40):
        rate = (low + high) / 2.0
        low, high = (rate, high) if relative_entropy(good / counted, rate) <= level else (low, rate)
    return low


# --- games ------------------------------------------------------------------------------------------------------------
# The first arm has n pulls, s successes and c of them paid for; the second m, r and d.


@njit
def row(pulls, n, s, r):  # type: ignore[no-untyped-def]
    """The place of (n, s, r) among the states with this many pulls of both arms."""
    return n * (n + 1) * (pulls + 1) // 2 - (n - 1) * n * (n + 1) // 3 + s * (pulls - n + 1) + r


@njit
def states_after(pulls, budget):  # type: ignore[no-untyped-def]
    """Every state with this many pulls and money left, as rows (n, s, c, m, r, d); n ≤ m, as others mirror them."""
    states = np.empty((row(pulls, pulls + 1, 0, 0) * budget * (budget + 1) // 2, 6), np.int16)
    count = 0
    for n in range(pulls // 2 + 1):
        for s in range(n + 1):
            for r in range(pulls - n + 1):
                for c in range(min(n + 1, budget)):
                    for d in range(min(pulls - n + 1, budget - c)):
                        states[count] = n, s, c, pulls - n, r, d
                        count += 1
    return states[:count]


@njit
def backward(states, budget, later, share, best):  # type: ignore[no-untyped-def]
    """The values of the states if the first arm is pulled with probability ``share`` or, for ``best``, the better one.

    ``later`` has the values after one pull more, as (row, c, d).
    """
    pulls = states[0, 0] + states[0, 3]
    values = np.zeros((row(pulls, pulls + 1, 0, 0), budget, budget))
    for place in range(len(states)):
        n, s, c, m, r, d = states[place]
        chance = 1.0 if best else share[place]
        first = second = 0.0
        if chance > 0.0:
            good, paid = (s + 1.0) / (n + 2.0), (c + 2.0) / (n + 3.0)
            hit, miss = row(pulls + 1, n + 1, s + 1, r), row(pulls + 1, n + 1, s, r)
            first = good + (1.0 - paid) * (good * later[hit, c, d] + (1.0 - good) * later[miss, c, d])
            if c + d + 1 < budget:
                first += paid * (good * later[hit, c + 1, d] + (1.0 - good) * later[miss, c + 1, d])
        if best or chance < 1.0:
            good, paid = (r + 1.0) / (m + 2.0), (d + 2.0) / (m + 3.0)
            hit, miss = row(pulls + 1, n, s, r + 1), row(pulls + 1, n, s, r)
            second = good + (1.0 - paid) * (good * later[hit, c, d] + (1.0 - good) * later[miss, c, d])
            if c + d + 1 < budget:
                second += paid * (good * later[hit, c, d + 1] + (1.0 - good) * later[miss, c, d + 1])
        value = max(first, second) if best else chance * first + (1.0 - chance) * second
        values[row(pulls, n, s, r), c, d] = values[row(pulls, m, r, s), d, c] = value
    return values


@njit
def last_values(states, budget, excess):  # type: ignore[no-untyped-def]
    """The money left times the larger mean ratio, and what that is short of the mean of the larger ratio."""
    pulls = states[0, 0] + states[0, 3]
    values = np.zeros((row(pulls, pulls + 1, 0, 0), budget, budget))
    for place in range(len(states)):
        n, s, c, m, r, d = states[place]
        larger = max((s + 1.0) / (c + 1.0), (r + 1.0) / (d + 1.0))
        value = (budget - c - d) * (larger + excess[place])
        values[row(pulls, n, s, r), c, d] = values[row(pulls, m, r, s), d, c] = value
    return values


Share = Callable[[Any, int], Array]
"""The probability that a policy pulls the first arm, in each of these states of a game with this budget."""


def game_value(budget: int, pulls: int, share: Share | None, bound: bool = False) -> float:
    """The Bayes value of the policy, or of the best one for None, that commits to an arm after this many pulls.

    For ``bound``, the means are known from then on.
    """
    states = states_after(pulls, budget)
    excess = excess_of(states, *ratio_laws(pulls, budget)) if bound else np.zeros(len(states))
    values = last_values(states, budget, excess)
    for count in range(pulls - 1, -1, -1):
        states = states_after(count, budget)
        chances = np.empty(0) if share is None else share(states, budget)
        values = backward(states, budget, values, chances, share is None)
    return float(values[0, 0, 0])


# --- laws of ratios ---------------------------------------------------------------------------------------------------

CELL, CELLS = 0.025, 320
"""The width of cells of ln θ, and how many of them; what is below e⁻⁸ is in the last."""


def ratio_laws(pulls: int, budget: int, priors: Any = ((1.0, 1.0), COST_PRIOR)) -> tuple[Any, Any]:
    """P(x = z) and P(x < z) + P(x = z)/2 of the ratio of an arm (n, s, c), as (n, s, c, z), with ln z in cells."""
    shape = pulls + 1, pulls + 1, min(pulls + 1, budget), 2 * CELLS
    mass, below = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    edges = np.exp(-CELL * np.arange(CELLS + 1))
    edges[-1] = 0.0
    for n in range(pulls + 1):
        laws = []
        for (good, bad), most in zip(priors, (n, min(n, budget - 1)), strict=True):
            count = np.arange(most + 1)[:, None]
            laws.append(np.fft.rfft(-np.diff(betainc(good + count, bad + n - count, edges)), 2 * CELLS))
        # ln z = ln r − ln c: cell j of the reward and cell k of the cost are k − j apart
        density = np.fft.irfft(np.conj(laws[0])[:, None] * laws[1], 2 * CELLS)
        density = np.maximum(np.roll(density, CELLS, axis=-1), 0.0)
        rows = n, slice(n + 1), slice(min(n, budget - 1) + 1)
        mass[rows], below[rows] = density, np.cumsum(density, axis=-1) - density / 2.0
    return mass, below


@njit(fastmath=True)
def share_of_draws(states, mass, below):  # type: ignore[no-untyped-def]
    """P(x > y) for a draw x of the first arm's ratio and y of the second's."""
    share = np.empty(len(states))
    for place in range(len(states)):
        n, s, c, m, r, d = states[place]
        share[place] = (mass[n, s, c] * below[m, r, d]).sum()
    return np.minimum(np.maximum(share, 0.0), 1.0)


@njit
def excess_of(states, mass, below):  # type: ignore[no-untyped-def]
    """E max(x, y) − max(E x, E y) = E max(y − x, 0) = ∫ P(x < z) P(y > z) dz, where x has the larger mean."""
    width = CELL * np.exp(CELL * (np.arange(2 * CELLS) - CELLS))
    excess = np.empty(len(states))
    for place in range(len(states)):
        n, s, c, m, r, d = states[place]
        if (s + 1) * (d + 1) < (r + 1) * (c + 1):
            n, s, c, m, r, d = m, r, d, n, s, c
        excess[place] = (below[n, s, c] * (1.0 - below[m, r, d]) * width).sum()
    return excess


# --- policies ---------------------------------------------------------------------------------------------------------


def shifted_gittins_ratio(
    mean_reward: Any, mean_cost: Any, pulls: Any, rounds: Any, reward_variance: Any, cost_variance: Any, left: Any,
    good: Any, bad: Any, costly: Any, free: Any, width: Any,
) -> Any:  # fmt: skip
    counted = pulls + good + bad
    reward, cost = (pulls * mean_reward + good) / counted, (pulls * mean_cost + costly) / counted
    boundary = np.sqrt(2.0 * allowed_evidence(counted / (counted + left / cost))) - STEP_SHIFT / np.sqrt(counted)
    level = width * np.maximum(boundary, 0.0) ** 2 / 2.0
    weights = counted / scatter(mean_reward, reward_variance, pulls), counted / scatter(mean_cost, cost_variance, pulls)
    return largest_weighted_ratio(reward, cost, *weights, level)


def greedy(states: Any, budget: int) -> Array:
    """Pulls the arm whose ratio has the larger mean, (S + 1)/(C + 1)."""
    ratio = (states[:, [1, 4]] + 1.0) / (states[:, [2, 5]] + 1.0)
    return np.asarray(np.heaviside(ratio[:, 0] - ratio[:, 1], 0.5))


STATES_CHECKED = 200


def index_table(policy: IndexPolicy, budget: int, pulls: int, rounds: int) -> Array:
    """The index of an arm (n, s, c) with this much money left, less one, as (n, s, c, left)."""
    shape = pulls + 1, pulls + 1, min(pulls + 1, budget)
    n, s, c = (axis.ravel() for axis in np.indices(shape))
    table = np.empty((*shape, budget))
    for left in range(1, budget + 1):
        state = policy.start(len(n), Knowledge(budget=float(left)))
        # counts that no arm can have are replaced by some that it can, and never read
        state.pulls, state.reward, state.cost = n, np.minimum(s, n).astype(float), np.minimum(c, n).astype(float)
        state.reward_squared, state.cost_squared, state.past_cost = state.reward, state.cost, state.cost.sum()
        seen = np.maximum(n, 1.0) if policy.first_pulls else n.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            index = type(policy).index(state.mean_reward, state.mean_cost, seen, float(rounds), *policy.extras(state))
        table[..., left - 1] = np.where((n == 0) & policy.first_pulls, np.inf, index).reshape(shape)
    return table


@njit
def share_of_index(states, budget, table):  # type: ignore[no-untyped-def]
    """1 where the first arm has the larger index, ½ at a tie."""
    share = np.empty(len(states))
    for place in range(len(states)):
        n, s, c, m, r, d = states[place]
        first, second = table[n, s, c, budget - c - d - 1], table[m, r, d, budget - c - d - 1]
        share[place] = 0.5 if first == second else 1.0 if first > second else 0.0
    return share


def share_of_scores(policy: IndexPolicy, states: Any, budget: int) -> Array:
    """The same, from the policy's own scores of both arms, state by state: slow, and right for any index policy."""
    share = np.empty(len(states))
    for place, (n, s, c, m, r, d) in enumerate(states.tolist()):
        state = policy.start(2, Knowledge(budget=float(budget)))
        state.pulls, state.reward, state.cost = np.array([n, m]), np.array([s, r], float), np.array([c, d], float)
        state.reward_squared, state.cost_squared = state.reward, state.cost
        first, second = np.where((state.pulls == 0) & policy.first_pulls, np.inf, policy.scores(state))
        share[place] = 0.5 if first == second else float(first > second)
    return share


def share_of(policy: Any, budget: int, pulls: int) -> Share:
    """How a policy of the package chooses in games with this budget and at most this many pulls.

    An index that looks at one arm alone is tabulated; whether it does is seen at random states.
    """
    if isinstance(policy, BudgetedThompson):
        laws = ratio_laws(pulls, budget, [prior[0] for prior in policy.priors])
        return lambda states, _: np.asarray(share_of_draws(states, *laws))
    table = index_table(policy, budget, pulls, 0) if policy.monotone.ignores_rounds else None

    def share(states: Any, budget: int) -> Array:
        rounds = int(states[0, 0] + states[0, 3])
        indices = index_table(policy, budget, rounds, rounds) if table is None else table
        return np.asarray(share_of_index(states, budget, indices))

    sample = states_after(min(pulls, 12), budget)
    sample = sample[np.random.default_rng(1).integers(len(sample), size=STATES_CHECKED)]
    agrees = np.array_equal(share(sample, budget), share_of_scores(policy, sample, budget))
    return share if agrees else partial(share_of_scores, policy)


@dataclass(frozen=True)
class ShiftedGittinsRatio(GittinsRatio):
    """Gittins-ratio whose boundary is that of a walk, not of Brownian motion."""

    name = "gittins-ratio-shifted"
    index = staticmethod(shifted_gittins_ratio)


# --- tables -----------------------------------------------------------------------------------------------------------

ARMS = (0, 0), (1, 0), (0, 1), (1, 1), (0, 3), (5, 5), (1, 9), (9, 1), (20, 20), (4, 36), (0, 40)
"""Successes and failures."""
HORIZONS = 5, 20, 300
GAMES = {1: 40, 2: 40, 5: 40, 10: 50, 20: 60}
"""The last pull before a policy commits, for each budget."""
WIDTHS = 0.5, 0.75, 1.0, 1.25, 1.5
NEVER = 1e6
"""The lead of a prior that stays uniform: so the index of an arm does not depend on the other, and is tabulated."""
LONG_GAMES, LONG_ROUNDS, LONG_SEED = 800, 15_000, 7_800_000
OTHERS = "omega-star-ucb", "bts", "bts:prior_cost=2/1"


def print_indices() -> None:
    print("| S, F | pulls left | exact | A = 1 | A = 1.25 | A = 1, shifted |")
    print("|---|---|---|---|---|---|")
    errors = []
    for good, bad in ARMS:
        for horizon in HORIZONS:
            exact = exact_index(good + 1, bad + 1, horizon)
            rules = (1.0, 0.0), (1.25, 0.0), (1.0, STEP_SHIFT)
            indices = np.array([closed_index(good + 1, bad + 1, horizon, *rule) for rule in rules])
            errors.append(np.round(100.0 * (indices / exact - 1.0), 1) + 0.0)  # no −0.0
            cells = [
                f"{index:.3f} ({error:+.1f} %)".replace("-", "−")
                for index, error in zip(indices, errors[-1], strict=True)
            ]
            print(f"| {good}, {bad} | {horizon} | {exact:.3f} | " + " | ".join(cells).replace("-", "−") + " |")
    size = np.abs(errors)
    cells = [f"{mean:.1f} %, {most:.1f} %" for mean, most in zip(size.mean(axis=0), size.max(axis=0), strict=True)]
    print("| mean and largest error | | | " + " | ".join(cells) + " |")


def print_games(budgets: list[int]) -> None:
    rules: dict[str, Any] = {"greedy": None}
    rules |= {f"gittins-ratio, A = {width:g}": GittinsRatio(width=width, lead=NEVER) for width in WIDTHS}
    rules |= {f"shifted gittins-ratio, A = {width:g}": ShiftedGittinsRatio(width=width, lead=NEVER) for width in WIDTHS}
    rules |= {spec: parse_policy(spec) for spec in OTHERS}
    columns: list[list[str]] = []
    for budget in budgets:
        pulls, oracle = GAMES[budget], ORACLE * budget
        best = oracle - game_value(budget, pulls, None)
        slack = best - oracle + game_value(budget, pulls, None, bound=True)
        column = [str(pulls), f"{best:.4f}", f"{100.0 * slack / best:.2f} %"]
        for policy in rules.values():
            share = greedy if policy is None else share_of(policy, budget, pulls)
            column.append(f"{100.0 * ((oracle - game_value(budget, pulls, share)) / best - 1.0):.2f} %")
        columns.append(column)
        print(f"B = {budget}: {time.process_time():.0f} s", file=sys.stderr, flush=True)
    print("| | " + " | ".join(f"B = {budget}" for budget in budgets) + " |")
    print("|---" * (len(budgets) + 1) + "|")
    names = ["pulls before it commits", "Bayes regret of the optimum", "less, at most, without the limit", *rules]
    for name, *cells in zip(names, *columns, strict=True):
        print(f"| {name} | " + " | ".join(cells) + " |")


def print_long() -> None:
    """Ten Bernoulli arms, mean rewards from U(0, 1) and costs from U(0.01, 1), B = 15,000 × the smallest mean cost."""
    rules = [
        kind(width=width, lead=NEVER) for kind in (GittinsRatio, ShiftedGittinsRatio) for width in (1.0, 1.25, 1.5)
    ]
    games = np.empty((len(rules), LONG_GAMES))
    for place in range(LONG_GAMES):
        problem = family("heyden-bernoulli", 10, LONG_SEED + place)
        budget = LONG_ROUNDS * float(problem.cost_means.min())
        games[:, place] = [simulate(problem, rule, [budget], 1, seed=1).pseudo_regret[0, 0] for rule in rules]
    score = student(games)
    print("| | mean | median | 90 % | 99 % |\n|---|---|---|---|---|")
    for rule, mean, high, regrets in zip(rules, score.value, score.high, games, strict=True):
        kind = "shifted " * isinstance(rule, ShiftedGittinsRatio) + f"gittins-ratio, A = {rule.width:g}"
        quantiles = [number(float(quantile)) for quantile in np.quantile(regrets, (0.5, 0.9, 0.99))]
        print(f"| {kind} | " + " ± ".join(estimate(float(mean), float(high - mean))) + f" | {' | '.join(quantiles)} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("indices", "games", "long"))
    parser.add_argument("--budgets", type=int, nargs="+", default=list(GAMES), choices=list(GAMES))
    options = parser.parse_args()
    if options.what in (None, "indices"):
        print_indices()
    if options.what in (None, "games"):
        print_games(options.budgets)
    if options.what in (None, "long"):
        print_long()
