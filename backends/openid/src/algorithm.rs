//! The signature algorithms of ID tokens.

/// An algorithm that an ID token may be signed by. A key has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256 (RFC 7518 section 3.3). Every provider has it (OIDC Discovery section 3).
    Rs256,
    /// ECDSA on P-256 with SHA-256 (RFC 7518 section 3.4).
    Es256,
    /// Ed25519 (RFC 8037 section 3.1).
    EdDsa,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// The name in `alg`. Names are case-sensitive.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|algorithm| algorithm.name() == name)
    }
}

/// Registered names of other algorithms, which a log line may show (the registry of RFC 7518 section 7.1).
const OTHERS: [&str; 12] = [
    "HS256", "HS384", "HS512", "RS384", "RS512", "ES384", "ES512", "ES256K", "PS256", "PS384",
    "PS512", "Ed25519",
];

/// The registered name of an algorithm that is not supported.
pub(crate) fn other(name: &str) -> Option<&'static str> {
    OTHERS.into_iter().find(|other| *other == name)
}
