"""The mechanical part of the rules for words, room by room.

    python tests/helpers/words.py            # how many of each kind are left in every room
    python tests/helpers/words.py src/cli    # the places in one room, or in several

A room is a package of the source (``src/theory``), a folder of tests, ``benchmarks`` or ``examples``; ``src`` and
``tests`` are the files at the top.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

FIRST = re.compile(
    r"(about|above|according|across|after|against|along|among|around|as|at|before|behind|below|beneath|besides|"
    r"between|beyond|but|by|concerning|despite|down|during|except|for|from|in|inside|into|like|of|off|on|"
    r"onto|out|outside|over|per|since|than|through|throughout|till|to|toward|towards|under|until|up|upon|"
    r"via|what|with|within|without)\b",
    re.IGNORECASE,
)
"""Words that no docstring begins with: prepositions, and "what"."""

NAMES = re.compile(r"each|found|made|known|there|here|some|done|said|was|by_\w+")
"""Names that are no nouns, for a variable, a parameter or a field; but ``known`` is what policies call knowledge."""

KINDS = ("beginning", "end", "name", "no docstring", "bare constant")
"""The kinds of findings: how a docstring begins, how it ends, a name, a missing docstring, an unexplained constant."""


class Finding(NamedTuple):
    """One place that breaks a rule."""

    kind: str
    path: Path
    line: int
    text: str


@cache
def tree(path: Path) -> ast.Module:
    """A file, parsed."""
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of a file."""
    return list(ast.walk(tree(path)))


@cache
def rooms() -> dict[str, list[Path]]:
    """The files of every room: those of ``src/theory`` lie in ``src/budgetbandits/theory``."""
    files = defaultdict(list)
    for folder in ("src", "tests", "benchmarks", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).as_posix().replace("src/budgetbandits/", "src/").split("/")[:-1]
            files["/".join(parts[:2])].append(path)
    return dict(files)


# --- docstrings --------------------------------------------------------------------------------------------------


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of the docstrings: of modules, classes, functions, and under constants and fields."""
    for node in nodes(path):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for before, statement in zip([None, *body], body, strict=False):
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))) if text.strip():
                    if (before is None and documented) or isinstance(before, (ast.Assign, ast.AnnAssign)):
                        yield statement.lineno, text.strip()


def bad_docstrings(path: Path) -> Iterator[Finding]:
    """Docstrings that begin with a preposition or an example, or end in dots."""
    for line, text in docstrings(path):
        head = text.split("\n", 1)[0]
        if FIRST.match(text) or text.startswith((">>>", "...", "…")):
            yield Finding("beginning", path, line, head)
        if re.search(r"(…|(?<!:) \.\.\.)$", text):
            yield Finding("end", path, line, head)


# --- names -------------------------------------------------------------------------------------------------------


def bad_names(path: Path) -> Iterator[Finding]:
    """Variables, parameters and fields whose name is no noun."""
    fields = {id(item.target) for node in nodes(path) if isinstance(node, ast.ClassDef) for item in node.body
              if isinstance(item, ast.AnnAssign)}  # fmt: skip
    for node in nodes(path):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) if NAMES.fullmatch(name):
                if name == "known" and (isinstance(node, ast.arg) or id(node) in fields):
                    continue
                yield Finding("name", path, node.lineno, name)


# --- public names without a word about them ----------------------------------------------------------------------


@cache
def classes() -> dict[str, tuple[set[str], list[str]]]:
    """Methods with a docstring, and base classes, of every class of the package; no class name is used twice."""
    found = {}
    for node in (node for path in (ROOT / "src").rglob("*.py") for node in nodes(path)):
        if isinstance(node, ast.ClassDef):
            bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
            functions = (item for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)))
            methods = {function.name for function in functions if ast.get_docstring(function)}
            found[node.name] = (methods, [getattr(base, "id", "") for base in bases])
    return found


def inherits(bases: list[str], method: str) -> bool:
    """Whether one of these classes, or one above it, documents the method."""
    documented = [classes()[base] for base in bases if base in classes()]
    return any(method in methods or inherits(above, method) for methods, above in documented)


@cache
def promised(folder: Path) -> set[str]:
    """The methods that protocols of a folder document, for the classes there that follow them."""
    kinds = (node for path in folder.glob("*.py") for node in nodes(path) if isinstance(node, ast.ClassDef))
    return {method for kind in kinds for method in classes()[kind.name][0] if "Protocol" in classes()[kind.name][1]}


def undocumented(path: Path) -> Iterator[Finding]:
    """Public classes, functions and methods that neither have nor inherit a docstring."""
    waiting: list[tuple[ast.AST, list[str]]] = [(tree(path), [])]
    while waiting:
        owner, bases = waiting.pop()
        for node in ast.iter_child_nodes(owner):
            if isinstance(node, (ast.If, ast.Try)):
                waiting.append((node, bases))
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) or node.name[0] == "_":
                continue
            marks = {getattr(mark, "attr", getattr(mark, "id", "")) for mark in node.decorator_list}
            explained = ast.get_docstring(node) or inherits(bases, node.name) or marks & {"overload", "setter"}
            if not explained and not (isinstance(owner, ast.ClassDef) and node.name in promised(path.parent)):
                yield Finding("no docstring", path, node.lineno, node.name)
            if isinstance(node, ast.ClassDef):
                waiting.append((node, classes()[node.name][1]))


def bare_constants(path: Path) -> Iterator[Finding]:
    """Public constants with neither a docstring nor a comment, on their lines or above their paragraph."""
    lines, body = path.read_text("utf-8").splitlines(), tree(path).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
                first = statement.lineno - 1
                own = any("  # " in line for line in lines[first : statement.end_lineno])
                while first and lines[first].strip() and not lines[first].startswith(("#", '"""')):
                    first -= 1
                explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                if re.fullmatch(r"[A-Z][A-Z0-9_]*", name) and not (own or explained or lines[first].startswith("#")):
                    yield Finding("bare constant", path, statement.lineno, name)


# --- all of them -------------------------------------------------------------------------------------------------


def findings(room: str) -> list[Finding]:
    """The places of one room that break a rule. Only the package has public names."""
    everywhere, package = (bad_docstrings, bad_names), (undocumented, bare_constants)
    checks = everywhere + package if room.startswith("src") else everywhere
    return [finding for path in rooms()[room] for check in checks for finding in check(path)]


def main() -> None:
    """Print the table of all rooms, or the places in those that are named."""
    for finding in (finding for room in sys.argv[1:] for finding in findings(room)):
        print(f"{finding.path.relative_to(ROOT)}:{finding.line}: {finding.kind}: {finding.text}")
    if sys.argv[1:]:
        return
    counts = {room: Counter(finding.kind for finding in findings(room)) for room in sorted(rooms())}
    counts["all"] = sum(counts.values(), Counter())
    print(f"{'room':18s}" + "".join(f"{kind:>16s}" for kind in KINDS))
    for room, numbers in counts.items():
        print(f"{room:18s}" + "".join(f"{numbers[kind]:16d}" for kind in KINDS))


if __name__ == "__main__":
    main()
