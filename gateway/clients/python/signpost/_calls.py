"""Calls and logins, for blocking clients and asyncio alike: they differ in how they connect and pause."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import base64
import copy
import email.utils
import hashlib
import inspect
import json
import logging
import math
import random
import re
import secrets
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Protocol, TypedDict

from . import _sign
from ._http import TOKEN, Body, Cancellation, Connect, Headers, HttpTransport, Reply, Request, T, Transport, TransportError, printable, run
from ._sign import Pairs, Profile

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

VERSION = "0.9.0"

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_CONVENTION_HEADERS = ("app", "version", "language", "authorization")
# RFC 9110 9.2.2: a repetition of these does no harm. The gateway repeats them, too.
_IDEMPOTENT = ("GET", "HEAD", "PUT", "DELETE")
# CONTRACT 7: nothing was forwarded, so any call can be repeated.
_NOT_EXECUTED = {"request_timeout", "request_replayed", "rate_limited", "no_healthy_backend", "version_brownout", "spool_full"}
# CONTRACT 7: the call may have been executed.
_PERHAPS_EXECUTED = {"internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping"}
_URL = re.compile(r"(https?)://((?:\[[0-9a-f:.]+\]|[^\s\x00-\x20/?#@:\[\]\\%]+)(?::([0-9]{1,5}))?)/?", re.IGNORECASE)
_PATH = re.compile(r"/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)
# The client itself writes these headers, or they would change the framing.
_OWN_HEADERS = set(
    "host content-length content-type transfer-encoding connection keep-alive te trailer upgrade expect idempotency-key "
    "proxy-authorization proxy-connection".split())
# Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
_SECRET = re.compile(
    "((?:^|&)(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|credential|passw(?:or)?d"
    r"|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:&|\Z))))[^&]+", re.IGNORECASE)
_MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_ERROR_BYTES = _MAX_EVENT_BYTES = 1024 * 1024
_MAX_PROBLEM_BYTES = 65_536
_MAX_CORRECTION_MS = 24 * 60 * 60 * 1000
_CHECK_WAIT = 30


@dataclass(frozen=True)
class Response:
    """A response. ``headers`` are looked up in any letter case: ``headers.get("x-request-id")``."""

    status: int
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is none."""
        return json.loads(self.body)


class Problem(Exception):
    """A response with a status of 400 or more, Signpost's or an API's own. Decide by ``code``: it never changes. CONTRACT 7.

    ``code`` is empty if the body is no problem document. ``body`` is cut at 1 MiB. ``retry_after`` is in seconds, ``server_time`` in
    milliseconds since 1970. If there is a ``canonical``, which the gateway signed, the message shows the client's below it.
    """

    def __init__(self, response: Response, signed: str = "") -> None:
        document = _problem_document(response)

        def text(name: str) -> str | None:
            value = document.get(name)
            return value if isinstance(value, str) else None

        self.response = response
        self.status, self.headers, self.body = response.status, response.headers, response.body
        self.code = text("code") or ""
        self.title, self.detail, self.hint, self.canonical = text("title"), text("detail"), text("hint"), text("canonical")
        self.request_id: str | None = text("request_id") or response.headers.get("X-Request-Id")
        self.retry_after = _retry_after(response.headers)
        server_time = document.get("server_time")
        self.server_time: int | None = server_time if type(server_time) is int and 0 <= server_time < 2**53 else None
        said = " ".join(part for part in (self.title, self.hint or self.detail) if part)
        message = f"{self.status} {self.code}".rstrip() + (f": {said}" if said else "")
        lines = [message + (f" (request {self.request_id})" if self.request_id else "")]
        if self.canonical is not None:
            lines += [f"the gateway signed: {self.canonical}", f"this client signed: {signed}"]
        super().__init__("\n".join(map(printable, lines)))


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


@dataclass(frozen=True)
class ServerSentEvent:
    event: str
    data: str
    id: str


class CredentialStore(Protocol):
    """Where a program of one user keeps the credential between its runs. Each call loads it."""

    def load(self) -> str | None: ...
    def save(self, credential: str) -> None: ...
    def clear(self) -> None: ...


