"""What belongs to a call, and what comes of it: responses and problems."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, TypedDict

from ._http import Cancellation, Headers, printable

_MAX_PROBLEM_BYTES = 65_536


class CallOptions(TypedDict, total=False):
    """What belongs to one call."""

    # Default of these three: the client's setting. None: not sent.
    credential: str | None
    version: str | None
    language: str | None
    headers: Mapping[str, str] | None
    # Seconds for all of the call, with its repetitions and pauses.
    timeout: float | None
    # For blocking clients. With asyncio, cancel the task.
    cancel: Cancellation | None
    # Sent as the header Idempotency-Key. The call is then repeatable.
    idempotency_key: str | None
    # Whether a repetition does no harm. Default: only of GET, HEAD, PUT, DELETE.
    repeatable: bool | None


class BodyOptions(CallOptions, total=False):
    """A body, and what else belongs to one call. The pairs are then the query."""

    json: Any
    # Bytes, or a seekable file, from its position to its end.
    body: bytes | BinaryIO | None
    # Default: application/json, application/octet-stream.
    content_type: str | None


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

    ``code`` is empty if the body is no problem document. ``body`` is cut at 1 MiB. ``retry_after`` is in seconds, ``server_time``
    in milliseconds since 1970. If there is a ``canonical``, which the gateway signed, the message shows the client's below it.
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
    """Seconds; of a date, from the response's own date."""
    value = headers.get("Retry-After", "")
    if re.fullmatch("[0-9]{1,10}", value):
        return int(value)
    until, now = (email.utils.parsedate_tz(headers.get(name, "")) for name in ("Retry-After", "Date"))
    try:
        since = email.utils.mktime_tz(now) if now else int(time.time())
        return None if until is None else max(0, email.utils.mktime_tz(until) - since)
    except (ValueError, OverflowError):
        return None
