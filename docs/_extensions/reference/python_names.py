"""Everything that is public in Python."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import budgetbandits
from reference.markdown import first_sentence, plain, table

PACKAGES = ("client", "policies", "problems", "experiments", "plugins", "theory", "off_policy", "testing")
"""Those whose ``__all__`` is public, next to the package itself and `errors`."""

TOP = {
    "Spend in your own program": ("Allocation", "Ask"),
    "Problems": ("Problem", "Arm", "RequestStream", "family", "random_problems"),
    "Play": ("simulate", "simulate_many", "replay", "Outcome"),
    "Policies": ("parse_policy", "POLICIES", "BudgetedThompson", "PacedThompson", "Thompson"),
    "The best player": ("best_ratio", "best_arms", "optimum", "Optimum"),
}
"""The names of the package itself, in the order in which a reader needs them."""

MODULES = {
    "adapters": {
        "openai": ("BudgetedOpenAI", "AsyncBudgetedOpenAI"),
        "litellm": ("BudgetCallback",),
        "calls": ("TokenPrice",),
    },
    "figures": {
        "style": ("figure_spec", "FigureSpec"),
        "layout": ("save",),
        "svg": ("to_svg",),
        "regret": ("regret", "Curve", "RegretOptions"),
        "rankings": ("dots", "wins", "pulls", "MeanInterval", "Wins"),
        "profiles": ("profile", "quantiles"),
        "arms": ("plane", "pulls", "PullShares"),
        "posteriors": ("densities", "density", "Density"),
    },
}
"""Packages whose modules users import from, and what is public of each."""

WITHOUT_SOURCE = ("budgetbandits.parse_policy", "budgetbandits.problems.StreamPart")
"""Without a link to their source: viewcode leads back from a module to one page alone, that of its other names."""


def unfollowed(module: str, name: str) -> str | None:
    """What viewcode asks: where a name is defined; its own module, where no source is found, for those without."""
    return module if f"{module}.{name}".startswith(WITHOUT_SOURCE) else None


SHOWN_ELSEWHERE = {"policies": ("POLICIES", "parse_policy")}
WITHOUT_MEMBERS = ("BudgetedThompson", "PacedThompson", "Thompson")
WITH_INHERITED = ("Allocation", "Decision", "AsyncDecision")
"""Whose bases are not public, but what they add is."""


def public() -> dict[str, list[str]]:
    """The full names of everything public, by the page of docs/reference/python that has it."""
    pages = {"budgetbandits": [f"budgetbandits.{name}" for names in TOP.values() for name in names]}
    for package in PACKAGES:
        names = import_module(f"budgetbandits.{package}").__all__
        left = sorted((name for name in names if name not in SHOWN_ELSEWHERE.get(package, ())), key=_kind)
        pages[package] = [f"budgetbandits.{package}.{name}" for name in left]
    for package, modules in MODULES.items():
        pages[package] = [f"budgetbandits.{package}.{module}.{name}" for module, names in modules.items()
                          for name in names]  # fmt: skip
    return pages


def _kind(name: str) -> int:
    """Classes before functions before values."""
    return 2 if name.isupper() else 0 if name[0].isupper() else 1


def found(full_name: str) -> Any:
    module, _, name = full_name.rpartition(".")
    return getattr(import_module(module), name)


def _directive(full_name: str) -> str:
    name = full_name.rpartition(".")[2]
    if name.isupper():
        return f".. autodata:: {full_name}\n   :no-value:\n"
    if not name[0].isupper():
        return f".. autofunction:: {full_name}\n"
    members = "" if name in WITHOUT_MEMBERS else "   :members:\n"
    if name in WITH_INHERITED:
        members += "   :inherited-members:\n"
    return f".. autoclass:: {full_name}\n{members}"


def _autodoc(full_names: Iterable[str]) -> str:
    return "```{eval-rst}\n" + "\n".join(map(_directive, full_names)) + "```\n"


def python_page(page: str) -> str:
    if page == "budgetbandits":
        return "\n".join(f"## {title}\n\n" + _autodoc(f"budgetbandits.{name}" for name in names)
                         for title, names in TOP.items())  # fmt: skip
    if page in MODULES:
        return "\n".join(
            f"## budgetbandits.{page}.{module}\n\n"
            + _autodoc(f"budgetbandits.{page}.{module}.{name}" for name in names)
            for module, names in MODULES[page].items()
        )
    return _autodoc(public()[page])


def python_overview() -> str:
    """Each public name with its first sentence, by page."""
    made = []
    for page, full_names in public().items():
        title = "budgetbandits" if page == "budgetbandits" else f"budgetbandits.{page}"
        rows = []
        for full_name in full_names:
            about = read_summary(full_name) if page == "adapters" else summary(found(full_name), full_name)
            rows.append((f"{{py:obj}}`{full_name.removeprefix(f'{title}.')} <{full_name}>`", about))
        made.append(f"## {title}\n\n[In full](python/{page}.md)\n\n" + table(("name", ""), rows))
    return "\n".join(made)


def summary(thing: Any, full_name: str = "") -> str:
    """The first sentence of a docstring; of a value, that of the line below it in its module."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        text = attribute_docs(full_name)
    else:
        text = inspect.getdoc(thing) or ""
    return first_sentence(plain(text.split("\n\n")[0]))


def read_class(full_name: str) -> ast.ClassDef:
    """A class of a module whose packages need not be installed: read, not imported."""
    module, _, name = full_name.rpartition(".")
    path = Path(budgetbandits.__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def read_summary(full_name: str) -> str:
    return first_sentence(plain((ast.get_docstring(read_class(full_name)) or "").split("\n\n")[0]))


def attribute_docs(full_name: str) -> str:
    """The text below an assignment of a module, also if another module imports it from there."""
    name = full_name.rpartition(".")[2]
    for module in ("policies", "policies.base", "policies.index"):
        source = inspect.getsource(import_module(f"budgetbandits.{module}"))
        if found := re.search(rf'^{name}\b[^\n]*= [^\n]*\n"""(.*?)"""', source, re.MULTILINE | re.DOTALL):
            return found[1]
    return ""
