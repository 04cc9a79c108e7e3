//! The ticket that a redirect login passes to its application: 256 random bits, redeemable once.

use crate::secret::{Secret, hash_type};

hash_type! {
    /// SHA-256 of a ticket, which is what the store has.
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

    /// The hash that is stored.
    pub(crate) fn hash(&self) -> TicketHash {
        TicketHash(self.0.sha256())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_reads_back_and_is_not_printed() {
        let ticket = Ticket::generate();
        assert_eq!(
            Ticket::decode(&ticket.encode()).unwrap().hash(),
            ticket.hash()
        );
        assert!(Ticket::decode("x").is_none());
        assert!(!format!("{ticket:?}").contains(&ticket.encode()));
    }
}
