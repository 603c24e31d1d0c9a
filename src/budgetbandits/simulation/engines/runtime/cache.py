"""Numba's disk cache, kept honest, and a notice when something has to be compiled.

Numba looks for changes only in the file that holds a cached entry point, not in the files whose functions are compiled
into it. After an edit to one of those an engine would go on running the old code. So a digest of all compiled sources
is kept next to the cache, and the cache is dropped when it no longer fits.

To compile an engine takes up to a minute, once on a machine. Numba broadcasts an event when it begins to compile a
function, and none when it loads one from its disk cache. The adapters of policies' own functions (`ADAPTERS`) are
compiled in every process, in a tenth of a second, and are not announced.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from numba.core import event

PACKAGE = Path(__file__).parents[3]
"""Folder of the package."""

ENGINES = ("runtime", "epsilon_first", "index", "plain", "thompson")
"""Folders of the engines."""

COMPILED_FOLDERS = (
    "numerics",
    "policies",
    "policies/paced",
    "simulation",
    *(f"simulation/engines/{engine}" for engine in ENGINES),
)
"""Folders with modules that are compiled."""


@functools.cache
def clear_if_stale() -> None:
    """Drop this package's cached machine code if a source has changed; a folder that cannot be written is left."""
    digest = hashlib.blake2b(digest_size=16)
    sources = [source for folder in COMPILED_FOLDERS for source in sorted((PACKAGE / folder).glob("*.py"))]
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    stamp = PACKAGE / "simulation" / "__pycache__" / "sources.blake2b"
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
        for folder in COMPILED_FOLDERS:
            for cached in (PACKAGE / folder / "__pycache__").glob("*.nb[ic]"):
                cached.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest())


PARTS = "budgetbandits.simulation.engines."
"""Prefix of the names of the engines' modules."""

ADAPTERS = tuple(f"{PARTS}{module}" for module in ("index.rules", "plain.sampling_games", "runtime.policy_functions"))
"""Modules that turn a policy's functions into compiled ones."""


@contextlib.contextmanager
def on_compile(compiling: Callable[[], None]) -> Iterator[None]:
    """Call ``compiling`` once, at the moment when a part of an engine begins to be compiled."""
    with event.install_listener("numba:compile", _Listener(compiling)):
        yield


def say_compiling() -> None:
    """Announce it on stderr at a terminal or in a notebook. A program's stderr stays as it is."""
    if "ipykernel" in sys.modules or sys.stderr.isatty():
        print("compiling an engine (once on this machine, up to a minute) ...", file=sys.stderr, flush=True)


class _Listener(event.Listener):  # type: ignore[misc]
    def __init__(self, compiling: Callable[[], None]) -> None:
        self._compiling = compiling
        self._announced = False

    def on_start(self, event: event.Event) -> None:
        module = event.data["dispatcher"].py_func.__module__
        if not self._announced and module.startswith(PARTS) and module not in ADAPTERS:
            self._announced = True
            self._compiling()

    def on_end(self, event: event.Event) -> None:
        """Nothing: the beginning was announced."""
