"""The orders of the logged-in user, in memory, by Django:  gunicorn orders_django:app"""

from collections import defaultdict, deque

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

import gateway

orders = defaultdict(lambda: deque(maxlen=100))


def identify(get_response):
    def middleware(request):
        request.account, request.application = request.META["signpost.account"], request.META["signpost.application"]
        return get_response(request)

    return middleware


@csrf_exempt  # a signed call has no cookie and no form of a page
def own_orders(request):
    if request.account is None:
        return HttpResponse(status=401)
    own = orders[request.account.id]
    if request.method == "POST":
        if "item" not in request.POST:
            return HttpResponse(status=400)
        own.append(request.POST["item"])
    account, application = request.account, request.application
    client = {"address": request.META["REMOTE_ADDR"], "scheme": request.scheme}
    return JsonResponse(
        {"username": account.username, "name": account.name, "application": application.id, "client": client, "orders": list(own)}
    )


urlpatterns = [path("django/orders", own_orders)]
# The gateway has checked Host.
middleware = ["django.middleware.csrf.CsrfViewMiddleware", f"{__name__}.identify"]
settings.configure(ROOT_URLCONF=__name__, MIDDLEWARE=middleware, ALLOWED_HOSTS=["*"])
app = gateway.Wsgi(get_wsgi_application())
