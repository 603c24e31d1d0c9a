"""What the command ``budgetbandits`` runs: the command line, or how to install it."""

from __future__ import annotations

import sys

from budgetbandits import extras


def main() -> None:
    """Run the command line if its dependencies are there."""
    try:
        from budgetbandits import cli
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        extra = extras.of_command(sys.argv[1:])
        print(f"error: this command is in an extra; pip install 'budgetbandits[{extra}]'", file=sys.stderr)
        sys.exit(2)
    cli.main()


if __name__ == "__main__":
    main()
