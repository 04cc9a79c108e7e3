//! What a path means, however it is written: RFC 3986 section 6.2.2. CONTRACT 2.

use signpost_protocol::param::unescaped;

use super::bytes::{PATH, PLAIN, is_in_class, is_made_of};

/// A path with escapes, or one that readers may understand differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusualPath {
    /// The form in which paths are compared: an escape of a character that a path can have as it is stands for the
    /// character; other escapes are in upper case. Never resolved: an ambiguous path stays ambiguous.
    pub compared: Box<str>,
    /// The offset from which on readers may understand the path differently, as sent.
    pub(crate) ambiguity: Option<usize>,
}

/// Not a path of RFC 3986.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedPath;

/// Checks a path in one pass. `None`: it is compared as it is.
///
/// # Errors
///
/// It does not begin with `/`, or has a character or an escape that RFC 3986 does not allow there.
pub(crate) fn read_path(path: &[u8]) -> Result<Option<Box<UnusualPath>>, MalformedPath> {
    let (mut before, mut is_unusual) = (0, path.first() != Some(&b'/'));
    // Nearly every path passes here without an allocation: only what these classes leave open needs the closer look.
    for &byte in path {
        if !is_in_class(byte, PLAIN) {
            is_unusual |= byte != b'/' || matches!(before, b'/' | b'.');
        }
        before = byte;
    }
    if is_unusual || before == b'.' {
        look_closer(path).map(Some)
    } else {
        Ok(None)
    }
}

/// Reads a path of the configuration, in the form in which paths are compared. `None` if it is malformed or ambiguous.
pub(crate) fn canonical_path(path: &str) -> Option<String> {
    match read_path(path.as_bytes()).ok()? {
        None => Some(path.to_owned()),
        Some(unusual) if unusual.ambiguity.is_none() => Some(unusual.compared.into()),
        Some(_) => None,
    }
}

