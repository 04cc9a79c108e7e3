"""Signpost's client for Python: signs requests by the gateway's rules, sends exactly what it signed, and logs users in.

It needs Python 3.9 or later, and nothing else. ``Client`` blocks; ``signpost.aio.AsyncClient`` is for asyncio;
``signpost.testing`` has a transport for tests. CONTRACT is gateway/protocol/CONTRACT.md.
"""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from ._calls import VERSION as __version__
from ._calls import CredentialStore
from ._client import Client
from ._http import Body, Cancellation, Cancelled, Headers, Reply, Request, Transport, TransportError
from ._incoming import Incoming, ServerSentEvent
from ._logins import Account, Event, EventPage, Login, LoginUrl
from ._messages import BodyOptions, CallOptions, Problem, Response
from ._sign import Pairs, Profile, canonical, encode, head_signature, head_text, sign, sign_headers, signature

__all__ = [
    "Account", "Body", "BodyOptions", "CallOptions", "Cancellation", "Cancelled", "Client", "CredentialStore", "Event",
    "EventPage", "Headers", "Incoming", "Login", "LoginUrl", "Pairs", "Problem", "Profile", "Reply", "Request", "Response",
    "ServerSentEvent", "Transport", "TransportError", "__version__", "canonical", "encode", "head_signature", "head_text",
    "sign", "sign_headers", "signature",
]
