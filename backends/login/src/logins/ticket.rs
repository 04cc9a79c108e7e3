//! The ticket that a redirect login brings back to its application: 256 random bits, good once.

use std::{fmt, str::FromStr};

use crate::secret::{Secret, hash_type};

hash_type! {
    /// SHA-256 of a ticket: what the store knows of it.
    TicketHash
}

/// A right to one login result, for 60 s, once. CONTRACT 8.
pub struct Ticket(Secret);

impl Ticket {
    /// Makes a new one.
    #[must_use]
    pub fn generate() -> Self {
        Self(Secret::generate())
    }

    /// The ticket as it stands in the address that the browser is sent to.
    #[must_use]
    pub fn encode(&self) -> String {
        self.0.encode()
    }

    /// What the store knows of it.
    #[must_use]
    pub fn hash(&self) -> TicketHash {
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

/// The text is no ticket that was ever issued.
#[derive(Debug, thiserror::Error)]
#[error("43 characters of base64url")]
pub struct ParseTicketError;

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
