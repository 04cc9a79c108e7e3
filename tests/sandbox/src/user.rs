//! The users of the sandbox, some with a fault of the provider's responses.

use sha2::{Digest, Sha256};

use crate::{fault::Fault, id_token::IdFault, refusal::Refusal};

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
    /// Error of the authorization endpoint when this user presses Allow.
    pub refusal: Option<Refusal>,
    /// Fault of this user's ID tokens.
    pub id_fault: Option<IdFault>,
}

/// Prefix of the names of custom users, for example `any:eve`.
const CUSTOM: &str = "any:";

/// 2^53 + 1: as a float it becomes 2^53.
const NO_FLOAT: u64 = 9_007_199_254_740_993;

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

    /// The users for whom the authorization endpoint redirects back with an error: `error-<code>`.
    #[must_use]
    pub fn refused() -> Vec<Self> {
        let refused = Refusal::ALL.into_iter().map(|refusal| Self {
            refusal: Some(refusal),
            ..Self::without_fault(
                &format!("error-{}", refusal.code()),
                &format!("Error {}", refusal.code()),
            )
        });
        refused.collect()
    }

    /// The users whose ID token must be rejected: `id-<fault>`. With a provider that issues none, nothing fails.
    #[must_use]
    pub fn untrusted() -> Vec<Self> {
        let untrusted = IdFault::ALL.into_iter().map(|fault| Self {
            id_fault: Some(fault),
            ..Self::without_fault(
                &format!("id-{}", fault.name()),
                &format!("ID token {}", fault.describe()),
            )
        });
        untrusted.collect()
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
            .chain(Self::refused())
            .chain(Self::untrusted())
            .find(|user| user.name == name)
    }

    /// The stable identifier, in braces like Bitbucket's. It depends on the name only.
    #[must_use]
    pub fn uuid(&self) -> String {
        format!("{{{}}}", self.bare_uuid())
    }

    /// The same identifier, without braces.
    #[must_use]
    pub fn bare_uuid(&self) -> String {
        let digest = hex::encode(self.digest());
        let part = |from: usize, to: usize| digest.get(from..to).unwrap_or_default();
        let parts = [
            part(0, 8),
            part(8, 12),
            part(12, 16),
            part(16, 20),
            part(20, 32),
        ];
        parts.join("-")
    }

    /// The stable number, of at most 48 bits. `grace` has a number that no `f64` can represent.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self.name.as_str() {
            "grace" => NO_FLOAT,
            _ => self.wide_number() >> 16,
        }
    }

    /// A stable number of 64 bits.
    #[must_use]
    pub fn wide_number(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.digest();
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// The name to display, unless this user has entered none: `joao`.
    #[must_use]
    pub fn entered_name(&self) -> Option<&str> {
        (self.name != "joao").then_some(self.display_name.as_str())
    }

    /// A mail address that does not exist (RFC 2606).
    #[must_use]
    pub fn email(&self) -> String {
        format!("{}@sandbox.example", self.name.replace(':', "."))
    }

    fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.name.as_bytes()).into()
    }

    fn without_fault(name: &str, display_name: &str) -> Self {
        Self {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            token_fault: None,
            profile_fault: None,
            refusal: None,
            id_fault: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_user_is_found_by_name() {
        let faulty = [User::faulty(), User::refused(), User::untrusted()];
        for user in User::healthy().into_iter().chain(faulty.concat()) {
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
