"""A hash of a policy or law from outside the package: of its code and its values.

The package's own are known by name and version. Anything else is known by its content: qualified name, the code of its
methods and of the functions they name, what those close over, and the values of its attributes. So two classes of one
name differ, and so does one class before and after an edit. Code is hashed as it is compiled, since that is what runs:
a file may have changed since it was imported, and a class sent to a worker comes without one.

Functions of libraries are known by name alone. Library objects that a function reads as globals or a class holds are
hashed by type only, except exact numbers, which are hashed by value.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import numbers
import pickle
import sys
from collections.abc import Mapping
from enum import Enum
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from budgetbandits.errors import BadParameter

# a class made by a call of type() on an abstract one says that it comes from abc
LIBRARIES = {"budgetbandits", "numpy", "scipy", "numba"} | set(sys.stdlib_module_names) - {"__main__", "abc"}


def is_builtin(kind: type) -> bool:
    """Whether a class belongs to the package, so that its name says what it is."""
    return kind.__module__.startswith("budgetbandits.")


def fingerprint(thing: object) -> str:
    """The hash of an object: equal for equal code and values, in any process."""
    home = thing if isinstance(thing, FunctionType) else type(thing)
    description = _Description(home.__module__ or "")
    description.add(thing)
    return description.digest()


def names_read(code: CodeType) -> list[str]:
    """The names that a function looks up, those of functions inside it included."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(names_read(constant))
    return sorted(names)


def values_read(function: FunctionType) -> dict[str, Any]:
    """The globals that a function names and the variables it closes over; a variable not yet set is left out."""
    values = {
        name: function.__globals__[name] for name in names_read(function.__code__) if name in function.__globals__
    }
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            continue
    return values


