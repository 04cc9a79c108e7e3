//! Fuzz targets: the parsers that face the network, compared with naive ones.
//!
//! A target parses any bytes with the product's parser and with the one in [`naive`], and panics if the results
//! differ. Three callers use the targets: libFuzzer (`scripts/fuzz`), the seed corpus (`tests/replay.rs`) and the
//! generators of `tests/properties`. The folder's README lists them.

mod bridge;
mod canonical;
mod chunked;
mod contracts;
mod head;
mod http2;
pub mod naive;
mod openid;
mod params;
mod pasted;
mod placed;
mod proxy;
mod response;
mod signed;
mod spooled;

pub use self::{
    bridge::bridge, canonical::canonical, chunked::chunked, contracts::contracts, head::head,
    http2::http2, openid::openid, params::params, pasted::pasted, placed::placed, proxy::proxy,
    response::response, signed::signed, spooled::spooled,
};

/// Parses an input with both parsers, panics if the results differ, and returns whether the input is valid.
pub type Target = fn(&[u8]) -> bool;

/// Every target by name. Its corpus folder has the same name.
pub const TARGETS: [(&str, Target); 14] = [
    ("head", head),
    ("chunked", chunked),
    ("params", params),
    ("canonical", canonical),
    ("response", response),
    ("bridge", bridge),
    ("openid", openid),
    ("http2", http2),
    ("proxy", proxy),
    ("pasted", pasted),
    ("signed", signed),
    ("placed", placed),
    ("contracts", contracts),
    ("spooled", spooled),
];

/// Splits an input into its first line, often a query, and the rest, often a body.
fn query_and_body(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, b""),
    }
}
