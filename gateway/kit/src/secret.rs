//! Secrets and their sources: `env:NAME`, `file:PATH`, or the secret itself.

use std::{env, fs, os::unix::ffi::OsStringExt, path::PathBuf};

use signpost_protocol::{app::is_invisible, hide_in_debug};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// A secret string. Zeroized when dropped; `Debug` does not print it.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret(String);

impl Secret {
    /// The secret as a string. Must not be logged.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

hide_in_debug!(Secret, SecretSource);

/// The source of a secret. `Debug` prints nothing of it, since it may be the secret itself.
#[derive(Clone)]
pub enum SecretSource {
    /// An environment variable, by name.
    Env(String),
    /// A file: one line.
    File(PathBuf),
    /// The secret itself, written into the configuration.
    Literal(Secret),
}

impl From<&str> for SecretSource {
    fn from(setting: &str) -> Self {
        match setting.split_once(':') {
            Some(("env", name)) => Self::Env(name.to_owned()),
            Some(("file", path)) => Self::File(path.into()),
            _ => Self::Literal(Secret(setting.to_owned())),
        }
    }
}

impl SecretSource {
    /// Fetches the secret.
    ///
    /// # Errors
    ///
    /// The variable is not set, the file cannot be read, either is empty, or has an [`oddity`].
    pub fn read(self) -> Result<Secret, SecretError> {
        self.read_with(|_| {})
    }

    /// As [`Self::read`], and passes the raw content of the file to `on_content`: `None` if it cannot be read.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn read_with(self, on_content: impl FnOnce(Option<&[u8]>)) -> Result<Secret, SecretError> {
        let (origin, bytes, empty) = match self {
            Self::Env(name) => {
                // Not `env::var`: its error for a value that is not UTF-8 shows the value.
                let value = env::var_os(&name).unwrap_or_default();
                let origin = format!("env:{name}");
                (origin, value.into_vec(), SecretError::NotSet { name })
            }
            Self::File(path) => {
                let content = fs::read(&path);
                on_content(content.as_deref().ok());
                let origin = format!("file:{}", path.display());
                match content {
                    Ok(content) => (origin, content, SecretError::Empty { path }),
                    Err(cause) => return Err(SecretError::Unreadable { path, cause }),
                }
            }
            Self::Literal(secret) => {
                let bytes = secret.0.as_bytes().to_vec();
                ("a text".to_owned(), bytes, SecretError::EmptyLiteral)
            }
        };
        // Wiped on every way out, errors included.
        let bytes = Zeroizing::new(bytes);
        let odd = |oddity| SecretError::Odd { origin, oddity };
        let Ok(text) = str::from_utf8(&bytes) else {
            return Err(odd(NOT_UTF_8));
        };
        // Only one line end, which editors and `echo` add: more is a second line, and reported.
        let line = text.strip_suffix('\n').unwrap_or(text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        match oddity(line) {
            // First: white space alone is an empty file, not a secret with white space around it.
            _ if line.trim().is_empty() => Err(empty),
            Some(oddity) => Err(odd(oddity)),
            None => Ok(Secret(line.to_owned())),
        }
    }
}

/// What is wrong with bytes that are not UTF-8, for messages.
pub const NOT_UTF_8: &str = "bytes that are not UTF-8; PowerShell's > writes UTF-16";

/// What a secret has by mistake, for messages: its other holders have the secret without it.
#[must_use]
pub fn oddity(secret: &str) -> Option<&'static str> {
    const QUOTES: [char; 8] = ['"', '\'', '`', '“', '”', '„', '‘', '’'];
    let is_unseen = |letter: char| {
        // Joiners may be in names, but not here.
        let is_joiner = matches!(letter, '\u{200c}' | '\u{200d}');
        letter != ' ' && (letter.is_whitespace() || is_invisible(letter) || is_joiner)
    };
    // As in NAME="…", a line of a .env file.
    let is_assigned = || {
        QUOTES
            .iter()
            .any(|quote| secret.contains(&format!("={quote}")))
    };
    // As in `b'…'`, or `"…",`, out of a program.
    let bare = secret.trim_start_matches('b').trim_end_matches([',', ';']);
    // The special before the general: UTF-16 has invisible characters, too, but its own message says what to do.
    if secret.starts_with('\u{feff}') {
        Some("a byte order mark at its beginning: save it as UTF-8 without one")
    } else if secret.contains('\0') {
        Some("NUL bytes, as UTF-16 has them, which PowerShell's > writes: save it as UTF-8")
    } else if secret.contains('\n') {
        Some("more than one line")
    } else if secret.trim() != secret {
        Some("white space around the secret: remove it")
    } else if bare.ends_with(QUOTES) && (bare.starts_with(QUOTES) || is_assigned()) {
        Some("quotes around the secret: remove them")
    } else if has_name(secret) {
        Some("a name and \"=\" before the secret: keep the secret alone")
    } else if secret.contains(is_unseen) {
        Some("a control character, or one that cannot be seen")
    } else {
        None
    }
}

/// Whether it is `NAME=…`, a line of a .env file. At the end of base64 nothing but `=` follows.
fn has_name(secret: &str) -> bool {
    let line = secret.strip_prefix("export ").unwrap_or(secret);
    let parts = line.split_once('=');
    parts.is_some_and(|(name, rest)| {
        name.len() > 2 && is_variable(name) && !rest.trim_matches('=').is_empty()
    })
}

