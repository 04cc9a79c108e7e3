//! How the usual libraries percent-encode a key or a value.

/// A function that percent-encodes: the ASCII punctuation that it leaves as it is, and what it makes of a space.
#[derive(Debug)]
pub(super) struct Encoder {
    /// The functions with this output, for people.
    pub(super) names: &'static str,
    /// Whether a byte is left as it is.
    keeps: [bool; 256],
    space: &'static [u8],
    is_lower_case: bool,
}

/// The functions with different output, the most frequent ones first.
pub(super) static ENCODERS: [Encoder; 12] = [
    encoder(
        "Python quote_plus() or urlencode(), Go QueryEscape()",
        b"-._~",
        b"+",
    ),
    encoder("JavaScript encodeURIComponent()", b"-._~!'()*", b"%20"),
    encoder("Python quote()", b"-._~/", b"%20"),
    encoder("JavaScript URLSearchParams, Java URLEncoder", b"-._*", b"+"),
    encoder(
        "Python quote(safe=''), PHP rawurlencode(), C# EscapeDataString()",
        b"-._~",
        b"%20",
    ),
    encoder("PHP urlencode()", b"-._", b"+"),
    encoder("Go PathEscape()", b"-._~$&+=:@", b"%20"),
    encoder("JavaScript encodeURI()", b"-._~!'()*;/?:@&=+$,#", b"%20"),
    encoder(
        "a URI builder that escapes only what a query must",
        b"-._~!$'()*,;:@/?",
        b"%20",
    ),
    encoder("C# WebUtility.UrlEncode()", b"-._!*()", b"+"),
    lower("C# HttpUtility.UrlEncode()", b"-._!*()", b"+"),
    lower(
        "an RFC 3986 encoder with lower-case escapes",
        b"-._~",
        b"%20",
    ),
];

/// An encoder that leaves letters, digits and `punctuation` as they are.
const fn encoder(names: &'static str, punctuation: &[u8], space: &'static [u8]) -> Encoder {
    let mut keeps = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        keeps[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < punctuation.len() {
        keeps[punctuation[index] as usize] = true;
        index += 1;
    }
    Encoder {
        names,
        keeps,
        space,
        is_lower_case: false,
    }
}

const fn lower(names: &'static str, punctuation: &[u8], space: &'static [u8]) -> Encoder {
    Encoder {
        is_lower_case: true,
        ..encoder(names, punctuation, space)
    }
}

impl Encoder {
    /// Whether it leaves `text` as it is.
    pub(super) fn keeps(&self, text: &[u8]) -> bool {
        text.iter().all(|byte| self.keeps[usize::from(*byte)])
    }

    /// Appends `text`, encoded.
    pub(super) fn encode(&self, text: &[u8], out: &mut Vec<u8>) {
        let digits = if self.is_lower_case {
            b"0123456789abcdef"
        } else {
            b"0123456789ABCDEF"
        };
        out.reserve(3 * text.len());
        for &byte in text {
            if self.keeps[usize::from(byte)] {
                out.push(byte);
            } else if byte == b' ' {
                out.extend_from_slice(self.space);
            } else {
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'%', digits[high], digits[low]]);
            }
        }
    }
}
