"""The orders of the logged-in user, in memory, by FastAPI:  uvicorn --timeout-keep-alive 120 orders_fastapi:app"""

from collections import defaultdict, deque
from typing import Annotated

from fastapi import Depends, FastAPI, Form, HTTPException, Request

import gateway

api, orders = FastAPI(), defaultdict(lambda: deque(maxlen=100))
app = gateway.Asgi(api)  # not by add_middleware, which would start without a secret


def account(request: Request) -> gateway.Account:
    return request.state.account or abort(401)


def abort(status):
    raise HTTPException(status)


Account = Annotated[gateway.Account, Depends(account)]


@api.get("/fastapi/orders")
def own_orders(request: Request, account: Account):
    application = request.state.application
    client = {"address": request.client.host, "scheme": request.url.scheme}
    own = list(orders[account.id])
    return {"username": account.username, "name": account.name, "application": application.id, "client": client, "orders": own}


@api.post("/fastapi/orders")
def add_order(request: Request, account: Account, item: Annotated[str, Form()]):
    orders[account.id].append(item)
    return own_orders(request, account)
