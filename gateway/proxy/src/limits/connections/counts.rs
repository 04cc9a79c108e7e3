//! What the metrics show of clients' connections, beside their number.

use signpost_kit::{
    counted_label, label_enum,
    metrics::cells::{Counters, LabelCounters},
};

label_enum! {
    /// Why a connection ended before its first request, or was not served at all: the label `cause`.
    pub enum RefusalCause {
        /// `connections.max`, or the limit of file descriptors.
        Max = "max",
        /// `connections.per_address`.
        PerAddress = "per_address",
        /// `connections.handshakes_per_second`.
        HandshakeRate = "handshake_rate",
        /// The PROXY header is missing, malformed or incomplete.
        ProxyHeader = "proxy_header",
        /// The TLS handshake failed.
        Tls = "tls",
        /// The subject of the client's certificate does not fit into a header.
        CertificateSubject = "certificate_subject",
        /// No common HTTP version by ALPN.
        NoProtocol = "no_protocol",
        /// PROXY header and handshake took too long.
        Timeout = "timeout",
    }
}

counted_label!(RefusalCause);

/// Something that is open for a while. The metrics show the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A connection whose PROXY header or handshake is not complete.
    Negotiating,
    /// An HTTP/1.1 connection with an incomplete head.
    ReceivingHead,
    /// An HTTP/2 connection with streams, or whose last response waits for the client.
    ActiveHttp2,
    /// An HTTP/2 stream.
    Stream,
}

/// Number of the variants of [`Held`].
const HELD: usize = Held::Stream as usize + 1;

/// The numbers. Each change is a relaxed addition to a cell of the thread.
#[derive(Debug)]
pub struct ConnectionCounts {
    /// Connections that ended before their first request.
    pub refused: LabelCounters<RefusalCause>,
    /// What begins adds 1, what ends adds −1, which wraps around.
    held: Counters,
}

impl Default for ConnectionCounts {
    fn default() -> Self {
        Self {
            refused: LabelCounters::default(),
            held: Counters::new(HELD),
        }
    }
}

impl ConnectionCounts {
    pub(super) fn begin(&self, held: Held) {
        self.held.add(held as usize, 1);
    }

    pub(super) fn end(&self, held: Held, number: usize) {
        self.held.add(held as usize, (number as u64).wrapping_neg());
    }

    /// How many there are. The shards are read one after the other, so that a sum can be below 0 for a moment.
    pub fn held(&self, held: Held) -> u64 {
        let sum = self.held.value(held as usize).cast_signed();
        u64::try_from(sum).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_thread_ends_is_not_counted_any_more() {
        let counts = ConnectionCounts::default();
        for _ in 0..3 {
            counts.begin(Held::Stream);
        }
        std::thread::scope(|scope| scope.spawn(|| counts.end(Held::Stream, 2)).join()).unwrap();
        assert_eq!(counts.held(Held::Stream), 1);
        counts.end(Held::Stream, 2);
        assert_eq!(counts.held(Held::Stream), 0);
    }
}
