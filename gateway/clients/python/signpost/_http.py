"""HTTP/1.1 over kept connections. With blocking streams, nothing that is ``async`` here suspends: ``run`` runs it."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import socket
import ssl
import threading
import time
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from typing import Any, BinaryIO, Protocol, TypeVar, Union
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment, proxy_bypass_environment  # type: ignore[attr-defined]

T = TypeVar("T")
# Looked up in any letter case: headers.get("x-request-id").
Headers = Message

TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\x00-\x08\x0a-\x1f\x7f]*)?")
_FIELD = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[^\r\n]*)?")
_MAX_HEAD_BYTES = 65_536
_MAX_IDLE_CONNECTIONS = 100
# The gateway closes an idle connection after 60 s.
_MAX_IDLE_SECONDS = 50.0
_PIECE = 65_536
# Control and format characters, separators of lines, and what is no text. CONTRACT 7.
_UNPRINTABLE = {"Cc", "Cf", "Zl", "Zp", "Cs"}
_JOINERS = "\u200c\u200d"


class TransportError(OSError):
    """There is no usable response: no connection, a lost one, a timeout, or a malformed response. ``__cause__`` says why.

    ``sent`` is False if nothing was sent, so that the call surely had no effect.
    """

    # Whether the server closed a connection of the pool before it sent a byte of the response.
    is_stale = False

    def __init__(self, message: str, sent: bool = True) -> None:
        super().__init__(printable(message))
        self.sent = sent


class Cancelled(Exception):
    """The call was cancelled by its ``Cancellation``. It may have been executed."""


class Cancellation:
    """Ends calls from another thread: after ``cancel``, each call that has it raises Cancelled at once."""

    def __init__(self) -> None:
        self._event, self._lock = threading.Event(), threading.Lock()
        self._sockets: set[socket.socket] = set()

    def cancel(self) -> None:
        with self._lock:
            self._event.set()
            for watched in self._sockets:
                try:
                    # Of the plain socket: TLS would forget its state under the other thread.
                    socket.socket.shutdown(watched, socket.SHUT_RDWR)
                except OSError:
                    pass

    def check(self) -> None:
        if self._event.is_set():
            raise Cancelled("the call was cancelled")

    def sleep(self, seconds: float) -> None:
        self._event.wait(seconds)
        self.check()

    def watch(self, connected: socket.socket) -> None:
        with self._lock:
            self.check()
            self._sockets.add(connected)

    def forget(self, connected: socket.socket) -> None:
        with self._lock:
            self._sockets.discard(connected)


class Body:
    """A request's body: bytes, or a file from its position to its end, which is read once to hash it, and once to send it."""

    def __init__(self, source: bytes | BinaryIO) -> None:
        self._file = io.BytesIO(source) if isinstance(source, bytes) else source
        self._start = self._file.tell()
        self.length, digest = 0, hashlib.sha256()
        while piece := self._file.read(_PIECE):
            self.length += len(piece)
            digest.update(piece)
        self.sha256 = digest.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(self._start)
        left = self.length
        while left > 0:
            piece = self._file.read(min(_PIECE, left))
            if not piece:
                raise OSError("the file has become shorter")
            left -= len(piece)
            yield piece


@dataclass(frozen=True)
class Request:
    """A signed request, to be sent as it is. ``target`` is path and query; ``headers`` has all but Host and Content-Length.

    By ``deadline``, a time of ``time.monotonic()``, the response is whole. If ``idle_timeout`` is not None, only its head is there
    by then, and its body never pauses for longer than these seconds.
    """

    method: str
    origin: str
    target: str = field(repr=False)
    headers: Headers = field(repr=False)
    body: Body = field(repr=False)
    deadline: float
    idle_timeout: float | None = None
    cancel: Cancellation | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return self.origin + self.target


@dataclass(frozen=True)
class Reply:
    """A transport's response. ``chunks`` is the body; if it has a ``close``, that is called at the end."""

    status: int
    headers: Headers
    chunks: Union[Iterable[bytes], AsyncIterable[bytes]] = field(default=(), repr=False)


class Transport(Protocol):
    """Sends requests, for example by another HTTP library. It follows no redirects, and raises TransportError or an OSError."""

    def send(self, request: Request) -> Union[Reply, Awaitable[Reply]]: ...


