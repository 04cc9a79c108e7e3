// The orders of the logged-in user, in memory, by Express:  node orders.mjs ADDRESS PORT

import { createServer } from "node:http";

import express from "express";

import { gateway } from "./gateway.mjs";

const [address, port] = process.argv.slice(2);
const orders = new Map();
const app = express();
// The client's address and scheme are those that the gateway forwards: who calls has its secret.
app.set("trust proxy", true);
app.use(gateway(), express.urlencoded());

app.all("/express/orders", (request, response) => {
  if (request.account === undefined) return response.sendStatus(401);
  const { id, username, name } = request.account;
  const own = orders.get(id) ?? [];
  if (request.method === "POST") {
    const item = request.body?.item;
    if (item === undefined) return response.sendStatus(400);
    orders.set(id, [...own, item].slice(-100));
  }
  const client = { address: request.ip, scheme: request.protocol };
  response.json({ username, name: name ?? null, application: request.application.id, client, orders: orders.get(id) ?? [] });
});

const limits = {
  maxHeaderSize: 128 * 1024, // Node's limit is 16 KiB. The gateway passes up to 32 KiB of the client, and adds its own.
  keepAliveTimeout: 120_000, // longer than the idle_seconds of the gateway's route, by default 90
};
const server = createServer(limits, app).listen(Number(port), address);
process.once("SIGTERM", () => server.close()); // requests in flight are finished
