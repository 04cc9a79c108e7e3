// Signpost's client for Node.js 18.17 or later, and browsers: signs a request by the gateway's rules, sends the very text that it
// signed, and logs users in. In Node it needs node.mjs beside it, in a browser nothing else. signpost.d.mts describes what it exports.
// CONTRACT is gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

/** @import * as declared from "./signpost.d.mts" */
/** @typedef {declared.Client} Declared */

const VERSION = "0.9.0";
const ALLOWED = {
  preset: ["plain", "decoded", "bilibili", "alipay", "wechat", "top"],
  values: ["wire", "decoded"],
  layout: ["pairs", "pairs-key", "concat", "concat-both"],
  empty: ["keep", "drop"],
  cover: ["parameters", "request"],
  algorithm: ["md5", "hmac-sha256"],
  carrier: ["parameters", "headers", "both"],
};
const DEFAULTS = { values: "wire", layout: "pairs", empty: "keep", leave_out: [], cover: "parameters", carrier: "parameters" };
const PRESETS = {
  plain: {},
  decoded: { values: "decoded" },
  bilibili: {},
  alipay: { values: "decoded", empty: "drop", leave_out: ["sign_type"] },
  wechat: { values: "decoded", empty: "drop", layout: "pairs-key" },
  top: { values: "decoded", empty: "drop", layout: "concat-both" },
};
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const CONVENTION_HEADERS = { app: "App", version: "Version", language: "Language", authorization: "Authorization" };
const OWN_HEADERS = ["host", "content-type", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "expect", "te", "trailer"];
// CONTRACT 7: nothing was forwarded, so any call can be repeated.
const NOT_EXECUTED = ["request_timeout", "request_replayed", "rate_limited", "spool_full", "no_healthy_backend", "version_brownout"];
// CONTRACT 7: the call may have been executed.
const PERHAPS_EXECUTED = ["internal", "backend_unreachable", "store_unavailable", "backend_timeout", "gateway_stopping"];
const NOT_CONNECTED = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];
// Values of logins, and what else is secret: the gateway masks them in the text that it signed, too. CONTRACT 7.
const SECRET =
  /((?:^|&)(?:(?:(?:(?:access|refresh|id)_)?token|ticket|code(?:_verifier)?|state|confirm|authorization|credential|passw(?:or)?d|(?:client_)?secret|api_key)=|[^&=]*=(?=(?:Bearer%20)?[\w-]{43}(?:&|$))))[^&]+/gi;
const MAX_RESPONSE_BYTES = 16 * 2 ** 20;
const MAX_PROBLEM_BYTES = 65_536;
const MAX_CORRECTION_MS = 24 * 3_600_000;
const MAX_TIMER_MS = 2 ** 31 - 1;
const CHECK_WAIT = 30;

const utf8 = new TextEncoder();
const isNode = Boolean(globalThis.process?.versions?.node);

export class Problem extends Error {
  #response;

  constructor(response, call, signed) {
    const document = problemDocument(response);
    const text = (name) => (typeof document[name] === "string" ? document[name] : null);
    const code = text("code") ?? "";
    const said = [text("title"), text("hint") ?? text("detail")].filter(Boolean).join(" ");
    const requestId = text("request_id") ?? response.headers.get("X-Request-Id");
    const lines = [`${response.status} ${code || `of ${call}`}${said && `: ${said}`}${requestId ? ` (request ${requestId})` : ""}`];
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
    this.retryAfter = retryAfterOf(response.headers);
    const time = document.server_time;
    const serverTime = Number.isSafeInteger(time) && time >= 0 ? time : null;
    this.serverTime = serverTime;
    this.#response = new ClientResponse(response.status, response.headers, response.bytes.slice(0, MAX_PROBLEM_BYTES));
  }

  get headers() {
    return this.#response.headers;
  }

  get body() {
    return this.#response.body;
  }

  json() {
    return this.#response.json();
  }
}

export class TransportError extends Error {
  constructor(message, sent = true) {
    super(printable(message));
    this.name = "TransportError";
    this.sent = sent;
  }
}

