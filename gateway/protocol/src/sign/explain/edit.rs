//! The departures from the rules that a search tries, the most frequent ones first.

use super::{
    encoding::ENCODERS,
    recipe::{Head, KeyForm, Order, Place, Recipe, Sent, Spelling},
    slip::{Respelling, ShortText, Slip},
};
use crate::sign::{SignProfile, SignValues, TIME};

/// One departure from a recipe.
#[derive(Clone)]
pub(super) enum Edit {
    Order(Order),
    Spelling(Spelling),
    DropEmpty(bool),
    Joined(bool, Place),
    Json,
    BodyOnly,
    EmptySign,
    LeaveOut(Vec<String>),
    Head(Option<Head>),
    Place(Place),
    KeyForm(KeyForm),
    Around(&'static str, &'static str),
    Tail(&'static str),
}

impl Edit {
    pub(super) fn apply(&self, recipe: &mut Recipe) {
        match self {
            Self::Order(order) => recipe.order = *order,
            Self::Spelling(spelling) => recipe.spelling = *spelling,
            Self::DropEmpty(is_dropping) => recipe.is_dropping_empty = *is_dropping,
            Self::Joined(is_joined, place) => {
                recipe.is_joined = *is_joined;
                recipe.place = *place;
            }
            Self::Json => recipe.is_json = true,
            Self::BodyOnly => recipe.is_body_only = true,
            Self::EmptySign => recipe.is_empty_sign_signed = true,
            Self::LeaveOut(keys) => recipe.left_out.clone_from(keys),
            Self::Head(head) => recipe.head = *head,
            Self::Place(place) => recipe.place = *place,
            Self::KeyForm(form) => recipe.key_form = *form,
            Self::Around(before, after) => recipe.around = (before, after),
            Self::Tail(tail) => recipe.tail = tail,
        }
    }

