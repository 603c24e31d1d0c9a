"""The manual and the code say the same: whatever has a name is described, and prose names nothing that is not there."""

import ast
import builtins
import dataclasses
import inspect
import re
import shlex
import sys
from functools import cached_property
from pathlib import Path
from typing import get_args

import pytest

import budgetbandits
from budgetbandits import errors
from budgetbandits.answers import EventKind, SharedEventKind
from budgetbandits.problems.linear import FEATURE_KEYS, FEATURE_LAWS
from budgetbandits.service.stores.records import EVENTS
from budgetbandits.service.webhooks import NOTIFICATION_FIELDS
from budgetbandits.terms import TERMS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = Path(budgetbandits.__file__).parent
sys.path.insert(0, str(DOCS / "_extensions"))

import reference  # noqa: E402 - it stands with the manual
from reference import command_line, docstrings, files, games, markdown, python_names, service  # noqa: E402

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


# --- everything is described -----------------------------------------------------------------------------------------


def members(kind):
    """(name, docstring) of what a class defines for its users; what overrides a method may leave it to that one."""
    for name, value in vars(kind).items():
        is_member = callable(value) or isinstance(value, property | classmethod | staticmethod | cached_property)
        if is_member and not name.startswith("_") and not isinstance(value, type):
            yield name, inspect.getdoc(getattr(kind, name)) or inspect.getdoc(value)


def public_names():
    for page, names in python_names.public().items():
        for name in names:
            if page == "adapters":
                yield from adapter_names(name)
                continue
            thing = python_names.found(name)
            yield name, python_names.summary(thing, name)
            if inspect.isclass(thing) and thing.__module__.startswith("budgetbandits."):
                yield from ((f"{name}.{member}", about) for member, about in members(thing))


def adapter_names(name):
    kind = python_names.read_class(name)
    yield name, ast.get_docstring(kind)
    for each in kind.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and not each.name.startswith("_"):
            yield f"{name}.{each.name}", ast.get_docstring(each)


def command_names():
    for words, command in command_line.commands().items():
        yield words or "budgetbandits", command.help
        for each in command_line.options_of(command):
            yield f"{words} {each.opts[0]}", each.help


def http_names():
    for (method, path), each in service.operations().items():
        yield f"{method} {path}", each["description"]
        yield from ((f"{path} {one['name']}", one.get("description")) for one in each.get("parameters", ()))
    for name, schema in service.document()["components"]["schemas"].items():
        yield from ((f"{name}.{field}", each.get("description")) for field, each in schema["properties"].items())


def policy_names():
    for name, kind in games.policies().items():
        rule = " ".join(games.rule(kind))
        yield name, rule if "$" in rule or "`" in rule else ""
        about = docstrings.parameters(kind)
        yield from ((f"{name} {each.name}", about.get(each.name)) for each in dataclasses.fields(kind))


DESCRIBED = {
    "Python": public_names,
    "commands": command_names,
    "HTTP": http_names,
    "metrics": lambda: ((each.name, each.help) for each in service.metrics()),
    "errors": lambda: ((name, vars(kind).get("__doc__")) for name, kind in service.errors().items()),
    "refusals": lambda: errors.REFUSALS.items(),
    "events": EVENTS.items,
    "notifications": NOTIFICATION_FIELDS.items,
    "terms": lambda: ((term.name, term.label and term.help) for term in TERMS.values()),
    "policies": policy_names,
    "laws": lambda: ((name, vars(kind).get("__doc__")) for name, kind in games.laws().items()),
    "families": lambda: ((name, make.__doc__) for name, make in games.families().items()),
    "drifts": lambda: ((name, make.__doc__) for name, make in games.drifts().items()),
    "files": lambda: (
        (f"{file}.{key}", about.kind and about.meaning)
        for file, keys in files.file_keys().items()
        for key, about in keys.items()
    ),
}


def undescribed(found):
    return [name for name, about in found if not (about or "").strip()]


@pytest.mark.parametrize("kind", DESCRIBED)
def test_everything_is_described(kind):
    found = list(DESCRIBED[kind]())
    assert found
    assert undescribed(found) == []


def test_what_has_no_description_is_found():
    assert undescribed([("a", "said"), ("b", ""), ("c", None), ("d", " \n")]) == ["b", "c", "d"]

    class Bare:
        def said(self):
            """Said."""

        def unsaid(self): ...

        @property
        def value(self): ...

    assert undescribed(members(Bare)) == ["unsaid", "value"]


def test_the_package_says_where_each_of_its_names_stands():
    listed = [name for names in python_names.TOP.values() for name in names]
    assert sorted(listed) == sorted(budgetbandits.__all__)


def test_every_kind_of_event_and_every_key_of_a_feature_is_listed():
    assert set(EVENTS) == {*get_args(EventKind), *get_args(SharedEventKind)}
    assert set(FEATURE_KEYS) == {"law"} | {
        each.name for kind in FEATURE_LAWS.values() for each in dataclasses.fields(kind)
    }


def test_every_part_is_shown_on_a_page():
    shown = re.findall(r"{include} (?:\.\./)?generated/([\w-]+)\.txt", "".join(page.read_text() for page in PAGES))
    assert sorted(shown) == sorted(reference.generated())