export class ClientResponse {
  /** @type {Uint8Array} */ #bytes;

  constructor(status, headers, bytes) {
    this.status = status;
    this.headers = headers;
    // Private: console.log does not show it, and it can have a credential.
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

export class StreamedResponse {
  #parts;

  constructor(status, headers, parts, cancel = () => {}) {
    this.status = status;
    this.headers = headers;
    this.cancel = cancel;
    this.#parts = parts;
  }

  [Symbol.asyncIterator]() {
    return this.#parts[Symbol.asyncIterator]();
  }

  async *events() {
    const decoder = new TextDecoder();
    let [rest, event, id, length] = ["", "", "", 0];
    let data = /** @type {string[]} */ ([]);
    for await (const part of endedBy(this, utf8.encode("\n"), () => rest.endsWith("\r"))) {
      rest += decoder.decode(part, { stream: true });
      // A CR at the end can be the first half of a line break.
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      if (rest.length + length > MAX_RESPONSE_BYTES) throw new TransportError("an event has more than 16 MiB");
      for (const line of lines) {
        const [, field, value] = /^([^:]*):? ?(.*)$/su.exec(line) ?? [];
        if (field === "data") {
          data.push(value);
          length += line.length;
        }
        if (field === "event") event = value;
        if (field === "id" && !value.includes("\0")) id = value;
        if (line !== "") continue;
        if (data.length > 0) yield { event: event || "message", data: data.join("\n"), id };
        [data, event, length] = [[], "", 0];
      }
    }
  }
}

/** @type {typeof declared.encode} */
export function encode(text) {
  const encoded = encodeURIComponent(checkedText(text, "a name or a value"));
  return encoded.replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** @type {typeof declared.canonical} */
export function canonical(query, form, profile, method, path) {
  return canonicalText(query, form, "<APP_KEY>", rulesOf(profile), method, path);
}

/** @type {typeof declared.signature} */
export async function signature(query, form, key, profile, method, path) {
  const rules = rulesOf(profile);
  return digest(canonicalText(query, form, checkedKey(key), rules, method, path), key, rules.algorithm);
}

/** @type {typeof declared.sign} */
export async function sign(pairs, key, profile, method, path, time = Date.now()) {
  const list = checkedPairs(pairs);
  if (list.some(([name]) => name === "sign")) throw new TypeError("sign is added, and must not be among the pairs");
  if (!list.some(([name]) => name === "time")) {
    if (!/^[0-9]+$/.test(String(time))) throw new TypeError("time must be whole milliseconds since 1970");
    list.push(["time", String(time)]);
  }
  const text = encodedPairs(list);
  return `${text}&sign=${await signature("", text, key, profile, method, path)}`;
}

/** @type {typeof declared.headText} */
export async function headText({ method, target, time, nonce = "", body = "" }, algorithm = "hmac-sha256") {
  return headLines([method, target, time, nonce, await sha256(bodyBytes(body))], "<APP_KEY>", algorithm);
}

/** @type {typeof declared.headSignature} */
export async function headSignature({ method, target, time, nonce = "", body = "" }, key, algorithm = "hmac-sha256") {
  const lines = [method, target, time, nonce, await sha256(bodyBytes(body))];
  return digest(headLines(lines, checkedKey(key), algorithm), key, algorithm);
}

export class Client {
  #shared;
  #store = constantStore(null);

  /** @param {declared.Settings} settings */
  constructor(settings) {
    this.#shared = settings instanceof Shared ? settings : new Shared(settings);
  }

  /** @type {Declared["withCredential"]} */
  withCredential(credential) {
    const copy = new Client(/** @type {any} */ (this.#shared));
    copy.#store = typeof credential === "object" && credential !== null ? credential : constantStore(credential);
    return copy;
  }

  /** @type {Declared["call"]} */
  async call(method, path, pairs, options) {
    return this.#run(await this.#prepare(method, path, pairs, options));
  }

  /** @type {Declared["stream"]} */
  async stream(method, path, pairs, options) {
    const [list, { limit = Infinity, ...others }] = splitArguments(pairs, options);
    if (!(limit >= 0)) throw new TypeError("limit must be a number of bytes");
    const prepared = await this.#prepare(method, path, list, others);
    return this.#run({ ...prepared, limit });
  }

  /** @type {Declared["login"]} */
  async login(show, { provider, prompt, loginHint, timeout = 7200, ...options } = {}) {
    const deadline = performance.now() + 1000 * checkedTimeout(timeout);
    const ask = (path, pairs, repeatable, most = this.#shared.timeout) => {
      const left = (deadline - performance.now()) / 1000;
      if (left <= 0) throw new TransportError(`the login was not completed within ${timeout} s`);
      return this.#object("POST", path, pairs, { credential: null, ...options, repeatable, timeout: Math.min(left, most) });
    };
    const begun = await ask("/login", presentPairs({ provider, prompt, login_hint: loginHint }), false);
    const token = member(begun, "token");
    const end = Math.min(deadline, performance.now() + 1000 * secondsOf(begun.expires_in, 600, 3600));
    await show(member(begun, "authorize_url", /^https?:\/\//), member(begun, "user_code"));
    while (performance.now() < end) {
      const start = performance.now();
      const checked = await ask("/check", [["token", token], ["wait", CHECK_WAIT]], true, CHECK_WAIT + 10);
      if (checked.status !== "pending") break;
      const left = (end - performance.now()) / 1000;
      if (performance.now() - start < 1000 * (CHECK_WAIT / 2)) await sleep(Math.min(secondsOf(begun.interval, 2, 60), left), options.signal);
    }
    return this.#loggedIn(await ask("/user/login", [["token", token]], true));
  }

  /** @type {Declared["loginUrl"]} */
  async loginUrl(returnTo, { provider, prompt, loginHint } = {}) {
    const { origin, key, rules, values } = this.#shared;
    if (rules.carrier === "headers") throw new TypeError('an address has no headers: the profile\'s carrier must be "parameters" or "both"');
    const codeVerifier = base64url((await webcrypto()).getRandomValues(new Uint8Array(32)));
    const hash = await (await subtle()).digest("SHA-256", utf8.encode(codeVerifier));
    const challenge = { code_challenge: base64url(new Uint8Array(hash)), code_challenge_method: "S256" };
    const pairs = presentPairs({ return_to: returnTo, app: values.app, provider, prompt, login_hint: loginHint, ...challenge });
    const query = await sign(pairs, key, rules, "GET", "/login", this.#nextNow() + this.#shared.clockOffset);
    return { url: `${origin}/login?${query}`, codeVerifier };
  }

  /** @type {Declared["exchange"]} */
  async exchange(ticket, codeVerifier, options) {
    const pairs = presentPairs({ ticket, code_verifier: codeVerifier });
    return this.#loggedIn(await this.#object("POST", "/user/login", pairs, { credential: null, ...options }));
  }

  /** @type {Declared["renew"]} */
  async renew(options) {
    return this.#loggedIn(await this.#object("POST", "/user/renew", [], { repeatable: true, ...options }));
  }

  /** @type {Declared["logout"]} */
  async logout(options) {
    await this.call("POST", "/user/logout", [], options);
    await this.#store.clear();
  }

  /** @type {Declared["user"]} */
  user(options) {
    return this.#object("GET", "/user", [], options);
  }

  /** @type {Declared["sendEvent"]} */
  sendEvent(event, data, { idempotencyKey, ...options } = {}) {
    const pairs = presentPairs({ event, data, idempotency_key: idempotencyKey });
    return this.#object("POST", "/event/send", pairs, { repeatable: idempotencyKey != null, ...options });
  }

  /** @type {Declared["events"]} */
  events({ limit, before, ...options } = {}) {
    return this.#object("GET", "/events", presentPairs({ limit, before }), options);
  }

  async #loggedIn(result) {
    await this.#store.save(member(result, "authorization", /^[ -~]+$/));
    return result;
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

  /** A call whose arguments are right. */
  async #prepare(method, path, pairs, options) {
    const shared = this.#shared;
    const [given, all] = splitArguments(pairs, options);
    const { json, body, file, contentType, headers = {}, credential, version, language, ...others } = all;
    const { timeout = shared.timeout, signal, idempotencyKey, repeatable, ...unknown } = others;
    for (const name of Object.keys(unknown)) throw new TypeError(`a call has no option ${name}`);
    if (!METHODS.includes(method)) throw new TypeError(`method must be one of ${METHODS.join(", ")}`);
    const end = performance.now() + 1000 * checkedTimeout(timeout);
    const call = { method, path: checkedPath(path), list: checkedPairs(given), signal, timeout, end };
    const bodies = [json !== undefined, body != null, file != null].filter(Boolean).length;
    const { carrier } = shared.rules;
    if (bodies > 1) throw new TypeError("json, body and file exclude each other");
    if (bodies && (method === "GET" || method === "HEAD")) throw new TypeError(`${method} has no body`);
    if (bodies && carrier === "parameters") throw new TypeError('a body is signed in headers: set carrier of the profile to "headers" or "both"');
    if (contentType != null && !bodies) throw new TypeError("contentType needs a body");
    const values = { ...shared.values, authorization: credential === undefined ? await this.#store.load() : credential };
    if (version !== undefined) values.version = version;
    if (language !== undefined) values.language = language;
    const sent = conventionHeaders(values, shared.names);
    const further = headers instanceof Headers ? Object.fromEntries(headers) : headers;
    for (const [name, value] of Object.entries(present({ "Idempotency-Key": idempotencyKey, ...further }))) addHeader(sent, name, value, shared.names);
    const type = contentType ?? (json === undefined ? "application/octet-stream" : "application/json");
    if (bodies) sent["Content-Type"] = checkedValue(type, "contentType");
    const signsPairs = !bodies && call.list.length > 0 && (method === "GET" || method === "POST");
    return {
      ...call,
      headers: sent,
      version: values.version,
      content: bodies ? await contentOf({ json, body, file }) : undefined,
      isQuery: bodies > 0 || ["GET", "HEAD", "DELETE"].includes(method),
      inHeaders: carrier === "headers" || (carrier === "both" && !signsPairs),
      repeatable: repeatable ?? (idempotencyKey != null || (method !== "POST" && method !== "PATCH")),
    };
  }

  async #run(call) {
    const shared = this.#shared;
    let corrected = null;
    for (let repetition = 0; ; ) {
      const outcome = /** @type {any} */ (await this.#attempt(call, corrected ?? shared.clockOffset));
      const isOutside = outcome.code === "time_out_of_window";
      if (isOutside && corrected === null) {
        corrected = this.#correction(outcome.serverTime);
        if (corrected !== null && performance.now() < call.end) continue;
      }
      // The corrected time was accepted.
      if (corrected !== null && !isOutside && !(outcome instanceof TransportError)) {
        shared.clockOffset = corrected;
        shared.warn("clock_off", `${Math.round(Math.abs(corrected) / 1000)} s ${corrected > 0 ? "behind" : "ahead"}`);
      }
      if (outcome.status < 400) return outcome;
      const pause = outcome.retryAfter ?? (outcome.isStale ? 0 : 0.5 * 2 ** repetition * (0.5 + Math.random()));
      const isTooLong = pause > shared.maxWait || performance.now() + 1000 * pause >= call.end;
      if (!mayRepeat(outcome, call.repeatable) || repetition >= shared.retries || isTooLong) throw outcome;
      await sleep(pause, call.signal);
      repetition++;
    }
  }

  /** Resolves to the response, or to the Problem or TransportError in its place. */
  async #attempt(call, clockOffset) {
    const shared = this.#shared;
    const { method, path, signal, limit } = call;
    const request = await this.#signed(call, String(this.#nextNow() + clockOffset));
    const send = await (shared.transport ??= transportOf(shared.origin, shared.settings));
    signal?.throwIfAborted();
    const watch = new Watch(signal);
    /** @type {RequestInit & { duplex?: "half" }} */
    const init = { method, headers: request.headers, redirect: "manual", signal: watch.signal };
    if (request.body !== undefined) init.body = request.body;
    if (call.content?.isFile) init.duplex = "half";
    const failed = (error) => {
      if (signal?.aborted) throw signal.reason;
      // The error itself is not passed on: Node's quotes a malformed response, those of other fetches the address with its query.
      const { code, message, isConnected = !NOT_CONNECTED.includes(code), isStale } = error?.cause ?? {};
      let reason = message || code || "no connection, or CORS forbids it";
      if (watch.signal.aborted) reason = `no response within ${Math.round(1000 * call.timeout) / 1000} s`;
      if (error instanceof TransportError) reason = error.message;
      const failure = new TransportError(`${method} ${path} at ${shared.origin}: ${reason}`, isConnected);
      return Object.defineProperty(failure, "isStale", { value: isStale });
    };
    let response;
    try {
      watch.start(call.end - performance.now());
      const { status, headers, body } = await send(shared.origin + request.target, init);
      const isStream = limit !== undefined && status < 400;
      if (isStream) watch.pause();
      response = isStream
        ? new StreamedResponse(status, headers, watchedParts(body, watch, call, failed), watch.cancel)
        : new ClientResponse(status, headers, await wholeBody(body));
      if (!isStream) watch.end();
    } catch (error) {
      watch.end();
      return failed(error);
    }
    this.#warn(call.version, response.headers);
    if (response.status < 400) return response;
    return new Problem(/** @type {ClientResponse} */ (response), `${method} ${path}`, request.shown().slice(0, 2048));
  }

  /** The request with its signature, and what was signed as the gateway shows it: without key and secret values. CONTRACT 7. */
  async #signed(call, time) {
    const { key, rules, names } = this.#shared;
    const { method, path, list, content, isQuery } = call;
    const mask = (text) => text.replace(SECRET, "$1***").replaceAll(encode(key), "***");
    const text = call.inHeaders ? encodedPairs(list) : await sign(list, key, rules, method, path, time);
    const target = isQuery && text ? `${path}?${text}` : path;
    const headers = { ...call.headers };
    if (!isQuery && text) headers["Content-Type"] = "application/x-www-form-urlencoded";
    const body = content?.data ?? (isQuery ? undefined : text);
    if (!call.inHeaders) return { target, headers, body, shown: () => canonicalText("", mask(text), "<APP_KEY>", rules, method, path) };
    const nonce = hex((await webcrypto()).getRandomValues(new Uint8Array(16)));
    const hash = content?.hash ?? (await sha256(utf8.encode(body ?? "")));
    const algorithm = rules.carrier === "headers" ? rules.algorithm : "hmac-sha256";
    const lines = (sent, last) => headLines([method, sent, time, nonce, hash], last, algorithm);
    const shown = () => lines(isQuery && text ? `${path}?${mask(text)}` : path, "<APP_KEY>");
    const signed = { [names.time]: time, [names.nonce]: nonce, [names.sign]: await digest(lines(target, key), key, algorithm) };
    return { target, headers: Object.assign(headers, signed), body, shown };
  }

  /** The clock's time, but one that no other request of this client has: two equal requests with one time would have one signature. */
  #nextNow() {
    const shared = this.#shared;
    shared.lastNow = Math.max(Math.floor(shared.clock()), shared.lastNow + 1);
    return shared.lastNow;
  }

  /** What must be added to the clock's time, or null: who could have any time signed could keep requests for later. */
  #correction(serverTime) {
    const shared = this.#shared;
    if (serverTime === null) return null;
    const now = Math.floor(shared.clock());
    // The clock was set back. Calls in flight are only a little ahead.
    if (shared.lastNow > now + 1000) shared.lastNow = now;
    return Math.abs(serverTime - now) <= MAX_CORRECTION_MS ? serverTime - now : null;
  }

  #warn(version, headers) {
    const { names, warn } = this.#shared;
    const [asked, served] = [version?.trim(), headers.get(names.version)];
    const isOther = headers.get(names.source) === "unknown" || (asked && served && asked.toLowerCase() !== served.toLowerCase());
    warn("version_unknown", isOther ? served : null);
    warn("deprecated", headers.get("Deprecation"));
    warn("sunset", headers.get("Sunset"));
  }
}

/** What all copies of a client share. */
class Shared {
  clockOffset = 0;
  lastNow = 0;
  /** @type {Promise<any> | undefined} */
  transport;

  /** @param {declared.Settings} settings */
  constructor(settings) {
    const { url, key, app, prefix = "Acme", version, language, profile, headerNames, ...others } = settings;
    const { timeout = 65, retries = 3, maxWait = 30, onWarning = logWarning, clock = Date.now, fetch, ...ofNode } = others;
    for (const name of Object.keys(ofNode)) {
      if (!["connectTimeout", "proxy", "caFile", "clientCertFile", "clientKeyFile"].includes(name)) throw new TypeError(`there is no setting ${name}`);
      if (ofNode[name] !== undefined && (fetch || !isNode)) throw new TypeError(`${name} is for Node's own connections: not for fetch`);
    }
    this.origin = originOf(url);
    this.key = checkedKey(key);
    this.rules = rulesOf(profile);
    if (!/^[A-Za-z][A-Za-z0-9-]{0,31}$/.test(prefix)) throw new TypeError("prefix must be a letter, then at most 31 letters, digits and -");
    this.names = namesOf(prefix, headerNames);
    this.values = { app, version, language, authorization: /** @type {string | null | undefined} */ (null) };
    conventionHeaders(this.values, this.names);
    if (!Number.isInteger(retries) || retries < 0) throw new TypeError("retries must be a whole number from 0 on");
    if (!(maxWait >= 0)) throw new TypeError("maxWait must be seconds from 0 on");
    this.timeout = checkedTimeout(timeout);
    checkedTimeout(ofNode.connectTimeout ?? 5);
    this.retries = retries;
    this.maxWait = maxWait;
    this.clock = clock;
    this.settings = { ...ofNode, fetch };
    const warned = new Set();
    this.warn = (name, value) => {
      if (value === null || warned.has(name)) return;
      warned.add(name);
      onWarning?.(name, value);
    };
  }
}

/** Aborts a request when its time is over, or its caller cancels it. */
class Watch {
  #controller = new AbortController();
  #caller;
  #timer;
  signal = this.#controller.signal;

  constructor(caller) {
    this.#caller = caller;
    caller?.addEventListener("abort", this.cancel);
  }

  cancel = () => {
    this.end();
    this.#controller.abort();
  };

  start(milliseconds) {
    this.#timer = setTimeout(this.cancel, Math.min(Math.max(milliseconds, 0), MAX_TIMER_MS));
  }

  pause() {
    clearTimeout(this.#timer);
  }

  end() {
    this.pause();
    this.#caller?.removeEventListener("abort", this.cancel);
  }
}

/** How requests are sent: by the caller's fetch, by Node's connections, or by the page's fetch. */
async function transportOf(origin, { fetch, ...ofNode }) {
  if (fetch) return fetch;
  return isNode ? (await nodeModule()).transport(origin, ofNode) : (address, init) => globalThis.fetch(address, init);
}

function nodeModule() {
  return import("./node.mjs").catch(() => {
    throw new TypeError("node.mjs is missing beside signpost.mjs");
  });
}

function constantStore(credential) {
  return /** @type {declared.CredentialStore} */ ({ load: () => credential, save() {}, clear() {} });
}

function splitArguments(pairs, options) {
  const isOptions = isObject(pairs) && typeof pairs[Symbol.iterator] !== "function" && options === undefined;
  return isOptions ? [[], pairs] : [pairs ?? [], options ?? {}];
}

function present(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value != null));
}

function presentPairs(members) {
  return /** @type {[string, declared.PairValue][]} */ (Object.entries(present(members)));
}

function conventionHeaders(values, names) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  // In a page it would need the permission of CORS.
  if (isNode) headers["User-Agent"] = `signpost-javascript/${VERSION}`;
  for (const [name, value] of Object.entries(values)) {
    if (value != null && value !== "") headers[names[name]] = checkedValue(value, name === "authorization" ? "credential" : name);
  }
  return headers;
}

/** Visible ASCII is what each header can have, and fetch can send. The value is not in the error: it can be a credential. */
function checkedValue(value, what) {
  if (!(typeof value === "string" && /^[ -~]*$/.test(value))) throw new TypeError(`${what} must be text of printable ASCII characters`);
  return value;
}

function addHeader(headers, name, value, names) {
  if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) throw new TypeError("headers: a name is no name of a header");
  const own = [...OWN_HEADERS, ...Object.values(names).map((own) => own.toLowerCase())];
  if (own.includes(name.toLowerCase())) throw new TypeError(`headers: the client itself sets ${name}`);
  // In the letter case of the client's own header, which it replaces.
  const same = Object.keys(headers).find((known) => known.toLowerCase() === name.toLowerCase()) ?? name;
  headers[same] = checkedValue(value, `header ${name}`);
}

