"""Makes what schemathesis sends right, as far as it has the form that the description allows: `time` and `sign` by the client
library for Python, `token`, which becomes that of a login, and the version. All else is sent as it was generated."""

import os
import re
import sys
import time
from urllib.parse import urlsplit

import schemathesis
from requests.auth import AuthBase

sys.dont_write_bytecode = True
sys.path.insert(0, os.environ["CLIENT_LIBRARY"])
import signpost

TIME = re.compile(r"(?<![^&])time=[^&]*&?")
SIGN = re.compile(r"(?<![^&])sign=[^&]*&?")
TOKEN = re.compile(r"(?<![^&])token=[A-Za-z0-9._-]{1,32}\.[A-Za-z0-9_-]{43}(?![^&])")
# Marks what the library has signed.
MARK = "X-Signed"


class Signature(AuthBase):
    """Called last, with the request as it will be sent."""

    def __call__(self, request):
        target = urlsplit(request.url)
        query, form = login_token(target.query), ""
        if isinstance(request.body, str):
            request.body = form = login_token(request.body)
            request.headers["Content-Length"] = str(len(form.encode()))
        if TIME.search(query) and SIGN.search(query):
            request.headers[MARK] = "1"
            query = TIME.sub("", SIGN.sub("", query))
            query = f"{query}&time={time.time_ns() // 1_000_000}"
            query += f"&sign={signpost.signature(query, form, os.environ['APP_KEY'])}"
        # Without it, the default version would respond.
        request.headers.setdefault("Acme-X-Version", os.environ["VERSION"])
        request.url = target._replace(query=query).geturl()
        return request


def login_token(pairs):
    """The pairs of a query or form, with the token of a login."""
    return TOKEN.sub(f"token={os.environ['LOGIN_TOKEN']}", pairs)


@schemathesis.hook
def before_call(context, case, kwargs):
    kwargs["auth"] = Signature()


@schemathesis.check
def the_gateway_accepts_the_librarys_signature(ctx, response, case):
    assert not (MARK in response.request.headers and b'"sign_mismatch"' in response.content)
