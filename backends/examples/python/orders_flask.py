"""The orders of the logged-in user, in memory, by Flask:  gunicorn orders_flask:app"""

from collections import defaultdict, deque

from flask import Flask, abort, g, request

import gateway

app, orders = Flask(__name__), defaultdict(lambda: deque(maxlen=100))
app.wsgi_app = gateway.Wsgi(app.wsgi_app)


@app.before_request
def identify():
    g.account, g.application = request.environ["signpost.account"], request.environ["signpost.application"]


@app.route("/flask/orders", methods=["GET", "POST"])
def own_orders():
    own = orders[(g.account or abort(401)).id]
    if request.method == "POST":
        own.append(request.form["item"])
    client = {"address": request.remote_addr, "scheme": request.scheme}
    return {"username": g.account.username, "name": g.account.name, "application": g.application.id, "client": client, "orders": list(own)}
