"""Which extra brings a package that is not installed."""

from __future__ import annotations

from collections.abc import Sequence

from budgetbandits.errors import MissingExtra

PACKAGES = {
    "lab": ("numba", "joblib", "cloudpickle", "psutil", "polars", "matplotlib", "jinja2", "typer", "rich"),
    "service": (
        "fastapi", "starlette", "pydantic", "uvicorn", "httpx", "jinja2", "prometheus_client", "structlog", "typer",
        "rich",
    ),
    "client": ("httpx",),
    "postgres": ("psycopg", "psycopg_pool"),
    "dask": ("distributed", "dask"),
    "ray": ("ray",),
}  # fmt: skip
"""What the extras of pyproject.toml bring, by the names that are imported."""


def remedy(missing: ImportError) -> MissingExtra | None:
    """The error that says what to install, if what could not be imported belongs to an extra.

    >>> remedy(ModuleNotFoundError("No module named 'polars'", name="polars"))
    MissingExtra("this needs polars, which is not installed; pip install 'budgetbandits[lab]'")
    >>> remedy(ModuleNotFoundError("No module named 'mine'", name="mine"))
    """
    package = (missing.name or "").partition(".")[0]
    extras = [extra for extra, packages in PACKAGES.items() if package in packages]
    if not extras:
        return None
    install = " or ".join(f"'budgetbandits[{extra}]'" for extra in extras)
    return MissingExtra(f"this needs {package}, which is not installed; pip install {install}", name=package)


def of_command(words: Sequence[str]) -> str:
    """The extra that has a command of the command line.

    >>> of_command(["serve"]), of_command(["demo", "--serve"]), of_command(["demo"])
    ('service', 'service', 'lab')
    """
    # the one option before a command that has a value
    after_value = {place + 1 for place, word in enumerate(words) if word == "--plugin"}
    rest = [word for place, word in enumerate(words) if place not in after_value]
    command = next((word for word in rest if not word.startswith("-")), "")
    serves = command in ("serve", "campaign", "key") or (command == "demo" and "--serve" in rest)
    return "service" if serves else "lab"
