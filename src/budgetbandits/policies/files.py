"""Policies by text, by class, or from a file.

A file (``mine.py:OmegaUCB``) is run, so only the user of the program may name one: on the command line, in an
experiment file, in code. Text from a network or a saved state is never taken for one.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from budgetbandits.errors import BadParameter, PluginError
from budgetbandits.policies import POLICY_REGISTRY, Policy, parse_policy

PLUGIN_VARIABLE = "BUDGETBANDITS_PLUGIN"
"""The environment variable with the plugin files of a command and of the processes that it starts."""

_IN_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[^:=]+))?(?::(?P<parameters>.*))?", re.DOTALL)


def policy_of(policy: Policy | type[Policy] | str) -> Policy:
    """A policy, or the one that this class or text names.

    >>> from budgetbandits import BudgetedThompson
    >>> policy_of("bts") == policy_of(BudgetedThompson) == BudgetedThompson()
    True
    """
    if isinstance(policy, str):
        return find_policy(policy)
    if isinstance(policy, type) and issubclass(policy, Policy):
        try:
            return policy()
        except TypeError as error:
            raise BadParameter(
                f"policy is the class {policy.__name__}, which cannot be made without arguments ({error}); "
                f"pass {policy.__name__}(...)"
            ) from None
    if not isinstance(policy, Policy):
        raise BadParameter(f"policy is {policy!r:.40}; give a policy, such as BudgetedThompson(), or its name: 'bts'")
    return policy


def split(text: str) -> tuple[str, str]:
    """A policy's text as its name, which may be one in a file, and its parameters.

    >>> split("mine.py:OmegaUCB:rho=0.25"), split("mine.py:rho=0.25"), split("bts")
    (('mine.py:OmegaUCB', 'rho=0.25'), ('mine.py', 'rho=0.25'), ('bts', ''))
    """
    match = _IN_FILE.fullmatch(text.strip())
    if match is not None:
        return ":".join(filter(None, (match["file"], (match["name"] or "").strip()))), match["parameters"] or ""
    name, _, parameters = text.strip().partition(":")
    return name, parameters


def find_policy(text: str, folder: Path | None = None) -> Policy:
    """A policy from its text, which may name a class in a file: ``mine.py:OmegaUCB:rho=0.25``.

    The file is looked for in ``folder``. Its class need not be named if it is the only policy there. Elsewhere the
    policy then goes by its ``name``.
    """
    name, parameters = split(text)
    match = _IN_FILE.fullmatch(name)
    if match is None:
        return parse_policy(text)
    kind = _class_in(run_file((folder or Path()) / match["file"]), match["file"], match["name"])
    add_policy(kind)
    return parse_policy(f"{kind.name}:{parameters}")


def _class_in(module: ModuleType, file: str, wanted: str | None) -> type[Policy]:
    kinds = policies_in(module)
    if wanted is not None:
        kind: Any = getattr(module, wanted, None)
        if not _is_policy(kind):
            raise PluginError(f"{file} has no policy {wanted!r}; it has {_listed(kinds)}")
        return kind  # type: ignore[no-any-return]
    if len(kinds) != 1:
        remedy = f"name one, as {file}:{kinds[0].__name__}" if kinds else "define one, or name another file"
        raise PluginError(f"{file} has {len(kinds)} policies ({_listed(kinds)}); {remedy}")
    return kinds[0]


def run_file(path: str | Path) -> ModuleType:
    """The module that a file makes; run once as long as it and the files next to it that it imports stay as they are.

    Neither it nor those files are left among the imported modules, so worker processes are sent
    its classes themselves and need no file.
    """
    path = Path(path)
    if not path.is_file():
        raise PluginError(f"there is no file {str(path)!r}; name a Python file")
    place = path.resolve()
    if place in _RUN:
        module, versions = _RUN[place]
        if all(_version(file) == version for file, version in versions.items()):
            return module
    _RUN.pop(place, None)
    module, files = _run(path)
    _RUN[place] = module, files
    return module


Versions = dict[Path, tuple[int, int] | None]
_RUN: dict[Path, tuple[ModuleType, Versions]] = {}
"""The modules of files that were run, with the versions of them and of the files they imported."""


def _version(file: Path) -> tuple[int, int] | None:
    """A mark that changes with the file; None if there is no file."""
    try:
        about = file.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


def _run(path: Path) -> tuple[ModuleType, Versions]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{str(path)!r} is no Python file; name one that ends in .py")
    module = importlib.util.module_from_spec(spec)
    folder = path.resolve().parent
    versions = {path.resolve(): _version(path)}
    before, wrote = dict(sys.modules), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # bytecode takes a file for unchanged that has its length and its second
    importlib.invalidate_caches()
    sys.modules[path.stem] = module  # dataclasses look for the module of the class they make
    sys.path.insert(0, str(folder))  # files next to it can be imported, as for a script
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's code does
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise PluginError(f"{path}{where}: {type(error).__name__}: {error}; repair the file") from error
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = wrote
        for name in [name for name, loaded in sys.modules.items() if before.get(name) is not loaded]:
            if name == path.stem or _in_folder(sys.modules[name], folder):
                file = Path(sys.modules[name].__file__ or path).resolve()
                versions.setdefault(file, _version(file))
                del sys.modules[name]
                if name in before:
                    sys.modules[name] = before[name]
    return module, versions


def _in_folder(module: ModuleType, folder: Path) -> bool:
    """Whether this is a single file in the folder: it is sent to workers whole, like the file that imports it."""
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().parent == folder and not hasattr(module, "__path__")


def add_policy(kind: type[Policy]) -> None:
    """Let a policy be known by its name."""
    if not isinstance(getattr(kind, "name", None), str) or not re.fullmatch(r"[^\s:,=\[\]]+", kind.name):
        raise PluginError(f'{kind.__name__} has no name that can be typed; write name = "my-policy" in the class')
    if not vars(kind).get("__dataclass_fields__") and inspect.get_annotations(kind).keys() - {"name"}:
        raise PluginError(f"{kind.__name__} is no dataclass; write @dataclass(frozen=True) above it")
    POLICY_REGISTRY.add(kind.name, kind)


def load_inherited() -> None:
    """Add the policies of the files that `PLUGIN_VARIABLE` names, as the process has that started this one."""
    for file in filter(None, os.environ.get(PLUGIN_VARIABLE, "").split(os.pathsep)):
        for kind in policies_in(run_file(file)):
            add_policy(kind)


def classes_in(module: ModuleType) -> list[type]:
    """The classes that a file defines itself, in its order."""
    return [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]


def _is_policy(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Policy) and not inspect.isabstract(kind)


def policies_in(module: ModuleType) -> list[type[Policy]]:
    """The policies that a file defines itself, in its order."""
    return [kind for kind in classes_in(module) if _is_policy(kind)]


def _listed(kinds: list[type[Policy]]) -> str:
    return ", ".join(kind.__name__ for kind in kinds) or "none"
