"""The command line: simulate, policies, problem, demo; in `studies` run, paper, report, compare; in `plots` plot;
`bounds`; in `service` serve, campaign, key."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from budgetbandits import __version__, plugins
from budgetbandits.cli import studies
from budgetbandits.cli.bounds import bounds_command
from budgetbandits.cli.plots import plot_command
from budgetbandits.cli.screen import plain_table, progress_bar
from budgetbandits.cli.service import campaign_app, key_app, serve_command
from budgetbandits.errors import BadParameter, BudgetBanditsError
from budgetbandits.oracle import best_arms, best_ratio
from budgetbandits.policies import KNOWN, parse_policy
from budgetbandits.policies.base import KNOWLEDGE, Policy
from budgetbandits.policies.names import label
from budgetbandits.problem import FAMILIES, Problem, family
from budgetbandits.simulation.outcome import Outcome
from budgetbandits.simulation.simulate import simulate

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Budgeted multi-armed bandits: every choice has an unknown payoff and an unknown price.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"budgetbandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    plugin: Annotated[
        list[Path] | None, typer.Option(help="A Python file with policies, laws or families of yours. May be repeated.")
    ] = None,
) -> None:
    """What every command takes."""
    for path in plugin or ():
        plugins.load(path)


app.command("paper")(studies.paper_command)
app.command("run")(studies.run_command)
app.command("report")(studies.report_command)
app.command("compare")(studies.compare_command)
app.command("plot")(plot_command)
app.command("bounds")(bounds_command)
app.command("serve")(serve_command)
app.add_typer(campaign_app, name="campaign")
app.add_typer(key_app, name="key")


def main() -> None:
    """Run the command line; what the user can fix is one line on stderr and exit code 2."""
    try:
        code = app(standalone_mode=False)
        if code == 130:  # how Typer answers Ctrl-C
            _stopped()
        elif code:
            sys.exit(code)
    except BudgetBanditsError as error:
        _fail(str(error))
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _stopped()
    except BrokenPipeError:  # whoever reads our output has seen enough
        sys.stderr.close()
    except OSError as error:
        _fail(f"cannot write the output: {error}")
    except Exception as error:  # click's usage errors: unknown option, missing argument, value of the wrong type
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        _fail(message if message.startswith(("Invalid", "No such")) else f"{message} See budgetbandits --help.")


def _stopped() -> None:
    print("stopped", file=sys.stderr)
    sys.exit(130)


def _fail(message: str) -> None:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(2)


# --- simulate ----------------------------------------------------------------------------------------------------


@app.command("simulate")
def simulate_command(
    problem: Annotated[Path, typer.Argument(help="A problem file (TOML); 'budgetbandits problem' prints one.")],
    policy: Annotated[
        list[str],
        typer.Option(help="A policy, with parameters as epsilon-first:epsilon=0.1, or FILE.py:CLASS. May be repeated."),
    ],
    budget: Annotated[list[float], typer.Option(help="A budget. May be repeated.")],
    runs: Annotated[int, typer.Option(help="Independent games of each policy.")] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same figures, whatever --jobs is.")] = 0,
    jobs: Annotated[int, typer.Option(help="Worker processes; 0 for one per core.")] = 1,
    engine: Annotated[str, typer.Option(help="fast, reference, or auto: fast where there is such an engine.")] = "auto",
    max_rounds: Annotated[int | None, typer.Option(help="Stop with an error when a game gets this long.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Simulate policies on a problem: regret, rounds, rewards and pulls at each budget."""
    arms = Problem.load(problem)
    policies = [plugins.find_policy(text) for text in policy]
    if jobs < 0:
        raise BadParameter(f"jobs is {jobs}; use 0 for one per core, or the number of workers")
    outcomes = _simulate_all(arms, policies, budget, runs, seed, jobs or -1, engine, max_rounds)
    if as_json:
        results = [result for outcome in outcomes for result in summaries(outcome)]
        print(json.dumps({"results": results}, allow_nan=False))
    else:
        _show(arms, outcomes, title=str(problem))


