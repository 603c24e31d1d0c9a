"""The commands for studies: ``run``, ``paper``, ``report``, ``plot`` and ``view``."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import webbrowser
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from budgetbandits.cli.screen import AsJson, StageTimes, plain_table, print_json, run_bar, show_slower, terminal
from budgetbandits.errors import BadParameter

if TYPE_CHECKING:  # polars, joblib and matplotlib take a second to import, which other commands need not wait for
    from budgetbandits.experiments.paper.claims import Claim, ComparisonCounts
    from budgetbandits.experiments.runner import ProgressCallback

Out = Annotated[Path, typer.Option(help="The folder of the study; given again, the study continues.")]
Jobs = Annotated[int, typer.Option(help="Worker processes; -1 for one per core.")]
Cluster = Annotated[
    str | None,
    typer.Option(help="A Dask scheduler, such as tcp://host:8786, or 'local' to start one here (extra dask)."),
]


def run_command(
    experiment: Annotated[str, typer.Argument(help="An experiment file (TOML), or the name of a shipped one.")],
    out: Out,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Run an experiment and write its report; if it was stopped, the same command continues it."""
    from budgetbandits.experiments import Experiment, run
    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.runner import Workers, command_line

    asked = Experiment.load(experiment)
    if findings.is_paper(out):
        raise BadParameter(f"{out} holds the paper's studies; choose another --out")
    with bar(quiet=as_json) as tell:
        run(asked, out, Workers(jobs, cluster), tell, command_line())
    report_command(out, as_json)


