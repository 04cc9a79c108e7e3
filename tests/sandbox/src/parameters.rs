//! The parameters of a query or a form, each at most once (RFC 6749 section 3.1).

use std::collections::BTreeMap;

use url::form_urlencoded;

/// Decoded parameters by name.
#[derive(Debug, Default)]
pub struct Parameters(BTreeMap<String, String>);

/// The name of a parameter that occurs twice.
#[derive(Debug)]
pub struct Repeated(pub String);

impl Parameters {
    /// Reads a query or a form body.
    ///
    /// # Errors
    ///
    /// When a name occurs twice.
    pub fn parse(encoded: &[u8]) -> Result<Self, Repeated> {
        let mut parameters = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(encoded) {
            if parameters
                .insert(name.to_string(), value.into_owned())
                .is_some()
            {
                return Err(Repeated(name.into_owned()));
            }
        }
        Ok(Self(parameters))
    }

    /// All names and values, also empty ones.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The requested scopes.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.value("scope")
            .into_iter()
            .flat_map(|scope| scope.split(' '))
    }

    /// The value of this name; an empty value counts as absent (RFC 6749 section 3.1).
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}