class _Description:
    def __init__(self, module: str) -> None:
        self._package = module.partition(".")[0]  # looked into whatever it is, unless it is the package's own
        self._hash = hashlib.blake2b(digest_size=16)
        self._seen: dict[int, tuple[int, object]] = {}  # the object is kept: ids are reused when one is freed

    def digest(self) -> str:
        return self._hash.hexdigest()

    def add(self, thing: object, lenient: bool = False) -> None:
        """Hash one object; with ``lenient``, one that cannot be described, such as a logger, is hashed by its type."""
        if thing is None or isinstance(thing, bool | int | float | complex | str | bytes):
            self._words(type(thing).__name__, repr(thing))
        elif isinstance(thing, np.generic):
            self._words(str(thing.dtype), repr(thing.item()))
        elif isinstance(thing, numbers.Number | range | Enum):
            self._words(type(thing).__name__, repr(thing))
        elif isinstance(thing, ModuleType):
            self._words("module", thing.__name__)
        elif isinstance(thing, tuple | frozenset | CodeType | np.ndarray):
            self._add_new(thing, lenient)  # whether two equal ones are one object says nothing
        elif id(thing) in self._seen:
            self._words("again", str(self._seen[id(thing)][0]))
        else:
            self._seen[id(thing)] = (len(self._seen), thing)
            self._add_new(thing, lenient)

    def _words(self, *words: str) -> None:
        for word in words:
            self._hash.update(f"{len(word)}:{word}".encode("utf-8", "backslashreplace"))

    def _add_new(self, thing: Any, lenient: bool) -> None:
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            self._words("array", str(thing.dtype), str(thing.shape), thing.tobytes().hex())
        elif isinstance(thing, tuple | list | np.ndarray):
            self._words(type(thing).__name__, str(len(thing)))
            for item in thing:
                self.add(item, lenient)
        elif isinstance(thing, set | frozenset):
            self._words("set", *sorted(map(fingerprint, thing)))
        elif isinstance(thing, Mapping):
            self._words("mapping", str(len(thing)))
            for key in sorted(thing, key=repr):
                self.add(key, lenient)
                self.add(thing[key], lenient)
        elif isinstance(thing, type):
            self._class(thing)
        elif isinstance(thing, FunctionType):
            self._function(thing)
        elif isinstance(thing, CodeType):
            self._code(thing)
        elif (parts := _inside(thing)) is not None:
            self._words(type(thing).__name__)
            for part in parts:
                self.add(part, lenient)
        else:
            self._object(thing, lenient)

    def _class(self, kind: type) -> None:
        self._words("class", kind.__module__, kind.__qualname__)
        if not self._followed(kind.__module__):
            return
        for base in kind.__bases__:
            self.add(base)
        for name, value in sorted(vars(kind).items()):
            if _written(name, value):
                self._words(name)
                self.add(value, lenient=True)

    def _function(self, function: FunctionType) -> None:
        self._words("function", function.__module__ or "", function.__qualname__)
        if not self._followed(function.__module__ or ""):
            return
        self.add(function.__code__)
        self.add(function.__defaults__, lenient=True)
        self.add(function.__kwdefaults__, lenient=True)
        for name, value in sorted(values_read(function).items()):
            self._words(name)
            self.add(value, lenient=True)
            if isinstance(value, ModuleType) and self._followed(value.__name__):
                self._module(value, names_read(function.__code__))

    def _module(self, module: ModuleType, names: list[str]) -> None:
        """Hash the attributes of a user's module that a function may read: those with names that it looks up."""
        for name in names:
            if name in vars(module):
                self._words(name)
                self.add(vars(module)[name], lenient=True)

    def _code(self, code: CodeType) -> None:
        self._words("code", code.co_code.hex(), *code.co_names, *code.co_varnames, *code.co_freevars)
        for constant in code.co_consts:
            self.add(constant)

    def _object(self, thing: Any, lenient: bool) -> None:
        kind = type(thing)
        self._words("object", kind.__module__, kind.__qualname__)
        if hasattr(thing, "__qualname__") or isinstance(thing, np.ufunc):  # something built in
            self._words(getattr(thing, "__qualname__", "") or thing.__name__)
        elif self._followed(kind.__module__) or is_builtin(kind):
            self.add(kind)
            for name, value in _values(thing):
                self._words(name)
                self.add(value, lenient)
        elif not lenient:
            try:
                self._words(pickle.dumps(thing, protocol=4).hex())
            except (pickle.PicklingError, TypeError, AttributeError):
                raise BadParameter(
                    f"a {kind.__name__} cannot be distinguished from another one; let your own policies and laws keep "
                    f"numbers, text, lists and arrays"
                ) from None

    def _followed(self, module: str) -> bool:
        """Whether code of this module is hashed; that of libraries is not, since it changes with their versions."""
        package = module.partition(".")[0]
        if package == self._package:
            return package != "budgetbandits"
        file = getattr(sys.modules.get(module), "__file__", None) or ""
        installed = "site-packages" in file or "dist-packages" in file
        return package not in LIBRARIES and not installed


def _written(name: str, value: object) -> bool:
    """Whether an attribute of a class was written by its author, rather than added by Python or by `dataclass`.

    A dataclass makes its methods from text, not from a file.
    """
    if name == "_abc_impl":
        return False
    if not (name.startswith("__") and name.endswith("__")):
        return True
    return isinstance(value, FunctionType) and value.__code__.co_filename != "<string>"


def _values(thing: Any) -> list[tuple[str, Any]]:
    """The attributes of an object by name, without cached properties."""
    slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
    values = {name: getattr(thing, name) for name in slots if hasattr(thing, name)} | getattr(thing, "__dict__", {})
    remembered = functools.cached_property
    return [
        (name, values[name])
        for name in sorted(values)
        if not isinstance(inspect.getattr_static(type(thing), name, None), remembered)
    ]


def _inside(thing: Any) -> tuple[Any, ...] | None:
    """The parts of a wrapper; None for anything else."""
    if isinstance(thing, MethodType):
        return (thing.__func__, thing.__self__)
    if isinstance(thing, staticmethod | classmethod):
        return (thing.__func__,)
    if isinstance(thing, property):
        return (thing.fget, thing.fset)
    if isinstance(thing, functools.cached_property):
        return (thing.func,)
    if isinstance(thing, functools.partial):
        return (thing.func, thing.args, thing.keywords)
    compiled = getattr(thing, "py_func", None)  # Numba's
    return (compiled,) if isinstance(compiled, FunctionType) else None
