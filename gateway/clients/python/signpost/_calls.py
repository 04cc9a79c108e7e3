"""Calls, for blocking clients and asyncio alike: they differ in how they connect and pause."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import copy
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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from . import _sign
from ._http import TOKEN, Body, Cancellation, Connect, Headers, HttpTransport, Reply, Request, Transport, TransportError, printable
from ._incoming import Incoming, ServerSentEvent, chunks_of, close, events_of, read_all
from ._messages import BodyOptions, CallOptions, Problem, Response
from ._sign import Pairs, Profile

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

VERSION = "0.9.0"

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# Of these arguments, None says something else than their absence.
_NONE_COUNTS = ("json", "credential", "version", "language")
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
_MAX_CORRECTION_MS = 24 * 60 * 60 * 1000


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
    further = " served, not the version asked for" if name == "version_unknown" else ""
    logging.getLogger("signpost").warning("signpost: %s: %s", name, printable(value + further))


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
        self.warn({"clock_off": f"{round(abs(offset) / 1000)} s {'behind' if offset > 0 else 'ahead'}"})

    def warn(self, named: Mapping[str, str | None]) -> None:
        with self._lock:
            new = [(name, value) for name, value in named.items() if value is not None and name not in self._warned]
            self._warned.update(name for name, _ in new)
        if self._on_warning is not None:
            for name, value in new:
                self._on_warning(name, value)


class CredentialStore(Protocol):
    """Where a program of one user keeps the credential between its runs. Each call loads it."""

    def load(self) -> str | None: ...
    def save(self, credential: str) -> None: ...
    def clear(self) -> None: ...


class Calls:
    """The settings of a client, and its calls.

    ``url`` is the gateway's origin. Times are in seconds: ``timeout`` is for one request and its response, ``max_wait`` the longest
    pause before a repetition. ``proxy`` is ``http://host:port``, ``""`` for none; by default HTTPS_PROXY, HTTP_PROXY and NO_PROXY name
    it. ``on_warning`` gets a name and a value, once for each name: by default it logs, None turns it off. ``clock`` returns
    milliseconds since 1970. Raises ValueError or TypeError for settings that cannot be right.
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
        address = origin[2] if origin[2].isascii() else origin[2].encode("idna").decode()
        self._origin, self._key, self._prefix = f"{origin[1].lower()}://{address}", key, prefix
        self._rules, self._profile = _sign.rules_of(profile), profile or {}
        self._header_names = {role: f"{prefix}-X-{role.capitalize()}" for role in _CONVENTION_HEADERS}
        for role, name in (header_names or {}).items():
            if role not in _CONVENTION_HEADERS or not TOKEN.fullmatch(name):
                raise ValueError(f"header_names can have names of headers for {', '.join(_CONVENTION_HEADERS)}: {role} is wrong")
            self._header_names[role] = name
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
            transport = HttpTransport(self._connect, connect_timeout, self._origin, tls, proxy)
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
        reply, body = await self._send(self._prepare(method, path, pairs, options))
        return Response(reply.status, reply.headers, body)

    async def _stream(
        self, method: str, path: str, pairs: Pairs = (), *, limit: int | None, **options: Unpack[BodyOptions]
    ) -> Incoming[bytes]:
        """Calls, and brings the body in pieces: TransportError above ``limit`` bytes.

        ``timeout`` of the client is then for each wait, ``timeout`` of the call for all of it.
        """
        reply, _ = await self._send(self._prepare(method, path, pairs, options, is_streamed=True))
        return Incoming(reply, chunks_of(reply, limit))

    async def _server_sent_events(self, path: str, pairs: Pairs = (), **options: Unpack[CallOptions]) -> Incoming[ServerSentEvent]:
        """Gets a ``text/event-stream``, and brings its events until it ends."""
        sent: CallOptions = {**options, "headers": {"Accept": "text/event-stream", **(options.get("headers") or {})}}
        reply, _ = await self._send(self._prepare("GET", path, pairs, sent, is_streamed=True))
        return Incoming(reply, events_of(chunks_of(reply, None)))

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
        for name in options:
            if name not in BodyOptions.__annotations__:
                raise TypeError(f"a call has no argument {name}")
        chosen = cast(BodyOptions, {name: value for name, value in options.items() if value is not None or name in _NONE_COUNTS})
        if method not in _METHODS:
            raise ValueError(f"method must be one of {', '.join(_METHODS)}")
        if not _PATH.fullmatch(path) or _DOT_SEGMENT.search(path):
            raise ValueError("path must begin with /, be encoded, and have no query and no segment . or ..")
        flat, body, carrier = _sign.flat_pairs(pairs), _body_of(chosen), self._rules.carrier
        if body is not None and method in ("GET", "HEAD"):
            raise ValueError(f"a {method} has no body")
        if body is not None and carrier == "parameters":
            raise ValueError("json and body are signed in headers: set carrier to headers or both in the profile, as the application has")
        is_by_pairs = carrier == "parameters" or (carrier == "both" and method in ("GET", "POST") and bool(flat) and body is None)
        timeout, version = chosen.get("timeout"), _header("version", chosen.get("version", self._version))
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        if request_timeout is None:
            request_timeout = self._timeout if timeout is None else math.inf
        if repeatable is None:
            repeatable = method in _IDEMPOTENT or "idempotency_key" in chosen
        headers, is_repeatable = self._headers_of(chosen, version, body is not None), bool(chosen.get("repeatable", repeatable))
        return _Call(
            method, path, flat, body, headers, not is_by_pairs, version, is_repeatable, deadline, request_timeout, is_streamed,
            chosen.get("cancel"),
        )

    def _headers_of(self, chosen: BodyOptions, version: str | None, has_body: bool) -> dict[str, str]:
        stored = self._credential if self._store is None or "credential" in chosen else self._store.load()
        headers: dict[str, str | None] = {"accept": "application/json", "user-agent": f"signpost-python/{VERSION}"}
        for name, value in (chosen.get("headers") or {}).items():
            if not TOKEN.fullmatch(name) or name.lower() in self._own_headers:
                raise ValueError(f"headers: {name!r} is no name of a header, or the client sets it: use its settings and arguments")
            headers[name.lower()] = value
        own = {"app": self._app, "version": version, "language": chosen.get("language", self._language)}
        own["authorization"] = chosen.get("credential", stored)
        headers.update({self._header_names[role]: value for role, value in own.items() if value})
        headers["Idempotency-Key"] = chosen.get("idempotency_key")
        if has_body:
            kind = "application/json" if "json" in chosen else "application/octet-stream"
            headers["Content-Type"] = chosen.get("content_type") or kind
        return {name: value for name, value in headers.items() if value is not None and _header(f"the header {name}", value) is not None}

    def _signed(self, call: _Call, moment: int) -> tuple[Request, Callable[[], str]]:
        """The request, and what it signs as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7."""
        def shown() -> str:
            masked = _SECRET.sub(r"\1***", text).replace(_sign.encode(self._key), "***")
            if not call.is_signed_in_headers:
                return _sign.canonical("", masked, self._profile, call.method, call.path)[:2048]
            end = "\n<APP_KEY>" if algorithm == "md5" else ""
            target = f"{call.path}?{masked}" if query else call.path
            return (_sign.head_text(call.method, target, moment, nonce, body.sha256) + end)[:2048]

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
        nonce, algorithm = secrets.token_hex(8), self._rules.head_algorithm(self._profile)
        if call.is_signed_in_headers:
            signed = _sign.head_text(call.method, call.path + query, moment, nonce, body.sha256)
            signature = _sign.head_signature(signed, self._key, algorithm)
            for name, value in _sign.signed_headers(self._prefix, moment, nonce, signature).items():
                headers[name] = value
        deadline = min(call.deadline, time.monotonic() + call.request_timeout)
        idle = self._timeout if call.is_streamed and call.deadline == math.inf else None
        return Request(call.method, self._origin, call.path + query, headers, body, deadline, idle, call.cancel), shown

    async def _send(self, call: _Call) -> tuple[Reply, bytes]:
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
                problem = Problem(Response(reply.status, reply.headers, body), shown()) if reply.status >= 400 else None
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
                return reply, await read_all(reply)
            finally:
                close(reply)
        except OSError as error:
            if request.cancel is not None:
                request.cancel.check()
            if isinstance(error, TransportError):
                raise
            raise TransportError(f"{request.method} {request.target.partition('?')[0]}: {error}", True) from error

    def _warn(self, headers: Headers, asked: str | None) -> None:
        named = {"deprecated": headers.get("Deprecation"), "sunset": headers.get("Sunset")}
        asked, served = (asked or "").strip(), headers.get(self._header_names["version"], "")
        if headers.get(f"{self._prefix}-X-Version-Source") == "unknown" or (asked and served and asked.lower() != served.lower()):
            named["version_unknown"] = served
        self._shared.warn(named)

    async def _pause(self, seconds: float, cancel: Cancellation | None) -> None:
        raise NotImplementedError


def _body_of(options: BodyOptions) -> Body | None:
    if "json" in options:
        if "body" in options:
            raise ValueError("a call has json or body, not both")
        return Body(json.dumps(options["json"], ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
    body = options.get("body")
    if body is not None and not isinstance(body, (bytes, bytearray)) and not hasattr(body, "seek"):
        raise TypeError("body must be bytes, or a file that can be read twice")
    return None if body is None else Body(bytes(body) if isinstance(body, bytearray) else body)


def _header(name: str, value: str | None) -> str | None:
    if value is not None and not (isinstance(value, str) and re.fullmatch("[ -~]*", value)):
        raise ValueError(f"{name} must be printable ASCII: it is sent as a header")
    return value
