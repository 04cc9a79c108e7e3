//! How a client made its signature: the rules of the profile, and where it may have departed from them.

use std::{borrow::Cow, cmp::Ordering};

use super::{encoding::ENCODERS, given::Hash};
use crate::{
    param::Params,
    sign::{
        AppKey, SIGN, SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile, SignValues,
        TIME, canonical::respell_escapes,
    },
};

/// A pair of the request, decoded once for the whole search.
pub(super) struct Pair<'a> {
    pub(super) wire_key: &'a [u8],
    pub(super) wire_value: &'a [u8],
    pub(super) key: &'a [u8],
    pub(super) value: Cow<'a, [u8]>,
    is_in_query: bool,
}

/// What was sent.
pub(super) struct Sent<'a> {
    pub(super) target: (&'a str, &'a str),
    /// The query without `sign`, which a client adds last.
    pub(super) query: Vec<u8>,
    pub(super) pairs: Vec<Pair<'a>>,
}

impl<'a> Sent<'a> {
    pub(super) fn new(target: (&'a str, &'a str), params: &'a Params<'_>) -> Self {
        let in_query = params.all().len() - params.in_body().len();
        let pairs = params.iter().enumerate().map(|(index, param)| Pair {
            wire_key: param.wire_key(),
            wire_value: param.wire_value(),
            key: param.key(),
            value: param.value(),
            is_in_query: index < in_query,
        });
        let query = params.all()[..in_query]
            .iter()
            .filter(|param| !param.is_named(SIGN.as_bytes()))
            .map(|param| param.wire_pair().unwrap_or(param.wire_key()));
        Self {
            target,
            query: query.collect::<Vec<_>>().join(&b'&'),
            pairs: pairs.collect(),
        }
    }
}

/// The order of the pairs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Key,
    AsSent,
    KeyThenValue,
    WholePair,
    Value,
    IgnoringCase,
    Descending,
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
}

/// Where the key stands in the string.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
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
#[derive(Clone)]
pub(super) struct Recipe {
    pub(super) hash: Hash,
    pub(super) order: Order,
    pub(super) spelling: Spelling,
    pub(super) is_dropping_empty: bool,
    pub(super) is_joined: bool,
    pub(super) is_json: bool,
    pub(super) is_body_only: bool,
    /// The keys that are not signed, in addition to `sign`.
    pub(super) left_out: Vec<String>,
    /// Whether `sign` was signed before it had a value.
    pub(super) is_empty_sign_signed: bool,
    pub(super) head: Option<Head>,
    pub(super) place: Place,
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

impl Recipe {
    /// The right way.
    pub(super) fn of(profile: &SignProfile) -> Self {
        Self {
            hash: Hash::of(profile.algorithm),
            order: Order::Key,
            spelling: match profile.values {
                SignValues::Wire => Spelling::Sent,
                SignValues::Decoded => Spelling::Decoded,
            },
            is_dropping_empty: profile.empty == SignEmpty::Drop,
            is_joined: matches!(profile.layout, SignLayout::Concat | SignLayout::ConcatBoth),
            is_json: false,
            is_body_only: false,
            left_out: profile.leave_out.clone(),
            is_empty_sign_signed: false,
            head: (profile.cover == SignCover::Request).then_some(Head::RIGHT),
            place: place_of(profile.layout, profile.algorithm),
            key_form: KeyForm::AsIs,
            around: ("", ""),
            tail: "",
        }
    }

    /// Changes the hash, and with it the place of the key.
    pub(super) fn with_hash(mut self, hash: Hash, layout: SignLayout) -> Self {
        let algorithm = if hash.is_hmac() {
            SignAlgorithm::HmacSha256
        } else {
            SignAlgorithm::Md5
        };
        self.hash = hash;
        self.place = place_of(layout, algorithm);
        self
    }

    /// The string, with this key.
    pub(super) fn string(&self, sent: &Sent<'_>, key: &[u8]) -> Vec<u8> {
        let mut string = Vec::with_capacity(512);
        let head = self.head.map(|head| head.text(sent)).unwrap_or_default();
        let is_head_last = self.head.is_some_and(|head| head.is_at_end);
        if !is_head_last {
            string.extend_from_slice(&head);
        }
        if matches!(self.place, Place::Front | Place::Both) {
            string.extend_from_slice(key);
        }
        string.extend_from_slice(self.around.0.as_bytes());
        let before = string.len();
        self.put_pairs(sent, &mut string);
        let has_pairs = string.len() > before;
        string.extend_from_slice(self.around.1.as_bytes());
        if is_head_last {
            string.extend_from_slice(&head);
        }
        if self.place == Place::Labelled {
            let label: &[u8] = if has_pairs { b"&key=" } else { b"key=" };
            string.extend_from_slice(label);
        }
        if matches!(self.place, Place::End | Place::Labelled | Place::Both) {
            string.extend_from_slice(key);
        }
        string.extend_from_slice(self.tail.as_bytes());
        string
    }