def test_the_parts_are_written_once(tmp_path):
    """A build after which nothing has changed reads no page again."""
    (tmp_path / "old.txt").touch()
    reference.write(tmp_path)
    first = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert "old.txt" not in first
    reference.write(tmp_path)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == first


def test_the_configuration_has_every_option_of_serve_in_its_three_forms():
    part = command_line.serve_part()
    for each in command_line.options_of(command_line.commands()["serve"]):
        key = "" if each.name == "config" else f"<br>`{each.name}`"
        assert f"| `{each.opts[0]}`<br>`{each.envvar}`{key} |" in part


def test_every_document_of_a_command_is_described():
    page = (DOCS / "reference/json.md").read_text()
    for words, command in command_line.commands().items():
        if "--json" in [flag for each in command.params for flag in each.opts]:
            assert f"`{words}`" in page, words


def test_words_of_the_glossary_stand_in_order():
    for part in re.findall(r"```{glossary}\n(.*?)```", (DOCS / "reference/glossary.md").read_text(), re.DOTALL):
        words = re.findall(r"^(\S.*)$", part, re.MULTILINE)
        assert words == sorted(set(words))


# --- docstrings for autodoc ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Ask `Allocation.ask`s, ``x``y.", r"Ask :py:obj:`Allocation.ask`\ s, ``x``\ y."),
        ("The `a b` of [1,\n2]: |x|, w_, 2 * 3.", "The ``a b`` of [1,\n2]: \\|x\\|, w\\_, 2 \\* 3."),
        (
            r"It is $\bar r / n$ (docs/explanation/theory.md).",
            r"It is :math:`\bar r / n` (:doc:`/explanation/theory`).",
        ),
        ("a, b  two of\n      them\nlong  one", "* ``a``, ``b`` – two of them\n* ``long`` – one"),
        ("So:\n\n    x = 1", "So:\n\n::\n\n    x = 1"),
        (">>> a_ * `b`\n3", ">>> a_ * `b`\n3"),
    ],
)
def test_docstrings_become_restructured_text(text, made):
    assert "\n".join(docstrings.to_rst(text)).strip() == made


# --- prose names nothing that is not there ---------------------------------------------------------------------------

