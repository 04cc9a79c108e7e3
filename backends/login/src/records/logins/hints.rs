//! What a client wants its provider to know, until the browser is at the provider.

use url::form_urlencoded;

use crate::config::PassedOn;

/// The values of `prompt` and `login_hint`. CONTRACT 8.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Hints(Vec<(PassedOn, String)>);

impl Hints {
    /// Longest `login_hint` in bytes: an address has up to 254 (RFC 5321), and the sealed cookie must stay below 4 KB.
    pub(crate) const MAX_LOGIN_HINT: usize = 254;

    /// Adds the value of a parameter.
    pub(crate) fn add(&mut self, parameter: PassedOn, value: &str) {
        self.0.push((parameter, value.to_owned()));
    }

    /// The value of a parameter.
    pub(crate) fn get(&self, parameter: PassedOn) -> Option<&str> {
        let found = self.0.iter().find(|(one, _)| *one == parameter);
        found.map(|(_, value)| value.as_str())
    }

    /// As a query, for the store and the cookie; `None` if there are none.
    pub(crate) fn encode(&self) -> Option<String> {
        let pairs = self.0.iter().map(|(name, value)| (name.as_str(), value));
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(pairs).finish();
        (!query.is_empty()).then_some(query)
    }

    /// Reads what [`Self::encode`] has written.
    pub(crate) fn decode(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes());
        let known = pairs.filter_map(|(name, value)| {
            let mut all = PassedOn::ALL.into_iter();
            let parameter = all.find(|one| one.as_str() == name)?;
            Some((parameter, value.into_owned()))
        });
        Self(known.collect())
    }
}

// They can name a person.
signpost_protocol::hide_in_debug!(Hints);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_read_back() {
        assert_eq!(Hints::default().encode(), None);
        let mut hints = Hints::default();
        hints.add(PassedOn::LoginHint, "ada+1@example.org & é");
        hints.add(PassedOn::Prompt, "login");
        let back = Hints::decode(&hints.encode().unwrap());
        assert!(back == hints);
        assert_eq!(back.get(PassedOn::LoginHint), Some("ada+1@example.org & é"));
        assert!(Hints::decode("other=1&x") == Hints::default());
        assert!(!format!("{hints:?}").contains("ada"));
    }
}