class Stream(Protocol):
    """A connected socket. Each wait ends at a time of ``time.monotonic()`` with TimeoutError."""

    async def read(self, deadline: float) -> bytes: ...
    async def write(self, data: bytes, deadline: float) -> None: ...
    async def start_tls(self, context: ssl.SSLContext, host: str, deadline: float) -> None: ...
    async def is_quiet(self) -> bool: ...
    def use(self, cancel: Cancellation | None) -> None: ...
    def close(self) -> None: ...


Connect = Callable[[str, int, float, Union[Cancellation, None]], Coroutine[Any, Any, Stream]]


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that only waits by blocking."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("the transport of a blocking client must not be async")


class SocketStream:
    """A stream whose calls block."""

    def __init__(self, connected: socket.socket, cancel: Cancellation | None = None) -> None:
        self._socket, self._process = connected, os.getpid()
        self._cancel: Cancellation | None = None
        self.use(cancel)

    async def connect(self, address: Any, deadline: float) -> None:
        self._socket.settimeout(remaining(deadline))
        self._socket.connect(address)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def read(self, deadline: float) -> bytes:
        self._socket.settimeout(remaining(deadline))
        data = self._socket.recv(_PIECE)
        if self._cancel is not None:
            # Then this is not the server's end.
            self._cancel.check()
        return data

    async def write(self, data: bytes, deadline: float) -> None:
        self._socket.settimeout(remaining(deadline))
        self._socket.sendall(data)

    async def start_tls(self, context: ssl.SSLContext, host: str, deadline: float) -> None:
        plain, cancel = self._socket, self._cancel
        self.use(None)
        # A cut-off end is an error: it could be an attacker's.
        wrapped = context.wrap_socket(plain, do_handshake_on_connect=False, suppress_ragged_eofs=False, server_hostname=host)
        self._socket = wrapped
        self.use(cancel)
        wrapped.settimeout(remaining(deadline))
        wrapped.do_handshake()

    async def is_quiet(self) -> bool:
        """Whether it is open, nothing has arrived, and no fork shares it."""
        if self._process != os.getpid() or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()):
            return False
        self._socket.settimeout(0)
        try:
            # Of the plain socket: TLS has no look ahead.
            socket.socket.recv(self._socket, 1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def use(self, cancel: Cancellation | None) -> None:
        if self._cancel is not None:
            self._cancel.forget(self._socket)
        self._cancel = cancel
        if cancel is not None:
            cancel.watch(self._socket)

    def close(self) -> None:
        self.use(None)
        self._socket.close()

    def __del__(self) -> None:
        self._socket.close()


async def connect_socket(host: str, port: int, deadline: float, cancel: Cancellation | None) -> SocketStream:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure = OSError("the name has no address")
    for tried, (family, kind, protocol, _, address) in enumerate(addresses):
        stream = SocketStream(socket.socket(family, kind, protocol), cancel)
        try:
            share = remaining(deadline) / (len(addresses) - tried)
            await stream.connect(address, time.monotonic() + share)
            return stream
        except OSError as error:
            stream.close()
            failure = error
    raise failure


class HttpTransport:
    """Connections to one origin, perhaps through a proxy. Threads can share it."""

    def __init__(self, connect: Connect, connect_timeout: float, origin: str, tls: ssl.SSLContext | None, proxy: str | None) -> None:
        parts = urlsplit(origin)
        self._connect, self._tls, self._connect_timeout = connect, tls, connect_timeout
        self._host, self._port = parts.hostname or "", parts.port or (80 if tls is None else 443)
        self._address = parts.netloc
        if proxy is None:
            environment = getproxies_environment()
            proxy = "" if proxy_bypass_environment(self._address, environment) else environment.get(parts.scheme, "")
        self._proxy = urlsplit(proxy) if proxy else None
        if self._proxy is not None and (self._proxy.scheme != "http" or not self._proxy.hostname):
            raise ValueError("proxy must be http://host:port, perhaps with user:password@ before the host")
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []

    async def send(self, request: Request) -> Reply:
        connection, is_sent = None, False
        try:
            sent = self._head(request)
            connection = await self._take(request.cancel) or await self._open(request)
            is_sent = True
            head = await connection.exchange(request, sent)
            return Reply(head.status, head.headers, _Chunks(self, connection, request, head))
        except BaseException as error:
            if connection is not None:
                connection.stream.close()
            if not isinstance(error, (OSError, ValueError)):
                raise
            failure = self.error(request, error, is_sent)
            is_closed = connection is not None and connection.was_used and not connection.is_answered
            failure.is_stale = is_closed and not isinstance(error, (TimeoutError, socket.timeout))
            raise failure from error

    def error(self, request: Request, error: Exception, is_sent: bool) -> TransportError:
        if request.cancel is not None:
            request.cancel.check()
        path = request.target.partition("?")[0]
        return TransportError(f"{request.method} {path} at {self._address}: {str(error) or type(error).__name__}", is_sent)

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            closed, self._idle = self._idle, []
        for connection in closed:
            connection.stream.close()

    async def _take(self, cancel: Cancellation | None) -> _Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if time.monotonic() - connection.idle_since < _MAX_IDLE_SECONDS and await connection.stream.is_quiet():
                connection.was_used, connection.is_answered = True, False
                connection.stream.use(cancel)
                return connection
            connection.stream.close()

    def give_back(self, connection: _Connection) -> None:
        connection.stream.use(None)
        connection.idle_since = time.monotonic()
        with self._lock:
            if len(self._idle) < _MAX_IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.stream.close()

    async def _open(self, request: Request) -> _Connection:
        deadline = min(request.deadline, time.monotonic() + self._connect_timeout)
        host, port = self._host, self._port
        if self._proxy is not None:
            host, port = self._proxy.hostname or "", self._proxy.port or 80
        connection = _Connection(await self._connect(host, port, deadline, request.cancel))
        try:
            if self._tls is not None:
                if self._proxy is not None:
                    target = f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"
                    lines = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{self._proxy_credential()}\r\n"
                    await connection.stream.write(lines.encode("latin-1"), deadline)
                    head = await connection.read_head("CONNECT", deadline)
                    if head.status != 200 or connection.received:
                        raise OSError(f"the proxy refused the connection: {head.status}")
                await connection.stream.start_tls(self._tls, self._host, deadline)
        except BaseException:
            connection.stream.close()
            raise
        return connection

    def _proxy_credential(self) -> str:
        if self._proxy is None or self._proxy.username is None:
            return ""
        pair = f"{unquote(self._proxy.username)}:{unquote(self._proxy.password or '')}"
        return f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"

    def _head(self, request: Request) -> bytes:
        is_forwarded = self._proxy is not None and self._tls is None
        lines = [f"{request.method} {request.url if is_forwarded else request.target} HTTP/1.1\r\nHost: {self._address}\r\n"]
        lines += [f"{name}: {value}\r\n" for name, value in request.headers.items()]
        if is_forwarded:
            lines.append(self._proxy_credential())
        if request.body.length or request.method in ("POST", "PUT", "PATCH"):
            lines.append(f"Content-Length: {request.body.length}\r\n")
        return ("".join(lines) + "\r\n").encode("latin-1")


class _Chunks:
    """The body of a response. Once it is whole, its connection can be used again."""

    def __init__(self, transport: HttpTransport, connection: _Connection, request: Request, head: _Head) -> None:
        self._transport, self._connection, self._request, self._head = transport, connection, request, head
        self._is_over = False

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        try:
            async for chunk in self._connection.chunks(self._request, self._head):
                yield chunk
        except (OSError, ValueError) as error:
            raise self._transport.error(self._request, error, True) from error
        if self._head.is_kept and not self._connection.received:
            self._is_over = True
            self._transport.give_back(self._connection)

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._connection.stream.close()


@dataclass(frozen=True)
class _Head:
    status: int
    headers: Headers
    # Of the body; None if the connection's end is the body's.
    length: int | None = None
    is_chunked: bool = False
    is_kept: bool = False


class _Connection:
    def __init__(self, stream: Stream) -> None:
        self.stream, self.received, self.idle_since = stream, bytearray(), 0.0
        self.was_used = self.is_answered = self._is_cut = False

    async def exchange(self, request: Request, head: bytes) -> _Head:
        """Sends the request, and receives the head of the response, which a server may send before it has the whole body."""
        try:
            data = head
            for piece in request.body:
                await self.stream.write(data + piece, request.deadline)
                data = b""
                if request.body.length > _PIECE and not await self.stream.is_quiet():
                    self._is_cut = True
                    break
            if data:
                await self.stream.write(data, request.deadline)
        except TimeoutError:
            raise
        except OSError:
            self._is_cut = True
        return await self.read_head(request.method, request.deadline)

    async def read_head(self, method: str, deadline: float) -> _Head:
        left = _MAX_HEAD_BYTES
        while True:
            lines: list[bytes] = []
            while not lines or lines[-1]:
                lines.append(await self._line(deadline, left))
                left -= len(lines[-1]) + 2
            status, headers = _STATUS.fullmatch(lines[0]), Headers()
            for line in lines[1:-1]:
                member = _FIELD.fullmatch(line)
                if member is None:
                    raise ValueError("malformed response: a header")
                headers[member[1].decode()] = member[2].decode("latin-1").strip()
            if status is None or status[2] == b"101":
                raise ValueError("malformed response: its status")
            # The others are interim responses.
            if status[2] >= b"200":
                return self._framed(int(status[2]), headers, status[1] == b"1", method)

    def _framed(self, status: int, headers: Headers, is_http11: bool, method: str) -> _Head:
        """RFC 9112, section 6.3, but for what is ambiguous: that is an error."""
        lengths, encodings = headers.get_all("Content-Length", []), headers.get_all("Transfer-Encoding", [])
        options = [option.strip().lower() for option in ",".join(headers.get_all("Connection", [])).split(",")]
        is_kept = is_http11 and "close" not in options and not self._is_cut
        if method in ("HEAD", "CONNECT") or status in (204, 304):
            return _Head(status, headers, 0, False, is_kept)
        if encodings:
            if [encoding.lower() for encoding in encodings] != ["chunked"] or lengths or not is_http11:
                raise ValueError("malformed response: Transfer-Encoding")
            return _Head(status, headers, None, True, is_kept)
        if not lengths:
            return _Head(status, headers)
        if len(set(lengths)) > 1 or not re.fullmatch("[0-9]{1,18}", lengths[0]):
            raise ValueError("malformed response: Content-Length")
        return _Head(status, headers, int(lengths[0]), False, is_kept)

    async def chunks(self, request: Request, head: _Head) -> AsyncGenerator[bytes, None]:
        def deadline() -> float:
            return request.deadline if request.idle_timeout is None else time.monotonic() + request.idle_timeout

        if head.length is None and not head.is_chunked:
            while self.received or await self._receive(deadline()):
                yield self._cut(len(self.received))
            return
        left = await self._chunk_length(deadline()) if head.length is None else head.length
        while left > 0:
            if not self.received and not await self._receive(deadline()):
                raise ConnectionResetError("the connection was closed before the response was whole")
            piece = self._cut(min(left, len(self.received)))
            left -= len(piece)
            yield piece
            if left == 0 and head.is_chunked:
                if await self._line(deadline(), 2):
                    raise ValueError("malformed response: a chunk")
                left = await self._chunk_length(deadline())
        trailers = _MAX_HEAD_BYTES
        while head.is_chunked and (line := await self._line(deadline(), trailers)):
            trailers -= len(line) + 2

    async def _chunk_length(self, deadline: float) -> int:
        length = _CHUNK.fullmatch(await self._line(deadline, 1024))
        if length is None:
            raise ValueError("malformed response: a chunk")
        return int(length[1], 16)

    async def _line(self, deadline: float, limit: int) -> bytes:
        start = 0
        while (end := self.received.find(b"\n", start)) < 0 and len(self.received) <= limit:
            start = len(self.received)
            if not await self._receive(deadline):
                raise ConnectionResetError("the connection was closed before the response was whole")
        if not 0 <= end <= limit:
            raise ValueError("the response is too long: a line of it")
        line = self._cut(end + 1)[:-1]
        return line[:-1] if line.endswith(b"\r") else line

    def _cut(self, length: int) -> bytes:
        piece = bytes(self.received[:length])
        del self.received[:length]
        return piece

    async def _receive(self, deadline: float) -> bool:
        data = await self.stream.read(deadline)
        self.received += data
        self.is_answered = self.is_answered or bool(data)
        return bool(data)


def remaining(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("timed out")
    # A socket takes no endless timeout but None.
    return min(seconds, 86_400.0)


def printable(text: str) -> str:
    return "".join(" " if unicodedata.category(char) in _UNPRINTABLE and char not in _JOINERS else char for char in text)
