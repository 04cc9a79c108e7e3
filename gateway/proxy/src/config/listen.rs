//! The listeners: `listen = "ADDRESS"`, or one `[[listen]]` table for each. `conf/guides/edge.md`.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use http::HeaderValue;
use ipnet::IpNet;
use serde_json::json;
use signpost_kit::{
    config::{ADDRESS, Invalid, Read, Section},
    read_all,
    server::socket::overlap,
};

use super::readers::{check_unique, each, networks};
use crate::tls::{
    ALPN_HTTP_1_1, ALPN_HTTP_2, CertificateFiles, ClientAuth, LoadedTls, Tls, TlsError, TlsSettings,
};

/// Default of `listen`. `conf/guides/edge.md`.
const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

/// Limit of listeners: each has a socket for each thread.
const MAX_LISTENERS: usize = 64;

const AUTHORITIES: &str = "a PEM file with the authorities of client certificates";

const HSTS: &str = "directives of RFC 6797: max-age=SECONDS, optionally includeSubDomains and preload, for example \
                    \"max-age=31536000; includeSubDomains\"";

/// Limit of certificates of one listener. Each is read at every reload.
const MAX_CERTIFICATES: usize = 1000;

/// One listener.
#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// The address that clients call. It identifies the listener: a reload may change all else.
    pub address: SocketAddr,
    /// The key of the address, for messages: `listen`, or for example `listen[1].address`.
    pub key: String,
    /// The HTTP versions that it serves.
    pub protocols: Protocols,
    /// TLS; `None`: plain.
    pub tls: Option<Arc<Tls>>,
    /// The value of `Strict-Transport-Security`, with TLS only. RFC 6797.
    pub hsts: Option<Arc<HeaderValue>>,
    /// Balancers whose connections begin with a PROXY header.
    pub proxy_protocol: Vec<IpNet>,
    /// Whether each request is redirected to https.
    pub redirects_to_https: bool,
    /// The folder with the files of ACME challenges; `None`: the listener serves none.
    pub acme_webroot: Option<Arc<PathBuf>>,
}

/// HTTP versions of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1.1 and HTTP/1.0.
    Http1,
    /// HTTP/2 only: `h2`, or `h2c` without TLS.
    Http2,
    /// Both: by ALPN, or without TLS by the connection's first bytes.
    Both,
}

impl ListenerSettings {
    /// Whether clients on other machines can reach it without encryption.
    pub(super) fn is_open(&self) -> bool {
        self.tls.is_none() && !self.redirects_to_https && !self.address.ip().is_loopback()
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
        let allowed = format!("{ADDRESS}, or 1 to {MAX_LISTENERS} [[listen]] tables");
        let one_or_more =
            json!({ "type": ["string", "array"], "minItems": 1, "maxItems": MAX_LISTENERS });
        root.describe(KEY, &allowed, one_or_more);
        let value = root.find(KEY, &allowed);
        // A text is the address of the only listener.
        let Some(value) = value.filter(|value| value.items().is_some()) else {
            root.describe_item(KEY, Self::read);
            let plain = Self {
                address: root.address(KEY, DEFAULT_LISTEN)?,
                key: KEY.to_owned(),
                protocols: Protocols::Http1,
                tls: None,
                hsts: None,
                proxy_protocol: Vec::new(),
                redirects_to_https: false,
                acme_webroot: None,
            };
            return Ok(vec![plain]);
        };
        let items = value.items().unwrap_or_default();
        if items.is_empty() || items.len() > MAX_LISTENERS {
            return Err(value.problem(&format!("{} tables", items.len()), &allowed));
        }
        let listeners = each(&items, |item| item.section(Self::read))?;
        let addresses = listeners.iter().map(|listener| listener.address);
        check_unique(items.iter().zip(addresses), "each address once")?;
        // The system would bind both, as sockets of a gateway share their ports (`SO_REUSEPORT`), and prefer the more
        // specific address without a word.
        let clash = |(index, listener): (usize, &Self)| {
            let mut before = listeners[..index].iter();
            let other = before.find(|other| overlap(listener.address, other.address))?;
            let both = format!("\"{}\" beside \"{}\"", listener.address, other.address);
            Some(items[index].problem(
                &both,
                "one of the two, or another port: the other takes its connections",
            ))
        };
        if let Some(problem) = listeners.iter().enumerate().find_map(clash) {
            return Err(problem);
        }
        let serves_https = listeners.iter().any(|listener| listener.tls.is_some());
        if let Some(index) = listeners
            .iter()
            .position(|listener| listener.redirects_to_https)
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
        let tls = section.optional_section("tls", |section| {
            let hsts = section.optional_by("hsts", HSTS, hsts);
            let tls = read_tls(section, protocols, ClientAuth::Required);
            Ok((Arc::new(tls?), hsts?.map(Arc::new)))
        });
        let proxy_protocol = networks(section, "proxy_protocol");
        let redirects_to_https = section.flag("redirect_to_https", false);
        if has_tls && redirects_to_https == Ok(true) {
            let allowed = "false, or a listener without tls";
            return Err(section.problem("redirect_to_https", "true", allowed));
        }
        let acme_webroot = acme_webroot(section, has_tls);
        let (tls, hsts) = tls.map(Option::unzip)?;
        let (tls, hsts) = (Ok(tls), Ok(hsts.flatten()));
        let key = format!("{}.address", section.table_path());
        read_all!(Self {
            address,
            key: Ok(key),
            protocols,
            tls,
            hsts,
            proxy_protocol,
            redirects_to_https,
            acme_webroot,
        })
    }
}

