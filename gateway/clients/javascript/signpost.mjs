// Signpost's client for Node.js 18.17 or later, and browsers: signs a request by the gateway's rules, sends the very text that it signed, and logs users in.
// Copy this file into your project, and signpost.d.mts, which documents it. Nothing else is needed. CONTRACT is gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

const ALLOWED = {
  preset: ["plain", "decoded", "bilibili", "alipay", "wechat", "top"],
  values: ["wire", "decoded"],
  layout: ["pairs", "pairs-key", "concat", "concat-both"],
  empty: ["keep", "drop"],
  cover: ["parameters", "request"],
  algorithm: ["md5", "hmac-sha256"],
};
const DEFAULTS = { values: "wire", layout: "pairs", empty: "keep", leave_out: [], cover: "parameters", algorithm: "md5" };
const PRESETS = {
  plain: {},
  decoded: { values: "decoded" },
  bilibili: {},
  alipay: { values: "decoded", empty: "drop", leave_out: ["sign_type"] },
  wechat: { values: "decoded", empty: "drop", layout: "pairs-key" },
  top: { values: "decoded", empty: "drop", layout: "concat-both" },
};
const CONVENTION_HEADERS = { app: "App", version: "Version", language: "Language", authorization: "Authorization" };
// CONTRACT 7: nothing was forwarded, so any call can be repeated.
const NOT_EXECUTED = ["request_timeout", "request_replayed", "rate_limited", "no_healthy_backend", "version_brownout"];
// CONTRACT 7: the call may have been executed.
const PERHAPS_EXECUTED = ["internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping"];
// Node's codes of connections that were never made. A browser tells none.
const NOT_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];
// Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
const SECRET =
  /((?:^|&)(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|credential|passw(?:or)?d|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:&|$))))[^&]+/gi;
const MAX_RESPONSE_BYTES = 16 * 2 ** 20;
const MAX_PROBLEM_BYTES = 65_536;
const MAX_CORRECTION_MS = 24 * 3_600_000;
const CHECK_WAIT = 30;

const utf8 = new TextEncoder();

/** A response with a status of 400 or more. CONTRACT 7. */
export class Problem extends Error {
  constructor(response, signed) {
    const document = problemDocument(response);
    const text = (name) => (typeof document[name] === "string" ? document[name] : null);
    const code = text("code") ?? "";
    const said = [text("title"), text("hint") ?? text("detail")].filter(Boolean).join(" ");
    const requestId = text("request_id") ?? response.headers.get("X-Request-Id");
    const lines = [`${response.status}${code && ` ${code}`}${said && `: ${said}`}${requestId ? ` (request ${requestId})` : ""}`];
    const canonical = text("canonical");
    if (canonical !== null) lines.push(`the gateway signed: ${canonical}`, `this client signed: ${signed}`);
    super(lines.map(printable).join("\n"));
    this.name = "Problem";
    this.status = response.status;
    this.code = code;
    this.title = text("title");
    this.detail = text("detail");
    this.hint = text("hint");
    this.canonical = canonical;
    this.requestId = requestId;
    const retryAfter = response.headers.get("Retry-After") ?? "";
    this.retryAfter = /^[0-9]{1,10}$/.test(retryAfter) ? Number(retryAfter) : null;
    const serverTime = document.server_time;
    this.serverTime = Number.isSafeInteger(serverTime) && serverTime >= 0 ? serverTime : null;
  }
}

/** There is no usable response. `sent` is false if the request was surely not sent. */
export class TransportError extends Error {
  constructor(message, sent = true) {
    super(printable(message));
    this.name = "TransportError";
    this.sent = sent;
  }
}

/** A response. Its body is not shown by console.log: it can have a credential. */
class ClientResponse {
  #bytes;

  constructor(status, headers, bytes) {
    this.status = status;
    this.headers = headers;
    this.#bytes = bytes;
  }

  get bytes() {
    return this.#bytes;
  }

