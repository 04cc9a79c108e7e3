//! The ticket that a redirect login passes to its application: 256 random bits, redeemable once.

use signpost_protocol::challenge::Challenge;
use zeroize::Zeroizing;

use crate::secret::{Secret, hash_type, sha256};

hash_type! {
    /// SHA-256 of a ticket and its challenge, which is what the store has.
    TicketHash
}

/// Redeems one login result, once, within 60 s. CONTRACT 8.
#[derive(Debug)]
pub(crate) struct Ticket(Secret);

impl Ticket {
    /// Generates a random ticket.
    pub(crate) fn generate() -> Self {
        Self(Secret::generate())
    }

    /// Reads 43 characters of base64url; `None` for anything else.
    pub(crate) fn decode(text: &str) -> Option<Self> {
        Secret::decode(text).map(Self)
    }

    /// The ticket's text, for the query of `return_to`.
    pub(crate) fn encode(&self) -> String {
        self.0.encode()
    }

    /// The hash that is stored. The challenge is part of it: only who has the verifier finds the login, and who sends one for a
    /// login without a challenge does not.
    pub(crate) fn hash(&self, challenge: Option<&Challenge>) -> TicketHash {
        let challenge = challenge.map_or(&[][..], |challenge| challenge.as_bytes());
        let bound = Zeroizing::new([self.0.as_bytes(), challenge].concat());
        TicketHash(sha256(&bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_reads_back_and_is_not_printed() {
        let ticket = Ticket::generate();
        assert_eq!(
            Ticket::decode(&ticket.encode()).unwrap().hash(None),
            ticket.hash(None)
        );
        assert!(Ticket::decode("x").is_none());
        assert!(!format!("{ticket:?}").contains(&ticket.encode()));
    }

    #[test]
    fn a_ticket_is_found_with_the_verifier_of_its_challenge_only() {
        let [challenge, other] =
            ["a", "b"].map(|one| Challenge::of_verifier(&one.repeat(43)).unwrap());
        let ticket = Ticket::generate();
        let hashes = [None, Some(&challenge), Some(&other)].map(|one| ticket.hash(one).0);
        let different: std::collections::BTreeSet<_> = hashes.iter().collect();
        assert_eq!(different.len(), hashes.len());
    }
}
