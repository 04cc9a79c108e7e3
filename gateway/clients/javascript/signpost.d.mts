// What signpost.mjs exports. `package-test` checks by TypeScript that both agree.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

/** A number must be one that has a plain decimal text. */
export type PairValue = string | number | bigint | boolean;
/** A list, a `Map` or `URLSearchParams`. A list of values repeats the name. */
export type Pairs = Iterable<readonly [name: string, value: PairValue | readonly PairValue[]]>;
export type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
export type WarningName = "version_unknown" | "deprecated" | "sunset" | "clock_off";
/** What `Client` uses of `fetch`. A fake one for tests: `async () => Response.json({})`. */
export type Fetch = (address: string, init: RequestInit) => Promise<{ status: number; headers: Headers; body: any }>;

/** A sign profile. What it lacks is as in the preset. CONTRACT 3. */
export interface Profile {
  preset?: "plain" | "decoded" | "bilibili" | "alipay" | "wechat" | "top";
  values?: "wire" | "decoded";
  layout?: "pairs" | "pairs-key" | "concat" | "concat-both";
  empty?: "keep" | "drop";
  leave_out?: readonly string[];
  cover?: "parameters" | "request";
  /** By default `md5`, with carrier `headers` `hmac-sha256`. */
  algorithm?: "md5" | "hmac-sha256";
  /** `both`: GET and POST with pairs sign in parameters, all else in headers. */
  carrier?: "parameters" | "headers" | "both";
}

/** Where a program keeps one user's credential. */
export interface CredentialStore {
  load(): string | null | undefined | Promise<string | null | undefined>;
  save(credential: string): unknown;
  clear(): unknown;
}

/** Durations are in seconds. */
export interface Settings {
  /** The gateway's origin: http or https, host and perhaps a port. */
  url: string;
  /** The application's key, without white space or a line break at its ends. */
  key: string;
  /** The application's ident, for multi-application mode. */
  app?: string | null;
  /** The prefix of the convention headers: by default `Acme`. */
  prefix?: string;
  version?: string | null;
  language?: string | null;
  profile?: Profile | null;
  /** Instead of the prefix's. */
  headerNames?: { app?: string; version?: string; language?: string; authorization?: string } | null;
  /** Deadline of a call, repetitions and pauses included: by default 65. */
  timeout?: number;
  /** Node only: by default 5. */
  connectTimeout?: number;
  /** Maximum of repetitions: by default 3. */
  retries?: number;
  /** The longest pause before a repetition: by default 30. A longer one fails the call at once. */
  maxWait?: number;
  /** Gets each warning once: by default `console.warn`, null for none. */
  onWarning?: ((name: WarningName, value: string) => void) | null;
  /** Milliseconds since 1970: by default `Date.now`. */
  clock?: () => number;
  /** Sends each request, without the settings below. It must leave redirects alone. */
  fetch?: Fetch;
  /** Node only: `http://` or `https://`, null for none. By default HTTPS_PROXY or HTTP_PROXY, and NO_PROXY. */
  proxy?: string | null;
  /** Node only: PEM file of the only trusted authorities. */
  caFile?: string;
  /** Node only: PEM files. */
  clientCertFile?: string;
  clientKeyFile?: string;
}

/** What belongs to one call. What is absent is as in the client's settings. */
export interface CallOptions {
  /** The body: any JSON value. The pairs are then the query. */
  json?: unknown;
  /** The body, of the type `contentType`. */
  body?: string | Uint8Array | ArrayBuffer | Blob;
  /** Node only: a file whose content is the body. It is read twice: to sign, and to send. */
  file?: string;
  /** By default `application/json` of `json`, otherwise `application/octet-stream`. */
  contentType?: string;
  headers?: Record<string, string> | Headers;
  credential?: string | null;
  version?: string | null;
  language?: string | null;
  /** Seconds until the call's deadline, repetitions and pauses included. */
  timeout?: number;
  /** Cancels the call, which then rejects with the signal's reason. */
  signal?: AbortSignal | null;
  /** Header `Idempotency-Key`: the call is then repeatable. */
  idempotencyKey?: string | null;
  /** A repetition does no harm: by default true for all methods but POST and PATCH. */
  repeatable?: boolean;
}

