"""Makes what schemathesis sends right, as far as it has the form that the description allows: `time` and `sign` by the client
library for Python, and `token`, which becomes that of a login. All else is sent as it was generated."""

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

TIME = re.compile(r"(?<![^&])time=[0-9]{11,18}(?![^&])")
SIGN = re.compile(r"&?(?<![^&])sign=([0-9A-Fa-f]{32}|[0-9A-Fa-f]{64})(?![^&])")
TOKEN = re.compile(r"(?<![^&])token=[A-Za-z0-9._-]{1,32}\.[A-Za-z0-9_-]{43}(?![^&])")
# Marks what the library has signed.
MARK = "X-Signed"


class Signature(AuthBase):
    """Called last, with the request as it will be sent."""

    def __call__(self, request):
        if request.method == "GET":
            target = urlsplit(request.url)
            request.url = target._replace(query=self.signed(target.query, request)).geturl()
        elif isinstance(request.body, str):
            request.body = self.signed(request.body, request)
        return request

    def signed(self, pairs, request):
        """The pairs of a query or form."""
        pairs = TOKEN.sub(f"token={os.environ['LOGIN_TOKEN']}", pairs)
        if not (TIME.search(pairs) and SIGN.search(pairs)):
            return pairs
        request.headers[MARK] = "1"
        pairs = TIME.sub(f"time={time.time_ns() // 1_000_000}", SIGN.sub("", pairs)).lstrip("&")
        return f"{pairs}&sign={signpost.signature(pairs, '', os.environ['APP_KEY'])}"


@schemathesis.hook
def before_call(context, case, kwargs):
    kwargs["auth"] = Signature()


@schemathesis.check
def the_gateway_accepts_the_librarys_signature(ctx, response, case):
    assert not (MARK in response.request.headers and b'"sign_mismatch"' in response.content)
