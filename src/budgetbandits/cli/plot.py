"""The command ``plot``: one figure of a study as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from budgetbandits.cli.screen import AsJson, print_json
from budgetbandits.errors import BadParameter


def plot_command(
    folder: Annotated[Path, typer.Argument(metavar="STUDY", help="The folder of a study.")],
    out: Annotated[Path, typer.Option(help="The file to write; its name ends in .pdf, .svg or .png.")],
    figure: Annotated[
        str | None,
        typer.Option(help="regret, dots, wins, profile, quantiles or pulls; regret if not given, dots of one budget."),
    ] = None,
    width: Annotated[str, typer.Option(help="paper, page, phone, or inches: the width it is drawn for.")] = "page",
    budget: Annotated[
        float | None, typer.Option(help="One of the study's budgets; the largest if not given. Not for regret.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="pseudo_regret, which it is if not given, regret or reward. Not for pulls.")
    ] = None,
    deviations: Annotated[
        bool, typer.Option("--deviations", help="Regret: bars of the standard deviation instead of bands.")
    ] = False,
    lower_bound: Annotated[
        bool, typer.Option("--lower-bound", help="Regret: the slope below which none stays, where it is known.")
    ] = False,
    dark: Annotated[bool, typer.Option("--dark", help="For a dark page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw a figure of a study, for the width at which it is read."""
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
        Console().print(f"The figure is {out}", highlight=False, soft_wrap=True)


def _width(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text
