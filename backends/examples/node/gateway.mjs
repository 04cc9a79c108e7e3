// Signpost's gateway before an Express application. Copy it: CONTRACT 9, backends/examples/README.md.
//
// GATEWAY_SECRETS is a file with the gateway_secret; during a rotation it has two, one a line. A change counts at once. A
// request then has `account`, undefined without one, and `application`.

import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync, statSync } from "node:fs";

const hash = (text) => createHash("sha256").update(text).digest(); // of one length, as the comparison needs

// The valid ones. While the file cannot be read or is empty, those that it had.
function secretsOf(file) {
  let [seen, secrets] = ["", []];
  return () => {
    try {
      const { mtimeNs, size, ino } = statSync(file, { bigint: true });
      const found = [mtimeNs, size, ino].join();
      if (found === seen) return secrets;
      const lines = readFileSync(file, "utf8").split("\n").map((line) => line.trim());
      if (lines.some(Boolean)) secrets = lines.filter(Boolean).map(hash);
      seen = found;
    } catch {}
    return secrets;
  };
}

export function gateway(file = process.env.GATEWAY_SECRETS) {
  const secrets = secretsOf(file);
  if (!secrets().length) throw new Error("GATEWAY_SECRETS must name a file with the gateway_secret, which the gateway sends");
  return (request, response, next) => {
    const header = (name) => request.get(`X-Gateway-${name}`);
    if (request.path === "/healthz" && header("Version") === undefined) return response.json({ status: "up" });
    const given = hash(header("Secret") ?? "");
    if (!secrets().map((secret) => timingSafeEqual(given, secret)).includes(true)) {
      response.set({ "X-Gateway-Refused": "secret", Connection: "close" });
      return problem(response, 403, "Forbidden", "gateway_required");
    }
    // Without an application it is a callback, which only a login service serves.
    if (header("App-Id") === undefined) return problem(response, 404, "Not Found", "not_found");
    request.application = { id: header("App-Id"), ident: header("App") };
    const text = (name) => header(`Account-${name}`) && decodeURIComponent(header(`Account-${name}`));
    const [username, type, name, email] = ["Username", "Type", "Name", "Email"].map(text);
    if (header("Account-Id") !== undefined) request.account = { id: header("Account-Id"), username, type, name, email };
    next();
  };
}

function problem(response, status, title, code) {
  response.set("X-Gateway-Problem", code).type("application/problem+json");
  response.status(status).send(JSON.stringify({ type: `/problems/${code}`, title, status, code }));
}
