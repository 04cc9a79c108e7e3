"""A backend without a framework: the orders of the logged-in user, in memory. CONTRACT 9.

    python3 orders.py ADDRESS:PORT FILE_OF_THE_GATEWAY_SECRET

Its route at the gateway has account = "required", so each request has an account that the gateway has checked."""

import collections, hmac, http.client, http.server, json, os, re, signal, sys, threading, time, urllib.parse

http.client._MAXHEADERS = 300  # Python's limit is 100. The gateway passes up to 100 of the client, and adds 15.
LISTEN, SECRET = sys.argv[1].rsplit(":", 1), open(sys.argv[2], "rb").read().strip()
SECRET or sys.exit(f"{sys.argv[2]} is empty: it must have the gateway_secret, which the gateway sends")
orders, in_flight, stopping = collections.defaultdict(lambda: collections.deque(maxlen=100)), set(), threading.Event()


class Orders(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1  # connections stay open; head and body are one packet
    timeout = 120  # seconds of silence; longer than the gateway keeps idle connections, which is 90 s
    log_request = lambda *_: None  # answer() logs, without the query, which has the signature

    def do_GET(self):
        in_flight.add(self)
        try:
            self.serve(self.path.split("?")[0])
        finally:
            in_flight.discard(self)
    do_POST = do_GET

    def serve(self, path):
        if path == "/healthz" and "X-Gateway-Version" not in self.headers:
            return self.answer(503, {"status": "stopping"}) if stopping.is_set() else self.answer(200, {"status": "up"})
        digits = re.fullmatch("[0-9]{1,9}", self.headers.get("Content-Length", "0"))
        length = int(digits[0]) if digits else -1
        if not hmac.compare_digest(self.headers.get("X-Gateway-Secret", "").encode("latin-1"), SECRET):
            self.problem(403, "gateway_required", {"X-Gateway-Refused": "secret", "Connection": "close"})
            deadline, unread = time.monotonic() + 2, min(length, 65536)  # unread bytes can destroy the response
            while unread > 0 and (seconds := deadline - time.monotonic()) > 0:
                self.connection.settimeout(seconds)
                unread -= len(self.rfile.read1(unread)) or unread
            return
        if not 0 <= length <= 65536:
            return self.problem(400, "length_invalid", {"Connection": "close"})
        form = dict(urllib.parse.parse_qsl(self.rfile.read(length).decode()))
        account = self.headers.get("X-Gateway-Account-Id")
        if path != "/orders":
            return self.problem(404, "not_found")
        if account is None:
            return self.problem(401, "authorization_missing")
        if self.command == "POST" and "item" not in form:
            return self.problem(400, "param_missing")
        if self.command == "POST":
            orders[account].append(form["item"])
        username = urllib.parse.unquote(self.headers["X-Gateway-Account-Username"])
        self.answer(200, {"username": username, "orders": list(orders[account])})

    def problem(self, status, code, headers={}):
        members = {"type": "about:blank", "title": http.HTTPStatus(status).phrase, "status": status, "code": code}
        members["request_id"] = self.headers.get("X-Request-Id", "")
        self.answer(status, members, {"Content-Type": "application/problem+json", "X-Gateway-Problem": code, **headers})

    def answer(self, status, members, headers={}):
        body = json.dumps(members).encode()
        close = {"Connection": "close"} if self.close_connection or stopping.is_set() else {}
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **headers, **close}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        line = f"{self.headers.get('X-Request-Id')} {self.command} {self.path.split('?')[0]} {status}"
        print(line.encode("unicode_escape").decode(), flush=True)  # the path is the client's


with http.server.ThreadingHTTPServer((LISTEN[0], int(LISTEN[1])), Orders) as server:
    # Health checks fail from SIGTERM on: the gateway chooses other addresses, then the listener closes.
    close_later = threading.Timer(float(os.environ.get("DRAIN_SECONDS", "7")), server.shutdown)
    signal.signal(signal.SIGTERM, lambda *_: stopping.is_set() or stopping.set() or close_later.start())
    server.serve_forever(poll_interval=0.1)
while in_flight:  # threads of idle connections end with the process
    time.sleep(0.02)
