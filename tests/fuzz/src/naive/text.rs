//! The common part of the grammars of heads: bytes, lines and fields.

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

/// The parts before and after the first `separator`.
pub(super) fn split_once(text: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let index = text.iter().position(|&byte| byte == separator)?;
    Some((&text[..index], &text[index + 1..]))
}

/// The length of a head with its closing empty line, if the head is complete.
pub(super) fn head_length(input: &[u8]) -> Option<usize> {
    (4..=input.len()).find(|&end| input[..end].ends_with(b"\r\n\r\n"))
}

/// Whether any line feed does not follow a carriage return.
pub(super) fn has_bare_line_feed(text: &[u8]) -> bool {
    (0..text.len()).any(|index| text[index] == b'\n' && (index == 0 || text[index - 1] != b'\r'))
}

/// The lines of a complete head without bare line feeds. The line ends and the closing empty line are removed.
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

/// The values of all fields with this name, in any letter case.
pub(super) fn values<'a>(fields: &[(&'a [u8], &'a [u8])], name: &str) -> Vec<&'a [u8]> {
    let has_name = |field: &&(&[u8], &[u8])| field.0.eq_ignore_ascii_case(name.as_bytes());
    let found = fields.iter().filter(has_name);
    found.map(|(_, value)| *value).collect()
}

/// `Content-Length`: 1 to 18 digits, which always fit a `u64`.
pub(super) fn length(value: &[u8]) -> Option<u64> {
    let is_number = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(value).ok()?;
    if is_number { digits.parse().ok() } else { None }
}
