//! The sign profile: how an application signs. CONTRACT 3.

use serde::{Deserialize, Serialize};

/// How the canonical string is made and hashed, and whether a request may come twice.
///
/// Serialized, it is a table of the contract's own words, with every default left out allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignProfile {
    /// Keys and values as sent, or decoded.
    pub values: SignValues,
    /// How pairs and key are put together.
    pub layout: SignLayout,
    /// Whether pairs with an empty value count.
    pub empty: SignEmpty,
    /// Further keys left out beside `sign`.
    pub leave_out: Vec<String>,
    /// What beside the parameters is signed.
    pub cover: SignCover,
    /// The hash.
    pub algorithm: SignAlgorithm,
    /// Whether the same request may come again.
    pub replay: ReplayPolicy,
}

impl SignProfile {
    /// The names that [`Self::preset`] knows, each a family that clients already speak.
    pub const PRESETS: [&str; 6] = ["plain", "decoded", "bilibili", "alipay", "wechat", "top"];

    /// The profile of that name.
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
}

/// How keys and values are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignValues {
    /// Exactly as sent, still percent-encoded: nothing inside a value can pass for another pair.
    #[default]
    Wire,
    /// After form-decoding, for existing clients that sign raw values.
    Decoded,
}

/// How pairs and key are put together.
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pairs, Self::PairsKey, Self::Concat, Self::ConcatBoth];
}

/// Whether pairs with an empty value are part of the canonical string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignEmpty {
    /// They are.
    #[default]
    Keep,
    /// They are left out.
    Drop,
}

/// What a sign serves for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignCover {
    /// The parameters, wherever they are sent.
    #[default]
    Parameters,
    /// One method and path only.
    Request,
}

/// The hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SignAlgorithm {
    /// MD5 over the string with the key in it.
    #[default]
    Md5,
    /// HMAC-SHA-256; the key is the HMAC's and does not stand in the string.
    HmacSha256,
}

/// Whether the same application and sign are accepted a second time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayPolicy {
    /// They are, within the window.
    #[default]
    Allow,
    /// They are not.
    Reject,
}
