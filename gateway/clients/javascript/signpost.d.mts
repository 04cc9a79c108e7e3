// The types of signpost.mjs: Signpost's client for Node.js 18.17 or later, and browsers. CONTRACT is gateway/protocol/CONTRACT.md.
//
// Copyright the Signpost authors
// SPDX-License-Identifier: Apache-2.0

/** Names and values: a list of `[name, value]`, a `Map` or `URLSearchParams`. Each is text. */
export type Pairs = Iterable<readonly [name: string, value: string]>;

/** A sign profile. What it lacks is as in the preset. CONTRACT 3. */
export interface Profile {
  readonly preset?: "plain" | "decoded" | "bilibili" | "alipay" | "wechat" | "top";
  readonly values?: "wire" | "decoded";
  readonly layout?: "pairs" | "pairs-key" | "concat" | "concat-both";
  readonly empty?: "keep" | "drop";
  readonly leave_out?: readonly string[];
  readonly cover?: "parameters" | "request";
  readonly algorithm?: "md5" | "hmac-sha256";
}

export type WarningName = "version_unknown" | "deprecated" | "sunset";

/** Durations are in seconds. */
export interface Settings {
  /** The gateway's origin: http or https, host and perhaps a port. */
  url: string;
  /** The application's key, without white space or a line break at its ends. */
  key: string;
  /** The application's ident; only in multi-application mode it counts. */
  app?: string | null;
  /** The prefix of the convention headers: by default `Acme`. */
  prefix?: string;
  version?: string | null;
  language?: string | null;
  /** The user's credential. `login` sets it. */
  authorization?: string | null;
  profile?: Profile | null;
  /** Names of the convention headers, instead of the prefix's. */
  headerNames?: { app?: string; version?: string; language?: string; authorization?: string } | null;
  /** For the whole of one request, connecting and reading included: by default 65. A call with repetitions takes longer. */
  timeout?: number;
  /** How often a call is repeated at most: by default 3. */
  retries?: number;
  /** The longest pause before a repetition: by default 30. If the gateway asks for a longer one, the call fails at once. */
  maxWait?: number;
  /** Gets each warning once, with its first value: by default `console.warn`, with null nothing. Errors that it throws are those of the call. */
  onWarning?: ((name: WarningName, value: string) => void) | null;
  /** Milliseconds since 1970: by default `Date.now`. */
  clock?: () => number;
  /** Used instead of the global `fetch`: for a proxy, a time limit of connecting, or a certificate of your own. */
  fetch?: typeof fetch;
}

export interface CallOptions {
  /** A repetition does no harm: by default true for a GET, false for a POST. */
  repeatable?: boolean;
  /** Seconds, instead of the client's. */
  timeout?: number;
}

export interface Account {
  username: string;
  display_name?: string;
  /** Of version v1. */
  type?: string;
  /** Of version v2. */
  provider?: string;
  /** Milliseconds since 1970. */
  created_at: number;
  [member: string]: unknown;
}

export interface LoginResult {
  authorization: string;
  /** Seconds. */
  expires_in: number;
  created: boolean;
  account: Account;
  [member: string]: unknown;
}

export interface StoredEvent {
  id: number;
  event: string;
  /** Milliseconds since 1970. */
  received_at: number;
  [member: string]: unknown;
}

/** A response with a status below 400. In a browser, which hides redirects, that of one has the status 0. */
export interface ClientResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Uint8Array;
  /** The body as UTF-8. */
  readonly body: string;
  /** The body's JSON. Throws SyntaxError if it is none. */
  json(): any;
}

/** A response with a status of 400 or more. Decide by `code`, which never changes. CONTRACT 7. */
export class Problem extends Error {
  private constructor();
  readonly status: number;
  /** Empty if the body is no problem document. */
  readonly code: string;
  readonly title: string | null;
  readonly detail: string | null;
  readonly hint: string | null;
  /** The text that the gateway signed: of `sign_mismatch` only. Below it the message shows the client's. */
  readonly canonical: string | null;
  readonly requestId: string | null;
  /** Seconds. */
  readonly retryAfter: number | null;
  /** Milliseconds since 1970, below 2^53: of `time_out_of_window` only. */
  readonly serverTime: number | null;
}

/** There is no usable response: no connection, a lost one, a timeout, or a response that is malformed or has more than 16 MiB. */
export class TransportError extends Error {
  private constructor();
  /** False if the request was surely not sent. In a browser it is always true. */
  readonly sent: boolean;
}

/** Encodes a name or a value by RFC 3986. Throws TypeError if it is no text, or half of a surrogate pair is in it. */
export function encode(text: string): string;

/**
 * The canonical string of pairs as they are sent, with `<APP_KEY>` in the key's place. CONTRACT 3.
 *
 * `method` and `path` count with `cover: "request"` only. Throws TypeError for broken escapes, and what is not UTF-8.
 */
export function canonical(query: string, form: string, profile?: Profile | null, method?: string, path?: string): string;

/** The signature of pairs as they are sent, in lower-case hex. A `sign` among them is not signed. CONTRACT 3. */
export function signature(
  query: string,
  form: string,
  key: string,
  profile?: Profile | null,
  method?: string,
  path?: string,
): Promise<string>;

/**
 * The text to send, as query or as form: the pairs in their order, then `time` (unless a pair has that name), then `sign`.
 *
 * `time` is in milliseconds since 1970, by default the system's. Rejects with TypeError for pairs that cannot be sent, for example with a
 * value that is no text.
 */
export function sign(
  pairs: Pairs,
  key: string,
  profile?: Profile | null,
  method?: string,
  path?: string,
  time?: number | string,
): Promise<string>;

/** Calls a gateway. */
export class Client {
  /** Throws TypeError for settings that cannot be right. */
  constructor(settings: Settings);

  /** The user's credential. `login` sets it, `logout` removes it. CONTRACT 8. */
  get authorization(): string | undefined;
  set authorization(value: string | null | undefined);

  /**
   * Signs the pairs and sends them, as query of a GET or form of a POST. Redirects are not followed.
   *
   * Rejects with Problem from status 400 on, TransportError if there is no response, TypeError if the call cannot be sent. Repeats by
   * CONTRACT 10 before that.
   */
  call(method: "GET" | "POST", path: string, pairs?: Pairs, options?: CallOptions): Promise<ClientResponse>;

  /**
   * Logs a user in by polling, and sets `authorization`. CONTRACT 8.
   *
   * Calls `show` with the address that the user must open, and the code that the user compares. Rejects with the Problem of a login that
   * failed, for example `login_denied`.
   */
  login(show: (authorizeUrl: string, userCode: string) => void | Promise<void>, provider?: string | null): Promise<LoginResult>;

  /** Ends the login, and forgets the credential. */
  logout(): Promise<void>;

  /** The account of the user who is logged in. */
  user(): Promise<Account>;

  /** Stores an event with the account. It is repeated after a failure only if it has an `idempotencyKey`. */
  sendEvent(event: string, data?: string | null, idempotencyKey?: string | null): Promise<StoredEvent>;
}
