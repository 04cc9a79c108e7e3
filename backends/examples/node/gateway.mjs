// Signpost's gateway before an Express application. Copy it: CONTRACT 9, backends/examples/README.md.
//
// GATEWAY_SECRET is the gateway_secret; GATEWAY_SECRET_NEXT, during a rotation, is valid, too. A request then has `account`,
// undefined without one, and `application`.

import { createHash, timingSafeEqual } from "node:crypto";

const hash = (text) => createHash("sha256").update(text).digest(); // of one length, as the comparison needs

export function gateway({ GATEWAY_SECRET, GATEWAY_SECRET_NEXT } = process.env) {
  if (!GATEWAY_SECRET) throw new Error("GATEWAY_SECRET is empty: it must be the gateway_secret, which the gateway sends");
  const secrets = [GATEWAY_SECRET, GATEWAY_SECRET_NEXT].filter(Boolean).map(hash);
  return (request, response, next) => {
    const header = (name) => request.get(`X-Gateway-${name}`);
    if (request.path === "/healthz" && header("Version") === undefined) return response.json({ status: "up" });
    const given = hash(header("Secret") ?? "");
    if (!secrets.map((secret) => timingSafeEqual(given, secret)).includes(true)) {
      response.set({ "X-Gateway-Refused": "secret", Connection: "close" });
      return problem(response, 403, "Forbidden", "gateway_required");
    }
    // Without an application it is a callback, which only a login service serves.
    if (header("App-Id") === undefined) return problem(response, 404, "Not Found", "not_found");
    request.application = { id: header("App-Id"), ident: header("App") };
    const [username, type] = ["Username", "Type"].map((name) => decodeURIComponent(header(`Account-${name}`) ?? ""));
    if (header("Account-Id") !== undefined) request.account = { id: header("Account-Id"), username, type };
    next();
  };
}

function problem(response, status, title, code) {
  response.set("X-Gateway-Problem", code).type("application/problem+json");
  response.status(status).send(JSON.stringify({ type: "about:blank", title, status, code }));
}
