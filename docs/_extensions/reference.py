"""The reference, generated from the code: ``GENERATED`` has a function for each part, `setup` writes them.

Each part is MyST text in docs/reference/generated/NAME.txt, which a page of docs/reference includes. It is written
before any page is read, and only if it has changed, so one build is enough and the same code gives the same pages.
`to_rst` makes reStructuredText of the package's docstrings for autodoc. Nothing here needs Sphinx to be imported.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# --- Markdown ---------------------------------------------------------------------------------------------------------


def row(*cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    head = list(head)
    return "\n".join([row(*head), "|" + "---|" * len(head), *(row(*cells) for cells in rows)]) + "\n"


def code(text: Any) -> str:
    return f"`{text}`" if str(text) else ""


def plain(text: str | None) -> str:
    """A docstring or a help for a table: one line, with the backticks of Markdown."""
    return " ".join((text or "").split()).replace("``", "`").replace("...", "…").replace("*", "\\*")


# --- docstrings -------------------------------------------------------------------------------------------------------

LISTED = re.compile(r"([\w.*]+(?:, [\w.*]+)*)(?: {2,}(\S.*))$")
SPAN = re.compile(r"``(?P<code>[^`]+)``|`(?P<name>[^`]+)`|\$(?P<math>[^$]+)\$|docs/(?P<page>[\w/]+)\.md", re.DOTALL)


def blocks(text: str) -> list[list[str]]:
    """The lines of a docstring, cut at empty lines; examples are kept together."""
    return [block.split("\n") for block in re.split(r"\n\s*\n", inspect.cleandoc(text)) if block.strip()]


def listed(block: list[str]) -> list[tuple[str, str]] | None:
    """(name, description) of each entry of a block that lists names in one column; None for other blocks."""
    entries: list[list[str]] = []
    for line in block:
        if found := LISTED.match(line):
            entries.append([found[1], found[2]])
        elif entries and line.startswith("  "):
            entries[-1][1] += " " + line.strip()
        else:
            return None
    return [(name, about) for name, about in entries]


def parameters(kind: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of fields by name."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        for block in blocks(vars(each).get("__doc__") or ""):
            for names, about in listed(block) or ():
                found |= dict.fromkeys(names.split(", "), about)
    return found


def paragraphs(text: str) -> Iterator[str]:
    """The prose of a docstring, without its lists and examples."""
    for block in blocks(text):
        if not block[0].startswith((">>>", " ")) and listed(block) is None:
            yield " ".join(line.strip() for line in block)


def to_rst(text: str) -> list[str]:
    """A docstring as reStructuredText: single backticks are names, $…$ is a formula, a column of names a list."""
    made: list[str] = []
    for block in blocks(text):
        if block[0].startswith(">>>"):
            made += block
        elif (entries := listed(block)) is not None:
            made += [f"* {', '.join(f'``{each}``' for each in names.split(', '))} – {inline(about)}"
                     for names, about in entries]  # fmt: skip
        elif all(line.startswith("    ") for line in block):
            made += ["::", "", *block]
        else:
            made += inline("\n".join(block)).split("\n")
        made.append("")
    return made


def inline(text: str) -> str:
    made, last = "", 0
    for found in SPAN.finditer(text):
        made += _escaped(text[last : found.start()])
        last = found.end()
        before, after = made[-1:], text[last : last + 1]
        made += "" if not before or before in " \n([{<\"'/:-–—" else "\\ "
        if found["math"]:
            made += f":math:`{' '.join(found['math'].split())}`"
        elif found["page"]:
            made += f":doc:`/{found['page']}`"
        elif found["name"] and re.fullmatch(r"[\w.]+", found["name"]):
            made += f":py:obj:`{found['name']}`"
        else:
            made += f"``{found['code'] or found['name']}``"
        made += "\\ " if after.isalnum() else ""
    return made + _escaped(text[last:])


def _escaped(text: str) -> str:
    text = re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text.replace("\\", "\\\\"))
    return re.sub(r"(?<=\w)_(?!\w)|\|", lambda found: "\\" + found[0], text)


# --- Python -----------------------------------------------------------------------------------------------------------

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

SHOWN_ELSEWHERE = {"policies": ("POLICIES", "parse_policy")}
WITHOUT_MEMBERS = ("BudgetedThompson", "PacedThompson", "Thompson")


def public() -> dict[str, list[str]]:
    """The full names of everything public, by the page of docs/reference/python that has it."""
    pages = {"budgetbandits": [f"budgetbandits.{name}" for names in TOP.values() for name in names]}
    for package in PACKAGES:
        names = import_module(f"budgetbandits.{package}").__all__
        left = [name for name in names if name not in SHOWN_ELSEWHERE.get(package, ())]
        pages[package] = [f"budgetbandits.{package}.{name}" for name in left]
    for package, modules in MODULES.items():
        pages[package] = [f"budgetbandits.{package}.{module}.{name}" for module, names in modules.items()
                          for name in names]  # fmt: skip
    return pages


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
            if page == "adapters":  # its packages need not be installed
                continue
            short = full_name.removeprefix(f"{title}.")
            rows.append((f"{{py:obj}}`{short} <{full_name}>`", summary(found(full_name), full_name)))
        made.append(f"## {title}\n\n[In full](python/{page}.md)\n\n" + (table(("name", ""), rows) if rows else ""))
    return "\n".join(made)


def summary(thing: Any, full_name: str = "") -> str:
    """The first sentence of a docstring; of a value, that of the line below it in its module."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        text = _attribute_docs(full_name)
    else:
        text = inspect.getdoc(thing) or ""
    return first_sentence(plain(text.split("\n\n")[0]))


