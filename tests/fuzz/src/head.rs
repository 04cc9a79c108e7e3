//! Request heads: the scanner and the strict parser.

use signpost_proxy::measured::{
    BodyLength, HeadFault, HeadLimits, Headers, RawHeaders, ReadHead, RequestScanner,
    peek_request_line, read_head,
};

use crate::naive::head as naive;

/// Small limits, so that inputs exceed them.
const LIMITS: HeadLimits = HeadLimits {
    bytes: 1024,
    headers: 20,
    query: 64,
};
/// Limits for long inputs: the largest that a configuration may set.
const LARGE_LIMITS: HeadLimits = HeadLimits {
    bytes: HeadLimits::MAX_BYTES,
    headers: 10_000,
    query: HeadLimits::MAX_BYTES,
};
const LARGE_INPUT: usize = 4 * LIMITS.bytes;

/// Compares the head that `input` begins with, received at once and in pieces.
///
/// # Panics
///
/// When two results differ.
pub fn head(input: &[u8]) -> bool {
    let limits = if input.len() > LARGE_INPUT {
        LARGE_LIMITS
    } else {
        LIMITS
    };
    let expected = naive::read(
        input,
        &naive::Limits {
            bytes: limits.bytes,
            fields: limits.headers,
            query: limits.query,
        },
    );
    for piece in [input.len(), 1, 7, 64] {
        match (read(input, piece, &limits), &expected) {
            (Ok(Some(read)), Ok(Some(expected))) => assert_parts(&read, expected, input),
            (Ok(None), Ok(None)) => {}
            // If the limit is exceeded, the pieces decide which of several faults is found first.
            (Err(fault), Err(expected)) if input.len() <= limits.bytes => {
                assert_eq!(class(fault), *expected, "{fault}, in pieces of {piece}");
            }
            (Err(_), Err(_)) => {}
            (read, _) => panic!(
                "in pieces of {piece}: {:?} instead of {expected:?}",
                read.map(|head| head.is_some())
            ),
        }
    }
    matches!(expected, Ok(Some(_)))
}

/// Scans the received bytes after each piece, as a connection does, and parses the head once it is complete.
fn read(input: &[u8], piece: usize, limits: &HeadLimits) -> Result<Option<ReadHead>, HeadFault> {
    let mut scanner = RequestScanner::default();
    for end in (0..input.len()).step_by(piece.max(1)).chain([input.len()]) {
        if let Some(length) = scanner.scan(&input[..end], limits)? {
            let read = read_head(input[..length].to_vec(), limits);
            return read.map(Some).map_err(|(fault, _)| fault);
        }
    }
    Ok(None)
}

fn class(fault: HeadFault) -> naive::Fault {
    match fault {
        HeadFault::NotHttp(_) => naive::Fault::NotHttp,
        HeadFault::TooLarge => naive::Fault::TooLarge,
        HeadFault::QueryTooLong => naive::Fault::QueryTooLong,
        HeadFault::Target => naive::Fault::Target,
        HeadFault::Query => naive::Fault::Query,
    }
}

fn assert_parts(read: &ReadHead, expected: &naive::Head<'_>, input: &[u8]) {
    let head = &read.head;
    assert_eq!(head.method(), expected.method, "method");
    assert!(
        expected.request_line.starts_with(head.method_and_target()),
        "request line"
    );
    assert_eq!(head.target().path.as_bytes(), expected.path, "path");
    assert_eq!(head.target().query.as_bytes(), expected.query, "query");
    assert_eq!(head.host(), expected.host, "Host");
    assert_eq!(read.is_http_1_0, expected.is_http_1_0, "version");
    let framing = match head.body() {
        BodyLength::None => naive::Framing::None,
        BodyLength::Known(length) => naive::Framing::Length(length),
        BodyLength::Unknown => naive::Framing::Chunked,
    };
    assert_eq!(framing, expected.framing, "framing");
    assert_eq!(read.is_last, expected.is_last, "last request");
    assert_eq!(head.each().collect::<Vec<_>>(), expected.fields, "fields");
    let indexes: Vec<u16> = (0..=u16::MAX)
        .zip(&expected.fields)
        .map(|(index, _)| index)
        .collect();
    assert_eq!(
        head.at(&indexes).collect::<Vec<_>>(),
        expected.fields,
        "fields by index"
    );

    // The readers for logs and error responses, which also accept rejected heads, agree on a valid one.
    let raw = RawHeaders(&input[..expected.length]);
    assert_eq!(
        raw.each().collect::<Vec<_>>(),
        expected.fields,
        "raw fields"
    );
    let line = peek_request_line(input).expect("the request line is valid");
    assert_eq!(line.method, expected.method, "method for the log");
    let (path, query) = (line.target.strip_prefix(expected.path), expected.query);
    let rest = path.expect("the target begins with the path");
    assert!(
        rest.is_empty() || rest == [b"?", query].concat(),
        "target for the log"
    );
}
