"""Sessions of people who have signed in with a key of scope read or admin.

A session is a cookie that says which key and until when, with a code made from what the store keeps of the key. So
servers keep nothing of it: it holds on any server and after a restart, and ends with its time or its key. The key
itself is in no cookie. Forms carry a code made from the session (`Session.form_code`), which no other site can know.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from budgetbandits.errors import BadParameter, NotAllowed
from budgetbandits.service.dashboard.query import whole_number
from budgetbandits.service.http.auth import KEY_CACHE_SECONDS, KeyRing, actor_of, check_header
from budgetbandits.service.http.request_checks import read_body
from budgetbandits.service.names import check_text
from budgetbandits.service.stores.contract import Store, Transaction, find_campaign
from budgetbandits.service.stores.records import Key

COOKIE = "budgetbandits_session"
"""Name of the cookie."""

SESSION_SECONDS = 12 * 3600
"""Seconds."""
COOKIE_SECONDS = SESSION_SECONDS + 12 * 3600
"""Seconds that a browser keeps the cookie: after the session, a returning visitor is informed that it is over."""

SESSIONS_MAX = 1000
"""Most sessions that a server remembers."""


@dataclass(frozen=True)
class Session:
    """Who has signed in, and what for."""

    token: str = field(repr=False)
    key: Key = field(repr=False)
    campaign: str | None
    """The name of the only campaign that the key is for."""
    expires_at: float

    @property
    def admin(self) -> bool:
        """Whether the session may change anything."""
        return "admin" in self.key.scopes

    @property
    def creates(self) -> bool:
        """Whether it may make campaigns and keys: what is for no campaign takes a key that is for all."""
        return self.admin and self.key.campaign is None

    @property
    def name(self) -> str:
        """The name of the session's key as an actor."""
        return actor_of(self.key.prefix)

    @property
    def form_code(self) -> str:
        """The code of the forms of this session."""
        return _code(self.key, f"form {self.token}")

    def check_form(self, code: str) -> None:
        """Refuse what was not sent by a form of this session."""
        if not hmac.compare_digest(code.encode(), self.form_code.encode()):
            raise NotAllowed(
                "this form is not of your session; go back, reload the page and send it again", key_valid=True
            )

    def check(self, campaign: str, id: str) -> None:
        """Refuse a campaign, by its name and id, that is not the key's."""
        if self.key.campaign is not None and self.key.campaign != id:
            raise NotAllowed(
                f"this key is for {self.campaign!r} only; sign in with one for {campaign!r}", key_valid=True
            )

    def check_admin(self) -> None:
        """Raise an error unless the session may change things."""
        if not self.admin:
            raise NotAllowed("this key may look, not change anything; sign in with one of scope admin", key_valid=True)


class Sessions:
    """The sessions of a store's keys, each remembered for a few seconds."""

    def __init__(self, store: Store, keys: KeyRing, clock: Callable[[], float] = time.time) -> None:
        self._store, self._keys, self._clock = store, keys, clock
        self._known: dict[str, tuple[float, Session]] = {}

    async def sign_in(self, text: str, client: tuple[str, int] | None) -> str:
        """Begin a session for a key that may read, and return its token.

        Wrong keys count toward the same limit as those of any request.
        """
        key = await check_header(self._keys, f"Bearer {text.strip()}", "read", None, client, anywhere=True)
        expires = int(self._clock()) + SESSION_SECONDS
        return f"{key.prefix}.{expires}.{_code(key, f'session {expires}')}"

    async def of(self, token: str) -> Session | None:
        """The session of a cookie; None if there is none, or no more."""
        cached = self._known.get(token)
        if cached is not None and self._clock() < min(cached[0], cached[1].expires_at):
            return cached[1]
        prefix, _, rest = token.partition(".")
        expires, _, code = rest.partition(".")
        until = whole_number(expires, 11)
        if not prefix.isalnum() or until is None or self._clock() >= until:
            return None
        session = await asyncio.to_thread(self._look_up, token, prefix, until, code)
        if session is None:
            self._known.pop(token, None)
        else:
            if len(self._known) >= SESSIONS_MAX:
                self._known.clear()
            self._known[token] = self._clock() + KEY_CACHE_SECONDS, session
        return session

    def why_over(self, token: str) -> str:
        """Why a cookie is no session any more, and what to do. It says the same of a dropped key and of one
        that never existed: a forged cookie reveals nothing about keys."""
        prefix, expires, code = (*token.split("."), "", "", "")[:3]
        until = whole_number(expires, 11)
        if until is None or not code or not (prefix.isascii() and prefix.isalnum()):
            return "your session is over; sign in again"
        if self._clock() >= until:
            return f"your session is over: it lasts for {SESSION_SECONDS // 3600} hours; sign in again"
        lost = f"the key bb_{prefix[:8]} that you had signed in with"
        return f"{lost} was dropped, is off or has expired; sign in with another"

    def _look_up(self, token: str, prefix: str, expires: int, code: str) -> Session | None:
        def work(tx: Transaction) -> tuple[Key | None, str | None]:
            key, name = tx.key(prefix), None
            if key is not None and (key.off or key.expired(tx.now())):
                key = None
            if key is not None and key.campaign is not None:
                with contextlib.suppress(Exception):
                    name = find_campaign(tx, key.campaign).name
            return key, name

        key, campaign = self._store.read(work, urgent=True)
        if key is None or not hmac.compare_digest(code.encode(), _code(key, f"session {expires}").encode()):
            return None
        return Session(token, key, campaign, expires) if {"read", "admin"} & set(key.scopes) else None


def _code(key: Key, text: str) -> str:
    return hmac.new(key.digest.encode(), f"{key.prefix} {text}".encode(), hashlib.sha256).hexdigest()


FORM_BYTES_MAX = 800_000
"""Most bytes of a form after sign-in: a new campaign may have thousands of arms."""
OPEN_FORM_BYTES_MAX = 10_000
"""Most bytes of a form before sign-in."""


def check_origin(request: Request) -> None:
    """Refuse requests that another site makes a browser send; browsers say where a request comes from."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise NotAllowed("another site has sent this form; open the page itself", key_valid=True)


async def sent(request: Request, session: Session) -> dict[str, str]:
    """The fields that were sent, if the session may make changes and the form is its own."""
    session.check_admin()
    if request.method == "GET":
        return dict(request.query_params)
    check_origin(request)
    form = await read_form(
        request, FORM_BYTES_MAX, "create a campaign with this many arms with the API or the command line"
    )
    session.check_form(form.get("code", ""))
    return form


async def sent_for_all(request: Request, session: Session, what: str) -> dict[str, str]:
    """The same, if the session's key is for all campaigns, as it must be for what is of all of them."""
    form = await sent(request, session)
    session.check(what, "")
    return form


async def read_form(
    request: Request, max_bytes: int = OPEN_FORM_BYTES_MAX, remedy: str = "use the page"
) -> dict[str, str]:
    """The fields of a form of at most ``max_bytes``; of fields with the same name the last."""
    try:
        content = await read_body(request, max_bytes)
    except HTTPException:
        raise BadParameter(f"this form has more than {max_bytes:,} bytes; {remedy}") from None
    try:
        fields = dict(parse_qsl(content.decode(), keep_blank_values=True, max_num_fields=1000))
    except ValueError:
        raise BadParameter("this is not a form; use the page") from None
    for name, value in fields.items():
        check_text("the form", name + value)
    return fields