/** The bytes of a body with their hash. */
async function contentOf({ json, body, file }) {
  if (file != null) {
    if (!isNode) throw new TypeError("file is for Node: pass a Blob as body");
    return (await nodeModule()).fileContent(file);
  }
  const data = bodyBytes(json === undefined ? body : JSON.stringify(json));
  return { data, hash: await sha256(data), isFile: false };
}

function bodyBytes(body) {
  if (typeof body === "string") return utf8.encode(checkedText(body, "body"));
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  if (body instanceof Uint8Array || body instanceof Blob) return body;
  throw new TypeError("the body must be JSON, text, Uint8Array, ArrayBuffer or Blob");
}

/** In lower-case hex. In Node a Blob, which can be a file, is not loaded as a whole. */
async function sha256(data) {
  if (isNode && data instanceof Blob) return (await nodeModule()).sha256(data.stream());
  const hash = await (await subtle()).digest("SHA-256", data instanceof Blob ? await data.arrayBuffer() : data);
  return hex(new Uint8Array(hash));
}

/** What a signature in headers signs. The key of HMAC is not in it. */
function headLines(lines, key, algorithm) {
  return (algorithm === "md5" ? [...lines, key] : lines).join("\n");
}

async function digest(text, key, algorithm) {
  const bytes = utf8.encode(text);
  return hex(algorithm === "md5" ? md5(bytes) : await hmacSha256(utf8.encode(key), bytes));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
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
  const own = ["Time", "Sign", "Nonce"].map((name) => [name.toLowerCase(), `${prefix}-X-${name}`]);
  return Object.fromEntries([...names, ...own, ["source", `${prefix}-X-Version-Source`]]);
}

