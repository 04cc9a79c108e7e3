"""A backend without a framework: the orders of the logged-in user, in memory. CONTRACT 9.

    python3 orders.py ADDRESS:PORT FILE_OF_THE_GATEWAY_SECRET

Its route at the gateway has account = "required", so each request has an account that the gateway has checked.
"""

import hmac, http.client, http.server, json, os, signal, sys, threading, time, urllib.parse
from collections import defaultdict, deque

http.client._MAXHEADERS = 300  # Python's limit is 100. The gateway passes up to 100 of the client, and adds 15.
LISTEN, SECRET = sys.argv[1].rsplit(":", 1), open(sys.argv[2], "rb").read().strip()
DRAIN_SECONDS = float(os.environ.get("DRAIN_SECONDS", "7"))
orders, in_flight, stopping = defaultdict(lambda: deque(maxlen=100)), set(), threading.Event()


class Orders(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open
    timeout = 120  # seconds of silence; longer than the gateway keeps idle connections, which is 90 s
    wbufsize = -1  # head and body in one packet

    def do_GET(self):
        in_flight.add(self)
        try:
            self.serve(urllib.parse.urlsplit(self.path).path)
        finally:
            in_flight.discard(self)
    do_POST = do_GET

    def serve(self, path):
        length = int(self.headers.get("Content-Length", "0"))
        if path == "/healthz" and "X-Gateway-Version" not in self.headers:
            return self.answer(503, {"status": "stopping"}) if stopping.is_set() else self.answer(200, {"status": "up"})
        if not hmac.compare_digest(self.headers.get("X-Gateway-Secret", "").encode("latin-1"), SECRET):
            self.close_connection = True
            self.problem(403, "gateway_required", {"X-Gateway-Refused": "secret"})
            self.connection.settimeout(2)  # what is unread when a connection closes can destroy the answer
            return self.rfile.read(min(length, 65536))
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
        self.close_connection |= stopping.is_set()
        close = {"Connection": "close"} if self.close_connection else {}
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **headers, **close}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_request(self, code="-", size="-"):  # without the query, which has the signature
        print(self.headers.get("X-Request-Id"), self.command, self.path.split("?")[0], int(code), flush=True)


server = http.server.ThreadingHTTPServer((LISTEN[0], int(LISTEN[1])), Orders)
# Health checks fail from SIGTERM on: the gateway chooses other addresses, then the listener closes.
close_later = threading.Timer(DRAIN_SECONDS, server.shutdown)
signal.signal(signal.SIGTERM, lambda *_: stopping.is_set() or stopping.set() or close_later.start())
server.serve_forever(poll_interval=0.1)
server.server_close()
while in_flight:  # threads of idle connections end with the process
    time.sleep(0.02)
