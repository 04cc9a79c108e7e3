//! The listeners: `listen = "ADDRESS"`, or one `[[listen]]` table for each. CONTRACT 10.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use ipnet::IpNet;
use signpost_kit::{
    clock::Timestamp,
    config::{ADDRESS, Invalid, Read, Section, Value},
};

use super::network;
use crate::tls::{
    ALPN_HTTP_1_1, ALPN_HTTP_2, CertificateFiles, ClientAuth, LoadedTls, Tls, TlsError, TlsSettings,
};

/// Default of `listen`. CONTRACT 10.
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// Limit of listeners: each has a socket for each thread.
const MAX_LISTENERS: usize = 64;

/// Limit of certificates of one listener. Each is read at every reload.
const MAX_CERTIFICATES: usize = 1000;

/// One listener.
#[derive(Clone, Debug)]
pub(crate) struct ListenerSettings {
    /// The address that clients call.
    pub address: SocketAddr,
    /// The HTTP versions that it serves.
    pub protocols: Protocols,
    /// TLS; `None`: plain.
    pub tls: Option<Arc<Tls>>,
    /// Balancers whose connections begin with a PROXY header.
    pub proxy_protocol: Vec<IpNet>,
    /// Whether each request is redirected to https.
    pub redirects_to_https: bool,
}

/// HTTP versions of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocols {
    /// HTTP/1.1 and HTTP/1.0.
    Http1,
    /// HTTP/2 only: `h2`, or `h2c` without TLS.
    Http2,
    /// Both: by ALPN, or without TLS by the connection's first bytes.
    Both,
}

impl ListenerSettings {
    /// The listener of the short form.
    fn plain(address: SocketAddr) -> Self {
        Self {
            address,
            protocols: Protocols::Http1,
            tls: None,
            proxy_protocol: Vec::new(),
            redirects_to_https: false,
        }
    }

    /// Whether clients on other machines can reach it without encryption.
    pub(super) fn is_open(&self) -> bool {
        self.tls.is_none() && !self.redirects_to_https && !self.address.ip().is_loopback()
    }

    /// Warnings about its certificates.
    pub(super) fn expiry_warnings(&self, now: Timestamp) -> Vec<String> {
        let loaded = self.tls.as_ref().map(|tls| tls.loaded());
        let certificates = loaded.iter().flat_map(|loaded| &loaded.certificates);
        certificates
            .filter_map(|one| one.expiry_warning(now))
            .collect()
    }

    /// Whether a connection is served without reading anything first.
    pub(crate) fn is_plain_http_1(&self) -> bool {
        self.tls.is_none() && self.protocols == Protocols::Http1 && self.proxy_protocol.is_empty()
    }

    /// The same settings, and resumes the TLS sessions of `before`.
    pub(crate) fn continuing(&self, before: &Self) -> Self {
        let tls = self.tls.as_ref().map(|tls| match &before.tls {
            Some(before) => Arc::new(tls.continuing(before)),
            None => Arc::clone(tls),
        });
        Self {
            tls,
            ..self.clone()
        }
    }

    /// Reads all listeners: at least one.
    pub(super) fn read_all(root: &mut Section<'_>) -> Read<Vec<Self>> {
        const KEY: &str = "listen";
        let Some(value) = root.find(KEY).filter(|value| value.items().is_some()) else {
            return root
                .address(KEY, DEFAULT_LISTEN)
                .map(|address| vec![Self::plain(address)]);
        };
        let items = value.items().unwrap_or_default();
        if items.is_empty() || items.len() > MAX_LISTENERS {
            let allowed = format!("{ADDRESS}, or 1 to {MAX_LISTENERS} [[listen]] tables");
            return Err(value.problem(&format!("{} tables", items.len()), &allowed));
        }
        let read: Vec<_> = items.iter().map(|item| item.section(Self::read)).collect();
        let listeners: Vec<_> = read.into_iter().collect::<Read<_>>()?;
        for (index, listener) in listeners.iter().enumerate() {
            if listeners[..index]
                .iter()
                .any(|one| one.address == listener.address)
            {
                let found = format!("\"{}\" twice", listener.address);
                return Err(items[index].problem(&found, "each address once"));
            }
        }
        let serves_https = listeners.iter().any(|one| one.tls.is_some());
        if let Some(index) = listeners.iter().position(|one| one.redirects_to_https)
            && !serves_https
            && !root.has("public_url")
        {
            let allowed = "a listener with tls, or public_url, where requests are redirected to";
            return Err(items[index].problem("redirect_to_https without them", allowed));
        }
        Ok(listeners)
    }

