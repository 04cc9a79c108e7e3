//! The canonical string and the signature. Source: CONTRACT 3.

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;
use signpost_protocol::sign::{
    SignAlgorithm, SignCover, SignEmpty, SignLayout, SignProfile, SignValues,
};

use super::params::Pair;

/// The canonical string, with `key` where the profile puts it.
#[must_use]
pub fn canonical(
    profile: &SignProfile,
    key: &str,
    (method, path): (&str, &str),
    pairs: &[Pair],
) -> Vec<u8> {
    let mut signed: Vec<&Pair> = pairs
        .iter()
        .filter(|pair| is_signed(profile, pair))
        .collect();
    signed.sort_by(|one, other| one.key.as_bytes().cmp(other.key.as_bytes()));
    let is_joined = matches!(profile.layout, SignLayout::Pairs | SignLayout::PairsKey);
    let mut written = Vec::new();
    for pair in &signed {
        let (key, value) = match profile.values {
            SignValues::Wire => (&pair.wire_key[..], &pair.wire_value[..]),
            SignValues::Decoded => (pair.key.as_bytes(), pair.value.as_bytes()),
        };
        written.push(if is_joined {
            [key, b"=", value].concat()
        } else {
            [key, value].concat()
        });
    }
    let written = written.join(if is_joined { &b"&"[..] } else { b"" });
    let head = match profile.cover {
        SignCover::Parameters => String::new(),
        SignCover::Request => format!("{method}\n{path}\n"),
    };
    let (before, after) = match (profile.algorithm, profile.layout) {
        (_, SignLayout::PairsKey) if signed.is_empty() => (String::new(), format!("key={key}")),
        (_, SignLayout::PairsKey) => (String::new(), format!("&key={key}")),
        (SignAlgorithm::HmacSha256, _) => (String::new(), String::new()),
        (SignAlgorithm::Md5, SignLayout::ConcatBoth) => (key.to_owned(), key.to_owned()),
        (SignAlgorithm::Md5, SignLayout::Pairs | SignLayout::Concat) => {
            (String::new(), key.to_owned())
        }
    };
    [
        head.as_bytes(),
        before.as_bytes(),
        &written,
        after.as_bytes(),
    ]
    .concat()
}

fn is_signed(profile: &SignProfile, pair: &Pair) -> bool {
    pair.key != "sign"
        && !profile.leave_out.contains(&pair.key)
        && (profile.empty == SignEmpty::Keep || !pair.wire_value.is_empty())
}

/// The signature of a canonical string, in lower-case hex.
///
/// # Panics
///
/// Never: HMAC accepts keys of any length.
#[must_use]
pub fn sign(algorithm: SignAlgorithm, key: &str, canonical: &[u8]) -> String {
    match algorithm {
        SignAlgorithm::Md5 => hex::encode(Md5::digest(canonical)),
        SignAlgorithm::HmacSha256 => {
            let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes())
                .expect("HMAC accepts keys of any length");
            mac.update(canonical);
            hex::encode(mac.finalize().into_bytes())
        }
    }
}