    /// Whether both change the same thing, so that they cannot be combined.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The departures of which two are tried together.
pub(super) fn common(start: &Recipe, profile: &SignProfile, sent: &Sent<'_>) -> Vec<(Slip, Edit)> {
    let is_wire = profile.values == SignValues::Wire;
    let empty = match start.is_dropping_empty {
        true => Slip::EmptyKept,
        false => Slip::EmptyDropped,
    };
    let mut without_time = start.left_out.clone();
    without_time.push(TIME.to_owned());
    let mut edits = vec![
        (Slip::Unsorted, Edit::Order(Order::AsSent)),
        (empty, Edit::DropEmpty(!start.is_dropping_empty)),
    ];
    let spell = |spelling, slip| (slip, Edit::Spelling(spelling));
    if is_wire {
        edits.extend([
            spell(Spelling::LowerEscapes, Slip::EscapeCase),
            spell(Spelling::UpperEscapes, Slip::EscapeCase),
            spell(Spelling::SpaceAsEscape, Slip::SpaceAsEscape),
            spell(Spelling::SpaceAsPlus, Slip::SpaceAsPlus),
        ]);
    } else {
        edits.push(spell(Spelling::Sent, Slip::Encoded));
    }
    let mut values = sent.pairs.iter().map(|pair| pair.wire_value);
    if is_wire && values.any(is_encoded_twice) {
        edits.push(spell(Spelling::Decoded, Slip::EncodedTwice));
    }
    let encoded = match is_wire {
        true => Slip::EncodedDifferently(Respelling::NONE),
        false => Slip::Encoded,
    };
    edits.extend((0..ENCODERS.len()).map(|index| spell(Spelling::Encoded(index), encoded)));
    if is_wire {
        edits.push(spell(Spelling::Decoded, Slip::Decoded));
    }
    let labelled = match start.place {
        Place::Labelled => (Slip::KeyNotLabelled, Edit::Place(plain_place(start))),
        _ if start.hash.is_hmac() => (Slip::KeyInText, Edit::Place(Place::End)),
        _ => (Slip::KeyLabelled, Edit::Place(Place::Labelled)),
    };
    let head = match start.head {
        Some(_) => None,
        None => Some(Head::RIGHT),
    };
    edits.extend([
        labelled,
        (Slip::TimeNotSigned, Edit::LeaveOut(without_time)),
        (Slip::TrailingNewline, Edit::Tail("\n")),
        (
            Slip::TrailingNewline,
            Edit::KeyForm(KeyForm::With("", "\n")),
        ),
        (Slip::KeyForm, Edit::KeyForm(KeyForm::FromHex)),
        (Slip::Cover, Edit::Head(head)),
        (Slip::QueryLeftOut, Edit::BodyOnly),
    ]);
    edits
}

/// Further departures, each tried alone.
pub(super) fn rare(start: &Recipe, sent: &Sent<'_>) -> Vec<(Slip, Edit)> {
    let mut edits = Vec::new();
    let front = match start.hash.is_hmac() {
        true => Slip::KeyInText,
        false => Slip::KeyInFront,
    };
    edits.extend([
        (front, Edit::Place(Place::Front)),
        (front, Edit::Place(Place::Both)),
        (Slip::KeyInText, Edit::Place(Place::Labelled)),
        (Slip::KeyMissing, Edit::Place(Place::Nowhere)),
        (Slip::EncodedTwice, Edit::Spelling(Spelling::Twice)),
    ]);
    let places = match start.hash.is_hmac() {
        true => [Place::Nowhere, Place::Labelled, Place::End],
        false => [Place::End, Place::Labelled, Place::Both],
    };
    for is_joined in [true, false] {
        edits.extend(places.map(|place| (Slip::Layout, Edit::Joined(is_joined, place))));
    }
    edits.extend([
        (Slip::TrailingNewline, Edit::Tail("\r\n")),
        (
            Slip::TrailingNewline,
            Edit::KeyForm(KeyForm::With("", "\r\n")),
        ),
    ]);
    let forms = [
        KeyForm::OtherCase,
        KeyForm::FromBase64,
        KeyForm::With("\"", "\""),
        KeyForm::With("'", "'"),
        KeyForm::With("", " "),
        KeyForm::With(" ", ""),
        KeyForm::With("\u{feff}", ""),
    ];
    edits.extend(forms.map(|form| (Slip::KeyForm, Edit::KeyForm(form))));
    let orders = [
        Order::KeyThenValue,
        Order::WholePair,
        Order::IgnoringCase,
        Order::Descending,
        Order::Value,
    ];
    edits.extend(orders.map(|order| (Slip::Order, Edit::Order(order))));
    edits.extend(other_keys(start, sent));
    let around = [("&", ""), ("", "&"), ("?", "")];
    edits.extend(around.map(|(before, after)| (Slip::StraySeparator, Edit::Around(before, after))));
    let sign = Slip::ParamSigned(ShortText::new(b"sign"));
    edits.extend([(sign, Edit::EmptySign), (sign, Edit::Around("", "&sign="))]);
    if let Some(head) = start.head {
        let forms = other_heads(head).map(|head| (Slip::CoverForm, Edit::Head(Some(head))));
        edits.extend(forms);
    }
    edits.push((Slip::Json, Edit::Json));
    edits
}

/// A key that is left out although it must be signed, or the reverse.
fn other_keys(start: &Recipe, sent: &Sent<'_>) -> Vec<(Slip, Edit)> {
    /// More keys are not tried one by one.
    const MAX_KEYS: usize = 16;
    let mut edits = Vec::new();
    for key in &start.left_out {
        let others = start.left_out.iter().filter(|other| *other != key);
        let slip = Slip::ParamSigned(ShortText::new(key.as_bytes()));
        edits.push((slip, Edit::LeaveOut(others.cloned().collect())));
    }
    let signed = sent.pairs.iter().filter(|pair| start.signs(pair));
    for pair in signed.take(MAX_KEYS) {
        let mut left_out = start.left_out.clone();
        left_out.push(String::from_utf8_lossy(pair.key).into_owned());
        let slip = Slip::ParamNotSigned(ShortText::new(pair.key));
        edits.push((slip, Edit::LeaveOut(left_out)));
    }
    edits
}

fn other_heads(right: Head) -> [Head; 8] {
    let with = |separator| Head {
        separator,
        last: separator,
        ..right
    };
    [
        Head {
            has_query: true,
            ..right
        },
        Head {
            is_lower_case: true,
            ..right
        },
        Head { last: "", ..right },
        with("\\n"),
        with(""),
        with(" "),
        Head {
            has_slash: false,
            ..right
        },
        Head {
            is_at_end: true,
            last: "",
            ..right
        },
    ]
}

/// Where the key stands without `&key=`.
fn plain_place(start: &Recipe) -> Place {
    if start.hash.is_hmac() {
        Place::Nowhere
    } else {
        Place::End
    }
}

/// Whether it has the escape of an escape.
fn is_encoded_twice(value: &[u8]) -> bool {
    let mut escapes = value.windows(5);
    escapes
        .any(|escape| escape.starts_with(b"%25") && escape[3..].iter().all(u8::is_ascii_hexdigit))
}

/// The mistake that an edit is, with what its text names.
pub(super) fn named((slip, edit): &(Slip, Edit), start: &Recipe, sent: &Sent<'_>) -> Slip {
    match (slip, edit) {
        (Slip::EncodedDifferently(_), Edit::Spelling(Spelling::Encoded(index))) => {
            respelling(start, sent, *index).map_or(*slip, Slip::EncodedDifferently)
        }
        _ => *slip,
    }
}

/// The first character that the encoder writes in another form than it was sent.
fn respelling(start: &Recipe, sent: &Sent<'_>, index: usize) -> Option<Respelling> {
    let signed = sent.pairs.iter().filter(|pair| start.signs(pair));
    let mut parts = signed.flat_map(|pair| {
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
                    function: ENCODERS[index].names,
                });
            }
            wire = rest;
        }
        None
    })
}
