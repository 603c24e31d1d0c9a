"""What a policy's function calls and reads from outside itself.

Functions of the user's own that it calls are compiled with it, whether or not they say so: a function that was sent to
another process has lost what Numba knew of it. Values that it reads Numba freezes, and its disk cache does not notice a
change.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.extending import register_jitable

from budgetbandits.fingerprint import LIBRARIES, fingerprint, names_read, values_read
from budgetbandits.simulation.known import EngineUnsupported


def content_of(function: FunctionType) -> object:
    """What a function is known by: the package's own by itself, any other by its code and what it reads, so that it is
    the same however often it is sent to a process."""
    return function if _ours(function) else fingerprint(function)


def register_called(function: FunctionType) -> None:
    """Let Numba compile the functions of the user's own that this one calls."""
    for each in _called(function):
        if not _known_to_numba(each):
            register_jitable(each)


def _known_to_numba(function: FunctionType) -> bool:
    """Whether the user has said how it is compiled, by `register_jitable` or `overload`."""
    cpu_target.typing_context.refresh()
    try:
        cpu_target.typing_context.resolve_value_type(function)
    except ValueError:
        return False
    return True


def check_frozen(function: FunctionType, name: str) -> None:
    """`EngineUnsupported` if the function, or one that it calls, reads something that can change."""
    changeable = [key for each in (function, *_called(function)) for key, value in _reads(each) if not _hashable(value)]
    if changeable:
        raise EngineUnsupported(
            f"its {name} reads {', '.join(changeable)}, which compiled code would take for constant"
        )


def can_be_kept(function: FunctionType) -> bool:
    """Whether the compiled function may be kept on disk: it reads nothing that may change, and another process finds
    the module it is from by name. The module of a policy's file has no name that others know."""
    module = sys.modules.get(function.__module__)
    return not list(_reads(function)) and module is not None and vars(module) is function.__globals__


def plain(function: Any) -> Any:
    """The function that the user wrote, where Numba has compiled it already."""
    return function.py_func if isinstance(function, Dispatcher) else function


def _called(function: FunctionType) -> list[FunctionType]:
    """The plain functions outside the libraries that this one calls, and those that they call."""
    found: dict[FunctionType, None] = {}
    waiting = [function]
    while waiting:
        caller = waiting.pop()
        for value in _values(caller):
            if isinstance(value, FunctionType) and _followed(value, caller) and value not in found:
                found[value] = None
                waiting.append(value)
    return [each for each in found if each is not function]


def _values(function: FunctionType) -> Iterator[Any]:
    """What a function reads by name, and what it may read from modules that it names."""
    names = names_read(function.__code__)
    for value in values_read(function).values():
        yield plain(value)
        if isinstance(value, ModuleType):
            yield from (plain(vars(value)[name]) for name in names if name in vars(value))


def _followed(function: FunctionType, caller: FunctionType) -> bool:
    # a file may have the name of a library's module
    beside = function.__globals__ is caller.__globals__
    return beside or (function.__module__ or "").partition(".")[0] not in LIBRARIES


def _reads(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values that may differ from process to process, or change."""
    if not _ours(function):
        yield from ((key, value) for key, value in values_read(function).items() if not _lasting(value))


def _ours(function: FunctionType) -> bool:
    return (function.__module__ or "").startswith("budgetbandits.")


def _lasting(value: Any) -> bool:
    """Whether something is the same in every process: a library's, or the package's."""
    return isinstance(value, ModuleType | np.ufunc) or (getattr(value, "__module__", "") or "").startswith(
        "budgetbandits."
    )


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
