//! Explaining a signature in headers that does not match. CONTRACT 3.

use super::{Explanation, MAX_CANONICAL_BYTES, Slip, algorithm_name, other_hash_of};
use crate::sign::{AppKey, BodyHash, Sign, SignAlgorithm, SignedHead, digest};

/// Limit on a body that a client may have signed itself, in bytes.
const MAX_BODY: usize = 8 * 1024;

/// The lines of a text, as a client may have written them.
#[derive(Clone)]
struct Lines<'r> {
    lines: Vec<Vec<u8>>,
    /// What stands between the text and the key; `None`: no key.
    key: Option<&'r [u8]>,
    ends_with_line_feed: bool,
}

impl Lines<'_> {
    fn sign(&self, algorithm: SignAlgorithm, key: &AppKey) -> Sign {
        digest(algorithm, key, |sink| {
            sink(&self.lines.join(&b'\n'));
            if let Some(joint) = self.key {
                sink(joint);
                sink(key.as_bytes());
            }
            if self.ends_with_line_feed {
                sink(b"\n");
            }
        })
    }
}

/// Looks for the mistake with which the signature `sent` was made. `host` may be empty, and `bytes` are the body's, if it
/// is in memory.
#[must_use]
pub fn explain_head(
    sent: &[u8],
    algorithm: SignAlgorithm,
    key: &AppKey,
    (head, host): (SignedHead<'_>, &str),
    (body, bytes): (&BodyHash, Option<&[u8]>),
) -> Explanation {
    let Some(given) = Sign::from_hex(sent) else {
        return super::explain_form(algorithm);
    };
    // The host is in some of the texts.
    let lines = [
        head.target.as_bytes(),
        head.time,
        head.nonce,
        host.as_bytes(),
    ];
    if lines.map(<[u8]>::len).iter().sum::<usize>() > MAX_CANONICAL_BYTES {
        return Slip::TooLarge.into();
    }
    let (own, other) = match algorithm {
        SignAlgorithm::Md5 => (SignAlgorithm::Md5, SignAlgorithm::HmacSha256),
        SignAlgorithm::HmacSha256 => (SignAlgorithm::HmacSha256, SignAlgorithm::Md5),
    };
    for used in [own, other] {
        let slip_of = |slip: Option<Slip>| match slip {
            Some(slip) if used == own => slip,
            // The algorithm first: it changes the line of the key, too.
            _ => Slip::Algorithm(other_hash_of(algorithm, algorithm_name(used))),
        };
        let departures = departures(used, (head, host), (body, bytes));
        let mut found = departures.iter();
        let found = found.find(|(_, lines)| lines.sign(used, key).matches(&given));
        if let Some((slip, _)) = found {
            return slip_of(*slip).into();
        }
    }
    let has_form = given.as_bytes().len() == sign_length(algorithm);
    if has_form {
        Slip::KeyOrValue.into()
    } else {
        Slip::Algorithm(other_hash_of(algorithm, "none")).into()
    }
}

const fn sign_length(algorithm: SignAlgorithm) -> usize {
    match algorithm {
        SignAlgorithm::Md5 => 16,
        SignAlgorithm::HmacSha256 => 32,
    }
}

/// The text as it must be, for either algorithm, and each text with one mistake.
fn departures<'r>(
    algorithm: SignAlgorithm,
    (head, host): (SignedHead<'_>, &str),
    (body, bytes): (&BodyHash, Option<&[u8]>),
) -> Vec<(Option<Slip>, Lines<'r>)> {
    let hash = body.to_hex().to_vec();
    let lines = [
        head.method.as_bytes(),
        head.target.as_bytes(),
        head.time,
        head.nonce,
        &hash,
    ];
    let right = Lines {
        lines: lines.map(<[u8]>::to_vec).to_vec(),
        key: (algorithm == SignAlgorithm::Md5).then_some(&b"\n"[..]),
        ends_with_line_feed: false,
    };
    let with_line = |index: usize, line: Vec<u8>| {
        let mut changed = right.clone();
        changed.lines[index] = line;
        changed
    };
    let path = head.target.split('?').next().unwrap_or_default();
    let mut all = vec![(None, right.clone())];
    let mut add = |part, lines| all.push((Some(Slip::Line(part)), lines));
    add(
        "method",
        with_line(0, head.method.to_lowercase().into_bytes()),
    );
    add("path", with_line(1, path.as_bytes().to_vec()));
    for scheme in ["http://", "https://", ""] {
        let address = format!("{scheme}{host}{}", head.target);
        add("address", with_line(1, address.into_bytes()));
    }
    add("empty", with_line(4, BodyHash::of(b"").to_hex().to_vec()));
    add("empty", with_line(4, Vec::new()));
    add("digits", with_line(4, hash.to_ascii_uppercase()));
    add("digits", with_line(4, body.as_bytes().to_vec()));
    if let Some(bytes) = bytes.filter(|bytes| bytes.len() <= MAX_BODY) {
        add("body", with_line(4, bytes.to_vec()));
    }
    if head.nonce.is_empty() {
        let mut without = right.clone();
        without.lines.remove(3);
        add("nonce", without);
    }
    for key in [None, Some(&b"\n"[..]), Some(b""), Some(b"&key=")] {
        add(
            "key",
            Lines {
                key,
                ..right.clone()
            },
        );
    }
    let ends_with_line_feed = true;
    all.push((
        Some(Slip::TrailingNewline),
        Lines {
            ends_with_line_feed,
            ..right
        },
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: SignedHead<'_> = SignedHead {
        method: "POST",
        target: "/orders?a=1",
        time: b"1735689600000",
        nonce: b"",
    };
    const BODY: &[u8] = b"{\"a\":1}";

    fn explained(sent: &str, algorithm: SignAlgorithm) -> Slip {
        let body = BodyHash::of(BODY);
        let key = key();
        let head = (HEAD, "api.example.com");
        explain_head(sent.as_bytes(), algorithm, &key, head, (&body, Some(BODY))).slip
    }

    fn key() -> AppKey {
        "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap()
    }

    #[test]
    fn each_mistake_is_named() {
        let hash = String::from_utf8(BodyHash::of(BODY).to_hex().to_vec()).unwrap();
        let empty = String::from_utf8(BodyHash::of(b"").to_hex().to_vec()).unwrap();
        let (target, time) = ("/orders?a=1", "1735689600000");
        let upper = hash.to_uppercase();
        let body = String::from_utf8_lossy(BODY);
        for (text, part) in [
            (format!("post\n{target}\n{time}\n\n{hash}"), "method"),
            (format!("POST\n/orders\n{time}\n\n{hash}"), "path"),
            (
                format!("POST\nhttps://api.example.com{target}\n{time}\n\n{hash}"),
                "address",
            ),
            (format!("POST\n{target}\n{time}\n\n{empty}"), "empty"),
            (format!("POST\n{target}\n{time}\n\n{upper}"), "digits"),
            (format!("POST\n{target}\n{time}\n\n{body}"), "body"),
            (format!("POST\n{target}\n{time}\n{hash}"), "nonce"),
        ] {
            let hmac = digest(SignAlgorithm::HmacSha256, &key(), |sink| {
                sink(text.as_bytes())
            });
            let slip = explained(&hmac.to_hex(), SignAlgorithm::HmacSha256);
            assert_eq!(slip, Slip::Line(part), "{text}");
            let text = format!("{text}\n4283fefc63f0cd0e873a0000c6d07ef7");
            let md5 = digest(SignAlgorithm::Md5, &key(), |sink| sink(text.as_bytes()));
            assert_eq!(
                explained(&md5.to_hex(), SignAlgorithm::Md5),
                Slip::Line(part)
            );
        }
        let right = format!("POST\n{target}\n{time}\n\n{hash}");
        let hmac = |text: String| {
            digest(SignAlgorithm::HmacSha256, &key(), |sink| {
                sink(text.as_bytes())
            })
            .to_hex()
        };
        let with_key = format!("{right}\n4283fefc63f0cd0e873a0000c6d07ef7");
        let explained = |sign: &str| explained(sign, SignAlgorithm::HmacSha256);
        assert_eq!(explained(&hmac(with_key.clone())), Slip::Line("key"));
        assert_eq!(
            explained(&hmac(format!("{right}\n"))),
            Slip::TrailingNewline
        );
        let md5 = digest(SignAlgorithm::Md5, &key(), |sink| sink(with_key.as_bytes()));
        assert!(matches!(explained(&md5.to_hex()), Slip::Algorithm(other) if other.found == "MD5"));
        assert_eq!(explained(&"0".repeat(64)), Slip::KeyOrValue);
        assert!(matches!(explained("xyz"), Slip::SignForm(_)));
        assert!(matches!(explained(&"0".repeat(32)), Slip::Algorithm(_)));
    }
}
