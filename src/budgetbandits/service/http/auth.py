"""API keys: ``bb_PREFIX_SECRET``. The store keeps the prefix and a digest of the secret, never the secret.

Scopes: decide, feedback, read, admin (which includes the others). A key may be for one campaign only. There are no
default keys: when a store without keys is first served, `hand_over_first_key` makes one with scope admin.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import math
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from budgetbandits.answers import KeyAnswer, KeyScope
from budgetbandits.errors import BadParameter, Conflict, NotAllowed, NotFound
from budgetbandits.service.http.rate_limit import KeyFailures, KeyRates, network
from budgetbandits.service.names import checked_name, normal
from budgetbandits.service.stores.contract import Scope, Store, Transaction, find_campaign, named_damage
from budgetbandits.service.stores.records import Key, KeyEvent

SCOPES: tuple[KeyScope, ...] = get_args(KeyScope)
"""All scopes of keys."""

KEY_CACHE_SECONDS = 5.0
"""How long a server trusts a key without looking it up again, and so how long a dropped key may still work."""

USE_SECONDS = 60.0
"""How often it is written down at most that a key was used."""

EXPIRY_SECONDS_MAX = 1e9
"""Longest time until a key expires."""

KEY_FILE = Path("budgetbandits-admin.key")
"""Where the first key goes without a terminal: all that a server prints ends in the log of its container."""


def make_key(
    store: Store, scopes: Sequence[str], now: float, campaign: str | None = None, actor: str | None = None,
    operation: str | None = None, *, name: str | None = None, owner: str | None = None,
    expires_at: float | None = None, requests_per_second: float | None = None,
) -> str:  # fmt: skip
    """Make a key; its secret is returned this one time. It may have a name and an owner, expire, and have a limit.

    A repeated call with the same ``operation``, an idempotency key, is refused: the first key cannot be shown again.
    """
    check_scopes(scopes)
    name, owner = checked_words(name, owner)
    if expires_at is not None and not now < expires_at < now + EXPIRY_SECONDS_MAX:
        raise BadParameter(f"expires_at is {expires_at!r:.40}; give a time in the future, in seconds since 1970")
    if requests_per_second is not None:
        check_rate("requests_per_second", requests_per_second)
    prefix, secret, text = _new()

    def work(tx: Transaction) -> None:
        tx.write_heartbeat(now)  # of two concurrent calls, one waits here for the other
        earlier = None if operation is None else tx.key_made_under(operation)
        if earlier is not None:
            raise Conflict(
                f"this form has already made the key bb_{earlier}, and showed it then; if it was lost, "
                "drop it and make another"
            )
        only = None if campaign is None else find_campaign(tx, campaign).id
        key = Key(prefix, _digest(secret), tuple(scopes), now, only, name, owner, expires_at, requests_per_second)
        _add(tx, key, actor, operation)

    store.write(work, Scope(campaign or ""))
    return text


def checked_words(name: str | None, owner: str | None) -> tuple[str | None, str | None]:
    """The purpose and the owner of a key, as they are stored."""
    return (
        None if name is None else checked_name("name", name),
        None if owner is None else checked_name("owner", owner),
    )


def check_rate(name: str, rate: float) -> None:
    """Refuse a rate limit out of range."""
    if not 0.001 <= rate <= 1e6:
        raise BadParameter(f"{name} is {rate!r:.40}; give 0.001 to 1,000,000, or none")


def check_scopes(scopes: Sequence[str]) -> None:
    """Refuse unknown scopes, or none."""
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        raise BadParameter(f"scopes are {', '.join(scopes) or 'empty'}; choose from {', '.join(SCOPES)}")


def _add(tx: Transaction, key: Key, actor: str | None, operation: str | None = None) -> None:
    tx.add_key(key)
    event = KeyEvent("made", key.prefix, key.scopes, key.campaign, key.created_at, actor, operation)
    tx.add_key_event(event)


def make_first_key(store: Store, now: float) -> str | None:
    """A key with scope admin if the store has no keys, else None; of two servers only one makes it."""
    if store.read(lambda tx: tx.keys()):
        return None
    prefix, secret, text = _new()

    def work(tx: Transaction) -> bool:
        # every server writes this row: the second one waits here, and then sees the key of the first
        tx.write_heartbeat(now)
        if tx.keys():
            return False
        _add(tx, Key(prefix, _digest(secret), ("admin",), now, None), "the server, for an empty store")
        return True

    return text if store.write(work) else None


def hand_over_first_key(store: Store, file: Path | None) -> None:
    """Make an admin key if the store has no keys: shown on a terminal, or kept in a new file, never in a log.

    Only the file's owner may read it. Without ``file``, the key is shown on a terminal, else it goes to `KEY_FILE`.
    """
    key = make_first_key(store, time.time())
    if key is None:
        if all(key.off for key in store.read(lambda tx: tx.keys())):
            print(
                "All keys are off since the store was restored: 'budgetbandits key turn-on' turns them on", flush=True
            )
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
        drop_key(store, prefix_of(key), actor="the server, which could not write it down")
        raise BadParameter(
            f"cannot write the admin key to {file}: {error.strerror}; name another file with --key-file, which must "
            "not exist yet, or make a key first with 'budgetbandits key create --scope admin'"
        ) from None
    print(f"The admin key is in {file.absolute()}", flush=True)


def actor_of(prefix: str) -> str:
    """The holder of the key with this public part, as events name it."""
    return f"bb_{prefix}"


def prefix_of(text: str) -> str:
    """The public part of a key."""
    return _parts(text)[0]


def prefix_meant(prefixes: Iterable[str], text: str) -> str:
    """The prefix of the key that a text identifies: bb_1a2b3c4d_… as lists show it, its beginning, or the whole key."""
    meant = text.removeprefix("bb_").partition("_")[0].removesuffix("…")
    present = sorted(prefixes)
    if meant in present:
        return meant
    fitting = [prefix for prefix in present if meant and prefix.startswith(meant)]
    if not fitting:
        raise NotFound(f"no key {actor_of(meant):.40}; 'budgetbandits key list' shows all keys")
    if len(fitting) > 1:
        names = ", ".join(map(actor_of, fitting[:5]))
        raise BadParameter(f"{actor_of(meant)} may be any of {len(fitting)} keys: {names}; give more characters")
    return fitting[0]


def _new() -> tuple[str, str, str]:
    """The prefix and the secret of a new key, and its whole text."""
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(24)
    return prefix, secret, f"bb_{prefix}_{secret}"


def drop_key(store: Store, prefix: str, actor: str | None = None) -> None:
    """Delete a key."""

    def work(tx: Transaction) -> None:
        key = _found(tx, prefix)
        tx.drop_key(prefix)
        tx.add_key_event(KeyEvent("dropped", prefix, key.scopes, key.campaign, tx.now(), actor))

    store.write(work)


def turn_on_keys(store: Store, prefixes: Iterable[str], actor: str | None = None) -> list[str]:
    """Let these keys be used again, which were off since the store was restored; those that were off."""

    def work(tx: Transaction) -> list[str]:
        turned = [key for key in [_found(tx, prefix) for prefix in sorted(prefixes)] if key.off]
        for key in turned:
            tx.set_key_off(key.prefix, False)
            tx.add_key_event(KeyEvent("turned on", key.prefix, key.scopes, key.campaign, tx.now(), actor))
        return [key.prefix for key in turned]

    return store.write(work)


def listed_keys(tx: Transaction) -> list[KeyAnswer]:
    """All keys without their digests, with the names of their campaigns."""
    keys = tx.keys()
    names = tx.pages().names(sorted({key.campaign for key in keys if key.campaign is not None}))
    return [
        KeyAnswer(
            key.prefix, cast(tuple[KeyScope, ...], tuple(key.scopes)),
            None if key.campaign is None else names.get(key.campaign, key.campaign), key.name, key.owner,
            key.created_at, key.expires_at, key.requests_per_second, key.last_used_at, key.off,
        )
        for key in keys
    ]  # fmt: skip


def _found(tx: Transaction, prefix: str) -> Key:
    key = tx.key(prefix)
    if key is None:
        raise NotFound(f"no key {prefix!r:.40}; pass the eight characters after bb_")
    return key


@dataclass(frozen=True)
class _CachedKey:
    key: Key
    campaign: tuple[str, ...]
    """The id and the names of its only campaign, former ones too; empty if it is for all."""
    until: float
    read_at: float
    """The store's time when it was read."""


