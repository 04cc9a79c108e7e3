//! The people of the sandbox: some who just sign in, and some for whom the provider misbehaves.

use sha2::{Digest, Sha256};

use crate::fault::Fault;

/// Somebody who can sign in. Any number of further ones are made by [`User::named`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What the page's form sends.
    pub name: String,
    /// What a person reads.
    pub display_name: String,
    /// What goes wrong when this user's code is exchanged.
    pub token_fault: Option<Fault>,
    /// What goes wrong when this user's profile is asked for.
    pub profile_fault: Option<Fault>,
}

/// Starts a name that stands for a user made up on the spot: `any:somebody`.
const MADE_UP: &str = "any:";

const HEALTHY: [(&str, &str); 4] = [
    ("ada", "Ada Lovelace"),
    ("grace", "Grace Hopper"),
    ("lin", "林巧稚"),
    ("joao", "João “Zé” da Silva"),
];

impl User {
    /// Those without faults, in the order the page shows them.
    #[must_use]
    pub fn healthy() -> Vec<Self> {
        HEALTHY
            .iter()
            .map(|(name, display_name)| Self::without_fault(name, display_name))
            .collect()
    }

    /// Those for whom one of the two calls goes wrong: `token-<fault>`, `profile-<fault>`, and
    /// `both-slow`.
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
            ..Self::without_fault("both-slow", "Both come late")
        };
        at_token.chain(at_profile).chain([at_both]).collect()
    }

    /// The user of that name; `any:x` always exists.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some(made_up) = name.strip_prefix(MADE_UP) {
            return (!made_up.is_empty()).then(|| Self::without_fault(name, made_up));
        }
        Self::healthy()
            .into_iter()
            .chain(Self::faulty())
            .find(|user| user.name == name)
    }

    /// The stable identifier, in braces as Bitbucket's is. The same name is always the same person.
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
    fn a_made_up_user_is_the_same_person_every_time() {
        let one = User::named("any:one").unwrap();
        assert_eq!(one.uuid(), User::named("any:one").unwrap().uuid());
        assert_ne!(one.uuid(), User::named("any:two").unwrap().uuid());
        assert_eq!(one.uuid().len(), 38);
    }
}
