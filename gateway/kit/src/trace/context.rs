//! `traceparent` of W3C Trace Context level 1: read and written.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// Length of a `traceparent` of version 00; later versions may append to it.
const LENGTH: usize = 55;

/// The flag that says that the caller records the trace.
const SAMPLED: u8 = 1;

/// The id of a trace: not only zeros.
pub type TraceId = [u8; 16];

/// The id of a span: not only zeros.
pub type SpanId = [u8; 8];

/// A span of a trace, as its callees see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl TraceContext {
    /// Reads a `traceparent`: `version-trace_id-parent_id-flags`, section 3.2. `None` if it is malformed; version `ff`
    /// and ids of only zeros are invalid. Of later versions the same parts are read; what they append begins with `-`
    /// (section 4.3).
    #[must_use]
    pub fn parse(given: &[u8]) -> Option<Self> {
        let (given, appended) = given.split_first_chunk::<LENGTH>()?;
        let is_separated = [2, 35, 52].iter().all(|at| given[*at] == b'-');
        let [version] = digits(&given[..2])?;
        let trace_id = digits(&given[3..35])?;
        let span_id = digits(&given[36..52])?;
        let [flags] = digits(&given[53..])?;
        let is_whole = appended.is_empty() || (version > 0 && appended[0] == b'-');
        let is_valid =
            is_separated && is_whole && version != 0xff && trace_id != [0; 16] && span_id != [0; 8];
        is_valid.then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags & SAMPLED != 0,
        })
    }

    /// Writes it as a `traceparent` of version 00.
    #[must_use]
    pub fn to_header(&self) -> [u8; LENGTH] {
        let mut header = *b"00-00000000000000000000000000000000-0000000000000000-00";
        hex::encode_to_slice(self.trace_id, &mut header[3..35]).expect("two digits a byte");
        hex::encode_to_slice(self.span_id, &mut header[36..52]).expect("two digits a byte");
        header[LENGTH - 1] |= u8::from(self.is_sampled);
        header
    }
}

/// Bytes of their hex digits in lower case.
fn digits<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    // `hex` takes upper case, too, which section 3.2 does not allow.
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let mut bytes = [0; N];
    let is_valid = text.iter().all(is_digit) && hex::decode_to_slice(text, &mut bytes).is_ok();
    is_valid.then_some(bytes)
}

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// The next of the numbers that ids are made of: a counter, hashed with a random key of the process, so that none can be
/// guessed from others. It costs no system call.
#[must_use]
pub fn next_id_number() -> u64 {
    KEY.hash_one(COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// A new id of a span.
#[must_use]
pub fn new_span_id() -> SpanId {
    loop {
        let id = next_id_number().to_be_bytes();
        if id != [0; 8] {
            return id;
        }
    }
}

/// A new id of a trace.
#[must_use]
pub fn new_trace_id() -> TraceId {
    let mut id = [0; 16];
    // This half is not 0, so neither is the id. The other half decides whether the trace is sampled.
    id[..8].copy_from_slice(&new_span_id());
    id[8..].copy_from_slice(&next_id_number().to_be_bytes());
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read_and_written() {
        let context = TraceContext::parse(TRACE.as_bytes()).unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.span_id[0], 0xb7);
        assert_eq!(context.to_header(), TRACE.as_bytes());
        let unsampled = TRACE.replace("-01", "-00");
        let context = TraceContext::parse(unsampled.as_bytes()).unwrap();
        assert!(!context.is_sampled);
        assert_eq!(context.to_header(), unsampled.as_bytes());
        let other_flags = TraceContext::parse(TRACE.replace("-01", "-fe").as_bytes());
        assert!(!other_flags.unwrap().is_sampled);
        for later in ["01", "cc", "fe"] {
            let later = TRACE.replacen("00", later, 1);
            for later in [
                later.clone(),
                format!("{later}-"),
                format!("{later}-what.is,new"),
            ] {
                let context = TraceContext::parse(later.as_bytes()).unwrap();
                assert_eq!(context.to_header(), TRACE.as_bytes(), "{later}");
            }
        }
    }

    #[test]
    fn a_malformed_traceparent_is_refused() {
        for bad in [
            "",
            "00",
            &TRACE[1..],
            &format!("{TRACE}-"),
            &format!("{TRACE}-x"),
            &format!("{TRACE}0").replacen("00", "01", 1),
            &format!("{TRACE}-x").replacen("00", "ff", 1),
            &TRACE.to_uppercase(),
            &TRACE.replacen("00", "ff", 1),
            &TRACE.replacen('-', "_", 1),
            &TRACE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &TRACE.replace("b7ad6b7169203331", &"0".repeat(16)),
            &TRACE.replace("-01", "-0x"),
        ] {
            assert_eq!(TraceContext::parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn ids_differ() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| new_span_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert_ne!(new_trace_id(), new_trace_id());
    }
}
