//! What the phases see of a request: borrowed from whoever read it, and nothing of its framework.

use http::HeaderName;

/// The target as sent: a path, and a query without its `?`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target<'a> {
    /// The path, still encoded.
    pub path: &'a str,
    /// The query, still encoded; empty where there is none.
    pub query: &'a str,
}

impl<'a> Target<'a> {
    /// Takes a target apart that was checked to be of RFC 3986; `None` for any other.
    #[must_use]
    pub fn parse(target: &'a [u8]) -> Option<Self> {
        let target = std::str::from_utf8(target).ok()?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Some(Self { path, query })
    }
}

/// A header as sent: name, and value without the white space around it.
pub type Header<'a> = (&'a [u8], &'a [u8]);

/// Whether a header's name as sent is this one.
#[must_use]
pub fn is_named(name: &[u8], known: &HeaderName) -> bool {
    name.eq_ignore_ascii_case(known.as_str().as_bytes())
}

/// Writes a header as a line of a head.
pub fn write_line(head: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    head.reserve(name.len() + value.len() + 4);
    for part in [name, b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// A request's headers, whoever holds them; names in any letter case.
pub trait Headers {
    /// All of them, in order.
    fn each(&self) -> impl Iterator<Item = Header<'_>>;
}

/// The headers of a head in bytes, checked or not: lines that are none are left out, and one whose end has not come.
#[derive(Clone, Copy, Debug)]
pub struct RawHeaders<'a>(pub &'a [u8]);

impl Headers for RawHeaders<'_> {
    fn each(&self) -> impl Iterator<Item = Header<'_>> {
        let end = memchr::memrchr(b'\n', self.0).map_or(0, |end| end + 1);
        self.0[..end]
            .split(|&byte| byte == b'\n')
            .skip(1)
            .filter_map(|line| {
                let colon = memchr::memchr(b':', line)?;
                Some((&line[..colon], line[colon + 1..].trim_ascii()))
            })
    }
}

/// Headers as tests write them.
#[cfg(test)]
impl Headers for [(&str, &str)] {
    fn each(&self) -> impl Iterator<Item = Header<'_>> {
        self.iter()
            .map(|(name, value)| (name.as_bytes(), value.trim_ascii().as_bytes()))
    }
}

/// The methods that there are. CONTRACT 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// GET.
    Get,
    /// POST.
    Post,
}

impl Method {
    /// The method as it stands in the request line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}
