"""The structure of the package in numbers: files, circles, names, and the way of one decision.

    python benchmarks/house.py              # this checkout
    python benchmarks/house.py OTHER/src    # the source of another one as well, without its decision

Lines are those of Python files. A circle is a set of modules that import each other at the top level; imports for
type checkers count as well, those inside a function do not. One decision is `DecisionService.decide` on SQLite,
with its campaign and learner in memory: how many files of the package it enters, and how often one of them calls
another.
"""

from __future__ import annotations

import ast
import re
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")


def modules(source: Path) -> dict[str, ast.Module]:
    """Every module of the package by its dotted name."""
    trees = {}
    for path in sorted(source.rglob("*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        trees[name] = ast.parse(path.read_text())
    return trees


def imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """The imports outside of functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from imports(node)


def circles(trees: dict[str, ast.Module]) -> list[list[str]]:
    """Sets of modules that reach each other by imports (Tarjan's algorithm)."""
    edges: dict[str, set[str]] = {name: set() for name in trees}
    for name, tree in trees.items():
        for node in imports(tree):
            for alias in node.names:
                target = f"{node.module}.{alias.name}"
                edges[name].add(target if target in trees else str(node.module))
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    rings: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in edges[name] & trees.keys() - {name}:
            if target not in index:
                visit(target)
            if target in stack:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            members = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(members) > 1:
                rings.append(sorted(members))

    sys.setrecursionlimit(10_000)
    for name in trees:
        if name not in index:
            visit(name)
    return rings


def long_functions(trees: dict[str, ast.Module], lines: int = 60) -> int:
    every = (node for tree in trees.values() for node in ast.walk(tree))
    return sum(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and (node.end_lineno or 0) - node.lineno >= lines
        for node in every
    )


def asked_from_outside(trees: dict[str, ast.Module]) -> int:
    """How often code outside of `policies` asks by isinstance which policy or state it has."""
    room = "budgetbandits.policies"
    own = {
        node.name for name, tree in trees.items() if name.startswith(room)
        for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }  # fmt: skip
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass")
        and any(isinstance(part, ast.Name) and part.id in own for part in ast.walk(node.args[1]))
        for name, tree in trees.items() if not name.startswith(room) for node in ast.walk(tree)
    )  # fmt: skip


FRAMEWORKS = {"aiohttp", "django", "fastapi", "flask", "litestar", "starlette"}
"""Web frameworks that a service could be made with."""

CAMPAIGN_FIELDS = {"id", "name", "policy", "status"}
"""Fields of a campaign as JSON; a class or a dictionary that names all of them spells that JSON."""


def spellings(trees: dict[str, ast.Module]) -> list[str]:
    """The modules that spell a campaign's JSON, one for each class or dictionary that does."""
    rows = []
    for name, tree in trees.items():
        for node in ast.walk(tree):
            names: set[object] = set()
            if isinstance(node, ast.ClassDef):
                names = {part.target.id for part in node.body
                         if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)}  # fmt: skip
            elif isinstance(node, ast.Dict):
                names = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if names >= CAMPAIGN_FIELDS:
                rows.append(name.removeprefix("budgetbandits."))
    return rows


def frameworks(trees: dict[str, ast.Module]) -> str:
    """The web frameworks that are imported anywhere, also inside functions."""
    imported = {
        str(module).partition(".")[0]
        for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)
        for module in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])
    }  # fmt: skip
    return ", ".join(sorted(imported & FRAMEWORKS)) or "none"


def structure(source: Path) -> list[tuple[str, str]]:
    """The rows of the table that can be read from the source alone."""
    package, tests = source / "budgetbandits", source.parent / "tests"
    trees = modules(source)
    sizes = [len(path.read_text().splitlines()) for path in package.rglob("*.py")]
    tested = sum(len(path.read_text().splitlines()) for path in tests.rglob("*.py"))
    classes = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    twice = sorted(name for name, count in classes.items() if count > 1)
    colours: dict[str, set[Path]] = {}
    for path in package.rglob("*"):
        if path.suffix in (".py", ".css", ".html", ".js"):
            for colour in COLOUR.findall(path.read_text()):
                colours.setdefault(colour.lower(), set()).add(path)
    rings, spelled = circles(trees), spellings(trees)
    return [
        ("modules at the top of the package", str(len(list(package.glob("*.py"))))),
        ("files; median lines; under 100 lines; under 80",
         f"{len(sizes)}; {statistics.median(sizes):.0f}; {sum(s < 100 for s in sizes)}; {sum(s < 80 for s in sizes)}"),
        ("lines of source; of tests", f"{sum(sizes):,}; {tested:,}"),
        ("functions over 60 lines", str(long_functions(trees))),
        ("import circles (modules in each)", ", ".join(str(len(ring)) for ring in rings) or "none"),
        ("class names with two meanings", f"{len(twice)}" + (f" ({', '.join(twice)})" if twice else "")),
        ("colours written in more than one file", str(sum(len(paths) > 1 for paths in colours.values()))),
        ("isinstance on policies and states outside of policies/", str(asked_from_outside(trees))),
        ("spellings of a campaign's JSON", f"{len(spelled)} ({', '.join(spelled)})"),
        ("web frameworks", frameworks(trees)),
        ("migrations", str(len(list(package.rglob("migrations/*.sql"))))),
    ]  # fmt: skip


def decision() -> tuple[list[str], int]:
    """The files that one decision enters, in order, and how many calls there are from one to another."""
    from budgetbandits.service.service import DecisionService
    from budgetbandits.service.stores.sqlite import SQLiteStore

    package, visits, noting = str(ROOT / "src" / "budgetbandits"), list[str](), False

    def note(frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if noting and event == "call" and path.startswith(package):
            caller = frame.f_back.f_code.co_filename if frame.f_back else ""
            if path != caller:
                visits.append(path)

    threading.setprofile(note)  # before the store starts the thread that writes
    sys.setprofile(note)
    with tempfile.TemporaryDirectory() as folder, SQLiteStore(Path(folder) / "store.db") as store:
        service = DecisionService(store)
        service.create("ads", "bts", 10.0, {"search": 0.01, "mail": 0.02})
        for number in range(3):
            service.feedback(service.decide("ads", f"first {number}").decision, reward=1.0, cost=0.01)
        noting = True
        service.decide("ads", "traced")
        noting = False
    sys.setprofile(None)
    return list(dict.fromkeys(path.removeprefix(package + "/") for path in visits)), len(visits)


def main() -> None:
    for source in (*map(Path, sys.argv[1:]), ROOT / "src"):
        print(f"\n{source}\n")
        for what, value in structure(source.resolve()):
            print(f"| {what} | {value} |")
    files, moves = decision()
    print(f"| one decision on SQLite, without HTTP: files entered, moves between files | {len(files)}, {moves} |")
    print(f"\nThe way of a decision: {', '.join(files)}")


if __name__ == "__main__":
    main()