def paper_command(
    out: Out,
    runs: Annotated[
        int | None, typer.Option(help="Runs on the calibrated problems instead of the paper's 500.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A quick trial: few runs, small budgets.")] = False,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's simulations and judge each of its claims."""
    times = StageTimes("starting")
    import joblib

    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.runner import Workers, command_line, replacing_workers

    if runs is not None and runs < 2:
        raise BadParameter(f"runs is {runs}; use at least 2, or there is no standard deviation")
    if (out / "study.json").exists():
        raise BadParameter(f"{out} holds a study of its own; choose another --out")
    with bar(quiet=as_json) as tell:

        def note(doing: str, finished: int, total: int) -> None:
            times.enter(f"{doing} {total:,} runs" if doing == "playing" else doing.split(" (")[0])
            tell(doing, finished, total)

        results = findings.reproduce(out, runs, quick, Workers(jobs, cluster), note, command_line())
    times.enter("judging")
    with joblib.parallel_config(n_jobs=jobs), replacing_workers():
        claims = results.claims
    if not as_json:
        _show_claims(claims)
    times.enter("report")
    from budgetbandits.report.page import write_report

    with joblib.parallel_config(n_jobs=jobs), replacing_workers():
        page = write_report(out, results)
    if as_json:
        print_json({"claims": [_record(claim) for claim in claims], "report": str(page), "seconds": times.seconds()})
    else:
        show_report(page)
        print(times.line(), file=sys.stderr)


def _show_claims(claims: list[Claim]) -> None:
    table = plain_table("the paper says", numbers=("panels", "random problems"))
    table.add_column("verdict", no_wrap=True)
    for claim in claims:
        table.add_row(claim.says, _counts(claim.panels), _counts(claim.random), claim.verdict)
    terminal().print(table)
    terminal().print("The comparisons in which the claim holds, of those that could fail; ? are undecided.\n")


def _record(claim: Claim) -> dict[str, object]:
    return asdict(claim) | {"verdict": claim.verdict}


def _counts(counts: ComparisonCounts) -> str:
    undecided = f", {counts.undecided} ?" if counts.undecided else ""
    return f"{counts.holds} of {counts.could_fail}{undecided}"


def report_command(
    folder: Annotated[Path, typer.Argument(help="The folder of a study, or of the paper.")], as_json: AsJson = False
) -> None:
    """Write the report of a study."""
    from budgetbandits.experiments.paper import findings
    from budgetbandits.experiments.study import Study
    from budgetbandits.report.page import write_report

    page = write_report(folder)
    folders = [folder / findings.CALIBRATED, folder / findings.ENSEMBLE] if findings.is_paper(folder) else [folder]
    studies = [Study(folder) for folder in folders]
    lines = list(dict.fromkeys(line for study in studies for line in study.slower(study.asked())))
    if as_json:
        print_json({"report": str(page), "slower": lines})
    else:
        show_slower(lines)
        show_report(page)


def plot_command(
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="The folder of a study.")],
    out: Annotated[Path, typer.Option(help="The file to write; its name ends in .pdf, .svg or .png.")],
    figure: Annotated[
        str | None,
        typer.Option(
            help="regret, dots, wins, profile, quantiles or pulls. Without it, regret, or dots for one budget."
        ),
    ] = None,
    width: Annotated[str, typer.Option(help="paper, page, phone, or inches: the width it is drawn for.")] = "page",
    budget: Annotated[
        float | None, typer.Option(help="One of the study's budgets. Without it, the largest. Not for regret.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="pseudo_regret (the default), regret or reward. Not for pulls.")
    ] = None,
    deviations: Annotated[
        bool, typer.Option("--deviations", help="Regret: standard deviations as bars instead of bands.")
    ] = False,
    lower_bound: Annotated[
        bool, typer.Option("--lower-bound", help="Regret: the slope of the lower bound, where it is known.")
    ] = False,
    dark: Annotated[bool, typer.Option("--dark", help="For a dark page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a figure of a study as a file."""
    from budgetbandits.experiments import Results
    from budgetbandits.experiments.paper import findings
    from budgetbandits.figures.layout import check_format, save

    check_format(out)
    if findings.is_paper(folder):
        raise BadParameter(
            f"{folder} holds the paper's two studies; name {folder / findings.CALIBRATED} or "
            f"{folder / findings.ENSEMBLE}"
        )
    given = {
        "budget": budget, "metric": metric, "deviations": deviations or None, "lower_bound": lower_bound or None,
    }  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    drawn = Results.load(folder).plot(figure, width=_width(width), dark=dark, **options)
    save(drawn, out)
    if as_json:
        print_json({"figure": str(out)})
    else:
        terminal().print(f"The figure is {out}", soft_wrap=True)


def _width(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def view_command(
    folder: Annotated[Path, typer.Argument(help="A study, or a folder with studies in it.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")] = 8600,
    host: Annotated[
        str, typer.Option(help="The address to listen on; 0.0.0.0 shows the studies to all, without a sign-in.")
    ] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the page.")] = False,
) -> None:
    """Show studies and their reports in a browser; running ones are updated live."""
    from budgetbandits.report.viewer.folder import Folder
    from budgetbandits.report.viewer.pages import Viewer, address_of
    from budgetbandits.report.viewer.server import LOOPBACK, Server

    shown = Folder(folder)
    with Server(Viewer(shown), host, port) as server, contextlib.suppress(KeyboardInterrupt):
        with contextlib.suppress(AttributeError, OSError):
            os.nice(5)  # the study that is watched comes first
        page = server.url + address_of(shown)
        print(f"Open {page}\nShows {shown.root} until you press Ctrl-C; nothing is written there.", flush=True)
        if host not in LOOPBACK:
            print("There is no sign-in: everyone who reaches this address sees the studies.", flush=True)
        if not no_browser:
            threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
        try:
            server.serve_forever()
        finally:
            server.stopping.set()


def show_report(page: Path) -> None:
    """Print where the report is, and open it if it can be shown."""
    terminal().print(f"The report is {page}", soft_wrap=True)


@contextlib.contextmanager
def bar(quiet: bool) -> Iterator[ProgressCallback]:
    """`run_bar` for runs that are kept."""
    with run_bar(quiet) as tell:
        try:
            yield tell
        except KeyboardInterrupt:
            if not quiet:
                print("finished runs are kept; the same command continues", file=sys.stderr)
            raise
