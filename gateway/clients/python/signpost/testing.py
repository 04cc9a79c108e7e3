"""A transport for tests of code that calls a gateway."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Mapping
from typing import Any

from ._http import Headers, Reply, Request


class FakeTransport:
    """Answers by a function, and keeps each request: ``Client(url, key, transport=FakeTransport(lambda request: reply(200)))``."""

    def __init__(self, respond: Callable[[Request], Reply]) -> None:
        self.requests: list[Request] = []
        self._respond = respond

    def send(self, request: Request) -> Reply:
        self.requests.append(request)
        return self._respond(request)


def reply(status: int = 200, *, json: Any = None, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Reply:
    """A response, with ``json`` unless it is None, otherwise with ``body``."""
    found = Headers()
    for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
        found[name] = value
    return Reply(status, found, [body if json is None else json_format.dumps(json).encode()])
