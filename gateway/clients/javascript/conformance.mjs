// Runs the client for the tests, with JSON lines as output: `sign FILE` and `text FILE` sign the cases of a file, `drive` obeys commands
// from standard input.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { canonical, Client, Problem, sign, signature, TransportError } from "./signpost.mjs";

const [mode, file] = process.argv.slice(2);
const modes = { sign: signCases, text: textCases, drive };
if (!Object.hasOwn(modes, mode) || (mode !== "drive" && !file)) {
  console.error("usage: run-vectors sign FILE | text FILE | drive");
  process.exit(2);
}
await modes[mode]();

function print(document) {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

function cases() {
  return JSON.parse(readFileSync(file, "utf8")).cases;
}

async function signCases() {
  for (const { query, body, app_key: key, profile } of cases()) {
    const { head, ...members } = profile;
    const [method, path] = head?.split("\n") ?? [];
    const rules = head === undefined ? members : { ...members, cover: "request" };
    print({
      canonical: canonical(query, body, rules, method, path),
      sign: await signature(query, body, key, rules, method, path),
    });
  }
}

async function textCases() {
  for (const { pairs, time, app_key: key, profile, method, path } of cases()) {
    print({ text: await sign(pairs, key, profile, method, path, time) });
  }
}

async function drive() {
  let client;
  let warnings = [];

  function newClient({ header_names, max_wait, clock_offset_ms = 0, warnings: kind = "collected", ...settings }) {
    client = new Client({
      ...settings,
      headerNames: header_names,
      maxWait: max_wait,
      onWarning: { collected: (name, value) => warnings.push([name, value]), off: null }[kind],
      clock: () => Date.now() + clock_offset_ms,
    });
    return { ok: true };
  }

  async function call({ method, path, pairs, repeatable }) {
    const { status, body } = await client.call(method, path, pairs, { repeatable });
    return { status, body };
  }

  const commands = {
    new: newClient,
    call,
    login: async ({ provider }) => ({ login: await client.login((open, user_code) => print({ open, user_code }), provider) }),
    user: async () => ({ user: await client.user() }),
    send_event: async ({ event, data, idempotency_key }) => ({ event: await client.sendEvent(event, data, idempotency_key) }),
    logout: async () => (await client.logout(), { ok: true }),
  };

  for await (const line of createInterface({ input: process.stdin })) {
    const [[name, members]] = Object.entries(JSON.parse(line));
    const answer = await Promise.resolve(members).then(commands[name]).catch(failed);
    print({ ...answer, warnings });
    warnings = [];
  }
}

function failed(error) {
  if (error instanceof Problem) {
    const { status, code, title, hint, canonical, requestId, message } = error;
    return { problem: { status, code, title, hint, canonical, request_id: requestId, message } };
  }
  if (error instanceof TransportError) return { transport: error.message };
  if (error instanceof TypeError) return { argument: error.message };
  throw error;
}
