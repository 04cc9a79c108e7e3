//! Responses of the management API that are kept for repeated requests: they can have an application's key.

use ring::hmac;
use zeroize::Zeroizing;

use super::{MasterKeyId, SealError, Sealer};

/// Prefix of the authenticated data.
const FORMAT: &[u8] = b"signpost:idempotent-response:1:";

impl Sealer {
    /// Hash the requests whose responses are kept; the first key is for new ones.
    pub fn request_keys(&self) -> Vec<hmac::Key> {
        self.all().map(|keys| keys.requests.clone()).collect()
    }

    /// Seals a response for the row with this key.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn seal_response(&self, response: &[u8], row: &[u8]) -> Result<Vec<u8>, SealError> {
        self.seal_bytes(response, authenticated(self.current(), row))
    }

    /// Opens what [`Self::seal_response`] sealed for the same row.
    ///
    /// # Errors
    ///
    /// Another master key sealed it, it is for another row, or it was changed.
    pub fn open_response(
        &self,
        sealed: &[u8],
        row: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, SealError> {
        self.open_bytes(sealed, |id| authenticated(id, row))
    }
}

fn authenticated(id: MasterKeyId, row: &[u8]) -> Vec<u8> {
    [FORMAT, &id.0, row].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_opens_for_its_own_row_and_master_key_only() {
        let sealer = Sealer::from_hex(&"ab".repeat(32)).unwrap();
        let sealed = sealer.seal_response(b"a response", &[1; 32]).unwrap();
        let opened = sealer.open_response(&sealed, &[1; 32]).unwrap();
        assert_eq!(**opened, *b"a response");
        let of_other = sealer.open_response(&sealed, &[2; 32]);
        assert_eq!(of_other.unwrap_err(), SealError::NotOpened);
        let other = Sealer::from_hex(&"cd".repeat(32)).unwrap();
        other.open_response(&sealed, &[1; 32]).unwrap_err();
    }
}
