//! How a client made its signature: the rules of the profile, and where it may have departed from them.

use std::{borrow::Cow, cmp::Ordering};

use smallvec::SmallVec;

use super::{
    encoding::{ENCODERS, STRICT},
    given::Hash,
    sent::{MISSING, Pair, Sent},
    slip::ShortText,
    table::changed,
};
use crate::{
    param::Params,
    sign::{AppKey, SIGN, SignCover, SignEmpty, SignLayout, SignProfile, SignValues, TIME},
};

label_enum! {
    /// The order of the pairs: the right order, the request's, and rare ones.
    pub(super) enum Order {
        Key = "key",
        AsSent = "as-sent",
        KeyThenValue = "value-too",
        WholePair = "pair",
        Value = "value",
        IgnoringCase = "ignoring-case",
        Descending = "descending",
        Utf16 = "utf-16",
    }
}

/// How keys and values are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    Sent,
    Decoded,
    /// By one of the [`ENCODERS`].
    Encoded(usize),
    /// The form that was sent, encoded once more.
    Twice,
    LowerEscapes,
    UpperEscapes,
    SpaceAsEscape,
    SpaceAsPlus,
    /// An empty value as one of [`MISSING`].
    EmptyAs(&'static [u8]),
    /// Each of [`MISSING`] as an empty value.
    MissingAsEmpty,
}

/// Where the key stands in the string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPlace {
    Nowhere,
    End,
    Labelled,
    Front,
    Both,
}

/// How the key is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyForm {
    AsIs,
    FromHex,
    FromBase64,
    OtherCase,
    With(&'static str, &'static str),
    /// Its first characters; 0: all but the last.
    Cut(usize),
    /// This text in its place.
    Instead(&'static str),
}

/// The way from the request to the signature.
#[derive(Clone, Copy)]
pub(super) struct Recipe<'a> {
    pub(super) hash: Hash,
    pub(super) order: Order,
    pub(super) spelling: Spelling,
    pub(super) is_dropping_empty: bool,
    /// What stands in a pair, and between two.
    pub(super) join: (&'static str, &'static str),
    pub(super) is_json: bool,
    /// Whether the query's pairs are signed, and whether the form's pairs are.
    pub(super) parts: (bool, bool),
    /// What joins the values of one name; if that is empty, only the last one is signed.
    pub(super) doubles: Option<&'static str>,
    /// The row of the table that says what becomes of names and values, and the index of the encoder for that.
    pub(super) change: Option<(&'static [String], usize)>,
    /// Milliseconds between the signed `time` and the sent one. 0: the signed one is in seconds.
    pub(super) time: Option<i64>,
    /// The keys that are not signed by rule, in addition to `sign`.
    pub(super) left_out: &'a [String],
    /// Another key that is not signed.
    pub(super) without: Option<&'a [u8]>,
    /// A key that is signed although it is left out by rule.
    pub(super) with: Option<&'a [u8]>,
    /// How method and path are written: see [`RIGHT_HEAD`].
    pub(super) head: Option<&'static str>,
    pub(super) place: KeyPlace,
    pub(super) key_form: KeyForm,
    /// What stands around the pairs.
    pub(super) around: (&'static str, &'static str),
    /// What follows everything.
    pub(super) tail: &'static str,
    /// Whether everything is in lower case, or in upper case.
    pub(super) is_lower: Option<bool>,
    /// Whether the string is the key of the HMAC, and the key its text.
    pub(super) is_swapped: bool,
}

/// The method, the path and line feeds. The letters of other forms are in `departures.txt`.
pub(super) const RIGHT_HEAD: &str = "M\nP\n";

/// Of pairs, and of what has no separators.
pub(super) const PAIRS: (&str, &str) = ("=", "&");
pub(super) const CONCAT: (&str, &str) = ("", "");

