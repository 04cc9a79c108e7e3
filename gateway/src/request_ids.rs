//! Request ids and trace ids: unique, not guessable from each other, and made without a system call.

use std::{
    fmt::Write,
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

use gateway_protocol::request_id::RequestId;

/// Makes ids: a counter, hashed under keys that are random for this process.
#[derive(Debug, Default)]
pub struct RequestIds {
    counter: AtomicU64,
    keys: [RandomState; 2],
}

impl RequestIds {
    /// An id of 128 bits.
    pub fn next(&self) -> RequestId {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.number(0).to_be_bytes());
        bytes[8..].copy_from_slice(&self.number(1).to_be_bytes());
        RequestId::from_bytes(bytes)
    }

    /// A `traceparent` (W3C Trace Context) that begins a trace; its trace id is the request's id where
    /// that has the form of one.
    pub fn traceparent(&self, id: &RequestId) -> String {
        let mut traceparent = String::with_capacity(55);
        let is_trace_id = id.as_str().len() == 32
            && id
                .as_str()
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        // Writing to a String cannot fail.
        let _ = if is_trace_id {
            write!(traceparent, "00-{id}-{:016x}-00", self.number(0))
        } else {
            write!(
                traceparent,
                "00-{:016x}{:016x}-{:016x}-00",
                self.number(0),
                self.number(1),
                self.number(0)
            )
        };
        traceparent
    }

    fn number(&self, key: usize) -> u64 {
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        self.keys[key].hash_one(count)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ() {
        let ids = RequestIds::default();
        let made: HashSet<_> = (0..1000).map(|_| ids.next().as_str().to_owned()).collect();
        assert_eq!(made.len(), 1000);
    }

    #[test]
    fn a_traceparent_carries_the_request_id_where_it_can() {
        let ids = RequestIds::default();
        let own = ids.next();
        assert!(ids.traceparent(&own).starts_with(&format!("00-{own}-")));
        for id in [own, "from-a-proxy".parse().unwrap()] {
            let traceparent = ids.traceparent(&id);
            let lengths: Vec<_> = traceparent.split('-').map(str::len).collect();
            assert_eq!(lengths, [2, 32, 16, 2]);
        }
    }
}
