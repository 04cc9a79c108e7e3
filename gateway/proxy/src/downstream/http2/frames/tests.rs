//! Frames in pieces of any size: what is passed on, what waits, and what it costs.

use super::*;
use crate::downstream::http2::bounds::BUDGET;
use crate::downstream::http2::bounds::{PIECE_COST, REQUEST_COST, SMALL_PIECE_COST};

const LIMITS: HeadLimits = HeadLimits {
    bytes: 1024,
    headers: 10,
    query: 64,
};

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, kind, flags, stream, payload);
    bytes
}

/// The header block of a GET of `/` with a field of this name.
fn block(name: &str) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    [
        &[0x82, 0x86, 0x84, 0x01, 1, b'h', 0x40, length][..],
        name.as_bytes(),
        &[1, b'1'],
    ]
    .concat()
}

/// What becomes of the client's bytes, which arrive in pieces of this size.
fn passed(bytes: &[u8], size: usize) -> (Vec<u8>, Meter) {
    let (mut frames, meter, mut out) = (Frames::new(&LIMITS), Meter::default(), Vec::new());
    for piece in [PREFACE, bytes].concat().chunks(size) {
        take(&mut frames, piece, &meter, &mut out);
    }
    assert!(out.starts_with(PREFACE));
    out.drain(..PREFACE.len());
    (out, meter)
}

fn take(frames: &mut Frames, bytes: &[u8], meter: &Meter, out: &mut Vec<u8>) {
    frames.take(bytes, &mut To { meter, out });
}

#[test]
fn heads_wait_and_all_else_is_passed_on() {
    let end = flag::END_STREAM | flag::END_HEADERS;
    let padded = [&[2][..], &[0, 0, 0, 0, 9], &block("x-b"), &[0, 0]].concat();
    let split = block("x-c");
    let settings = frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]);
    let data = frame(kind::DATA, 0, 3, &[1; 3000]);
    let bytes = [
        settings.clone(),
        frame(kind::HEADERS, end, 1, &block("x-a")),
        frame(
            kind::HEADERS,
            flag::END_HEADERS | flag::PADDED | flag::PRIORITY,
            3,
            &padded,
        ),
        data.clone(),
        frame(kind::HEADERS, end, 3, &[0xbe]),
        frame(kind::HEADERS, flag::END_STREAM, 7, &split[..7]),
        frame(kind::CONTINUATION, 0, 7, &[]),
        frame(kind::CONTINUATION, 0, 7, &split[7..9]),
        frame(kind::CONTINUATION, flag::END_HEADERS, 7, &split[9..]),
        frame(0xfa, 0xff, 9, b"unknown"),
    ]
    .concat();
    let expected = [
        settings,
        frame(kind::HEADERS, end, 1, &FIXED_BLOCK),
        frame(kind::HEADERS, flag::END_HEADERS, 3, &FIXED_BLOCK),
        data,
        frame(kind::DATA, flag::END_STREAM, 3, b""),
        frame(kind::HEADERS, end, 7, &FIXED_BLOCK),
        frame(0xfa, 0xff, 9, b"unknown"),
    ]
    .concat();
    for size in [1, 2, 8, 9, 10, 4096, bytes.len() + 100] {
        let (out, meter) = passed(&bytes, size);
        assert_eq!(out, expected, "{size}");
        assert_eq!(
            (meter.failure(), meter.unfinished_head().is_some()),
            (None, false)
        );
        for (stream, name, is_post) in [(1, "x-a", false), (3, "x-b", true), (7, "x-c", false)] {
            let head = meter.take_head(stream).unwrap();
            let head = head.judge(&LIMITS).map_err(|(_, written)| written);
            let written = head.unwrap().0.into_bytes();
            let written = String::from_utf8(written).unwrap();
            assert!(written.contains(&format!("\r\n{name}: 1\r\n")), "{written}");
            assert_eq!(written.contains("chunked"), is_post);
        }
    }
}

