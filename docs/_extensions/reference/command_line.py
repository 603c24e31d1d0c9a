"""Commands, their options and environment variables."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

from budgetbandits.cli import app
from reference.markdown import code, plain, table


@cache
def commands() -> dict[str, Any]:
    """Every command by its words, with its parameters: groups before what is in them."""
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
        name = _argument(each) + ("…" if each.nargs == -1 else "")
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
                    _names(each),
                    metavar(each),
                    plain(each.help) + (" May be repeated." if _repeats(each) else ""),
                    default_of(each) or ("must be given" if each.required else ""),
                )
                for each in parameters
            ]
            with_variable = any(getattr(each, "envvar", None) for each in parameters)
            part.append(table(("option, variable" if with_variable else "option", "value", "", "default"), rows))
        made.append("\n".join(part))
    return "\n".join(made)


def _argument(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name).upper().strip("[]").replace("...", "")


def _names(parameter: Any) -> str:
    """An option as it is written, and the variable that stands for it on a line of its own."""
    if is_argument(parameter):
        return code(_argument(parameter))
    written = " ".join(map(code, [*parameter.opts, *parameter.secondary_opts]))
    return "<br>".join(filter(None, (written, code(parameter.envvar or ""))))


def _repeats(parameter: Any) -> bool:
    return bool(getattr(parameter, "multiple", False)) and "repeated" not in (parameter.help or "")


def top_options() -> str:
    return table(("option", ""), [(code(each.opts[0]), plain(each.help)) for each in options_of(commands()[""])])


def serve_part() -> str:
    rows = []
    for each in options_of(commands()["serve"]):
        names = [each.opts[0], each.envvar] if each.name == "config" else [each.opts[0], each.envvar, each.name]
        rows.append(("<br>".join(map(code, names)), metavar(each), plain(each.help), default_of(each)))
    return table(("option, variable, key in the file", "value", "", "default"), rows)


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
            groups = sorted({words.split()[0] for words in used if words})
            rows.append((code(name), plain(first.help), ", ".join(code(group) for group in groups) or "all"))
    return table(("variable", "", "commands"), rows)
