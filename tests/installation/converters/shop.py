"""Two versions of a shop's API:  python3 shop.py v1|v2 ADDRESS PORT"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

VERSION, ADDRESS, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
DATES = [("2027-03-01", "01.03.2027"), ("2027-12-31", "31.12.2027"), ("2028-02-29", "29.02.2028")]
ITEMS = [{"name": "pen", "number": 2}, {"name": "ink", "number": 1}]


def order(number):
    created, date = DATES[number % 3]
    if VERSION == "v1":
        return {"id": number, "customer": "Ada Lin", "date": date, "total": f"{number}.05", "tags": "new,gift"}
    return {"id": str(number), "customer": {"first": "Ada", "last": "Lin"}, "created": created,
            "cents": number * 100 + 5, "tags": ["new", "gift"]}


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, body, status=200, content_type="application/json"):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("X-Shop", VERSION)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        known = {str(number): number for number in range(1, 8)}
        place = url.path.strip("/").split("/")
        match (VERSION, place):
            case ("v1", ["orders"]):
                page = int(query.get("page", "1"))
                numbers = range(page * 3 - 2, min(page * 3, 7) + 1)
                self.answer({"orders": [order(number) for number in numbers], "page": page})
            case ("v2", ["orders"]):
                after = int(query.get("after", "").removeprefix("cursor-") or 0)
                numbers = range(after + 1, min(after + 3, 7) + 1)
                self.answer({"data": [order(number) for number in numbers], "next": f"cursor-{after + 3}"})
            case ("v1", ["orders", number]) if number in known:
                self.answer(order(known[number]) | {"items": ITEMS})
            case ("v2", ["orders", number]) if number in known:
                self.answer(order(known[number]))
            case ("v2", ["orders", number, "items"]) if number in known and self.headers["X-Gateway-App"]:
                self.answer({"data": ITEMS})
            case ("v1", ["customer"]):
                self.answer({"id": int(query["id"]), "name": "Ada", "street": "Main 1", "city": "Bern",
                             "level": "gold", "tag": "new"})
            case ("v2", ["customers", number]) if self.headers["X-Level"] == "2":
                self.answer({"id": number, "display_name": "Ada", "address": {"street": "Main 1", "city": "Bern"},
                             "level": "GOLD", "phone": None, "tags": ["new", "gift"]})
            case ("v1", _):
                self.answer({"error": f"nothing at {url.path}"}, 404)
            case _:
                self.answer({"code": "none", "detail": f"nothing at {url.path}"}, 404, "application/problem+json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer({"id": 8 if VERSION == "v1" else "8"} | body, 201)


ThreadingHTTPServer((ADDRESS, PORT), Shop).serve_forever()
