"""A login and an event by the client of openapi-python-client."""

import json
import sys

from login import AuthenticatedClient, Client
from login.api.default import get_check, get_events, get_user, post_event_send, post_login, post_user_login
from login.models import PostEventSendBody, PostLoginBody, PostUserLoginBody

from sign import Signed

url, key, app, data = sys.argv[1:]
settings = {"base_url": url, "timeout": 60, "httpx_args": {"auth": Signed(key)}}
headers = {"acme_x_app": app, "acme_x_version": "v2"}
client = Client(**settings)

begun = post_login.sync(client=client, body=PostLoginBody(provider="bitbucket"), **headers)
print(json.dumps(begun.to_dict()), flush=True)
sys.stdin.readline()
check = get_check.sync(client=client, token=begun.token, wait=30, **headers)
login = post_user_login.sync(client=client, body=PostUserLoginBody(token=begun.token), **headers)
user = AuthenticatedClient(token=login.authorization, prefix="", auth_header_name="Acme-X-Authorization", **settings)
post_event_send.sync(client=user, body=PostEventSendBody(event="generated", data=data), **headers)
account = get_user.sync(client=user, **headers)
events = get_events.sync(client=user, limit=1, **headers).events
print(json.dumps({"status": check.status, "provider": account.provider, "data": events[0].data}))
