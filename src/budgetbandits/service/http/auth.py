"""API keys: ``bb_PREFIX_SECRET``. The store keeps the prefix and a digest of the secret, never the secret.

Scopes: decide, feedback, read, admin (which includes the others). A key may be for one campaign only. There are no
default keys: the first one is made, with scope admin, when a store without keys is first served (`first_key`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from budgetbandits.errors import BadParameter, Conflict, NotAllowed, NotFound
from budgetbandits.service.http.rate_limit import Guesses, network
from budgetbandits.service.names import normal
from budgetbandits.service.stores.contract import Scope, Store, Transaction, find_campaign
from budgetbandits.service.stores.records import Key, KeyEvent

SCOPES = ("decide", "feedback", "read", "admin")

REMEMBERED = 5.0
"""Seconds that a server trusts a key without looking it up again; a key that is dropped works for so long at most."""


def make_key(
    store: Store, scopes: Sequence[str], now: float, campaign: str | None = None, by: str | None = None,
    operation: str | None = None,
) -> str:  # fmt: skip
    """A new key; this is the only time that its secret is seen. ``by`` is who makes it.

    Asked again under the same ``operation``, an idempotency key, it refuses: nobody can see the first one again.
    """
    check_scopes(scopes)
    prefix, secret, text = _new()

    def work(tx: Transaction) -> None:
        tx.write_heartbeat(now)  # of two that are asked for at once, one waits here for the other
        made = None if operation is None else tx.key_made_under(operation)
        if made is not None:
            raise Conflict(
                f"this form has made the key bb_{made} already, which was shown then; if it was lost, drop it and make "
                "another"
            )
        only = None if campaign is None else find_campaign(tx, campaign).id
        _add(tx, Key(prefix, _digest(secret), tuple(scopes), now, only), by, operation)

    store.write(work, Scope(campaign or ""))
    return text


def check_scopes(scopes: Sequence[str]) -> None:
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise BadParameter(f"scopes are {', '.join(scopes) or 'empty'}; choose from {', '.join(SCOPES)}")


def _add(tx: Transaction, key: Key, by: str | None, operation: str | None = None) -> None:
    tx.add_key(key)
    event = KeyEvent("made", key.prefix, key.scopes, key.campaign, key.created_at, by, operation)
    tx.add_key_event(event)


def make_first_key(store: Store, now: float) -> str | None:
    """A key with scope admin if the store has no keys at all, else None; of two servers only one makes it."""
    if store.read(lambda tx: tx.keys()):
        return None
    prefix, secret, text = _new()

    def work(tx: Transaction) -> bool:
        tx.write_heartbeat(
            now
        )  # a row that every server writes: whoever comes second waits here, and then sees the first's key
        if tx.keys():
            return False
        _add(tx, Key(prefix, _digest(secret), ("admin",), now, None), "the server, for an empty store")
        return True

    return text if store.write(work) else None


def actor(key: Key) -> str:
    """Who has done what was done with this key, as events name it."""
    return actor_of(key.prefix)


def actor_of(prefix: str) -> str:
    """The same by the key's public part."""
    return f"bb_{prefix}"


def prefix_of(text: str) -> str:
    """The public part of a key."""
    return _parts(text)[0]


def prefix_meant(keys: Iterable[Key], text: str) -> str:
    """The prefix of the one key that a text means: as lists show it (bb_1a2b3c4d_…), its prefix or the beginning of it,
    or the whole key."""
    meant = text.removeprefix("bb_").partition("_")[0].removesuffix("…")
    there = sorted(key.prefix for key in keys)
    if meant in there:
        return meant
    fitting = [prefix for prefix in there if meant and prefix.startswith(meant)]
    if not fitting:
        raise NotFound(f"no key {actor_of(meant):.40}; 'budgetbandits key list' shows those that there are")
    if len(fitting) > 1:
        names = ", ".join(map(actor_of, fitting[:5]))
        raise BadParameter(f"{actor_of(meant)} may be any of {len(fitting)} keys: {names}; say more of it")
    return fitting[0]


