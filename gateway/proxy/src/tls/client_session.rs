//! The TLS session of a client that may have a certificate: it ends with that certificate.
//!
//! rustls restores the certificate of a resumed session from the ticket, and verifies nothing. So each ticket begins with
//! the time at which its session ends, under the ticket's seal. After that time the ticket is not accepted: the handshake
//! is a full one, in which the client shows a valid certificate or is rejected.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::{
        ProducesTickets,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
};
use signpost_kit::clock::{Clock, SystemClock};
use x509_cert::{Certificate, der::Decode};
use zeroize::Zeroizing;

/// The end of a session without a certificate.
const NEVER: u64 = u64::MAX;

/// The session of one connection: verifies the client's certificate, and seals and opens the session's tickets.
#[derive(Debug)]
pub(super) struct ClientSession {
    verifier: Arc<dyn ClientCertVerifier>,
    tickets: Arc<dyn ProducesTickets>,
    /// The last second of the session, since the epoch.
    // Atomic only since rustls gives `&self`: one task at a time drives a connection, so `Relaxed` is enough.
    end: AtomicU64,
}

impl ClientSession {
    pub(super) fn new(
        verifier: Arc<dyn ClientCertVerifier>,
        tickets: Arc<dyn ProducesTickets>,
    ) -> Self {
        Self {
            verifier,
            tickets,
            end: AtomicU64::new(NEVER),
        }
    }
}

impl ProducesTickets for ClientSession {
    fn enabled(&self) -> bool {
        self.tickets.enabled()
    }

    fn lifetime(&self) -> u32 {
        // A client drops its ticket in time, instead of showing one that is not accepted any more.
        let left = self.end.load(Ordering::Relaxed).saturating_sub(now());
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        self.tickets.lifetime().min(left)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let end = self.end.load(Ordering::Relaxed).to_be_bytes();
        self.tickets
            // The plain ticket has the secrets of the session, so the copy is wiped.
            .encrypt(&Zeroizing::new([&end, plain].concat()))
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let opened = Zeroizing::new(self.tickets.decrypt(ticket)?);
        let (end, plain) = opened.split_first_chunk()?;
        let end = u64::from_be_bytes(*end);
        if end < now() {
            return None;
        }
        // The tickets of the resumed session end when this one does.
        self.end.store(end, Ordering::Relaxed);
        Some(plain.to_vec())
    }
}

impl ClientCertVerifier for ClientSession {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self
            .verifier
            .verify_client_cert(end_entity, intermediates, now)?;
        // The whole chain: a full handshake fails as soon as an intermediate certificate has expired, too.
        let chain = [end_entity].into_iter().chain(intermediates);
        let end = chain.map(last_second).min().unwrap_or_default();
        self.end.store(end, Ordering::Relaxed);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// The last second in which a certificate is valid (RFC 5280 section 4.1.2.5); 0 if it cannot be read.
fn last_second(certificate: &CertificateDer<'_>) -> u64 {
    let certificate = Certificate::from_der(certificate).ok();
    // Second 0 is long over: no ticket of an unreadable certificate is accepted.
    certificate.map_or(0, |certificate| {
        let end = certificate.tbs_certificate().validity().not_after;
        end.to_unix_duration().as_secs()
    })
}

fn now() -> u64 {
    SystemClock.now().since_epoch().as_secs()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use rustls::crypto::ring;

    use super::*;

    /// Accepts every certificate.
    #[derive(Debug)]
    struct Lenient;

    impl ClientCertVerifier for Lenient {
        fn root_hint_subjects(&self) -> &[DistinguishedName] {
            &[]
        }

        fn verify_client_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: UnixTime,
        ) -> Result<ClientCertVerified, Error> {
            Ok(ClientCertVerified::assertion())
        }

        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn verify_tls13_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Ok(HandshakeSignatureValid::assertion())
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            Vec::new()
        }
    }

    fn certificate(last_year: i32) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
        params.not_after = date_time_ymd(last_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    #[test]
    fn a_ticket_ends_with_the_first_certificate_to_expire() {
        let tickets = ring::Ticketer::new().unwrap();
        let session = || ClientSession::new(Arc::new(Lenient), Arc::clone(&tickets));
        let (valid, expired) = (certificate(2200), certificate(2020));
        let malformed = CertificateDer::from(vec![0]);
        for (leaf, intermediate, is_resumed) in [
            (None, None, true),
            (Some(&valid), None, true),
            (Some(&valid), Some(&valid), true),
            (Some(&expired), None, false),
            (Some(&valid), Some(&expired), false),
            (Some(&valid), Some(&malformed), false),
        ] {
            let full = session();
            if let Some(leaf) = leaf {
                let intermediates: Vec<_> = intermediate.into_iter().cloned().collect();
                full.verify_client_cert(leaf, &intermediates, UnixTime::now())
                    .unwrap();
            }
            let ticket = full.encrypt(b"session").unwrap();
            let resumed = session();
            let opened = resumed.decrypt(&ticket);
            assert_eq!(opened.as_deref(), is_resumed.then_some(&b"session"[..]));
            assert_eq!(full.lifetime() > 0, is_resumed);
            if is_resumed {
                assert_eq!(
                    resumed.end.load(Ordering::Relaxed),
                    full.end.load(Ordering::Relaxed)
                );
            }
        }
        // A ticket without an end, and one that was changed.
        let without = tickets.encrypt(b"short").unwrap();
        assert_eq!(session().decrypt(&without), None);
        let mut changed = session().encrypt(b"session").unwrap();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(session().decrypt(&changed), None);
    }
}
