//! An application: its public ident and its internal id. CONTRACT 4.

use std::{ops::RangeInclusive, str::FromStr};

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use crate::{
    sign::check_strength,
    word::{ParseError, Word},
};

/// Length of a generated ident: about 142 random bits.
const GENERATED_LENGTH: usize = 24;
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// APP_IDENT: the public name of an application. `[A-Za-z0-9._-]{1,64}`, compared byte for byte.
///
/// Generated idents are 24 characters of `[A-Za-z0-9]`; imported ones are those that clients have already.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AppIdent(Word);

impl AppIdent {
    /// Number of random bytes for [`Self::generate`].
    pub const RANDOM_BYTES: usize = 64;

    /// Generates an ident from random bytes, with all letters equally likely.
    ///
    /// Bytes that would favour some letters are skipped. `None` if too many were skipped, which practically never
    /// happens: retry with new bytes.
    #[must_use]
    pub fn generate(random: &[u8; Self::RANDOM_BYTES]) -> Option<Self> {
        const FAIR: usize = 256 - 256 % ALPHABET.len();
        let mut fair = random
            .iter()
            .map(|&byte| usize::from(byte))
            .filter(|&byte| byte < FAIR)
            .map(|byte| ALPHABET[byte % ALPHABET.len()]);
        let mut generated = [0; GENERATED_LENGTH];
        for letter in &mut generated {
            *letter = fair.next()?;
        }
        Self::try_from(&generated[..]).ok()
    }

    /// The ident as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for AppIdent {
    type Err = ParseError;

    fn from_str(ident: &str) -> Result<Self, Self::Err> {
        Self::try_from(ident.as_bytes())
    }
}

impl TryFrom<&[u8]> for AppIdent {
    type Error = ParseError;

    fn try_from(ident: &[u8]) -> Result<Self, Self::Error> {
        ident.try_into().map(Self)
    }
}

show_as_str!(AppIdent: Display, Debug);

/// The mistake in an ident that no application has, which the hint explains: the key of its text in the language files. It
/// follows from the ident alone, so that a stranger learns of no application.
#[must_use]
pub fn ident_hint(sent: &[u8]) -> &'static str {
    const UNREAD: &str = "undefined null none app_ident your_app_ident ident";
    let text = String::from_utf8_lossy(sent);
    let bare = text.trim_matches(|letter: char| "<>{}[]$%\"'".contains(letter));
    let length = text.len();
    // Imported idents have other forms, and any length. One can be a UUID.
    let is_generated = text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && text.contains(|letter: char| letter.is_ascii_uppercase());
    let is_uuid = bare.len() == 36 && bare.matches('-').count() == 4;
    let is_key = length > 31 && check_strength(&text).is_ok() && !is_uuid;
    if length == 0 {
        "hint_app_empty"
    } else if UNREAD
        .split(' ')
        .any(|word| bare.eq_ignore_ascii_case(word))
    {
        "hint_app_unread"
    } else if is_key && !text.contains([' ', ',']) {
        "hint_app_key"
    } else if length <= 64 && AppIdent::try_from(sent).is_err() {
        "hint_app_character"
    } else if length > 64 || is_generated && length.abs_diff(GENERATED_LENGTH).wrapping_sub(1) < 6 {
        "hint_app_length"
    } else {
        "hint_app_unknown"
    }
}

/// APP_ID: the internal id. Never public, so it has no `Display`, and `Debug` does not print it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AppId(i64);

impl AppId {
    /// The one application of single-application mode.
    pub const SINGLE: Self = Self(0);

    /// Creates an id from the number in the store.
    #[must_use]
    pub const fn new(id: i64) -> Self {
        Self(id)
    }

    /// The number, for the store and for the internal header.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }
}

hide_in_debug!(AppId);

