"""The command ``bounds``: proven bounds for a problem, before anything is played."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from budgetbandits.cli.screen import AsJson, plain_table, print_json, terminal
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.numbers import number, short
from budgetbandits.problems.oracle import best_arms, best_ratio, gaps, reward_bounds
from budgetbandits.problems.problem import Problem
from budgetbandits.theory import (
    UpperBound,
    bts_constant,
    distances,
    lower_constant,
    ucb_bv1_constant,
    ucb_bv2_constant,
    upper_bound,
)
from budgetbandits.theory.constants import REMARK_GAMMA
from budgetbandits.theory.upper import CHAINS

ARMS_SHOWN_MAX = 20
"""Arms in the table; --json has them all."""


def bounds_command(
    problem: Annotated[Path, typer.Argument(help="A problem file (TOML); 'budgetbandits problem' prints one.")],
    budget: Annotated[float, typer.Option(help="The budget, at least 1.")],
    gamma: Annotated[
        float | None, typer.Option(help="The paper's γ for all arms, 0 to 1. Without it, the best for each arm.")
    ] = None,
    chain: Annotated[
        str, typer.Option(help="How terms are bounded arm by arm: paper, as published, or sharp.")
    ] = "paper",
    as_json: AsJson = False,
) -> None:
    """Show the proven bounds for Budgeted Thompson Sampling on a problem: Theorem 1, and the lower bound."""
    if chain not in CHAINS:
        raise BadParameter(f"--chain is {chain!r}; use {' or '.join(CHAINS)}")
    arms = Problem.load(problem)
    bounds = {chain: upper_bound(arms, budget, gamma, chain) for chain in CHAINS}
    if as_json:
        print_json(_record(arms, budget, bounds, chain))
    else:
        _show(arms, budget, bounds, chain, gamma, title=str(problem))


def _record(problem: Problem, budget: float, bounds: dict[Any, UpperBound], chain: str) -> dict[str, Any]:
    distance, gap = distances(problem), gaps(problem)
    terms = {arm.arm: arm for arm in bounds[chain].arms}
    low, high = reward_bounds(problem, budget)
    arms = []
    for place, name in enumerate(problem.names):
        record: dict[str, Any] = {"arm": name, "gap": float(gap[place]), "best": place not in terms}
        if place in terms:
            arm = terms[place]
            record |= {
                "gamma": arm.gamma, "delta": arm.delta, "epsilon": arm.epsilon, "first_pulls": arm.first_pulls,
                "lucky_samples": arm.lucky_samples, "waiting": arm.waiting,
                "remainder": arm.remainder, "pulls": arm.pulls, "regret": arm.regret,
                "lower_pulls_per_log_budget": 1.0 / float(distance[place]),
            }  # fmt: skip
        arms.append(record)
    return {
        "budget": budget,
        "best_ratio": best_ratio(problem),
        "optimum": {"low": low, "high": high},
        "chain": chain,
        "arms": arms,
        "upper": {chain: bound.regret for chain, bound in bounds.items()},
        "overdraft": bounds[chain].overdraft,
        "trivial": bounds[chain].trivial,
        "constants": {
            "lower": lower_constant(problem),
            "lower_known_costs": lower_constant(problem, known_costs=True),
            "bts": bts_constant(problem),
            "bts_gamma_1": bts_constant(problem, gamma=1.0),
            "ucb_bv1": ucb_bv1_constant(problem),
            "ucb_bv2": ucb_bv2_constant(problem),
        },
    }


def _show(
    problem: Problem, budget: float, bounds: dict[Any, UpperBound], chain: str, gamma: float | None, title: str
) -> None:
    best = escape(", ".join(problem.names[arm] for arm in best_arms(problem)))
    table = plain_table(
        "arm",
        numbers=("Δ", "γ", "δ", "ε", "⌈L⌉", "lucky", "waiting", "pulls", "regret"),
        title=f"{escape(title)}: pulls at most at B = {budget:,g} ({chain} chain)\n"
        f"{len(problem)} arms, best {best} ({best_ratio(problem):.3f} reward per cost)",
    )
    table.columns[0].min_width = 6
    arms = sorted(bounds[chain].arms, key=lambda arm: -arm.regret)
    for arm in arms[:ARMS_SHOWN_MAX]:
        table.add_row(
            escape(problem.names[arm.arm]),
            *(f"{value:.2g}" for value in (arm.gap, arm.gamma, arm.delta, arm.epsilon)),
            *(short(value) for value in (arm.first_pulls, arm.lucky_samples, arm.waiting, arm.pulls, arm.regret)),
        )
    console = terminal()
    console.print(table)
    if len(arms) > ARMS_SHOWN_MAX:
        console.print(f"The {ARMS_SHOWN_MAX} of {len(arms)} arms that add the most; --json has all.\n")
    summed = [arm.remainder / arm.waiting for arm in arms if 0.0 < arm.waiting < math.inf]
    left_out = f" (at most {max(summed):.0%} of it is a bound on terms not summed)" if summed else ""
    console.print(
        "⌈L⌉: until the arm is known. lucky: it still looked better by δ. waiting: the\n"
        f"best arm looked worse by ε{left_out}.\n"
    )
    low, high = reward_bounds(problem, budget)
    lower = lower_constant(problem)
    ours = bts_constant(problem, REMARK_GAMMA if gamma is None else gamma)
    # A slope has no value at B: these say how fast a bound or the regret grows in the end, and nothing about B itself.
    slopes = [
        (f"Theorem 1's bound, γ = {'1/√2' if gamma is None else f'{gamma:g}'}", ours),
        ("UCB-BV1's bound", ucb_bv1_constant(problem)),
        ("UCB-BV2's bound", ucb_bv2_constant(problem)),
        ("the regret of any good policy, at least", lower),
    ]
    totals = [
        ("the optimum R*", number(low) if low == high else f"{number(low)} to {number(high)}"),
        ("regret at most, the paper's chain", _useful(bounds["paper"])),
        ("regret at most, the sharper chain", _useful(bounds["sharp"])),
        ("regret at most whatever is played", number(bounds[chain].trivial)),
    ]
    for name, value in totals:
        console.print(f"{name:42} {value}")
    console.print("\ngrowth per ln B, as B → ∞")
    for name, slope in slopes:
        console.print(f"  {name:40} {number(slope)}")
    if lower > 0.0:
        console.print(f"  {'Theorem 1 by the least':40} {number(ours / lower)} times")


def _useful(bound: UpperBound) -> str:
    """The bound, and whether it says anything."""
    return number(bound.regret) + ("" if bound.says_something else " (says nothing: see below)")
