//! The signature of a request: `time` and `sign`. CONTRACT 3.
//!
//! [`sign`] signs according to a [`SignProfile`], with an [`AppKey`]. [`explain`](explain::explain) finds the mistake
//! of a client that signed with the right key.

mod canonical;
pub mod explain;
mod headers;
mod key;
mod profile;
mod time;

pub use self::{
    headers::{BodyHash, SignedHead, sign_head},
    key::{AppKey, WeakKey, check_strength},
    profile::{
        ReplayPolicy, SignAlgorithm, SignCarrier, SignCover, SignEmpty, SignLayout, SignProfile,
        SignValues,
    },
    time::{LocalOffset, ParseSignTimeError, SignTime, TimeSlip, Window},
};

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use self::canonical::Canonical;
use crate::{
    log_text::CUT,
    param::{Params, ParamsError, hex_value},
};

/// The parameter with the signature.
pub const SIGN: &str = "sign";
/// The parameter with the time.
pub const TIME: &str = "time";

/// Limit on a canonical string that is shown to a client, in bytes.
pub const MAX_SHOWN_BYTES: usize = 2048;

/// A signature: 16 bytes of MD5, or 32 of HMAC-SHA-256. Must not be logged, so `Debug` does not print it.
#[derive(Clone, Copy)]
pub struct Sign {
    bytes: [u8; Self::MAX_LENGTH],
    length: usize,
}

impl Sign {
    const MAX_LENGTH: usize = 32;

    fn new(digest: &[u8]) -> Self {
        let mut bytes = [0; Self::MAX_LENGTH];
        bytes[..digest.len()].copy_from_slice(digest);
        Self {
            bytes,
            length: digest.len(),
        }
    }

    /// Reads hex of either letter case; `None` for anything that neither algorithm produces.
    #[must_use]
    pub fn from_hex(hex_digits: &[u8]) -> Option<Self> {
        match hex_digits.len() {
            32 => Self::from_pairs::<16>(hex_digits),
            64 => Self::from_pairs::<32>(hex_digits),
            _ => None,
        }
    }

    /// Reads all digits before checking any, so that the compiler can use SIMD instructions.
    fn from_pairs<const LENGTH: usize>(hex_digits: &[u8]) -> Option<Self> {
        let pairs: &[[u8; 2]; LENGTH] = hex_digits.as_chunks().0.try_into().ok()?;
        let high = pairs.map(|[digit, _]| hex_value(digit));
        let low = pairs.map(|[_, digit]| hex_value(digit));
        let is_hex = high.iter().chain(&low).fold(0, |all, value| all | value) < 16;
        let bytes: [u8; LENGTH] = std::array::from_fn(|index| high[index] << 4 | low[index]);
        is_hex.then(|| Self::new(&bytes))
    }

    /// The signature in lower-case hex, as it is sent.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex::encode(self.as_bytes())
    }

    /// The hash's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Compares two signatures in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        let halves = |sign: &Self| {
            let (halves, _) = sign.bytes.as_chunks();
            [halves[0], halves[1]].map(u128::from_ne_bytes)
        };
        let ([first, second], [other_first, other_second]) = (halves(self), halves(other));
        let is_same_length = self.length.ct_eq(&other.length);
        // `&` evaluates all three. `&&` would stop at the first difference, and its time would tell where that is.
        (first.ct_eq(&other_first) & second.ct_eq(&other_second) & is_same_length).into()
    }
}

hide_in_debug!(Sign);

/// Signs `params` according to `profile`. `method` and `path` (as sent) are signed only if the profile covers them.
#[must_use]
pub fn sign(
    profile: &SignProfile,
    key: &AppKey,
    method: &str,
    path: &str,
    params: &Params<'_>,
) -> Sign {
    let canonical = Canonical::new(profile, (method, path), params);
    digest(profile.algorithm, key, |sink| canonical.write(key, sink))
}

/// Signs encoded pairs that are a request's whole query or form: appends `sign`.
///
/// # Errors
///
/// The pairs are malformed.
pub fn signed(
    profile: &SignProfile,
    key: &AppKey,
    (method, path): (&str, &str),
    unsigned: &str,
) -> Result<String, ParamsError> {
    let params = Params::parse(unsigned.as_bytes(), b"", usize::MAX)?;
    let sign = sign(profile, key, method, path, &params);
    Ok(format!("{unsigned}&{SIGN}={}", sign.to_hex()))
}

/// The canonical string with `<APP_KEY>` in place of the key, for developers who compare theirs with it.
#[must_use]
pub fn canonical_for_display(
    profile: &SignProfile,
    method: &str,
    path: &str,
    params: &Params<'_>,
) -> Vec<u8> {
    let canonical = Canonical::new(profile, (method, path), params);
    canonical.to_vec(&AppKey::placeholder())
}

/// The canonical string as a client whose signature does not match may see it: with `<APP_KEY>` in place of the key, `***` in
/// place of each secret value, and at most [`MAX_SHOWN_BYTES`] long. `None` if the request has one of `keys`, as far as that can
/// be shown.
#[must_use]
pub fn canonical_for_client(
    profile: &SignProfile,
    (method, path): (&str, &str),
    params: &Params<'_>,
    keys: &[&AppKey],
) -> Option<String> {
    let (sent, masked) = masked(params);
    let params = Params::parse(&masked, b"", usize::MAX).ok()?;
    let text = canonical_for_display(profile, method, path, &params);
    shown_text(&sent, &text, keys)
}

/// The pairs as sent, and with `***` in place of each secret value.
fn masked(params: &Params<'_>) -> (Vec<u8>, Vec<u8>) {
    let pairs = params.iter().map(|param| {
        let pair = |value| [param.wire_key(), b"=", value].concat();
        (pair(param.wire_value()), pair(param.shown_value()))
    });
    let (sent, masked): (Vec<_>, Vec<_>) = pairs.unzip();
    (sent.join(&b'&'), masked.join(&b'&'))
}

/// A text of at most [`MAX_SHOWN_BYTES`]; `None` if it, or what was sent, has one of the keys.
fn shown_text(sent: &[u8], text: &[u8], keys: &[&AppKey]) -> Option<String> {
    // Twice the limit: otherwise the cut could divide a key.
    let starts = [sent, text].map(|text| &text[..text.len().min(2 * MAX_SHOWN_BYTES)]);
    if keys
        .iter()
        .any(|key| starts.iter().any(|text| key.is_in(text)))
    {
        return None;
    }
    let mut text = String::from_utf8_lossy(text).into_owned();
    if text.len() > MAX_SHOWN_BYTES {
        text.truncate(text.floor_char_boundary(MAX_SHOWN_BYTES - CUT.len()));
        text.push_str(CUT);
    }
    Some(text)
}

/// Hashes the pieces that `write` puts, so that the canonical string is never built in memory.
fn digest(
    algorithm: SignAlgorithm,
    key: &AppKey,
    write: impl FnOnce(&mut dyn FnMut(&[u8])),
) -> Sign {
    match algorithm {
        SignAlgorithm::Md5 => {
            let mut hash = Md5::new();
            write(&mut |piece| Digest::update(&mut hash, piece));
            Sign::new(&hash.finalize())
        }
        SignAlgorithm::HmacSha256 => {
            let mut hash = Hmac::<Sha256>::new_from_slice(key.as_bytes())
                .expect("HMAC takes keys of any length");
            write(&mut |piece| Mac::update(&mut hash, piece));
            Sign::new(&hash.finalize().into_bytes())
        }
    }
}

#[cfg(test)]
mod tests;
