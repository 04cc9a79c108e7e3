//! Clients' connections, and HTTP/2 streams.

use std::fmt;

use signpost_kit::{families, metrics::Scrape};

use crate::{limits::connections::Held, serve::Gateway};

families! {
    CONNECTIONS = "signpost_connections",
        "Open connections of clients, by state: negotiating, active, idle";
    ACCEPTED = "signpost_connections_accepted",
        "Accepted connections, by the listener's address; those that are refused afterwards, too";
    REFUSED = "signpost_connections_refused",
        "Connections that a limit closed with a reset, and failed handshakes";
    STREAMS = "signpost_http2_streams", "Open HTTP/2 streams";
}

/// Writes the families.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let connections = &gateway.state.open_connections;
    scrape.gauge(CONNECTIONS, |add| {
        let states = connections.states(gateway.state.drain.serving());
        add(&[("state", "negotiating")], states.negotiating)?;
        add(&[("state", "active")], states.active)?;
        add(&[("state", "idle")], states.idle)
    })?;
    scrape.counter(ACCEPTED, |add| {
        let mut listeners = gateway.policy.listeners.iter();
        listeners.try_for_each(|listener| {
            let address = listener.address.to_string();
            add(&[("listener", &address)], listener.accepted())
        })
    })?;
    scrape.label_counters(REFUSED, "cause", &connections.counts.refused)?;
    scrape.gauge(STREAMS, |add| {
        add(&[], connections.counts.held(Held::Stream))
    })
}
