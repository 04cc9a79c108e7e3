//! Fuzz targets: the parsers that face the network, compared with naive ones.
//!
//! A target takes any bytes, reads them with the product's parser and with the one in [`naive`], and panics where the
//! two differ. Three callers drive the targets: libFuzzer (`scripts/fuzz`), the seed corpus (`tests/replay.rs`) and
//! the generators of `tests/properties`.
//!
//! | target | product code | input |
//! | --- | --- | --- |
//! | [`head()`] | `gateway`: request heads | a head, and whatever follows |
//! | [`chunked()`] | `gateway`: chunked bodies | a body, and whatever follows |
//! | [`params()`] | `gateway_protocol::param` | a line with the query, then the form body |
//! | [`canonical()`] | `gateway_protocol::sign` | a line with the sign profile, then as for `params` |
//! | [`answer()`] | `gateway`: heads of backends' answers | an answer's head, and whatever follows |

mod answer;
mod canonical;
mod chunked;
mod head;
pub mod naive;
mod params;

pub use self::{
    answer::answer, canonical::canonical, chunked::chunked, head::head, params::params,
};

/// Reads an input both ways, panics where the two differ, and returns whether the input is valid.
pub type Target = fn(&[u8]) -> bool;

/// Every target by its name, which is also that of its corpus folder and of its program (`fuzz-NAME`).
pub const TARGETS: [(&str, Target); 5] = [
    ("head", head),
    ("chunked", chunked),
    ("params", params),
    ("canonical", canonical),
    ("answer", answer),
];

/// The query and the body of an input: its first line, and what follows.
fn query_and_body(input: &[u8]) -> (&[u8], &[u8]) {
    match input.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, b""),
    }
}
