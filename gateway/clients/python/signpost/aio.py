"""The client for asyncio."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from ._http import Cancellation, T
from ._logins import Logins

if TYPE_CHECKING:
    from typing_extensions import Self

_MAX_RECEIVED_BYTES = 262_144


class _Stream(asyncio.Protocol):
    """A connection of one event loop."""

    _transport: asyncio.Transport

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received: deque[bytes] = deque()
        self._changed, self._can_write = asyncio.Event(), asyncio.Event()
        self._can_write.set()
        self._is_over = False
        self._failure: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received.append(data)
        self._changed.set()
        if sum(map(len, self._received)) > _MAX_RECEIVED_BYTES:
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, failure: Exception | None) -> None:
        self._is_over, self._failure = True, self._failure or failure
        self._changed.set()
        self._can_write.set()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    async def read(self, deadline: float) -> bytes:
        while not self._received:
            if self._is_over:
                if self._failure is not None:
                    raise self._failure
                return b""
            self._changed.clear()
            await _until(deadline, self._changed.wait())
        data = self._received.popleft()
        if not self._received and not self._is_over:
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes, deadline: float) -> None:
        if self._is_over:
            raise ConnectionResetError("the connection was closed")
        self._transport.write(data)
        await _until(deadline, self._can_write.wait())

    async def start_tls(self, context: ssl.SSLContext, host: str, deadline: float) -> None:
        changed = await _until(deadline, self._loop.start_tls(self._transport, self, context, server_hostname=host))
        assert isinstance(changed, asyncio.Transport)
        self._transport = changed

    def use(self, cancel: Cancellation | None) -> None:
        pass

    async def is_quiet(self) -> bool:
        if self._loop is not asyncio.get_running_loop():
            return False
        # The loop sees what has arrived, and then tells it.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return not (self._received or self._is_over or self._transport.is_closing())

    def close(self) -> None:
        if not self._loop.is_closed():
            self._transport.abort()


async def _until(deadline: float, step: Coroutine[Any, Any, T]) -> T:
    try:
        return await asyncio.wait_for(step, max(0.0, deadline - time.monotonic()))
    except asyncio.TimeoutError:
        raise TimeoutError("timed out") from None


async def _connect(host: str, port: int, deadline: float, _: Cancellation | None) -> _Stream:
    return (await _until(deadline, asyncio.get_running_loop().create_connection(_Stream, host, port)))[1]


class AsyncClient(Logins):
    __doc__ = f"Calls a gateway in an event loop: cancel a call by its task.\n\n{Logins.__doc__}"
    _connect = staticmethod(_connect)

    call = Logins._call
    stream = Logins._stream
    server_sent_events = Logins._server_sent_events
    login = Logins._login
    exchange = Logins._exchange
    renew = Logins._renew
    logout = Logins._logout
    user = Logins._user
    send_event = Logins._send_event
    events = Logins._events

    async def _pause(self, seconds: float, cancel: Cancellation | None) -> None:
        await asyncio.sleep(seconds)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
