"""The admin key of a store that has none: shown on a terminal, or kept in a file, never in a log."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from budgetbandits.errors import BadParameter
from budgetbandits.service.http.auth import drop_key, make_first_key, prefix_of
from budgetbandits.service.stores.contract import Store

KEY_FILE = Path("budgetbandits-admin.key")
"""Where the key goes when nobody is looking: what a server prints ends in the log of its container."""


def hand_over_first_key(store: Store, file: Path | None) -> None:
    """Make an admin key if the store has no keys, and show it or write it to a new file that its owner alone may read.

    Without a file it is shown if this is a terminal, and goes to `KEY_FILE` if not.
    """
    key = make_first_key(store, time.time())
    if key is None:
        return
    if file is None and sys.stdout.isatty():
        print(f"The admin key, shown this once: {key}", flush=True)
        return
    file = file or KEY_FILE
    try:
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(f"{key}\n")
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        drop_key(store, prefix_of(key), by="the server, which could not write it down")
        raise BadParameter(
            f"cannot write the admin key to {file}: {error.strerror}; say where with --key-file FILE, which must not "
            "be there yet, or make a key first with 'budgetbandits key create --scope admin'"
        ) from None
    print(f"The admin key is in {file.absolute()}", flush=True)
