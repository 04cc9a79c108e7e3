//! Clients' connections, and HTTP/2 streams.

use std::fmt;

use signpost_kit::{families, metrics::Scrape};

use crate::{limits::connections::Held, serve::Gateway};

families! {
    CONNECTIONS = "signpost_connections", Gauge, ["state"],
        "Clients' open connections: negotiating (PROXY header, handshake), active (a request is being received or \
         served), idle (all others, also before their first byte).";
    ACCEPTED = "signpost_connections_accepted_total", Counter, ["listener"],
        "Accepted connections, by the listener's address, even if they are refused afterwards.";
    REFUSED = "signpost_connections_refused_total", Counter, ["cause"],
        "Connections that a limit closed with a reset: max, per_address, handshake_rate (the keys max, per_address, \
         handshakes_per_second of [connections]). And connections that failed before their first request: \
         proxy_header, tls, certificate_subject (too long for a header), no_protocol (none in common by ALPN), \
         timeout. Connections that are closed before a PROXY header or a handshake, as port checks do, count as \
         neither.";
    STREAMS = "signpost_http2_streams", Gauge, [], "Open HTTP/2 streams.";
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let connections = &gateway.state.open_connections;
    let states = connections.states(gateway.state.drain.serving());
    let states = [
        (["negotiating"], states.negotiating),
        (["active"], states.active),
        (["idle"], states.idle),
    ];
    scrape.numbers(CONNECTIONS, states)?;
    let listeners = gateway.policy.listeners.iter();
    let accepted = listeners.map(|listener| ([listener.address.to_string()], listener.accepted()));
    scrape.numbers(ACCEPTED, accepted)?;
    scrape.label_counters(REFUSED, &connections.counts.refused)?;
    scrape.number(STREAMS, Some(connections.counts.held(Held::Stream)))
}