SPAN = re.compile(r"(?<!`)`((?:[^`\n]|\n(?!\s*\n))+)`(?!`)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?:console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def command_lines(text):
    """Everything that is written as a command: lines of shell blocks, and spans of code."""
    for block in BLOCK.findall(text):
        yield from block.replace("\\\n", " ").splitlines()
    yield from spans(text)


def spans(text):
    """Code between backticks, also where a line ends in it."""
    return [" ".join(span.split()) for span in SPAN.findall(FENCED.sub("", text))]


def split(line):
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # a quotation that does not end in this line
        return line.split()


def wrong_commands(text):
    """Commands that there are not, and options that their commands do not have."""
    known = command_line.commands()
    wrong = []
    for line in command_lines(text):
        for part in re.split(r"(?:\||&&|;) ", line):
            found = re.search(r"(?:^|\s|/)budgetbandits (.*)", part)
            if found is None:
                continue
            words, command = [], known[""]
            options = {flag for each in command.params for flag in each.opts}
            for word in split(found[1]):
                if getattr(command, "commands", None) and re.fullmatch(r"[a-z][a-z|-]*", word):
                    named = [" ".join([*words, each]) for each in word.split("|")]  # pause|resume
                    wrong += [f"budgetbandits {name}" for name in named if name not in known]
                    if len(named) > 1 or named[0] not in known:
                        break
                    words, command = named[0].split(), known[named[0]]
                    options |= {flag for each in command.params for flag in [*each.opts, *each.secondary_opts]}
                elif re.match(r"--[a-z]", word) and (flag := word.partition("=")[0]) not in options | {"--help"}:
                    wrong.append(f"budgetbandits {' '.join([*words, flag])}")
    return wrong


ALL_OPTIONS = {flag for command in command_line.commands().values() for each in command.params
               for flag in [*each.opts, *each.secondary_opts]} | {"--help"}  # fmt: skip
BENCHMARKS = {flag for path in (ROOT / "benchmarks").rglob("*.py")
              for flag in re.findall(r'"(--[a-z][a-z-]*)"', path.read_text())}  # fmt: skip
OTHER_PROGRAMS = BENCHMARKS | {"--default-non-nullable"}
"""Options of benchmarks, and those of programs of others that pages name on their own."""


def wrong_options(text):
    """Spans that begin with an option which no command has."""
    named = [found[0] for span in spans(text) if (found := re.match(r"--[a-z][a-z-]*", span))]
    return [flag for flag in named if flag not in ALL_OPTIONS | OTHER_PROGRAMS]


NO_METRICS = {"budgetbandits_client", "budgetbandits_session", "budgetbandits_decision"}


def wrong_metrics(text):
    known = {each.name for each in service.metrics()} | NO_METRICS
    known |= {f"{each.name}_{part}" for each in service.metrics() if each.kind == "histogram"
              for part in ("bucket", "sum", "count")}  # fmt: skip
    return [name for name in re.findall(r"\bbudgetbandits_[a-z0-9_]*[a-z0-9]\b", text) if name not in known]


PATHS = {(method, path): re.compile(re.sub(r"{\w+}", r"[^/]+", path)) for method, path in service.operations()}
NOT_OURS = ("/v1/chat/completions", "/v1/models", "/v1/traces")


def wrong_endpoints(text):
    wrong = []
    for method, path in re.findall(
        r"\b(?:(GET|POST|DELETE|PUT|PATCH) )?(?:https?://[\w.:]+)?(/v1/[\w/{}$.-]*\w}?)", text
    ):
        here = [known for (way, _), known in PATHS.items() if method in ("", way)]
        if path not in NOT_OURS and not any(known.fullmatch(path) for known in here):
            wrong.append(f"{method} {path}".strip())
    return wrong


CLAIMED = re.compile(
    r"(?:raise[sd]?|except|catch(?:es)?|\b[45]\d\d) (?:an? )?`([A-Z][A-Za-z]+)`"
    r"|`([A-Z][A-Za-z]+(?:Error|Warning))`"
    r"|`errors\.([A-Z][A-Za-z]+)`"
    r"|^ *except ([A-Z][A-Za-z]+)\b",
    re.MULTILINE,
)


def wrong_errors(text):
    named = [next(filter(None, found)) for found in CLAIMED.findall(text)]
    for listed in re.findall(r"from budgetbandits\.errors import ([\w, ]+)", text):
        named += listed.replace(" ", "").split(",")
    there = {*vars(errors), *vars(builtins)}
    return [name for name in named if name[0].isupper() and name not in there]


def sources():
    folders = [SOURCE, ROOT / "tests", ROOT / "benchmarks", ROOT / "deploy"]
    return [path for folder in folders for path in folder.rglob("*.*") if path.suffix in (".py", ".sh", ".yaml")]


@pytest.fixture(scope="module")
def variables():
    here = Path(__file__)
    return set(command_line.variables()) | {
        name
        for path in sources()
        if path != here
        for name in re.findall(r"BUDGETBANDITS_[A-Z_]+[A-Z]", path.read_text())
    }


def wrong_variables(text, known):
    return [name for name in re.findall(r"\bBUDGETBANDITS_[A-Z_]*[A-Z]\b", text) if name not in known]


CHECKS = {
    "commands": wrong_commands,
    "options": wrong_options,
    "metrics": wrong_metrics,
    "endpoints": wrong_endpoints,
    "errors": wrong_errors,
}
MISTAKES = {
    "commands": (
        "```console\n$ budgetbandits simulate shop.toml --budget 5 \\\n    --polcy bts | tee x\n```\n"
        "Then `budgetbandits campain list`, `budgetbandits campaign create ads --budgt=5`.\n"
        "`budgetbandits key\nlist|dorp`",
        [
            "budgetbandits simulate --polcy",
            "budgetbandits campain",
            "budgetbandits campaign create --budgt",
            "budgetbandits key dorp",
        ],
    ),
    "options": ("With `--retention 30` and `--retain`.", ["--retain"]),
    "metrics": (
        "`budgetbandits_decisions_total`, budgetbandits_decisions_sum, budgetbandits_request_duration_seconds_bucket",
        ["budgetbandits_decisions_sum"],
    ),
    "endpoints": (
        "`GET /v1/campaigns/ads/events`, `POST /v1/campaigns/ads/events`, http://localhost:8000/v1/campains",
        ["POST /v1/campaigns/ads/events", "/v1/campains"],
    ),
    "errors": (
        "It raises `BadParameter` or 409 `Conflikt`; `ValueError`, `MoneyError`.\n\n"
        "```python\nfrom budgetbandits.errors import HoldRefused, HoldDenied\n```",
        ["Conflikt", "MoneyError", "HoldDenied"],
    ),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_nothing_that_is_not_there(page, variables):
    text = page.read_text()
    assert {kind: check(text) for kind, check in CHECKS.items()} == {kind: [] for kind in CHECKS}
    assert wrong_variables(text, variables) == []


@pytest.mark.parametrize("kind", CHECKS)
def test_a_wrong_name_is_found(kind):
    text, wrong = MISTAKES[kind]
    assert CHECKS[kind](text) == wrong


def test_a_wrong_variable_is_found(variables):
    assert wrong_variables("`BUDGETBANDITS_STORE` and `BUDGETBANDITS_SHOP`", variables) == ["BUDGETBANDITS_SHOP"]


def test_a_list_that_ends_a_docstring_is_a_list_whatever_follows_it():
    text = "A value.\n\nlow   its lower end\nhigh  its upper end"
    assert docstrings.to_rst(text) == docstrings.to_rst(text + "\n\n")
    assert "* ``low`` – its lower end" in docstrings.to_rst(text + "\n")


def test_the_description_is_the_second_column():
    assert markdown.table(("name", "kind", ""), [("a", "int", "how many")]) == (
        "| name | description | kind |\n|---|---|---|\n| a | how many | int |\n"
    )
