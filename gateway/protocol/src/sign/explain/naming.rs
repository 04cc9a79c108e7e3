//! The mistake that a departure is.

use super::{
    edit::Edit,
    encoding::ENCODERS,
    recipe::{KeyForm, KeyPlace, Order, RIGHT_HEAD, Recipe, Spelling},
    sent::{MISSING, Sent},
    slip::{Respelling, ShortText, Slip, StringChange},
};
use crate::sign::{SIGN, TIME};

/// The mistake that `edit` of `start`, which has another hash than the rule, is besides that hash. `None` if the key then
/// stands where the rule has it.
pub(super) fn second_slip(
    edit: &Edit<'_>,
    start: &Recipe<'_>,
    rule: &Recipe<'_>,
    sent: &Sent<'_>,
) -> Option<Slip> {
    let written = edit.apply(start);
    let is_joining = matches!(edit, Edit::Place(_) | Edit::Joined(..));
    let is_right = is_joining && written.joining() == rule.joining();
    (!is_right).then(|| named(edit, &written, rule, sent))
}

/// The mistake that `edit` of `rule` is. Where two have the same string, the slip that is true of both.
pub(super) fn slip(edit: &Edit<'_>, rule: &Recipe<'_>, sent: &Sent<'_>) -> Slip {
    named(edit, &edit.apply(rule), rule, sent)
}

/// The mistake that `edit` is, with which `written` came about.
fn named(edit: &Edit<'_>, written: &Recipe<'_>, rule: &Recipe<'_>, sent: &Sent<'_>) -> Slip {
    match *edit {
        Edit::Order(Order::AsSent) => Slip::Unsorted,
        Edit::Order(order) => Slip::Order(order.as_str()),
        Edit::Spelling(spelling) => respelled(spelling, rule, sent),
        Edit::DropEmpty(true) => Slip::EmptyDropped,
        Edit::DropEmpty(false) => Slip::EmptyKept,
        Edit::Joined(..) | Edit::Place(_) => joined(written, rule),
        Edit::Json => Slip::Json,
        Edit::Parts(true, false) => Slip::FormLeftOut,
        Edit::Parts(false, true) => Slip::QueryLeftOut,
        Edit::Parts(..) => Slip::ValueChanged("nothing"),
        Edit::Doubles("") => Slip::ValueChanged("once"),
        Edit::Doubles(_) => Slip::ValueChanged("joined"),
        Edit::Change(row, _) => match &*row[0] {
            "charset" => Slip::Charset,
            name => Slip::ValueChanged(name),
        },
        Edit::Time(_) => Slip::ValueChanged("time"),
        Edit::Lower(_) => Slip::ValueChanged("text"),
        Edit::Swapped => Slip::KeyForm("swapped"),
        Edit::Without(key) if key == TIME.as_bytes() => Slip::TimeNotSigned,
        Edit::Without(key) => Slip::ParamNotSigned(ShortText::new(key)),
        Edit::With(key) => Slip::ParamSigned(ShortText::new(key)),
        Edit::Around("", "&sign=") => Slip::ParamSigned(ShortText::new(SIGN.as_bytes())),
        Edit::Around("&" | "?", "") | Edit::Around("", "&") => Slip::StraySeparator,
        Edit::Around(..) => layout(written, rule, Slip::Layout),
        Edit::Head(None) => Slip::Cover("request"),
        Edit::Head(Some(RIGHT_HEAD)) => Slip::Cover("parameters"),
        Edit::Head(Some(_)) if rule.head.is_none() => Slip::Cover("address"),
        Edit::Head(Some(_)) => Slip::CoverForm,
        Edit::KeyForm(KeyForm::With("", "\n" | "\r\n")) | Edit::Tail(_) => Slip::TrailingNewline,
        Edit::KeyForm(form) => Slip::KeyForm(match form {
            KeyForm::FromHex => "hex",
            KeyForm::FromBase64 => "base64",
            KeyForm::OtherCase => "case",
            KeyForm::With("\u{feff}", _) => "bom",
            KeyForm::With("\"" | "'", _) => "quotes",
            KeyForm::Cut(_) => "cut",
            KeyForm::Instead(_) => "unread",
            KeyForm::With(..) | KeyForm::AsIs => "space",
        }),
        Edit::Preset(name, _) => Slip::Preset(name),
    }
}

