//! The departures from the rules that a search tries.

use super::{
    encoding::{ENCODERS, encoder_of},
    recipe::{CONCAT, KeyForm, KeyPlace, Order, PAIRS, RIGHT_HEAD, Recipe, Spelling},
    sent::{MISSING, Sent},
    table::rows,
};
use crate::sign::{SIGN, SignProfile, TIME};

/// Limit on the milliseconds between two readings of a clock for one request.
const BETWEEN_READINGS: i64 = 5;

/// One departure from a recipe.
#[expect(
    clippy::large_enum_variant,
    reason = "one at a time is tried, and it is copied"
)]
#[derive(Clone, Copy)]
pub(super) enum Edit<'a> {
    Order(Order),
    Spelling(Spelling),
    DropEmpty(bool),
    Joined((&'static str, &'static str), KeyPlace),
    Json,
    /// The parts of the request whose pairs are signed.
    Parts(bool, bool),
    Doubles(&'static str),
    /// A row of the table, and the index of the encoder for what it makes.
    Change(&'static [String], usize),
    Time(i64),
    /// Everything in lower case, or in upper case.
    Lower(bool),
    /// Key and text of the HMAC in each other's place.
    Swapped,
    Without(&'a [u8]),
    With(&'a [u8]),
    Head(Option<&'static str>),
    Place(KeyPlace),
    KeyForm(KeyForm),
    Around(&'static str, &'static str),
    Tail(&'static str),
    /// All rules of this preset.
    Preset(&'static str, Recipe<'a>),
}

impl<'a> Edit<'a> {
    pub(super) fn apply(&self, recipe: &Recipe<'a>) -> Recipe<'a> {
        let mut recipe = *recipe;
        match *self {
            Self::Order(order) => recipe.order = order,
            Self::Spelling(spelling) => recipe.spelling = spelling,
            Self::DropEmpty(is_dropping) => recipe.is_dropping_empty = is_dropping,
            Self::Joined(join, place) => {
                recipe.join = join;
                recipe.place = place;
            }
            Self::Json => recipe.is_json = true,
            Self::Parts(query, form) => recipe.parts = (query, form),
            Self::Doubles(by) => recipe.doubles = Some(by),
            Self::Change(row, encoder) => recipe.change = Some((row, encoder)),
            Self::Time(by) => recipe.time = Some(by),
            Self::Lower(is_lower) => recipe.is_lower = Some(is_lower),
            Self::Swapped => recipe.is_swapped = true,
            Self::Without(key) => recipe.without = Some(key),
            Self::With(key) => recipe.with = Some(key),
            Self::Head(head) => {
                recipe.head = head;
                // It has all of them, in the order in which they are sent.
                if head.is_some_and(|head| head.ends_with('Q')) {
                    recipe.parts = (false, false);
                }
            }
            Self::Place(place) => recipe.place = place,
            Self::KeyForm(form) => recipe.key_form = form,
            Self::Around(before, after) => recipe.around = (before, after),
            Self::Tail(tail) => recipe.tail = tail,
            Self::Preset(_, preset) => recipe = preset,
        }
        recipe
    }

    /// Whether both change the same thing, so that they cannot be combined.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// The departures from `start`, in the order in which they are tried, with whether each is tried in pairs, too.
///
/// Those at the front need the least work: a request of any size has them.
pub(super) struct Departures<'a> {
    pub(super) all: Vec<(Edit<'a>, bool)>,
}

impl<'a> Departures<'a> {
    /// The frequent departures, other layouts, and the presets.
    pub(super) fn usual(
        start: &Recipe<'a>,
        sent: &Sent<'a>,
        presets: &'a [(&'static str, SignProfile)],
    ) -> Self {
        let is_hmac = start.hash.is_hmac();
        let mut usual = Self { all: Vec::new() };
        usual.frequent(start);
        let places = match is_hmac {
            true => [KeyPlace::Nowhere, KeyPlace::Labelled, KeyPlace::End],
            false => [KeyPlace::End, KeyPlace::Labelled, KeyPlace::Both],
        };
        usual.alone([Edit::Place(KeyPlace::Front), Edit::Tail("\r\n")]);
        let other = if start.join == PAIRS { CONCAT } else { PAIRS };
        for join in [other, start.join] {
            usual.alone(places.map(|place| Edit::Joined(join, place)));
        }
        // Of the keys that a preset leaves out, tried before the preset.
        let left_out = presets.iter().flat_map(|(_, preset)| &preset.leave_out);
        usual.alone(left_out.map(|key| Edit::Without(key.as_bytes())));
        usual.alone(start.left_out.iter().map(|key| Edit::With(key.as_bytes())));
        usual.alone(presets.iter().map(|(name, preset)| {
            let recipe = Recipe::of(preset).with_hash(start.hash, preset.layout);
            let head = start.head;
            Edit::Preset(name, Recipe { head, ..recipe })
        }));
        usual.in_pairs((0..ENCODERS.len()).map(|index| Edit::Spelling(Spelling::Encoded(index))));
        usual.in_pairs([
            Edit::KeyForm(KeyForm::With("", "\n")),
            Edit::KeyForm(KeyForm::FromHex),
        ]);
        usual.missing_values(sent);
        usual
    }

    /// The opposite of each rule, and how escapes are written.
    fn frequent(&mut self, start: &Recipe<'a>) {
        let spelling = match start.spelling {
            Spelling::Decoded => Spelling::Sent,
            _ => Spelling::Decoded,
        };
        let label = match (start.place, start.hash.is_hmac()) {
            (KeyPlace::Labelled, true) => KeyPlace::Nowhere,
            (KeyPlace::Labelled, false) | (_, true) => KeyPlace::End,
            _ => KeyPlace::Labelled,
        };
        self.in_pairs([
            Edit::Order(Order::AsSent),
            Edit::DropEmpty(!start.is_dropping_empty),
            Edit::Spelling(spelling),
            Edit::Place(label),
            Edit::Without(TIME.as_bytes()),
            Edit::Tail("\n"),
            Edit::Head(start.head.is_none().then_some(RIGHT_HEAD)),
            Edit::Parts(false, true),
        ]);
        if spelling == Spelling::Decoded {
            let of_sent = [
                Spelling::LowerEscapes,
                Spelling::UpperEscapes,
                Spelling::SpaceAsEscape,
                Spelling::SpaceAsPlus,
            ];
            self.in_pairs(of_sent.map(Edit::Spelling));
        }
    }

    /// Adds the other departures, each tried alone.
    pub(super) fn add_rare(&mut self, start: &Recipe<'a>, sent: &Sent<'a>) {
        /// More keys are not tried one by one.
        const MAX_KEYS: usize = 16;
        self.alone([KeyPlace::Both, KeyPlace::Nowhere].map(Edit::Place));
        self.alone([Edit::Spelling(Spelling::Twice)]);
        let cuts = [0, 32, 16].map(KeyForm::Cut);
        let forms = [KeyForm::OtherCase, KeyForm::FromBase64]
            .into_iter()
            .chain(cuts);
        let around = rows("key").map(|row| KeyForm::With(&row[0], &row[1]));
        let unread = rows("unread").map(|row| KeyForm::Instead(&row[0]));
        self.alone(forms.chain(around).chain(unread).map(Edit::KeyForm));
        self.alone(Order::ALL[2..].iter().copied().map(Edit::Order));
        let signed = start.signed(sent);
        self.alone(signed.take(MAX_KEYS).map(|pair| Edit::Without(pair.key)));
        self.alone(rows("around").map(|row| Edit::Around(&row[0], &row[1])));
        self.alone([Edit::With(SIGN.as_bytes()), Edit::Json]);
        let heads = rows(if start.head.is_some() {
            "head"
        } else {
            "address"
        });
        self.alone(heads.map(|row| Edit::Head(Some(row[0].as_str()))));
        self.alone([Edit::Parts(true, false), Edit::Parts(false, false)]);
        let encoder = encoder_of(sent);
        self.alone(rows("change").map(|row| Edit::Change(row, encoder)));
        self.alone(["", ",", "%2C"].map(Edit::Doubles));
        self.alone((-BETWEEN_READINGS..=BETWEEN_READINGS).map(Edit::Time));
        self.alone(
            rows("join").map(|row| Edit::Joined((row[0].as_str(), row[1].as_str()), start.place)),
        );
        self.alone([Edit::Lower(true), Edit::Lower(false)]);
        self.alone(start.hash.is_hmac().then_some(Edit::Swapped));
    }

    fn in_pairs(&mut self, edits: impl IntoIterator<Item = Edit<'a>>) {
        self.all.extend(edits.into_iter().map(|edit| (edit, true)));
    }

    fn alone(&mut self, edits: impl IntoIterator<Item = Edit<'a>>) {
        self.all.extend(edits.into_iter().map(|edit| (edit, false)));
    }

    /// A missing value, written as an empty one in the request or in the string.
    fn missing_values(&mut self, sent: &Sent<'_>) {
        let mut values = sent.pairs.iter().map(|pair| pair.wire_value);
        if values.clone().any(<[u8]>::is_empty) {
            self.alone(MISSING.map(|text| Edit::Spelling(Spelling::EmptyAs(text))));
        }
        if values.any(|value| MISSING.contains(&value)) {
            self.alone([Edit::Spelling(Spelling::MissingAsEmpty)]);
        }
    }
}
