// An API of JSON, files and events by Express, without a word of Signpost:  node api.mjs ADDRESS PORT

import { createHash } from "node:crypto";
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";

import express from "express";

const [address, port] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "api-"));
const readers = new Set();
const json = express.json({ type: ["application/json", "application/*+json"] });
const app = express();

app.all("/orders/:name", json, ({ method, path, originalUrl, body }, response) => {
  response.json({ method, path, query: originalUrl.split("?")[1] ?? "", body: body ?? null });
});

app.put("/files/:name", async (request, response) => {
  const hash = createHash("sha256");
  request.on("data", (piece) => hash.update(piece));
  await pipeline(request, createWriteStream(join(folder, basename(request.params.name))));
  response.json({ sha256: hash.digest("hex") });
});
app.use("/files", express.static(folder)); // GET and HEAD, with ETag and Range

app.get("/events", (request, response) => {
  response.type("text/event-stream").write(": open\n\n");
  readers.add(response);
  response.once("close", () => readers.delete(response));
});
app.post("/events", json, (request, response) => {
  for (const reader of readers) reader.write(`data: ${JSON.stringify(request.body)}\n\n`);
  response.sendStatus(204);
});

const limits = { maxHeaderSize: 128 * 1024, keepAliveTimeout: 120_000 }; // as in orders.mjs
const server = createServer(limits, app).listen(Number(port), address);
process.once("SIGTERM", () => server.close());
process.once("exit", () => rmSync(folder, { recursive: true }));