/// Whether it is written as names of environment variables usually are: not as a secret by mistake.
fn is_variable(name: &str) -> bool {
    name.bytes()
        .all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
}

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is missing or empty. A name that may be the secret itself is not shown.
    #[error("env:{}, but that environment variable is not set, or empty", if is_variable(name) { name.as_str() } else { "…" })]
    NotSet {
        /// Name in the setting `env:NAME`.
        name: String,
    },
    /// The file is missing or cannot be read.
    #[error("file:{}, which cannot be read ({cause})", path.display())]
    Unreadable {
        /// Path in the setting `file:PATH`.
        path: PathBuf,
        /// Why the system could not read it.
        cause: std::io::Error,
    },
    /// The file is empty.
    #[error("file:{}, which is empty", path.display())]
    Empty {
        /// Path in the setting `file:PATH`.
        path: PathBuf,
    },
    /// It has an [`oddity`].
    #[error("{origin}, with {oddity}")]
    Odd {
        /// The setting, for example `env:NAME`; never the secret itself.
        origin: String,
        /// What it has: [`oddity`].
        oddity: &'static str,
    },
    /// The setting itself is empty.
    #[error("an empty string")]
    EmptyLiteral,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_from_its_source() {
        let path = env::temp_dir().join(format!("signpost-secret-{}", std::process::id()));
        fs::write(&path, "hush\r\n").unwrap();
        let secret = SecretSource::from(&*format!("file:{}", path.display()))
            .read()
            .unwrap();
        assert_eq!(secret.expose(), "hush");
        fs::write(&path, "\n").unwrap();
        let setting = format!("file:{}", path.display());
        assert!(matches!(
            SecretSource::from(&*setting).read(),
            Err(SecretError::Empty { .. })
        ));
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            SecretSource::from(&*setting).read(),
            Err(SecretError::Unreadable { .. })
        ));
        for (setting, shown) in [
            (
                "env:SIGNPOST_NO_SUCH_VARIABLE",
                "env:SIGNPOST_NO_SUCH_VARIABLE, but",
            ),
            ("env:postgres://u:hush@h/d", "env:…, but"),
        ] {
            let error = SecretSource::from(setting).read().unwrap_err();
            assert!(error.to_string().starts_with(shown), "{error}");
        }
        assert_eq!(
            SecretSource::from("literal").read().unwrap().expose(),
            "literal"
        );
    }

    /// Issue 44, row 14.
    #[test]
    fn an_odd_secret_is_refused_in_words_wherever_it_is_from() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let from_file = format!("file:{}", file.path().display());
        let error = |setting: &str| SecretSource::from(setting).read().map(drop).unwrap_err();
        for (odd, words) in [
            ("\u{feff}hush\r\n", "a byte order mark"),
            ("\"hush\"\n", "quotes around"),
            ("'hush'", "quotes around"),
            ("“hush”\n", "quotes around"),
            ("APP_KEY=\"hush\"\n", "quotes around"),
            ("b'hush'", "quotes around"),
            ("\"hush\",\n", "quotes around"),
            ("APP_KEY=hush\n", "a name and"),
            ("export APP_KEY=hush", "a name and"),
            ("h\0u\0s\0h\0\r\0\n\0", "UTF-16"),
            ("hush\n\n", "more than one line"),
            ("hush\rhush", "control character"),
            ("hush\r\r\n", "white space around"),
            (" hush\n", "white space around"),
            ("hush \n", "white space around"),
            ("hush\u{a0}", "white space around"),
            ("hu\u{a0}sh", "cannot be seen"),
            ("hu\u{200b}sh", "cannot be seen"),
            ("hush\u{200d}", "cannot be seen"),
            ("hu\tsh", "control character"),
        ] {
            fs::write(file.path(), odd).unwrap();
            let error_of_file = error(&from_file).to_string();
            let expected = format!("{from_file}, with ");
            assert!(error_of_file.starts_with(&expected), "{error_of_file}");
            for error in [error_of_file, error(odd).to_string()] {
                assert!(error.contains(words), "{odd:?}: {error}");
                assert!(!error.contains("hu"), "{error}");
            }
        }
        for not_utf_8 in [b"\xff\xfeh\0u\0", b"h\xfcsh\n\n"] {
            fs::write(file.path(), not_utf_8).unwrap();
            let error = error(&from_file).to_string();
            assert!(error.contains("writes UTF-16"), "{error}");
        }
        for blank in ["", "\n", " \r\n"] {
            fs::write(file.path(), blank).unwrap();
            assert!(matches!(error(&from_file), SecretError::Empty { .. }));
        }
    }

    #[test]
    fn what_may_be_meant_is_used_as_it_stands() {
        for secret in [
            "Bearer hush",
            "it's",
            "\"a",
            "a=\"b",
            "ключ",
            "YWI=",
            "YWJj==",
            "a=b",
        ] {
            let read = SecretSource::from(secret).read().unwrap();
            assert_eq!(read.expose(), secret);
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        let source = SecretSource::from("hush");
        assert!(!format!("{source:?} {:?}", source.clone().read().unwrap()).contains("hush"));
    }
}
