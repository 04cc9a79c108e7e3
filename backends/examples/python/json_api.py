"""A JSON API with Python's standard library alone: `python3 json_api.py PORT`. It keeps orders in memory."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

orders = {}


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        name = self.path.removeprefix("/orders/")
        if self.command in ("POST", "PUT"):
            orders[name] = body
        known = orders.pop(name, None) if self.command == "DELETE" else orders.get(name)
        content = json.dumps(known).encode()
        self.send_response(404 if known is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Api).serve_forever()
