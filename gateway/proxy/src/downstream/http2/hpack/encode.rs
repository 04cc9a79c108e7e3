//! HPACK, the encoding side: RFC 7541. Names and values are written as they are, and the connection's table stays empty: that
//! takes a fraction of the time, and no response can be guessed from the length of another one.

use super::table::{static_index, static_status};
use crate::downstream::http1::response::digits;

/// Bits of an integer in a string's first byte, of an entry's index, and of a name's index. Sections 5.2, 6.1 and 6.2.2.
const LENGTH_BITS: u32 = 7;
const ENTRY_BITS: u32 = 7;
const NAME_BITS: u32 = 4;

/// Appends `:status`.
pub(crate) fn put_status(block: &mut Vec<u8>, status: u16) {
    let mut space = [0; 20];
    let digits = digits(&mut space, status.into());
    match static_status(digits) {
        Some(index) => put_integer(block, 0x80, ENTRY_BITS, index),
        None => put_field(block, b":status", digits),
    }
}

/// Appends a field without indexing it; its name becomes lower case.
pub(crate) fn put_field(block: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    match static_index(name) {
        Some(index) => put_integer(block, 0, NAME_BITS, index),
        None => {
            block.push(0);
            put_integer(block, 0, LENGTH_BITS, name.len());
            block.extend(name.iter().map(u8::to_ascii_lowercase));
        }
    }
    put_integer(block, 0, LENGTH_BITS, value.len());
    block.extend_from_slice(value);
}

/// Appends an integer whose first byte has this many bits of it. Section 5.1.
fn put_integer(block: &mut Vec<u8>, first: u8, bits: u32, value: usize) {
    let max = (1 << bits) - 1;
    if value < max {
        block.push(first | value as u8);
        return;
    }
    block.push(first | max as u8);
    let mut rest = value - max;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}