#[test]
fn the_cost_does_not_depend_on_the_pieces() {
    let frames = [
        (kind::SETTINGS, 12, 21),
        (kind::DATA, 16_384, PIECE_COST),
        (kind::DATA, 0, SMALL_PIECE_COST),
        (kind::PING, 8, 17),
        (3, 4, 13),
        (0xfa, 70_000, 70_009),
    ];
    let mut bytes = Vec::new();
    let mut cost = 0;
    for (kind, length, frame_cost) in frames {
        bytes.extend(frame(kind, 0, 1, &vec![6; length]));
        cost += frame_cost;
    }
    bytes.extend(frame(kind::HEADERS, 0, 1, &[]));
    bytes.extend(frame(kind::CONTINUATION, 0, 1, &[]));
    cost += REQUEST_COST + PIECE_COST;
    for size in [1, 2, 8, 9, 10, 4096, bytes.len() + 100] {
        let (_, meter) = passed(&bytes, size);
        meter.credit(cost - BUDGET - 1);
        assert!(meter.is_over(), "{size}");
        meter.credit(1);
        assert!(!meter.is_over(), "{size}");
    }
}

#[test]
fn errors_of_the_connection_end_it() {
    let begun = frame(kind::HEADERS, 0, 1, &[0x82]);
    for (bytes, reason) in [
        (
            frame(kind::HEADERS, flag::END_HEADERS, 1, &[0xbe]),
            Reason::COMPRESSION_ERROR,
        ),
        (
            frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x82, 0x40]),
            Reason::COMPRESSION_ERROR,
        ),
        (
            [begun.clone(), frame(kind::DATA, 0, 1, b"")].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        (
            [begun.clone(), frame(kind::CONTINUATION, 0, 3, b"")].concat(),
            Reason::PROTOCOL_ERROR,
        ),
        ([begun.clone(), begun].concat(), Reason::PROTOCOL_ERROR),
        (
            frame(
                kind::HEADERS,
                flag::END_HEADERS | flag::PADDED,
                1,
                &[9, 0x82],
            ),
            Reason::PROTOCOL_ERROR,
        ),
        (
            frame(kind::HEADERS, flag::END_HEADERS | flag::PADDED, 1, &[]),
            Reason::FRAME_SIZE_ERROR,
        ),
        (
            frame(
                kind::HEADERS,
                flag::END_HEADERS | flag::PRIORITY,
                1,
                &[0; 4],
            ),
            Reason::FRAME_SIZE_ERROR,
        ),
    ] {
        let (_, meter) = passed(&bytes, 4096);
        assert_eq!(meter.failure(), Some(reason), "{bytes:?}");
    }
}

