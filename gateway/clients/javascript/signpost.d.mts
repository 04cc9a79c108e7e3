/** Encodes a name or a value by RFC 3986. Throws TypeError for half of a surrogate pair. @param {string} text */
export function encode(text: string): string;
/**
 * The canonical string of pairs as they are sent, with `<APP_KEY>` in the key's place. CONTRACT 3.
 *
 * `method` and `path` count with `cover: "request"` only. Throws TypeError for broken escapes, and what is not UTF-8.
 * @param {string} query @param {string} form @param {Profile | null} [profile] @param {string} [method] @param {string} [path]
 */
export function canonical(query: string, form: string, profile?: Profile | null, method?: string, path?: string): string;
/**
 * The signature of pairs as they are sent, in lower-case hex. A `sign` among them is not signed. CONTRACT 3.
 * @param {string} query @param {string} form @param {string} key @param {Profile | null} [profile] @param {string} [method] @param {string} [path]
 */
export function signature(query: string, form: string, key: string, profile?: Profile | null, method?: string, path?: string): Promise<string>;
/**
 * The text to send, as query or as form: the pairs in their order, then `time` (unless a pair has that name), then `sign`.
 *
 * `time` is in milliseconds since 1970. Rejects with TypeError for pairs that cannot be sent.
 * @param {Pairs} pairs @param {string} key @param {Profile | null} [profile] @param {string} [method] @param {string} [path] @param {number | string} [time]
 */
export function sign(pairs: Pairs, key: string, profile?: Profile | null, method?: string, path?: string, time?: number | string): Promise<string>;
/**
 * What a signature in headers signs: `target` is path and query as sent, `time` the text of its header. CONTRACT 3.
 * @typedef {{ method: string, target: string, time: string, nonce?: string, body?: string | Uint8Array | Blob }} Head
 */
