//! Malformed frames, and streams in a wrong state.

use end_to_end::raw_http2::{
    END_HEADERS, END_STREAM, PADDED, PREFACE, block, fields, frame, get, headers, kind,
};

use super::{
    Expected::{Ends, Resets},
    check, data, post,
};

#[tokio::test]
async fn malformed_frames_end_the_connection() {
    let zero = [0; 4];
    let part = block(&fields("GET", "/x", &[]));
    let open = |flags| frame(kind::HEADERS, flags, 1, &part);
    let settings = |payload: &[u8]| frame(kind::SETTINGS, 0, 0, payload);
    check(vec![
        (
            "a frame longer than allowed",
            frame(kind::DATA, 0, 1, &[0; 16_385]),
            Ends,
        ),
        ("DATA of the connection", data(0, 0, b"a"), Ends),
        ("DATA of an idle stream", data(0, 1, b"a"), Ends),
        (
            "HEADERS of the connection",
            headers(0, END_STREAM, &fields("GET", "/x", &[])),
            Ends,
        ),
        ("HEADERS of an even stream", get(2, "/x"), Ends),
        (
            "HEADERS with more padding than bytes",
            frame(kind::HEADERS, PADDED | END_HEADERS, 1, &[9, 0x82]),
            Ends,
        ),
        (
            "DATA with more padding than bytes",
            [post(&[]), data(PADDED, 1, &[9, 1])].concat(),
            Ends,
        ),
        (
            "a stream before the last one",
            [get(3, "/y?a=%zz"), get(1, "/x?a=%zz")].concat(),
            Resets,
        ),
        (
            "PRIORITY of the connection",
            frame(kind::PRIORITY, 0, 0, &[0; 5]),
            Ends,
        ),
        (
            "PRIORITY of another length",
            frame(kind::PRIORITY, 0, 1, &zero),
            Resets,
        ),
        (
            "PRIORITY that depends on itself",
            frame(kind::PRIORITY, 0, 1, &[0, 0, 0, 1, 0]),
            Resets,
        ),
        (
            "RST_STREAM of an idle stream",
            frame(kind::RST_STREAM, 0, 1, &zero),
            Ends,
        ),
        (
            "RST_STREAM of the connection",
            frame(kind::RST_STREAM, 0, 0, &zero),
            Ends,
        ),
        (
            "RST_STREAM of another length",
            frame(kind::RST_STREAM, 0, 1, &[0; 3]),
            Ends,
        ),
        (
            "SETTINGS of a stream",
            frame(kind::SETTINGS, 0, 1, &[]),
            Ends,
        ),
        ("SETTINGS of another length", settings(&[0; 5]), Ends),
        (
            "acknowledged SETTINGS with a payload",
            frame(kind::SETTINGS, 1, 0, &[0; 6]),
            Ends,
        ),
        ("ENABLE_PUSH 2", settings(&[0, 2, 0, 0, 0, 2]), Ends),
        (
            "INITIAL_WINDOW_SIZE of 2^31",
            settings(&[0, 4, 0x80, 0, 0, 0]),
            Ends,
        ),
        ("MAX_FRAME_SIZE of 1", settings(&[0, 5, 0, 0, 0, 1]), Ends),
        (
            "PUSH_PROMISE",
            frame(kind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
            Ends,
        ),
        ("PING of a stream", frame(kind::PING, 0, 1, &[0; 8]), Ends),
        (
            "PING of another length",
            frame(kind::PING, 0, 0, &[0; 7]),
            Ends,
        ),
        (
            "GOAWAY of a stream",
            frame(kind::GOAWAY, 0, 1, &[0; 8]),
            Ends,
        ),
        (
            "WINDOW_UPDATE of 0",
            frame(kind::WINDOW_UPDATE, 0, 0, &zero),
            Ends,
        ),
        (
            "WINDOW_UPDATE of another length",
            frame(kind::WINDOW_UPDATE, 0, 0, &[1; 3]),
            Ends,
        ),
        (
            "WINDOW_UPDATE of an idle stream",
            frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
            Ends,
        ),
        (
            "WINDOW_UPDATE beyond the largest window",
            frame(kind::WINDOW_UPDATE, 0, 0, &[0x7f, 255, 255, 255]),
            Ends,
        ),
        (
            "WINDOW_UPDATE of 0 for a stream",
            [post(&[]), frame(kind::WINDOW_UPDATE, 0, 1, &zero)].concat(),
            Resets,
        ),
        (
            "CONTINUATION alone",
            frame(kind::CONTINUATION, END_HEADERS, 1, &part),
            Ends,
        ),
        (
            "CONTINUATION after the end",
            [post(&[]), frame(kind::CONTINUATION, END_HEADERS, 1, &part)].concat(),
            Ends,
        ),
        (
            "another frame before CONTINUATION",
            [open(END_STREAM), frame(kind::PING, 0, 0, &[0; 8])].concat(),
            Ends,
        ),
        (
            "CONTINUATION of another stream",
            [
                open(END_STREAM),
                frame(kind::CONTINUATION, END_HEADERS, 3, &[]),
            ]
            .concat(),
            Ends,
        ),
        (
            "an unknown frame before CONTINUATION",
            [open(END_STREAM), frame(kind::UNKNOWN, 0, 1, &[])].concat(),
            Ends,
        ),
        (
            "entry 0 of the table",
            frame(kind::HEADERS, END_STREAM | END_HEADERS, 1, &[0x80]),
            Ends,
        ),
        (
            "an entry that does not exist",
            frame(kind::HEADERS, END_STREAM | END_HEADERS, 1, &[0xff, 0x40]),
            Ends,
        ),
        (
            "a block that breaks off",
            frame(
                kind::HEADERS,
                END_STREAM | END_HEADERS,
                1,
                &part[..part.len() - 1],
            ),
            Ends,
        ),
        (
            "a table beyond the limit",
            frame(
                kind::HEADERS,
                END_STREAM | END_HEADERS,
                1,
                &[0x3f, 0xff, 0xff, 0x03, 0x82],
            ),
            Ends,
        ),
        ("a preface twice", PREFACE.to_vec(), Ends),
    ])
    .await;
}
