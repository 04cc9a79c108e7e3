// How signpost.mjs sends requests in Node: kept connections, proxies, certificates, files.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

// Below the gateway's 60 s: CONTRACT 10.
const IDLE_MS = 50_000;

/**
 * A function like `fetch` for one origin, with a pool of connections. It follows no redirects, and asks for no compression.
 * @param {string} origin
 * @param {{ connectTimeout?: number, proxy?: string | null, caFile?: string, clientCertFile?: string, clientKeyFile?: string }} settings
 */
export function transport(origin, { connectTimeout = 5, proxy, caFile, clientCertFile, clientKeyFile }) {
  const gateway = new URL(origin);
  const via = proxyOf(gateway, proxy);
  const isTls = gateway.protocol === "https:";
  const connectMs = 1000 * connectTimeout;
  const files = { ca: contentOf(caFile), cert: contentOf(clientCertFile), key: contentOf(clientKeyFile) };
  const options = { keepAlive: true, timeout: IDLE_MS, ...files };
  const forwards = via !== null && !isTls;
  const isSecure = forwards ? via.protocol === "https:" : isTls;
  const { Agent, request } = isSecure ? https : http;
  const agent = via && isTls ? new Tunnel(via, connectMs, options) : new Agent(options);

  return (/** @type {string} */ address, { method, headers, body, signal }) => {
    const length = typeof body === "string" ? Buffer.byteLength(body) : (body?.size ?? body?.length);
    const framed = length === undefined ? headers : { ...headers, "Content-Length": length };
    const toProxy = forwards ? { path: address, headers: { ...framed, Host: gateway.host, ...authorizationOf(via) } } : {};
    const sent = request(forwards ? via.origin : address, { method, headers: framed, signal, agent, ...toProxy });
    return exchange(sent, body, connectMs);
  };
}

/** Sends the body, and resolves when the head of the response has arrived. */
function exchange(request, body, connectMs) {
  return new Promise((resolve, reject) => {
    let isConnected = false;
    const fail = (error) => {
      clearTimeout(timer);
      // OpenSSL's message has more than its reason. An idle connection can have been closed by the other side just then.
      const cause = { code: error.code, message: error.reason ?? error.message, isConnected, isStale: request.reusedSocket };
      reject(Object.assign(new Error("failed"), { cause }));
    };
    const timer = setTimeout(() => request.destroy(new Error(`not connected within ${connectMs / 1000} s`)), connectMs);
    const connected = () => {
      isConnected = true;
      clearTimeout(timer);
    };
    request.on("socket", (socket) => {
      if (request.reusedSocket) connected();
      else socket.once(socket.encrypted ? "secureConnect" : "connect", connected);
    });
    request.on("error", fail);
    request.on("upgrade", (_, socket) => {
      socket.destroy();
      fail({ message: "the response switches protocols" });
    });
    request.on("response", (response) => {
      try {
        const headers = new Headers();
        for (let at = 0; at < response.rawHeaders.length; at += 2) headers.append(response.rawHeaders[at], response.rawHeaders[at + 1]);
        resolve({ status: response.statusCode, headers, body: bodyOf(response) });
      } catch {
        request.destroy();
        fail({ message: "malformed header" });
      }
    });
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) request.end(body);
    // Its errors are the request's.
    else pipeline(Readable.from(body.stream?.() ?? body), request).catch(() => {});
  });
}

async function* bodyOf(response) {
  try {
    yield* response;
  } catch ({ code, message }) {
    throw Object.assign(new Error("failed"), { cause: { code, message: message === "aborted" ? "the response ended early" : message } });
  }
}

/** TLS through a proxy, which connects to the gateway by CONNECT. */
class Tunnel extends https.Agent {
  #proxy;
  #connectMs;

  constructor(proxy, connectMs, options) {
    super(options);
    this.#proxy = proxy;
    this.#connectMs = connectMs;
  }

  /** @returns {any} */
  createConnection(options, callback) {
    const authority = `${options.host.includes(":") ? `[${options.host}]` : options.host}:${options.port}`;
    const headers = { Host: authority, ...authorizationOf(this.#proxy) };
    const { request: begin } = this.#proxy.protocol === "https:" ? https : http;
    const request = begin(this.#proxy.origin, { method: "CONNECT", path: authority, headers, agent: false, timeout: this.#connectMs });
    request.on("connect", (response, socket) => {
      if (response.statusCode === 200) return callback(null, super.createConnection({ ...options, socket }));
      socket.destroy();
      callback(new Error(`the proxy refuses with ${response.statusCode}`));
    });
    request.on("timeout", () => request.destroy(new Error("the proxy does not respond")));
    request.on("error", callback);
    request.end();
  }
}

/** The proxy for an address: the setting, or by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in either letter case. */
function proxyOf(url, setting) {
  const variable = (name) => process.env[name.toLowerCase()] || process.env[name] || "";
  const text = setting === undefined ? variable(url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY") : (setting ?? "");
  if (text === "" || (setting === undefined && isExempt(url, variable("NO_PROXY")))) return null;
  try {
    const proxy = new URL(text.includes("://") ? text : `http://${text}`);
    if (/^https?:$/.test(proxy.protocol)) return proxy;
  } catch {}
  // It is not in the error: it can have a password.
  throw new TypeError("the proxy must be http:// or https://, a host and a port");
}

/** NO_PROXY: `*`, or names, each with all below it, and perhaps a port. */
function isExempt({ hostname, port, protocol }, list) {
  const actual = port || (protocol === "https:" ? "443" : "80");
  return list.toLowerCase().split(/[\s,]+/).filter(Boolean).some((entry) => {
    const [, name, of = actual] = /^(?:\*?\.)?(.*?)(?::([0-9]+))?$/.exec(entry) ?? [];
    const isNamed = entry === "*" || hostname === name || hostname === `[${entry}]` || hostname.endsWith(`.${name}`);
    return isNamed && (entry === `${hostname.slice(1, -1)}` || of === actual);
  });
}

/** The proxy's address itself, with a user in it, would make Node send an Authorization to the gateway. */
function authorizationOf({ username, password }) {
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return username ? { "Proxy-Authorization": `Basic ${Buffer.from(user).toString("base64")}` } : {};
}

function contentOf(file) {
  try {
    return file === undefined ? undefined : readFileSync(file);
  } catch ({ code }) {
    throw new TypeError(`cannot read ${file}: ${code}`);
  }
}

/** In lower-case hex. */
export async function sha256(parts) {
  const hash = createHash("sha256");
  for await (const part of parts) hash.update(part);
  return hash.digest("hex");
}

/** A file as a body: read once for its hash, and again when it is sent. */
export async function fileContent(file) {
  let size = 0;
  async function* counted() {
    for await (const part of createReadStream(file)) {
      size += part.length;
      yield part;
    }
  }
  try {
    const hash = await sha256(counted());
    // What is appended later is not sent; a shorter file would leave the gateway waiting.
    async function* parts() {
      let left = size;
      if (size > 0) for await (const part of createReadStream(file, { end: size - 1 })) yield ((left -= part.length), part);
      if (left > 0) throw new Error("the file has become shorter");
    }
    return { data: { size, [Symbol.asyncIterator]: parts }, hash, isFile: true };
  } catch ({ code }) {
    throw new TypeError(`cannot read ${file}: ${code}`);
  }
}