impl<'a> Recipe<'a> {
    /// The right way.
    pub(super) fn of(profile: &'a SignProfile) -> Self {
        let hash = Hash::of(profile.algorithm);
        Self {
            hash,
            order: Order::Key,
            spelling: match profile.values {
                SignValues::Wire => Spelling::Sent,
                SignValues::Decoded => Spelling::Decoded,
            },
            is_dropping_empty: profile.empty == SignEmpty::Drop,
            join: match profile.layout {
                SignLayout::Pairs | SignLayout::PairsKey => PAIRS,
                SignLayout::Concat | SignLayout::ConcatBoth => CONCAT,
            },
            is_json: false,
            parts: (true, true),
            doubles: None,
            change: None,
            time: None,
            left_out: &profile.leave_out,
            without: None,
            with: None,
            head: (profile.cover == SignCover::Request).then_some(RIGHT_HEAD),
            place: place_of(profile.layout, hash),
            key_form: KeyForm::AsIs,
            around: ("", ""),
            tail: "",
            is_lower: None,
            is_swapped: false,
        }
    }

    /// Changes the hash, and with it the place of the key.
    pub(super) fn with_hash(mut self, hash: Hash, layout: SignLayout) -> Self {
        self.hash = hash;
        self.place = place_of(layout, hash);
        self
    }

    /// How pairs and key are joined, as an example.
    pub(super) fn joining(&self) -> ShortText {
        let params = Params::parse(b"a=1&b=2", b"", 2).unwrap_or_default();
        let (sent, mut example) = (Sent::new(("", "", ""), &params), Vec::new());
        let mut recipe = *self;
        recipe.head = None;
        recipe.write(&sent, b"KEY", &mut example);
        ShortText::new(&example)
    }

    /// Writes the string, with this key.
    pub(super) fn write(&self, sent: &Sent<'_>, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let is_last = self.head.is_some_and(|head| head.starts_with('\n'));
        self.write_head(!is_last, sent, out);
        if matches!(self.place, KeyPlace::Front | KeyPlace::Both) {
            out.extend_from_slice(key);
        }
        out.extend_from_slice(self.around.0.as_bytes());
        let before = out.len();
        self.write_pairs(sent, out);
        let has_pairs = out.len() > before;
        out.extend_from_slice(self.around.1.as_bytes());
        self.write_head(is_last, sent, out);
        if self.place == KeyPlace::Labelled {
            let label: &[u8] = if has_pairs { b"&key=" } else { b"key=" };
            out.extend_from_slice(label);
        }
        if matches!(
            self.place,
            KeyPlace::End | KeyPlace::Labelled | KeyPlace::Both
        ) {
            out.extend_from_slice(key);
        }
        out.extend_from_slice(self.tail.as_bytes());
        match self.is_lower {
            Some(true) => out.make_ascii_lowercase(),
            Some(false) => out.make_ascii_uppercase(),
            None => {}
        }
    }

