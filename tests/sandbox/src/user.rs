//! The users of the sandbox, some with a fault of the provider's responses.

use sha2::{Digest, Sha256};

use crate::fault::Fault;

/// A user who can log in. [`User::named`] also creates users of any name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name that the page's form sends.
    pub name: String,
    /// The name shown on the page and in the profile.
    pub display_name: String,
    /// Fault when this user's code is exchanged.
    pub token_fault: Option<Fault>,
    /// Fault when this user's profile is requested.
    pub profile_fault: Option<Fault>,
}

/// Prefix of the names of custom users, for example `any:eve`.
const CUSTOM: &str = "any:";

const HEALTHY: [(&str, &str); 4] = [
    ("ada", "Ada Lovelace"),
    ("grace", "Grace Hopper"),
    ("lin", "林巧稚"),
    ("joao", "João “Zé” da Silva"),
];

impl User {
    /// The users without faults, in the order of the page.
    #[must_use]
    pub fn healthy() -> Vec<Self> {
        HEALTHY
            .iter()
            .map(|(name, display_name)| Self::without_fault(name, display_name))
            .collect()
    }

    /// The users with a fault: `token-<fault>`, `profile-<fault>`, and `both-slow`.
    #[must_use]
    pub fn faulty() -> Vec<Self> {
        let at_token = Fault::AT_TOKEN.into_iter().map(|fault| Self {
            token_fault: Some(fault),
            ..Self::without_fault(
                &format!("token-{}", fault.name()),
                &format!("Token {}", fault.describe()),
            )
        });
        let at_profile = Fault::AT_PROFILE.into_iter().map(|fault| Self {
            profile_fault: Some(fault),
            ..Self::without_fault(
                &format!("profile-{}", fault.name()),
                &format!("Profile {}", fault.describe()),
            )
        });
        let at_both = Self {
            token_fault: Some(Fault::Slow),
            profile_fault: Some(Fault::Slow),
            ..Self::without_fault("both-slow", "Both responses are late")
        };
        at_token.chain(at_profile).chain([at_both]).collect()
    }

    /// The user with this name; `any:x` always exists.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some(custom) = name.strip_prefix(CUSTOM) {
            return (!custom.is_empty()).then(|| Self::without_fault(name, custom));
        }
        Self::healthy()
            .into_iter()
            .chain(Self::faulty())
            .find(|user| user.name == name)
    }

    /// The stable identifier, in braces like Bitbucket's. It depends on the name only.
    #[must_use]
    pub fn uuid(&self) -> String {
        let digest = hex::encode(Sha256::digest(self.name.as_bytes()));
        let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
        let parts = [
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32),
        ];
        format!("{{{}}}", parts.join("-"))
    }

    fn without_fault(name: &str, display_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            token_fault: None,
            profile_fault: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_user_is_found_by_name() {
        for user in User::healthy().into_iter().chain(User::faulty()) {
            assert_eq!(User::named(&user.name), Some(user));
        }
        assert_eq!(User::named("nobody"), None);
        assert_eq!(User::named("any:"), None);
    }

    #[test]
    fn a_custom_user_always_has_the_same_uuid() {
        let one = User::named("any:one").unwrap();
        assert_eq!(one.uuid(), User::named("any:one").unwrap().uuid());
        assert_ne!(one.uuid(), User::named("any:two").unwrap().uuid());
        assert_eq!(one.uuid().len(), 38);
    }
}