    fn put_pairs(&self, sent: &Sent<'_>, out: &mut Vec<u8>) {
        let mut pairs: Vec<_> = sent.pairs.iter().filter(|pair| self.signs(pair)).collect();
        match self.order {
            Order::AsSent => {}
            Order::Value => pairs.sort_by(|one, other| one.value.cmp(&other.value)),
            order => pairs.sort_by(|one, other| compare(order, one, other)),
        }
        if self.is_json {
            out.extend_from_slice(&json(&pairs));
            return;
        }
        for (index, pair) in pairs.iter().enumerate() {
            if index > 0 && !self.is_joined {
                out.push(b'&');
            }
            self.put(pair.wire_key, pair.key, out);
            if !self.is_joined {
                out.push(b'=');
            }
            if pair.key != SIGN.as_bytes() {
                self.put(pair.wire_value, &pair.value, out);
            }
        }
    }

    fn put(&self, wire: &[u8], decoded: &[u8], out: &mut Vec<u8>) {
        match self.spelling {
            Spelling::Sent => out.extend_from_slice(wire),
            Spelling::Decoded => out.extend_from_slice(decoded),
            Spelling::Encoded(index) => ENCODERS[index].encode(decoded, out),
            Spelling::Twice => ENCODERS[TWICE].encode(wire, out),
            Spelling::LowerEscapes => {
                out.extend(respell_escapes(wire, <[u8]>::make_ascii_lowercase));
            }
            Spelling::UpperEscapes => {
                out.extend(respell_escapes(wire, <[u8]>::make_ascii_uppercase));
            }
            Spelling::SpaceAsEscape => out.extend(replace(wire, b"+", b"%20")),
            Spelling::SpaceAsPlus => out.extend(replace(wire, b"%20", b"+")),
        }
    }

    pub(super) fn signs(&self, pair: &Pair<'_>) -> bool {
        let is_left_out = self.left_out.iter().any(|key| key.as_bytes() == pair.key);
        let is_dropped = self.is_dropping_empty && pair.wire_value.is_empty();
        let is_unseen = self.is_body_only && pair.is_in_query && pair.key != TIME.as_bytes();
        let is_empty_sign = pair.key == SIGN.as_bytes() && !self.is_empty_sign_signed;
        !is_empty_sign && !is_left_out && !is_dropped && !is_unseen
    }

    /// The key as the client wrote it; `None` if it cannot be written so.
    pub(super) fn key(&self, key: &AppKey) -> Option<Vec<u8>> {
        let text = key.expose();
        let other_case = || {
            if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
                text.to_ascii_uppercase()
            } else {
                text.to_ascii_lowercase()
            }
        };
        Some(match self.key_form {
            KeyForm::AsIs => text.as_bytes().to_vec(),
            KeyForm::FromHex => hex::decode(text).ok()?,
            KeyForm::FromBase64 => {
                use base64::{Engine, engine::general_purpose::STANDARD};
                STANDARD.decode(text).ok()?
            }
            KeyForm::OtherCase => other_case().into_bytes(),
            KeyForm::With(before, after) => [before, text, after].concat().into_bytes(),
        })
    }
}

/// The index of the encoder that encodes everything that has a meaning.
const TWICE: usize = 4;

/// The place of the key with this layout: with HMAC, only `pairs-key` has it in the string.
fn place_of(layout: SignLayout, algorithm: SignAlgorithm) -> Place {
    match (layout, algorithm) {
        (SignLayout::PairsKey, _) => Place::Labelled,
        (_, SignAlgorithm::HmacSha256) => Place::Nowhere,
        (SignLayout::Pairs | SignLayout::Concat, SignAlgorithm::Md5) => Place::End,
        (SignLayout::ConcatBoth, SignAlgorithm::Md5) => Place::Both,
    }
}

impl Head {
    fn text(self, sent: &Sent<'_>) -> Vec<u8> {
        let (method, path) = sent.target;
        let method = if self.is_lower_case {
            method.to_ascii_lowercase()
        } else {
            method.to_owned()
        };
        let path = if self.has_slash {
            path
        } else {
            path.trim_start_matches('/')
        };
        let mut text = [&method, self.separator, path].concat().into_bytes();
        if self.has_query && !sent.query.is_empty() {
            text.push(b'?');
            text.extend_from_slice(&sent.query);
        }
        text.extend_from_slice(self.last.as_bytes());
        if self.is_at_end {
            text.insert(0, b'\n');
        }
        text
    }
}

fn compare(order: Order, one: &Pair<'_>, other: &Pair<'_>) -> Ordering {
    let by_key = || one.key.cmp(other.key);
    match order {
        Order::Descending => by_key().reverse(),
        Order::KeyThenValue => by_key().then_with(|| one.value.cmp(&other.value)),
        Order::WholePair => {
            let whole = |pair: &Pair<'_>| {
                let key = pair.wire_key.iter().copied();
                let value = pair.wire_value.iter().copied();
                key.chain([b'=']).chain(value).collect::<Vec<_>>()
            };
            whole(one).cmp(&whole(other))
        }
        Order::IgnoringCase => {
            let key = |pair: &Pair<'_>| pair.key.to_ascii_lowercase();
            key(one).cmp(&key(other)).then_with(by_key)
        }
        Order::Key | Order::AsSent | Order::Value => by_key(),
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

fn replace(written: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(written.len());
    let mut rest = written;
    while let Some((&first, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(old) {
            replaced.extend_from_slice(new);
            rest = after;
        } else {
            replaced.push(first);
            rest = after;
        }
    }
    replaced
}
