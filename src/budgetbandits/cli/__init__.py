"""The command line: one module for each family of commands, and here what they share: options, errors, exit codes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from budgetbandits import __version__, plugins
from budgetbandits.cli import catalogue, study
from budgetbandits.cli import simulate as simulating
from budgetbandits.cli.bounds import bounds_command
from budgetbandits.cli.campaigns import campaign_app
from budgetbandits.cli.check import check_command
from budgetbandits.cli.compare import compare_command
from budgetbandits.cli.evaluate import evaluate_command
from budgetbandits.cli.keys import key_app
from budgetbandits.cli.leaderboard import leaderboard_command, recommend_command
from budgetbandits.cli.plot import plot_command
from budgetbandits.cli.replay import replay_command
from budgetbandits.cli.screen import print_json
from budgetbandits.cli.service import serve_command
from budgetbandits.cli.view import view_command
from budgetbandits.errors import BudgetBanditsError, missing_extra

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


app.command("simulate")(simulating.simulate_command)
app.command("replay")(replay_command)
app.command("evaluate")(evaluate_command)
app.command("demo")(simulating.demo_command)
app.command("policies")(catalogue.policies_command)
app.command("laws")(catalogue.laws_command)
app.command("families")(catalogue.families_command)
app.command("problem")(catalogue.problem_command)
app.command("check")(check_command)
app.command("paper")(study.paper_command)
app.command("run")(study.run_command)
app.command("report")(study.report_command)
app.command("compare")(compare_command)
app.command("leaderboard")(leaderboard_command)
app.command("recommend")(recommend_command)
app.command("plot")(plot_command)
app.command("bounds")(bounds_command)
app.command("view")(view_command)
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
        _fail(type(error).__name__, str(error))
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _stopped()
    except BrokenPipeError:  # whoever reads our output has seen enough
        sys.stderr.close()
    except ImportError as error:
        needed = missing_extra(error)
        if needed is None:
            raise
        _fail("MissingExtra", str(needed))
    except OSError as error:
        what = "write the output" if error.filename is None else f"read or write {error.filename}"
        _fail("OSError", f"cannot {what}: {error.strerror or error}")
    except Exception as error:  # click's usage errors: unknown option, missing argument, value of the wrong type
        if not hasattr(error, "format_message"):
            raise
        message = error.format_message()
        remedy = "" if message.startswith(("Invalid", "No such")) else " See budgetbandits --help."
        _fail("UsageError", message + remedy)


def _stopped() -> None:
    _say("Stopped", "stopped", "stopped")
    sys.exit(130)


def _fail(name: str, message: str) -> None:
    one_line = " ".join(message.split())
    _say(name, one_line, f"error: {one_line}")
    sys.exit(2)


def _say(name: str, message: str, text: str) -> None:
    """On stderr, for whoever asked: a program, which reads JSON, or a person."""
    if "--json" in sys.argv[1:]:
        print_json({"error": name, "message": message}, sys.stderr)
    else:
        print(text, file=sys.stderr)