#[test]
fn a_head_without_end_is_rejected_and_its_rest_dropped() {
    let (mut frames, meter, mut out) = (Frames::new(&LIMITS), Meter::default(), Vec::new());
    take(&mut frames, PREFACE, &meter, &mut out);
    take(
        &mut frames,
        &frame(kind::HEADERS, 0, 1, &block("x-a")),
        &meter,
        &mut out,
    );
    assert!(meter.unfinished_head().is_some());
    out.clear();
    let field = [
        &[0, 1, b'a', 0x7f, 0x80, 0x7f][..],
        &[b'v'; 127 + 127 * 128],
    ]
    .concat();
    let mut sent = 0;
    while !meter.is_closing() {
        take(
            &mut frames,
            &frame(kind::CONTINUATION, 0, 1, &field[..16_000]),
            &meter,
            &mut out,
        );
        sent += 16_000;
        assert!(sent < 10 * max_list(&LIMITS), "no end");
    }
    assert_eq!(
        out,
        frame(kind::HEADERS, flag::END_HEADERS, 1, &FIXED_BLOCK)
    );
    let (fault, _) = meter.take_head(1).unwrap().judge(&LIMITS).unwrap_err();
    assert_eq!(fault, StreamFault::Head(HeadFault::TooLarge));
    assert!(meter.unfinished_head().is_none());
    // Further frames are dropped: of this head, of new streams, and of no stream. Frames of streams in flight are not.
    out.clear();
    for dropped in [
        frame(kind::CONTINUATION, flag::END_HEADERS, 1, &field[..9]),
        frame(kind::HEADERS, flag::END_HEADERS, 3, &block("x-a")),
        frame(kind::DATA, 0, 3, b"a"),
        frame(3, 0, 3, &[0; 4]),
        frame(kind::PING, 0, 0, &[0; 8]),
        frame(kind::SETTINGS, 0, 0, &[]),
    ] {
        take(&mut frames, &dropped, &meter, &mut out);
        assert_eq!((out.len(), meter.failure()), (0, None), "{dropped:?}");
    }
    for passed in [
        frame(kind::DATA, 0, 1, b"a"),
        frame(kind::WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]),
        frame(kind::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]),
        frame(kind::PING, flag::ACK, 0, &[0; 8]),
    ] {
        out.clear();
        take(&mut frames, &passed, &meter, &mut out);
        assert_eq!(out, passed);
    }
}

#[test]
fn a_head_of_references_is_rejected_and_its_body_follows() {
    let (mut frames, meter, mut out) = (Frames::new(&LIMITS), Meter::default(), Vec::new());
    take(&mut frames, PREFACE, &meter, &mut out);
    // An authority of 3,000 bytes, which becomes entry 62, and is referred to as the same `host` again and again.
    let authority = [&[0x41, 0x7f, 0xb9, 0x16][..], &[b'a'; 3000]].concat();
    let host = [&[0x66, 0x7f, 0xb9, 0x16][..], &[b'a'; 3000]].concat();
    let block = [&[0x82, 0x86, 0x84][..], &authority, &host, &[0xbe; 100]].concat();
    out.clear();
    take(
        &mut frames,
        &frame(kind::HEADERS, flag::END_HEADERS, 1, &block),
        &meter,
        &mut out,
    );
    let data = frame(kind::DATA, flag::END_STREAM, 1, b"a=1");
    take(&mut frames, &data, &meter, &mut out);
    let head = frame(kind::HEADERS, flag::END_HEADERS, 1, &FIXED_BLOCK);
    assert_eq!(out, [head, data].concat());
    let (fault, _) = meter.take_head(1).unwrap().judge(&LIMITS).unwrap_err();
    assert_eq!(fault, StreamFault::Head(HeadFault::TooLarge));
    assert!(meter.is_closing());
}

#[test]
fn empty_data_is_dropped_unless_it_ends_its_stream() {
    let end = flag::END_HEADERS;
    let head = frame(kind::HEADERS, end, 1, &block("x-a"));
    let ending = frame(kind::DATA, flag::END_STREAM, 1, b"");
    let bytes = [
        head,
        frame(kind::DATA, 0, 1, b"").repeat(200),
        ending.clone(),
    ]
    .concat();
    let (out, _) = passed(&bytes, 4096);
    assert_eq!(
        out,
        [frame(kind::HEADERS, end, 1, &FIXED_BLOCK), ending].concat()
    );
}

#[test]
fn waiting_heads_are_limited() {
    let (mut frames, meter, mut out) = (Frames::new(&LIMITS), Meter::default(), Vec::new());
    take(&mut frames, PREFACE, &meter, &mut out);
    let end = flag::END_STREAM | flag::END_HEADERS;
    for number in 0..500 {
        take(
            &mut frames,
            &frame(kind::HEADERS, end, 2 * number + 1, &block("x-a")),
            &meter,
            &mut out,
        );
    }
    let waiting = (0..500).filter(|number| meter.take_head(2 * number + 1).is_some());
    assert_eq!(waiting.count(), 100);
}