class CallOptions(TypedDict, total=False):
    """What belongs to one call. What is absent is as the client's setting."""

    credential: str | None
    headers: Mapping[str, str]
    version: str | None
    language: str | None
    # Seconds for all of the call, with its repetitions and pauses.
    timeout: float
    # For blocking clients. With asyncio, cancel the task.
    cancel: Cancellation
    # Sent as the header Idempotency-Key. The call is then repeatable.
    idempotency_key: str
    # Whether a repetition does no harm. Default: that of GET, HEAD, PUT, DELETE.
    repeatable: bool


class BodyOptions(CallOptions, total=False):
    """A body, and what else belongs to one call. The pairs are then the query."""

    json: Any
    # Bytes, or a seekable file, from its position to its end.
    body: bytes | BinaryIO
    # Default: application/json, application/octet-stream.
    content_type: str


class Incoming(Generic[T]):
    """A streamed response: ``for`` or ``async for`` brings its parts as they arrive; ``with`` closes it, both ways."""

    def __init__(self, reply: Reply, parts: AsyncGenerator[T, None]) -> None:
        self.status, self.headers = reply.status, reply.headers
        self._reply, self._parts = reply, parts

    def __aiter__(self) -> AsyncGenerator[T, None]:
        return self._parts

    def __iter__(self) -> Iterator[T]:
        while True:
            try:
                part = run(self._parts.__anext__())
            except StopAsyncIteration:
                return
            yield part

    def close(self) -> None:
        _close(self._reply)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Call:
    """What is the same in each repetition of a call."""

    method: str
    path: str
    pairs: list[tuple[str, str]]
    body: Body | None
    headers: dict[str, str]
    is_signed_in_headers: bool
    version: str | None
    repeatable: bool
    deadline: float
    request_timeout: float
    is_streamed: bool
    cancel: Cancellation | None


def _log_warning(name: str, value: str) -> None:
    said = {"version_unknown": "{} served, not the version asked for", "clock_off": "the clock is {} the gateway's"}.get(name, "{}")
    logging.getLogger("signpost").warning("signpost: %s: %s", name, printable(said.format(value)))


class _Shared:
    """What the copies of a client share beside the connections: the clock, and the warnings."""

    def __init__(self, clock: Callable[[], int], on_warning: Callable[[str, str], None] | None) -> None:
        self._lock = threading.Lock()
        self._clock, self._on_warning = clock, on_warning
        self.clock_offset = self._tried_offset = self._last_time = 0
        self._warned: set[str] = set()

    def next_time(self, offset: int | None = None) -> int:
        """A time that no other request of this client has: two equal requests with one time would have one signature."""
        with self._lock:
            self._last_time = max(int(self._clock()), self._last_time + 1)
            return self._last_time + (self.clock_offset if offset is None else offset)

    def corrected_offset(self, server_time: int) -> int | None:
        """What to add to the clock, or None if that is more than a day: whoever is on the way could get signatures of any time."""
        with self._lock:
            now = int(self._clock())
            # Otherwise times would go on from that of a clock that was set back. Those of other threads are only a little ahead.
            if self._last_time - now >= 1000:
                self._last_time = now
            offset = server_time - now
            # Threads that correct it at the same time need the same offset, or two of their times could be equal.
            if abs(offset - self._tried_offset) < 1000:
                offset = self._tried_offset
            self._tried_offset = offset
        return offset if abs(offset) <= _MAX_CORRECTION_MS else None

    def correct(self, offset: int) -> None:
        self.clock_offset = offset
        self.warn({"clock_off": f"{abs(offset) // 1000} s {'behind' if offset > 0 else 'ahead of'}"})

    def warn(self, found: Mapping[str, str | None]) -> None:
        with self._lock:
            new = [(name, value) for name, value in found.items() if value is not None and name not in self._warned]
            self._warned.update(name for name, _ in new)
        if self._on_warning is not None:
            for name, value in new:
                self._on_warning(name, value)


