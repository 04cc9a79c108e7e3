//! Creates credentials; the contract's crate reads and hashes them.

use signpost_protocol::credential::Credential;

use crate::secret::{Secret, random};

/// Generates a random credential.
#[must_use]
pub(crate) fn random_credential() -> Credential {
    Credential::from_bytes(random())
}

/// The credential of this secret.
pub(crate) fn credential_from(secret: &Secret) -> Credential {
    Credential::from_bytes(*secret.as_bytes())
}
