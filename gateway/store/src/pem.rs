//! Certificates and keys in PEM (RFC 7468). Every line of a file is understood, or the file is refused: a certificate that
//! is passed over weakens or breaks TLS without a word.
//!
//! Beside the blocks, a file may have text, as `openssl` writes it, but nothing that looks like a part of a block. A file may
//! have a chain and its key, as `HAProxy` wants it.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// Why a file cannot be used. Follows the file's name in a message; nothing of the file is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PemError {
    /// A line that is not understood, counted from 1.
    #[error("which is not valid PEM: line {0}: {1}")]
    Line(usize, &'static str),
    /// The file has no certificate.
    #[error("which has no certificate in PEM")]
    NoCertificate,
    /// The file has no key.
    #[error("which has no private key in PEM")]
    NoKey,
}

/// What a file may have.
const LABELS: [&str; 7] = [
    "CERTIFICATE",
    "PRIVATE KEY",
    "RSA PRIVATE KEY",
    "EC PRIVATE KEY",
    "ENCRYPTED PRIVATE KEY",
    "EC PARAMETERS",
    "DH PARAMETERS",
];

/// A block, from its first line to its last.
struct Block<'p> {
    label: &'p str,
    line: usize,
    text: &'p [u8],
    is_encrypted: bool,
}

/// The certificates of a file: at least one. A key beside them is not read.
///
/// # Errors
///
/// The file has none, or is not understood.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let all = blocks(pem)?.into_iter();
    let all = all.filter(|block| block.label == "CERTIFICATE");
    let all: Vec<_> = all
        .map(|block| CertificateDer::from_pem_slice(block.text).map_err(|_| block.malformed()))
        .collect::<Result<_, _>>()?;
    match all.is_empty() {
        true => Err(PemError::NoCertificate),
        false => Ok(all),
    }
}

/// The private key of a file: PKCS #8, PKCS #1 or SEC 1. Certificates beside it are not read.
///
/// # Errors
///
/// The file has none, more than one, or one with a passphrase; or is not understood.
pub fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, PemError> {
    let mut keys = blocks(pem)?.into_iter().filter(Block::is_key);
    let key = keys.next().ok_or(PemError::NoKey)?;
    if let Some(second) = keys.next() {
        return Err(PemError::Line(second.line, "a second private key"));
    }
    if key.is_encrypted {
        return Err(PemError::Line(key.line, "a private key with a passphrase"));
    }
    PrivateKeyDer::from_pem_slice(key.text).map_err(|_| key.malformed())
}

impl Block<'_> {
    fn is_key(&self) -> bool {
        self.label.ends_with("PRIVATE KEY")
    }

    const fn malformed(&self) -> PemError {
        PemError::Line(self.line, "the block is not base64, or is cut off")
    }
}

/// Splits a file into its blocks.
fn blocks(pem: &[u8]) -> Result<Vec<Block<'_>>, PemError> {
    const NO_BLOCK: &str = "neither a private key nor a CERTIFICATE, as openssl x509 writes it";
    const NO_BODY: &str = "neither base64 nor the end of the block, which needs a line of its own";
    let (mut blocks, mut open, mut rest) = (Vec::new(), None::<Block<'_>>, pem);
    for (number, line) in (1..).zip(pem.split_inclusive(|byte| *byte == b'\n')) {
        let from_here = rest;
        rest = &rest[line.len()..];
        let line = line.trim_ascii_end();
        let refused = |what| PemError::Line(number, what);
        let Some(mut block) = open.take() else {
            match label(line, b"-----BEGIN ") {
                Some(label) if LABELS.contains(&label) => {
                    open = Some(Block {
                        label,
                        line: number,
                        text: from_here,
                        is_encrypted: label.starts_with("ENCRYPTED"),
                    });
                }
                Some(_) => return Err(refused(NO_BLOCK)),
                None => stray(line).map_or(Ok(()), |what| Err(refused(what)))?,
            }
            continue;
        };
        if label(line, b"-----END ") == Some(block.label) {
            block.text = &block.text[..block.text.len() - rest.len()];
            blocks.push(block);
            continue;
        }
        // RFC 1421, for example `DEK-Info: …`.
        let is_header = block.is_key() && line.contains(&b':') && !line.starts_with(b"-");
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        if !is_header && !line.iter().all(is_base64) {
            return Err(refused(NO_BODY));
        }
        // Only keys with a passphrase have headers (`Proc-Type`, `DEK-Info`).
        block.is_encrypted |= is_header;
        open = Some(block);
    }
    match open {
        Some(block) => Err(PemError::Line(block.line, "the block has no end")),
        None => Ok(blocks),
    }
}

/// The label of a line that begins or ends a block.
fn label<'l>(line: &'l [u8], start: &[u8]) -> Option<&'l str> {
    let label = line.strip_prefix(start)?.strip_suffix(b"-----")?;
    str::from_utf8(label)
        .ok()
        // Two boundaries in one line, as in a file that has lost its line ends, are no label.
        .filter(|label| !label.contains('-'))
}

