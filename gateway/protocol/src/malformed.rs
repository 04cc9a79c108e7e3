//! Where a request is malformed, and how: what a client needs to mend it. It never has a value of a parameter. CONTRACT 7.

use std::fmt;

use crate::{log_text, param::unescaped};

/// A malformed part of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    part: Part,
    /// The parameter whose value it is.
    name: Option<String>,
    /// The byte of the part, from 1.
    position: usize,
    fault: Fault,
    /// What stands there: a character as `U+XXXX`, or a byte as `%XX`.
    shown: String,
}

/// A part of a request; each is a variant of the text `malformed_place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The path.
    Path,
    /// The query.
    Query,
    /// The form.
    Form,
    /// The value of `Host`.
    Host,
}

/// What is wrong; each is a variant of the text `malformed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A character that is not allowed there as it is, or that makes a path ambiguous.
    Character,
    /// `%` without two hex digits.
    Escape,
    /// Not UTF-8.
    Encoding,
    /// Not UTF-8, but what text in GBK or GB18030 looks like.
    Gbk,
    /// A path that does not begin with `/`.
    Slash,
    /// None, or several `Host`.
    Hosts,
    /// Anything else.
    Other,
}

impl Malformed {
    /// A fault at an offset of a part; `source` is the whole part.
    #[must_use]
    pub fn at(part: Part, source: &[u8], offset: usize, fault: Fault) -> Self {
        let (before, rest) = source.split_at(offset.min(source.len()));
        let mut pairs = before.rsplit(|&byte| byte == b'&');
        let pair = pairs.next().unwrap_or_default();
        let key = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
        let key: Vec<_> = unescaped(key).map(|(_, byte)| byte).collect();
        let is_value = matches!(part, Part::Query | Part::Form) && pair.contains(&b'=');
        let mut chunks = rest.utf8_chunks();
        let character = chunks.next().and_then(|chunk| chunk.valid().chars().next());
        let shown = match (unescaped(rest).next(), character) {
            (Some((at, _)), Some(character)) if at.len() == 1 => {
                format!("U+{:04X}", u32::from(character))
            }
            (Some((_, byte)), _) => format!("%{byte:02X}"),
            (None, _) => String::new(),
        };
        Self {
            part,
            // Cut and escaped as in the log: the name is the client's text, and may be a key in the wrong place.
            name: is_value.then(|| log_text::ident(&key)),
            position: offset + 1,
            fault,
            shown,
        }
    }

    /// The first fault of a query or a form that [`Params`](crate::param::Params) rejects.
    #[must_use]
    pub fn of_params(query: &[u8], form: &[u8]) -> Self {
        let (part, source, fault) = match fault_of_pairs(query) {
            None => (Part::Form, form, fault_of_pairs(form)),
            fault => (Part::Query, query, fault),
        };
        let (offset, fault) = fault.unwrap_or((0, Fault::Other));
        Self::at(part, source, offset, fault)
    }

    /// The arguments of the problem's detail.
    #[must_use]
    pub fn arguments(&self) -> Vec<(&'static str, String)> {
        let parameter = self.name.as_ref().map_or("", |_| "_parameter");
        vec![
            ("fault", word(&self.fault)),
            ("place", word(&self.part) + parameter),
            ("position", self.position.to_string()),
            ("found", self.shown.clone()),
            ("name", self.name.clone().unwrap_or_default()),
        ]
    }
}

/// For the log.
impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fault, part) = (word(&self.fault), word(&self.part));
        let (shown, at) = (&self.shown, self.position);
        write!(formatter, "{fault} {shown} at byte {at} of the {part}")?;
        let mut name = self.name.iter();
        name.try_for_each(|name| write!(formatter, ", parameter {name}"))
    }
}

/// The name of a variant, in lower case.
fn word(variant: &impl fmt::Debug) -> String {
    format!("{variant:?}").to_lowercase()
}

/// The first broken escape, or the first byte that is not UTF-8, of a key or a value.
fn fault_of_pairs(source: &[u8]) -> Option<(usize, Fault)> {
    // Only the first `=` of a pair separates, but a further one does not break a character.
    let mut texts = source.split(|&byte| matches!(byte, b'&' | b'='));
    let mut start = 0;
    texts.find_map(|text| {
        let offset = start;
        start += text.len() + 1;
        fault_of(text).map(|(at, fault)| (offset + at, fault))
    })
}