/// A value of `Strict-Transport-Security`: each directive once, in any letter case. RFC 6797 section 6.1.
fn hsts(text: &str) -> Option<HeaderValue> {
    let mut names = Vec::new();
    for directive in text.split(';') {
        let directive = directive.trim_matches([' ', '\t']).to_ascii_lowercase();
        let name = match directive.split_once('=') {
            Some(("max-age", seconds)) => {
                let is_number = seconds.bytes().all(|byte| byte.is_ascii_digit());
                (is_number && (1..=10).contains(&seconds.len())).then_some("max-age")?
            }
            None if directive == "includesubdomains" => "includeSubDomains",
            None if directive == "preload" => "preload",
            _ => return None,
        };
        // RFC 6797 section 6.1: a browser ignores the whole field if a directive appears twice.
        (!names.contains(&name)).then(|| names.push(name))?;
    }
    names.contains(&"max-age").then(|| text.parse().ok())?
}

fn acme_webroot(section: &mut Section<'_>, has_tls: bool) -> Read<Option<Arc<PathBuf>>> {
    const KEY: &str = "acme_webroot";
    let Some(folder) = section.path(KEY)? else {
        return Ok(None);
    };
    let shown = format!("{:?}", folder.display().to_string());
    if has_tls {
        return Err(section.problem(KEY, &shown, "only without tls: challenges come by http"));
    }
    if !folder.is_dir() {
        return Err(section.problem(KEY, &shown, "the path of a folder"));
    }
    Ok(Some(Arc::new(folder)))
}

fn protocols(section: &mut Section<'_>, has_tls: bool) -> Read<Protocols> {
    const KEY: &str = "protocols";
    const HTTP_1: &str = "http/1.1";
    let (http_2, default, allowed): (_, &[&str], _) = if has_tls {
        let allowed = "\"h2\" and \"http/1.1\", at least one";
        ("h2", &["h2", HTTP_1], allowed)
    } else {
        let allowed = "\"http/1.1\" and, without tls, \"h2c\", at least one";
        ("h2c", &[HTTP_1], allowed)
    };
    // Whether one is HTTP/2.
    let named = section.list(KEY, default, allowed, |text| match text {
        HTTP_1 => Some(false),
        text => (text == http_2).then_some(true),
    })?;
    match (named.contains(&false), named.contains(&true)) {
        (true, true) => Ok(Protocols::Both),
        (true, false) => Ok(Protocols::Http1),
        (false, true) => Ok(Protocols::Http2),
        (false, false) => Err(section.problem(KEY, "[]", allowed)),
    }
}

