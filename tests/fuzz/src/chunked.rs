//! Chunked bodies.

use signpost_proxy::measured::ChunkDecoder;

use crate::naive::chunked::{self as naive, End, Reading};

/// Compares the body that `input` begins with, received at once and in pieces.
///
/// # Panics
///
/// When two results differ.
pub fn chunked(input: &[u8]) -> bool {
    let expected = naive::read(input);
    for piece in [input.len(), 1, 2, 3, 7, 64] {
        assert_eq!(read(input, piece), expected, "in pieces of {piece}");
    }
    matches!(expected.end, End::Whole(_))
}

fn read(input: &[u8], piece: usize) -> Reading {
    let mut decoder = ChunkDecoder::for_request();
    let (mut data, mut consumed) = (Vec::new(), 0);
    for bytes in input.chunks(piece.max(1)) {
        match decoder.decode(bytes, &mut data) {
            Ok(length) => consumed += length,
            Err(_) => {
                let end = End::Malformed;
                return Reading { end, data };
            }
        }
    }
    let end = if decoder.is_done() {
        End::Whole(consumed)
    } else {
        assert_eq!(
            consumed,
            input.len(),
            "an incomplete body consumes the whole input"
        );
        End::Incomplete
    };
    Reading { end, data }
}
