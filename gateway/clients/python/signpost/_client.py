"""The client whose calls block."""
# Copyright the Signpost authors
# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ._http import Cancellation, T, connect_socket, run
from ._logins import Logins

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec, Self

    P = ParamSpec("P")


def _blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(method)
    def blocking(client: Client, /, *arguments: P.args, **options: P.kwargs) -> T:
        return run(method(client, *arguments, **options))

    blocking.__name__ = method.__name__.lstrip("_")
    blocking.__qualname__ = f"Client.{blocking.__name__}"
    return blocking


class Client(Logins):
    __doc__ = f"Calls a gateway. Threads can share a client.\n\n{Logins.__doc__}"
    _connect = staticmethod(connect_socket)

    call = _blocking(Logins._call)
    stream = _blocking(Logins._stream)
    server_sent_events = _blocking(Logins._server_sent_events)
    login = _blocking(Logins._login)
    exchange = _blocking(Logins._exchange)
    renew = _blocking(Logins._renew)
    logout = _blocking(Logins._logout)
    user = _blocking(Logins._user)
    send_event = _blocking(Logins._send_event)
    events = _blocking(Logins._events)

    async def _pause(self, seconds: float, cancel: Cancellation | None) -> None:
        if cancel is None:
            time.sleep(seconds)
        else:
            cancel.sleep(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