def _simulate_all(
    problem: Problem,
    policies: list[Policy],
    budgets: list[float],
    runs: int,
    seed: int,
    jobs: int,
    engine: str = "auto",
    max_rounds: int | None = None,
) -> list[Outcome]:
    outcomes = []
    with _progress(len(policies) * runs) as advance_to:
        for i, policy in enumerate(policies):

            def report(done: int, before: int = i * runs, name: str = policy.spec) -> None:
                advance_to(before + done, name)

            outcomes.append(
                simulate(
                    problem,
                    policy,
                    budgets,
                    runs,
                    seed,
                    engine=engine,
                    jobs=jobs,
                    max_rounds=max_rounds,
                    progress=report,
                    compiling=_say_compiling,
                )
            )
    return outcomes


def _say_compiling() -> None:
    print("compiling the engine (once on this machine, about half a minute) ...", file=sys.stderr)


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int, str], None]]:
    """A bar on stderr; silent where stderr is not a terminal."""
    console = Console(stderr=True)
    with progress_bar(console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, rate="")
        yield lambda done, name: bar.update(task, completed=done, description=name)


def summaries(outcome: Outcome) -> list[dict[str, Any]]:
    """One plain record for each budget."""
    regret, pseudo, identified = outcome.regret, outcome.pseudo_regret, outcome.best_arm_identified
    records = []
    for b, budget in enumerate(outcome.budgets.tolist()):
        hits = identified[:, b]
        records.append(
            {
                "policy": outcome.policy,
                "budget": budget,
                "runs": outcome.runs,
                "regret": spread(regret[:, b]),
                "pseudo_regret": spread(pseudo[:, b]),
                "rounds": spread(outcome.rounds[:, b]),
                "reward": spread(outcome.reward[:, b]),
                "spend": spread(outcome.spend[:, b]),
                "pulls": outcome.pulls[:, b].mean(axis=0).tolist(),
                "best_arm_identified": float(hits.mean()),
                "missed_runs": int((~hits).sum()),
                "regret_when_identified": spread(regret[hits, b]),
                "regret_when_missed": spread(regret[~hits, b]),
                "engine": outcome.engine,
                "engine_reason": outcome.engine_reason,
                "seconds": outcome.seconds,
            }
        )
    return records


def spread(values: np.ndarray[Any, Any]) -> dict[str, float | None]:
    """Mean, standard deviation and standard error; null where there are too few values for them."""
    n = len(values)
    std = float(values.std(ddof=1)) if n > 1 else None
    return {"mean": float(values.mean()) if n else None, "std": std, "sem": None if std is None else std / n**0.5}


def _show(problem: Problem, outcomes: list[Outcome], title: str) -> None:
    best = escape(", ".join(problem.names[arm] for arm in best_arms(problem)))
    table = plain_table(
        title=f"{escape(title)}\n{len(problem)} arms, best {best} ({best_ratio(problem):.3f} reward per cost), "
        f"{outcomes[0].runs} runs",
        title_justify="left",
        caption="± is the standard error, std the standard deviation of the regret from run to run.\n"
        "pseudo: the same regret from the pull counts. best arm: runs that pulled it most.",
        caption_justify="left",
    )
    table.add_column("policy", overflow="fold")
    for column in ("budget", "regret", "std", "pseudo", "rounds", "best arm"):
        table.add_column(column, justify="right", no_wrap=True)
    records = [record for outcome in outcomes for record in summaries(outcome)]
    records.sort(key=lambda r: (r["budget"], r["pseudo_regret"]["mean"]))
    for record, following in zip(records, [*records[1:], None], strict=True):
        table.add_row(
            label(record["policy"]),
            f"{record['budget']:,g}",
            _estimate(record["regret"]),
            "–" if record["regret"]["std"] is None else f"{record['regret']['std']:,.1f}",
            _estimate(record["pseudo_regret"]),
            f"{record['rounds']['mean']:,.0f}",
            f"{record['best_arm_identified']:.1%}",
            end_section=following is not None and following["budget"] != record["budget"],
        )
    Console().print(table)