/** The path as it is sent: fetch must have nothing to change in it, since it is signed. */
function checkedPath(path) {
  const isPath = typeof path === "string" && /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/.test(path);
  const isRewritten = isPath && path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
  if (!isPath || isRewritten) throw new TypeError("path must begin with /, be encoded, and have no query, and no segment . or ..");
  return path;
}

function checkedTimeout(timeout) {
  if (!(typeof timeout === "number" && timeout > 0)) throw new TypeError("timeout must be seconds, more than 0");
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
  return Array.from(pairs).flatMap((pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) throw new TypeError("each pair must be [name, value]");
    const [name, value] = pair;
    checkedText(name, "a name");
    return (Array.isArray(value) ? value : [value]).map((one) => [name, valueText(one, name)]);
  });
}

/** The text of a value, where it is clear. */
function valueText(value, name) {
  const isPlain = typeof value === "number" && (Number.isSafeInteger(value) || /^-?[0-9]+\.[0-9]+$/.test(String(value)));
  if (isPlain || typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (typeof value === "number") throw new TypeError(`the value of ${name} is a number without a plain decimal text`);
  return checkedText(value, `the value of ${name}`);
}

function encodedPairs(list) {
  return list.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
}

/** @returns {any} */
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
  const algorithm = given.carrier === "headers" ? "hmac-sha256" : "md5";
  return { ...DEFAULTS, algorithm, ...PRESETS[given.preset ?? "plain"], ...given };
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
  const imported = await (await subtle()).importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await (await subtle()).sign("HMAC", imported, bytes));
}