def first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s+(?=[A-Z])", text, maxsplit=1)[0]


def _attribute_docs(full_name: str) -> str:
    """The text below an assignment of a module, also if another module imports it from there."""
    name = full_name.rpartition(".")[2]
    for module in ("policies", "policies.base", "policies.index"):
        source = inspect.getsource(import_module(f"budgetbandits.{module}"))
        if found := re.search(rf'^{name}\b[^\n]*= [^\n]*\n"""(.*?)"""', source, re.MULTILINE | re.DOTALL):
            return found[1]
    return ""


# --- commands and configuration ---------------------------------------------------------------------------------------


@cache
def commands() -> dict[str, Any]:
    """Every command by its words, with its parameters: groups before what is in them."""
    import typer

    from budgetbandits.cli import app

    found: dict[str, Any] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        found[" ".join(words)] = command
        for name, each in getattr(command, "commands", {}).items():
            walk(each, (*words, name))

    walk(typer.main.get_command(app), ())
    return found


def options_of(command: Any) -> list[Any]:
    return [each for each in command.params if each.name != "help"]


def is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


WORDS = {int: "whole number", float: "number", Path: "path", str: "text"}


def metavar(parameter: Any) -> str:
    """What an option takes, in words."""
    if getattr(parameter, "is_flag", False):
        return ""
    kind = parameter.type_descriptor.annotation
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        return " or ".join(map(code, get_args(kind)))
    low, high = parameter.min, parameter.max
    bounds = "" if low is None else f", from {low:,g}" if high is None else f", {low:,g} to {high:,g}"
    return WORDS.get(kind, getattr(kind, "__name__", str(kind))) + bounds


def default_of(parameter: Any) -> str:
    value = parameter.default
    if callable(value) or value is None or value == "" or parameter.required or type(value).__name__ == "Sentinel":
        return ""
    if getattr(parameter, "is_flag", False):
        return "on" if value is True else ""
    return code(", ".join(map(str, value)) if isinstance(value, list | tuple) else getattr(value, "value", value))


def _usage(words: str, command: Any) -> str:
    arguments = []
    for each in filter(is_argument, command.params):
        name = (each.metavar or each.name).upper().strip("[]").replace("...", "") + ("…" if each.nargs == -1 else "")
        arguments.append(name if each.required else f"[{name}]")
    more = "COMMAND" if getattr(command, "commands", None) else ""
    options = "[OPTIONS]" if [each for each in options_of(command) if not is_argument(each)] else ""
    return " ".join(filter(None, ("budgetbandits", words, options, *arguments, more)))


