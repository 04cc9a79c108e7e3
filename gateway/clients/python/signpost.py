"""Signpost's client for Python: signs a request by the gateway's rules, sends exactly what it signed, and logs users in.

Copy this file into your project. It needs Python 3.9 or later, and nothing else. CONTRACT is gateway/protocol/CONTRACT.md.
"""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import hmac
import http.client
import io
import json
import logging
import random
import re
import socket
import ssl
import threading
import time as system_time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union
from urllib.parse import quote, unquote_to_bytes

__all__ = ["Client", "Problem", "Response", "TransportError", "canonical", "encode", "sign", "signature"]

Pairs = Union[Mapping[str, str], Iterable[Sequence[str]]]
Profile = Mapping[str, Any]
Wire = Union[str, bytes]

_ALLOWED = {
    "preset": ("plain", "decoded", "bilibili", "alipay", "wechat", "top"),
    "values": ("wire", "decoded"),
    "layout": ("pairs", "pairs-key", "concat", "concat-both"),
    "empty": ("keep", "drop"),
    "cover": ("parameters", "request"),
    "algorithm": ("md5", "hmac-sha256"),
}
_PRESETS: dict[str, dict[str, Any]] = {
    "plain": {},
    "decoded": {"values": "decoded"},
    "bilibili": {},
    "alipay": {"values": "decoded", "empty": "drop", "leave_out": ("sign_type",)},
    "wechat": {"values": "decoded", "empty": "drop", "layout": "pairs-key"},
    "top": {"values": "decoded", "empty": "drop", "layout": "concat-both"},
}
_CONVENTION_HEADERS = ("app", "version", "language", "authorization")
# CONTRACT 7: nothing was forwarded, so any call can be repeated.
_NOT_EXECUTED = {"request_timeout", "request_replayed", "rate_limited", "no_healthy_backend", "version_brownout"}
# CONTRACT 7: the call may have been executed.
_PERHAPS_EXECUTED = {"internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping"}
_URL = re.compile(r"(https?)://((?:\[[0-9a-f:.]+\]|[^\s\x00-\x20/?#@:\[\]\\%]+)(?::([0-9]{1,5}))?)/?", re.IGNORECASE)
_PATH = re.compile(r"/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*")
_DOT_SEGMENT = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)
# Control and format characters, separators of lines, and what is no text. CONTRACT 7.
_UNPRINTABLE = {"Cc", "Cf", "Zl", "Zp", "Cs"}
_JOINERS = "\u200c\u200d"
# Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
_SECRET = re.compile(
    "((?:^|&)(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|credential|passw(?:or)?d"
    r"|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:&|\Z))))[^&]+", re.IGNORECASE)
_MAX_HEAD_BYTES = 65_536
_MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_PROBLEM_BYTES = 65_536
_MAX_CORRECTION_MS = 24 * 60 * 60 * 1000
_CHECK_WAIT = 30


class Problem(Exception):
    """A response with a status of 400 or more. Decide by ``code``: it never changes. CONTRACT 7.

    ``code`` is empty if the body is no problem document. ``retry_after`` is in seconds, ``server_time`` in milliseconds since 1970.
    ``canonical`` is the text that the gateway signed, of ``sign_mismatch``; below it the message shows ``signed``, the client's.
    """

    def __init__(self, response: Response, signed: str = "") -> None:
        document = _problem_document(response)

        def text(name: str) -> str | None:
            value = document.get(name)
            return value if isinstance(value, str) else None

        self.response = response
        self.status = response.status
        self.code = text("code") or ""
        self.title = text("title")
        self.detail = text("detail")
        self.hint = text("hint")
        self.canonical = text("canonical")
        self.request_id: str | None = text("request_id") or response.headers.get("X-Request-Id")
        retry_after = re.fullmatch("[0-9]{1,10}", response.headers.get("Retry-After", ""))
        self.retry_after = int(retry_after.group()) if retry_after else None
        server_time = document.get("server_time")
        self.server_time: int | None = server_time if type(server_time) is int and 0 <= server_time < 2**53 else None
        said = " ".join(part for part in (self.title, self.hint or self.detail) if part)
        message = f"{self.status} {self.code}".rstrip() + (f": {said}" if said else "")
        lines = [message + (f" (request {self.request_id})" if self.request_id else "")]
        if self.canonical is not None:
            lines += [f"the gateway signed: {self.canonical}", f"this client signed: {signed}"]
        super().__init__("\n".join(map(_printable, lines)))


