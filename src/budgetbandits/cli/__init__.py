"""The command line: ``budgetbandits COMMAND``.

A module is named like its command. Commands that belong together share one: `study` has run, paper, report, plot and
view; `catalogue` has policies, distributions, families, problem and check; `leaderboard` has leaderboard and
recommend; `service` has key, backup and restore; `outcomes` has import. `screen` is what commands share,
`remote` sends those of operators to a server. Read this module first: it lists all commands, and turns errors into one
line on stderr and an exit code. Other packages import only `app` and `main`.

Commands import heavy packages inside their functions, so that ``--help`` is quick.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from budgetbandits import __version__, plugins
from budgetbandits.cli import catalogue, study
from budgetbandits.cli.bounds import bounds_command
from budgetbandits.cli.campaign import campaign_app
from budgetbandits.cli.compare import compare_command
from budgetbandits.cli.demo import demo_command
from budgetbandits.cli.evaluate import evaluate_command
from budgetbandits.cli.leaderboard import leaderboard_command, recommend_command
from budgetbandits.cli.outcomes import import_command
from budgetbandits.cli.remote import on_server
from budgetbandits.cli.replay import replay_command
from budgetbandits.cli.screen import print_json
from budgetbandits.cli.serve import serve_command
from budgetbandits.cli.service import backup_command, key_app, restore_command
from budgetbandits.cli.shared_budget import shared_budget_app
from budgetbandits.cli.simulate import simulate_command
from budgetbandits.cli.webhook import webhook_app
from budgetbandits.errors import BudgetBanditsError, missing_extra
from budgetbandits.policies.files import PLUGIN_VARIABLE

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Budgeted multi-armed bandits: every choice has an unknown payoff and an unknown price.",
)


def _print_version(is_given: bool) -> None:
    if is_given:
        print(f"budgetbandits {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(
            envvar=PLUGIN_VARIABLE,
            help="A Python file with your own policies, distributions or families. May be repeated.",
        ),
    ] = None,
) -> None:
    """Options of every command."""
    for path in plugin or ():
        plugins.load(path)
    if plugin:  # the processes that a server starts load the same
        os.environ[PLUGIN_VARIABLE] = os.pathsep.join(str(path.resolve()) for path in plugin)


COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Policies and problems": {
        "demo": demo_command, "simulate": simulate_command, "bounds": bounds_command, "replay": replay_command,
        "evaluate": evaluate_command, "check": catalogue.check_command, "policies": catalogue.policies_command,
        "distributions": catalogue.distributions_command, "families": catalogue.families_command,
        "problem": catalogue.problem_command,
    },
    "Studies": {
        "run": study.run_command, "paper": study.paper_command, "report": study.report_command,
        "compare": compare_command, "plot": study.plot_command, "view": study.view_command,
        "leaderboard": leaderboard_command, "recommend": recommend_command,
    },
    "The decision service": {
        "serve": serve_command, "import": import_command, "backup": backup_command, "restore": restore_command,
    },
}  # fmt: skip
for _panel, _commands in COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)
for _name, _group in (
    ("campaign", campaign_app),
    ("shared-budget", shared_budget_app),
    ("key", key_app),
    ("webhook", webhook_app),
):
    for _each in _group.registered_commands:
        assert _each.callback is not None
        _each.callback = on_server(_each.callback)
    app.add_typer(_group, name=_name, rich_help_panel="The decision service")


def main() -> None:
    """Run the command line; an error that the user can fix is one line on stderr and exit code 2."""
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
    except BrokenPipeError:  # the reader of our output has seen enough
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
        if not message:  # a group without a command, whose help has been shown
            sys.exit(2)
        command = getattr(getattr(error, "ctx", None), "command_path", "budgetbandits")
        remedy = "" if message.startswith(("Invalid", "No such")) else f" See {command} --help."
        _fail("UsageError", message + remedy)


def _stopped() -> None:
    _say("Stopped", "stopped", "stopped")
    sys.exit(130)


def _fail(name: str, message: str) -> None:
    one_line = " ".join(message.split())
    _say(name, one_line, f"error: {one_line}")
    sys.exit(2)


def _say(name: str, message: str, text: str) -> None:
    """Print to stderr: JSON for a program, or text for a person."""
    if "--json" in sys.argv[1:]:
        print_json({"error": name, "message": message}, sys.stderr)
    else:
        print(text, file=sys.stderr)
