//! A signature as a client sent it, and the hashes that can have made it.

use base64::{
    Engine,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};
use subtle::ConstantTimeEq;

use crate::sign::{Sign, SignAlgorithm};

/// A signature as a client sent it, in hex, base64 or another form: of MD5, SHA-1, SHA-256 or SHA-512, supported or not.
/// Must not be logged, so `Debug` does not print it.
pub struct GivenSign {
    /// The hash; of hex that lost zeros, its digits as text.
    bytes: Vec<u8>,
    /// What it is, if it is not plain hex: a variant of the hint's text. Otherwise empty.
    form: &'static str,
}

impl GivenSign {
    /// Lengths of half an MD5, MD5, SHA-1, SHA-256 and SHA-512, in bytes.
    const LENGTHS: [usize; 5] = [8, 16, 20, 32, 64];
    /// The longest form: SHA-512 in hex, with a sign between its bytes.
    const MAX_LENGTH: usize = 3 * 64;

    /// Reads what a program makes of a hash; `None` for anything that none of these algorithms produces.
    #[must_use]
    pub fn new(sent: &[u8]) -> Option<Self> {
        if sent.len() > Self::MAX_LENGTH {
            return None;
        }
        // `MD5(stdin)= 0cc1…`, `0cc1…  -`, `0C-C1-…`, "0x0cc1…", and quotation marks.
        let last = sent.rsplit(|byte| *byte == b'=').next().unwrap_or_default();
        let last = last.strip_prefix(b"0x").unwrap_or(last);
        let is_digit = |byte: &&u8| !b"-: \t\r\n\"'".contains(byte);
        let digits: Vec<u8> = last.iter().filter(is_digit).copied().collect();
        let is_short =
            matches!(sent.len(), 24..=31 | 50..=63) && sent.iter().all(u8::is_ascii_hexdigit);
        let (bytes, form) = if let Some(bytes) = Self::hash_of_hex(sent) {
            let is_cut = bytes.len() == 8;
            (bytes, if is_cut { "cut" } else { "" })
        } else if let Some(bytes) = Self::hash_of_base64(sent) {
            (bytes, "base64")
        } else if is_short {
            (sent.to_ascii_lowercase(), "short")
        } else {
            let bytes = Self::hash_of_hex(&digits);
            (bytes.filter(|bytes| bytes.len() > 8)?, "around")
        };
        Some(Self { bytes, form })
    }

    fn hash_of_hex(digits: &[u8]) -> Option<Vec<u8>> {
        let bytes = hex::decode(digits).ok()?;
        Self::LENGTHS.contains(&bytes.len()).then_some(bytes)
    }

    /// The hash in base64, as bytes or as its hex.
    fn hash_of_base64(sent: &[u8]) -> Option<Vec<u8>> {
        const LENIENT: GeneralPurposeConfig =
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        const BASE64: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
        // A `+` that was not encoded arrives as a space.
        let standard = |byte: &u8| match byte {
            b'-' | b' ' => b'+',
            b'_' => b'/',
            byte => *byte,
        };
        let standard: Vec<u8> = sent.iter().map(standard).collect();
        let bytes = BASE64.decode(standard).ok()?;
        let bytes = Self::hash_of_hex(&bytes).unwrap_or(bytes);
        // Half an MD5 exists in hex only: in base64, any word of eleven letters could be one.
        (Self::LENGTHS.contains(&bytes.len()) && bytes.len() > 8).then_some(bytes)
    }