/// Reads certificates and client certificates; `required` is what `client_auth = "required"` means.
pub(super) fn read_tls(
    section: &mut Section<'_>,
    protocols: Read<Protocols>,
    required: ClientAuth,
) -> Read<Tls> {
    let certificates = certificates(section);
    let authorities = section.path("client_ca");
    let auth = [("optional", ClientAuth::Optional), ("required", required)];
    let auth = section.choice("client_auth", &auth, required)?;
    let authorities = authorities?;
    if section.has("client_auth") && authorities.is_none() {
        return Err(section.missing("client_ca", AUTHORITIES));
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
    // Also files that cannot be used: once one of them changes, the configuration is read again.
    files.into_iter().for_each(|file| section.record_file(file));
    let loaded = loaded.map_err(|error| report(section, &settings, &error))?;
    Ok(Tls::new(settings, loaded))
}

/// Reports files that cannot be used, under the key that names them.
fn report(section: &mut Section<'_>, settings: &TlsSettings, error: &TlsError) -> Invalid {
    let (key, allowed) = match error {
        TlsError::Clients(_) => ("client_ca".to_owned(), AUTHORITIES),
        TlsError::Certificate(number, cause) => {
            let is_about_key = cause.is_about_key(&settings.certificates[*number]);
            let (key, allowed) = if is_about_key {
                ("key", "a PEM file with the certificate's private key")
            } else {
                (
                    "certificate",
                    "a PEM file with the certificate, then the intermediate ones",
                )
            };
            (format!("certificates[{number}].{key}"), allowed)
        }
    };
    section.problem(&key, &error.to_string(), allowed)
}

fn certificates(section: &mut Section<'_>) -> Read<Vec<CertificateFiles>> {
    const KEY: &str = "certificates";
    const ALLOWED: &str = "a list of 1 to 1000, for example [{ certificate = \"tls/api.pem\", key = \"tls/api.key\" }]";
    let list = json!({ "type": "array", "minItems": 1, "maxItems": MAX_CERTIFICATES });
    section.describe(KEY, ALLOWED, list);
    let Some(value) = section.find(KEY, ALLOWED) else {
        section.describe_item(KEY, certificate_files);
        return Err(section.missing(KEY, ALLOWED));
    };
    let items = value.items();
    let items = items.filter(|items| (1..=MAX_CERTIFICATES).contains(&items.len()));
    let items = items.ok_or_else(|| value.invalid_unshown(ALLOWED))?;
    section.set(KEY, format!("{} certificates", items.len()));
    each(&items, |item| item.section(certificate_files))
}

fn certificate_files(section: &mut Section<'_>) -> Read<CertificateFiles> {
    let mut path = |key: &str| {
        let path = section.path(key)?;
        path.ok_or_else(|| section.missing(key, "the path of a PEM file"))
    };
    let certificate = path("certificate");
    let key = path("key")?;
    section.note_secret("key", Some(&key));
    let certificate = certificate?;
    Ok(CertificateFiles { certificate, key })
}

#[cfg(test)]
mod tests {
    use super::hsts;

    #[test]
    fn hsts_has_each_directive_once() {
        for valid in [
            "max-age=31536000",
            "max-age=0",
            "Max-Age=1; INCLUDESUBDOMAINS; preload",
            "includeSubDomains ;max-age=1",
        ] {
            assert_eq!(hsts(valid).unwrap(), valid);
        }
        for invalid in [
            "",
            "31536000",
            "includeSubDomains",
            "max-age",
            "max-age=",
            "max-age=-1",
            "max-age=12345678901",
            "max-age=1;",
            "max-age=1; max-age=2",
            "max-age=1; includeSubDomains; includesubdomains",
            "max-age=1; include",
            "max-age=1\r\nX: y",
        ] {
            assert!(hsts(invalid).is_none(), "{invalid}");
        }
    }
}
