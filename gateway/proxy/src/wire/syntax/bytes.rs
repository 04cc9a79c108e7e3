//! Byte classes: RFC 9110 section 5 (tokens, field values), RFC 3986 (targets, hosts).

/// `tchar` of RFC 9110 section 5.6.2.
pub(crate) const TOKEN: u8 = 1;
/// `pchar` and `/` of RFC 3986, without `%`.
pub(crate) const PATH: u8 = 2;
/// [`PATH`] without `/` and `;`: what means the same wherever it stands in a path.
pub(crate) const PLAIN: u8 = 8;
/// What a browser sends as it is in a query: visible ASCII, but `"`, `#`, `<`, `>` (the URL standard's query set), and `%`.
pub(crate) const QUERY: u8 = 4;
/// `reg-name` of RFC 3986, without `%` and `,`.
pub(crate) const HOST: u8 = 16;

static CLASSES: [u8; 256] = classes();

/// Whether a byte is in one of the classes.
#[must_use]
pub(crate) fn is_in_class(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// Whether every byte is in the class or part of a valid escape: `%` and two hex digits.
#[must_use]
pub(crate) fn is_made_of(text: &[u8], class: u8) -> bool {
    first_outside(text, class).is_none()
}

/// The offset of the first byte that is neither in the class nor part of a valid escape.
#[must_use]
pub(crate) fn first_outside(text: &[u8], class: u8) -> Option<usize> {
    let mut offset = 0;
    // A `%` without two hex digits is malformed, not a literal: decoders differ in what they make of it.
    while let Some(&byte) = text.get(offset) {
        if is_in_class(byte, class) {
            offset += 1;
        } else if byte == b'%'
            && let Some(digits) = text.get(offset + 1..offset + 3)
            && digits.iter().all(u8::is_ascii_hexdigit)
        {
            offset += 3;
        } else {
            return Some(offset);
        }
    }
    None
}

/// Whether a byte is allowed in a field value: any but control characters; a tab is allowed.
#[must_use]
pub(crate) const fn is_field_value_byte(byte: u8) -> bool {
    // `obs-text` (0x80 and above) passes, as RFC 9110 section 5.5 allows: clients send names in UTF-8, and none of
    // these bytes ends a line.
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

/// Whether the text contains a control character other than a tab.
///
/// The loop has no early exit, so that the compiler can vectorize it.
#[must_use]
pub(crate) fn has_control_but_tabs(text: &[u8]) -> bool {
    text.iter().fold(false, |any, &byte| {
        any | ((byte < b' ') & (byte != b'\t')) | (byte == 0x7f)
    })
}

/// Whether the text contains a control character.
#[must_use]
pub(crate) fn has_control(text: &[u8]) -> bool {
    text.iter()
        .fold(false, |any, &byte| any | (byte < b' ') | (byte == 0x7f))
}

/// Parses `Content-Length`: 1 to 18 digits. `None` for anything else, including a list.
#[must_use]
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    // 18 digits fit into 64 bits, so the sum cannot overflow. Neither a sign nor a list such as `5, 5` is a number
    // here: a peer that reads it differently would end the body elsewhere (request smuggling).
    let is_number = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let add = |sum: u64, digit: &u8| sum * 10 + u64::from(digit - b'0');
    is_number.then(|| value.iter().fold(0, add))
}

/// `sub-delims` of RFC 3986.
const SUB_DELIMS: &[u8] = b"!$&'()*+,;=";
/// `unreserved` of RFC 3986, beside letters and digits.
const UNRESERVED: &[u8] = b"-._~";
/// `tchar` of RFC 9110, beside letters and digits.
const TOKEN_SIGNS: &[u8] = b"!#$%&'*+-.^_`|~";

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "the loop ends at 255")]
        let letter = byte as u8;
        let is_alphanumeric = letter.is_ascii_alphanumeric();
        let is_part = is_alphanumeric || has(UNRESERVED, letter) || has(SUB_DELIMS, letter);
        let is_path = is_part || has(b":@/", letter);
        if is_alphanumeric || has(TOKEN_SIGNS, letter) {
            classes[byte] |= TOKEN;
        }
        if is_path {
            classes[byte] |= PATH;
        }
        if is_path && !has(b"/;", letter) {
            classes[byte] |= PLAIN;
        }
        if letter.is_ascii_graphic() && !has(b"\"#<>%", letter) {
            classes[byte] |= QUERY;
        }
        // No comma: an intermediary may have joined two `Host` fields with one.
        if is_part && letter != b',' {
            classes[byte] |= HOST;
        }
        byte += 1;
    }
    classes
}

const fn has(bytes: &[u8], wanted: u8) -> bool {
    match bytes {
        [] => false,
        [first, rest @ ..] => *first == wanted || has(rest, wanted),
    }
}
