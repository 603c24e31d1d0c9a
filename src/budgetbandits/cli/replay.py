"""The command ``replay``: policies on recorded outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from budgetbandits import plugins
from budgetbandits.cli.screen import AsJson, plain_table, print_json, share_bar, terminal, whole_file, write_csv
from budgetbandits.cli.simulate import spread
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.numbers import count
from budgetbandits.numerics.intervals import half_width
from budgetbandits.policies import label
from budgetbandits.policies.base import Policy
from budgetbandits.problems.records import ReplayTable, parse_columns
from budgetbandits.simulation.replay import ReplayResult, fluid_reward_of, hindsight_reward_of, logged, replay


def replay_command(
    table: Annotated[Path, typer.Argument(help="A CSV file with a row for each request and arm.")],
    policy: Annotated[list[str], typer.Option(help="A policy, as for simulate. May be repeated.")],
    budget_per_request: Annotated[list[float], typer.Option(help="Money for each request. May be repeated.")],
    columns: Annotated[
        str, typer.Option(help="The names of the columns: request=…,arm=…,reward=…,cost=… and optionally segment=….")
    ] = "",
    orders: Annotated[int, typer.Option(min=1, help="Shuffled orders of the requests.")] = 20,
    learn_on: Annotated[
        Path | None, typer.Option(help="A CSV file with the same columns, to learn from first.")
    ] = None,
    features: Annotated[
        str,
        typer.Option(help="Features of the requests: FILE.csv with a row for each request, or columns NAME,NAME."),
    ] = "",
    learn_on_features: Annotated[
        Path | None, typer.Option(help="The file of features for --learn-on, if --features names a file.")
    ] = None,
    no_segments: Annotated[bool, typer.Option("--no-segments", help="Ignore the column of segments.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same figures.")] = 0,
    log: Annotated[
        Path | None, typer.Option(help="Write a log for evaluate: the first policy and budget, in one order (CSV).")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play policies on recorded outcomes in shuffled orders: reward per request, share of the budget used."""
    policies = [plugins.find_policy(name) for text in policy for name in plugins.sweep(text)]
    if features and not any(entry.uses_features for entry in policies):
        raise BadParameter("none of these policies looks at features; add --policy bts-linear, or leave out --features")
    of_table, of_learn_on = _features(features, learn_on, learn_on_features)
    before = None if learn_on is None else ReplayTable.from_csv(learn_on, parse_columns(columns), of_learn_on)
    first = {} if before is None else {"arms": before.arms, "segments": before.segments}
    records = ReplayTable.from_csv(table, parse_columns(columns), of_table, **first)
    if no_segments:
        before, records = None if before is None else before.without_segments(), records.without_segments()
    if log is not None:
        decisions = logged(records, policies[0], budget_per_request[0], seed=seed, learn_on=before)
        with whole_file(log) as file:
            write_csv(file, decisions, zip(*decisions.values(), strict=True))
    total = len(policies) * len(budget_per_request) * orders
    results: list[ReplayResult] = []
    with share_bar("replaying") as advance:
        for entry in policies:
            for rate in budget_per_request:
                games = len(results) * orders
                results.append(
                    replay(
                        records, entry, rate, orders, seed, learn_on=before,
                        progress=lambda n, games=games: advance(games + n, total),  # type: ignore[misc]
                    )
                )  # fmt: skip
    if as_json:
        print_json(_record(records, results, orders, seed))
    else:
        _show(str(table), records, results, policies, orders)


def _features(
    text: str, learn_on: Path | None, learn_on_features: Path | None
) -> tuple[Path | list[str], Path | list[str]]:
    """Where the features of the table are, and of the table to learn from: a file, or columns."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    a_file = len(names) == 1 and names[0].endswith(".csv")
    if learn_on_features is not None and (learn_on is None or not a_file):
        raise BadParameter("--learn-on-features is for --learn-on with --features FILE.csv; say both, or leave it out")
    if not a_file:
        return names, names
    if learn_on is not None and learn_on_features is None:
        raise BadParameter("--features is a file for the first table; say --learn-on-features FILE.csv for --learn-on")
    return Path(names[0]), learn_on_features or []


def _bounds(
    bound: Callable[[ReplayTable, float], float], table: ReplayTable, results: list[ReplayResult]
) -> dict[float, float]:
    """A bound at each budget: policies share them."""
    return {rate: bound(table, rate) for rate in {result.budget_per_request for result in results}}


def _record(table: ReplayTable, results: list[ReplayResult], orders: int, seed: int) -> dict[str, Any]:
    mixes, hindsight = (_bounds(bound, table, results) for bound in (fluid_reward_of, hindsight_reward_of))
    return {
        "requests": len(table),
        "arms": table.arms,
        "segments": table.segments,
        "features": table.feature_names,
        "orders": orders,
        "seed": seed,
        "results": [
            {
                "policy": result.policy,
                "budget_per_request": result.budget_per_request,
                "reward": spread(result.reward),
                "used": {"mean": float(result.used.mean()), "max": float(result.used.max())},
                "unanswered": float(result.unanswered.mean()),
                "best_mix_reward": mixes[result.budget_per_request],
                "hindsight_reward": hindsight[result.budget_per_request],
            }
            for result in results
        ],
    }


def _show(title: str, table: ReplayTable, results: list[ReplayResult], policies: list[Policy], orders: int) -> None:
    segments = f", {len(table.segments)} segments" if table.segments else ""
    features = f", {count(len(table.feature_names), 'feature')}" if table.feature_names else ""
    unanswered = ["unanswered"] if any(result.unanswered.any() for result in results) else []
    bounds = {"best mix": _bounds(fluid_reward_of, table, results)}
    if features:
        bounds["hindsight"] = _bounds(hindsight_reward_of, table, results)
    lines = plain_table(
        "policy",
        numbers=("budget", "reward", *bounds, "used", "at most", *unanswered),
        title=f"{escape(title)}\n{len(table):,} requests, {len(table.arms)} arms{segments}{features}, "
        f"{count(orders, 'order')}",
        caption="reward: mean of a request, ± half of its 95 % interval over the orders.\n"
        f"best mix: what the best mix of arms earns, all means known{', by segment' if segments else ''}.\n"
        + ("hindsight: what the best arm for each request earns, all outcomes known.\n" if features else "")
        + "used: share of the budget spent, on average and at most.",
    )
    ranked = sorted(results, key=lambda result: (result.budget_per_request, -float(result.reward.mean())))
    blind = {
        "*": {entry.spec for entry in policies if segments and not entry.looks_at_requests},
        "†": {entry.spec for entry in policies if features and not entry.uses_features},
    }
    for result, following in zip(ranked, [*ranked[1:], None], strict=True):
        error = spread(result.reward)["sem"]
        lines.add_row(
            label(result.policy) + "".join(mark for mark, specs in blind.items() if result.policy in specs),
            f"{result.budget_per_request:g}",
            f"{result.reward.mean():.4f}"
            + ("" if error is None else f" ± {half_width(error, len(result.reward)):.4f}"),
            *(f"{bound[result.budget_per_request]:.4f}" for bound in bounds.values()),
            f"{result.used.mean():.1%}",
            f"{result.used.max():.1%}",
            *([f"{result.unanswered.mean():,.1f}"] if unanswered else []),
            end_section=following is not None and following.budget_per_request != result.budget_per_request,
        )
    console = terminal()
    console.print(lines)
    for mark, what in (("*", "segments"), ("†", "features")):
        if blind[mark]:
            console.print(f"{mark} does not look at {what}")
