"""The command ``compare``: the policies of a study ranked, and the significant differences between them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from budgetbandits.cli.screen import AsJson, filled, fits, plain_table, print_json, show_slower, terminal
from budgetbandits.errors import BadParameter
from budgetbandits.formatting.numbers import count, estimate, exact, interval, listed, number
from budgetbandits.policies import label

if TYPE_CHECKING:  # polars takes a quarter of a second to import, which other commands need not wait for
    from budgetbandits.experiments import Results

Row = dict[str, Any]
FORMATS = ("markdown", "latex", "csv")
"""Formats of a table besides the terminal's."""

SUPERLATIVE = {"lower": "lowest", "higher": "highest"}
"""Word for the best value, by the better direction."""

LOWER, HIGHER, UNSURE = "<", ">", "·"


def compare_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a study, or of the paper.")],
    budget: Annotated[float | None, typer.Option(help="One of the study's budgets. Without it, the largest.")] = None,
    metric: Annotated[str, typer.Option(help="pseudo_regret, regret or reward.")] = "pseudo_regret",
    kind: Annotated[
        str | None, typer.Option("--format", help="Print a table for a paper or a program: markdown, latex or csv.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rank the policies of a study and compare every pair, with 95 % intervals."""
    from budgetbandits.experiments import Results
    from budgetbandits.experiments.paper import findings

    if kind is not None and (kind not in FORMATS or as_json):
        raise BadParameter(f"--format is {kind!r}; use one of {', '.join(FORMATS)}, without --json")
    folders = [folder / findings.CALIBRATED, folder / findings.ENSEMBLE] if findings.is_paper(folder) else [folder]
    loaded = [Results.load(folder) for folder in folders]
    if kind is not None:
        print(_formatted(loaded, budget, metric, kind))
        return
    studies = [_comparison(results, budget, metric) for results in loaded]
    if as_json:
        print_json({"studies": studies})
    else:
        for study in studies:
            _show(terminal(), study)


def _formatted(studies: list[Results], budget: float | None, metric: str, kind: str) -> str:
    """The means of all policies, one table per study; as CSV the ranking, one table for all studies."""
    import polars as pl

    from budgetbandits.experiments.standings import ranking

    if kind == "csv":
        ranked = [
            ranking(results, budget, metric).select(pl.lit(results.record["name"]).alias("study"), pl.all())
            for results in studies
        ]
        return str(pl.concat(ranked).write_csv()).rstrip("\n")
    tables = [results.to_table(metric, [results.largest(budget)]) for results in studies]
    return "\n\n".join(table.to_markdown() if kind == "markdown" else table.to_latex() for table in tables)


def _comparison(results: Results, budget: float | None, metric: str) -> Row:
    from budgetbandits.experiments.results import BETTER
    from budgetbandits.experiments.standings import ranking

    if len(results.policies) < 2:
        raise BadParameter("the study has a single policy, so there is nothing to compare; add one to its file")
    ranked = ranking(results, budget, metric).rows(named=True)
    pairs = results.compare(budget, metric).rows(named=True)
    return {
        "study": results.record["name"],
        "metric": metric,
        "better": BETTER[metric],
        "budget": results.largest(budget),
        "runs": results.record["runs"],
        "slower": results.slower,
        "groups": [
            {"group": group, "policies": _of(group, ranked), "pairs": _of(group, pairs)} for group in results.groups
        ],
    }


def _of(group: str, rows: list[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key != "group"} for row in rows if row["group"] == group]


def _show(console: Console, study: Row) -> None:
    metric = study["metric"].replace("_", "-")
    title = f"{study['study']}: {metric} at B = {exact(study['budget'])}"
    console.print(f"\n[bold]{escape(title)}[/bold]")
    for group in study["groups"]:
        ranked = group["policies"]
        sizes = f"{count(ranked[0]['problems'], 'problem')}, {count(study['runs'], 'run')}"
        console.print(f"\n{escape(group['group'])} ({sizes})")
        _show_ranking(console, ranked)
        console.print(escape(_verdict(ranked, study["better"])))
        if len(ranked) > 2:
            _show_matrix(console, group, study["better"])
    show_slower(study["slower"])


def _show_ranking(console: Console, ranked: list[Row]) -> None:
    """The ranking; for several problems also on how many each policy is best, in the table or below it."""
    several = ranked[0]["problems"] > 1
    table = _ranking(ranked, counts=several)
    if not several or fits(table, console):
        console.print(table)
        return
    console.print(_ranking(ranked, counts=False))
    best = [f"{label(row['policy'])} {row['best_on']} ({row['surely_best_on']})" for row in ranked if row["best_on"]]
    for line in filled(["Best on (surely):", *best], console.width):
        console.print(escape(line))


def _ranking(ranked: list[Row], counts: bool) -> Table:
    """Each policy with its number in the matrix, and its distance from the first."""
    table = plain_table()
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("policy", overflow="fold")
    for column in ("mean", "behind", "95 % interval", *(("best on", "surely") if counts else ())):
        table.add_column(column, justify="right", no_wrap=True)
    for place, row in enumerate(ranked, start=1):
        name = escape(label(row["policy"]))
        table.add_row(
            str(place),
            f"[bold]{name}[/bold]" if place == 1 and row["sure"] else name,
            number(row["mean"]),
            *(("", "") if place == 1 else _behind(row)),
            *([f"{row['best_on']:,}", f"{row['surely_best_on']:,}"] if counts else []),
        )
    return table


def _behind(row: Row) -> tuple[str, str]:
    """The distance of a policy from the first, and its interval."""
    ends = sorted((row["low"], row["high"]) if row["difference"] >= 0.0 else (-row["low"], -row["high"]))
    return estimate(abs(row["difference"]), (ends[1] - ends[0]) / 2)[0], interval(*ends)


def _verdict(ranked: list[Row], better: str) -> str:
    first, *others = ranked
    close = [label(row["policy"]) for row in others if not row["sure"]]
    name, superlative = label(first["policy"]), SUPERLATIVE[better]
    if not close:
        return f"{name} is surely {superlative}."
    whom = listed(close) if len(close) <= 3 else f"{len(close)} others"
    verdict = f"{name} is {superlative}, but not surely {better} than {whom}."
    if any(row["low"] > 0.0 or row["high"] < 0.0 for row in others if not row["sure"]):
        verdict += " (Each interval is that of one pair; surely allows for all of them, by Holm's method.)"
    return verdict


def _show_matrix(console: Console, group: Row, better: str) -> None:
    """Every pair: for several problems on how many the row is significantly better, for one the direction."""
    ranked = group["policies"]
    problems = ranked[0]["problems"]
    wins = {(pair["first"], pair["second"]): pair["wins"] for pair in group["pairs"]}
    wins |= {(pair["second"], pair["first"]): pair["losses"] for pair in group["pairs"]}
    signs = (LOWER, HIGHER) if better == "lower" else (HIGHER, LOWER)
    table = plain_table(numbers=("", *(str(place) for place in range(1, len(ranked) + 1))))
    for place, row in enumerate(ranked, start=1):
        cells = []
        for other in ranked:
            pair = row["policy"], other["policy"]
            won, lost = wins.get(pair, 0), wins.get(pair[::-1], 0)
            cell = f"{won:,}" if problems > 1 else signs[0] if won else signs[1] if lost else UNSURE
            cells.append("" if row is other else cell)
        table.add_row(str(place), *cells)
    if fits(table, console):
        what = f"on how many problems the row is surely {better} than the column"
        signs_mean = f"{LOWER} row surely lower than column, {HIGHER} higher, {UNSURE} unsure"
        console.print(f"\nPairs: {what if problems > 1 else signs_mean}")
        console.print("Each pair is judged alone.")
        console.print(table)
    else:
        console.print(f"The {len(group['pairs'])} pairs need a wider screen, or --json.")
