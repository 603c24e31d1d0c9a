"""The commands that make studies: run, paper, report."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from budgetbandits.cli.screen import AsJson, Split, plain_table, print_json, progress_bar, show_slower
from budgetbandits.errors import BadParameter

if TYPE_CHECKING:  # polars, joblib and matplotlib take a second to import, which other commands need not wait for
    from budgetbandits.experiments.paper.claims import Claim, ComparisonCounts
    from budgetbandits.experiments.paper.findings import Findings
    from budgetbandits.experiments.runner import ProgressCallback as Tell
    from budgetbandits.experiments.runner import Workers

Out = Annotated[Path, typer.Option(help="The folder of the study; given again, it goes on where it was.")]
Jobs = Annotated[int, typer.Option(help="Worker processes; -1 for one per core.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler, such as tcp://host:8786, or 'local' to start one here (extra dask)."),
]
Ray = Annotated[bool, typer.Option("--ray", help="Compute on Ray: here, or where RAY_ADDRESS points (extra ray).")]


def run_command(
    experiment: Annotated[str, typer.Argument(help="An experiment file (TOML), or the name of one that ships.")],
    out: Out,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    ray: Ray = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment and write its report; stopped, the same command goes on."""
    from budgetbandits.experiments import Experiment, run
    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.runner import command_line

    asked = Experiment.load(experiment)
    if findings.is_paper(out):
        raise BadParameter(f"{out} holds the paper's studies; choose another --out")
    with bar(quiet=as_json) as tell:
        run(asked, out, workers_of(jobs, cluster, ray), tell, command_line())
    report_command(out, as_json)


def paper_command(
    out: Out,
    runs: Annotated[
        int | None, typer.Option(help="Runs on the calibrated problems instead of the paper's 500.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A look at the machinery: few runs, small budgets.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    ray: Ray = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's simulations and judge each of its claims."""
    split = Split("starting")
    import joblib

    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.runner import command_line, replacing_workers

    if runs is not None and runs < 2:
        raise BadParameter(f"runs is {runs}; use at least 2, or there is no standard deviation")
    if (out / "study.json").exists():
        raise BadParameter(f"{out} holds a study of its own; choose another --out")
    with bar(quiet=as_json) as tell:

        def note(doing: str, done: int, total: int) -> None:
            split.enter(f"{doing} {total:,} runs" if doing == "playing" else doing.split(" (")[0])
            tell(doing, done, total)

        found = findings.reproduce(out, runs, quick, workers_of(jobs, cluster, ray), note, command_line())
    split.enter("judging")
    with joblib.parallel_config(n_jobs=jobs), replacing_workers():
        claims = found.claims
    if not as_json:
        _show_claims(claims)
    split.enter("report")
    with joblib.parallel_config(n_jobs=jobs), replacing_workers():
        page = _write_report(out, found)
    if as_json:
        print_json({"claims": [_record(claim) for claim in claims], "report": str(page), "seconds": split.seconds()})
    else:
        show_report(page)
        print(split.line(), file=sys.stderr)


def _show_claims(claims: list[Claim]) -> None:
    table = plain_table()
    table.add_column("the paper says")
    table.add_column("panels", justify="right")
    table.add_column("random problems", justify="right")
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        table.add_row(claim.says, _counts(claim.panels), _counts(claim.random), claim.verdict)
    Console().print(table)
    Console().print("In how many of the comparisons that could fail it holds; ? are undecided.\n", highlight=False)


def _record(claim: Claim) -> dict[str, object]:
    return asdict(claim) | {"verdict": claim.verdict}


def _counts(of: ComparisonCounts) -> str:
    open_ = f", {of.undecided} ?" if of.undecided else ""
    return f"{of.holds} of {of.could_fail}{open_}"


def report_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a study, or of the paper.")], as_json: AsJson = False
) -> None:
    """Write the report of a study again."""
    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.study import Study

    page = _write_report(folder)
    folders = [folder / findings.CALIBRATED, folder / findings.ENSEMBLE] if findings.is_paper(folder) else [folder]
    studies = [Study(each) for each in folders]
    lines = list(dict.fromkeys(line for study in studies for line in study.slower(study.asked())))
    if as_json:
        print_json({"report": str(page), "slower": lines})
    else:
        show_slower(lines)
        show_report(page)


def workers_of(jobs: int, cluster: str | None, ray: bool) -> Workers:
    from budgetbandits.experiments.runner import Workers

    if cluster is not None and ray:
        raise BadParameter("--cluster and --ray are both given; choose one")
    if cluster is not None:
        return Workers("dask", jobs, None if cluster == "local" else cluster)
    return Workers("ray" if ray else "processes", jobs)


def _write_report(folder: Path, found: Findings | None = None) -> Path:
    from budgetbandits.report.page import write_report

    return write_report(folder, found)


def show_report(page: Path) -> None:
    Console().print(f"The report is {page}", highlight=False, soft_wrap=True)


@contextlib.contextmanager
def bar(quiet: bool) -> Iterator[Tell]:
    """Progress on stderr: a bar on a terminal; elsewhere a line now and then, or nothing for programs."""
    try:
        with _bar_or_lines(quiet) as tell:
            yield tell
    except KeyboardInterrupt:
        if quiet:
            raise
        print("what is done is kept; give the same command to go on", file=sys.stderr)
        raise


@contextlib.contextmanager
def _bar_or_lines(quiet: bool) -> Iterator[Tell]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield (lambda doing, done, total: None) if quiet else _lines()
        return
    with progress_bar(console) as progress:
        task = progress.add_task("", total=None, rate="")

        def tell(doing: str, done: int, total: int) -> None:
            if progress.tasks[0].total != total:
                progress.reset(task, total=total, completed=done)  # the next study; what was there before is no speed
            speed = progress.tasks[0].speed
            progress.update(task, description=doing, completed=done, rate=f"{speed:,.0f}/s" if speed else "")

        yield tell


def _lines() -> Tell:
    said: dict[str, object] = {}

    def tell(doing: str, done: int, total: int) -> None:
        tenth = (doing, total, 10 * done // total)
        if said.get("last") != tenth:
            said["last"] = tenth
            print(f"{doing}: {done:,} of {total:,} runs", file=sys.stderr, flush=True)

    return tell
