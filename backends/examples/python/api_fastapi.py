"""An API of JSON, files and events by FastAPI, without a word of Signpost:  uvicorn --timeout-keep-alive 120 api_fastapi:app"""

import asyncio, hashlib, json, tempfile
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from fastapi.staticfiles import StaticFiles

app, folder, readers = FastAPI(), tempfile.TemporaryDirectory(), set()


@app.api_route("/orders/{name}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
async def orders(request: Request):
    body = await request.json() if await request.body() else None
    return {"method": request.method, "path": request.url.path, "query": request.url.query, "body": body}


@app.put("/files/{name}")
async def upload(name: str, request: Request):
    digest = hashlib.sha256()
    with open(Path(folder.name, name), "wb") as file:
        async for piece in request.stream():
            digest.update(piece)
            file.write(piece)
    return {"sha256": digest.hexdigest()}


app.mount("/files", StaticFiles(directory=folder.name))  # GET and HEAD, with ETag and Range


@app.get("/events")
async def events():
    async def lines():
        queue = asyncio.Queue()
        readers.add(queue)
        try:
            yield ": open\n\n"
            while True:
                yield f"data: {await queue.get()}\n\n"
        finally:
            readers.discard(queue)

    return StreamingResponse(lines(), media_type="text/event-stream")


@app.post("/events", status_code=204)
async def publish(request: Request):
    event = json.dumps(await request.json())
    for queue in readers:
        queue.put_nowait(event)