class Calls:
    """The settings of a client, and its calls.

    ``url`` is the gateway's origin. Times are in seconds: ``timeout`` is for one request and its response, ``max_wait`` the longest pause
    before a repetition. ``proxy`` is ``http://host:port``, ``""`` for none; by default the environment names it (HTTPS_PROXY,
    HTTP_PROXY, NO_PROXY). ``on_warning`` gets a name and a value, once for each name: by default it logs, None turns it off. ``clock``
    returns milliseconds since 1970. Raises ValueError or TypeError for settings that cannot be right.
    """

    _connect: Connect

    def __init__(
        self,
        url: str,
        key: str,
        *,
        app: str | None = None,
        prefix: str = "Acme",
        version: str | None = None,
        language: str | None = None,
        credential: str | None = None,
        store: CredentialStore | None = None,
        profile: Profile | None = None,
        header_names: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        timeout: float = 65.0,
        retries: int = 3,
        max_wait: float = 30.0,
        proxy: str | None = None,
        ca_file: str | None = None,
        client_cert_file: str | None = None,
        client_key_file: str | None = None,
        transport: Transport | None = None,
        on_warning: Callable[[str, str], None] | None = _log_warning,
        clock: Callable[[], int] = _sign.system_clock,
    ) -> None:
        origin = _URL.fullmatch(url)
        if origin is None or int(origin[3] or 0) > 65_535:
            raise ValueError("url must be http:// or https:// with a host and perhaps a port, and nothing else")
        if not re.fullmatch("[A-Za-z][A-Za-z0-9-]{0,31}", prefix):
            raise ValueError("prefix must be a letter, then at most 31 letters, digits and -")
        _sign.key_as_bytes(key)
        self._origin, self._key, self._prefix = f"{origin[1].lower()}://{origin[2]}", key, prefix
        self._rules, self._profile = _sign.rules_of(profile), profile or {}
        self._header_names = {one: f"{prefix}-X-{one.capitalize()}" for one in _CONVENTION_HEADERS}
        for one, name in (header_names or {}).items():
            if one not in _CONVENTION_HEADERS or not TOKEN.fullmatch(name):
                raise ValueError(f"header_names can have names of headers for {', '.join(_CONVENTION_HEADERS)}: {one} is wrong")
            self._header_names[one] = name
        signing = (f"{prefix}-X-Time", f"{prefix}-X-Sign", f"{prefix}-X-Nonce")
        self._own_headers = _OWN_HEADERS.union(name.lower() for name in (*self._header_names.values(), *signing))
        self._app, self._version, self._language = _header("app", app), _header("version", version), _header("language", language)
        self._credential, self._store = _header("credential", credential), store
        self._timeout, self._retries, self._max_wait = timeout, retries, max_wait
        self._shared = _Shared(clock, on_warning)
        if transport is None:
            tls = ssl.create_default_context(cafile=ca_file) if self._origin.startswith("https") else None
            if tls is not None and client_cert_file is not None:
                tls.load_cert_chain(client_cert_file, client_key_file)
            transport = HttpTransport(self._connect, self._origin, tls, proxy, connect_timeout)
        self._transport = transport

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._origin})"

    def with_credential(self, credential: str | None) -> Self:
        """A copy that calls with a user's credential. It shares connections and clock, and costs nothing."""
        other = copy.copy(self)
        other._credential, other._store = _header("credential", credential), None
        return other

    def close(self) -> None:
        """Closes the idle connections. The client can still be used."""
        close = getattr(self._transport, "close", None)
        if close is not None:
            close()

    async def _call(self, method: str, path: str, pairs: Pairs = (), **options: Unpack[BodyOptions]) -> Response:
        """Signs a call and sends it. Redirects are not followed.

        Without a body, the pairs are the form of POST, PUT and PATCH, otherwise the query. The profile's ``carrier`` says where the
        signature goes. Raises Problem from status 400 on, TransportError if there is no response, Cancelled, and ValueError or
        TypeError if the call cannot be sent. Repeats by CONTRACT 10 before it raises.
        """
        reply, body = await self._exchange(self._prepare(method, path, pairs, options))
        return Response(reply.status, reply.headers, body)

    async def _stream(
        self, method: str, path: str, pairs: Pairs = (), *, limit: int | None, **options: Unpack[BodyOptions]
    ) -> Incoming[bytes]:
        """Calls, and brings the body in pieces: TransportError above ``limit`` bytes.

        ``timeout`` of the client is then for each wait, ``timeout`` of the call for all of it.
        """
        reply, _ = await self._exchange(self._prepare(method, path, pairs, options, is_streamed=True))
        return Incoming(reply, _chunks_of(reply, limit))

    async def _server_sent_events(self, path: str, pairs: Pairs = (), **options: Unpack[CallOptions]) -> Incoming[ServerSentEvent]:
        """Gets a ``text/event-stream``, and brings its events until it ends."""
        sent: CallOptions = {**options, "headers": {"Accept": "text/event-stream", **options.get("headers", {})}}
        reply, _ = await self._exchange(self._prepare("GET", path, pairs, sent, is_streamed=True))
        return Incoming(reply, _events_of(_chunks_of(reply, None)))

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
        end = time.monotonic() + options.get("timeout", math.inf)

        async def ask(path: str, pairs: Pairs, longest: float = math.inf, **further: Any) -> dict[str, Any]:
            left = max(0.0, min(end - time.monotonic(), longest))
            timed: CallOptions = options if left == math.inf else {**options, "timeout": left}
            return await self._object("POST", path, pairs, timed, **further)

        begun = await ask("/login", _given(provider=provider, prompt=prompt, login_hint=login_hint))
        token, address = _member(begun, "token", str), _member(begun, "authorize_url", str)
        if not address.startswith(("http://", "https://")) or printable(address) != address:
            raise TransportError("malformed response: authorize_url is no web address", True)
        shown = show(address, printable(_member(begun, "user_code", str)))
        if inspect.isawaitable(shown):
            await shown
        expiry = time.monotonic() + _seconds(begun, "expires_in", 600, 3600)
        while (start := time.monotonic()) < expiry:
            wait = int(max(0, min(_CHECK_WAIT, end - start - 1)))
            checked = await ask("/check", {"token": token, "wait": str(wait)}, expiry - start + 10, request_timeout=wait + 10, repeatable=True)
            if checked.get("status") != "pending":
                break
            now = time.monotonic()
            if now - start < _CHECK_WAIT / 2:
                await self._pause(max(0, min(_seconds(begun, "interval", 2, 60), expiry - now, end - now)), options.get("cancel"))
        return self._logged_in(await ask("/user/login", {"token": token}, repeatable=True))

    def login_url(
        self, return_to: str, *, provider: str | None = None, prompt: str | None = None, login_hint: str | None = None
    ) -> LoginUrl:
        """Where the browser of a visitor logs in, now. It comes back to ``return_to`` with ``ticket``, or with ``error``. CONTRACT 8.

        Put a random value into the query of ``return_to`` and into the visitor's session, and compare them when the browser is back:
        otherwise a visitor can be made to work in another one's account. CONTRACT 10.
        """
        if self._rules.carrier == "headers":
            raise ValueError("login_url needs a profile whose carrier is parameters or both: a browser sends no signature in headers")
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        pairs = _given(app=self._app, provider=provider, prompt=prompt, login_hint=login_hint, return_to=return_to)
        pairs.update(code_challenge=challenge, code_challenge_method="S256")
        text = _sign.sign(pairs, self._key, self._profile, "GET", "/login", self._shared.next_time())
        return LoginUrl(f"{self._origin}/login?{text}", verifier)

    async def _exchange_ticket(self, ticket: str, code_verifier: str | None = None, **options: Unpack[CallOptions]) -> Login:
        """Exchanges the ticket with which the browser came back: it lives 60 s, and serves once."""
        pairs = _given(ticket=ticket, code_verifier=code_verifier)
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
        document: Any = await self._object("GET", "/user", {}, options)
        return document  # type: ignore[no-any-return]

    async def _send_event(self, event: str, data: str | None = None, **options: Unpack[CallOptions]) -> Event:
        """Stores an event with the account. It is repeated after a failure only if it has an ``idempotency_key``."""
        key = options.pop("idempotency_key", None)
        pairs = _given(event=event, data=data, idempotency_key=key)
        document: Any = await self._object("POST", "/event/send", pairs, options, repeatable=key is not None)
        return document  # type: ignore[no-any-return]

    async def _events(self, limit: int = 20, before: str | None = None, **options: Unpack[CallOptions]) -> EventPage:
        """A page of the account's events. Version 1 has none."""
        document: Any = await self._object("GET", "/events", _given(limit=str(limit), before=before), options)
        return document  # type: ignore[no-any-return]

    def _logged_in(self, document: dict[str, Any]) -> Login:
        credential, expires_in = _member(document, "authorization", str), _member(document, "expires_in", int)
        if self._store is not None:
            self._store.save(credential)
        return Login(credential, expires_in, document.get("account"), document.get("created") is True)

    async def _object(self, method: str, path: str, pairs: Pairs, options: CallOptions, **further: Any) -> dict[str, Any]:
        reply, body = await self._exchange(self._prepare(method, path, pairs, options, **further))
        try:
            document = json.loads(body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise TransportError(f"{method} {path}: the response is no JSON object", True)
        return document

    def _prepare(
        self,
        method: str,
        path: str,
        pairs: Pairs,
        options: BodyOptions | CallOptions,
        *,
        is_streamed: bool = False,
        repeatable: bool | None = None,
        request_timeout: float | None = None,
    ) -> _Call:
        given: BodyOptions = {**options}
        if method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}")
        if not _PATH.fullmatch(path) or _DOT_SEGMENT.search(path):
            raise ValueError("path must begin with /, be encoded, and have no query and no segment . or ..")
        flat, body, carrier = _sign.flat_pairs(pairs), _body_of(given), self._rules.carrier
        if body is not None and method in ("GET", "HEAD"):
            raise ValueError(f"a {method} has no body")
        if body is not None and carrier == "parameters":
            raise ValueError('json and body are signed in headers: set carrier to "headers" or "both" in the profile, as the application has')
        is_by_pairs = carrier == "parameters" or (carrier == "both" and method in ("GET", "POST") and bool(flat) and body is None)
        timeout, version = given.get("timeout"), _header("version", given.get("version", self._version))
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        if request_timeout is None:
            request_timeout = self._timeout if timeout is None else math.inf
        if repeatable is None:
            repeatable = method in _IDEMPOTENT or "idempotency_key" in given
        return _Call(
            method, path, flat, body, self._headers_of(given, version, body is not None), not is_by_pairs, version,
            given.get("repeatable", repeatable), deadline, request_timeout, is_streamed, given.get("cancel"),
        )

    def _headers_of(self, given: BodyOptions, version: str | None, has_body: bool) -> dict[str, str]:
        stored = self._credential if self._store is None or "credential" in given else self._store.load()
        headers = {"accept": "application/json", "user-agent": f"signpost-python/{VERSION}"}
        for name, value in given.get("headers", {}).items():
            if not TOKEN.fullmatch(name) or name.lower() in self._own_headers:
                raise ValueError(f"headers: {name!r} is no name of a header, or the client sets it: use its settings and arguments")
            headers[name.lower()] = value
        own = {"app": self._app, "version": version, "language": given.get("language", self._language)}
        own["authorization"] = given.get("credential", stored)
        headers.update({self._header_names[one]: value for one, value in own.items() if value})
        if "idempotency_key" in given:
            headers["Idempotency-Key"] = given["idempotency_key"]
        if has_body:
            kind = "application/json" if "json" in given else "application/octet-stream"
            headers["Content-Type"] = given.get("content_type") or kind
        return {name: _header(f"the header {name}", value) or "" for name, value in headers.items()}

    def _signed(self, call: _Call, moment: int) -> tuple[Request, str]:
        """The request, and what it signs as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7."""
        headers = Headers()
        for name, value in call.headers.items():
            headers[name] = value
        if call.is_signed_in_headers:
            text = _sign.encode_pairs(call.pairs)
        else:
            text = _sign.sign(call.pairs, self._key, self._profile, call.method, call.path, moment)
        is_form = bool(text) and call.body is None and call.method in ("POST", "PUT", "PATCH")
        if is_form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        query = "" if is_form or not text else f"?{text}"
        body = call.body or Body(text.encode() if is_form else b"")
        masked = _SECRET.sub(r"\1***", text).replace(_sign.encode(self._key), "***")
        if call.is_signed_in_headers:
            nonce, algorithm = secrets.token_hex(8), self._rules.head_algorithm(self._profile)
            signed = _sign.head_text(call.method, call.path + query, moment, nonce, body.sha256)
            signature = _sign.head_signature(signed, self._key, algorithm)
            for name, value in _sign.signed_headers(self._prefix, moment, nonce, signature).items():
                headers[name] = value
            shown = signed.replace(query, f"?{masked}", 1) if query else signed
            shown += "\n<APP_KEY>" if algorithm == "md5" else ""
        else:
            shown = _sign.canonical("", masked, self._profile, call.method, call.path)
        deadline = min(call.deadline, time.monotonic() + call.request_timeout)
        idle = self._timeout if call.is_streamed and call.deadline == math.inf else None
        return Request(call.method, self._origin, call.path + query, headers, body, deadline, idle, call.cancel), shown[:2048]

    async def _exchange(self, call: _Call) -> tuple[Reply, bytes]:
        """Sends it, again where CONTRACT 10 says so. The body of a streamed response is still to come."""
        repetitions, corrected_offset, was_stale = 0, None, False
        while True:
            failure: Problem | TransportError
            pause: float | None
            try:
                if call.deadline <= time.monotonic():
                    raise TransportError(f"{call.method} {call.path}: timed out", False)
                request, shown = self._signed(call, self._shared.next_time(corrected_offset))
                reply, body = await self._attempt(request, call.is_streamed)
                self._warn(reply.headers, call.version)
                problem = Problem(Response(reply.status, reply.headers, body), shown) if reply.status >= 400 else None
                if problem is not None and problem.code == "time_out_of_window":
                    if corrected_offset is None and problem.server_time is not None:
                        corrected_offset = self._shared.corrected_offset(problem.server_time)
                        if corrected_offset is not None:
                            continue
                elif corrected_offset is not None:
                    self._shared.correct(corrected_offset)
                if problem is None:
                    return reply, body
                failure, pause = problem, problem.retry_after
                is_transient = problem.code in _PERHAPS_EXECUTED or (problem.status in (429, 503) and pause is not None)
                is_repeated = problem.code in _NOT_EXECUTED or (call.repeatable and is_transient)
            except TransportError as error:
                if error.is_stale and call.repeatable and not was_stale:
                    was_stale = True
                    continue
                failure, is_repeated, pause = error, call.repeatable or not error.sent, None
            wait = 0.5 * 2**repetitions * random.uniform(0.5, 1.5) if pause is None else pause
            is_too_long = wait > self._max_wait or time.monotonic() + wait >= call.deadline
            if not is_repeated or repetitions >= self._retries or is_too_long:
                raise failure
            repetitions += 1
            await self._pause(wait, call.cancel)

    async def _attempt(self, request: Request, is_streamed: bool) -> tuple[Reply, bytes]:
        if request.cancel is not None:
            request.cancel.check()
        try:
            sent = self._transport.send(request)
            reply = await sent if inspect.isawaitable(sent) else sent
            if is_streamed and reply.status < 400:
                return reply, b""
            try:
                return reply, await _read(reply)
            finally:
                _close(reply)
        except OSError as error:
            if request.cancel is not None:
                request.cancel.check()
            if isinstance(error, TransportError):
                raise
            raise TransportError(f"{request.method} {request.target.partition('?')[0]}: {error}", True) from error

    def _warn(self, headers: Headers, asked: str | None) -> None:
        found = {"deprecated": headers.get("Deprecation"), "sunset": headers.get("Sunset")}
        asked, served = (asked or "").strip(), headers.get(self._header_names["version"], "")
        if headers.get(f"{self._prefix}-X-Version-Source") == "unknown" or (asked and served and asked.lower() != served.lower()):
            found["version_unknown"] = served
        self._shared.warn(found)

    async def _pause(self, seconds: float, cancel: Cancellation | None) -> None:
        raise NotImplementedError