/** `limit`: maximum of bytes. `timeout` counts until the head, then anew for each part. */
export type StreamOptions = CallOptions & { limit?: number };
export interface Provider {
  provider?: string | null;
  prompt?: string | null;
  loginHint?: string | null;
}
export type LoginOptions = CallOptions & Provider;
/** `type` is of v1, `provider` of v2. */
export type Account = { username: string; display_name?: string; type?: string; provider?: string; created_at: number };
/** `expires_in`: seconds. */
export type LoginResult = { authorization: string; expires_in: number; created: boolean; account: Account };
/** `received_at`: milliseconds since 1970. */
export type StoredEvent = { id: number; event: string; received_at: number; data?: string };
/** `next`: `before` of the next page. */
export type EventPage = { events: StoredEvent[]; next?: string };
/** What a signature in headers signs: `target` is path and query as sent, `time` the text of its header. CONTRACT 3. */
export type Head = { method: string; target: string; time: string; nonce?: string; body?: string | Uint8Array | Blob };

/** A response with a status of 400 or more. Decide by `code`, which never changes. CONTRACT 7. */
export class Problem extends Error {
  constructor(response: ClientResponse, call: string, signed?: string);
  readonly status: number;
  /** Empty if the body is no problem document of Signpost's form. */
  readonly code: string;
  readonly title: string | null;
  readonly detail: string | null;
  /** The likely cause. */
  readonly hint: string | null;
  /** Of `sign_mismatch` only: the text that the gateway signed. */
  readonly canonical: string | null;
  readonly requestId: string | null;
  /** Seconds. */
  readonly retryAfter: number | null;
  /** Of `time_out_of_window` only: milliseconds since 1970. */
  readonly serverTime: number | null;
  get headers(): Headers;
  /** The first 64 KiB of the body, as UTF-8. */
  get body(): string;
  /** The body's JSON. Throws SyntaxError if it is none. */
  json(): any;
}

/** There is no usable response: no connection, a lost one, the deadline, or a response that is malformed or too large. */
export class TransportError extends Error {
  constructor(message: string, sent?: boolean);
  /** False if the request was surely not sent. With a `fetch` that is not Node's always true. */
  readonly sent: boolean;
}

/** A response with a status below 400. A redirect is one, too; a browser hides it: status 0. */
export class ClientResponse {
  constructor(status: number, headers: Headers, bytes: Uint8Array);
  readonly status: number;
  readonly headers: Headers;
  get bytes(): Uint8Array;
  /** The body as UTF-8. */
  get body(): string;
  /** The body's JSON. Throws SyntaxError if it is none. */
  json(): any;
}

/** A response that is read as it arrives: `for await` yields its bytes. It is read once; leaving the loop ends it. */
export class StreamedResponse {
  constructor(status: number, headers: Headers, parts: AsyncIterable<Uint8Array>, cancel?: () => void);
  readonly status: number;
  readonly headers: Headers;
  /** Ends a response that is not read. */
  readonly cancel: () => void;
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array>;
  /** The server-sent events of the response, until it ends. `id` is the last one sent, `""` before the first. */
  events(): AsyncGenerator<{ event: string; data: string; id: string }>;
}

/** Encodes a name or a value by RFC 3986. Throws TypeError for half of a surrogate pair. */
export function encode(text: string): string;
/**
 * The canonical string of pairs as they are sent, with `<APP_KEY>` in the key's place. CONTRACT 3.
 *
 * `method` and `path` count with `cover: "request"` only. Throws TypeError for broken escapes, and what is not UTF-8.
 */
