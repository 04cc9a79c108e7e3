//! Secrets and where they come from: `env:NAME`, `file:PATH`, or the secret itself. CONTRACT 4.

use std::{env, fmt, fs, path::PathBuf};

use zeroize::{Zeroize, ZeroizeOnDrop};

/// A secret text. Wiped when dropped; its `Debug` is silent.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret(String);

impl Secret {
    /// The text, for the one place that uses it.
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

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Where a secret comes from. Its `Debug` is silent, since it may be the secret itself.
#[derive(Clone)]
pub enum SecretSource {
    /// The variable of the environment.
    Env(String),
    /// The file; white space around the secret does not count.
    File(PathBuf),
    /// The setting is the secret.
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
    /// The variable is not set, the file cannot be read, or there is nothing in it.
    pub fn read(self) -> Result<Secret, SecretError> {
        self.read_with(|_| {})
    }

    /// As [`Self::read`]; shows the content of the file, as it is, to `on_content`: `None` if it cannot be read.
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
            Self::Literal(secret) if secret.0.is_empty() => Err(SecretError::Nothing),
            Self::Literal(secret) => Ok(secret),
        }
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretSource(…)")
    }
}

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The variable is missing or empty.
    #[error("env:{name}, but the environment has no such variable, or it is empty")]
    NotSet {
        /// The variable.
        name: String,
    },
    /// The file is missing or may not be read.
    #[error("file:{}, which cannot be read ({cause})", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// The file has nothing in it.
    #[error("file:{}, which is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The setting itself is empty.
    #[error("an empty text")]
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_comes_from_where_the_setting_says() {
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
