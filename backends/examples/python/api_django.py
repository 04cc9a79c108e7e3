"""An API of JSON, files and events by Django, without a word of Signpost:  gunicorn api_django:app"""

import hashlib, json, queue, re, tempfile
from pathlib import Path

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import Http404, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path

folder, readers = tempfile.TemporaryDirectory(), set()


def orders(request, name):
    body = json.loads(request.body) if request.body else None
    return JsonResponse({"method": request.method, "path": request.path, "query": request.META["QUERY_STRING"], "body": body})


def files(request, name):
    file = Path(folder.name, name)
    if request.method == "PUT":
        digest = hashlib.sha256()
        with file.open("wb") as to:
            for piece in iter(lambda: request.read(64 * 1024), b""):
                digest.update(piece)
                to.write(piece)
        return JsonResponse({"sha256": digest.hexdigest()})
    if not file.is_file():
        raise Http404
    content, part = file.read_bytes(), re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
    response = HttpResponse(content, content_type="application/octet-stream")
    if part:  # Django itself serves no ranges
        first, last = int(part[1]), int(part[2])
        response.status_code, response.content = 206, content[first : last + 1]
        response["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
    response["ETag"] = f'"{hashlib.sha256(content).hexdigest()}"'
    return response


def events(request):
    if request.method == "POST":
        for reader in list(readers):
            reader.put(json.dumps(json.loads(request.body)))
        return HttpResponse(status=204)

    def lines():
        own = queue.Queue()
        readers.add(own)
        try:
            yield ": open\n\n"
            while True:
                try:
                    yield f"data: {own.get(timeout=1)}\n\n"
                except queue.Empty:
                    yield ":\n\n"  # otherwise this thread would not notice that its client has left
        finally:
            readers.discard(own)

    return StreamingHttpResponse(lines(), content_type="text/event-stream")


urlpatterns = [path("orders/<name>", orders), path("files/<name>", files), path("events", events)]
# The gateway has checked Host. The first one answers If-None-Match, the second one adds Content-Length.
middleware = ["django.middleware.http.ConditionalGetMiddleware", "django.middleware.common.CommonMiddleware"]
settings.configure(ROOT_URLCONF=__name__, MIDDLEWARE=middleware, ALLOWED_HOSTS=["*"])
app = get_wsgi_application()