def commands_part() -> str:
    made = []
    for words, command in commands().items():
        if not words:
            continue
        level = "##" if " " not in words else "###"
        part = [f"{level} {words}\n", f"```text\n{_usage(words, command)}\n```\n", plain(command.help) + "\n"]
        if parameters := options_of(command):
            rows = [
                (
                    " ".join(
                        map(code, ([each.name.upper()] if is_argument(each) else [*each.opts, *each.secondary_opts]))
                    ),
                    metavar(each),
                    plain(each.help) + (" May be repeated." if _repeats(each) else ""),
                    default_of(each) or ("must be given" if each.required else ""),
                    code(each.envvar) if getattr(each, "envvar", None) else "",
                )
                for each in parameters
            ]
            head = ["option", "value", "", "default", "variable"]
            if not any(cells[4] for cells in rows):
                head, rows = head[:4], [cells[:4] for cells in rows]  # type: ignore[misc]
            part.append(table(head, rows))
        made.append("\n".join(part))
    return "\n".join(made)


def _repeats(parameter: Any) -> bool:
    return bool(getattr(parameter, "multiple", False)) and "repeated" not in (parameter.help or "")


def top_options() -> str:
    return table(("option", ""), [(code(each.opts[0]), plain(each.help)) for each in options_of(commands()[""])])


def serve_part() -> str:
    rows = [
        (code(each.opts[0]), code(each.envvar), "" if each.name == "config" else code(each.name), metavar(each),
         default_of(each), plain(each.help))
        for each in options_of(commands()["serve"])
    ]  # fmt: skip
    return table(("option", "variable", "key in the file", "value", "default", ""), rows)


def variables() -> dict[str, set[str]]:
    """The environment variables of options, each with the commands that read it."""
    found: dict[str, set[str]] = {}
    for words, command in commands().items():
        for each in command.params:
            if getattr(each, "envvar", None):
                found.setdefault(each.envvar, set()).add(words)
    return found


def variables_part() -> str:
    served = {each.envvar for each in options_of(commands()["serve"])}
    rows = []
    for name, used in sorted(variables().items()):
        if name not in served or len(used) > 1:
            first = next(each for each in commands()[sorted(used)[0]].params if getattr(each, "envvar", "") == name)
            groups = sorted({words.split()[0] for words in used})
            rows.append((code(name), plain(first.help), ", ".join(code(group) for group in groups)))
    return table(("variable", "", "commands"), rows)


# --- the service ------------------------------------------------------------------------------------------------------


@cache
def openapi() -> dict[str, Any]:
    from budgetbandits.service.http.app import create_app
    from budgetbandits.service.http.openapi import document
    from budgetbandits.service.service import DecisionService
    from budgetbandits.service.stores.sqlite import SQLiteStore

    with tempfile.TemporaryDirectory() as folder, SQLiteStore(Path(folder) / "reference.db") as store:
        router: Any = create_app(DecisionService(store), store).operators.get()
        return document(router.routes[-1].app)


def operations() -> dict[tuple[str, str], dict[str, Any]]:
    return {(method.upper(), path): each for path, some in openapi()["paths"].items() for method, each in some.items()}


def _kind(schema: Mapping[str, Any]) -> str:
    from budgetbandits.service.http.openapi import kind_of

    schemas = openapi()["components"]["schemas"]
    words = re.split(r"(\W+)", kind_of(dict(schema)))
    return "".join(f"[{word}](#{word.lower()})" if word in schemas else word for word in words)


def http_part() -> str:
    made = []
    for tag in openapi()["tags"]:
        made.append(f"## {tag['name'].replace('-', ' ').capitalize()}\n\n{tag['description']}\n")
        made += [_operation(*key, each) for key, each in operations().items() if each["tags"] == [tag["name"]]]
    return "\n".join(made)


