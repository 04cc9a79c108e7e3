"""Signpost's gateway before a Python application, by WSGI or ASGI. Copy it: CONTRACT 9, backends/examples/README.md.

GATEWAY_SECRETS is a file with the gateway_secret; during a rotation it has two, one a line. A change counts at once."""

import hmac, json, os
from typing import NamedTuple
from urllib.parse import unquote


class Account(NamedTuple):
    """name and email: of a route with pass_profile, if the account has them."""

    id: str
    username: str
    type: str
    name: str | None = None
    email: str | None = None


Application = NamedTuple("Application", [("id", str), ("ident", str | None)])  # no ident: the only application


class Gateway:
    def __init__(self, app):
        self.app, self.file, self.known = app, os.environ.get("GATEWAY_SECRETS", ""), (None, [])
        if not self.secrets():
            raise ValueError("GATEWAY_SECRETS must name a file with the gateway_secret, which the gateway sends")

    def secrets(self):
        """The valid ones. While the file cannot be read or is empty, those that it had."""
        try:
            found = os.stat(self.file)
            seen = found.st_mtime_ns, found.st_size, found.st_ino
            if seen != self.known[0]:
                with open(self.file, "rb") as lines:
                    read = [line for line in map(bytes.strip, lines) if line]
                self.known = seen, read or self.known[1]  # at once: other threads read it
        except OSError:
            pass
        return self.known[1]

    def judge(self, path, header):
        """A response instead of the application's, if there is one; whose request it is. `header` finds X-Gateway-*."""
        if path == "/healthz" and header("Version") is None:
            return (200, {"Content-Type": "application/json"}, b'{"status": "up"}'), None, None
        given = (header("Secret") or "").encode("latin-1")
        if not any([hmac.compare_digest(given, secret) for secret in self.secrets()]):
            return problem(403, "gateway_required", {"X-Gateway-Refused": "secret"}), None, None
        if header("App-Id") is None:  # a callback, which only a login service serves
            return problem(404, "not_found", {}), None, None
        application, account = Application(header("App-Id"), header("App")), None
        if header("Account-Id") is not None:
            texts = (header(f"Account-{name}") for name in ("Username", "Type", "Name", "Email"))
            account = Account(header("Account-Id"), *(text and unquote(text) for text in texts))
        return None, account, application


def problem(status, code, headers):
    title = {403: "Forbidden", 404: "Not Found"}[status]
    body = json.dumps({"type": f"/problems/{code}", "title": title, "status": status, "code": code}).encode()
    return status, {"Content-Type": "application/problem+json", "X-Gateway-Problem": code, **headers}, body


class Wsgi(Gateway):
    """environ["signpost.account"], None without one, and environ["signpost.application"]; the client's own address and scheme."""

    def __call__(self, environ, start_response):
        header = lambda name: environ.get("HTTP_X_GATEWAY_" + name.upper().replace("-", "_"))
        response, account, application = self.judge(environ.get("PATH_INFO"), header)
        if response is None:
            forwarded = lambda name, otherwise: environ.get(f"HTTP_X_FORWARDED_{name}", environ[otherwise])
            client = {"REMOTE_ADDR": forwarded("FOR", "REMOTE_ADDR").split(",")[0], "wsgi.url_scheme": forwarded("PROTO", "wsgi.url_scheme")}
            own = {"signpost.account": account, "signpost.application": application}
            return self.app({**environ, **client, **own}, start_response)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if 0 < length <= 64 * 1024:  # as much as the gateway sends: otherwise the connection could not serve the next request
            environ["wsgi.input"].read(length)
        status, headers, body = response
        start_response(f"{status} Gateway", [*headers.items(), ("Content-Length", str(len(body)))])
        return [body]


class Asgi(Gateway):
    """request.state.account, None without one, and request.state.application; the client's own address and scheme."""

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":  # the gateway passes no WebSocket on
            return await send({"type": "websocket.close"})
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        header = lambda name: headers.get(b"x-gateway-" + name.lower().encode())
        response, account, application = self.judge(scope["path"], header)
        if response is None:
            state = {**scope.get("state", {}), "account": account, "application": application}
            forwarded = lambda name: headers.get(b"x-forwarded-" + name, "").split(",")[0]
            client = (forwarded(b"for"), 0) if forwarded(b"for") else scope.get("client")
            scheme = forwarded(b"proto") or scope["scheme"]
            return await self.app({**scope, "state": state, "client": client, "scheme": scheme}, receive, send)
        status, headers, body = response
        headers |= {"Content-Length": str(len(body)), "Connection": "close"}
        fields = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": body})
