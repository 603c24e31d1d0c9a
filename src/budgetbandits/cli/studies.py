"""The commands of studies: run, paper, report, compare."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from budgetbandits.cli.screen import Split, plain_table, progress_bar
from budgetbandits.errors import BadParameter

if TYPE_CHECKING:  # polars, joblib and matplotlib take a second to import, which other commands need not wait for
    from budgetbandits.experiments import Results
    from budgetbandits.experiments.paper.claims import Tally
    from budgetbandits.experiments.paper.findings import Findings
    from budgetbandits.experiments.runner import Progress as Tell
    from budgetbandits.experiments.runner import Workers

Out = Annotated[Path, typer.Option(help="The folder of the study; given again, it goes on where it was.")]
Count = Annotated[int, typer.Option("--workers", help="Worker processes; 0 for one per core.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler, such as tcp://host:8786, or 'local' to start one here (extra dask)."),
]
Ray = Annotated[bool, typer.Option("--ray", help="Compute on Ray: here, or where RAY_ADDRESS points (extra ray).")]


def run_command(
    experiment: Annotated[str, typer.Argument(help="An experiment file (TOML), or the name of one that ships.")],
    out: Out,
    workers: Count = 0,
    cluster: Cluster = None,
    ray: Ray = False,
) -> None:
    """Run an experiment and write its report; stopped, the same command goes on."""
    from budgetbandits.experiments import Experiment, run
    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.runner import command_line

    asked = Experiment.load(experiment)
    if findings.is_paper(out):
        raise BadParameter(f"{out} holds the paper's studies; choose another --out")
    with _bar() as tell:
        run(asked, out, _workers(workers, cluster, ray), tell, command_line())
    _show_report(out)


def paper_command(
    out: Out,
    runs: Annotated[
        int | None, typer.Option(help="Runs on the calibrated problems instead of the paper's 500.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A look at the machinery: few runs, small budgets.")] = False,
    workers: Count = 0,
    cluster: Cluster = None,
    ray: Ray = False,
) -> None:
    """Reproduce the paper's simulations and judge each of its claims."""
    split = Split("starting")
    import joblib

    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.runner import command_line

    if runs is not None and runs < 2:
        raise BadParameter(f"runs is {runs}; use at least 2, or there is no standard deviation")
    if (out / "study.json").exists():
        raise BadParameter(f"{out} holds a study of its own; choose another --out")
    with _bar() as tell:

        def note(doing: str, done: int, total: int) -> None:
            split.enter(f"{doing} {total:,} runs" if doing == "playing" else doing.split(" (")[0])
            tell(doing, done, total)

        found = findings.reproduce(out, runs, quick, _workers(workers, cluster, ray), note, command_line())
    split.enter("judging")
    with joblib.parallel_config(n_jobs=workers or -1):
        claims = found.claims
    table = plain_table()
    table.add_column("the paper says")
    table.add_column("panels", justify="right")
    table.add_column("random problems", justify="right")
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        table.add_row(claim.says, _counts(claim.panels), _counts(claim.random), claim.verdict)
    Console().print(table)
    Console().print("In how many of the comparisons that could fail it holds; ? are undecided.\n", highlight=False)
    split.enter("report")
    with joblib.parallel_config(n_jobs=workers or -1):
        _show_report(out, found)
    print(split.line(), file=sys.stderr)


def _counts(of: Tally) -> str:
    open_ = f", {of.undecided} ?" if of.undecided else ""
    return f"{of.holds} of {of.could_fail}{open_}"


def report_command(folder: Annotated[Path, typer.Argument(help="The folder of a study, or of the paper.")]) -> None:
    """Write the report of a study again."""
    _show_report(folder)


def compare_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a study, or of the paper.")],
    budget: Annotated[float | None, typer.Option(help="One of the study's budgets; the largest if not given.")] = None,
    metric: Annotated[str, typer.Option(help="pseudo_regret, regret or reward.")] = "pseudo_regret",
) -> None:
    """Who wins where: every pair of policies, problem by problem, with 95 % intervals."""
    from budgetbandits.experiments import Results
    from budgetbandits.experiments.paper import findings

    parts = [folder / findings.CALIBRATED, folder / findings.ENSEMBLE] if findings.is_paper(folder) else [folder]
    for part in parts:
        _show_comparison(Results.load(part), budget, metric)


