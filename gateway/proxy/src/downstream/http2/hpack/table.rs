//! The tables of HPACK: the static one, and a connection's. RFC 7541 section 2.3.

use std::collections::VecDeque;

/// Largest size of a connection's table, in bytes as section 4.1 counts them: the default of
/// `SETTINGS_HEADER_TABLE_SIZE`, which the gateway does not change.
const MAX_SIZE: usize = 4096;
/// What section 4.1 counts for each entry beside its bytes.
const ENTRY_OVERHEAD: usize = 32;

/// Appendix A. The first entry has index 1.
#[rustfmt::skip]
static STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Index of a status that the table has.
pub(super) fn static_status(digits: &[u8]) -> Option<usize> {
    (8..=14).find(|index| STATIC[index - 1].1 == digits)
}

/// Index of the name of a response's field, in any case.
pub(super) fn static_index(name: &[u8]) -> Option<usize> {
    // All names that are not only of requests, by their length.
    let indices: &[usize] = match name.len() {
        3 => &[21, 60],
        4 => &[33, 59, 34, 45],
        5 => &[22],
        6 => &[54],
        7 => &[8, 36, 52],
        8 => &[46],
        10 => &[55],
        11 => &[53],
        12 => &[31],
        13 => &[24, 44, 18, 30],
        14 => &[28],
        16 => &[26, 27, 29, 61],
        17 => &[57],
        18 => &[48],
        19 => &[25],
        25 => &[56],
        27 => &[20],
        _ => &[],
    };
    let is_named = |index: &&usize| name.eq_ignore_ascii_case(STATIC[**index - 1].0);
    indices.iter().find(is_named).copied()
}

/// An entry of a connection's table.
#[derive(Debug)]
pub(super) struct Entry {
    /// Name, then value.
    bytes: Box<[u8]>,
    name_length: usize,
}

impl Entry {
    /// Copies a field.
    pub(super) fn new(name: &[u8], value: &[u8]) -> Self {
        Self {
            bytes: [name, value].concat().into_boxed_slice(),
            name_length: name.len(),
        }
    }

    const fn size(&self) -> usize {
        self.bytes.len() + ENTRY_OVERHEAD
    }
}

/// The table of a connection: its newest entries, as far as they fit.
#[derive(Debug)]
pub(super) struct DynamicTable {
    /// The newest one first.
    entries: VecDeque<Entry>,
    size: usize,
    max_size: usize,
}

impl Default for DynamicTable {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            max_size: MAX_SIZE,
        }
    }
}

impl DynamicTable {
    /// Name and value of the entry with this index in both tables; `None` if there is none.
    pub(super) fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        if let Some(&entry) = STATIC.get(index) {
            return Some(entry);
        }
        let entry = self.entries.get(index - STATIC.len())?;
        Some(entry.bytes.split_at(entry.name_length))
    }

    /// Inserts an entry. One that is larger than the table empties it. Section 4.4.
    pub(super) fn insert(&mut self, entry: Entry) {
        self.size += entry.size();
        // Before the eviction, which then removes an entry that is too large itself, last of all.
        self.entries.push_front(entry);
        self.evict();
    }

    /// Changes the size of the table; `false` if the gateway did not allow that much.
    #[must_use]
    pub(super) fn resize(&mut self, max_size: usize) -> bool {
        if max_size > MAX_SIZE {
            return false;
        }
        self.max_size = max_size;
        self.evict();
        true
    }

    fn evict(&mut self) {
        while self.size > self.max_size
            && let Some(oldest) = self.entries.pop_back()
        {
            self.size -= oldest.size();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in the table that only requests have.
    const OF_REQUESTS: [&str; 19] = [
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "accept",
        "authorization",
        "cookie",
        "expect",
        "from",
        "host",
        "if-match",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "if-unmodified-since",
        "max-forwards",
        "proxy-authorization",
        "range",
        "referer",
        "user-agent",
    ];

    #[test]
    fn names_of_responses_are_found_in_any_case() {
        for (place, (name, _)) in STATIC.iter().enumerate().skip(14) {
            let name = std::str::from_utf8(name).unwrap();
            let expected = (!OF_REQUESTS.contains(&name)).then_some(place + 1);
            assert_eq!(
                static_index(name.to_uppercase().as_bytes()),
                expected,
                "{name}"
            );
        }
        assert_eq!(
            (static_index(b":status"), static_index(b"x-acme")),
            (Some(8), None)
        );
        assert_eq!(
            [b"200", b"500", b"502"].map(|digits| static_status(digits)),
            [Some(8), Some(14), None]
        );
    }
}
