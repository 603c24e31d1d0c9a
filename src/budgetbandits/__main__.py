"""The command ``budgetbandits``: the command line, or how to install it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from textwrap import fill

from budgetbandits import __version__
from budgetbandits.errors import install

# commands by the extra that they need
LAB_COMMANDS = (
    "demo", "simulate", "bounds", "replay", "evaluate", "check", "policies", "distributions", "families", "problem",
    "run", "paper", "report", "compare", "plot", "view", "leaderboard", "recommend",
)  # fmt: skip
SERVICE_COMMANDS = ("serve", "campaign", "shared-budget", "key", "webhook", "import", "backup", "restore")


def main() -> None:
    """Run the command line if its dependencies are there."""
    try:
        from budgetbandits import cli
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.exit(without_extras(sys.argv[1:]))
    cli.main()


def without_extras(words: Sequence[str]) -> int:
    """Answer what the core alone can: help and the version; the exit code. For a command, name its extra."""
    if words == ["--version"]:
        print(f"budgetbandits {__version__}")
        return 0
    if words in ([], ["--help"]):
        print(HELP)
        return 0 if words else 2
    print(f"error: this command is in an extra; {install(extra_of(words))}", file=sys.stderr)
    return 2


def _listed(extra: str, commands: Sequence[str]) -> str:
    return f"{install(extra)}:\n{fill(', '.join(commands), 78, initial_indent='  ', subsequent_indent='  ')}"


HELP = f"""\
Usage: budgetbandits [--help | --version] COMMAND

The core is installed: use it from Python, by `from budgetbandits import Allocation`.
Commands are in extras.

{_listed("lab", LAB_COMMANDS)}

{_listed("service", SERVICE_COMMANDS)}"""
"""Output of ``--help`` without the packages of the command line."""


def extra_of(words: Sequence[str]) -> str:
    """The extra that a command of the command line needs.

    >>> extra_of(["serve"]), extra_of(["demo", "--serve"]), extra_of(["demo"])
    ('service', 'service', 'lab')
    """
    # the one option before a command that has a value
    after_value = {place + 1 for place, word in enumerate(words) if word == "--plugin"}
    rest = [word for place, word in enumerate(words) if place not in after_value]
    command = next((word for word in rest if not word.startswith("-")), "")
    serves = command in SERVICE_COMMANDS or (command == "demo" and "--serve" in rest)
    return "service" if serves else "lab"


if __name__ == "__main__":
    main()