def _new() -> tuple[str, str, str]:
    """The prefix and the secret of a new key, and its whole text."""
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(24)
    return prefix, secret, f"bb_{prefix}_{secret}"


def drop_key(store: Store, prefix: str, by: str | None = None) -> None:
    """Delete a key; ``by`` is who does."""

    def work(tx: Transaction) -> None:
        key = tx.key(prefix)
        if key is None:
            raise NotFound(f"no key {prefix!r:.40}; pass the eight characters after bb_")
        tx.drop_key(prefix)
        tx.add_key_event(KeyEvent("dropped", prefix, key.scopes, key.campaign, tx.now(), by))

    store.write(work)


@dataclass(frozen=True)
class _Known:
    key: Key
    campaign: tuple[str, ...]
    """The id and the name of the only campaign it is for; empty for all."""
    until: float


class KeyRing:
    """The keys of a store, each remembered for a few seconds."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self.guesses = Guesses(clock)
        self._known: dict[str, _Known] = {}
        """By their whole text, which was checked once: checking it takes a digest, too long for every request."""

    def knows(self, text: str) -> bool:
        """Whether `check` of this text need not read the store."""
        known = self._known.get(text)
        return known is not None and self._clock() < known.until

    def check(self, text: str, scope: str, campaign: str | None = None, anywhere: bool = False) -> Key:
        """The key behind a text, if it may do what ``scope`` names to this campaign (its id or its name).

        With ``anywhere``, to any campaign.
        """
        known = self._known.get(text)
        if known is None or self._clock() >= known.until:
            known = self._look_up(text)
        key = known.key
        if scope not in key.scopes and "admin" not in key.scopes:
            raise NotAllowed(f"this key may {' and '.join(key.scopes)}, not {scope}; use another one", known=True)
        if anywhere:
            return key
        if known.campaign and campaign is None:
            raise NotAllowed("this key is for one campaign only; use one that is for all", known=True)
        if known.campaign and normal(campaign or "") not in known.campaign:
            raise NotAllowed("this key is for another campaign; use one for this, or for all", known=True)
        return key

    def _look_up(self, text: str) -> _Known:
        prefix, secret = _parts(text)

        def work(tx: Transaction) -> _Known | None:
            key = tx.key(prefix)
            if key is None:
                return None
            only = None if key.campaign is None else find_campaign(tx, key.campaign)
            return _Known(key, () if only is None else (only.id, only.name), self._clock() + REMEMBERED)

        known = self._store.read(work, urgent=True) if prefix and secret else None
        # compared also when there is no such key, so that the time tells nothing
        right = hmac.compare_digest(_digest(secret), known.key.digest if known is not None else _digest("none"))
        if known is None or not right:
            self._known.pop(text, None)
            raise NotAllowed("no such key; send 'Authorization: Bearer bb_…' with a key of this service", known=False)
        self._known[text] = known
        return known


async def check_header(
    keys: KeyRing,
    header: str,
    scope: str,
    campaign: str | None,
    client: tuple[str, int] | None,
    anywhere: bool = False,
) -> Key:
    """`KeyRing.check` of an Authorization header, in a thread if the store must be read. Wrong keys are counted."""
    kind, _, text = header.partition(" ")
    text = text.strip() if kind.lower() == "bearer" else ""
    if keys.knows(text) or not all(_parts(text)):
        return keys.check(text, scope, campaign, anywhere)
    address = network(client[0]) if client else ""
    many = keys.guesses.many(address)
    try:
        async with many.turn if many is not None else contextlib.nullcontext():
            return await asyncio.to_thread(keys.check, text, scope, campaign, anywhere)
    except NotAllowed as error:
        if not error.known:
            keys.guesses.count(address)
        raise


def _parts(text: str) -> tuple[str, str]:
    """The prefix and the secret of a key; empty if it is none."""
    mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return (prefix, secret) if mark == "bb" and prefix.isalnum() else ("", "")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
