//! A client's request, rebuilt from its string to sign and its signature.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use signpost_protocol::sign::{SIGN, SignLayout, SignProfile, SignValues};

use super::{KEY, paste::Pasted};

/// What a query cannot have.
const UNSENT: AsciiSet = CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// What is encoded in values that were decoded.
const DECODED: AsciiSet = UNSENT.add(b'%').add(b'+');

/// A string that is written without separators cannot be taken apart.
#[derive(Debug, thiserror::Error)]
#[error("by this sign profile the string has no separators: give the request, too")]
pub struct NoSeparatorsError;

/// The request whose string to sign is `own`, with [`KEY`] in the key's place: with its pairs in the query, and method and path if
/// the string has them.
pub fn request_of_string(
    own: &str,
    sign: &str,
    profile: &SignProfile,
) -> Result<Pasted, NoSeparatorsError> {
    if !matches!(profile.layout, SignLayout::Pairs | SignLayout::PairsKey) {
        return Err(NoSeparatorsError);
    }
    let own = own.replace(KEY, "");
    let mut lines = own.splitn(3, '\n');
    let (method, path, pairs) = match (lines.next(), lines.next(), lines.next()) {
        (Some(method @ ("GET" | "POST")), Some(path), Some(pairs)) => (method, path, pairs),
        _ => ("GET", "/", &*own),
    };
    let pairs = pairs.trim_matches(['\r', '\n']);
    // This is left of the layout `PairsKey` once the key is gone.
    let pairs = pairs.strip_suffix("&key=").unwrap_or(pairs);
    let unsent = match profile.values {
        SignValues::Wire => &UNSENT,
        SignValues::Decoded => &DECODED,
    };
    let pairs = utf8_percent_encode(pairs, unsent);
    let target = format!("{path}?{pairs}&{SIGN}={}", sign.trim());
    Ok(Pasted::bare(method, &target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pairs_of_a_string_are_a_requests() {
        let wire = SignProfile::default();
        let decoded = SignProfile::preset("wechat").unwrap();
        for (own, profile, method, target) in [
            (
                "a=1&b=%20&time=1<APP_KEY>",
                &wire,
                "GET",
                "/?a=1&b=%20&time=1&sign=0a",
            ),
            (
                "a=1 1&time=1<APP_KEY>\n",
                &wire,
                "GET",
                "/?a=1%201&time=1&sign=0a",
            ),
            (
                "a=1+%&n=张&time=1&key=<APP_KEY>",
                &decoded,
                "GET",
                "/?a=1%2B%25&n=%E5%BC%A0&time=1&sign=0a",
            ),
            (
                "POST\n/x\na=1&time=1<APP_KEY>",
                &wire,
                "POST",
                "/x?a=1&time=1&sign=0a",
            ),
        ] {
            let pasted = request_of_string(own, " 0a\n", profile).unwrap();
            let expected = format!("{method} {target} HTTP/1.1\r\n\r\n");
            assert_eq!(pasted.text, expected, "{own}");
        }
        let concat = SignProfile::preset("top").unwrap();
        assert!(request_of_string("a1", "0a", &concat).is_err());
    }
}
