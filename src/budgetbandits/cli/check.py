"""The command ``check``: a policy against the contract of all policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from budgetbandits import plugins
from budgetbandits.cli.screen import AsJson, print_json

if TYPE_CHECKING:
    from budgetbandits.testing import Finding


def check_command(
    policy: Annotated[str, typer.Argument(help="A policy, or FILE.py:CLASS.")], as_json: AsJson = False
) -> None:
    """Check a policy against the contract of all policies, and its engine; exit code 1 if anything is broken."""
    from budgetbandits.testing import check_policy

    console, chosen = Console(), plugins.find_policy(policy)

    def show(finding: Finding) -> None:
        if as_json:
            return
        colour = {"holds": "green", "broken": "bold red"}.get(finding.verdict, "dim")
        console.print(f"[{colour}]{finding.verdict:15}[/{colour}] {finding.check}", highlight=False)
        if finding.detail:
            console.print(Padding(escape(finding.detail), (0, 0, 0, 16)), highlight=False)

    if not as_json:
        console.print(f"[bold]{escape(chosen.spec)}[/bold]: about a minute", highlight=False)
    report = check_policy(chosen, show)
    if as_json:
        print_json(
            {
                "policy": report.policy, "holds": report.holds, "findings": [vars(each) for each in report.findings],
                "engine": report.engine and report.engine.name, "engine_reason": report.engine and report.engine.reason,
            }
        )  # fmt: skip
    else:
        if report.engine is not None:
            why = f", not by a faster one: {report.engine.reason}" if report.engine.reason else ""
            console.print(f"\nPlayed by the engine {report.engine.name!r}{escape(why)}", highlight=False)
        console.print("\nEverything holds." if report.holds else f"\n{len(report.broken)} broken", highlight=False)
    raise typer.Exit(0 if report.holds else 1)