/// Why a line outside the blocks is no text.
fn stray(line: &[u8]) -> Option<&'static str> {
    /// Longer than any word.
    const BASE64: usize = 40;
    let upper = line.to_ascii_uppercase();
    let has = |part: &[u8]| upper.windows(part.len()).any(|window| window == part);
    let is_boundary = has(b"--") && (has(b"BEGIN") || has(b"END"));
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    if has(b"\0") {
        Some("NUL bytes: the file is UTF-16 or DER")
    } else if is_boundary || has(b"BEGIN CERTIFICATE") || has(b"END CERTIFICATE") {
        Some("a block needs its beginning and its end, each on a line of its own")
    } else if line.len() >= BASE64 && line.iter().all(is_base64) {
        Some("base64 outside a block")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "-----BEGIN CERTIFICATE-----\n";
    const END: &str = "-----END CERTIFICATE-----\n";

    fn block(label: &str, body: &str) -> String {
        format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n")
    }

    fn count(pem: &str) -> Result<usize, PemError> {
        certificates(pem.as_bytes()).map(|all| all.len())
    }

    #[test]
    fn all_blocks_are_found_beside_text_and_keys() {
        let one = block("CERTIFICATE", "Zm9v\nYmFy");
        let key = block("EC PRIVATE KEY", "Zm9v");
        let openssl = " 0 s:CN = api\n---\nServer certificate\n====\nsubject=CN = J\u{f6}rg\n\n";
        let parameters = block("EC PARAMETERS", "Zm9v");
        for (pem, expected) in [
            (one.clone(), 1),
            (format!("{one}{one}"), 2),
            (format!("{one}\n\n{one}"), 2),
            (one.trim_end().to_owned(), 1),
            (one.replace('\n', "\r\n"), 1),
            (format!("{openssl}{one}{openssl}{one}---\n"), 2),
            (format!("{key}{one}"), 1),
            (format!("{one}{parameters}{key}{one}"), 2),
            (
                format!("{one}{}", block("ENCRYPTED PRIVATE KEY", "Zm9v")),
                1,
            ),
        ] {
            assert_eq!(count(&pem), Ok(expected), "{pem}");
        }
        assert!(private_key(format!("{one}{parameters}{key}{one}").as_bytes()).is_ok());
        for label in ["PRIVATE KEY", "RSA PRIVATE KEY"] {
            assert!(private_key(block(label, "Zm9v").as_bytes()).is_ok());
        }
    }

    /// Issue 44, row 13.
    #[test]
    fn what_is_not_understood_is_refused_by_its_line() {
        let one = block("CERTIFICATE", "Zm9v");
        let after = |pem: &str| format!("{one}{pem}");
        let of = |label| after(&block(label, "Zm9v"));
        let (stray, body) = ("each on a line of its own", "neither base64 nor the end");
        let kind = "neither a private key nor a CERTIFICATE";
        for (pem, line, words) in [
            (format!("{}{one}", one.trim_end()), 3, body),
            (after(&one[1..]), 4, stray),
            (after(&format!(" {one}")), 4, stray),
            (after(&one.to_lowercase()), 4, stray),
            (after("BEGIN CERTIFICATE\n"), 4, stray),
            (after(&format!("Zm9v\n{END}")), 5, stray),
            (format!("\u{feff}{one}"), 1, stray),
            (one.replace('\n', "\r"), 1, stray),
            (after(&format!("{BEGIN}Zm9v\n")), 4, "has no end"),
            (after(&format!("{BEGIN}Zm9v\n{one}")), 6, body),
            (one.replace("END", "END TRUSTED"), 3, body),
            (one.replace("Zm9v", "Zm9v!"), 2, body),
            (one.replace("Zm9v", "Proc-Type: 4\n\nZm9v"), 2, body),
            (one.replace("Zm9v", "Zg==Zg=="), 1, "not base64"),
            (after(&"Zm9v".repeat(16)), 4, "base64 outside"),
            (after("a\0b\n"), 4, "UTF-16"),
            (of("TRUSTED CERTIFICATE"), 4, kind),
            (of("X509 CRL"), 4, kind),
            (of("CERTIFICATE REQUEST"), 4, kind),
            (of("PUBLIC KEY"), 4, kind),
            (of(""), 4, kind),
        ] {
            let error = certificates(pem.as_bytes()).expect_err(&pem);
            assert!(
                matches!(error, PemError::Line(found, _) if found == line),
                "{pem}: {error}"
            );
            assert!(error.to_string().contains(words), "{pem}: {error}");
        }
        for none in ["", "text\n", &block("PRIVATE KEY", "Zm9v")] {
            assert_eq!(count(none), Err(PemError::NoCertificate));
        }
    }

    #[test]
    fn a_key_is_one_without_a_passphrase() {
        let key = block("PRIVATE KEY", "Zm9v");
        let headers = block(
            "RSA PRIVATE KEY",
            "Proc-Type: 4,ENCRYPTED\nDEK-Info: A,B\n\nZm9v",
        );
        for (pem, expected) in [
            (String::new(), PemError::NoKey),
            (block("CERTIFICATE", "Zm9v"), PemError::NoKey),
            (
                format!("{key}{key}"),
                PemError::Line(4, "a second private key"),
            ),
            (
                headers,
                PemError::Line(1, "a private key with a passphrase"),
            ),
            (
                block("ENCRYPTED PRIVATE KEY", "Zm9v"),
                PemError::Line(1, "a private key with a passphrase"),
            ),
        ] {
            assert_eq!(private_key(pem.as_bytes()).unwrap_err(), expected, "{pem}");
        }
    }
}