def _operation(method: str, path: str, about: dict[str, Any]) -> str:
    scope = about["security"][0]["key"][0] if about["security"] else None
    good = [code for code in about["responses"] if code.startswith("2")]
    answers = []
    for status in good:
        kinds = [_kind(each.get("schema", {})) for each in about["responses"][status].get("content", {}).values()]
        answers.append(f"{status} {kinds[0]}" if kinds and kinds[0] != "anything" else f"{status}, a file or a text")
    lines = [
        f"### {about['summary']}\n", f"```text\n{method} {path}\n```\n",
        *([] if about["description"] == about["summary"] + "." else [plain(about["description"]) + "\n"]),
        f"- Key: {'of scope ' + code(scope) if scope else 'none needed'}",
    ]  # fmt: skip
    if body := about.get("requestBody"):
        kind = _kind(body["content"]["application/json"]["schema"])
        lines.append(f"- Body: {kind}" + ("" if body.get("required") else ", or none"))
    lines.append(f"- Answer: {'; '.join(answers)}")
    problems = [status for status in about["responses"] if status not in good]
    lines += [f"- Problems: {', '.join(problems)}"] if problems else []
    lines.append(f"- In Python and as `operationId`: `{about['operationId']}`\n")
    if about.get("parameters"):
        rows = [
            (code(each["name"]), each["in"], _kind(each["schema"]), "yes" if each["required"] else "no",
             plain(each.get("description")))
            for each in about["parameters"]
        ]  # fmt: skip
        lines.append(table(("parameter", "in", "type", "needed", ""), rows))
    return "\n".join(lines)


def statuses_part() -> str:
    from budgetbandits.service.http.openapi import PROBLEM_RESPONSES

    return table(("status", ""), [(code, each["description"]) for code, each in PROBLEM_RESPONSES.items()])


def schemas_part() -> str:
    made = []
    for name, schema in sorted(openapi()["components"]["schemas"].items()):
        required = schema.get("required", ())
        rows = [
            (code(field), _field_kind(about), plain(about.get("description")), _field_default(about, field in required))
            for field, about in schema.get("properties", {}).items()
        ]
        head = ("field", "type", "", "default")
        if name.endswith("Answer") or name == "ProblemDetails":  # what a server sends is always there
            head, rows = head[:3], [cells[:3] for cells in rows]
        made.append(f"### {name}\n\n{plain(schema.get('description'))}\n\n" + table(head, rows))
    return "\n".join(made)


def _field_kind(schema: Mapping[str, Any]) -> str:
    kind = _kind(schema)
    return kind if len(kind) < 400 else "one of the titles of [errors](errors.md)"


def _field_default(schema: Mapping[str, Any], required: bool) -> str:
    if required:
        return "must be given"
    default = schema.get("default")
    return "null" if default is None else code(default)


def terms_part() -> str:
    from budgetbandits.terms import TERMS

    made = []
    for group in dict.fromkeys(term.group for term in TERMS.values()):
        rows = [
            (code(term.name), term.label, plain(term.full_help), _term_kind(term), _term_default(term),
             "yes" if term.changeable else "no")
            for term in TERMS.values() if term.group == group
        ]  # fmt: skip
        made.append(f"## {group}\n\n" + table(("term", "label", "", "value", "default", "changeable"), rows))
    return "\n".join(made)


def _term_kind(term: Any) -> str:
    if term.choices:
        return " or ".join(code(value) for value, _ in term.choices)
    kind = {"money": "money", "seconds": "seconds", "number": "number", "text": "text", "names": "list of names"}[
        term.kind
    ]
    if term.whole:
        kind = "whole number"
    return kind + (f", {term.smallest:,g} to {term.largest:,.0f}" if term.largest < float("inf") else "")


def _term_default(term: Any) -> str:
    return (
        "none"
        if term.default is None
        else code(f"{term.default:g}" if isinstance(term.default, float) else term.default)
    )


# --- errors -----------------------------------------------------------------------------------------------------------


def errors() -> dict[str, type]:
    from budgetbandits import errors as module

    return {name: kind for name, kind in vars(module).items()
            if isinstance(kind, type) and issubclass(kind, module.BudgetBanditsError)}  # fmt: skip