/// Ambiguous is what backends are known to read in several ways:
///
/// | part | readers |
/// | --- | --- |
/// | an empty segment, `.` and `..`, also escaped | resolve or merge it, or do not |
/// | `;`, also escaped | Java's servers take it and what follows out of the segment (CVE-2020-13933) |
/// | an escaped `/`, `\` | some decode before they split |
/// | an escaped control character | ends the path, or is dropped |
/// | a segment that ends with `.` or a space | Windows drops these |
/// | not UTF-8 | an overlong `.` or `/` |
///
/// `%25` is none of these: who decodes twice violates RFC 3986 section 2.4.
#[cold]
fn look_closer(path: &[u8]) -> Result<Box<UnusualPath>, MalformedPath> {
    if path.first() != Some(&b'/') || !is_made_of(path, PATH) {
        return Err(MalformedPath);
    }
    let mut compared = String::with_capacity(path.len());
    let mut decoded = Vec::with_capacity(path.len());
    let (mut before, mut ambiguity) = (0, None);
    for (at, byte) in unescaped(path) {
        let is_escape = at.len() > 1;
        let last = decoded.last();
        let unclear = match byte {
            b';' | b'\\' | 0x7f | ..b' ' => Some(at.start),
            b'/' if is_escape || last == Some(&b'/') => Some(at.start),
            // The segments `.` and `..` end with a dot, too, so they need no rule of their own.
            b'/' if matches!(last, Some(b'.' | b' ')) => Some(before),
            _ => None,
        };
        ambiguity = ambiguity.or(unclear);
        // `PLAIN` has neither `/` nor `;`: decoded, they would end a segment where the client's path has none.
        if !is_escape || is_in_class(byte, PLAIN) {
            compared.push(char::from(byte));
        } else {
            compared.push_str(&format!("%{byte:02X}"));
        }
        decoded.push(byte);
        before = at.start;
    }
    if matches!(decoded.last(), Some(b'.' | b' ')) {
        ambiguity = ambiguity.or(Some(before));
    }
    if let Err(error) = std::str::from_utf8(&decoded) {
        // The error counts decoded bytes. `unescaped` has an item for each of them, and knows where the client wrote
        // it.
        let bad = unescaped(path).nth(error.valid_up_to());
        ambiguity = ambiguity.or(bad.map(|(at, _)| at.start));
    }
    let compared = compared.into();
    Ok(UnusualPath {
        compared,
        ambiguity,
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form in which a path is compared, and what is ambiguous in it.
    fn read(path: &str) -> (String, Option<(usize, &str)>) {
        match read_path(path.as_bytes()).unwrap() {
            None => (path.to_owned(), None),
            Some(unusual) => {
                let at = unusual.ambiguity;
                (unusual.compared.to_string(), at.map(|at| (at, &path[at..])))
            }
        }
    }

    #[test]
    fn usual_paths_get_no_second_look() {
        for path in [
            "/",
            "/orders",
            "/orders/",
            "/openapi.json",
            "/.well-known/x",
            "/..x/.y/a.b",
            "/users/@me:x,y=z+1!$&'()*~_-",
        ] {
            assert_eq!(read_path(path.as_bytes()), Ok(None), "{path}");
        }
    }

    #[test]
    fn an_escape_is_compared_as_what_it_means() {
        for (sent, compared) in [
            ("/%6Frders", "/orders"),
            ("/%6frders/%31", "/orders/1"),
            ("/a%2Eb%2D%5F%7E", "/a.b-_~"),
            ("/users/%40me%3Ax", "/users/@me:x"),
            ("/%c3%a9", "/%C3%A9"),
            ("/%C3%A9", "/%C3%A9"),
            ("/a%20b%22", "/a%20b%22"),
            ("/a%3fb%23%5b", "/a%3Fb%23%5B"),
            // Decoded once: a percent sign, then a text.
            ("/%252e%252E/%2561", "/%252e%252E/%2561"),
            ("/100%25", "/100%25"),
        ] {
            assert_eq!(read(sent), (compared.to_owned(), None), "{sent}");
            assert_eq!(canonical_path(sent).as_deref(), Some(compared), "{sent}");
            assert_eq!(read(compared).0, compared, "{sent} twice");
        }
    }

    #[test]
    fn what_readers_understand_differently_is_ambiguous() {
        for (sent, found) in [
            ("//orders", (1, "/")),
            ("/a//", (3, "/")),
            ("//", (1, "/")),
            ("/a/./b", (3, ".")),
            ("/x/../orders", (4, ".")),
            ("/..", (2, ".")),
            ("/.", (1, ".")),
            ("/x/%2e%2E/orders", (6, "%2E")),
            ("/x/.%2E/orders", (4, "%2E")),
            ("/x/%2e", (3, "%2e")),
            ("/x/..;y/orders", (5, ";")),
            ("/x/.;/orders", (4, ";")),
            ("/a;x/../b", (2, ";")),
            ("/orders;x", (7, ";")),
            ("/orders%3bx", (7, "%3b")),
            ("/orders%2F1", (7, "%2F")),
            ("/orders%5c1", (7, "%5c")),
            ("/orders%00", (7, "%00")),
            ("/orders%0a", (7, "%0a")),
            ("/orders%7F", (7, "%7F")),
            ("/orders.", (7, ".")),
            ("/orders./1", (7, ".")),
            ("/orders%20", (7, "%20")),
            ("/orders%20/1", (7, "%20")),
            ("/...", (3, ".")),
            ("/%c0%ae%c0%ae/orders", (1, "%c0")),
            ("/a/%e4", (3, "%e4")),
            ("/a/%c3", (3, "%c3")),
        ] {
            let (at, rest) = read(sent).1.unwrap();
            assert_eq!((at, &rest[..found.1.len()]), found, "{sent}");
            assert_eq!(canonical_path(sent), None, "{sent}");
        }
        // Compared as what it means, nevertheless: a version may take it.
        assert_eq!(read("//%6Frders/%2e%2e").0, "//orders/..");
        assert_eq!(read("/%6F%2f%3b").0, "/o%2F%3B");
    }

    #[test]
    fn other_texts_are_no_paths() {
        for path in [
            "",
            "*",
            "orders",
            "%2Forders",
            "/a b",
            "/a\\b",
            "/%",
            "/%2",
            "/%zz",
            "/%u002e",
            "/\u{e4}",
            "/a|b",
            "/a\"",
            "http://h/",
        ] {
            let read = read_path(path.as_bytes());
            assert_eq!(read, Err(MalformedPath), "{path}");
        }
    }
}
