//! The heads of backends' responses: the scanner and the strict parser.

use signpost_proxy::measured::{BackendHead, MalformedResponse, ResponseBody, ResponseScanner};

use crate::naive::response::{self as naive, Body, Response};

/// The beginning of every acceptable head.
const BEGINNING: &[u8] = b"HTTP/1.";

/// Compares the head that `input` begins with, received at once and in pieces.
///
/// # Panics
///
/// When two results differ.
pub fn response(input: &[u8]) -> bool {
    let expected = naive::read(input);
    for piece in [input.len(), 1, 7, 64] {
        match (read(input, piece), &expected) {
            (Ok(Some(length)), Ok(Some(expected))) => assert_parts(&input[..length], expected),
            (Ok(None), Ok(None)) | (Err(_), Err(_)) => {}
            // The product may reject bytes that cannot become a head before the head is complete.
            (Err(_), Ok(None)) if !input.starts_with(BEGINNING) => {}
            (read, _) => panic!("in pieces of {piece}: {read:?} instead of {expected:?}"),
        }
    }
    matches!(expected, Ok(Some(_)))
}

/// Scans the received bytes after each piece, and parses the head once it is complete.
fn read(input: &[u8], piece: usize) -> Result<Option<usize>, MalformedResponse> {
    let mut scanner = ResponseScanner::default();
    for end in (0..input.len()).step_by(piece.max(1)).chain([input.len()]) {
        if let Some(length) = scanner.scan(&input[..end])? {
            return BackendHead::read(&input[..length]).map(|_| Some(length));
        }
    }
    Ok(None)
}

fn assert_parts(bytes: &[u8], expected: &Response<'_>) {
    let head = BackendHead::read(bytes).expect("it was read before");
    assert_eq!(bytes.len(), expected.length, "length");
    assert_eq!(head.status, expected.status, "status");
    assert_eq!(
        head.reason(bytes),
        expected.reason.unwrap_or_default(),
        "reason"
    );
    assert_eq!(
        head.fields(bytes).collect::<Vec<_>>(),
        expected.fields,
        "fields"
    );
    let body = match head.body {
        ResponseBody::None => Body::None,
        ResponseBody::Length(length) => Body::Length(length),
        ResponseBody::Chunked => Body::Chunked,
        ResponseBody::UntilClose => Body::UntilClose,
    };
    assert_eq!(body, expected.body, "framing");
    let may_be_kept = !expected.is_http_1_0 && body != Body::UntilClose;
    assert!(may_be_kept || !head.keeps_alive, "keep-alive");
}
