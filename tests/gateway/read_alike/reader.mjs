// Reports what Node has read of each request:  node reader.mjs ADDRESS PORT

import { createHash } from "node:crypto";
import { createServer } from "node:http";

const [address, port] = process.argv.slice(2);
let total = 0;

async function read(request, response) {
  if (request.url === "/total") return response.end(String(total));
  total += 1;
  const hash = createHash("sha256");
  let length = 0;
  for await (const piece of request) {
    hash.update(piece);
    length += piece.length;
  }
  response.setHeader("X-Read", [request.method, request.url, length, hash.digest("hex"), "-"].join(" ")).end();
}

createServer({ maxHeaderSize: 128 * 1024, keepAliveTimeout: 120_000 }, read).listen(Number(port), address);
