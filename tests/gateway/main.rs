//! The gateway in front of a recording backend: what reaches a backend, and what reaches a client. One module per subject.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue fails at that line"
)]

// `time`, `sign`, sign profiles and hints.
mod signing;
// Replay protection.
mod replay;
// Every published test vector.
mod vectors;
// Paths as they are compared, queries as browsers write them, and what is said of malformed ones.
mod paths;
// A rejected request never reaches a backend.
mod verification;
// Requests and responses arrive as sent.
mod forwarding;
// Bodies that are no forms, further methods, signatures in headers, versions by path or host.
mod bodies;
// Bodies that strangers send: memory, room, and what comes back of both.
mod upload_floods;
// Strict HTTP parsing, limits and timeouts.
mod strictness;
// Responses of backends, as clients receive them.
mod responses;
// Fixed headers of responses.
mod fixed_headers;
// Malformed and hostile responses of backends.
mod hostile_responses;
// Reuse of idle connections to backends.
mod idle_connections;
// TLS to backends.
mod backend_tls;
// A backend process that is killed, exits or freezes during an exchange.
mod backend_faults;
// Request smuggling: bytes that two readers might parse differently.
mod desync;
// Generated requests: Node, uvicorn, Go, nginx and hyper read them as the gateway does.
mod read_alike;
// HTTP/2 at the gateway: good requests, malformed frames and heads, floods.
mod http2;
// Only the provider's callback passes unsigned.
mod unsigned_callback;
// Requests without parameters, where a signature is asked for nevertheless.
mod unsigned_requests;
// Pages that the gateway has itself: what a problem's `type` refers to, and no icon.
mod own_pages;
// The rate limit of unsigned requests for each client address.
mod address_limit;
// The listeners: TLS, the PROXY protocol, limits of connections.
mod listeners;
// Pages of other origins: CORS.
mod cors;
// Rate limits of applications, client addresses and paths, at one gateway and shared by several.
mod rate_limits;
// Metrics of requests: numbers, durations, clocks of clients.
mod metrics_requests;
// The access line of a rejected request: the reason and the client.
mod rejection_log;
// A client that does not read its responses.
mod unread_responses;
// Versions that another one serves: bridges.
mod bridges;