class TransportError(OSError):
    """There is no usable response: no connection, a lost one, a timeout, or a malformed response. ``__cause__`` says why.

    ``sent`` is False if nothing was sent, so that the call surely had no effect.
    """

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(_printable(message))
        self.sent = sent


@dataclass(frozen=True)
class Response:
    """A response. ``headers`` are looked up in any letter case: ``headers.get("x-request-id")``."""

    status: int
    headers: http.client.HTTPMessage = field(repr=False)
    body: bytes = field(repr=False)

    @property
    def text(self) -> str:
        """The body as UTF-8."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is none."""
        return json.loads(self.body)


def encode(text: str) -> str:
    """Encodes a name or a value by RFC 3986. Raises ValueError if a lone surrogate is in it."""
    return quote(_utf8(text, "a name or a value"), safe="")


def canonical(query: Wire, form: Wire, profile: Profile | None = None, method: str = "", path: str = "") -> str:
    """The canonical string of pairs as they are sent, with ``<APP_KEY>`` in the key's place. CONTRACT 3.

    ``method`` and ``path`` count with ``cover = request`` only. Raises ValueError for broken escapes, and what is not UTF-8.
    """
    return _canonical(query, form, b"<APP_KEY>", _rules(profile), method, path).decode()


def signature(query: Wire, form: Wire, key: str, profile: Profile | None = None, method: str = "", path: str = "") -> str:
    """The signature of pairs as they are sent, in hex. A ``sign`` among them is not signed. CONTRACT 3."""
    rules = _rules(profile)
    key_bytes = _key_bytes(key)
    text = _canonical(query, form, key_bytes, rules, method, path)
    if rules.algorithm == "hmac-sha256":
        return hmac.new(key_bytes, text, "sha256").hexdigest()
    return hashlib.md5(text, usedforsecurity=False).hexdigest()


def sign(
    pairs: Pairs,
    key: str,
    profile: Profile | None = None,
    method: str = "",
    path: str = "",
    time: int | str | None = None,
) -> str:
    """The text to send, as query or as form: the pairs in their order, then ``time`` (unless a pair has that name), then ``sign``.

    ``time`` is in milliseconds since 1970, by default that of the system's clock. Raises TypeError or ValueError for pairs that
    cannot be sent, for example with a value that is no text.
    """
    checked = _pairs(pairs)
    if all(name != "time" for name, _ in checked):
        checked.append(("time", str(_system_clock() if time is None else time)))
    text = "&".join(f"{encode(name)}={encode(value)}" for name, value in checked)
    return f"{text}&sign={signature('', text, key, profile, method, path)}"


def _log_warning(name: str, value: str) -> None:
    said = f"{value} served, not the version asked for" if name == "version_unknown" else value
    logging.getLogger("signpost").warning("signpost: %s: %s", name, _printable(said))


