// A backend without a framework: the orders of the logged-in user, in memory. CONTRACT 9.
//
//     node orders.mjs ADDRESS:PORT FILE_OF_THE_GATEWAY_SECRET
//
// Its route at the gateway has account = "required", so each request has an account that the gateway has checked.

import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { STATUS_CODES, createServer } from "node:http";

const [listen, secretFile] = process.argv.slice(2);
const hash = (text) => createHash("sha256").update(text).digest(); // of one length, as the comparison needs
const secret = readFileSync(secretFile, "utf8").trim();
if (secret === "") throw new Error(`${secretFile} is empty: it must have the gateway_secret, which the gateway sends`);
const drainSeconds = Number(process.env.DRAIN_SECONDS ?? 7);
const orders = new Map();
let stopping = false;

const limits = {
  maxHeaderSize: 128 * 1024, // Node's limit is 16 KiB. The gateway passes up to 32 KiB of the client, and adds its own.
  keepAliveTimeout: 120_000, // longer than the gateway keeps idle connections, which is 90 s
};

const server = createServer(limits, async (request, response) => {
  const path = request.url.split("?")[0];
  if (path === "/healthz" && !("x-gateway-version" in request.headers)) {
    return answer(response, stopping ? 503 : 200, { status: stopping ? "stopping" : "up" });
  }
  const given = request.headers["x-gateway-secret"];
  if (given === undefined || !timingSafeEqual(hash(given), hash(secret))) {
    const headers = { "X-Gateway-Refused": "secret", Connection: "close" };
    return problem(request, response, 403, "gateway_required", headers);
  }
  const form = new URLSearchParams(await read(request));
  const account = request.headers["x-gateway-account-id"];
  if (path !== "/orders") return problem(request, response, 404, "not_found");
  if (account === undefined) return problem(request, response, 401, "authorization_missing");
  const own = orders.get(account) ?? [];
  if (request.method === "POST") {
    if (!form.has("item")) return problem(request, response, 400, "param_missing");
    orders.set(account, own);
    own.push(form.get("item"));
    if (own.length > 100) own.shift();
  }
  const username = decodeURIComponent(request.headers["x-gateway-account-username"]);
  answer(response, 200, { username, orders: own });
});

async function read(request) {
  const pieces = [];
  try {
    for await (const piece of request) pieces.push(piece);
  } catch {
    // The gateway has left; nobody reads the answer.
  }
  return Buffer.concat(pieces).toString();
}

function problem(request, response, status, code, headers) {
  const members = { type: "about:blank", title: STATUS_CODES[status], status, code };
  members.request_id = request.headers["x-request-id"] ?? "";
  answer(response, status, members, { "Content-Type": "application/problem+json", "X-Gateway-Problem": code, ...headers });
}

function answer(response, status, members, headers) {
  const body = JSON.stringify(members);
  const close = stopping ? { Connection: "close" } : {};
  const length = { "Content-Length": Buffer.byteLength(body) };
  response.writeHead(status, { "Content-Type": "application/json", ...length, ...headers, ...close }).end(body);
}

const colon = listen.lastIndexOf(":");
server.listen(Number(listen.slice(colon + 1)), listen.slice(0, colon));
process.once("SIGTERM", () => {
  stopping = true; // health checks fail from now on: the gateway chooses other addresses, then the listener closes
  setTimeout(() => server.close(), drainSeconds * 1000); // idle connections too; requests in flight are finished
});
