"""Whether an engine is being compiled, as Numba itself says: it takes up to a minute, once on a machine.

Numba broadcasts an event when it begins to compile a function, and none when it loads one from its disk cache. The
adapters in `index.rules` and `sampling.rules` are compiled in every process, in a tenth of a second, and are not worth
a word.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from numba.core import event

ENGINES = tuple(
    f"budgetbandits.simulation.{engine}."
    for engine in ("compiled", "epsilon_first", "index", "paced", "sampling", "thompson")
)  # fmt: skip
ADAPTERS = ("budgetbandits.simulation.engines.index.rules", "budgetbandits.simulation.engines.sampling.rules")


@contextlib.contextmanager
def on_compile(compiling: Callable[[], None]) -> Iterator[None]:
    """Call ``compiling`` once, at the moment when a part of an engine begins to be compiled."""
    with event.install_listener("numba:compile", _Listener(compiling)):
        yield


def say_compiling() -> None:
    """For somebody who watches: at a terminal or in a notebook. A program's stderr stays as it is."""
    if "ipykernel" in sys.modules or sys.stderr.isatty():
        print("compiling an engine (once on this machine, up to a minute) ...", file=sys.stderr, flush=True)


class _Listener(event.Listener):  # type: ignore[misc]
    def __init__(self, compiling: Callable[[], None]) -> None:
        self._compiling = compiling
        self._told = False

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self._told and module.startswith(ENGINES) and module not in ADAPTERS:
            self._told = True
            self._compiling()

    def on_end(self, event: event.Event) -> None:
        """Nothing: what has begun was told."""