    fn read(section: &mut Section<'_>) -> Read<Self> {
        let address = section.required("address", ADDRESS);
        let has_tls = section.has("tls");
        let protocols = protocols(section, has_tls);
        let tls = section.optional_section("tls", |tls| read_tls(tls, protocols));
        let balancers = "addresses or networks, for example \"10.0.0.0/8\"";
        let proxy_protocol = section.list("proxy_protocol", &[], balancers, network);
        let redirects = section.flag("redirect_to_https", false);
        if has_tls && redirects == Ok(true) {
            let allowed = "false, or a listener without tls";
            return Err(section.problem("redirect_to_https", "true", allowed));
        }
        Ok(Self {
            address: address?,
            protocols: protocols?,
            tls: tls?.map(Arc::new),
            proxy_protocol: proxy_protocol?,
            redirects_to_https: redirects?,
        })
    }
}

fn protocols(section: &mut Section<'_>, has_tls: bool) -> Read<Protocols> {
    const KEY: &str = "protocols";
    let (http_2, default, allowed): (_, &[&str], _) = if has_tls {
        (
            "h2",
            &["h2", "http/1.1"],
            "\"h2\" and \"http/1.1\", at least one",
        )
    } else {
        (
            "h2c",
            &["http/1.1"],
            "\"http/1.1\" and, without tls, \"h2c\", at least one",
        )
    };
    let known = |text: &str| ["http/1.1", http_2].iter().position(|one| *one == text);
    let named = section.list(KEY, default, allowed, known)?;
    match (named.contains(&0), named.contains(&1)) {
        (true, true) => Ok(Protocols::Both),
        (true, false) => Ok(Protocols::Http1),
        (false, true) => Ok(Protocols::Http2),
        (false, false) => Err(section.problem(KEY, "[]", allowed)),
    }
}

fn read_tls(section: &mut Section<'_>, protocols: Read<Protocols>) -> Read<Tls> {
    let certificates = certificates(section);
    let authorities = section.path("client_ca");
    let auth = [
        ("optional", ClientAuth::Optional),
        ("required", ClientAuth::Required),
    ];
    let has_auth = section.has("client_auth");
    let auth = section.choice("client_auth", &auth, ClientAuth::Required)?;
    let authorities = authorities?;
    if has_auth && authorities.is_none() {
        return Err(section.missing(
            "client_ca",
            "a PEM file with the authorities of client certificates",
        ));
    }
    let settings = TlsSettings {
        certificates: certificates?,
        clients: authorities.map(|path| (path, auth)),
        protocols: match protocols? {
            Protocols::Http1 => vec![ALPN_HTTP_1_1],
            Protocols::Http2 => vec![ALPN_HTTP_2],
            Protocols::Both => vec![ALPN_HTTP_2, ALPN_HTTP_1_1],
        },
    };
    let mut files = Vec::new();
    let loaded = LoadedTls::load(&settings, &mut files);
    for file in files {
        section.record_file(file);
    }
    let loaded = loaded.map_err(|error| report(section, &settings, &error))?;
    Ok(Tls::new(settings, loaded))
}

/// Reports files that cannot be used, under the key that names them.
fn report(section: &mut Section<'_>, settings: &TlsSettings, error: &TlsError) -> Invalid {
    let (key, allowed) = match error {
        TlsError::Clients(_) => (
            "client_ca".to_owned(),
            "a PEM file with the authorities of client certificates",
        ),
        TlsError::Certificate(number, cause)
            if cause.is_about_key(&settings.certificates[*number]) =>
        {
            (
                format!("certificates[{number}].key"),
                "a PEM file with the certificate's private key",
            )
        }
        TlsError::Certificate(number, _) => (
            format!("certificates[{number}].certificate"),
            "a PEM file with the certificate, then the intermediate ones",
        ),
    };
    section.problem(&key, &error.to_string(), allowed)
}

fn certificates(section: &mut Section<'_>) -> Read<Vec<CertificateFiles>> {
    const KEY: &str = "certificates";
    const ALLOWED: &str = "a list of 1 to 1000, for example [{ certificate = \"tls/api.pem\", key = \"tls/api.key\" }]";
    let Some(value) = section.find(KEY) else {
        return Err(section.missing(KEY, ALLOWED));
    };
    let items = value.items();
    let items = items.filter(|items| (1..=MAX_CERTIFICATES).contains(&items.len()));
    let items = items.ok_or_else(|| value.invalid_unshown(ALLOWED))?;
    let read: Vec<_> = items.iter().map(certificate_files).collect();
    read.into_iter().collect()
}

fn certificate_files(item: &Value<'_>) -> Read<CertificateFiles> {
    item.section(|section| {
        let mut path = |key: &str| -> Read<PathBuf> {
            let path = section.path(key)?;
            path.ok_or_else(|| section.missing(key, "the path of a PEM file"))
        };
        let certificate = path("certificate");
        let key = path("key")?;
        section.note_secret("key", Some(&key));
        Ok(CertificateFiles {
            certificate: certificate?,
            key,
        })
    })
}