fn joined(written: &Recipe<'_>, rule: &Recipe<'_>) -> Slip {
    let slip = match (written.place, rule.place) {
        _ if written.join != rule.join => Slip::Layout,
        // Without the layout: anyone can make this signature, and needs no key.
        (KeyPlace::Nowhere, _) if !written.hash.is_hmac() => return Slip::KeyMissing,
        (KeyPlace::Nowhere | KeyPlace::End, KeyPlace::Labelled) => Slip::KeyNotLabelled,
        (KeyPlace::Front | KeyPlace::Both, KeyPlace::Labelled) => Slip::KeyInFront,
        _ if rule.hash.is_hmac() => Slip::KeyInText,
        (KeyPlace::Labelled, _) => Slip::KeyLabelled,
        (KeyPlace::Front | KeyPlace::Both, KeyPlace::End) => Slip::KeyInFront,
        _ => Slip::Layout,
    };
    layout(written, rule, slip)
}

fn layout(written: &Recipe<'_>, rule: &Recipe<'_>, slip: fn(StringChange) -> Slip) -> Slip {
    slip(StringChange {
        rule: rule.joining(),
        found: written.joining(),
    })
}

fn respelled(spelling: Spelling, start: &Recipe<'_>, sent: &Sent<'_>) -> Slip {
    let is_wire = start.spelling == Spelling::Sent;
    let missing = |signed: &[u8], sent: &[u8]| {
        Slip::MissingValue(StringChange {
            rule: ShortText::new(sent),
            found: ShortText::new(signed),
        })
    };
    let sends = |text: &&&[u8]| sent.pairs.iter().any(|pair| pair.wire_value == **text);
    match spelling {
        Spelling::LowerEscapes | Spelling::UpperEscapes => Slip::EscapeCase,
        Spelling::SpaceAsEscape => Slip::SpaceAsEscape,
        Spelling::SpaceAsPlus => Slip::SpaceAsPlus,
        Spelling::Twice => Slip::EncodedTwice,
        Spelling::EmptyAs(text) => missing(text, b""),
        Spelling::MissingAsEmpty => {
            missing(b"", MISSING.iter().find(sends).copied().unwrap_or_default())
        }
        Spelling::Decoded
            if sent
                .pairs
                .iter()
                .any(|pair| is_encoded_twice(pair.wire_value)) =>
        {
            Slip::EncodedTwice
        }
        // Some functions leave all of these characters as they are.
        Spelling::Decoded => raw_encoder(start, sent)
            .and_then(|index| respelling(start, sent, index, true))
            .map_or(Slip::Decoded, Slip::EncodedDifferently),
        Spelling::Encoded(index) if is_wire => {
            respelling(start, sent, index, false).map_or(Slip::Decoded, Slip::EncodedDifferently)
        }
        Spelling::Encoded(_) | Spelling::Sent => Slip::Encoded,
    }
}

/// Whether it has the escape of an escape.
fn is_encoded_twice(value: &[u8]) -> bool {
    let mut escapes = value.windows(5);
    escapes
        .any(|escape| escape.starts_with(b"%25") && escape[3..].iter().all(u8::is_ascii_hexdigit))
}

/// The first encoder that changes nothing of what is signed.
fn raw_encoder(start: &Recipe<'_>, sent: &Sent<'_>) -> Option<usize> {
    ENCODERS.iter().position(|encoder| {
        let mut signed = start.signed(sent);
        signed.all(|pair| encoder.keeps(pair.key) && encoder.keeps(&pair.value))
    })
}

/// The first character that the encoder writes in another form than it was sent.
fn respelling(
    start: &Recipe<'_>,
    sent: &Sent<'_>,
    index: usize,
    is_raw: bool,
) -> Option<Respelling> {
    let mut parts = start.signed(sent).flat_map(|pair| {
        let key = (pair.wire_key, pair.key);
        let value = (pair.wire_value, &*pair.value);
        [(pair.key, key), (pair.key, value)]
    });
    parts.find_map(|(key, (mut wire, decoded))| {
        for letter in String::from_utf8_lossy(decoded).chars() {
            let mut buffer = [0; 4];
            let mut signed = Vec::new();
            let letter = letter.encode_utf8(&mut buffer).as_bytes();
            ENCODERS[index].encode(letter, &mut signed);
            let lengths = letter.iter().scan(wire, |rest, _| {
                let length = if rest.first() == Some(&b'%') { 3 } else { 1 };
                *rest = rest.get(length..).unwrap_or_default();
                Some(length)
            });
            let (sent, rest) = wire.split_at(lengths.sum::<usize>().min(wire.len()));
            if sent != signed {
                return Some(Respelling {
                    key: ShortText::new(key),
                    signed: ShortText::new(&signed),
                    sent: ShortText::new(sent),
                    function: &ENCODERS[index].names,
                    is_raw,
                });
            }
            wire = rest;
        }
        None
    })
}
