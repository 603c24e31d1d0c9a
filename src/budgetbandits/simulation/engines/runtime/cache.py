"""Numba's disk cache, kept honest.

Numba looks for changes only in the file that holds a cached entry point, not in the files whose functions are compiled
into it. After an edit to one of those an engine would go on running the old code. So a digest of all sources that are
compiled stands beside the cache, and the cache is dropped when it no longer fits.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from pathlib import Path

PACKAGE = Path(__file__).parents[3]
ENGINES = ("runtime", "epsilon_first", "index", "paced", "sampling", "thompson")
COMPILED = (
    "numerics",
    "policies",
    "policies/paced",
    "simulation",
    *(f"simulation/engines/{engine}" for engine in ENGINES),
)


@functools.cache
def clear_if_stale() -> None:
    """Drop this package's cached machine code if a source has changed; a folder that cannot be written is left."""
    digest = hashlib.blake2b(digest_size=16)
    sources = [source for folder in COMPILED for source in sorted((PACKAGE / folder).glob("*.py"))]
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    stamp = PACKAGE / "simulation" / "__pycache__" / "sources.blake2b"
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest.hexdigest():
            return
        for folder in COMPILED:
            for cached in (PACKAGE / folder / "__pycache__").glob("*.nb[ic]"):
                cached.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest.hexdigest())
