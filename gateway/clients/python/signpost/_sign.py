"""Signs requests by the gateway's rules. No I/O. CONTRACT is gateway/protocol/CONTRACT.md."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time as system_time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, Union, get_args, get_type_hints
from urllib.parse import quote, unquote_to_bytes

# Values are text, numbers, booleans, or lists of these.
Pairs = Union[Mapping[str, Any], Iterable[tuple[str, Any]]]
Wire = Union[str, bytes]


class Profile(TypedDict, total=False):
    """A sign profile: what it lacks is as in its preset. CONTRACT 3."""

    preset: Literal["plain", "decoded", "bilibili", "alipay", "wechat", "top"]
    values: Literal["wire", "decoded"]
    layout: Literal["pairs", "pairs-key", "concat", "concat-both"]
    empty: Literal["keep", "drop"]
    leave_out: Sequence[str]
    cover: Literal["parameters", "request"]
    algorithm: Literal["md5", "hmac-sha256"]
    carrier: Literal["parameters", "headers", "both"]


_ALLOWED = {name: get_args(hint) for name, hint in get_type_hints(Profile).items() if name != "leave_out"}
_PRESETS: dict[str, dict[str, Any]] = {
    "plain": {},
    "decoded": {"values": "decoded"},
    "bilibili": {},
    "alipay": {"values": "decoded", "empty": "drop", "leave_out": ("sign_type",)},
    "wechat": {"values": "decoded", "empty": "drop", "layout": "pairs-key"},
    "top": {"values": "decoded", "empty": "drop", "layout": "concat-both"},
}


def encode(text: str) -> str:
    """Encodes a name or a value by RFC 3986. Raises ValueError if a lone surrogate is in it."""
    return quote(_utf8(text, "a name or a value"), safe="")


def canonical(query: Wire, form: Wire, profile: Profile | None = None, method: str = "", path: str = "") -> str:
    """The canonical string of pairs as they are sent, with ``<APP_KEY>`` in the key's place. CONTRACT 3.

    ``method`` and ``path`` count with ``cover = request`` only. Raises ValueError for broken escapes, and what is not UTF-8.
    """
    return _canonical(query, form, b"<APP_KEY>", rules_of(profile), method, path).decode()


def signature(query: Wire, form: Wire, key: str, profile: Profile | None = None, method: str = "", path: str = "") -> str:
    """The signature of pairs as they are sent, in hex. A ``sign`` among them is not signed. CONTRACT 3."""
    rules = rules_of(profile)
    key_bytes = key_as_bytes(key)
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

    A list is its name repeated; numbers and booleans are written as in JSON. ``time`` is in milliseconds since 1970, by default the
    system clock's. Raises TypeError or ValueError for pairs that cannot be sent, for example None or NaN.
    """
    checked = flat_pairs(pairs)
    if any(name == "sign" for name, _ in checked):
        raise ValueError("a pair is named sign: the client adds it")
    if all(name != "time" for name, _ in checked):
        checked.append(("time", str(system_clock() if time is None else time)))
    text = encode_pairs(checked)
    return f"{text}&sign={signature('', text, key, profile, method, path)}"


def head_text(method: str, target: str, time: int | str, nonce: str, body_sha256: str) -> str:
    """The text that a signature in headers signs: ``target`` as sent, ``body_sha256`` in lower-case hex. CONTRACT 3."""
    return f"{method}\n{target}\n{time}\n{nonce}\n{body_sha256}"


def head_signature(text: str, key: str, algorithm: str = "hmac-sha256") -> str:
    """The signature of ``head_text``, in hex."""
    key_bytes = key_as_bytes(key)
    if algorithm == "hmac-sha256":
        return hmac.new(key_bytes, _utf8(text, "text"), hashlib.sha256).hexdigest()
    return hashlib.md5(_utf8(text, "text") + b"\n" + key_bytes, usedforsecurity=False).hexdigest()


def sign_headers(
    method: str,
    target: str,
    body: bytes,
    key: str,
    *,
    algorithm: Literal["hmac-sha256", "md5"] = "hmac-sha256",
    prefix: str = "Acme",
    time: int | None = None,
) -> dict[str, str]:
    """The headers that sign a request: ``target`` is path and query exactly as they will be sent."""
    moment, nonce = system_clock() if time is None else time, secrets.token_hex(8)
    text = head_text(method, target, moment, nonce, hashlib.sha256(body).hexdigest())
    return signed_headers(prefix, moment, nonce, head_signature(text, key, algorithm))


def signed_headers(prefix: str, time: int, nonce: str, sign: str) -> dict[str, str]:
    return {f"{prefix}-X-Time": str(time), f"{prefix}-X-Nonce": nonce, f"{prefix}-X-Sign": sign}


class _Rules(NamedTuple):
    """A sign profile, complete."""

    values: str = "wire"
    layout: str = "pairs"
    empty: str = "keep"
    leave_out: Sequence[str] = ()
    cover: str = "parameters"
    algorithm: str = "md5"
    carrier: str = "parameters"

    def head_algorithm(self, profile: Profile) -> str:
        """The algorithm of signatures in headers."""
        return "hmac-sha256" if self.carrier == "both" else profile.get("algorithm", "hmac-sha256")


def rules_of(profile: Profile | None) -> _Rules:
    members: dict[str, Any] = dict(profile or {})
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


def flat_pairs(pairs: Pairs) -> list[tuple[str, str]]:
    """Names and values as text."""
    flat = []
    for pair in pairs.items() if isinstance(pairs, Mapping) else pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise TypeError("pairs must be a mapping, or a list of (name, value)")
        name, value = pair
        if not isinstance(name, str):
            raise TypeError(f"the name of a pair must be text, not {type(name).__name__}")
        flat += [(name, _text_of(name, one)) for one in (value if isinstance(value, (list, tuple)) else [value])]
    return flat


def _text_of(name: str, value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        text = float.__repr__(value)
        if not math.isfinite(value) or "e" in text:
            raise ValueError(f"the value of {name!r} is {text}: write this number as text yourself")
        return text
    raise TypeError(f"the value of {name!r} is {type(value).__name__}: it must be text, a number, a bool, or a list of these")


def encode_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    return "&".join(f"{encode(name)}={encode(value)}" for name, value in pairs)


def key_as_bytes(key: str) -> bytes:
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


def system_clock() -> int:
    return system_time.time_ns() // 1_000_000
