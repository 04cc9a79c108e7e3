// Runs the client for the tests: obeys a command of JSON in each line.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

import { createHash } from "node:crypto";
import { createInterface } from "node:readline";
import { canonical, Client, headSignature, headText, Problem, sign, signature, TransportError } from "./signpost.mjs";

class Cancelled extends Error {}

await drive();

function print(document) {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

async function signed({ query, body, app_key: key, profile: { head, ...members } }) {
  const [method, path] = head?.split("\n") ?? [];
  const rules = head === undefined ? members : { ...members, cover: "request" };
  return { canonical: canonical(query, body, rules, method, path), sign: await signature(query, body, key, rules, method, path) };
}

async function headSigned({ app_key: key, algorithm, ...head }) {
  return { text: await headText(head, algorithm), sign: await headSignature(head, key, algorithm) };
}

async function drive() {
  let client;
  let warnings = [];

  function newClient({ credential = null, clock_offset_ms = 0, warnings: kind = "collected", ...settings }) {
    client = new Client({
      ...camelCased(settings),
      onWarning: { collected: (name, value) => warnings.push([name, value]), off: null }[kind],
      clock: () => Date.now() + clock_offset_ms,
    }).withCredential(credential);
    return { ok: true };
  }

  function answer({ status, body, headers }) {
    return { status, body, headers: Object.fromEntries(headers) };
  }

  async function call({ method, path, pairs, ...options }) {
    return answer(await client.call(method, path, pairs, optionsOf(options)));
  }

  async function mixed({ credentials, threads, calls, path }) {
    let [left, wrong] = [calls, 0];
    async function worker() {
      while (left > 0) {
        const credential = credentials[left-- % credentials.length];
        const { body } = await client.withCredential(credential).call("GET", path);
        if (!body.includes(credential)) wrong++;
      }
    }
    await Promise.all(Array.from({ length: threads }, worker));
    return { mixed: wrong, calls };
  }

  async function download({ path, limit }) {
    const response = await client.stream("GET", path, { limit });
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const part of response) {
      hash.update(part);
      bytes += part.length;
    }
    return { status: response.status, bytes, sha256: hash.digest("hex") };
  }

  async function eventsStream({ path }) {
    const events = [];
    for await (const event of (await client.stream("GET", path)).events()) events.push(event);
    return { events };
  }

  async function login(members) {
    const login = await client.login((open, user_code) => print({ open, user_code }), optionsOf(members));
    client = client.withCredential(login.authorization);
    return { login };
  }

  async function loginUrl({ return_to, provider }) {
    const { url, codeVerifier } = await client.loginUrl(return_to, { provider });
    return { url, code_verifier: codeVerifier };
  }

  async function exchange({ ticket, code_verifier }) {
    const login = await client.exchange(ticket, code_verifier);
    client = client.withCredential(login.authorization);
    return { login };
  }

  async function renew() {
    const login = await client.renew();
    client = client.withCredential(login.authorization);
    return { login };
  }

  async function logout() {
    await client.logout();
    client = client.withCredential(null);
    return { ok: true };
  }

  const commands = {
    sign: signed,
    text: async ({ pairs, time, app_key: key, profile, method, path }) => ({ text: await sign(pairs, key, profile, method, path, time) }),
    head: headSigned,
    new: newClient,
    call,
    mixed,
    upload: ({ method, path, ...options }) => call({ method, path, ...options }),
    download,
    events_stream: eventsStream,
    login,
    login_url: loginUrl,
    exchange,
    renew,
    logout,
    user: async () => ({ user: await client.user() }),
    send_event: async ({ event, data, ...options }) => ({ event: await client.sendEvent(event, data, optionsOf(options)) }),
    events: async ({ limit, before }) => client.events({ limit, before, version: "v2" }),
  };

  for await (const line of createInterface({ input: process.stdin })) {
    const [[name, members]] = Object.entries(JSON.parse(line));
    const answer = await Promise.resolve(members).then(commands[name]).catch(failed);
    print({ ...answer, warnings });
    warnings = [];
  }
}

function camelCased(members) {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [name.replace(/_(.)/g, (_, letter) => letter.toUpperCase()), value]));
}

function optionsOf({ cancel_after_ms, ...members }) {
  const options = camelCased(members);
  if (cancel_after_ms !== undefined) {
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Cancelled()), cancel_after_ms);
    options.signal = controller.signal;
  }
  return options;
}

function failed(error) {
  if (error instanceof Problem) {
    const { status, code, title, hint, canonical, requestId, message, body, headers } = error;
    return { problem: { status, code, title, hint, canonical, request_id: requestId, message, body, headers: Object.fromEntries(headers) } };
  }
  if (error instanceof Cancelled) return { cancelled: true };
  if (error instanceof TransportError) return { transport: error.message };
  if (error instanceof TypeError) return { argument: error.message };
  throw error;
}
