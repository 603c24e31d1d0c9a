"""The commands ``policies``, ``distributions`` and ``families``, which list them, ``problem``, which draws one, and
``check``, which tests a policy.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.padding import Padding

from budgetbandits import plugins
from budgetbandits.cli.screen import AsJson, plain_table, print_json, terminal
from budgetbandits.errors import BadParameter
from budgetbandits.policies import POLICY_REGISTRY
from budgetbandits.policies.base import KNOWLEDGE, written
from budgetbandits.problems.distributions import JOINT_LAWS, KNOWN_LAWS
from budgetbandits.problems.families import ARMS_FAMILIES, KNOWN_FAMILIES, family
from budgetbandits.problems.streams import DRIFTS, drifting

if TYPE_CHECKING:
    from budgetbandits.testing import Finding


def policies_command(as_json: AsJson = False) -> None:
    """List the policies, their parameters and what each must know."""
    policies = {name: kind() for name, kind in POLICY_REGISTRY.items()}
    if as_json:
        print_json(
            {
                "policies": [
                    {
                        "name": name, "parameters": vars(policy), "needs": sorted(policy.needs),
                        "summary": _summary(type(policy)),
                    }
                    for name, policy in policies.items()
                ],
                "knowledge": KNOWLEDGE,
            }
        )  # fmt: skip
        return
    table = plain_table()
    table.add_column("name", no_wrap=True)
    table.add_column("about, and its parameters")
    table.add_column("must know")
    for name, policy in policies.items():
        given = vars(policy).items()
        parameters = ", ".join(key if value is None else f"{key}={written(value)}" for key, value in given)
        about = escape(_summary(type(policy))) + (f"\n[dim]{escape(parameters)}[/dim]" if parameters else "")
        table.add_row(name, about, ", ".join(sorted(policy.needs)))
    console = terminal()
    console.print(table)
    console.print("Set parameters by name: epsilon-first:epsilon=0.2. A parameter without a value is optional.")
    console.print("Simulations tell a policy what it must know; elsewhere you give it:")
    for what, meaning in KNOWLEDGE.items():
        console.print(f"  {what:10} {meaning}")


def distributions_command(as_json: AsJson = False) -> None:
    """List the distributions of rewards and costs for problem files."""
    laws: list[dict[str, Any]] = [
        {"name": name, "parameters": list(inspect.signature(law).parameters), "joint": joint, "summary": _summary(law)}
        for joint, kinds in ((False, KNOWN_LAWS), (True, JOINT_LAWS))
        for name, law in kinds.items()
    ]
    if as_json:
        print_json({"distributions": laws})
        return
    table = plain_table()
    for column in ("distribution", "of", "parameters", "about"):
        table.add_column(column, no_wrap=column != "about")
    for law in laws:
        of = "both at once" if law["joint"] else "reward or cost"
        table.add_row(law["name"], of, ", ".join(law["parameters"]), escape(law["summary"]))
    console = terminal()
    console.print(table)
    console.print('In a problem file: reward = { law = "bernoulli", mean = 0.31 }', markup=False)


def families_command(as_json: AsJson = False) -> None:
    """List the families of random problems."""
    all_families: dict[str, Callable[..., Any]] = {**KNOWN_FAMILIES, **ARMS_FAMILIES}
    families = [{"name": name, "summary": _summary(make)} for name, make in all_families.items()]
    if as_json:
        print_json({"families": families})
        return
    table = plain_table()
    table.add_column("family", no_wrap=True)
    table.add_column("how it draws rewards and costs")
    for entry in families:
        table.add_row(entry["name"], escape(entry["summary"]))
    terminal().print(table)


def problem_command(
    family_name: Annotated[str, typer.Argument(metavar="FAMILY", help="One that 'budgetbandits families' lists.")],
    arms: Annotated[int, typer.Option(help="How many arms.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same problem.")] = 0,
    low: Annotated[float, typer.Option(help="The smallest mean.")] = 0.0,
    high: Annotated[float, typer.Option(help="The largest mean.")] = 1.0,
    drift: Annotated[str | None, typer.Option(help=f"How it changes: {', '.join(DRIFTS)}.")] = None,
    change_at: Annotated[int | None, typer.Option("--at", min=1, help="The request at which it changes.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a random problem as TOML; with --drift, a request stream: the problem before and after a change."""
    if (drift is None) != (change_at is None):
        raise BadParameter("--drift says how it changes and --at at which request; give both, or neither")
    problem = family(family_name, arms, seed, low, high)
    text = (problem if drift is None or change_at is None else drifting(problem, drift, change_at)).to_toml()
    if as_json:
        print_json(tomllib.loads(text))
    else:
        print(text, end="")


def _summary(thing: Callable[..., Any]) -> str:
    """The first line of its docstring."""
    return (thing.__doc__ or "").strip().partition("\n")[0].replace("``", "")


def check_command(
    policy: Annotated[str, typer.Argument(help="A policy, or FILE.py:CLASS.")], as_json: AsJson = False
) -> None:
    """Check a policy against the contract of all policies, and its engine; exit code 1 if anything is broken."""
    from budgetbandits.testing import check_policy

    console, chosen = terminal(), plugins.find_policy(policy)

    def show(finding: Finding) -> None:
        if as_json:
            return
        colour = {"holds": "green", "broken": "bold red"}.get(finding.verdict, "dim")
        console.print(f"[{colour}]{finding.verdict:15}[/{colour}] {finding.check}")
        if finding.detail:
            console.print(Padding(escape(finding.detail), (0, 0, 0, 16)))

    if not as_json:
        console.print(f"[bold]{escape(chosen.spec)}[/bold]: about a minute the first time")
    report = check_policy(chosen, show)
    if as_json:
        print_json(
            {
                "policy": report.policy, "holds": report.holds, "findings": list(map(vars, report.findings)),
                "engine": report.engine and report.engine.name, "engine_reason": report.engine and report.engine.reason,
            }
        )  # fmt: skip
    else:
        if report.engine is not None:
            why = f", not by a faster one: {report.engine.reason}" if report.engine.reason else ""
            console.print(f"\nPlayed by the engine {report.engine.name!r}{escape(why)}")
        console.print("\nEverything holds." if report.holds else f"\n{len(report.broken)} broken")
    raise typer.Exit(0 if report.holds else 1)
