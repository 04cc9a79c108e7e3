//! Malformed frames and heads, and streams in a wrong state: the cases of RFC 9113 that matter, each on a connection of
//! its own. None reaches the backend unless the table says so.

mod frames;
mod heads;

use end_to_end::raw_http2::{END_STREAM, RawHttp2, Reaction, fields, frame, headers, kind};

use super::stack;

/// The expected reaction.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// The connection ends with an error.
    Ends,
    /// The stream ends with an error, or the whole connection.
    Resets,
    /// 400 without a problem code.
    Bare,
    /// A rejection with this code.
    Rejects(u16, &'static str),
    /// The backend gets the request.
    Passes,
}

use Expected::{Bare, Ends, Passes, Rejects, Resets};

type Case = (&'static str, Vec<u8>, Expected);

/// An error code of the connection or the stream; all but `NO_ERROR`.
fn is_expected(reaction: &Reaction, expected: Expected) -> bool {
    match (expected, reaction) {
        (Ends, Reaction::Goaway(_) | Reaction::Closed)
        | (Resets, Reaction::Goaway(_) | Reaction::Closed) => true,
        (Resets, Reaction::Reset(code)) => *code != 0,
        (Bare, Reaction::Response(400, None)) | (Passes, Reaction::Response(200, None)) => true,
        (Rejects(status, code), Reaction::Response(found, Some(reason))) => {
            *found == status && reason == code
        }
        _ => false,
    }
}

async fn check(cases: Vec<Case>) {
    let (stack, backend) = stack("").await;
    let mut wrong = Vec::new();
    let mut passed = 0;
    for (name, bytes, expected) in cases {
        let mut connection = RawHttp2::open(stack.addresses().gateway).await;
        connection.send(&bytes).await;
        let reaction = connection.reaction(1).await;
        if !is_expected(&reaction, expected) {
            wrong.push(format!("{name}: {reaction:?} instead of {expected:?}"));
        }
        passed += usize::from(matches!(expected, Passes));
        let arrived = backend.recorded().len();
        if arrived != passed {
            wrong.push(format!(
                "{name}: {arrived} instead of {passed} requests arrived"
            ));
            passed = arrived;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(stack.client().get("/x").send().await.status, 200);
}

/// A GET of `/x` with further fields.
fn with(further: &[(&[u8], &[u8])]) -> Vec<u8> {
    headers(1, END_STREAM, &fields("GET", "/x", further))
}

/// A GET with these fields, pseudo-header fields included.
fn only(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    headers(1, END_STREAM, fields)
}

/// The head of a POST whose body follows.
fn post(further: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut all: Vec<(&[u8], &[u8])> =
        vec![(b"content-type", b"application/x-www-form-urlencoded")];
    all.extend_from_slice(further);
    headers(1, 0, &fields("POST", "/x", &all))
}

fn data(flags: u8, stream: u32, bytes: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, bytes)
}
