//! How a client made its signature: the rules of the profile, and where it may have departed from them.

use std::{borrow::Cow, cmp::Ordering};

use smallvec::SmallVec;

use super::{
    encoding::ENCODERS,
    given::Hash,
    sent::{MISSING, Pair, Sent},
};
use crate::sign::{AppKey, SIGN, SignCover, SignEmpty, SignLayout, SignProfile, SignValues, TIME};

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
}

/// The way from the request to the signature.
#[derive(Clone, Copy)]
pub(super) struct Recipe<'a> {
    pub(super) hash: Hash,
    pub(super) order: Order,
    pub(super) spelling: Spelling,
    pub(super) is_dropping_empty: bool,
    pub(super) is_joined: bool,
    pub(super) is_json: bool,
    pub(super) is_body_only: bool,
    /// The keys that are not signed by rule, in addition to `sign`.
    pub(super) left_out: &'a [String],
    /// Another key that is not signed.
    pub(super) without: Option<&'a [u8]>,
    /// A key that is signed although it is left out by rule.
    pub(super) with: Option<&'a [u8]>,
    pub(super) head: Option<Head>,
    pub(super) place: KeyPlace,
    pub(super) key_form: KeyForm,
    /// What stands around the pairs.
    pub(super) around: (&'static str, &'static str),
    /// What follows everything.
    pub(super) tail: &'static str,
}

/// How method and path are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) separator: &'static str,
    pub(super) last: &'static str,
    pub(super) is_lower_case: bool,
    pub(super) has_query: bool,
    pub(super) has_slash: bool,
    pub(super) is_at_end: bool,
}

impl Head {
    pub(super) const RIGHT: Self = Self {
        separator: "\n",
        last: "\n",
        is_lower_case: false,
        has_query: false,
        has_slash: true,
        is_at_end: false,
    };
}

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
            is_joined: matches!(profile.layout, SignLayout::Concat | SignLayout::ConcatBoth),
            is_json: false,
            is_body_only: false,
            left_out: &profile.leave_out,
            without: None,
            with: None,
            head: (profile.cover == SignCover::Request).then_some(Head::RIGHT),
            place: place_of(profile.layout, hash),
            key_form: KeyForm::AsIs,
            around: ("", ""),
            tail: "",
        }
    }

    /// Changes the hash, and with it the place of the key.
    pub(super) fn with_hash(mut self, hash: Hash, layout: SignLayout) -> Self {
        self.hash = hash;
        self.place = place_of(layout, hash);
        self
    }

    /// How pairs and key are joined, as an example.
    pub(super) const fn joining(&self) -> &'static str {
        match (self.is_joined, self.place) {
            (false, KeyPlace::Nowhere) => "a=1&b=2",
            (false, KeyPlace::End) => "a=1&b=2KEY",
            (false, KeyPlace::Labelled) => "a=1&b=2&key=KEY",
            (false, KeyPlace::Front) => "KEYa=1&b=2",
            (false, KeyPlace::Both) => "KEYa=1&b=2KEY",
            (true, KeyPlace::Nowhere) => "a1b2",
            (true, KeyPlace::End) => "a1b2KEY",
            (true, KeyPlace::Labelled) => "a1b2&key=KEY",
            (true, KeyPlace::Front) => "KEYa1b2",
            (true, KeyPlace::Both) => "KEYa1b2KEY",
        }
    }

    /// Writes the string, with this key.
    pub(super) fn write(&self, sent: &Sent<'_>, key: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let (first, last) = match self.head {
            Some(head) if head.is_at_end => (None, Some(head)),
            head => (head, None),
        };
        if let Some(head) = first {
            head.write(sent, out);
        }
        if matches!(self.place, KeyPlace::Front | KeyPlace::Both) {
            out.extend_from_slice(key);
        }
        out.extend_from_slice(self.around.0.as_bytes());
        let before = out.len();
        self.write_pairs(sent, out);
        let has_pairs = out.len() > before;
        out.extend_from_slice(self.around.1.as_bytes());
        if let Some(head) = last {
            head.write(sent, out);
        }
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
        for (index, pair) in pairs.iter().enumerate() {
            if index > 0 && !self.is_joined {
                out.push(b'&');
            }
            self.spell(pair.wire_key, pair.key, out);
            if !self.is_joined {
                out.push(b'=');
            }
            // `sign` was signed before it had a value.
            if pair.key != SIGN.as_bytes() {
                self.spell_value(pair, out);
            }
        }
    }

    fn spell_value(&self, pair: &Pair<'_>, out: &mut Vec<u8>) {
        match self.spelling {
            Spelling::EmptyAs(text) if pair.wire_value.is_empty() => out.extend_from_slice(text),
            Spelling::MissingAsEmpty if MISSING.contains(&pair.wire_value) => {}
            _ => self.spell(pair.wire_value, &pair.value, out),
        }
    }

    fn spell(&self, wire: &[u8], decoded: &[u8], out: &mut Vec<u8>) {
        match self.spelling {
            Spelling::Sent | Spelling::EmptyAs(_) | Spelling::MissingAsEmpty => {
                out.extend_from_slice(wire);
            }
            Spelling::Decoded => out.extend_from_slice(decoded),
            Spelling::Encoded(index) => ENCODERS[index].encode(decoded, out),
            Spelling::Twice => ENCODERS[TWICE].encode(wire, out),
            Spelling::LowerEscapes => respell_escapes(wire, u8::to_ascii_lowercase, out),
            Spelling::UpperEscapes => respell_escapes(wire, u8::to_ascii_uppercase, out),
            Spelling::SpaceAsEscape => replace(wire, b"+", b"%20", out),
            Spelling::SpaceAsPlus => replace(wire, b"%20", b"+", out),
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
        let is_unseen = self.is_body_only && pair.is_in_query && pair.key != TIME.as_bytes();
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
        }))
    }
}

/// The index of the encoder that encodes everything that has a meaning.
const TWICE: usize = 4;

/// The place of the key with this layout: with HMAC, only `pairs-key` has it in the string.
fn place_of(layout: SignLayout, hash: Hash) -> KeyPlace {
    match layout {
        SignLayout::PairsKey => KeyPlace::Labelled,
        _ if hash.is_hmac() => KeyPlace::Nowhere,
        SignLayout::Pairs | SignLayout::Concat => KeyPlace::End,
        SignLayout::ConcatBoth => KeyPlace::Both,
    }
}

impl Head {
    fn write(self, sent: &Sent<'_>, out: &mut Vec<u8>) {
        let (method, path) = sent.target;
        if self.is_at_end {
            out.push(b'\n');
        }
        let start = out.len();
        out.extend_from_slice(method.as_bytes());
        if self.is_lower_case {
            out[start..].make_ascii_lowercase();
        }
        out.extend_from_slice(self.separator.as_bytes());
        let path = match self.has_slash {
            true => path,
            false => path.trim_start_matches('/'),
        };
        out.extend_from_slice(path.as_bytes());
        if self.has_query && !sent.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&sent.query);
        }
        out.extend_from_slice(self.last.as_bytes());
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
