"""Which policies an engine can play, and errors attributed to policies. It needs no Numba.

An engine plays a policy only as it is written: the methods that it stands in for must be the ones it knows.
"""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from budgetbandits.errors import BudgetBanditsError, PolicyFailed
from budgetbandits.fingerprint import fingerprint, is_builtin
from budgetbandits.policies.base import Policy


class EngineUnsupported(Exception):
    """An engine that cannot play a policy as it is written; the text says why."""


DRIVER_METHODS = ("needs", "anytime", "select_knowledge", "start", "observe", "choose", "can_continue")
"""Methods that every driver calls, and that an engine of a single kind of policy replaces."""


def methods(kind: type, *names: str) -> dict[str, tuple[Any, ...]]:
    """The methods and properties of a class under these names, as `check_methods` compares them."""
    return {name: (inspect.getattr_static(kind, name),) for name in names}


def check_methods(policy: Policy, known: Mapping[str, tuple[Any, ...]]) -> None:
    """Raise `EngineUnsupported` if one of the policy's methods is none of those known under its name."""
    for name, functions in known.items():
        written = _as_written(policy, name)
        if not any(written is function for function in functions):
            article = "an" if name[0] in "aeiou" else "a"
            raise EngineUnsupported(f"it has {article} {name.lstrip('_')} of its own, which no compiled engine knows")


def _as_written(policy: Policy, name: str) -> Any:
    """The same as `inspect.getattr_static`, which looks out for classes in disguise and takes many times as long; None
    for what the policy does not have."""
    for namespace in (getattr(policy, "__dict__", {}), *map(vars, type(policy).__mro__)):
        if name in namespace:
            return namespace[name]
    return None


_RESULTS: dict[object, Any] = {}
"""Result of `once`, or its refusal, by key."""


def once(key: object, make: Callable[[], Any]) -> Any:
    """The result of ``make``, or its `EngineUnsupported`: made once per process for each key."""
    if key not in _RESULTS:
        try:
            _RESULTS[key] = make()
        except EngineUnsupported as reason:
            _RESULTS[key] = reason
    if isinstance(result := _RESULTS[key], EngineUnsupported):
        raise EngineUnsupported(str(result))
    return result


def check_once(policy: Policy, check: Callable[[Any], None]) -> None:
    """Make a check once per process, and not of the package's own policies, which are tested once for all."""
    if not is_builtin(type(policy)):
        once((check, fingerprint(policy)), lambda: check(policy))


@contextlib.contextmanager
def attributed_to(policy: Policy) -> Iterator[None]:
    """Name the policy in whatever its own code raises, and the line of it."""
    try:
        yield
    except (BudgetBanditsError, EngineUnsupported):
        raise
    except Exception as error:
        if is_builtin(type(policy)):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise PolicyFailed(
            f"{policy.name} fails: {type(error).__name__}: {error} (in {last.name}, {last.filename}, line "
            f"{last.lineno}); repair it, and try it out with 'budgetbandits check'"
        ) from error
