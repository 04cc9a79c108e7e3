"""A converter: v1's clients of a shop's orders are served by v2. conf/guides/bridges.md describes the documents.

python3 converter.py ADDRESS PORT
"""

import json
import sys
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode
from urllib.request import Request, urlopen


def ask(backend, target):
    """v2's own response, in the name of the request's client."""
    with urlopen(Request(backend["addresses"][0] + target, headers=backend["headers"])) as answer:
        return json.load(answer)


def page_of(document):
    return min(int(parse_qs(document["query"]).get("page", ["1"])[0]), 100)


def old(order):
    """v2's order as v1 shows it: one name, a date, a decimal, joined tags."""
    name, cents = order["customer"], order["cents"]
    date = datetime.fromisoformat(order["created"]).strftime("%d.%m.%Y")
    return {"id": int(order["id"]), "customer": f"{name['first']} {name['last']}", "date": date,
            "total": f"{cents // 100}.{cents % 100:02}", "tags": ",".join(order["tags"])}


def request(document):
    if document["method"] == "GET" and document["path"] == "/orders":
        after = ""
        for _ in range(page_of(document) - 1):  # v2 only knows what follows a page
            after = ask(document["backend"], "/orders?" + urlencode({"after": after}))["next"]
        document["query"] = urlencode({"after": after})
    elif document["method"] == "POST":
        order = document["body"]
        (first, _, last), (whole, cents) = order["customer"].partition(" "), order["total"].split(".")
        date = datetime.strptime(order["date"], "%d.%m.%Y").date().isoformat()
        document["body"] = {"customer": {"first": first, "last": last}, "created": date,
                            "cents": int(whole) * 100 + int(cents), "tags": order["tags"].split(",")}
    return document


def response(document):
    sent, body = document["request"], document["body"]
    if document["status"] >= 400:
        document["headers"]["content-type"] = "application/json"
        document["body"] = {"error": body["detail"]}
    elif "data" in body:
        document["body"] = {"orders": [old(order) for order in body["data"]], "page": page_of(sent)}
    elif sent["method"] == "GET":  # v2 has the items elsewhere
        items = ask(sent["backend"], sent["path"] + "/items")["data"]
        document["body"] = old(body) | {"items": items}
    else:
        document["body"] = old(body)
    return document


class Converter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        changed = json.dumps({"/request": request, "/response": response}[self.path](document)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(changed)))
        self.end_headers()
        self.wfile.write(changed)


if __name__ == "__main__":
    ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Converter).serve_forever()
