//! The sign profile: the signing rules of an application. CONTRACT 3.

use serde::{Deserialize, Serialize};

use super::SIGN;
use crate::param::Param;

/// The rules for building and hashing the canonical string, and for replays.
///
/// Serialized as a table of the contract's own words. Omitted keys have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignProfile {
    /// Whether keys and values are signed as sent, or decoded.
    pub values: SignValues,
    /// How pairs and key are joined.
    pub layout: SignLayout,
    /// Whether pairs with an empty value are signed.
    pub empty: SignEmpty,
    /// Keys that are not signed, in addition to `sign`.
    pub leave_out: Vec<String>,
    /// What is signed in addition to the parameters.
    pub cover: SignCover,
    /// The hash algorithm.
    pub algorithm: SignAlgorithm,
    /// Where the signature is. The other rules, but for `algorithm` and `replay`, are about signatures in parameters.
    #[serde(skip_serializing_if = "SignCarrier::is_default")]
    pub carrier: SignCarrier,
    /// Whether a request may be repeated.
    pub replay: ReplayPolicy,
}

impl SignProfile {
    /// The names of all presets, each a signing convention that existing clients use.
    pub const PRESETS: [&str; 6] = ["plain", "decoded", "bilibili", "alipay", "wechat", "top"];

    /// The preset of that name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let decoded = Self {
            values: SignValues::Decoded,
            ..Self::default()
        };
        let dropping = Self {
            empty: SignEmpty::Drop,
            ..decoded.clone()
        };
        Some(match name {
            "plain" | "bilibili" => Self::default(),
            "decoded" => decoded,
            "alipay" => Self {
                leave_out: vec!["sign_type".to_owned()],
                ..dropping
            },
            "wechat" => Self {
                layout: SignLayout::PairsKey,
                ..dropping
            },
            "top" => Self {
                layout: SignLayout::ConcatBoth,
                ..dropping
            },
            _ => return None,
        })
    }

    /// The algorithm of signatures in headers. Beside signatures in parameters it is always the stronger one, so that
    /// their clients can move one by one.
    #[must_use]
    pub const fn header_algorithm(&self) -> SignAlgorithm {
        match self.carrier {
            SignCarrier::Headers => self.algorithm,
            SignCarrier::Parameters | SignCarrier::Both => SignAlgorithm::HmacSha256,
        }
    }

    /// Whether a pair is signed.
    #[must_use]
    pub fn signs(&self, param: &Param<'_>) -> bool {
        let is_dropped = self.empty == SignEmpty::Drop && param.wire_value().is_empty();
        let mut left_out = self.leave_out.iter();
        let mut is_left_out = || {
            param.is_named(SIGN.as_bytes()) || left_out.any(|key| param.is_named(key.as_bytes()))
        };
        !is_dropped && !is_left_out()
    }
}

/// Whether keys and values are signed as sent, or decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignValues {
    /// Exactly as sent, still percent-encoded: no value can imitate another pair.
    #[default]
    Wire,
    /// After form-decoding, for existing clients that sign raw values.
    Decoded,
}

/// How pairs and key are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignLayout {
    /// `k=v&k=v` + KEY.
    #[default]
    Pairs,
    /// `k=v&k=v&key=` + KEY.
    PairsKey,
    /// `kvkv` + KEY.
    Concat,
    /// KEY + `kvkv` + KEY.
    ConcatBoth,
}

impl SignLayout {
    /// All layouts.
    pub const ALL: [Self; 4] = [Self::Pairs, Self::PairsKey, Self::Concat, Self::ConcatBoth];
}

/// Whether pairs with an empty value are part of the canonical string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignEmpty {
    /// They are included.
    #[default]
    Keep,
    /// They are left out.
    Drop,
}

/// What a signature covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignCover {
    /// The parameters: the signature is valid for any method and path.
    #[default]
    Parameters,
    /// The parameters with method and path: it is valid only for these.
    Request,
}

/// The hash algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignAlgorithm {
    /// MD5 over the string with the key in it.
    #[default]
    Md5,
    /// HMAC-SHA-256 with the key as HMAC key; only [`SignLayout::PairsKey`] also has it in the string.
    HmacSha256,
}

/// Where `time` and `sign` are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignCarrier {
    /// Among the parameters; bodies other than forms are not signed, and so not accepted.
    #[default]
    Parameters,
    /// In headers: they sign method, target and body. CONTRACT 3.
    Headers,
    /// In either: each request decides.
    Both,
}

impl SignCarrier {
    /// Each, with its word.
    pub const ALL: [(&str, Self); 3] = [
        ("parameters", Self::Parameters),
        ("headers", Self::Headers),
        ("both", Self::Both),
    ];

    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde passes a reference"
    )]
    fn is_default(&self) -> bool {
        *self == Self::Parameters
    }
}

/// Whether the same signature of an application is accepted twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPolicy {
    /// Accepted again, within the window.
    #[default]
    Allow,
    /// Rejected.
    Reject,
}
