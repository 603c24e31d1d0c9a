"""What the command ``budgetbandits`` runs: the command line, or how to install it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line if its dependencies are there."""
    try:
        from budgetbandits import cli
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        print("error: the command line is in an extra; pip install 'budgetbandits[lab]'", file=sys.stderr)
        sys.exit(2)
    cli.main()


if __name__ == "__main__":
    main()
