"""A policy's own functions, compiled, as the engines call them: by address.

Numba takes an address with a signature for a type of its own, so the engines that call it stay in the disk cache.

Functions of the user's own that a policy's function calls are compiled with it, whether or not they say so: a function
that was sent to another process has lost what Numba knew of it. Numba freezes the values that a function reads, and its
disk cache does not notice when they change; so functions that read something changeable are refused.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl
from numba.extending import register_jitable
from numba.np.unsafe.ndarray import to_fixed_tuple

from budgetbandits.fingerprint import LIBRARIES, fingerprint, names_read, values_read
from budgetbandits.simulation.engine_support import EngineUnsupported
from budgetbandits.simulation.engines.runtime.records import float_pointer

OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True}
"""Options of every compilation."""


def compiled_function(function: FunctionType, name: str, signature: Any) -> Dispatcher:
    """The very function of the policy, kept on disk next to its file if it may be; `EngineUnsupported` if Numba cannot
    compile it."""
    register_called(function)
    try:
        try:
            compiled: Dispatcher = njit(signature, cache=can_be_kept(function), **OPTIONS)(function)
        except RuntimeError:  # no file to keep the cache next to: typed at a prompt
            compiled = njit(signature, **OPTIONS)(function)
    except NumbaError as error:
        raise EngineUnsupported(f"Numba cannot compile its {name}: {why_not(error)}") from None
    return compiled


def why_not(error: NumbaError) -> str:
    """Why Numba could not compile a function, in a line, with what to do about it if that is known."""
    # without the folders that modules lie in on this machine
    message = re.sub(r" from '[^']*'", "", " ".join(str(error).split()))
    if called := re.search(r"Untyped global name '(\w+)'.*Cannot determine Numba type of <class 'function'>", message):
        return f"it calls {called[1]}, a function of a library that is not compiled; write it with NumPy's functions"
    return message[:200]


class Address(types.WrapperAddressProtocol):  # type: ignore[misc]
    """A compiled function as Numba's first-class function.

    It takes 0.1 s to compile and is not worth a cache, which would not notice a changed formula behind it.
    """

    def __init__(self, signature: Any, function: Callable[..., Any]) -> None:
        self._signature = signature
        self.type = types.FunctionType(signature)
        self.dispatcher: Dispatcher = njit(signature, **OPTIONS)(function)
        compiled = self.dispatcher.overloads[signature.args]
        self._address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)

    def __wrapper_address__(self) -> int:
        return self._address

    def signature(self) -> Any:
        """The signature of the function."""
        return self._signature


@typeof_impl.register(Address)
def _type_of(address: Address, context: object) -> types.FunctionType:
    """Numba asks with every call of an engine, and would make the type again each time, which takes longer than many a
    stretch that is played."""
    return address.type


def numbers_at(count: int) -> Any:
    """Compiled code that reads this many numbers at an address, as a tuple."""
    if count == 0:
        return njit(lambda address: (), **OPTIONS)
    return njit(lambda address: to_fixed_tuple(carray(float_pointer(address), (count,)), count), **OPTIONS)


# --- what a function calls and reads ---------------------------------------------------------------------------------


def content_of(function: FunctionType) -> object:
    """The identity of a function: the package's own are themselves, any other is known by its code and the values that
    it reads, so that it is the same however often it is sent to a process."""
    return function if _is_builtin(function) else fingerprint(function)


def register_called(function: FunctionType) -> None:
    """Let Numba compile the functions of the user's own that this one calls."""
    for callee in _called(function):
        if not _known_to_numba(callee):
            register_jitable(callee)


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
    changeable = [
        key for reader in (function, *_called(function)) for key, value in _reads(reader) if not _hashable(value)
    ]
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
    functions: dict[FunctionType, None] = {}
    waiting = [function]
    while waiting:
        caller = waiting.pop()
        for value in _values(caller):
            if isinstance(value, FunctionType) and _followed(value, caller) and value not in functions:
                functions[value] = None
                waiting.append(value)
    return [callee for callee in functions if callee is not function]


def _values(function: FunctionType) -> Iterator[Any]:
    """The values that a function reads by name, or may read from modules that it names."""
    names = names_read(function.__code__)
    for value in values_read(function).values():
        yield plain(value)
        if isinstance(value, ModuleType):
            yield from (plain(vars(value)[name]) for name in names if name in vars(value))


def _followed(function: FunctionType, caller: FunctionType) -> bool:
    # a file may have the name of a library's module
    same_file = function.__globals__ is caller.__globals__
    return same_file or (function.__module__ or "").partition(".")[0] not in LIBRARIES


def _reads(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Names and values that may differ from process to process, or change."""
    if not _is_builtin(function):
        yield from ((key, value) for key, value in values_read(function).items() if not _lasting(value))


def _is_builtin(function: FunctionType) -> bool:
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