class Client:
    """Calls a gateway. Threads can share a client; each call has a connection of its own.

    ``url`` is the gateway's origin. ``profile`` has the members ``preset``, ``values``, ``layout``, ``empty``, ``leave_out``,
    ``cover`` and ``algorithm``; what it lacks is as in the preset. Times are in seconds: ``timeout`` is for a
    request and its whole response once connected, ``max_wait`` the longest pause before a repetition. ``on_warning`` gets a name and
    a value, once for each name: by default it logs, None turns it off. ``clock`` returns milliseconds since 1970. Raises ValueError or
    TypeError for settings that cannot be right.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        app: str | None = None,
        prefix: str = "Acme",
        version: str | None = None,
        language: str | None = None,
        authorization: str | None = None,
        profile: Profile | None = None,
        header_names: Mapping[str, str] | None = None,
        connect_timeout: float = 5.0,
        timeout: float = 65.0,
        retries: int = 3,
        max_wait: float = 30.0,
        on_warning: Callable[[str, str], None] | None = _log_warning,
        clock: Callable[[], int] | None = None,
    ) -> None:
        origin = _URL.fullmatch(url)
        if origin is None or int(origin[3] or 0) > 65_535:
            raise ValueError("url must be http:// or https:// with a host and perhaps a port, and nothing else")
        if not re.fullmatch("[A-Za-z][A-Za-z0-9-]{0,31}", prefix):
            raise ValueError("prefix must be a letter, then at most 31 letters, digits and -")
        self._address = origin[2]
        self._tls = ssl.create_default_context() if origin[1].lower() == "https" else None
        _key_bytes(key)
        self._key = key
        _rules(profile)
        self._profile = dict(profile or {})
        self._source_header = f"{prefix}-X-Version-Source"
        self._header_names = {one: f"{prefix}-X-{one.capitalize()}" for one in _CONVENTION_HEADERS}
        for one, name in (header_names or {}).items():
            if one not in _CONVENTION_HEADERS:
                raise ValueError(f"header_names can have {', '.join(_CONVENTION_HEADERS)}, not {one}")
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
                raise ValueError(f"header_names: {one} is no name of a header")
            self._header_names[one] = name
        self._values = {one: _header(one, value) for one, value in (("app", app), ("version", version), ("language", language))}
        self.authorization = authorization
        self._connect_timeout, self._timeout = connect_timeout, timeout
        self._retries, self._max_wait = retries, max_wait
        self._on_warning = on_warning
        self._clock = clock or _system_clock
        self._lock = threading.Lock()
        self._clock_offset = self._tried_offset = 0
        self._last_time = 0
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"Client({'http' if self._tls is None else 'https'}://{self._address})"

    @property
    def authorization(self) -> str | None:
        """The user's credential. ``login`` sets it, ``logout`` removes it. CONTRACT 8."""
        return self._values.get("authorization")

    @authorization.setter
    def authorization(self, value: str | None) -> None:
        self._values["authorization"] = _header("authorization", value)

    def call(
        self,
        method: str,
        path: str,
        pairs: Pairs = (),
        *,
        repeatable: bool | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Signs the pairs and sends them, as query of a GET or form of a POST. Redirects are not followed.

        ``repeatable`` says that a repetition does no harm: by default a GET's. Raises Problem from status 400 on, TransportError if there
        is no response, ValueError or TypeError if the call cannot be sent. Repeats by CONTRACT 10 before it raises.
        """
        if method not in ("GET", "POST"):
            raise ValueError("method must be GET or POST")
        if not _PATH.fullmatch(path) or _DOT_SEGMENT.search(path):
            raise ValueError("path must begin with /, be encoded, and have no query and no segment . or ..")
        checked = _pairs(pairs)
        if repeatable is None:
            repeatable = method == "GET"
        repetitions, corrected_offset = 0, None
        while True:
            failure: Problem | TransportError
            try:
                text = sign(checked, self._key, self._profile, method, path, self._next_time(corrected_offset))
                response = self._send(method, path, text, self._timeout if timeout is None else timeout)
                self._warn(response)
                problem = Problem(response, self._signed(method, path, text)) if response.status >= 400 else None
                if problem is not None and problem.code == "time_out_of_window":
                    if corrected_offset is None and problem.server_time is not None:
                        corrected_offset = self._corrected_offset(problem.server_time)
                        if corrected_offset is not None:
                            continue
                elif corrected_offset is not None:
                    self._clock_offset = corrected_offset
                if problem is None:
                    return response
                failure, pause = problem, problem.retry_after
                is_repeated = problem.code in _NOT_EXECUTED or (repeatable and problem.code in _PERHAPS_EXECUTED)
            except TransportError as error:
                failure, is_repeated, pause = error, repeatable or not error.sent, None
            if not is_repeated or repetitions >= self._retries:
                raise failure
            wait = 0.5 * 2**repetitions * random.uniform(0.5, 1.5) if pause is None else pause
            if wait > self._max_wait:
                raise failure
            repetitions += 1
            system_time.sleep(wait)

    def login(self, show: Callable[[str, str], None], provider: str | None = None) -> dict[str, Any]:
        """Logs a user in by polling, and sets ``authorization``. Returns the login result. CONTRACT 8.

        Calls ``show`` with the address that the user must open, and the code that the user compares. Raises the Problem of a login that
        failed, for example ``login_denied``.
        """
        begun = self._object("POST", "/login", {} if provider is None else {"provider": provider})
        token, address = _member(begun, "token"), _member(begun, "authorize_url")
        if not address.startswith(("http://", "https://")) or _printable(address) != address:
            raise TransportError("malformed response: authorize_url is no web address", True)
        show(address, _printable(_member(begun, "user_code")))
        end = system_time.monotonic() + _seconds(begun, "expires_in", 600, 3600)
        while system_time.monotonic() < end:
            start = system_time.monotonic()
            pairs = {"token": token, "wait": str(_CHECK_WAIT)}
            checked = self._object("POST", "/check", pairs, repeatable=True, timeout=_CHECK_WAIT + 10)
            if checked.get("status") != "pending":
                break
            now = system_time.monotonic()
            if now - start < _CHECK_WAIT / 2:
                system_time.sleep(max(0, min(_seconds(begun, "interval", 2, 60), end - now)))
        result = self._object("POST", "/user/login", {"token": token}, repeatable=True)
        self.authorization = _member(result, "authorization")
        return result

    def logout(self) -> None:
        """Ends the login, and forgets the credential."""
        self.call("POST", "/user/logout")
        self.authorization = None

    def user(self) -> dict[str, Any]:
        """The account of the user who is logged in."""
        return self._object("GET", "/user", {})

    def send_event(self, event: str, data: str | None = None, idempotency_key: str | None = None) -> dict[str, Any]:
        """Stores an event with the account. It is repeated after a failure only if it has an ``idempotency_key``."""
        pairs = {"event": event}
        if data is not None:
            pairs["data"] = data
        if idempotency_key is not None:
            pairs["idempotency_key"] = idempotency_key
        return self._object("POST", "/event/send", pairs, repeatable=idempotency_key is not None)

    def _object(self, method: str, path: str, pairs: Pairs, **options: Any) -> dict[str, Any]:
        response = self.call(method, path, pairs, **options)
        try:
            document = response.json()
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise TransportError(f"{method} {path}: the response is no JSON object", True)
        return document

    def _send(self, method: str, path: str, text: str, timeout: float) -> Response:
        headers = {"Accept": "application/json", "User-Agent": "signpost-python", "Connection": "close"}
        headers.update({self._header_names[one]: value for one, value in self._values.items() if value})
        target, body = f"{path}?{text}", None
        if method == "POST":
            target, body = path, text.encode("ascii")
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self._address, timeout=self._connect_timeout)
        if self._tls is not None:
            connection = http.client.HTTPSConnection(self._address, timeout=self._connect_timeout, context=self._tls)
        is_sent = False
        try:
            connection.connect()
            is_sent = True
            connection.sock.settimeout(timeout)
            incoming = _Incoming(connection.sock, timeout)
            connection.request(method, target, body, headers)
            response = http.client.HTTPResponse(incoming, method=method)
            response.begin()
            # Chunks need some bytes more than the body.
            incoming.left = _MAX_BODY_BYTES * (2 if response.chunked else 1) + 1
            return Response(response.status, response.headers, _body(response))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise TransportError(f"{method} {path} at {self._address}: {error or type(error).__name__}", is_sent) from error
        finally:
            connection.close()

    def _next_time(self, offset: int | None) -> int:
        """A time that no other request of this client has: two equal requests with one time would have one signature."""
        with self._lock:
            self._last_time = max(int(self._clock()), self._last_time + 1)
            return self._last_time + (self._clock_offset if offset is None else offset)

    def _corrected_offset(self, server_time: int) -> int | None:
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

    def _signed(self, method: str, path: str, text: str) -> str:
        """What the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7."""
        masked = _SECRET.sub(r"\1***", text).replace(encode(self._key), "***")
        return canonical("", masked, self._profile, method, path)[:2048]

    def _warn(self, response: Response) -> None:
        found = {"deprecated": response.headers.get("Deprecation"), "sunset": response.headers.get("Sunset")}
        asked, served = (self._values["version"] or "").strip(), response.headers.get(self._header_names["version"], "")
        if response.headers.get(self._source_header) == "unknown" or (asked and served and asked.lower() != served.lower()):
            found["version_unknown"] = served
        with self._lock:
            new = [(name, value) for name, value in found.items() if value is not None and name not in self._warned]
            self._warned.update(name for name, _ in new)
        if self._on_warning is not None:
            for name, value in new:
                self._on_warning(name, value)


class _Incoming(io.RawIOBase):
    """What a socket receives until a deadline, at most ``left`` bytes: first of the heads, then of the body."""

    def __init__(self, connected: socket.socket, timeout: float) -> None:
        self._socket = connected
        self._end = system_time.monotonic() + timeout
        self.left = _MAX_HEAD_BYTES

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        seconds = self._end - system_time.monotonic()
        if seconds <= 0:
            raise TimeoutError("timed out")
        if self.left <= 0:
            raise http.client.HTTPException("the response is too long")
        self._socket.settimeout(seconds)
        count = self._socket.recv_into(buffer, min(len(buffer), self.left))
        self.left -= count
        return count


class _Rules(NamedTuple):
    """A sign profile, complete."""

    values: str = "wire"
    layout: str = "pairs"
    empty: str = "keep"
    leave_out: Sequence[str] = ()
    cover: str = "parameters"
    algorithm: str = "md5"


def _rules(profile: Profile | None) -> _Rules:
    members = dict(profile or {})
    for name, value in members.items():
        if name == "leave_out":
            is_list = isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
            if not is_list or "" in value or "time" in value:
                raise ValueError("profile: leave_out must be a list of names, without time")
        elif name not in _ALLOWED:
            raise ValueError(f"profile can have {', '.join([*_ALLOWED, 'leave_out'])}, not {name}")
        elif value not in _ALLOWED[name]:
            raise ValueError(f"profile: {name} must be one of {', '.join(_ALLOWED[name])}")
    preset = _PRESETS[members.pop("preset", "plain")]
    return _Rules(**{**preset, **members})


def _canonical(query: Wire, form: Wire, key: bytes, rules: _Rules, method: str, path: str) -> bytes:
    if rules.cover == "request" and not (method and path):
        raise ValueError("the profile covers the request: method and path are needed")
    signed = []
    for part in b"&".join(one if isinstance(one, bytes) else _utf8(one, "query or form") for one in (query, form)).split(b"&"):
        name, _, value = part.partition(b"=")
        decoded = _decode(name)
        is_unsigned = decoded == "sign" or decoded in rules.leave_out or (rules.empty == "drop" and not value)
        if part and not is_unsigned:
            if rules.values == "decoded":
                name, value = decoded.encode(), _decode(value).encode()
            signed.append((decoded.encode(), name, value))
    # By the bytes of the decoded name; the sort is stable, so pairs of one name keep their order.
    signed.sort(key=lambda pair: pair[0])
    if rules.layout in ("pairs", "pairs-key"):
        text = b"&".join(name + b"=" + value for _, name, value in signed)
    else:
        text = b"".join(name + value for _, name, value in signed)
    if rules.layout == "pairs-key":
        text += (b"&key=" if signed else b"key=") + key
    elif rules.algorithm == "md5":
        text = (key if rules.layout == "concat-both" else b"") + text + key
    head = f"{method}\n{path}\n".encode() if rules.cover == "request" else b""
    return head + text


def _decode(sent: bytes) -> str:
    if re.search(rb"%(?![0-9A-Fa-f]{2})", sent):
        raise ValueError("query or form has a % without two hex digits")
    try:
        return unquote_to_bytes(sent.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise ValueError("query or form is not UTF-8 once decoded") from None


def _pairs(pairs: Pairs) -> list[tuple[str, str]]:
    checked = []
    for pair in pairs.items() if isinstance(pairs, Mapping) else pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise TypeError("pairs must be a mapping, or a list of (name, value)")
        name, value = pair
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"name and value of a pair must be text: {name!r} has {type(value).__name__}")
        if name == "sign":
            raise ValueError("a pair is named sign: the client adds it")
        checked.append((name, value))
    return checked


def _key_bytes(key: str) -> bytes:
    key_bytes = _utf8(key, "key")
    if not key or key != key.strip():
        raise ValueError("key is empty, or has white space at an end, perhaps the line break of its file: strip it")
    return key_bytes


def _utf8(text: str, what: str) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"{what} must be text")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} has a lone surrogate, so it is no text") from None


def _header(name: str, value: str | None) -> str | None:
    if value is not None and not re.fullmatch("[ -~]*", value):
        raise ValueError(f"{name} must be printable ASCII: it is sent as a header")
    return value


def _body(response: http.client.HTTPResponse) -> bytes:
    if response.length is None:
        body = response.read(_MAX_BODY_BYTES + 1)
        if len(body) <= _MAX_BODY_BYTES:
            return body
    elif response.length <= _MAX_BODY_BYTES:
        return response.read()
    raise http.client.HTTPException("the response is too long")


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


def _member(document: dict[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str):
        raise TransportError(f"the response has no {name}: is this version a login service?", True)
    return value


def _seconds(document: dict[str, Any], name: str, default: float, longest: float) -> float:
    value = document.get(name)
    # What is not equal to itself is NaN.
    return min(max(value, 1), longest) if type(value) in (int, float) and value == value else default


def _printable(text: str) -> str:
    return "".join(" " if unicodedata.category(one) in _UNPRINTABLE and one not in _JOINERS else one for one in text)


def _system_clock() -> int:
    return system_time.time_ns() // 1_000_000