fn fault_of(text: &[u8]) -> Option<(usize, Fault)> {
    let mut bytes = unescaped(text);
    if let Some((at, _)) = bytes.find(|(at, byte)| *byte == b'%' && at.len() == 1) {
        return Some((at.start, Fault::Escape));
    }
    let decoded: Vec<_> = unescaped(text).map(|(_, byte)| byte).collect();
    let error = std::str::from_utf8(&decoded).err()?;
    let (at, _) = unescaped(text).nth(error.valid_up_to())?;
    let is_gbk = looks_like_gbk(&decoded);
    Some((at.start, if is_gbk { Fault::Gbk } else { Fault::Encoding }))
}

/// Whether all bytes are ASCII or pairs of GBK or GB18030, one of them a common Chinese character: a Latin letter with an
/// accent is no pair, or a rare one.
fn looks_like_gbk(mut text: &[u8]) -> bool {
    let mut has_common = false;
    while let [lead, rest @ ..] = text {
        text = match (lead, rest) {
            (..=0x7f, rest) | (0x81..=0xfe, [b'0'..=b'9', _, _, rest @ ..]) => rest,
            (0x81..=0xfe, [trail @ 0x40..=0xfe, rest @ ..]) => {
                has_common |= (0xb0..=0xf7).contains(lead) && *trail >= 0xa1;
                rest
            }
            _ => return false,
        };
    }
    has_common
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{language::Language, param::Params, text::text};

    /// Where `query` and `form` are malformed, as the log and as an English detail have it.
    fn shown(query: &[u8], form: &[u8]) -> [String; 2] {
        assert!(Params::parse(query, form, 99).is_err());
        let malformed = Malformed::of_params(query, form);
        let arguments = malformed.arguments();
        let arguments: Vec<_> = arguments
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        let detail = text(Language::En, "params_malformed.detail", &arguments);
        assert!(!detail.contains("{"), "{detail}");
        [malformed.to_string(), detail]
    }

    #[test]
    fn a_fault_is_named_by_its_place() {
        let [log, detail] = shown(b"a=1&q=x%zz", b"");
        assert_eq!(log, "escape U+0025 at byte 8 of the query, parameter q");
        assert_eq!(
            detail,
            "Byte 8 of the query, in the parameter \"q\": a \"%\" without two hex digits is no escape."
        );
        for (query, form, expected) in [
            (
                &b"%=1"[..],
                &b""[..],
                "escape U+0025 at byte 1 of the query",
            ),
            (
                b"a=%4",
                b"",
                "escape U+0025 at byte 3 of the query, parameter a",
            ),
            (
                b"",
                b"x=1&&%71=%",
                "escape U+0025 at byte 10 of the form, parameter q",
            ),
            (
                b"a=1",
                b"b=\xff",
                "encoding %FF at byte 3 of the form, parameter b",
            ),
            (
                b"a=%C3%A9%C3",
                b"",
                "encoding %C3 at byte 9 of the query, parameter a",
            ),
            (b"%ff=secret", b"", "encoding %FF at byte 1 of the query"),
            (
                b"a=b=%zz",
                b"",
                "escape U+0025 at byte 5 of the query, parameter a",
            ),
        ] {
            assert_eq!(shown(query, form)[0], expected);
        }
    }

    #[test]
    fn gbk_is_named_and_other_encodings_are_not() {
        for (value, is_gbk) in [
            ("%C4%E3%BA%C3", true),
            ("x%20%D6%D0%CE%C4!", true),
            ("caf%E9s", false),
            ("caf%E9", false),
            ("%FC%E9", false),
            ("%ff%fe", false),
        ] {
            let [log, detail] = shown(format!("q={value}").as_bytes(), b"");
            assert_eq!(log.starts_with("gbk "), is_gbk, "{value} {log}");
            assert_eq!(detail.contains("GBK"), is_gbk, "{value} {detail}");
        }
    }

    #[test]
    fn neither_a_value_nor_a_long_name_is_shown() {
        let name = "n".repeat(500);
        let [log, detail] = shown(format!("{name}=secret%zz").as_bytes(), b"");
        assert!(log.len() < 200 && detail.len() < 300, "{log} {detail}");
        assert!(!log.contains("secret") && !detail.contains("secret"));
        let [log, _] = shown(b"%0a%1b[31m=%", b"");
        assert!(log.is_ascii() && !log.contains(['\n', '\u{1b}']), "{log}");
    }
}