def status_of(kind: type) -> str:
    from budgetbandits.errors import HoldRefused, NotAllowed
    from budgetbandits.service.http.problem_json import describe

    if kind is HoldRefused:
        made = {describe(HoldRefused(reason, ""))["status"] for reason in ("exhausted", "paused")}
    elif kind is NotAllowed:
        made = {describe(NotAllowed("", known))["status"] for known in (True, False)}
    else:
        made = {describe(kind(""))["status"]}
    return ", ".join(map(str, sorted(made)))


def error_tree() -> str:
    from budgetbandits import errors as module

    drawn = (module.__doc__ or "").partition("\n\n")[2]
    return f"```text\n{drawn.strip()}\n```\n"


def errors_part() -> str:
    rows = []
    for name, kind in sorted(errors().items()):
        built_in = next(base.__name__ for base in kind.__mro__ if base.__module__ == "builtins")
        parent = kind.__bases__[0].__name__
        over_http = status_of(kind) if name != "BudgetBanditsError" else ""
        rows.append((code(name), plain(kind.__doc__), code(parent), code(built_in), over_http))
    return table(("error", "", "kind of", "also a", "HTTP"), rows)


def refusals_part() -> str:
    from budgetbandits.errors import REFUSALS, HoldRefused
    from budgetbandits.service.http.problem_json import describe

    rows = [(code(reason), describe(HoldRefused(reason, ""))["status"], about) for reason, about in REFUSALS.items()]
    return table(("reason", "HTTP", ""), rows)


def protocol_part() -> str:
    from budgetbandits.service.http.problem_json import PROTOCOL_TITLES

    return table(("title", ""), [(code(title), about) for title, about in PROTOCOL_TITLES.items()])


# --- metrics and events -----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class MetricLine:
    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


@cache
def metrics() -> list[MetricLine]:
    """The metrics of a server and of its campaigns, as a server has them that has one of each."""
    from prometheus_client.parser import text_string_to_metric_families

    from budgetbandits.service.http.campaign_metrics import CampaignMetrics, CampaignSeries
    from budgetbandits.service.http.metrics import Metrics
    from budgetbandits.service.service import DecisionService
    from budgetbandits.service.stores.sqlite import SQLiteStore

    with tempfile.TemporaryDirectory() as folder, SQLiteStore(Path(folder) / "reference.db") as store:
        from budgetbandits.service.shared_budgets.operations import SharedBudgets

        SharedBudgets(store).create("shared", 5.0)
        DecisionService(store).create("one", "bts", 5.0, {"a": 1.0, "b": 1.0})
        found = [_metric(each, tuple(getattr(each, "_labelnames", ()))) for each in Metrics(store).collect()]
        page = CampaignMetrics(store, CampaignSeries()).page().decode()
    for each in text_string_to_metric_families(page):
        labels = {label for sample in each.samples for label in sample.labels}
        found.append(
            _metric(each, tuple(sorted(labels)) or ("campaign",) * each.name.startswith("budgetbandits_campaign_"))
        )
    return found


def _metric(family: Any, labels: tuple[str, ...]) -> MetricLine:
    suffix = {"counter": "_total", "info": "_info"}.get(family.type, "")
    if family.type == "info":
        labels = tuple(sorted(label for sample in family.samples for label in sample.labels))
    return MetricLine(family.name + suffix, family.type, labels, family.documentation)


def metrics_part() -> str:
    rows = [(code(each.name), each.kind, ", ".join(map(code, each.labels)), each.help) for each in metrics()]
    return table(("metric", "type", "labels", ""), rows)


def series_part() -> str:
    from budgetbandits.service.http.campaign_metrics import SERIES

    return ", ".join(code(name) for name in SERIES) + "\n"


def events_part() -> str:
    from budgetbandits.service.stores.records import EVENTS

    return table(("kind", ""), [(code(kind), about) for kind, about in EVENTS.items()])


def event_fields_part() -> str:
    return _model_fields("EventAnswer")


def _model_fields(schema: str) -> str:
    about = openapi()["components"]["schemas"][schema]["properties"]
    return table(("field", "type", ""), [
        (code(name), "a kind, as above" if name == "kind" else _kind_words(each), plain(each.get("description")))
        for name, each in about.items()
    ])  # fmt: skip


