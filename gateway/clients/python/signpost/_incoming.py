"""Bodies of responses: whole, in pieces, as server-sent events."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from ._http import Reply, T, TransportError, run

if TYPE_CHECKING:
    from typing_extensions import Self

_MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_ERROR_BYTES = _MAX_EVENT_BYTES = 1024 * 1024


@dataclass(frozen=True)
class ServerSentEvent:
    event: str
    data: str
    id: str


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
        close(self._reply)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def chunks_of(reply: Reply, limit: int | None) -> AsyncGenerator[bytes, None]:
    left = math.inf if limit is None else limit
    try:
        async for chunk in _each(reply.chunks):
            left -= len(chunk)
            if left < 0:
                raise TransportError(f"the response is too long: the limit is {limit} bytes", True)
            yield chunk
    finally:
        close(reply)


async def _each(chunks: Any) -> AsyncGenerator[bytes, None]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield chunk
    else:
        for chunk in chunks:
            yield chunk


def close(reply: Reply) -> None:
    close = getattr(reply.chunks, "close", None)
    if close is not None:
        close()


async def read_all(reply: Reply) -> bytes:
    body, is_error = bytearray(), reply.status >= 400
    async for chunk in chunks_of(reply, None if is_error else _MAX_BODY_BYTES):
        body += chunk
        if is_error and len(body) > _MAX_ERROR_BYTES:
            break
    return bytes(body[:_MAX_ERROR_BYTES] if is_error else body)


async def events_of(chunks: AsyncIterable[bytes]) -> AsyncGenerator[ServerSentEvent, None]:
    """The events of a stream. HTML's standard, section 9.2.6: one that the end cuts off is none."""
    name, data, last_id, received, is_first, ends_with_cr = "", "", "", bytearray(), True, False
    async for chunk in chunks:
        # The second half of CR LF.
        received += chunk[1:] if ends_with_cr and chunk.startswith(b"\n") else chunk
        ends_with_cr = chunk.endswith(b"\r")
        while end := re.search(rb"\r\n|\n|\r", received):
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
