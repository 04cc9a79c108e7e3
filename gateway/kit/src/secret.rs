//! Secrets and their sources: `env:NAME`, `file:PATH`, or the secret itself.

use std::{env, fs, path::PathBuf};

use signpost_protocol::hide_in_debug;
use zeroize::{Zeroize, ZeroizeOnDrop};

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
    /// A file. White space around the secret is ignored.
    File(PathBuf),
    /// The secret itself.
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
    /// The variable is not set, the file cannot be read, or either is empty.
    pub fn read(self) -> Result<Secret, SecretError> {
        self.read_with(|_| {})
    }

    /// As [`Self::read`], and passes the raw content of the file to `on_content`: `None` if it cannot be read.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn read_with(self, on_content: impl FnOnce(Option<&[u8]>)) -> Result<Secret, SecretError> {
        match self {
            Self::Env(name) => {
                let value = env::var(&name)
                    .ok()
                    .map(|value| Secret(value.trim().to_owned()));
                value
                    .filter(|secret| !secret.0.is_empty())
                    .ok_or(SecretError::NotSet { name })
            }
            Self::File(path) => {
                let text = fs::read_to_string(&path);
                on_content(text.as_ref().ok().map(String::as_bytes));
                let mut text = text.map_err(|cause| SecretError::Unreadable {
                    path: path.clone(),
                    cause,
                })?;
                let secret = Secret(text.trim().to_owned());
                text.zeroize();
                if secret.0.is_empty() {
                    Err(SecretError::Empty { path })
                } else {
                    Ok(secret)
                }
            }
            Self::Literal(secret) if secret.0.is_empty() => Err(SecretError::EmptyLiteral),
            Self::Literal(secret) => Ok(secret),
        }
    }
}

/// Why a secret cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is missing or empty.
    #[error("env:{name}, but that environment variable is not set, or empty")]
    NotSet {
        /// The variable.
        name: String,
    },
    /// The file is missing or cannot be read.
    #[error("file:{}, which cannot be read ({cause})", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The file is empty.
    #[error("file:{}, which is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
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
        fs::write(&path, " hush \n").unwrap();
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
        assert!(
            SecretSource::from("env:SIGNPOST_NO_SUCH_VARIABLE")
                .read()
                .is_err()
        );
        assert_eq!(
            SecretSource::from("literal").read().unwrap().expose(),
            "literal"
        );
    }

    #[test]
    fn a_secret_is_not_printed() {
        let source = SecretSource::from("hush");
        assert!(!format!("{source:?} {:?}", source.clone().read().unwrap()).contains("hush"));
    }
}