    fn write_pairs(&self, sent: &Sent<'_>, out: &mut Vec<u8>) {
        let mut pairs: SmallVec<[&Pair<'_>; 16]> = self.signed(sent).collect();
        if self.order != Order::Key {
            // Back to the order of the request, which the stable sort below keeps for equal keys, as most languages do.
            pairs.sort_unstable_by_key(|pair| pair.index);
            pairs.sort_by(|pair, other| compare(self.order, pair, other));
        }
        if self.is_json {
            out.extend_from_slice(&json(&pairs));
            return;
        }
        let mut last_value = 0;
        for (index, pair) in pairs.iter().enumerate() {
            let is_double = index > 0 && pairs[index - 1].key == pair.key;
            match self.doubles.filter(|_| is_double) {
                Some("") => out.truncate(last_value),
                Some(by) => out.extend_from_slice(by.as_bytes()),
                None => {
                    let between = if index > 0 { self.join.1 } else { "" };
                    out.extend_from_slice(between.as_bytes());
                    self.spell(pair.wire_key, pair.key, out);
                    out.extend_from_slice(self.join.0.as_bytes());
                }
            }
            last_value = out.len();
            // `sign` was signed before it had a value.
            if pair.key != SIGN.as_bytes() {
                self.spell_value(pair, out);
            }
        }
    }

    fn spell_value(&self, pair: &Pair<'_>, out: &mut Vec<u8>) {
        let time = self.time.filter(|_| pair.key == TIME.as_bytes());
        match (self.spelling, time) {
            (_, Some(by)) => out.extend_from_slice(other_time(&pair.value, by).as_bytes()),
            (Spelling::EmptyAs(text), _) if pair.wire_value.is_empty() => {
                out.extend_from_slice(text);
            }
            (Spelling::MissingAsEmpty, _) if MISSING.contains(&pair.wire_value) => {}
            _ => self.spell(pair.wire_value, &pair.value, out),
        }
    }

    fn spell(&self, wire: &[u8], decoded: &[u8], out: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(decoded);
        let change = self
            .change
            .map(|(row, encoder)| (changed(row, &text), encoder));
        match (self.spelling, change) {
            (Spelling::Decoded, Some((changed, _))) => out.extend_from_slice(&changed),
            (_, Some((changed, encoder))) => ENCODERS[encoder].encode(&changed, out),
            (Spelling::Sent | Spelling::EmptyAs(_) | Spelling::MissingAsEmpty, None) => {
                out.extend_from_slice(wire);
            }
            (Spelling::Decoded, None) => out.extend_from_slice(decoded),
            (Spelling::Encoded(index), None) => ENCODERS[index].encode(decoded, out),
            (Spelling::Twice, None) => ENCODERS[STRICT].encode(wire, out),
            (Spelling::LowerEscapes, None) => respell_escapes(wire, u8::to_ascii_lowercase, out),
            (Spelling::UpperEscapes, None) => respell_escapes(wire, u8::to_ascii_uppercase, out),
            (Spelling::SpaceAsEscape, None) => replace(wire, b"+", b"%20", out),
            (Spelling::SpaceAsPlus, None) => replace(wire, b"%20", b"+", out),
        }
    }

    /// Writes method and path, if `is_here`.
    fn write_head(&self, is_here: bool, sent: &Sent<'_>, out: &mut Vec<u8>) {
        let (method, host, path) = sent.target;
        for letter in self.head.filter(|_| is_here).unwrap_or_default().bytes() {
            match letter {
                b'M' => out.extend_from_slice(method.as_bytes()),
                b'L' => out.extend_from_slice(method.to_ascii_lowercase().as_bytes()),
                b'H' => out.extend_from_slice(host.as_bytes()),
                b'P' | b'Q' => out.extend_from_slice(path.as_bytes()),
                b'S' => out.extend_from_slice(path.trim_start_matches('/').as_bytes()),
                letter => out.push(letter),
            }
            if letter == b'Q' && !sent.query.is_empty() {
                out.push(b'?');
                out.extend_from_slice(&sent.query);
            }
        }
    }

    /// The pairs that are signed, by key.
    pub(super) fn signed<'s, 'p>(
        &'s self,
        sent: &'s Sent<'p>,
    ) -> impl Iterator<Item = &'s Pair<'p>> {
        sent.pairs.iter().filter(|pair| self.signs(pair))
    }

    fn signs(&self, pair: &Pair<'_>) -> bool {
        let by_rule = pair.key == SIGN.as_bytes()
            || self.left_out.iter().any(|key| key.as_bytes() == pair.key);
        let is_left_out =
            (by_rule && self.with != Some(pair.key)) || self.without == Some(pair.key);
        let is_dropped = self.is_dropping_empty && pair.wire_value.is_empty();
        let (query, form) = self.parts;
        let is_seen = if pair.is_in_query { query } else { form };
        let is_unseen = !is_seen && (pair.key != TIME.as_bytes() || self.parts == (false, false));
        !is_left_out && !is_dropped && !is_unseen
    }

    /// The key as the client wrote it; `None` if it cannot be written so.
    pub(super) fn key<'k>(&self, key: &'k AppKey) -> Option<Cow<'k, [u8]>> {
        let text = key.expose();
        let other_case = || {
            if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
                text.to_ascii_uppercase()
            } else {
                text.to_ascii_lowercase()
            }
        };
        Some(Cow::Owned(match self.key_form {
            KeyForm::AsIs => return Some(Cow::Borrowed(text.as_bytes())),
            KeyForm::FromHex => hex::decode(text).ok()?,
            KeyForm::FromBase64 => {
                use base64::{Engine, engine::general_purpose::STANDARD};
                STANDARD.decode(text).ok()?
            }
            KeyForm::OtherCase => other_case().into_bytes(),
            KeyForm::With(before, after) => [before, text, after].concat().into_bytes(),
            KeyForm::Cut(length) => {
                let length = if length > 0 { length } else { text.len() - 1 };
                let rest = text.get(..length).filter(|rest| rest.len() < text.len());
                rest.filter(|rest| rest.len() >= MIN_CUT_KEY)?.into()
            }
            KeyForm::Instead(other) => other.as_bytes().to_vec(),
        }))
    }
}

