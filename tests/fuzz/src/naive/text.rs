//! What the grammars of heads have in common: bytes, lines and fields.

/// `tchar` of RFC 9110 section 5.6.2.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// `field-vchar`, space and tab of RFC 9110 section 5.5.
pub(super) fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (b' '..=b'~').contains(&byte) || byte >= 0x80
}

/// `1*tchar`.
pub(super) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(|&byte| is_token_byte(byte))
}

/// What stands before the first `separator`, and what behind it.
pub(super) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|&byte| byte == separator)?;
    Some((&text[..place], &text[place + 1..]))
}

/// The length of a head, its closing empty line included, once that has come.
pub(super) fn head_length(input: &[u8]) -> Option<usize> {
    (4..=input.len()).find(|&end| input[..end].ends_with(b"\r\n\r\n"))
}

/// Whether a line feed stands anywhere but behind a carriage return.
pub(super) fn has_bare_line_feed(text: &[u8]) -> bool {
    (0..text.len()).any(|place| text[place] == b'\n' && (place == 0 || text[place - 1] != b'\r'))
}

/// The lines of a head that ends in an empty one and has no bare line feed: without their ends, and without the
/// empty one.
pub(super) fn lines(head: &[u8]) -> Vec<&[u8]> {
    let lines = head[..head.len() - 2].split_inclusive(|&byte| byte == b'\n');
    lines.map(|line| &line[..line.len() - 2]).collect()
}

/// `field-name ":" OWS field-value OWS` of RFC 9112 section 5: name and value.
pub(super) fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, mut value) = split_once(line, b':')?;
    if !is_token(name) || !value.iter().all(|&byte| is_value_byte(byte)) {
        return None;
    }
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    Some((name, value))
}

/// The values of all fields of this name, in whatever letter case.
pub(super) fn values<'a>(fields: &[(&'a [u8], &'a [u8])], name: &str) -> Vec<&'a [u8]> {
    let is_of_that_name = |field: &&(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
    let found = fields.iter().filter(is_of_that_name);
    found.map(|(_, value)| *value).collect()
}

/// `Content-Length`: 1 to 18 digits, which no `u64` is too small for.
pub(super) fn length(value: &[u8]) -> Option<u64> {
    let is_number = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(value).ok()?;
    if is_number { digits.parse().ok() } else { None }
}