def _body_of(given: BodyOptions) -> Body | None:
    if "json" in given:
        if "body" in given:
            raise ValueError("a call has json or body, not both")
        return Body(json.dumps(given["json"], ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    if "body" not in given:
        return None
    body = given["body"]
    if not isinstance(body, (bytes, bytearray)) and not hasattr(body, "seek"):
        raise TypeError("body must be bytes, or a file that can be read twice")
    return Body(bytes(body) if isinstance(body, bytearray) else body)


async def _chunks_of(reply: Reply, limit: int | None) -> AsyncGenerator[bytes, None]:
    left = math.inf if limit is None else limit
    try:
        async for chunk in _each(reply.chunks):
            left -= len(chunk)
            if left < 0:
                raise TransportError(f"the response is too long: the limit is {limit} bytes", True)
            yield chunk
    finally:
        _close(reply)


async def _each(chunks: Any) -> AsyncGenerator[bytes, None]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield chunk
    else:
        for chunk in chunks:
            yield chunk


def _close(reply: Reply) -> None:
    close = getattr(reply.chunks, "close", None)
    if close is not None:
        close()


async def _read(reply: Reply) -> bytes:
    body, is_error = bytearray(), reply.status >= 400
    async for chunk in _chunks_of(reply, None if is_error else _MAX_BODY_BYTES):
        body += chunk
        if is_error and len(body) > _MAX_ERROR_BYTES:
            break
    return bytes(body[:_MAX_ERROR_BYTES] if is_error else body)


async def _events_of(chunks: AsyncIterable[bytes]) -> AsyncGenerator[ServerSentEvent, None]:
    """The events of a stream. HTML's standard, section 9.2.6: one that the end cuts off is none."""
    name, data, last_id, received, is_first = "", "", "", bytearray(), True
    async for chunk in chunks:
        received += chunk
        # A CR at the end may be the first half of CR LF.
        while end := re.search(rb"\r\n|\n|\r(?!\Z)", received):
            line = received[: end.start()].decode("utf-8", "replace")
            del received[: end.end()]
            member, _, value = (line[1:] if is_first and line.startswith("\ufeff") else line).partition(":")
            value, is_first = value[1:] if value.startswith(" ") else value, False
            if member == "event":
                name = value
            elif member == "data":
                data += value + "\n"
            elif member == "id" and "\0" not in value:
                last_id = value
            elif not line:
                if data:
                    yield ServerSentEvent(name or "message", data[:-1], last_id)
                name, data = "", ""
        if len(received) + len(data) > _MAX_EVENT_BYTES:
            raise TransportError("the response is too long: an event of it", True)


def _header(name: str, value: str | None) -> str | None:
    if value is not None and not (isinstance(value, str) and re.fullmatch("[ -~]*", value)):
        raise ValueError(f"{name} must be printable ASCII: it is sent as a header")
    return value


def _given(**pairs: str | None) -> dict[str, str]:
    return {name: value for name, value in pairs.items() if value is not None}


def _problem_document(response: Response) -> dict[str, Any]:
    is_problem = response.headers.get_content_type() == "application/problem+json"
    if is_problem and len(response.body) <= _MAX_PROBLEM_BYTES:
        try:
            document = response.json()
        except (ValueError, RecursionError):
            return {}
        if isinstance(document, dict) and isinstance(document.get("code"), str):
            return document
    return {}


def _retry_after(headers: Headers) -> int | None:
    """Seconds; of a date, since the response's own date."""
    def moment(name: str) -> float | None:
        try:
            return email.utils.parsedate_to_datetime(headers[name]).timestamp()
        except (TypeError, ValueError, OverflowError, AttributeError, IndexError):
            return None

    value = headers.get("Retry-After", "")
    if re.fullmatch("[0-9]{1,10}", value):
        return int(value)
    until, now = moment("Retry-After"), moment("Date")
    return None if until is None else max(0, math.ceil(until - (time.time() if now is None else now)))


def _member(document: dict[str, Any], name: str, kind: type[T]) -> T:
    value = document.get(name)
    if not isinstance(value, kind):
        raise TransportError(f"the response has no {name}: is this version a login service?", True)
    return value


def _seconds(document: dict[str, Any], name: str, default: float, longest: float) -> float:
    value = document.get(name, default)
    # What is not equal to itself is NaN.
    return min(max(float(value), 1), longest) if type(value) in (int, float) and value == value else default
