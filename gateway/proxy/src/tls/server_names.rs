//! Chooses the certificate by the name that the client asks for (SNI, RFC 6066 section 3).

use std::{collections::HashMap, sync::Arc};

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::certificate::LoadedCertificate;

/// The certificates of one listener, by host name.
#[derive(Debug)]
pub(super) struct ServerNames {
    exact: HashMap<String, Arc<CertifiedKey>>,
    /// By the part behind `*`, which begins with a dot.
    wildcards: HashMap<String, Arc<CertifiedKey>>,
    /// For clients that send no name, or an unknown one.
    default: Arc<CertifiedKey>,
}

impl ServerNames {
    /// The first of several certificates with the same name wins. The first certificate is also the default. `None` if
    /// there is none.
    pub(super) fn new(certificates: &[LoadedCertificate]) -> Option<Self> {
        let mut names = Self {
            exact: HashMap::new(),
            wildcards: HashMap::new(),
            default: Arc::clone(&certificates.first()?.key),
        };
        for certificate in certificates {
            for name in &certificate.names {
                let (map, name) = match name.strip_prefix('*') {
                    Some(suffix) => (&mut names.wildcards, suffix),
                    None => (&mut names.exact, &**name),
                };
                map.entry(name.to_owned())
                    .or_insert_with(|| Arc::clone(&certificate.key));
            }
        }
        Some(names)
    }

    /// The certificate for `name`: one with that name, one with a wildcard for its first label, or the default.
    fn find(&self, name: Option<&str>) -> &Arc<CertifiedKey> {
        let certificate = name.and_then(|name| {
            let name = name.to_ascii_lowercase();
            // From the first dot on, so that a wildcard stands for one label (RFC 9525 section 6.3).
            let suffix = name.find('.').map(|dot| &name[dot..]);
            self.exact
                .get(&name)
                .or_else(|| self.wildcards.get(suffix?))
        });
        // RFC 6066 section 3 would also allow an alert for an unknown name. But `Host` need not equal the name
        // (CONTRACT 2), so a wrong name is no reason to refuse the client.
        certificate.unwrap_or(&self.default)
    }
}

impl ResolvesServerCert for ServerNames {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(self.find(hello.server_name())))
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rustls::{crypto::ring, pki_types::PrivateKeyDer, sign::CertifiedKey};
    use signpost_kit::clock::Timestamp;

    use super::{super::certificate::Validity, *};

    fn certificate(names: &[&str]) -> LoadedCertificate {
        // Only its identity matters here.
        let key = ring::sign::any_supported_type(&PrivateKeyDer::Pkcs8(TEST_KEY.to_vec().into()));
        LoadedCertificate {
            file: PathBuf::new(),
            names: names.iter().map(|&name| name.to_owned()).collect(),
            validity: Validity {
                expires: Timestamp::from_millis(0),
                begins: Timestamp::from_millis(0),
            },
            chain_warning: None,
            key: Arc::new(CertifiedKey::new(Vec::new(), key.unwrap())),
        }
    }

    /// An Ed25519 key (RFC 8410 section 10.3), as PKCS #8.
    const TEST_KEY: [u8; 48] = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20, 0xd4, 0xee, 0x72, 0xdb, 0xf9, 0x13, 0x58, 0x4a, 0xd5, 0xb6, 0xd8, 0xf1, 0xf7, 0x69,
        0xf8, 0xad, 0x3a, 0xfe, 0x7c, 0x28, 0xcb, 0xf1, 0xd4, 0xfb, 0xe0, 0x97, 0xa8, 0x8f, 0x44,
        0x75, 0x58, 0x42,
    ];

    #[test]
    fn a_name_finds_its_certificate() {
        let all = [
            certificate(&["api.example.com"]),
            certificate(&["*.example.com", "example.org"]),
            certificate(&["example.org", "deep.a.example.com"]),
        ];
        let names = ServerNames::new(&all).unwrap();
        for (name, number) in [
            (Some("api.example.com"), 0),
            (Some("API.Example.Com"), 0),
            (Some("other.example.com"), 1),
            (Some("example.org"), 1),
            (Some("deep.a.example.com"), 2),
            // A wildcard stands for one label (RFC 9525 section 6.3).
            (Some("b.a.example.com"), 0),
            (Some("example.com"), 0),
            (Some("unknown"), 0),
            (None, 0),
        ] {
            assert!(Arc::ptr_eq(names.find(name), &all[number].key), "{name:?}");
        }
        assert!(ServerNames::new(&[]).is_none());
    }
}