/// A name as users see it, without white space at its ends: 1 to `max_length` characters. `None` if it has another length,
/// or a character that is invisible, and so can make it look like another one.
#[must_use]
pub fn shown_name(name: &str, max_length: usize) -> Option<&str> {
    let name = trimmed(name);
    let is_name =
        (1..=max_length).contains(&name.chars().count()) && !name.chars().any(is_invisible);
    is_name.then_some(name)
}

/// A name as it is kept, from someone who does not mend it: without invisible characters, at most `max_bytes` long. `None`
/// if nothing is left.
#[must_use]
pub fn kept_name(name: &str, max_bytes: usize) -> Option<String> {
    let visible = name.chars().filter(|letter| !is_invisible(*letter));
    let visible: String = visible.collect();
    let name = trimmed(&visible);
    // Again: the cut may have left white space at the end.
    let name = trimmed(&name[..name.floor_char_boundary(max_bytes)]);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Without white space and joiners at its ends, where they would join it with the text around it.
fn trimmed(name: &str) -> &str {
    name.trim_matches(|letter: char| letter.is_whitespace() || JOINERS.contains(&letter))
}

/// ZWNJ and ZWJ: format characters that words and emoji consist of.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Letters, marks and symbols that are shown as nothing: fillers of Hangul, joiners and selectors of marks, the empty Braille
/// pattern. Selectors of emoji are not among them: these can be seen.
const BLANKS: [RangeInclusive<char>; 8] = [
    '\u{34f}'..='\u{34f}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{e0100}'..='\u{e01ef}',
];

/// Whether a character is a control or format character, or a separator of lines or paragraphs (Unicode's categories Cc, Cf,
/// Zl, Zp): these change how the text around them is shown, above all its direction. Or it is shown as nothing. The joiners
/// U+200C and U+200D are none: names need them. CONTRACT 7.
#[must_use]
pub fn is_invisible(character: char) -> bool {
    let is_blank = BLANKS.iter().any(|blanks| blanks.contains(&character));
    is_blank
        || !JOINERS.contains(&character)
            && matches!(
                character.general_category(),
                GeneralCategory::Control
                    | GeneralCategory::Format
                    | GeneralCategory::LineSeparator
                    | GeneralCategory::ParagraphSeparator
            )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ident_is_1_to_64_letters_digits_and_punctuation() {
        let longest = "x".repeat(64);
        for good in [
            "a",
            "abcdefghijklmnopqrstuvw1",
            "team-1.mobile_app",
            ".",
            &longest,
        ] {
            assert_eq!(good.parse::<AppIdent>().unwrap().as_str(), good);
        }
        for bad in ["", &"x".repeat(65), "a b", "a/b", "a\\b", "a\0", "ｱbc"] {
            assert!(bad.parse::<AppIdent>().is_err(), "{bad}");
        }
    }

    #[test]
    fn idents_are_compared_byte_for_byte() {
        let ident = |text: &str| text.parse::<AppIdent>().unwrap();
        assert_eq!(ident("team-1"), ident("team-1"));
        for other in ["Team-1", "team-", "team-10"] {
            assert_ne!(ident("team-1"), ident(other));
        }
    }

    #[test]
    fn a_generated_ident_is_24_letters_and_digits() {
        let random: [u8; AppIdent::RANDOM_BYTES] = std::array::from_fn(|index| (index * 37) as u8);
        let ident = AppIdent::generate(&random).unwrap();
        assert_eq!(ident.as_str().len(), 24);
        assert!(
            ident
                .as_str()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric())
        );
        assert_eq!(ident.as_str().parse::<AppIdent>().unwrap(), ident);
    }

    #[test]
    fn bytes_that_favour_letters_are_skipped() {
        assert!(AppIdent::generate(&[255; AppIdent::RANDOM_BYTES]).is_none());
    }

    #[test]
    fn what_is_wrong_with_an_ident_follows_from_its_form() {
        use crate::{language::Language, text::find};
        for (sent, hint) in [
            ("", "hint_app_empty"),
            ("undefined", "hint_app_unread"),
            ("NULL", "hint_app_unread"),
            ("<APP_IDENT>", "hint_app_unread"),
            ("${app_ident}", "hint_app_unread"),
            (&"0123456789abcdef".repeat(4), "hint_app_key"),
            (
                "TjYf6H0-n3Zx_Qm4Vb8sKdWc1LpRg9EuAiO7tYhJx5w",
                "hint_app_key",
            ),
            (
                "TjYf6H0-n3Zx-Qm4V-8sKdWc1L-Rg9EuAiO7tYhJx5w",
                "hint_app_key",
            ),
            ("\"abcdefghIJKLmnop12345678\"", "hint_app_character"),
            (
                "Bearer TjYf6H0-n3Zx_Qm4Vb8sKdWc1LpRg9EuAiO",
                "hint_app_character",
            ),
            ("My first app", "hint_app_character"),
            ("caf\u{e9}", "hint_app_character"),
            (&"a".repeat(65), "hint_app_length"),
            ("abcdefghIJKLmnop1234567", "hint_app_length"),
            ("abcdefghIJKLmnop123456789", "hint_app_length"),
            ("abcdefghIJKLmnop12345678", "hint_app_unknown"),
            ("550e8400-e29b-41d4-a716-446655440000", "hint_app_unknown"),
            ("shop", "hint_app_unknown"),
            ("team-1.mobile_app", "hint_app_unknown"),
        ] {
            assert_eq!(ident_hint(sent.as_bytes()), hint, "{sent}");
            for language in Language::ALL {
                assert!(find(language, hint, &[]).is_some(), "{hint}");
            }
        }
        assert_eq!(ident_hint(b"\xff"), "hint_app_character");
    }

    #[test]
    fn a_name_has_nothing_that_cannot_be_seen() {
        for name in [
            "Shop",
            "店",
            "상점",
            "Shop \u{2764}\u{fe0f}",
            "नमस्ते",
            "می\u{200c}خواهم",
        ] {
            assert_eq!(shown_name(name, 64), Some(name));
        }
        assert_eq!(shown_name("\u{200d}", 64), None);
        for blank in [
            '\u{7}',
            '\u{202e}',
            '\u{200b}',
            '\u{2028}',
            '\u{34f}',
            '\u{1160}',
            '\u{17b4}',
            '\u{2800}',
            '\u{3164}',
            '\u{ffa0}',
            '\u{e0101}',
        ] {
            assert_eq!(shown_name(&format!("a{blank}b"), 64), None, "{blank:?}");
        }
    }

    #[test]
    fn a_kept_name_is_a_text_that_changes_nothing_around_it() {
        let long = "林".repeat(100);
        for (found, expected) in [
            ("Ada Lovelace", "Ada Lovelace"),
            ("  João “Zé”\t\n", "João “Zé”"),
            ("a\u{202e}b\u{2066}c\u{0}\u{85}d\u{feff}\u{e0041}", "abcd"),
            (&long, &long[..255]),
            (&format!("{} b", "a".repeat(254)), &"a".repeat(254)),
            (&format!("{}\u{200d}b", "a".repeat(252)), &"a".repeat(252)),
        ] {
            assert_eq!(kept_name(found, 255).as_deref(), Some(expected));
        }
        for none in ["", " \u{200f}\n"] {
            assert!(kept_name(none, 255).is_none(), "{none}");
        }
    }

    #[test]
    fn names_are_kept_as_the_vectors_say() {
        let vectors = include_str!("../../../tests/vectors/text-vectors.json");
        let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
        for case in vectors["cases"].as_array().unwrap() {
            let kept = kept_name(case["text"].as_str().unwrap(), 255);
            assert_eq!(kept.as_deref(), case["kept"].as_str(), "{}", case["name"]);
        }
    }

    #[test]
    fn an_id_is_not_printed() {
        assert!(!format!("{:?}", AppId::new(4711)).contains("4711"));
    }
}
