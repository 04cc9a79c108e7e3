//! Connections: the seeds of HTTP/2 and of the PROXY protocol, damaged.

use std::{fs, path::Path};

use proptest::{prelude::*, sample::select};

use super::{Inputs, check, damage::damaged};

const TOKENS: &[&[u8]] = &[
    b"\x20",
    b"\x3f",
    b"\x82",
    b"\x87",
    b"\xbe",
    b"\xc0",
    b"\x5c",
    b"\0\0\0",
    b"\0\0\x01",
    b"\x04",
    b"\xff",
    b"\r\n",
    b" ",
    b"01",
    b":",
    b"TCP6",
];

/// Two seeds, the second one behind the first one.
fn seeds(target: &str) -> Inputs {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let entries = fs::read_dir(folder).expect("the target has seeds");
    let mut seeds: Vec<_> = entries
        .flatten()
        .flat_map(|entry| fs::read(entry.path()))
        .collect();
    seeds.sort();
    let two = (select(seeds.clone()), select(seeds));
    two.prop_map(|(first, second)| [first, second].concat())
        .boxed()
}

#[test]
fn frames_and_header_blocks_are_read_by_the_rfcs() {
    check(fuzz::http2, damaged(seeds("http2"), TOKENS), 5_000, 5..=30);
}

#[test]
fn headers_of_the_proxy_protocol_are_read_by_its_specification() {
    check(fuzz::proxy, damaged(seeds("proxy"), TOKENS), 2_000, 25..=70);
}