class KeyRing:
    """The keys of a store, each cached for a few seconds."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self.failures = KeyFailures(clock)
        self._rates = KeyRates(clock)
        self._used: dict[str, float] = {}
        """Times at which keys were last looked up, at most `KEY_CACHE_SECONDS` before a use, until they are written."""
        self._noted: dict[str, float] = {}
        """Times at which these times were last written, by the server's clock."""
        self._known: dict[str, _CachedKey] = {}
        """Keys by their whole text: a digest takes too long for every request."""

    def knows(self, text: str, campaign: str | None = None) -> bool:
        """Whether `check` finds this text in the cache, and does not read the names of its only campaign again: one by
        which it is not known may be new."""
        cached = self._known.get(text)
        if cached is None or self._clock() >= cached.until:
            return False
        return campaign is None or not cached.campaign or normal(campaign) in cached.campaign

    def check(self, text: str, scope: str, campaign: str | None = None, anywhere: bool = False) -> Key:
        """The key of this text, if it has the scope for this campaign (its id or its name); `NotAllowed` if not.

        ``anywhere`` accepts a key for any campaign.
        """
        cached = self._known.get(text) if self.knows(text, campaign) else None
        if cached is None:
            cached = self._look_up(text)
        key = cached.key
        if scope not in key.scopes and "admin" not in key.scopes:
            raise NotAllowed(
                f"this key has the scopes {' and '.join(key.scopes)}, not {scope}; use another one", key_valid=True
            )
        if key.requests_per_second is not None:
            self._rates.take(key.prefix, key.requests_per_second)
        if anywhere:
            return key
        if cached.campaign and campaign is None:
            raise NotAllowed("this key is for one campaign only; use one that is for all", key_valid=True)
        if cached.campaign and normal(campaign or "") not in cached.campaign:
            raise NotAllowed("this key is for another campaign; use one for this, or for all", key_valid=True)
        return key

    def _look_up(self, text: str) -> _CachedKey:
        prefix, secret = _parts(text)

        def work(tx: Transaction) -> _CachedKey | None:
            key = tx.key(prefix)
            if key is None:
                return None
            with named_damage(key.campaign):
                only, now = None if key.campaign is None else find_campaign(tx, key.campaign), tx.now()
            seconds = KEY_CACHE_SECONDS if key.expires_at is None else min(KEY_CACHE_SECONDS, key.expires_at - now)
            names = () if only is None else (only.id, only.name, *tx.former_names(only.id))
            return _CachedKey(key, names, self._clock() + seconds, now)

        row = self._store.read(work, urgent=True) if prefix and secret else None
        # compared even if there is no such key, so that timing reveals nothing
        right = hmac.compare_digest(_digest(secret), row.key.digest if row is not None else _digest("none"))
        if row is None or not right:
            self._known.pop(text, None)
            sent = "no such key" if text else "no key was sent"
            raise NotAllowed(f"{sent}; send 'Authorization: Bearer bb_…' with a key of this service", key_valid=False)
        if row.key.expired(row.read_at):
            self._known.pop(text, None)
            raise NotAllowed("this key has expired; ask an operator for a new one", key_valid=False)
        if row.key.off:
            self._known.pop(text, None)
            raise NotAllowed(
                "this key is off since the store was restored from a copy; an operator turns it on where the store is: "
                f"budgetbandits key turn-on {actor_of(prefix)}",
                key_valid=False,
            )
        self._known[text] = row
        self._used[prefix] = row.read_at
        return row

    def note_used(self) -> None:
        """Write down when keys were last used, of each once in `USE_SECONDS` at most."""
        now = self._clock()
        due = {p: at for p, at in list(self._used.items()) if now - self._noted.get(p, -math.inf) >= USE_SECONDS}
        if not due:
            return

        def work(tx: Transaction) -> None:
            for prefix, at in sorted(due.items()):  # in order: of servers that write at once, none waits in a circle
                tx.note_key_used(prefix, at)

        self._store.write(work)
        for prefix in due:
            self._noted[prefix] = now
            self._used.pop(prefix, None)


async def check_header(
    keys: KeyRing, header: str, scope: str, campaign: str | None, client: tuple[str, int] | None, anywhere: bool = False
) -> Key:
    """`KeyRing.check` of an Authorization header, in a thread if the store must be read; counts wrong keys."""
    kind, _, text = header.partition(" ")
    text = text.strip() if kind.lower() == "bearer" else ""
    if keys.knows(text, campaign) or not all(_parts(text)):
        return keys.check(text, scope, campaign, anywhere)
    address = network(client[0]) if client else ""
    many = keys.failures.many(address)
    try:
        async with many.turn if many is not None else contextlib.nullcontext():
            return await asyncio.to_thread(keys.check, text, scope, campaign, anywhere)
    except NotAllowed as error:
        if not error.key_valid:
            keys.failures.count(address)
        raise


def _parts(text: str) -> tuple[str, str]:
    """The prefix and the secret of a key; empty if the text is not a key."""
    mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    return (prefix, secret) if mark == "bb" and prefix.isalnum() else ("", "")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
