"""Logins, and the user who is logged in. CONTRACT 8 and 10."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import math
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict, cast

from . import _sign
from ._calls import Calls
from ._http import T, TransportError, printable
from ._messages import CallOptions
from ._sign import Pairs

if TYPE_CHECKING:
    from typing_extensions import Unpack

_CHECK_WAIT = 30


class Account(TypedDict, total=False):
    """A user's account: provider and username identify it. Times are in milliseconds since 1970. CONTRACT 8."""

    username: str
    display_name: str
    created_at: int
    # The provider's name, since version 2; ``type`` is version 1's.
    provider: str
    type: str


@dataclass(frozen=True)
class Login:
    """A login's result: ``credential`` is for ``with_credential``, for ``expires_in`` seconds. A renewal has no account."""

    credential: str = field(repr=False)
    expires_in: int
    account: Account | None
    created: bool


@dataclass(frozen=True)
class LoginUrl:
    """Where a browser logs in, and what ``exchange`` needs: keep ``code_verifier`` in the visitor's session only."""

    url: str = field(repr=False)
    code_verifier: str = field(repr=False)


class Event(TypedDict, total=False):
    """An event of an account; ``received_at`` is in milliseconds since 1970, ``data`` may be absent."""

    id: int
    event: str
    received_at: int
    data: str


class EventPage(TypedDict, total=False):
    """Events, newest first. ``next`` is ``before`` of the next page, absent on the last one."""

    events: list[Event]
    next: str


class Logins(Calls):
    __doc__ = Calls.__doc__

    async def _login(
        self,
        show: Callable[[str, str], object],
        provider: str | None = None,
        *,
        prompt: str | None = None,
        login_hint: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Login:
        """Logs a user in by polling: shows the address that the user must open, and the code that the user compares. CONTRACT 8.

        ``timeout`` is for the whole login. Raises the Problem of a login that failed, for example ``login_denied``.
        """
        timeout = options.get("timeout")
        end = math.inf if timeout is None else time.monotonic() + timeout

        async def ask(path: str, pairs: Pairs, longest: float = math.inf, **further: Any) -> dict[str, Any]:
            left = max(0.0, min(end - time.monotonic(), longest))
            timed: CallOptions = options if left == math.inf else {**options, "timeout": left}
            return await self._object("POST", path, pairs, timed, **further)

        begun = await ask("/login", _present(provider=provider, prompt=prompt, login_hint=login_hint))
        token, address = _member(begun, "token", str), _member(begun, "authorize_url", str)
        if not address.startswith(("http://", "https://")) or printable(address) != address:
            raise TransportError("malformed response: authorize_url is no web address", True)
        shown = show(address, printable(_member(begun, "user_code", str)))
        if inspect.isawaitable(shown):
            await shown
        expiry = time.monotonic() + _seconds(begun, "expires_in", 600, 3600)
        while (start := time.monotonic()) < expiry:
            wait = int(max(0, min(_CHECK_WAIT, end - start - 1)))
            pairs = {"token": token, "wait": str(wait)}
            checked = await ask("/check", pairs, expiry - start + 10, request_timeout=wait + 10, repeatable=True)
            if checked.get("status") != "pending":
                break
            now = time.monotonic()
            if now - start < _CHECK_WAIT / 2:
                await self._pause(max(0, min(_seconds(begun, "interval", 2, 60), expiry - now, end - now)), options.get("cancel"))
        return self._logged_in(await ask("/user/login", {"token": token}, repeatable=True))

    def login_url(
        self, return_to: str, *, provider: str | None = None, prompt: str | None = None, login_hint: str | None = None
    ) -> LoginUrl:
        """Where a visitor's browser logs in, now. It comes back to ``return_to`` with ``ticket``, or with ``error``. CONTRACT 8.

        Put a random value into the query of ``return_to`` and into the visitor's session, and compare them when the browser is
        back: otherwise a visitor can be made to work in another one's account. CONTRACT 10.
        """
        if self._rules.carrier == "headers":
            raise ValueError("login_url needs carrier parameters or both in the profile: a browser sends no signature in headers")
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        pairs = _present(app=self._app, provider=provider, prompt=prompt, login_hint=login_hint, return_to=return_to)
        pairs.update(code_challenge=challenge, code_challenge_method="S256")
        text = _sign.sign(pairs, self._key, self._profile, "GET", "/login", self._shared.next_time())
        return LoginUrl(f"{self._origin}/login?{text}", verifier)

    async def _exchange(self, ticket: str, code_verifier: str | None = None, **options: Unpack[CallOptions]) -> Login:
        """Exchanges the ticket with which the browser came back: it lives 60 s, and serves once."""
        pairs = _present(ticket=ticket, code_verifier=code_verifier)
        return self._logged_in(await self._object("POST", "/user/login", pairs, options))

    async def _renew(self, **options: Unpack[CallOptions]) -> Login:
        """A new credential; the old one ends 60 s later."""
        return self._logged_in(await self._object("POST", "/user/renew", {}, options, repeatable=True))

    async def _logout(self, **options: Unpack[CallOptions]) -> None:
        """Ends the login, and clears the store."""
        await self._call("POST", "/user/logout", **options)
        if self._store is not None:
            self._store.clear()

    async def _user(self, **options: Unpack[CallOptions]) -> Account:
        """The account of the user who is logged in."""
        return cast(Account, await self._object("GET", "/user", {}, options))

    async def _send_event(self, event: str, data: str | None = None, **options: Unpack[CallOptions]) -> Event:
        """Stores an event with the account. It is repeated after a failure only if it has an ``idempotency_key``."""
        key = options.pop("idempotency_key", None)
        pairs = _present(event=event, data=data, idempotency_key=key)
        return cast(Event, await self._object("POST", "/event/send", pairs, options, repeatable=key is not None))

    async def _events(self, limit: int = 20, before: str | None = None, **options: Unpack[CallOptions]) -> EventPage:
        """A page of the account's events. Version 1 has none."""
        return cast(EventPage, await self._object("GET", "/events", _present(limit=str(limit), before=before), options))

    def _logged_in(self, document: dict[str, Any]) -> Login:
        credential, expires_in = _member(document, "authorization", str), _member(document, "expires_in", int)
        if self._store is not None:
            self._store.save(credential)
        return Login(credential, expires_in, document.get("account"), document.get("created") is True)

    async def _object(self, method: str, path: str, pairs: Pairs, options: CallOptions, **further: Any) -> dict[str, Any]:
        reply, body = await self._send(self._prepare(method, path, pairs, options, **further))
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise TransportError(f"{method} {path}: the response is no JSON object", True)
        return document


def _present(**pairs: str | None) -> dict[str, str]:
    return {name: value for name, value in pairs.items() if value is not None}


def _member(document: dict[str, Any], name: str, kind: type[T]) -> T:
    value = document.get(name)
    if not isinstance(value, kind):
        raise TransportError(f"the response has no {name}: is this version a login service?", True)
    return value


def _seconds(document: dict[str, Any], name: str, default: float, longest: float) -> float:
    value = document.get(name, default)
    # What is not equal to itself is NaN.
    return min(max(float(value), 1), longest) if type(value) in (int, float) and value == value else default
