//! The pairs of a query and a form body. Source: CONTRACT 2 and 3.

use std::fmt;

/// One pair, as sent and decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct Pair {
    /// The key as sent.
    pub wire_key: Vec<u8>,
    /// The value as sent.
    pub wire_value: Vec<u8>,
    /// The key after form-decoding.
    pub key: String,
    /// The value after form-decoding.
    pub value: String,
}

/// As text, so that the two lists in a failure can be compared.
impl fmt::Debug for Pair {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wire_key, wire_value) = (self.wire_key.escape_ascii(), self.wire_value.escape_ascii());
        write!(
            formatter,
            "{wire_key}={wire_value} ({:?}={:?})",
            self.key, self.value
        )
    }
}

/// Why the parameters are rejected. The first fault in their order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A `%` without two hex digits, or bytes that are not UTF-8 once decoded.
    Malformed,
    /// More pairs than the limit allows.
    TooMany,
}

/// Parses the pairs of the query, then those of the body.
///
/// # Errors
///
/// When the parameters are rejected.
pub fn read(query: &[u8], body: &[u8], limit: usize) -> Result<Vec<Pair>, Fault> {
    let mut pairs = Vec::new();
    for source in [query, body] {
        for pair in source.split(|&byte| byte == b'&') {
            if pair.is_empty() {
                continue;
            }
            if pairs.len() == limit {
                return Err(Fault::TooMany);
            }
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let wire_key = halves.next().unwrap_or_default();
            let wire_value = halves.next().unwrap_or_default();
            pairs.push(Pair {
                wire_key: wire_key.to_vec(),
                wire_value: wire_value.to_vec(),
                key: decoded(wire_key)?,
                value: decoded(wire_value)?,
            });
        }
    }
    Ok(pairs)
}

/// Form-decodes: `+` is a space, `%` and two hex digits are a byte.
fn decoded(mut wire: &[u8]) -> Result<String, Fault> {
    let mut bytes = Vec::new();
    loop {
        wire = match wire {
            [] => break,
            [b'+', rest @ ..] => {
                bytes.push(b' ');
                rest
            }
            [b'%', high, low, rest @ ..] => {
                let byte = hex::decode([*high, *low]).map_err(|_| Fault::Malformed)?;
                bytes.extend(byte);
                rest
            }
            [b'%', ..] => return Err(Fault::Malformed),
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        }
    }
    String::from_utf8(bytes).map_err(|_| Fault::Malformed)
}
