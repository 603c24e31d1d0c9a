"""The files that ship with the package: experiments and suites by their names, and what leaderboards have measured."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from budgetbandits.errors import BrokenInstallation, ExperimentError

FOLDER = resources.files("budgetbandits.experiments") / "shipped"
SUITE = "suite"
"""The settings of the leaderboard: no experiment, but one for each of them."""
TRAINING = "training"
"""The same for the problems that a policy is chosen by."""
SUITES = (SUITE, TRAINING)
EXPERIMENTS = ("growth", "omega-ucb", "paper", "uniform-ensemble", "worst-case")


def find(asked: str | Path, names: Sequence[str]) -> tuple[str, Path]:
    """The text of a file, or of the one that ships under that name, and the folder in which it looks for others.

    A file that is there comes before one that ships. ``names`` are those that the user could have meant.
    """
    path = Path(asked)
    if str(path) in (*SUITES, *EXPERIMENTS) and not path.is_file():
        return shipped_text(str(path)), Path()
    try:
        return path.read_text(encoding="utf-8-sig"), path.parent
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(
            f"cannot read {str(path)!r}: {error}; name a readable TOML file, or one that ships: {', '.join(names)}"
        ) from None


def shipped_text(name: str) -> str:
    """An experiment or a suite that ships."""
    return shipped_file(f"{name}.toml")


def shipped_file(name: str) -> str:
    """The text of any file that ships."""
    try:
        return (FOLDER / name).read_text(encoding="utf-8")
    except OSError as error:
        raise BrokenInstallation(
            f"{name} ships with the package and is not there ({error}); install budgetbandits again"
        ) from None
