"""Reports what uvicorn has read of each request:  uvicorn reader:app"""

import hashlib

total = 0


async def app(scope, receive, send):
    global total
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    if target == b"/total":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": str(total).encode()})
    total += 1
    digest, length, more = hashlib.sha256(), 0, True
    while more:
        message = await receive()
        piece, more = message.get("body", b""), message.get("more_body", False)
        digest.update(piece)
        length += len(piece)
    read = f"{scope['method']} {target.decode()} {length} {digest.hexdigest()} {scope['path'].encode().hex()}"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-read", read.encode())]})
    await send({"type": "http.response.body", "body": b""})