/** @returns {Promise<Crypto>} */
async function webcrypto() {
  // Node 18 has no global one. With the catch, bundlers for pages accept the import.
  return globalThis.crypto ?? (await import(/* webpackIgnore: true */ "node:crypto").catch(() => /** @type {any} */ ({}))).webcrypto;
}

async function subtle() {
  const { subtle } = await webcrypto();
  if (!subtle) throw new TypeError("hashes need WebCrypto: a page has it with https, and at localhost");
  return subtle;
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
  const isAsked = (failure.status === 429 || failure.status === 503) && failure.retryAfter !== null;
  return NOT_EXECUTED.includes(failure.code) || (repeatable && (isAsked || PERHAPS_EXECUTED.includes(failure.code)));
}

/** The members of a problem document, or none. */
function problemDocument(response) {
  const isProblem = /^application\/problem\+json[ \t]*(;|$)/i.test(response.headers.get("Content-Type") ?? "");
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

/** Seconds of Retry-After: a number, or an HTTP date, which counts from the response's own. */
function retryAfterOf(headers) {
  const text = headers.get("Retry-After") ?? "";
  if (/^[0-9]{1,10}$/.test(text)) return Number(text);
  const dateOf = (date) => (/^[A-Z][a-z]+,? .*[0-9]/.test(date) ? Date.parse(date.endsWith("GMT") ? date : `${date} GMT`) : NaN);
  const seconds = (dateOf(text) - (dateOf(headers.get("Date") ?? "") || Date.now())) / 1000;
  return Number.isNaN(seconds) ? null : Math.max(seconds, 0);
}

/** The parts of a body, of which a redirect in a browser has none. */
async function* partsOf(body) {
  const reader = body?.getReader?.();
  try {
    if (!reader) yield* body ?? [];
    else for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    reader?.cancel().catch(() => {});
  }
}

async function wholeBody(body) {
  const chunks = [];
  let left = MAX_RESPONSE_BYTES;
  for await (const part of partsOf(body)) {
    chunks.push(part);
    left -= part.length;
    if (left < 0) throw new TransportError("the response has more than 16 MiB");
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/** The parts of a stream, each within the call's timeout, until its limit. */
async function* watchedParts(body, watch, call, failed) {
  const parts = partsOf(body);
  let left = call.limit;
  try {
    for (;;) {
      watch.start(1000 * call.timeout);
      const { done, value } = await parts.next();
      watch.pause();
      if (done) return;
      left -= value.length;
      if (left < 0) throw new TransportError(`the response has more than ${call.limit} bytes`);
      yield value;
    }
  } catch (error) {
    throw failed(error);
  } finally {
    watch.end();
    await parts.return(undefined);
  }
}

/** The parts, and then one more if it is needed. */
async function* endedBy(parts, last, isNeeded) {
  yield* parts;
  if (isNeeded()) yield last;
}

function logWarning(name, value) {
  const further = name === "version_unknown" ? " served, not the version asked for" : "";
  console.warn(printable(`signpost: ${name}: ${value}${further}`));
}

function sleep(seconds, signal) {
  return /** @type {Promise<void>} */ (new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const cancel = () => (clearTimeout(timer), reject(signal.reason));
    const done = () => (signal?.removeEventListener("abort", cancel), resolve());
    const timer = setTimeout(done, Math.min(1000 * seconds, MAX_TIMER_MS));
    signal?.addEventListener("abort", cancel, { once: true });
  }));
}
