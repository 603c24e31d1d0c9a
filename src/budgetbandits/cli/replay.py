"""The command ``replay``: policies on recorded outcomes."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from budgetbandits import plugins
from budgetbandits.cli.screen import AsJson, plain_table, print_json, share_bar
from budgetbandits.cli.simulate import spread
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.tables import csv_cell
from budgetbandits.numerics.intervals import half_width
from budgetbandits.policies import label
from budgetbandits.policies.base import RequestPolicy
from budgetbandits.problems.recorded import ReplayTable, parse_columns
from budgetbandits.simulation.replay import ReplayResult, fluid_reward_of, logged, replay


def replay_command(
    table: Annotated[Path, typer.Argument(help="A CSV file with a row for each request and arm.")],
    policy: Annotated[list[str], typer.Option(help="A policy, as for simulate. May be repeated.")],
    budget_per_request: Annotated[list[float], typer.Option(help="Money for each request. May be repeated.")],
    columns: Annotated[
        str,
        typer.Option(help="The names of the columns: request=…,arm=…,reward=…,cost=… and optionally segment=…."),
    ] = "",
    orders: Annotated[int, typer.Option(min=1, help="Shuffled orders of the requests.")] = 20,
    learn_on: Annotated[
        Path | None, typer.Option(help="A CSV file with the same columns, to learn from first.")
    ] = None,
    no_segments: Annotated[bool, typer.Option("--no-segments", help="Ignore the column of segments.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
    log: Annotated[
        Path | None, typer.Option(help="Write a log for evaluate: the first policy and budget, in one order (CSV).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play policies on recorded outcomes in shuffled orders: reward per request, share of the budget used."""
    before, records = _tables(table, learn_on, parse_columns(columns), no_segments)
    policies = [plugins.find_policy(each) for text in policy for each in plugins.sweep(text)]
    if log is not None:
        _write_log(log, logged(records, policies[0], budget_per_request[0], seed=seed, learn_on=before))
    total = len(policies) * len(budget_per_request) * orders
    found: list[ReplayResult] = []
    with share_bar("replaying") as advance:
        for each in policies:
            for rate in budget_per_request:
                done = len(found) * orders
                found.append(
                    replay(
                        records, each, rate, orders, seed, learn_on=before,
                        progress=lambda n, done=done: advance(done + n, total),  # type: ignore[misc]
                    )
                )  # fmt: skip
    bounds = {rate: fluid_reward_of(records, rate) for rate in budget_per_request}
    if as_json:
        print_json(_record(records, found, bounds, orders, seed))
    else:
        by_request = {each.spec for each in policies if isinstance(each, RequestPolicy)}
        _show(str(table), records, found, bounds, orders, by_request)


def _write_log(path: Path, columns: dict[str, list[Any]]) -> None:
    partial = path.with_name(f".{path.name}.part")
    try:
        with partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            rows = zip(*columns.values(), strict=True)
            writer.writerows([csv_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise BadParameter(f"cannot write {str(path)!r}: {error.strerror or error}; choose another place") from None


def _tables(
    table: Path, learn_on: Path | None, columns: dict[str, str], no_segments: bool
) -> tuple[ReplayTable | None, ReplayTable]:
    """The table to learn from, if any, and the table to play on, with the same arms and segments."""
    before = None if learn_on is None else ReplayTable.from_csv(learn_on, columns)
    first = {} if before is None else {"arms": before.arms, "segments": before.segments}
    records = ReplayTable.from_csv(table, columns, **first)
    if no_segments:
        return None if before is None else before.without_segments(), records.without_segments()
    return before, records


def _record(
    table: ReplayTable, found: list[ReplayResult], bounds: dict[float, float], orders: int, seed: int
) -> dict[str, Any]:
    return {
        "requests": len(table),
        "arms": table.arms,
        "segments": table.segments,
        "orders": orders,
        "seed": seed,
        "results": [
            {
                "policy": each.policy,
                "budget_per_request": each.budget_per_request,
                "reward": spread(each.reward),
                "used": {"mean": float(each.used.mean()), "max": float(each.used.max())},
                "unanswered": float(each.unanswered.mean()),
                "best_mix_reward": bounds[each.budget_per_request],
            }
            for each in found
        ],
    }


def _show(
    title: str,
    table: ReplayTable,
    found: list[ReplayResult],
    bounds: dict[float, float],
    orders: int,
    by_request: set[str],
) -> None:
    segments = f", {len(table.segments)} segments" if table.segments else ""
    lines = plain_table(
        title=f"{escape(title)}\n{len(table):,} requests, {len(table.arms)} arms{segments}, {orders} orders",
        title_justify="left",
        caption="reward: mean of a request, ± half of its 95 % interval over the orders.\n"
        f"best mix: what the best mix of arms earns, all means known{', by segment' if table.segments else ''}.\n"
        "used: share of the budget spent, on average and at most.",
        caption_justify="left",
    )
    lines.add_column("policy", overflow="fold")
    some_unanswered = any(each.unanswered.any() for each in found)
    for column in ("budget", "reward", "best mix", "used", "at most", *(["unanswered"] if some_unanswered else [])):
        lines.add_column(column, justify="right", no_wrap=True)
    ranked = sorted(found, key=lambda each: (each.budget_per_request, -float(each.reward.mean())))
    for each, following in zip(ranked, [*ranked[1:], None], strict=True):
        error = spread(each.reward)["sem"]
        lines.add_row(
            label(each.policy) + ("*" if table.segments and each.policy not in by_request else ""),
            f"{each.budget_per_request:g}",
            f"{each.reward.mean():.4f}" + ("" if error is None else f" ± {half_width(error, len(each.reward)):.4f}"),
            f"{bounds[each.budget_per_request]:.4f}",
            f"{each.used.mean():.1%}",
            f"{each.used.max():.1%}",
            *([f"{each.unanswered.mean():,.1f}"] if some_unanswered else []),
            end_section=following is not None and following.budget_per_request != each.budget_per_request,
        )
    console = Console()
    console.print(lines)
    if table.segments and any(each.policy not in by_request for each in found):
        console.print("* does not look at segments")
