"""Campaigns on a terminal: one with its terms and arms, or all with their money."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from budgetbandits.cli.screen import filled, fits, plain_table, print_json
from budgetbandits.formatting.money import decimals, same_decimals
from budgetbandits.formatting.numbers import in_full
from budgetbandits.terms import MONEY, Terms

if TYPE_CHECKING:  # the service takes a quarter of a second to import, which other commands need not wait for
    from budgetbandits.service.service import DecisionService

SAID = ("hold_seconds", "on_expire", "reward_max", "daily_cap", "pace_seconds", "lease", "lease_seconds", "horizon",
        "propensity_draws")  # fmt: skip
"""Terms that `campaign show` has a phrase for; others are shown by their name."""


def show_all(rows: list[dict[str, Any]], as_json: bool) -> None:
    """All campaigns and their money."""
    if as_json:
        print_json(rows)
        return
    console, table = Console(), plain_table()
    for title in ("campaign", "status"):
        table.add_column(title, overflow="fold")
    kinds = _kinds(rows)
    for title in kinds:
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(escape(row["name"]), row["status"], *_money(row, kinds))
    if not rows:
        console.print("No campaigns yet; open one with 'budgetbandits campaign create'.")
    elif fits(table, console):
        console.print(table)
    else:
        for row in rows:
            console.print(f"[bold]{escape(row['name'])}[/]  {row['status']}", highlight=False)
            _print_money(console, row)


def show(engine: DecisionService, campaign: str, as_json: bool) -> None:
    """One campaign, its terms and its arms."""
    from budgetbandits.service.campaigns import Total

    row = engine.describe(campaign)
    if as_json:
        print_json(row)
        return
    totals = engine.totals(campaign)
    console = Console()
    console.print(f"[bold]{escape(row['name'])}[/]  {row['status']}  {row['policy']}  since {when(row['created_at'])}")
    _print_money(console, row)
    console.print(escape("; ".join(_terms(row))), highlight=False)
    table = plain_table()
    table.add_column("arm", overflow="fold")
    for title in ("cost cap", "pulls", "open", "cost", "reward", "reward per cost"):
        table.add_column(title, justify="right", overflow="fold")
    table.add_column("")
    of_arms = [totals.get(arm["name"], Total()) for arm in row["arms"]]
    caps, costs = decimals(arm["cost_cap"] for arm in row["arms"]), decimals(total.cost for total in of_arms)
    rewards = decimals((total.reward for total in of_arms), fewest=1)
    for arm, total in zip(row["arms"], of_arms, strict=True):
        ratio = f"{total.reward / total.cost:,.4g}" if total.cost else ""
        money = (f"{total.open:,}", f"{total.cost:,.{costs}f}", f"{total.reward:,.{rewards}f}", ratio)
        state = _state(arm)
        table.add_row(escape(arm["name"]), f"{arm['cost_cap']:,.{caps}f}", f"{arm['pulls']:,}", *money, state)
    console.print(table)


def _terms(row: dict[str, Any]) -> list[str]:
    """A campaign's terms in words, and what has come of them."""
    terms = [
        f"holds {in_full(row['hold_seconds'])} s, then {row['on_expire']}",
        f"rewards up to {in_full(row['reward_max'])}",
    ]
    if row["daily_cap"] is not None:
        terms.append(f"at most {same_decimals([row['daily_cap']])[0]} a day")
    if row["pace_seconds"] is not None:
        terms.append(f"spread over {in_full(row['pace_seconds'])} s")
    if row["lease"] is not None:
        terms.append(f"leases of {same_decimals([row['lease']])[0]} for {in_full(row['lease_seconds'])} s")
    if row["horizon"] is not None:
        others = f", {row['gone']:,} gone" if row["gone"] != row["answered"] else ""
        terms.append(f"{row['answered']:,} of {in_full(row['horizon'])} requests answered{others}")
    if row["propensity_draws"] is not None:
        terms.append(f"propensities from {in_full(row['propensity_draws'])} draws")
    if row["segments"]:
        terms.append(f"segments {', '.join(row['segments'])}")
    for term in fields(Terms):
        if term.name not in SAID and row[term.name] is not None:
            terms.append(f"{term.name} {row[term.name]}")
    return terms


def _state(arm: dict[str, Any]) -> str:
    """What is unusual about an arm, if anything."""
    said = [] if arm["active"] else ["retired"]
    if arm["failures"]:
        said.append(f"{arm['failures']:,} failed")
    if arm["down_since"] is not None:
        said.append(f"down since {datetime.fromtimestamp(arm['down_since']).astimezone():%H:%M:%S}")
    if arm["rests_until"] is not None:
        said.append(f"rests until {datetime.fromtimestamp(arm['rests_until']).astimezone():%H:%M:%S}")
    return ", ".join(said)


def _print_money(console: Console, row: dict[str, Any]) -> None:
    kinds = _kinds([row])
    parts = [f"{name} {value}" for name, value in zip(kinds, _money(row, kinds), strict=True)]
    for line in filled(parts, console.width):
        console.print(line, highlight=False)


def _kinds(rows: list[dict[str, Any]]) -> list[str]:
    """Which money to show: what is leased only if any of these campaigns lease."""
    return [name for name in MONEY if name != "leased" or any(row["lease"] is not None for row in rows)]


def _money(row: dict[str, Any], kinds: list[str]) -> list[str]:
    """A campaign's money, all of it with as many decimals as any of it needs."""
    return same_decimals([row[name] for name in kinds])


def when(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M")
