//! A connection of HTTP/2: its frames, its header blocks and the heads of its requests.

use signpost_proxy::measured::{BodyLength, Frames, HeadLimits, Meter, To};

use crate::naive::{
    head::{Framing, Limits},
    http2::{self as naive, COMPRESSION_ERROR},
};

const LIMITS: HeadLimits = HeadLimits {
    bytes: 1024,
    headers: 20,
    query: 64,
};
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The header list at which the gateway closes a connection: four times what it announces.
const MAX_LIST: usize = 4 * (LIMITS.bytes + 32 * LIMITS.headers + 16 * 1024);
/// Below that list, so that no field in many frames is larger.
const MAX_INPUT: usize = 8 * 1024;
/// Open streams: nobody takes heads up here.
const MAX_STREAMS: usize = 100;

/// Compares what a connection brings behind its preface, received in pieces.
///
/// # Panics
///
/// When two results differ.
pub fn http2(input: &[u8]) -> bool {
    let input = &input[..input.len().min(MAX_INPUT)];
    let limits = Limits {
        bytes: LIMITS.bytes,
        fields: LIMITS.headers,
        query: LIMITS.query,
    };
    let expected = naive::read(input, &limits, MAX_LIST);
    if expected.heads.len() > MAX_STREAMS {
        return false;
    }
    for piece in [input.len(), 64, 7, 1] {
        let (passed, meter) = read(input, piece);
        let failure = meter.failure().map(u32::from);
        let failures = [failure, expected.failure];
        // An invalid field may be found before or behind another fault of the same block.
        let is_early = expected.is_in_block && failures.contains(&Some(COMPRESSION_ERROR));
        if is_early {
            assert!(passed.starts_with(&expected.passed) || expected.passed.starts_with(&passed));
        } else if expected.is_closed {
            assert!(meter.is_closing(), "in pieces of {piece}");
            assert!(passed.starts_with(&expected.passed), "passed on");
        } else {
            assert_eq!(failure, expected.failure, "in pieces of {piece}");
            assert_eq!(passed, expected.passed, "passed on, in pieces of {piece}");
        }
        for (stream, head) in &expected.heads {
            let found = meter.take_head(*stream).expect("the head was received");
            let found = found.judge(&LIMITS).ok().map(|(head, body)| {
                let framing = match body {
                    BodyLength::None => Framing::None,
                    BodyLength::Known(length) => Framing::Length(length),
                    BodyLength::Unknown => Framing::Chunked,
                };
                (head.into_bytes(), framing)
            });
            assert_eq!(found, *head, "stream {stream}, in pieces of {piece}");
        }
    }
    let is_whole = expected.failure.is_none() && !expected.is_in_block && !expected.is_closed;
    is_whole && !expected.heads.is_empty() && expected.heads.iter().all(|(_, head)| head.is_some())
}

fn read(input: &[u8], piece: usize) -> (Vec<u8>, Meter) {
    let (mut frames, meter, mut out) = (Frames::new(&LIMITS), Meter::default(), Vec::new());
    for bytes in [PREFACE].into_iter().chain(input.chunks(piece.max(1))) {
        // The connection reads no more behind an error.
        if meter.failure().is_none() {
            frames.take(
                bytes,
                &mut To {
                    meter: &meter,
                    out: &mut out,
                },
            );
        }
    }
    (out.split_off(PREFACE.len()), meter)
}
