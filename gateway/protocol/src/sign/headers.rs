//! Signatures in headers: they sign method, target, time, nonce and body. CONTRACT 3.

use sha2::{Digest, Sha256};

use super::{AppKey, Sign, SignAlgorithm, digest, masked, shown_text};
use crate::param::Params;

/// SHA-256 of a body.
#[derive(Clone, Debug)]
pub struct BodyHash([u8; Self::LENGTH]);

impl BodyHash {
    const LENGTH: usize = 32;

    /// Hashes a whole body, which may be empty.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::digest(body).into())
    }

    /// The hash of a body that was hashed piece by piece.
    #[must_use]
    pub const fn new(hash: [u8; Self::LENGTH]) -> Self {
        Self(hash)
    }

    pub(super) const fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn to_hex(&self) -> [u8; 2 * Self::LENGTH] {
        let mut digits = [0; 2 * Self::LENGTH];
        // Its length is twice the hash's.
        let _ = hex::encode_to_slice(self.0, &mut digits);
        digits
    }
}

/// What a signature in headers signs, but the key.
#[derive(Clone, Copy, Debug)]
pub struct SignedHead<'r> {
    /// The method, as sent.
    pub method: &'r str,
    /// Path and query, as sent.
    pub target: &'r str,
    /// The header with the time, as sent.
    pub time: &'r [u8],
    /// The header with the nonce; empty without one.
    pub nonce: &'r [u8],
}

impl SignedHead<'_> {
    /// Writes the lines: method, target, time, nonce, hash of the body; with MD5 also the key.
    fn write(&self, body: &BodyHash, key: Option<&AppKey>, sink: &mut dyn FnMut(&[u8])) {
        let digits = body.to_hex();
        let lines = [
            self.method.as_bytes(),
            self.target.as_bytes(),
            self.time,
            self.nonce,
            &digits,
        ];
        for (index, line) in lines.into_iter().enumerate() {
            if index > 0 {
                sink(b"\n");
            }
            sink(line);
        }
        if let Some(key) = key {
            sink(b"\n");
            sink(key.as_bytes());
        }
    }

    /// The signed text as a client whose signature does not match may see it: as
    /// [`canonical_for_client`](super::canonical_for_client) shows the canonical string.
    #[must_use]
    pub fn for_client(
        &self,
        algorithm: SignAlgorithm,
        body: &BodyHash,
        keys: &[&AppKey],
    ) -> Option<String> {
        let (path, query) = self.target.split_once('?').unwrap_or((self.target, ""));
        let params = Params::parse(query.as_bytes(), b"", usize::MAX).ok()?;
        let (sent, masked) = masked(&params);
        let question = if self.target.contains('?') { "?" } else { "" };
        let target = format!("{path}{question}{}", String::from_utf8_lossy(&masked));
        let shown = SignedHead {
            method: self.method,
            target: &target,
            time: self.time,
            nonce: self.nonce,
        };
        let text = shown.for_display(algorithm, body);
        shown_text(&sent, text.as_bytes(), keys)
    }

    /// The signed text with `<APP_KEY>` in place of the key, for developers who compare theirs with it.
    #[must_use]
    pub fn for_display(&self, algorithm: SignAlgorithm, body: &BodyHash) -> String {
        let placeholder = AppKey::placeholder();
        let key = (algorithm == SignAlgorithm::Md5).then_some(&placeholder);
        let mut text = Vec::new();
        self.write(body, key, &mut |piece| text.extend_from_slice(piece));
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// Signs a request by its head and the hash of its body.
#[must_use]
pub fn sign_head(
    algorithm: SignAlgorithm,
    key: &AppKey,
    head: SignedHead<'_>,
    body: &BodyHash,
) -> Sign {
    let in_text = (algorithm == SignAlgorithm::Md5).then_some(key);
    digest(algorithm, key, |sink| head.write(body, in_text, sink))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: SignedHead<'_> = SignedHead {
        method: "PUT",
        target: "/orders/5?a=%20b",
        time: b"1735689600000",
        nonce: b"n-1",
    };

    fn key() -> AppKey {
        "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap()
    }

    #[test]
    fn the_text_has_a_line_for_each_part() {
        let body = BodyHash::of(b"{}");
        let hash = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        let lines = format!("PUT\n/orders/5?a=%20b\n1735689600000\nn-1\n{hash}");
        assert_eq!(HEAD.for_display(SignAlgorithm::HmacSha256, &body), lines);
        let with_key = format!("{lines}\n<APP_KEY>");
        assert_eq!(HEAD.for_display(SignAlgorithm::Md5, &body), with_key);
        let without = SignedHead { nonce: b"", ..HEAD };
        let text = without.for_display(SignAlgorithm::HmacSha256, &body);
        assert_eq!(text, lines.replace("n-1", ""));
    }

    #[test]
    fn a_signature_is_the_hash_of_the_text() {
        let body = BodyHash::of(b"{}");
        let text = HEAD.for_display(SignAlgorithm::HmacSha256, &body);
        let signed = sign_head(SignAlgorithm::HmacSha256, &key(), HEAD, &body);
        let known = digest(SignAlgorithm::HmacSha256, &key(), |sink| {
            sink(text.as_bytes())
        });
        assert!(signed.matches(&known));
        let md5 = sign_head(SignAlgorithm::Md5, &key(), HEAD, &body);
        let text = format!("{text}\n4283fefc63f0cd0e873a0000c6d07ef7");
        let known = digest(SignAlgorithm::Md5, &key(), |sink| sink(text.as_bytes()));
        assert!(md5.matches(&known));
        assert_eq!((md5.to_hex().len(), signed.to_hex().len()), (32, 64));
    }

    #[test]
    fn each_part_is_signed() {
        let sign = |head, body: &[u8]| {
            sign_head(SignAlgorithm::HmacSha256, &key(), head, &BodyHash::of(body)).to_hex()
        };
        let signed = sign(HEAD, b"{}");
        for other in [
            SignedHead {
                method: "POST",
                ..HEAD
            },
            SignedHead {
                target: "/orders/5?a=%20c",
                ..HEAD
            },
            SignedHead {
                time: b"1735689600001",
                ..HEAD
            },
            SignedHead {
                nonce: b"n-2",
                ..HEAD
            },
        ] {
            assert_ne!(sign(other, b"{}"), signed);
        }
        assert_ne!(sign(HEAD, b"{} "), signed);
    }

    #[test]
    fn the_published_vectors_are_signed_as_they_say() {
        let vectors = include_str!("../../../../tests/vectors/head-vectors.json");
        let vectors: serde_json::Value = serde_json::from_str(vectors).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert!(cases.len() > 15);
        for case in cases {
            let text = |name: &str| case[name].as_str().unwrap();
            let algorithm: SignAlgorithm =
                serde_json::from_value(case["algorithm"].clone()).unwrap();
            let head = SignedHead {
                method: text("method"),
                target: text("target"),
                time: text("time").as_bytes(),
                nonce: text("nonce").as_bytes(),
            };
            let body = BodyHash::of(text("body").as_bytes());
            let key = text("app_key").parse().unwrap();
            let sign = sign_head(algorithm, &key, head, &body).to_hex();
            assert_eq!(sign, text("sign"), "{}", case["name"]);
            assert_eq!(head.for_display(algorithm, &body), text("text"));
        }
    }
}