def _estimate(record: dict[str, float | None]) -> str:
    mean = record["mean"]
    assert mean is not None
    digits = 1 if abs(mean) < 1000 else 0  # a tenth of thousands tells nothing and costs the table its width
    error = "" if record["sem"] is None else f" ± {record['sem']:,.{digits}f}"
    return f"{mean:,.{digits}f}{error}"


# --- policies, problem, demo -------------------------------------------------------------------------------------


@app.command("policies")
def policies_command() -> None:
    """List the policies, their parameters and what each must know."""
    table = plain_table()
    for column in ("name", "parameters", "must know", "what it is"):
        table.add_column(column, no_wrap=column != "what it is")
    for name, kind in KNOWN.items():
        policy = kind()
        table.add_row(
            name,
            ", ".join(f"{key}={value}" for key, value in vars(policy).items()).replace("=None", ""),
            ", ".join(sorted(policy.needs)),
            (kind.__doc__ or "").splitlines()[0],
        )
    console = Console()
    console.print(table)
    console.print("Parameters by word: epsilon-first:epsilon=0.2. A parameter without a value need not be given.")
    console.print("What a policy must know a simulation hands over; elsewhere you do:")
    for what, meaning in KNOWLEDGE.items():
        console.print(f"  {what:10} {meaning}", highlight=False)


@app.command("check")
def check_command(
    policy: Annotated[str, typer.Argument(help="A policy, or FILE.py:CLASS.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Hold a policy to everything that policies promise, and to its engine; exit code 1 if anything is broken."""
    from budgetbandits.testing import Finding, check_policy

    def show(finding: Finding) -> None:
        colour = {"holds": "green", "broken": "bold red"}.get(finding.verdict, "dim")
        console.print(f"[{colour}]{finding.verdict:15}[/{colour}] {finding.check}", highlight=False)
        if finding.detail:
            console.print(Padding(escape(finding.detail), (0, 0, 0, 16)), highlight=False)

    console, chosen = Console(), plugins.find_policy(policy)
    if not as_json:
        console.print(f"[bold]{escape(chosen.spec)}[/bold]: about a minute", highlight=False)
    report = check_policy(chosen, (lambda finding: None) if as_json else show)
    if as_json:
        print(
            json.dumps({"policy": report.policy, "holds": report.holds, "findings": list(map(vars, report.findings))})
        )
    else:
        broken = len(report.broken)
        console.print(f"\n{broken} broken" if broken else "\nEverything holds.", highlight=False)
    raise typer.Exit(0 if report.holds else 1)


@app.command("problem")
def problem_command(
    family_name: Annotated[str, typer.Argument(metavar="FAMILY", help=f"One of {', '.join(FAMILIES)}.")],
    arms: Annotated[int, typer.Option(help="How many arms.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same problem.")] = 0,
    low: Annotated[float, typer.Option(help="The smallest mean.")] = 0.0,
    high: Annotated[float, typer.Option(help="The largest mean.")] = 1.0,
) -> None:
    """Print a random problem as TOML."""
    print(family(family_name, arms, seed, low, high).to_toml(), end="")


@app.command("demo")
def demo_command(
    runs: Annotated[int, typer.Option(help="Independent games of each policy.")] = 200,
    seed: Annotated[int, typer.Option(help="Of the problem and of the games.")] = 0,
    jobs: Annotated[int, typer.Option(help="Worker processes; 0 for one per core.")] = 0,
) -> None:
    """Budgeted Thompson Sampling against the paper's baselines on a random 10-armed problem."""
    problem = family("uniform-bernoulli", arms=10, seed=seed, low=0.1)
    policies = [parse_policy(name) for name in ("bts", "epsilon-first", "pd-bwk", "ucb-bv1", "kube")]
    outcomes = _simulate_all(problem, policies, [2000.0, 50_000.0], runs, seed, jobs or -1)
    _show(problem, outcomes, title=f"uniform-bernoulli, means in [0.1, 1], seed {seed}")
    Console().print(
        "\nYour own: [bold].venv/bin/budgetbandits problem uniform-bernoulli > my.toml[/bold], then "
        "[bold].venv/bin/budgetbandits simulate my.toml --policy bts --policy kube --budget 2000[/bold]"
    )