def _kind_words(schema: Mapping[str, Any]) -> str:
    from budgetbandits.service.http.openapi import kind_of

    return kind_of(dict(schema))


def notifications_part() -> str:
    from budgetbandits.service.webhooks import NOTIFICATION_FIELDS, NOTIFICATIONS

    standing = openapi()["components"]["schemas"]["StandingAnswer"]["properties"]
    fields = {name: each.get("description", "") for name, each in standing.items()} | NOTIFICATION_FIELDS
    kinds = table(("type", ""), [(code(kind), about) for kind, about in NOTIFICATIONS.items()])
    return kinds + "\n" + table(("field", ""), [(code(name), plain(about)) for name, about in fields.items()])


# --- files ------------------------------------------------------------------------------------------------------------


def file_keys() -> dict[str, Mapping[str, Any]]:
    """The keys of each kind of file, by a title."""
    from budgetbandits.experiments import experiment_file as study
    from budgetbandits.experiments import suite
    from budgetbandits.problems import linear, problem, records, streams

    return {
        "study": study.KEYS,
        "study-family": study.FAMILY_KEYS,
        "study-two-gap": study.GAP_KEYS,
        "study-file": study.FILE_KEYS,
        "study-inline": study.INLINE_KEYS,
        "suite": suite.KEYS,
        "suite-setting": {**suite.OWN_KEYS, **suite.STUDY_KEYS},
        "problem": problem.KEYS,
        "problem-arm": problem.ARM_KEYS,
        "stream-part": streams.KEYS,
        "features": linear.KEYS,
        "features-feature": linear.FEATURE_KEYS,
        "features-arm": linear.ARM_KEYS,
        "features-line": linear.LINE_KEYS,
        "records": records.MEANINGS,
    }


def keys_part(title: str) -> str:
    rows = [(code(key), about.kind, plain(about.meaning), about.default or "must be given")
            for key, about in file_keys()[title].items()]  # fmt: skip
    return table(("key", "value", "", "default"), rows)


def budget_units_part() -> str:
    from budgetbandits.experiments.experiment_file import BUDGET_UNITS

    return table(
        ("budget_unit", "a budget of 1 is"), [(code(f'"{unit}"'), about) for unit, about in BUDGET_UNITS.items()]
    )


def shipped_part() -> str:
    """The experiments and suites that ship: what they are called, and what the comment at their head says."""
    from budgetbandits.experiments.experiment_file import EXPERIMENTS, SUITES, shipped_text

    rows = []
    for name in (*EXPERIMENTS, *SUITES):
        comment = re.match(r"(?:#[^\n]*\n)*", shipped_text(name))
        text = " ".join(line.lstrip("# ") for line in (comment[0] if comment else "").splitlines())
        rows.append((code(name), "suite" if name in SUITES else "study", plain(first_sentence(text))))
    return table(("name", "kind", ""), rows)


# --- policies and problems --------------------------------------------------------------------------------------------


def policies() -> dict[str, type]:
    from budgetbandits import POLICIES

    return dict(POLICIES)


def rule(kind: type) -> list[str]:
    """The paragraphs of a policy's docstring after the first."""
    return list(paragraphs(kind.__doc__ or ""))[1:]


def _needs(kind: Any) -> str:
    return ", ".join(sorted(kind().needs)) or "nothing"


def policies_table() -> str:
    from budgetbandits.policies import label, provenance

    rows = []
    for name, kind in policies().items():
        known = provenance(name)
        rows.append((f"[`{name}`](#{name})", label(name), _needs(kind), known.proven, known.reference))
    return table(("name", "in figures", "must know", "proven regret", "from"), rows)


