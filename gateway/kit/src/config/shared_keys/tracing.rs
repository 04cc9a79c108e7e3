//! `[tracing]`: which requests are sampled, and where their spans are exported to. `conf/gateway.toml`.

use std::time::Duration;

use http::HeaderValue;
use rustls::RootCertStore;
use signpost_store::pem;
use url::Url;

use super::Outgoing;
use crate::{
    config::{Read, Section},
    secret::Secret,
};

/// Default of `sampled_per_million`: one request in a hundred.
const SAMPLED_PER_MILLION: u32 = 10_000;
/// Timeout of an export.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A million: all requests.
const MILLION: u32 = 1_000_000;

/// Settings of traces.
#[derive(Clone, Debug)]
pub struct TracingSettings {
    /// Where spans are exported to; `None`: no request is sampled.
    pub collector: Option<Collector>,
    /// How many of a million requests are sampled, if no parent decides.
    pub sampled_per_million: u32,
}

/// A collector that speaks OTLP over HTTP.
#[derive(Clone, Debug)]
pub struct Collector {
    /// An http or https URL without credentials and query, with the path of its traces.
    pub endpoint: Url,
    /// Timeout of an export.
    pub timeout: Duration,
    /// The value of `Authorization`: a valid header value.
    pub authorization: Option<Secret>,
    /// The authorities that its certificate is verified with, PEM; `None`: the system's.
    pub ca: Option<Vec<u8>>,
    /// Its proxy, if it has one.
    pub outgoing: Outgoing,
}

/// Equal ones can share an exporter.
impl PartialEq for Collector {
    fn eq(&self, other: &Self) -> bool {
        let authorization = |collector: &Self| {
            collector
                .authorization
                .as_ref()
                .map(|it| it.expose().to_owned())
        };
        self.endpoint == other.endpoint
            && self.ca == other.ca
            && self.outgoing == other.outgoing
            && authorization(self) == authorization(other)
    }
}

impl TracingSettings {
    /// Reads `[tracing]`; `outgoing` leads to the collector.
    ///
    /// # Errors
    ///
    /// A value is invalid, or a source has none.
    pub fn read(section: &mut Section<'_>, outgoing: Read<Outgoing>) -> Read<Self> {
        let endpoint = section.optional_by(
            "endpoint",
            "an http or https URL without user, password and query, for example \"http://127.0.0.1:4318/v1/traces\"",
            endpoint,
        );
        let per_million = section.number("sampled_per_million", 0..=MILLION, SAMPLED_PER_MILLION);
        let authorization = authorization(section);
        let ca = authorities(section);
        let (authorization, ca, outgoing) = (authorization?, ca?, outgoing?);
        let collector = endpoint?.map(|endpoint| Collector {
            endpoint,
            timeout: TIMEOUT,
            authorization,
            ca,
            outgoing,
        });
        Ok(Self {
            collector,
            sampled_per_million: per_million?,
        })
    }

    /// Warnings about risky settings.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let Some(collector) = &self.collector else {
            return Vec::new();
        };
        let is_local = match collector.endpoint.host() {
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            Some(url::Host::Domain(name)) => name == "localhost",
            None => false,
        };
        let is_plain = collector.endpoint.scheme() == "http";
        let is_exposed = collector.authorization.is_some() && is_plain && !is_local;
        let warning = "tracing.authorization crosses the network in clear text: use https in tracing.endpoint";
        is_exposed.then(|| warning.to_owned()).into_iter().collect()
    }
}

fn endpoint(text: &str) -> Option<Url> {
    let url: Url = text.parse().ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    let has_more = url.query().is_some() || url.fragment().is_some();
    (is_http && !has_credentials && !has_more).then_some(url)
}

