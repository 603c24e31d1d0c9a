"""The command ``budgetbandits``: the command line, or how to install it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from budgetbandits.errors import install

SERVICE_COMMANDS = ("serve", "campaign", "shared-budget", "key", "webhook", "import", "backup", "restore")


def main() -> None:
    """Run the command line if its dependencies are there."""
    try:
        from budgetbandits import cli
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        extra = extra_of(sys.argv[1:])
        print(f"error: this command is in an extra; {install(extra)}", file=sys.stderr)
        sys.exit(2)
    cli.main()


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
