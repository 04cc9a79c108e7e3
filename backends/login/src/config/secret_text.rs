//! A secret that the configuration names: `env:NAME`, `file:PATH`, or the text itself.

use std::fmt;

use zeroize::Zeroizing;

use super::problems::Problems;

const ALLOWED: &str = "env:NAME of a variable that is set, file:PATH of a file that can be read, or the text itself; not empty";

/// A configured secret: not printed, not serialized, wiped when dropped.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// The secret, for the one place that uses it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Follows `source` to the secret. White space around what a variable or a file holds is not part of it.
    pub(super) fn read(key: &str, source: &str, problems: &mut Problems) -> Option<Self> {
        let (text, found) = if let Some(name) = source.strip_prefix("env:") {
            (
                std::env::var(name).ok().map(trimmed),
                format!("the variable {name}, which is not set or empty"),
            )
        } else if let Some(path) = source.strip_prefix("file:") {
            let text = std::fs::read_to_string(path).ok().map(trimmed);
            (
                text,
                format!("the file {path}, which cannot be read or is empty"),
            )
        } else {
            (
                Some(Zeroizing::new(source.to_owned())),
                "an empty text".to_owned(),
            )
        };
        let secret = text.filter(|text| !text.is_empty()).map(Self);
        if secret.is_none() {
            problems.add(key, &found, ALLOWED);
        }
        secret
    }
}

fn trimmed(text: String) -> Zeroizing<String> {
    let text = Zeroizing::new(text);
    Zeroizing::new(text.trim().to_owned())
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretText(…)")
    }
}