  get body() {
    return new TextDecoder().decode(this.#bytes);
  }

  json() {
    try {
      return JSON.parse(this.body);
    } catch {
      // The engine's message quotes the body.
      throw new SyntaxError("the response is not JSON");
    }
  }
}

export function encode(text) {
  const encoded = encodeURIComponent(checkedText(text, "a name or a value"));
  return encoded.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

export function canonical(query, form, profile, method, path) {
  return canonicalText(query, form, "<APP_KEY>", rulesOf(profile), method, path);
}

export async function signature(query, form, key, profile, method, path) {
  const rules = rulesOf(profile);
  const bytes = utf8.encode(canonicalText(query, form, checkedKey(key), rules, method, path));
  const hash = rules.algorithm === "md5" ? md5(bytes) : await hmacSha256(utf8.encode(key), bytes);
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export async function sign(pairs, key, profile, method, path, time = Date.now()) {
  const list = checkedPairs(pairs);
  if (!list.some(([name]) => name === "time")) {
    if (!/^[0-9]+$/.test(time)) throw new TypeError("time must be whole milliseconds since 1970");
    list.push(["time", String(time)]);
  }
  const text = list.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  return `${text}&sign=${await signature("", text, key, profile, method, path)}`;
}

export class Client {
  #origin;
  #key;
  #profile;
  #names;
  #sourceName;
  #values = {};
  #timeout;
  #retries;
  #maxWait;
  #onWarning;
  #clock;
  #fetch;
  #clockOffset = 0;
  #lastNow = 0;
  #warned = new Set();

  constructor(settings) {
    const { url, key, app, prefix = "Acme", version, language, authorization, profile, headerNames, ...others } = settings;
    const { timeout = 65, retries = 3, maxWait = 30, onWarning = logWarning, clock = Date.now, fetch, ...unknown } = others;
    for (const name of Object.keys(unknown)) throw new TypeError(`there is no setting ${name}`);
    this.#origin = originOf(url);
    this.#key = checkedKey(key);
    this.#profile = rulesOf(profile);
    if (!/^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(prefix)) throw new TypeError("prefix must be a letter, then at most 31 letters, digits and -");
    this.#sourceName = `${prefix}-X-Version-Source`;
    this.#names = namesOf(prefix, headerNames);
    Object.entries({ app, version, language, authorization }).forEach(([header, value]) => this.#set(header, value));
    if (!Number.isInteger(retries) || retries < 0) throw new TypeError("retries must be a whole number from 0 on");
    if (!(maxWait >= 0)) throw new TypeError("maxWait must be seconds from 0 on");
    this.#timeout = checkedTimeout(timeout);
    this.#retries = retries;
    this.#maxWait = maxWait;
    this.#onWarning = onWarning ?? (() => {});
    this.#clock = clock;
    this.#fetch = fetch ?? ((address, init) => globalThis.fetch(address, init));
  }

  get authorization() {
    return this.#values.authorization;
  }

  set authorization(value) {
    this.#set("authorization", value);
  }

  async call(method, path, pairs = [], { repeatable = method === "GET", timeout = this.#timeout } = {}) {
    if (method !== "GET" && method !== "POST") throw new TypeError("method must be GET or POST");
    const target = checkedPath(path);
    const list = checkedPairs(pairs);
    checkedTimeout(timeout);
    let corrected = null;
    for (let repetition = 0; ; ) {
      const outcome = await this.#attempt(method, target, list, timeout, corrected);
      const isOutside = outcome.code === "time_out_of_window";
      if (isOutside && corrected === null) {
        corrected = this.#correction(outcome.serverTime);
        if (corrected !== null) continue;
      }
      // The corrected time was accepted.
      if (corrected !== null && !isOutside && !(outcome instanceof TransportError)) this.#clockOffset = corrected;
      if (outcome instanceof ClientResponse) return outcome;
      const pause = outcome.retryAfter ?? 0.5 * 2 ** repetition * (0.5 + Math.random());
      if (!mayRepeat(outcome, repeatable) || repetition >= this.#retries || pause > this.#maxWait) throw outcome;
      await sleep(pause);
      repetition++;
    }
  }

  async login(show, provider) {
    const begun = await this.#object("POST", "/login", provider == null ? [] : [["provider", provider]]);
    const token = member(begun, "token");
    const end = performance.now() + 1000 * secondsOf(begun.expires_in, 600, 3600);
    await show(member(begun, "authorize_url", /^https?:\/\//), member(begun, "user_code"));
    const checkPairs = [["token", token], ["wait", String(CHECK_WAIT)]];
    while (performance.now() < end) {
      const start = performance.now();
      const checked = await this.#object("POST", "/check", checkPairs, { repeatable: true, timeout: CHECK_WAIT + 10 });
      if (checked.status !== "pending") break;
      const left = (end - performance.now()) / 1000;
      if (performance.now() - start < 1000 * (CHECK_WAIT / 2)) await sleep(Math.min(secondsOf(begun.interval, 2, 60), left));
    }
    const result = await this.#object("POST", "/user/login", [["token", token]], { repeatable: true });
    this.authorization = member(result, "authorization", /^[ -~]+$/);
    return result;
  }

  async logout() {
    await this.call("POST", "/user/logout");
    this.authorization = undefined;
  }

  user() {
    return this.#object("GET", "/user");
  }

  sendEvent(event, data, idempotencyKey) {
    const pairs = [["event", event]];
    if (data != null) pairs.push(["data", data]);
    if (idempotencyKey != null) pairs.push(["idempotency_key", idempotencyKey]);
    return this.#object("POST", "/event/send", pairs, { repeatable: idempotencyKey != null });
  }

  #set(header, value) {
    // The value is not in the error: it can be a credential. Visible ASCII is what each header can have, and fetch can send.
    if (value != null && !(typeof value === "string" && /^[ -~]*$/.test(value))) {
      throw new TypeError(`${header} must be text of printable ASCII characters`);
    }
    this.#values[header] = value || undefined;
  }

  async #object(method, path, pairs, options) {
    const response = await this.call(method, path, pairs, options);
    let document = null;
    try {
      document = response.json();
    } catch {}
    if (!isObject(document)) throw new TransportError(`${method} ${path}: the response is no JSON object`);
    return document;
  }

  /** Resolves to the response, or to the Problem or TransportError in its place. */
  async #attempt(method, path, pairs, timeout, clockOffset) {
    const time = this.#nextNow() + (clockOffset ?? this.#clockOffset);
    const text = await sign(pairs, this.#key, this.#profile, method, path, time);
    const headers = { Accept: "application/json" };
    // In a page it would need the permission of CORS.
    if (globalThis.process?.versions?.node) headers["User-Agent"] = "signpost-javascript";
    for (const [header, value] of Object.entries(this.#values)) {
      if (value) headers[this.#names[header]] = value;
    }
    const init = { method, headers, redirect: "manual", signal: AbortSignal.timeout(Math.ceil(1000 * timeout)) };
    let address = `${this.#origin}${path}?${text}`;
    if (method === "POST") {
      address = this.#origin + path;
      headers["Content-Type"] = "application/x-www-form-urlencoded";
      init.body = text;
    }
    let response;
    try {
      const fetch = this.#fetch;
      const received = await fetch(address, init);
      response = new ClientResponse(received.status, received.headers, await bytesOf(received.body));
    } catch (error) {
      // The error itself is not passed on: Node's quotes a malformed response, those of other fetches the address with its query.
      const { code, message } = error?.cause ?? {};
      let reason = message || code || "no connection, or CORS forbids it";
      if (init.signal.aborted) reason = `no response within ${timeout} s`;
      if (error instanceof TransportError) reason = error.message;
      return new TransportError(`${method} ${path} at ${this.#origin}: ${reason}`, !NOT_CONNECTED.includes(code));
    }
    this.#warn(response.headers);
    return response.status < 400 ? response : new Problem(response, this.#signed(method, path, text));
  }

  /** The clock's time, but one that no other request of this client has: two equal requests with one time would have one signature. */
  #nextNow() {
    this.#lastNow = Math.max(Math.floor(this.#clock()), this.#lastNow + 1);
    return this.#lastNow;
  }

  /** What must be added to the clock's time, or null: who could have any time signed could keep requests for later. */
  #correction(serverTime) {
    if (serverTime === null) return null;
    const now = Math.floor(this.#clock());
    // The clock was set back. Calls in flight are only a little ahead.
    if (this.#lastNow > now + 1000) this.#lastNow = now;
    return Math.abs(serverTime - now) <= MAX_CORRECTION_MS ? serverTime - now : null;
  }

  /** What the client signed, as the gateway shows it: without key and secret values, at most 2 KiB. CONTRACT 7. */
  #signed(method, path, text) {
    const masked = text.replace(SECRET, "$1***").replaceAll(encode(this.#key), "***");
    return canonicalText("", masked, "<APP_KEY>", this.#profile, method, path).slice(0, 2048);
  }

  #warn(headers) {
    const [asked, served] = [this.#values.version?.trim(), headers.get(this.#names.version)];
    const isOther = headers.get(this.#sourceName) === "unknown" || (asked && served && asked.toLowerCase() !== served.toLowerCase());
    const found = [
      ["version_unknown", isOther ? served : null],
      ["deprecated", headers.get("Deprecation")],
      ["sunset", headers.get("Sunset")],
    ];
    for (const [name, value] of found) {
      if (value === null || this.#warned.has(name)) continue;
      this.#warned.add(name);
      this.#onWarning(name, value);
    }
  }
}

function originOf(url) {
  try {
    if (/^https?:\/\/[^\s/\\?#@]+\/?$/i.test(url)) return new URL(url).origin;
  } catch {}
  throw new TypeError("url must be http:// or https:// with a host and perhaps a port, and nothing else");
}

function namesOf(prefix, headerNames) {
  const names = Object.entries(CONVENTION_HEADERS).map(([header, name]) => [header, `${prefix}-X-${name}`]);
  for (const [header, name] of Object.entries(headerNames ?? {})) {
    if (!Object.hasOwn(CONVENTION_HEADERS, header)) throw new TypeError(`headerNames can have ${Object.keys(CONVENTION_HEADERS).join(", ")}, not ${header}`);
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) throw new TypeError(`headerNames: ${header} is no name of a header`);
    names.push([header, name]);
  }
  return Object.fromEntries(names);
}

/** The path as it is sent: fetch must have nothing to change in it, since it is signed. */
function checkedPath(path) {
  const isPath = typeof path === "string" && /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/.test(path);
  const isRewritten = isPath && path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
  if (!isPath || isRewritten) throw new TypeError("path must begin with /, be encoded, and have no query, and no segment . or ..");
  return path;
}

function checkedTimeout(timeout) {
  if (!(typeof timeout === "number" && timeout > 0 && timeout <= 4_000_000)) throw new TypeError("timeout must be seconds, more than 0");
  return timeout;
}

function checkedKey(key) {
  if (checkedText(key, "key") === "" || key.trim() !== key) throw new TypeError("key is empty, or has white space or a line break at an end");
  return key;
}

function checkedText(text, what) {
  if (typeof text !== "string") throw new TypeError(`${what} must be text, not ${text === null ? "null" : typeof text}`);
  if (/\p{Surrogate}/u.test(text)) throw new TypeError(`${what} has half of a surrogate pair`);
  return text;
}

function checkedPairs(pairs) {
  const isList = typeof pairs !== "string" && typeof pairs?.[Symbol.iterator] === "function";
  if (!isList) throw new TypeError("pairs must be a list of [name, value], a Map or URLSearchParams");
  return Array.from(pairs, (pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) throw new TypeError("each pair must be [name, value]");
    const [name, value] = pair;
    if (checkedText(name, "a name") === "sign") throw new TypeError("sign is added, and must not be among the pairs");
    return [name, checkedText(value, `the value of ${name}`)];
  });
}

function rulesOf(profile) {
  const members = Object.entries(profile ?? {}).filter(([, value]) => value !== undefined);
  for (const [name, value] of members) {
    if (name === "leave_out") {
      const isList = Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "" && one !== "time");
      if (!isList) throw new TypeError("profile: leave_out must be a list of names, without time");
    } else if (!Object.hasOwn(ALLOWED, name)) {
      throw new TypeError(`profile can have ${Object.keys(ALLOWED).join(", ")}, leave_out, not ${name}`);
    } else if (!ALLOWED[name].includes(value)) {
      throw new TypeError(`profile: ${name} must be one of ${ALLOWED[name].join(", ")}`);
    }
  }
  const given = Object.fromEntries(members);
  return { ...DEFAULTS, ...PRESETS[given.preset ?? "plain"], ...given };
}

/** The canonical string of pairs as sent. CONTRACT 3. */
function canonicalText(query, form, key, rules, method, path) {
  const isSigned = ({ name, value }) =>
    name !== "sign" && !rules.leave_out.includes(name) && !(rules.empty === "drop" && value === "");
  const sorted = [...parsed(query), ...parsed(form)].filter(isSigned).sort((one, other) => compareUtf8(one.name, other.name));
  const isConcat = rules.layout.startsWith("concat");
  const parts = sorted.map((pair) => {
    const [name, value] = rules.values === "wire" ? pair.wire : [pair.name, pair.value];
    return isConcat ? name + value : `${name}=${value}`;
  });
  if (rules.layout === "pairs-key") parts.push(`key=${key}`);
  // The key of HMAC is not in the string, but where the layout names it.
  const keyOfMd5 = rules.algorithm === "md5" ? key : "";
  const before = rules.layout === "concat-both" ? keyOfMd5 : "";
  const after = rules.layout === "pairs-key" ? "" : keyOfMd5;
  return head(rules, method, path) + before + parts.join(isConcat ? "" : "&") + after;
}

function head(rules, method, path) {
  if (rules.cover === "parameters") return "";
  if (!method || !path) throw new TypeError("cover request needs method and path");
  return `${method}\n${path}\n`;
}

function parsed(text) {
  const pairs = checkedText(text, "query and form").split("&").filter((pair) => pair !== "");
  return pairs.map((pair) => {
    const [name] = pair.split("=", 1);
    const value = pair.slice(name.length + 1);
    return { wire: [name, value], name: decoded(name), value: decoded(value) };
  });
}

function decoded(text) {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new TypeError("query or form has a broken escape, or one that is not UTF-8");
  }
}

/** Compares the bytes of the UTF-8: JavaScript's own order is that of UTF-16. */
function compareUtf8(one, other) {
  const [a, b] = [utf8.encode(one), utf8.encode(other)];
  const index = a.findIndex((byte, at) => byte !== b[at]);
  return index === -1 ? a.length - b.length : a[index] - (b[index] ?? -1);
}

async function hmacSha256(key, bytes) {
  // Node 18 has no global one.
  const { subtle } = globalThis.crypto ?? (await import(/* webpackIgnore: true */ "node:crypto").catch(() => ({}))).webcrypto ?? {};
  if (!subtle) throw new TypeError("hmac-sha256 needs WebCrypto: a page has it with https, and at localhost");
  const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, bytes));
}

const MD5_TURNS = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];
const MD5_SINES = Array.from({ length: 64 }, (_, step) => Math.floor(2 ** 32 * Math.abs(Math.sin(step + 1))));

/** RFC 1321. WebCrypto has no MD5. */
function md5(bytes) {
  const padded = new Uint8Array(64 * Math.ceil((bytes.length + 9) / 64));
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const words = new DataView(padded.buffer);
  words.setBigUint64(padded.length - 8, 8n * BigInt(bytes.length), true);
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476);
  for (let block = 0; block < padded.length; block += 64) {
    let [a, b, c, d] = state;
    for (let step = 0; step < 64; step++) {
      const round = step >> 4;
      const mixed = [(b & c) | (~b & d), (b & d) | (c & ~d), b ^ c ^ d, c ^ (b | ~d)][round];
      const index = [step, 5 * step + 1, 3 * step + 5, 7 * step][round] % 16;
      const sum = (a + mixed + MD5_SINES[step] + words.getUint32(block + 4 * index, true)) | 0;
      const turn = MD5_TURNS[round][step % 4];
      [a, d, c, b] = [d, c, b, (b + ((sum << turn) | (sum >>> (32 - turn)))) | 0];
    }
    [a, b, c, d].forEach((word, index) => (state[index] += word));
  }
  const hash = new DataView(new ArrayBuffer(16));
  state.forEach((word, index) => hash.setInt32(4 * index, word, true));
  return new Uint8Array(hash.buffer);
}

function mayRepeat(failure, repeatable) {
  if (failure instanceof TransportError) return repeatable || !failure.sent;
  return NOT_EXECUTED.includes(failure.code) || (repeatable && PERHAPS_EXECUTED.includes(failure.code));
}

/** The members of a problem document, or none. */
function problemDocument(response) {
  const isProblem = /^application\/problem\+json *(;|$)/i.test(response.headers.get("Content-Type") ?? "");
  if (!isProblem || response.bytes.length > MAX_PROBLEM_BYTES) return {};
  try {
    const document = response.json();
    return isObject(document) && typeof document.code === "string" ? document : {};
  } catch {
    return {};
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function member(document, name, pattern = /^/) {
  const value = document[name];
  const isText = typeof value === "string" && pattern.test(value) && !/\p{Surrogate}/u.test(value) && printable(value) === value;
  if (!isText) throw new TransportError(`malformed response: the login's ${name}`);
  return value;
}

/** A duration of the gateway: at least a second. */
function secondsOf(value, otherwise, most) {
  return typeof value === "number" ? Math.min(Math.max(value, 1), most) : otherwise;
}

/** With spaces for control and format characters and separators of lines: it can reach a terminal or a log. CONTRACT 7. */
function printable(text) {
  return text.replace(/(?![\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}

/** The whole body. A redirect in a browser has none. */
async function bytesOf(body) {
  const chunks = [];
  let left = MAX_RESPONSE_BYTES;
  const reader = body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    chunks.push(part.value);
    left -= part.value.length;
    if (left < 0) {
      reader.cancel().catch(() => {});
      throw new TransportError("the response has more than 16 MiB");
    }
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function logWarning(name, value) {
  console.warn(printable(`signpost: ${name}: ${value}${name === "version_unknown" ? " served, not the version asked for" : ""}`));
}

function sleep(seconds) {
  // A longer one would end at once.
  return new Promise((resolve) => setTimeout(resolve, Math.min(1000 * seconds, 2 ** 31 - 1)));
}
