"""API keys: ``bb_PREFIX_SECRET``. The store keeps the prefix and a digest of the secret, never the secret.

Scopes: decide, feedback, read, admin (which includes the others). A key may be for one campaign only. There are no
default keys: the first one is made, with scope admin, when a store without keys is first served, and shown once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence

from budgetbandits.errors import BadParameter, NotAllowed
from budgetbandits.service.stores.base import Key, Store

SCOPES = ("decide", "feedback", "read", "admin")


def make_key(store: Store, scopes: Sequence[str], now: float, campaign: str | None = None) -> str:
    """A new key; this is the only time that its secret is seen."""
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise BadParameter(f"scopes are {', '.join(scopes) or 'empty'}; choose from {', '.join(SCOPES)}")
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(24)
    key = Key(prefix, _digest(secret), tuple(scopes), now, campaign)
    store.write(lambda tx: tx.add_key(key))
    return f"bb_{prefix}_{secret}"


def check_key(store: Store, text: str | None, scope: str, campaign: str | None = None) -> Key:
    """The key behind a text, if it may do what ``scope`` names to this campaign."""
    mark, _, rest = (text or "").partition("_")
    prefix, _, secret = rest.partition("_")
    key = store.read(lambda tx: tx.key(prefix)) if mark == "bb" and prefix and secret else None
    # compared also when there is no such key, so that the time tells nothing
    right = hmac.compare_digest(_digest(secret), key.digest if key is not None else _digest("none"))
    if key is None or not right:
        raise NotAllowed("no such key; send 'Authorization: Bearer bb_…' with a key of this service", known=False)
    if scope not in key.scopes and "admin" not in key.scopes:
        raise NotAllowed(f"this key may {' and '.join(key.scopes)}, not {scope}; use another one", known=True)
    if key.campaign is not None and key.campaign != campaign:
        raise NotAllowed("this key is for another campaign; use one for this, or for all", known=True)
    return key


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