    pub(super) fn form(&self) -> Option<&'static str> {
        Some(self.form).filter(|form| !form.is_empty())
    }

    /// The hashes that make signatures of this length, a supported one first.
    pub(super) fn hashes(&self) -> &'static [Hash] {
        match (self.form, self.bytes.len()) {
            ("short", ..=31) => &[Hash::Md5, Hash::HmacMd5],
            ("short", _) | (_, 32) => &[Hash::HmacSha256, Hash::Sha256],
            (_, 8) => &[Hash::Md5],
            (_, 16) => &[Hash::Md5, Hash::HmacMd5, Hash::Md5Twice],
            (_, 20) => &[Hash::HmacSha1, Hash::Sha1],
            _ => &[Hash::HmacSha512, Hash::Sha512],
        }
    }

    /// Whether it is the signature of `string`; `key` is the key of an HMAC.
    pub(super) fn is_made(&self, hash: Hash, key: &[u8], string: &[u8]) -> bool {
        self.matches(&hash.digest(key, string))
    }

    /// Compares in constant time.
    fn matches(&self, digest: &[u8]) -> bool {
        let is = |made: &[u8]| bool::from(self.bytes.ct_eq(made));
        match (self.form, digest.get(4..12)) {
            // What libraries return as "MD5 of 16 digits": the middle of the 32.
            ("cut", Some(middle)) => is(middle),
            // As a number; and byte by byte.
            ("short", _) => {
                let bytes = digest.iter().map(|byte| format!("{byte:x}"));
                let number = hex::encode(digest);
                is(number.trim_start_matches('0').as_bytes())
                    || is(bytes.collect::<String>().as_bytes())
            }
            _ => is(digest),
        }
    }
}

impl From<Sign> for GivenSign {
    fn from(sign: Sign) -> Self {
        Self {
            bytes: sign.as_bytes().to_vec(),
            form: "",
        }
    }
}

hide_in_debug!(GivenSign);

/// A hash of a string and a key, supported or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Hash {
    Md5,
    Md5Twice,
    Sha1,
    Sha256,
    Sha512,
    HmacMd5,
    HmacSha1,
    HmacSha256,
    HmacSha512,
}

impl Hash {
    pub(super) const fn of(algorithm: SignAlgorithm) -> Self {
        match algorithm {
            SignAlgorithm::Md5 => Self::Md5,
            SignAlgorithm::HmacSha256 => Self::HmacSha256,
        }
    }

    /// Its name, for people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Md5Twice => "MD5 of an MD5",
            Self::Sha1 => "SHA-1",
            Self::Sha256 => "SHA-256",
            Self::Sha512 => "SHA-512",
            Self::HmacMd5 => "HMAC-MD5",
            Self::HmacSha1 => "HMAC-SHA-1",
            Self::HmacSha256 => "HMAC-SHA-256",
            Self::HmacSha512 => "HMAC-SHA-512",
        }
    }

    pub(super) const fn is_hmac(self) -> bool {
        matches!(
            self,
            Self::HmacMd5 | Self::HmacSha1 | Self::HmacSha256 | Self::HmacSha512
        )
    }

    /// The hash of `string`; `key` is the key of an HMAC.
    pub(super) fn digest(self, key: &[u8], string: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => Md5::digest(string).to_vec(),
            Self::Md5Twice => Md5::digest(hex::encode(Md5::digest(string))).to_vec(),
            Self::Sha1 => Sha1::digest(string).to_vec(),
            Self::Sha256 => Sha256::digest(string).to_vec(),
            Self::Sha512 => Sha512::digest(string).to_vec(),
            Self::HmacMd5 => mac::<Hmac<Md5>>(key, string),
            Self::HmacSha1 => mac::<Hmac<Sha1>>(key, string),
            Self::HmacSha256 => mac::<Hmac<Sha256>>(key, string),
            Self::HmacSha512 => mac::<Hmac<Sha512>>(key, string),
        }
    }

    /// Its cost for a byte, compared with the cost of writing a byte.
    pub(super) const fn weight(self) -> usize {
        match self {
            Self::Md5 | Self::Md5Twice | Self::HmacMd5 => 1,
            _ => 5,
        }
    }
}

fn mac<M: Mac + KeyInit>(key: &[u8], string: &[u8]) -> Vec<u8> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(string);
    mac.finalize().into_bytes().to_vec()
}