def _show_comparison(results: Results, budget: float | None, metric: str) -> None:
    from budgetbandits.experiments.results import BETTER
    from budgetbandits.policies.names import label
    from budgetbandits.words import number

    if len(results.policies) < 2:
        raise BadParameter("the study has a single policy, so there is nothing to compare; add one to the experiment")
    winners = results.winners(budget, metric)
    pairs = results.compare(budget, metric)
    more = BETTER[metric] == "higher"
    better, worse, best_of = ("higher", "lower", "highest") if more else ("lower", "higher", "lowest")
    title = f"{results.record['name']}: {metric.replace('_', ' ')} at B = {results.largest(budget):,g}"
    Console().print(f"\n[bold]{escape(title)}[/bold]")
    for group in results.groups:
        first = [row for row in winners.rows(named=True) if row["group"] == group and row["problems"]]
        problems = sum(row["problems"] for row in first)
        table = plain_table(title=escape(group), title_justify="left")
        table.add_column("policy", overflow="fold")
        table.add_column("against", overflow="fold")
        for column in (f"{better} on", "surely", f"surely {worse}", "difference", "95 % interval"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in pairs.rows(named=True):
            if row["group"] == group:
                table.add_row(
                    label(row["first"]),
                    label(row["second"]),
                    f"{row['better']} of {row['problems']}",
                    str(row["wins"]),
                    str(row["losses"]),
                    number(row["difference"]),
                    f"[{number(row['low'])}, {number(row['high'])}]",
                )
        Console().print(table)
        if problems > 1:
            counts = ", ".join(f"{label(row['policy'])} {row['problems']} ({row['sure']})" for row in first)
            said = f"{best_of} mean on how many of {problems} problems (surely): {counts}"
        else:
            said = f"{best_of} mean: {label(first[0]['policy'])}, {'surely' if first[0]['sure'] else 'not surely'}"
        Console().print(f"{escape(said)}\n", highlight=False)


def _workers(count: int, cluster: str | None, ray: bool) -> Workers:
    from budgetbandits.experiments.runner import Workers

    if count < 0:
        raise BadParameter(f"--workers is {count}; use 0 for one per core, or a positive number")
    if cluster is not None and ray:
        raise BadParameter("--cluster and --ray are both given; choose one")
    if cluster is not None:
        return Workers("dask", count or -1, None if cluster == "local" else cluster)
    return Workers("ray" if ray else "processes", count or -1)


def _show_report(folder: Path, found: Findings | None = None) -> None:
    from budgetbandits.report.page import write_report

    page = write_report(folder, found)
    Console().print(f"The report is {page}", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def _bar() -> Iterator[Tell]:
    """Progress on stderr: a bar on a terminal, a line now and then elsewhere."""
    try:
        with _bar_or_lines() as tell:
            yield tell
    except KeyboardInterrupt:
        print("what is done is kept; give the same command to go on", file=sys.stderr)
        raise


@contextlib.contextmanager
def _bar_or_lines() -> Iterator[Tell]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    with progress_bar(console) as bar:
        task = bar.add_task("", total=None, rate="")

        def tell(doing: str, done: int, total: int) -> None:
            if bar.tasks[0].total != total:
                bar.reset(task, total=total, completed=done)  # the next study; what was there before is no speed
            speed = bar.tasks[0].speed
            bar.update(task, description=doing, completed=done, rate=f"{speed:,.0f}/s" if speed else "")

        yield tell


def _lines() -> Tell:
    said: dict[str, object] = {}

    def tell(doing: str, done: int, total: int) -> None:
        tenth = (doing, total, 10 * done // total)
        if said.get("last") != tenth:
            said["last"] = tenth
            print(f"{doing}: {done:,} of {total:,} runs", file=sys.stderr, flush=True)

    return tell