def policies_part() -> str:
    from budgetbandits.policies import label, provenance
    from budgetbandits.policies.base import written

    made = []
    for name, kind in policies().items():
        known, about = provenance(name), parameters(kind)
        first = next(paragraphs(kind.__doc__ or ""))
        lines = [f"## {name}\n", f"**{label(name)}.** {first}\n", *(f"{text}\n" for text in rule(kind))]
        fields = dataclasses.fields(kind)  # type: ignore[arg-type]
        if fields:
            rows = [(code(each.name), code(written(each.default)) if each.default is not None else "none",
                     about.get(each.name, "")) for each in fields]  # fmt: skip
            lines.append(table(("parameter", "default", ""), rows))
        lines.append(f"Must know: {_needs(kind)}. Proven: {known.proven}. From: {known.reference}. "
                     f"Class: `{kind.__module__}.{kind.__name__}`.\n")  # fmt: skip
        made.append("\n".join(lines))
    return "\n".join(made)


def knowledge_part() -> str:
    from budgetbandits.policies.base import KNOWLEDGE

    return table(("must know", ""), [(code(name), about) for name, about in KNOWLEDGE.items()])


def laws() -> dict[str, type]:
    from budgetbandits.problems.distributions import JOINT_LAWS, LAWS

    return {**LAWS, **JOINT_LAWS}


def families() -> dict[str, Callable[..., Any]]:
    from budgetbandits.problems.families import ARMS_FAMILIES, FAMILIES, two_gap

    return {**FAMILIES, **ARMS_FAMILIES, "two-gap": two_gap}


def drifts() -> dict[str, Callable[..., Any]]:
    from budgetbandits.problems.streams import DRIFTS

    return dict(DRIFTS)


def laws_part(joint: bool) -> str:
    from budgetbandits.problems.distributions import JOINT_LAWS

    rows = [
        (code(name), ", ".join(code(each.name) for each in dataclasses.fields(kind)),  # type: ignore[arg-type]
         plain(next(paragraphs(kind.__doc__ or ""))), code(f"{kind.__name__}"))
        for name, kind in laws().items() if (name in JOINT_LAWS) is joint
    ]  # fmt: skip
    return table(("law", "keys", "", "in Python"), rows)


def families_part(ranged: bool) -> str:
    from budgetbandits.problems.families import FAMILIES

    rows = [(code(name), plain(next(paragraphs(make.__doc__ or "")))) for name, make in families().items()
            if (name in FAMILIES) is ranged]  # fmt: skip
    return table(("family", ""), rows)


def drifts_part() -> str:
    return table(("drift", ""), [(code(name), plain(make.__doc__)) for name, make in drifts().items()])


# --- all of it --------------------------------------------------------------------------------------------------------


def generated() -> dict[str, str]:
    """Every part by its name."""
    parts: dict[str, str] = {
        "python": python_overview(),
        "commands": commands_part(),
        "options": top_options(),
        "serve": serve_part(),
        "variables": variables_part(),
        "http": http_part(),
        "statuses": statuses_part(),
        "schemas": schemas_part(),
        "terms": terms_part(),
        "error-tree": error_tree(),
        "errors": errors_part(),
        "refusals": refusals_part(),
        "protocol": protocol_part(),
        "metrics": metrics_part(),
        "series": series_part(),
        "events": events_part(),
        "event-fields": event_fields_part(),
        "notifications": notifications_part(),
        "budget-units": budget_units_part(),
        "shipped": shipped_part(),
        "policies-table": policies_table(),
        "policies": policies_part(),
        "knowledge": knowledge_part(),
        "laws": laws_part(joint=False),
        "joint-laws": laws_part(joint=True),
        "families": families_part(ranged=True),
        "arms-families": families_part(ranged=False),
        "drifts": drifts_part(),
    }
    parts |= {f"keys-{title}": keys_part(title) for title in file_keys()}
    return parts | {f"python-{page}": python_page(page) for page in public()}


def write(folder: Path) -> None:
    """Write what has changed, and delete what there is no more."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {f"{name}.txt": text for name, text in generated().items()}
    for name, text in parts.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in folder.iterdir():
        if path.name not in parts:
            path.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    def docstring(_app: Sphinx, what: str, name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
        lines[:] = to_rst(_attribute_docs(name) if what == "data" else "\n".join(lines))

    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "generated"))
    app.connect("autodoc-process-docstring", docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