/// Characters of a key that was cut: fewer could be guessed.
const MIN_CUT_KEY: usize = 16;

/// What a second reading of the clock has: see [`Recipe::time`].
fn other_time(sent: &[u8], by: i64) -> String {
    let sent: i64 = String::from_utf8_lossy(sent).parse().unwrap_or_default();
    let other = sent.saturating_add(by);
    let other = if by == 0 { sent / 1000 } else { other };
    other.to_string()
}

/// The place of the key with this layout: with HMAC, only `pairs-key` has it in the string.
fn place_of(layout: SignLayout, hash: Hash) -> KeyPlace {
    match layout {
        SignLayout::PairsKey => KeyPlace::Labelled,
        _ if hash.is_hmac() => KeyPlace::Nowhere,
        SignLayout::Pairs | SignLayout::Concat => KeyPlace::End,
        SignLayout::ConcatBoth => KeyPlace::Both,
    }
}

fn compare(order: Order, pair: &Pair<'_>, other: &Pair<'_>) -> Ordering {
    let by_key = || pair.key.cmp(other.key);
    match order {
        Order::AsSent => Ordering::Equal,
        Order::Key => by_key(),
        Order::Value => pair.value.cmp(&other.value),
        Order::Descending => by_key().reverse(),
        Order::KeyThenValue => by_key().then_with(|| pair.value.cmp(&other.value)),
        Order::WholePair => {
            fn whole<'p>(pair: &'p Pair<'_>) -> impl Iterator<Item = &'p u8> {
                pair.wire_key.iter().chain(b"=").chain(pair.wire_value)
            }
            whole(pair).cmp(whole(other))
        }
        Order::IgnoringCase => {
            let lower = |pair: &Pair<'_>| pair.key.to_ascii_lowercase();
            lower(pair).cmp(&lower(other)).then_with(by_key)
        }
        Order::Utf16 => {
            let units = |pair: &Pair<'_>| {
                let text = String::from_utf8_lossy(pair.key);
                text.encode_utf16().collect::<SmallVec<[u16; 32]>>()
            };
            units(pair).cmp(&units(other))
        }
    }
}

/// The pairs as a JSON object without white space.
fn json(pairs: &[&Pair<'_>]) -> Vec<u8> {
    let text = |bytes: &[u8]| serde_json::Value::from(String::from_utf8_lossy(bytes)).to_string();
    let members = pairs.iter().map(|pair| {
        let (key, value) = (text(pair.key), text(&pair.value));
        format!("{key}:{value}")
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(",")).into_bytes()
}

/// Changes the letter case of the escapes.
fn respell_escapes(wire: &[u8], change: fn(&u8) -> u8, out: &mut Vec<u8>) {
    let mut digits = 0;
    out.extend(wire.iter().map(|byte| {
        let is_digit = digits > 0;
        digits = if *byte == b'%' {
            2_u8
        } else {
            digits.saturating_sub(1)
        };
        if is_digit { change(byte) } else { *byte }
    }));
}

fn replace(wire: &[u8], old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    out.reserve(3 * wire.len());
    let mut rest = wire;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(old) {
            out.extend_from_slice(new);
            rest = after;
        } else {
            out.push(first);
            rest = after;
        }
    }
}
