//! Queries and form bodies: their parameters, and their signatures.

use proptest::{collection::vec, prelude::*, sample::select};

use super::{Inputs, check, damage::damaged, text};

const TOKENS: &[&[u8]] = &[
    b"&",
    b"=",
    b"+",
    b"%",
    b"%4",
    b"%zz",
    b"%ff",
    b"%00",
    b"%2B",
    b"%26",
    b"%3d",
    b"\xe5",
    b"%e5%bc",
    b"%ED%A0%80",
    b"\xff",
    b"\n",
    b"&sign=1",
    b"&%73ign=2",
];

const SEPARATORS: &[&[u8]] = &[b"&", b"&", b"&", b"&&"];

/// Many keys have the same first eight bytes, which the product compares first.
fn key() -> Inputs {
    prop_oneof![
        text("time|sign|%73ign|signs?_?t?"),
        text("abcdef(g|gh|gi|%67)?(i|%69|%00)?[a-c]?"),
        text("a[+ ]b|a%20b|(張|%e5%bc%a0)[0-9]?"),
        text("[a-z]{0,9}|[!-$'-*,-<>-~]{0,3}")
            .prop_filter("its escapes are complete", |key| has_complete_escapes(key)),
    ]
    .boxed()
}

fn value() -> Inputs {
    prop_oneof![
        6 => text("([a-zA-Z0-9=!,*$/?@.~_+-]|%2B|%26|%3[dD]|%00|%e5%bc%a0|%F0%9F%98%80|張|é|😀){0,12}"),
        // Longer than what is decoded in one step.
        1 => text("([a-z]|%C3%A9|%F0%9F%98%80|é){100,140}"),
        1 => text("[0-9]{9,21}|[0-9a-fA-F]{32}|[0-9a-f]{64}|[0-9a-g]{32}"),
    ]
    .boxed()
}

fn form() -> Inputs {
    let pair = (key(), value()).prop_map(|(key, value)| [key, b"=".to_vec(), value].concat());
    let pair = prop_oneof![7 => pair, 1 => key()];
    let separator = select(SEPARATORS);
    vec((pair, separator), 0..20)
        .prop_map(|pairs| {
            let parts = pairs
                .iter()
                .flat_map(|(pair, separator)| [&pair[..], separator]);
            parts.collect::<Vec<_>>().concat()
        })
        .boxed()
}

fn has_complete_escapes(text: &[u8]) -> bool {
    let after_percent_signs = text.split(|&byte| byte == b'%').skip(1);
    let is_escape = |rest: &[u8]| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit);
    after_percent_signs.into_iter().all(is_escape)
}

/// A line with the query, then the body.
fn requests() -> Inputs {
    let requests = (form(), form());
    requests
        .prop_map(|(query, body)| [query, b"\n".to_vec(), body].concat())
        .boxed()
}

#[test]
fn parameters_are_parsed_by_the_contract() {
    check(fuzz::params, damaged(requests(), TOKENS), 600, 50..=85);
}

#[test]
fn requests_are_signed_by_the_contract() {
    let profiles = text("[01][0-3][01][01][01][0-3]\n");
    let requests = (profiles, damaged(requests(), TOKENS));
    let requests = requests.prop_map(|(profile, request)| [profile, request].concat());
    check(fuzz::canonical, requests.boxed(), 600, 50..=85);
}
