//! The ticket that a redirect login passes to its application: 256 random bits, redeemable once.

use std::{fmt, str::FromStr};

use crate::secret::{Secret, hash_type};

hash_type! {
    /// SHA-256 of a ticket, which is what the store has.
    TicketHash
}

/// Redeems one login result, once, within 60 s. CONTRACT 8.
pub(crate) struct Ticket(Secret);

impl Ticket {
    /// Generates a random ticket.
    #[must_use]
    pub(crate) fn generate() -> Self {
        Self(Secret::generate())
    }

    /// The ticket's text, for the query of `return_to`.
    #[must_use]
    pub(crate) fn encode(&self) -> String {
        self.0.encode()
    }

    /// The hash that is stored.
    #[must_use]
    pub(crate) fn hash(&self) -> TicketHash {
        TicketHash(self.0.sha256())
    }
}

impl FromStr for Ticket {
    type Err = ParseTicketError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Secret::decode(text).map(Self).ok_or(ParseTicketError)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Ticket(…)")
    }
}

/// The text does not have the format of a ticket.
#[derive(Debug, thiserror::Error)]
#[error("43 characters of base64url")]
pub(crate) struct ParseTicketError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_reads_back_and_is_not_printed() {
        let ticket = Ticket::generate();
        assert_eq!(
            ticket.encode().parse::<Ticket>().unwrap().hash(),
            ticket.hash()
        );
        assert!("x".parse::<Ticket>().is_err());
        assert!(!format!("{ticket:?}").contains(&ticket.encode()));
    }
}
