//! The header block of a stream, in the frames in which it arrives.

use h2::Reason;

use crate::downstream::http2::{
    bounds::{FIELD_OVERHEAD, MAX_LIST_FACTOR},
    head::HeadWriter,
    hpack::Decoder,
};

/// The head of a stream, or its trailers, until its last frame.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) stream: u32,
    /// Whether a request begins.
    pub(super) is_new: bool,
    pub(super) ends_stream: bool,
    /// What could not be decoded yet.
    pub(super) rest: Vec<u8>,
    /// Length of `rest` at which decoding is tried again. So a field in many frames is not decoded with each of them.
    pub(super) retry_at: usize,
    /// Bytes of the fields so far, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts them: an entry of the table is one byte of
    /// the block.
    pub(super) listed: usize,
    /// Whether its request was rejected already, or its stream is not served: the rest is dropped.
    pub(super) is_dropped: bool,
}

impl Block {
    /// Whether so much of it arrived that its request is rejected before its end.
    pub(super) const fn is_too_large(&self, max_list: usize) -> bool {
        self.rest.len() > max_list || self.listed > MAX_LIST_FACTOR * max_list
    }
}

/// Decodes the next part of a block.
pub(super) fn decode(
    block: &mut Block,
    fragment: &[u8],
    is_last: bool,
    decoder: &mut Decoder,
    writer: &mut HeadWriter,
) -> Result<(), Reason> {
    let Block {
        is_new,
        rest,
        retry_at,
        listed,
        ..
    } = block;
    if !rest.is_empty() {
        rest.extend_from_slice(fragment);
    }
    let input = if rest.is_empty() { fragment } else { &**rest };
    let mut decoded = 0;
    if is_last || input.len() >= *retry_at {
        let result = decoder.decode(input, |name, value| {
            *listed += name.len() + value.len() + FIELD_OVERHEAD;
            if *is_new {
                writer.field(name, value);
            }
        });
        decoded = result.map_err(|_| Reason::COMPRESSION_ERROR)?;
        // Doubled: the work for a field stays linear, into however many small frames it is cut.
        *retry_at = 2 * (input.len() - decoded);
        decoder.free();
    }
    match (input.len() > decoded, is_last) {
        (true, true) => return Err(Reason::COMPRESSION_ERROR),
        (_, true) => {}
        (_, false) if rest.is_empty() => rest.extend_from_slice(&fragment[decoded..]),
        (_, false) => drop(rest.drain(..decoded)),
    }
    Ok(())
}
