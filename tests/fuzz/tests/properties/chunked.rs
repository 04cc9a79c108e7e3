//! Chunked bodies.

use proptest::{collection::vec, prelude::*};

use super::{Inputs, check, damage::damaged, heads::FIELD, text};

const TOKENS: &[&[u8]] = &[
    b"\r\n",
    b"\n",
    b"\r",
    b";",
    b"0",
    b"00000000",
    b"0\r\n\r\n",
    b" ",
    b"\0",
    b"-",
    b"+",
    b"0x",
    b"T: u\r\n",
    b":",
];

fn extension() -> Inputs {
    prop_oneof![
        3 => Just(Vec::new()),
        1 => text(r#"(;[ \t]?[a-z]{1,5}(=("[ -~]{0,9}"|[a-z0-9]{1,5}))?){1,3}"#),
    ]
    .boxed()
}

fn chunk() -> Inputs {
    let data = vec(any::<u8>(), 1..80);
    (data, extension(), text("0{0,4}"), any::<bool>())
        .prop_map(|(data, extension, zeros, is_upper_case)| {
            let size = if is_upper_case {
                format!("{:X}", data.len())
            } else {
                format!("{:x}", data.len())
            };
            [
                &zeros[..],
                size.as_bytes(),
                &extension,
                b"\r\n",
                &data,
                b"\r\n",
            ]
            .concat()
        })
        .boxed()
}

fn bodies() -> Inputs {
    let trailers = prop_oneof![3 => vec(text(FIELD), 0..3), 1 => vec(text(FIELD), 14..19)];
    let parts = (
        vec(chunk(), 0..5),
        text("0{1,8}"),
        extension(),
        trailers,
        text(r"[A-Z /\r\n]{0,9}"),
    );
    parts
        .prop_map(|(chunks, last, extension, trailers, rest)| {
            let (chunks, trailers) = (chunks.concat(), trailers.concat());
            [
                &chunks[..],
                &last,
                &extension,
                b"\r\n",
                &trailers,
                b"\r\n",
                &rest,
            ]
            .concat()
        })
        .boxed()
}

#[test]
fn chunked_bodies_are_decoded_by_the_grammar() {
    check(fuzz::chunked, damaged(bodies(), TOKENS), 3_000, 40..=75);
}
