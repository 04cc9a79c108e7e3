// A converter: v1's clients of a shop's orders are served by v2. conf/guides/bridges.md describes the documents.
//
// node converter.mjs ADDRESS PORT

import { createServer } from "node:http";

// v2's own response, in the name of the request's client.
async function ask({ addresses, headers }, target) {
  const answer = await fetch(addresses[0] + target, { headers });
  if (!answer.ok) throw new Error(`v2: ${answer.status}`);
  return answer.json();
}

const pageOf = ({ query }) => Math.min(Number(new URLSearchParams(query).get("page") ?? 1), 100);

// v2's order as v1 shows it: one name, a date, a decimal, joined tags.
const old = ({ id, customer, created, cents, tags }) => ({
  id: Number(id),
  customer: `${customer.first} ${customer.last}`,
  date: created.split("-").reverse().join("."),
  total: (cents / 100).toFixed(2),
  tags: tags.join(","),
});

async function request(document) {
  const { method, path, backend } = document;
  if (method === "GET" && path === "/orders") {
    let after = ""; // v2 only knows what follows a page
    for (let page = pageOf(document); page > 1; page--) {
      after = (await ask(backend, `/orders?${new URLSearchParams({ after })}`)).next;
    }
    document.query = String(new URLSearchParams({ after }));
  } else if (method === "POST") {
    const { customer, date, total, tags } = document.body;
    const [first, ...last] = customer.split(" ");
    const created = date.split(".").reverse().join("-");
    const cents = Math.round(Number(total) * 100);
    document.body = { customer: { first, last: last.join(" ") }, created, cents, tags: tags.split(",") };
  }
  return document;
}

async function response(document) {
  const { request: sent, body } = document;
  if (document.status >= 400) {
    document.headers["content-type"] = "application/json";
    document.body = { error: body.detail };
  } else if (body.data) {
    document.body = { orders: body.data.map(old), page: pageOf(sent) };
  } else if (sent.method === "GET") {
    const { data } = await ask(sent.backend, `${sent.path}/items`); // v2 has the items elsewhere
    document.body = { ...old(body), items: data };
  } else {
    document.body = old(body);
  }
  return document;
}

const [address, port] = process.argv.slice(2);
createServer({ keepAliveTimeout: 120_000 }, async (incoming, outgoing) => { // as in orders.mjs
  try {
    const document = JSON.parse(Buffer.concat(await incoming.toArray()));
    const changed = await { "/request": request, "/response": response }[incoming.url](document);
    outgoing.end(JSON.stringify(changed));
  } catch {
    outgoing.writeHead(500).end(); // the client gets 502 bridge_failed
  }
}).listen(port, address);