/** The text of a signature in headers, with `<APP_KEY>` in the key's place. @param {Head} head @param {"md5" | "hmac-sha256"} [algorithm] */
export function headText({ method, target, time, nonce, body }: Head, algorithm?: "md5" | "hmac-sha256"): Promise<any>;
/** A signature in headers, in lower-case hex. @param {Head} head @param {string} key @param {"md5" | "hmac-sha256"} [algorithm] */
export function headSignature({ method, target, time, nonce, body }: Head, key: string, algorithm?: "md5" | "hmac-sha256"): Promise<string>;
/** A response with a status of 400 or more. Decide by `code`, which never changes. CONTRACT 7. */
export class Problem extends Error {
    /** @param {ClientResponse} response @param {string} call @param {string} [signed] */
    constructor(response: ClientResponse, call: string, signed?: string);
    /** @readonly */ readonly status: number;
    /** Empty if the body is no problem document of Signpost's form. @readonly @type {string} */ readonly code: string;
    /** @readonly @type {string | null} */ readonly title: string | null;
    /** @readonly @type {string | null} */ readonly detail: string | null;
    /** The likely cause. @readonly @type {string | null} */ readonly hint: string | null;
    /** Of `sign_mismatch` only: the text that the gateway signed. @readonly @type {string | null} */ readonly canonical: string | null;
    /** @readonly @type {string | null} */ readonly requestId: string | null;
    /** Seconds. @readonly @type {number | null} */ readonly retryAfter: number | null;
    /** Of `time_out_of_window` only: milliseconds since 1970. @readonly @type {number | null} */ readonly serverTime: number | null;
    get headers(): Headers;
    /** The first 64 KiB of the body, as UTF-8. */
    get body(): string;
    /** The body's JSON. Throws SyntaxError if it is none. @returns {any} */
    json(): any;
    #private;
}
/** There is no usable response: no connection, a lost one, the deadline, or a response that is malformed or too large. */
export class TransportError extends Error {
    /** @param {string} message */
    constructor(message: string, sent?: boolean);
    /** False if the request was surely not sent. With a `fetch` that is not Node's always true. @readonly */ readonly sent: boolean;
}
/** A response with a status below 400. A redirect is one, too; a browser hides it: status 0. */
export class ClientResponse {
    /** @param {number} status @param {Headers} headers @param {Uint8Array} bytes */
    constructor(status: number, headers: Headers, bytes: Uint8Array);
    /** @readonly */ readonly status: number;
    /** @readonly */ readonly headers: Headers;
    get bytes(): Uint8Array<ArrayBufferLike>;
    /** The body as UTF-8. */
    get body(): string;
    /** The body's JSON. Throws SyntaxError if it is none. @returns {any} */
    json(): any;
    #private;
}
/** A response that is read as it arrives: `for await` yields its bytes. It is read once; leaving the loop ends it. */
export class StreamedResponse {
    /** @param {number} status @param {Headers} headers @param {AsyncIterable<Uint8Array>} parts @param {() => void} cancel */
    constructor(status: number, headers: Headers, parts: AsyncIterable<Uint8Array>, cancel?: () => void);
    /** @readonly */ readonly status: number;
    /** @readonly */ readonly headers: Headers;
    /** Ends a response that is not read. @readonly */ readonly cancel: () => void;
    /** The server-sent events of the response, until it ends. `id` is the last one sent, `""` before the first. */
    events(): AsyncGenerator<{
        event: string;
        data: string;
        id: string;
    }, void, unknown>;
    [Symbol.asyncIterator](): AsyncIterator<Uint8Array<ArrayBufferLike>, any, any>;
    #private;
}
/** Calls a gateway. One client serves many users: `withCredential` makes each of them a light copy. */
export class Client {
    /** @param {Settings} settings Throws TypeError for settings that cannot be right. */
    constructor(settings: Settings);
    /**
     * A copy that calls for one user. It shares connections, clock and warnings.
     *
     * With a store, the credential is loaded for each call, and logins, `renew` and `logout` keep it up to date.
     * @param {string | CredentialStore | null} credential
     */
    withCredential(credential: string | CredentialStore | null): Client;
    /**
     * Signs a request, sends it, and returns the response. Redirects are not followed.
     *
     * The pairs are the query of GET, HEAD and DELETE, and of a call with a body, otherwise the form. Rejects with Problem from status 400
     * on, TransportError without a usable response, TypeError if the call cannot be sent. Repeats by CONTRACT 10 before that.
     * @param {"GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"} method @param {string} path
     * @param {Pairs | CallOptions | null} [pairs] @param {CallOptions} [options] The third argument, if there are no pairs.
     * @returns {Promise<ClientResponse>}
     */
    call(method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, pairs?: Pairs | CallOptions | null, options?: CallOptions): Promise<ClientResponse>;
    /**
     * Calls, and returns the response as soon as its head has arrived: for downloads, and server-sent events.
     * @param {"GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE"} method @param {string} path
     * @param {Pairs | StreamOptions | null} [pairs] @param {StreamOptions} [options]
     * @returns {Promise<StreamedResponse>}
     */
    stream(method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE", path: string, pairs?: Pairs | StreamOptions | null, options?: StreamOptions): Promise<StreamedResponse>;
    /**
     * Logs a user in by polling. CONTRACT 8.
     *
     * Calls `show` with the address that the user must open, and the code that the user compares. Rejects with the Problem of a login that
     * failed, for example `login_denied`. `timeout` is for all of it; without, the login's own.
     * @param {(authorizeUrl: string, userCode: string) => void | Promise<void>} show @param {LoginOptions} [options]
     * @returns {Promise<LoginResult>}
     */
    login(show: (authorizeUrl: string, userCode: string) => void | Promise<void>, { provider, prompt, loginHint, timeout, ...options }?: LoginOptions): Promise<LoginResult>;
    /**
     * The address that begins a redirect login, to be opened within a minute, and the verifier that `exchange` needs. CONTRACT 8.
     *
     * Keep `codeVerifier` in the visitor's session, and a random value there and in the query of `returnTo`. Compare that value before the
     * exchange: otherwise a visitor can be logged in to another one's account. CONTRACT 10.
     * @param {string} returnTo @param {{ provider?: string | null, prompt?: string | null, loginHint?: string | null }} [options]
     */
    loginUrl(returnTo: string, { provider, prompt, loginHint }?: {
        provider?: string | null;
        prompt?: string | null;
        loginHint?: string | null;
    }): Promise<{
        url: string;
        codeVerifier: string;
    }>;
    /**
     * Ends a redirect login: the ticket serves once.
     * @param {string} ticket @param {string | null} [codeVerifier] @param {CallOptions} [options] @returns {Promise<LoginResult>}
     */
    exchange(ticket: string, codeVerifier?: string | null, options?: CallOptions): Promise<LoginResult>;
    /**
     * A new credential. The old one ends a minute later.
     * @param {CallOptions} [options] @returns {Promise<{ authorization: string, expires_in: number }>}
     */
    renew(options?: CallOptions): Promise<{
        authorization: string;
        expires_in: number;
    }>;
    /** Ends the login with all its credentials. @param {CallOptions} [options] */
    logout(options?: CallOptions): Promise<void>;
    /** The user's account. @param {CallOptions} [options] @returns {Promise<Account>} */
    user(options?: CallOptions): Promise<Account>;
    /**
     * Stores an event with the account. With an `idempotencyKey`, which is part of the event, it is repeated after a failure.
     * @param {string} event @param {string | null} [data] @param {CallOptions} [options] @returns {Promise<StoredEvent>}
     */
    sendEvent(event: string, data?: string | null, { idempotencyKey, ...options }?: CallOptions): Promise<StoredEvent>;
    /**
     * A page of the account's events, newest first; since v2.
     * @param {CallOptions & { limit?: number, before?: string | null }} [options] @returns {Promise<EventPage>}
     */
    events({ limit, before, ...options }?: CallOptions & {
        limit?: number;
        before?: string | null;
    }): Promise<EventPage>;
    #private;
}
/**
 * What a signature in headers signs: `target` is path and query as sent, `time` the text of its header. CONTRACT 3.
 */
export type Head = {
    method: string;
    target: string;
    time: string;
    nonce?: string;
    body?: string | Uint8Array | Blob;
};
/**
 * A number must be one that has a plain decimal text.
 */
export type PairValue = string | number | bigint | boolean;
/**
 * A list, a `Map` or `URLSearchParams`. A list of values repeats the name.
 */
export type Pairs = Iterable<readonly [name: string, value: PairValue | readonly PairValue[]]>;
/**
 * A sign profile. What it lacks is as in the preset. CONTRACT 3.
 */
export type Profile = {
    preset?: "top" | "plain" | "decoded" | "bilibili" | "alipay" | "wechat" | undefined;
    values?: "decoded" | "wire" | undefined;
    layout?: "concat" | "pairs" | "pairs-key" | "concat-both" | undefined;
    empty?: "keep" | "drop" | undefined;
    leave_out?: readonly string[] | undefined;
    cover?: "request" | "parameters" | undefined;
    /**
     * By default `md5`, with carrier `headers` `hmac-sha256`.
     */
    algorithm?: "md5" | "hmac-sha256" | undefined;
    /**
     * `both`: GET and POST with pairs sign in parameters, all else in headers.
     */
    carrier?: "both" | "headers" | "parameters" | undefined;
};
export type WarningName = "version_unknown" | "deprecated" | "sunset" | "clock_off";
/**
 * What `client` uses of `fetch`. A fake one for tests: `async () => Response.json({})`.
 */
export type Fetch = (address: string, init: RequestInit) => Promise<{
    status: number;
    headers: Headers;
    body: any;
}>;
/**
 * Where a program keeps one user's credential.
 */
export type CredentialStore = {
    load: () => string | null | undefined | Promise<string | null | undefined>;
    save: (credential: string) => unknown;
    clear: () => unknown;
};
/**
 * Durations are in seconds.
 */
export type Settings = {
    /**
     * The gateway's origin: http or https, host and perhaps a port.
     */
    url: string;
    /**
     * The application's key, without white space or a line break at its ends.
     */
    key: string;
    /**
     * The application's ident, for multi-application mode.
     */
    app?: string | null | undefined;
    /**
     * The prefix of the convention headers: by default `Acme`.
     */
    prefix?: string | undefined;
    version?: string | null | undefined;
    language?: string | null | undefined;
    profile?: Profile | null | undefined;
    /**
     * Instead of the prefix's.
     */
    headerNames?: {
        app?: string;
        version?: string;
        language?: string;
        authorization?: string;
    } | null | undefined;
    /**
     * Deadline of a call, repetitions and pauses included: by default 65.
     */
    timeout?: number | undefined;
    /**
     * Node only: by default 5.
     */
    connectTimeout?: number | undefined;
    /**
     * Maximum of repetitions: by default 3.
     */
    retries?: number | undefined;
    /**
     * The longest pause before a repetition: by default 30. A longer one fails the call at once.
     */
    maxWait?: number | undefined;
    /**
     * Gets each warning once: by default `console.warn`, null for none.
     */
    onWarning?: ((name: WarningName, value: string) => void) | null | undefined;
    /**
     * Milliseconds since 1970: by default `Date.now`.
     */
    clock?: (() => number) | undefined;
    /**
     * Sends each request, without the settings below. It must leave redirects alone.
     */
    fetch?: Fetch | undefined;
    /**
     * Node only: `http://` or `https://`, null for none. By default HTTPS_PROXY or HTTP_PROXY, and NO_PROXY.
     */
    proxy?: string | null | undefined;
    /**
     * Node only: PEM file of the only trusted authorities.
     */
    caFile?: string | undefined;
    /**
     * Node only: PEM file, with clientKeyFile.
     */
    clientCertFile?: string | undefined;
    /**
     * Node only.
     */
    clientKeyFile?: string | undefined;
};
/**
 * What belongs to one call. What is absent is as in the client's settings.
 */
export type CallOptions = {
    /**
     * The body: any JSON value. The pairs are then the query.
     */
    json?: unknown;
    /**
     * The body, of the type `contentType`.
     */
    body?: string | ArrayBuffer | Uint8Array<ArrayBufferLike> | Blob | undefined;
    /**
     * Node only: a file whose content is the body. It is read twice: to sign, and to send.
     */
    file?: string | undefined;
    /**
     * By default `application/json` of `json`, otherwise `application/octet-stream`.
     */
    contentType?: string | undefined;
    /**
     * Further headers.
     */
    headers?: Record<string, string> | Headers | undefined;
    /**
     * The user's credential.
     */
    credential?: string | null | undefined;
    version?: string | null | undefined;
    language?: string | null | undefined;
    /**
     * Seconds until the call's deadline, repetitions and pauses included.
     */
    timeout?: number | undefined;
    /**
     * Cancels the call, which then rejects with the signal's reason.
     */
    signal?: AbortSignal | null | undefined;
    /**
     * Header `Idempotency-Key`: the call is then repeatable.
     */
    idempotencyKey?: string | null | undefined;
    /**
     * A repetition does no harm: by default true for all methods but POST and PATCH.
     */
    repeatable?: boolean | undefined;
};
/**
 * `limit`: maximum of bytes. `timeout` counts until the head, then anew for each part.
 */
export type StreamOptions = CallOptions & {
    limit?: number;
};
export type LoginOptions = CallOptions & {
    provider?: string | null;
    prompt?: string | null;
    loginHint?: string | null;
};
/**
 * `type` is of v1, `provider` of v2.
 */
export type Account = {
    username: string;
    display_name?: string;
    type?: string;
    provider?: string;
    created_at: number;
};
/**
 * `expires_in`: seconds.
 */
export type LoginResult = {
    authorization: string;
    expires_in: number;
    created: boolean;
    account: Account;
};
/**
 * `received_at`: milliseconds since 1970.
 */
export type StoredEvent = {
    id: number;
    event: string;
    received_at: number;
    data?: string;
};
/**
 * `next`: `before` of the next page.
 */
export type EventPage = {
    events: StoredEvent[];
    next?: string;
};