export function canonical(query: string, form: string, profile?: Profile | null, method?: string, path?: string): string;
/** The signature of pairs as they are sent, in lower-case hex. A `sign` among them is not signed. CONTRACT 3. */
export function signature(
  query: string, form: string, key: string, profile?: Profile | null, method?: string, path?: string,
): Promise<string>;
/**
 * The text to send, as query or as form: the pairs in their order, then `time` (unless a pair has that name), then `sign`.
 *
 * `time` is in milliseconds since 1970. Rejects with TypeError for pairs that cannot be sent.
 */
export function sign(
  pairs: Pairs, key: string, profile?: Profile | null, method?: string, path?: string, time?: number | string,
): Promise<string>;
/** The text of a signature in headers, with `<APP_KEY>` in the key's place. */
export function headText(head: Head, algorithm?: "md5" | "hmac-sha256"): Promise<string>;
/** A signature in headers, in lower-case hex. */
export function headSignature(head: Head, key: string, algorithm?: "md5" | "hmac-sha256"): Promise<string>;

/** Calls a gateway. One client serves many users: `withCredential` makes each of them a light copy. */
export class Client {
  /** Throws TypeError for settings that cannot be right. */
  constructor(settings: Settings);
  /**
   * A copy that calls for one user. It shares connections, clock and warnings.
   *
   * With a store, the credential is loaded for each call, and logins, `renew` and `logout` keep it up to date.
   */
  withCredential(credential: string | CredentialStore | null): Client;
  /**
   * Signs a request, sends it, and returns the response. Redirects are not followed.
   *
   * The pairs are the query of GET, HEAD and DELETE, and of a call with a body, otherwise the form; without pairs, the options are the third
   * argument. Rejects with Problem from status 400 on, TransportError without a usable response, TypeError if the call cannot be sent. Repeats
   * by CONTRACT 10 before that.
   */
  call(method: Method, path: string, pairs?: Pairs | CallOptions | null, options?: CallOptions): Promise<ClientResponse>;
  /** Calls, and returns the response as soon as its head has arrived: for downloads, and server-sent events. */
  stream(method: Method, path: string, pairs?: Pairs | StreamOptions | null, options?: StreamOptions): Promise<StreamedResponse>;
  /**
   * Logs a user in by polling. CONTRACT 8.
   *
   * Calls `show` with the address that the user must open, and the code that the user compares. Rejects with the Problem of a login that
   * failed, for example `login_denied`. `timeout` is for all of it; without, the login's own.
   */
  login(show: (authorizeUrl: string, userCode: string) => void | Promise<void>, options?: LoginOptions): Promise<LoginResult>;
  /**
   * The address that begins a redirect login, to be opened within a minute, and the verifier that `exchange` needs. CONTRACT 8.
   *
   * Keep `codeVerifier` in the visitor's session, and a random value there and in the query of `returnTo`. Compare that value before the
   * exchange: otherwise a visitor can be logged in to another one's account. CONTRACT 10.
   */
  loginUrl(returnTo: string, options?: Provider): Promise<{ url: string; codeVerifier: string }>;
  /** Ends a redirect login: the ticket serves once. */
  exchange(ticket: string, codeVerifier?: string | null, options?: CallOptions): Promise<LoginResult>;
  /** A new credential. The old one ends a minute later. */
  renew(options?: CallOptions): Promise<{ authorization: string; expires_in: number }>;
  /** Ends the login with all its credentials. */
  logout(options?: CallOptions): Promise<void>;
  user(options?: CallOptions): Promise<Account>;
  /** Stores an event with the account. With an `idempotencyKey`, which is part of the event, it is repeated after a failure. */
  sendEvent(event: string, data?: string | null, options?: CallOptions): Promise<StoredEvent>;
  /** A page of the account's events, newest first; since v2. */
  events(options?: CallOptions & { limit?: number; before?: string | null }): Promise<EventPage>;
}
