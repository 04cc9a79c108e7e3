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

/// A signature as a client sent it, in hex or base64: of MD5, SHA-1, SHA-256 or SHA-512, supported or not. Must not be
/// logged, so `Debug` does not print it.
pub struct GivenSign {
    bytes: Vec<u8>,
    pub(super) is_base64: bool,
}

impl GivenSign {
    /// Lengths of half an MD5, MD5, SHA-1, SHA-256 and SHA-512, in bytes.
    const LENGTHS: [usize; 5] = [8, 16, 20, 32, 64];

    /// Reads hex of either letter case, or base64; `None` for anything that none of these algorithms produces.
    #[must_use]
    pub fn new(sent: &[u8]) -> Option<Self> {
        const LENIENT: GeneralPurposeConfig =
            GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        const BASE64: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT);
        // The longest form is SHA-512 in hex. Nothing longer is decoded.
        if sent.len() > 2 * 64 {
            return None;
        }
        let is_possible = |bytes: &Vec<u8>| Self::LENGTHS.contains(&bytes.len());
        if let Some(bytes) = hex::decode(sent).ok().filter(is_possible) {
            let is_base64 = false;
            return Some(Self { bytes, is_base64 });
        }
        // A `+` that was not encoded arrives as a space.
        let standard = |byte: &u8| match byte {
            b'-' | b' ' => b'+',
            b'_' => b'/',
            byte => *byte,
        };
        let standard: Vec<u8> = sent.iter().map(standard).collect();
        let bytes = BASE64.decode(standard).ok();
        // Half an MD5 exists in hex only: in base64, any word of eleven letters could be one.
        let bytes = bytes.filter(|bytes| is_possible(bytes) && bytes.len() > 8)?;
        let is_base64 = true;
        Some(Self { bytes, is_base64 })
    }

    /// The hashes that make signatures of this length, a supported one first.
    pub(super) fn hashes(&self) -> &'static [Hash] {
        match self.bytes.len() {
            8 => &[Hash::Md5],
            16 => &[Hash::Md5, Hash::HmacMd5, Hash::Md5Twice],
            20 => &[Hash::HmacSha1, Hash::Sha1],
            32 => &[Hash::HmacSha256, Hash::Sha256],
            _ => &[Hash::HmacSha512, Hash::Sha512],
        }
    }

    /// Whether it is the middle of an MD5.
    pub(super) fn is_cut(&self) -> bool {
        self.bytes.len() == 8
    }

    /// Whether it is the signature of `string`; `key` is the key of an HMAC.
    pub(super) fn is_made(&self, hash: Hash, key: &[u8], string: &[u8]) -> bool {
        self.matches(&hash.digest(key, string))
    }

    /// Compares in constant time.
    fn matches(&self, digest: &[u8]) -> bool {
        // What libraries return as "MD5 of 16 digits": the middle of the 32.
        match digest.get(4..12) {
            Some(middle) if self.is_cut() => self.bytes.ct_eq(middle).into(),
            _ => self.bytes.ct_eq(digest).into(),
        }
    }
}

impl From<Sign> for GivenSign {
    fn from(sign: Sign) -> Self {
        Self {
            bytes: sign.as_bytes().to_vec(),
            is_base64: false,
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