/// Reads the secret that authenticates to the collector.
fn authorization(section: &mut Section<'_>) -> Read<Option<Secret>> {
    const KEY: &str = "authorization";
    let secret = section.secret(KEY)?;
    if let Some(secret) = &secret
        && HeaderValue::from_str(secret.expose()).is_err()
    {
        let value = "a string with characters that are not allowed in a header";
        let allowed = "a value of Authorization, for example \"Bearer …\": \"env:NAME\", \"file:PATH\", or the value itself";
        return Err(section.problem(KEY, value, allowed));
    }
    Ok(secret)
}

/// Reads the authorities of the collector's certificate.
fn authorities(section: &mut Section<'_>) -> Read<Option<Vec<u8>>> {
    const KEY: &str = "ca";
    let Some(file) = section.file(KEY)? else {
        return Ok(None);
    };
    check_authorities(&file.content).map_err(|problem| {
        let value = format!("{}, {problem}", file.path.display());
        section.problem(KEY, &value, "a PEM file with at least one certificate")
    })?;
    Ok(Some(file.content.to_vec()))
}

/// Whether certificates can be verified with a PEM file's ones; otherwise, what is wrong with it.
fn check_authorities(pem: &[u8]) -> Result<(), String> {
    let mut authorities = RootCertStore::empty();
    for certificate in pem::certificates(pem).map_err(|error| error.to_string())? {
        let added = authorities.add(certificate);
        added.map_err(|error| format!("with an invalid certificate ({error})"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Loaded, parse};

    fn read(text: &str) -> Result<Loaded<TracingSettings>, String> {
        let read = parse(Path::new("x.toml"), text, |root| {
            root.section("tracing", |section| {
                TracingSettings::read(section, Ok(Outgoing::default()))
            })
        });
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn without_keys_tracing_is_off() {
        let settings = read("").unwrap().config;
        assert!(settings.collector.is_none());
        assert_eq!(settings.sampled_per_million, 10_000);
    }

    #[test]
    fn an_endpoint_has_no_credentials_and_no_query() {
        let good = read("[tracing]\nendpoint = 'https://c.example/v1/traces'").unwrap();
        let collector = good.config.collector.unwrap();
        assert_eq!(collector.endpoint.as_str(), "https://c.example/v1/traces");
        for bad in [
            "http://user:hush@c.example/v1/traces",
            "http://hush@c.example/v1/traces",
            "http://c.example/v1/traces?key=hush",
            "grpc://c.example:4317",
            "c.example:4318",
        ] {
            let error = read(&format!("[tracing]\nendpoint = '{bad}'")).unwrap_err();
            assert!(error.contains("tracing.endpoint"), "{error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn an_authority_must_be_a_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let pem = |text: &str| {
            format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        };
        for (content, problem) in [
            (String::new(), "no certificate in PEM"),
            (pem("!"), "not valid PEM"),
            (pem("Z2FyYmFnZQ=="), "an invalid certificate"),
        ] {
            std::fs::write(&path, content).unwrap();
            let error = read(&format!("[tracing]\nca = '{}'", path.display())).unwrap_err();
            for part in [
                "tracing.ca",
                &path.display().to_string(),
                problem,
                "allowed: a PEM file",
            ] {
                assert!(error.contains(part), "{error}");
            }
        }
    }

    #[test]
    fn a_secret_is_not_shown_and_only_sent_to_others_by_https() {
        let file = |endpoint: &str| {
            format!("[tracing]\nendpoint = '{endpoint}'\nauthorization = 'Bearer hush'")
        };
        let loaded = read(&file("http://c.example/v1/traces")).unwrap();
        assert_eq!(loaded.config.warnings().len(), 1);
        assert!(!format!("{:?}", loaded.config).contains("hush"));
        for fine in [
            "https://c.example/v1/traces",
            "http://127.0.0.1:4318/v1/traces",
        ] {
            assert!(read(&file(fine)).unwrap().config.warnings().is_empty());
        }
        let error = read("[tracing]\nauthorization = \"hu\\nsh\"").unwrap_err();
        assert!(
            error.contains("tracing.authorization") && !error.contains("hu"),
            "{error}"
        );
    }
}
