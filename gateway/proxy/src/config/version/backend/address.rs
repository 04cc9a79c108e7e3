//! The addresses of a version's backend, and their weights.

use std::{
    fmt::{self, Display},
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

use serde_json::json;
use signpost_kit::config::{Read, Section, Value};
use signpost_protocol::parse_digits;

use crate::{
    config::readers::check_unique,
    tls::backend::{Endpoint, TlsPeer},
};

const ALLOWED: &str = "an IP address and port, or a host name and port, for example \"127.0.0.1:7001\", \
                       \"login:7001\" or, with TLS, \"https://login:7443\"";
const ALLOWED_ITEM: &str = "an IP address and port, or a host name and port, optionally with a weight, for example \
                            \"127.0.0.1:7001\" or { address = \"login:7001\", weight = 2 }";
const ALLOWED_OTHER: &str = "the address of a backend";
const ALLOWED_LIST: &str = "a list of addresses, for example [\"10.0.0.1:7001\", { address = \"login:7001\", weight = 2 }]";
const MAX_WEIGHT: u16 = 100;

/// One address of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendAddress {
    /// Host and port.
    pub host_port: HostPort,
    /// Its share of the requests relative to the others'.
    pub weight: u16,
    /// TLS; `None` for plain HTTP.
    pub tls: Option<Arc<TlsPeer>>,
}

impl BackendAddress {
    /// Its endpoint; `None` if it is a name, which can have several.
    pub fn endpoint(&self) -> Option<Endpoint> {
        match self.host_port {
            HostPort::Address(address) => Some(Endpoint {
                address,
                tls: self.tls.clone(),
            }),
            HostPort::Name(..) => None,
        }
    }
}

/// The addresses of a backend before TLS is added to them, and whether they are https.
pub(super) struct WrittenAddresses {
    pub(super) all: Vec<BackendAddress>,
    pub(super) are_https: bool,
}

/// An address without TLS, and whether it begins with `https://`.
type WrittenAddress = (BackendAddress, bool);

/// `https://` before an address: TLS. `http://` is the same as no scheme.
const SCHEMES: [(&str, bool); 2] = [("https://", true), ("http://", false)];

/// An IP address or a host name, with a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPort {
    /// An IP address and a port.
    Address(SocketAddr),
    /// A host name, for all addresses that it resolves to, and a port.
    Name(String, u16),
}

/// Why a text is not a host and port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseHostPortError {
    /// Neither an IP address nor a host name, or an invalid port.
    #[error("not an IP address or host name with a port")]
    Malformed,
    /// An address or a name without a port.
    #[error("which has no port")]
    WithoutPort,
    /// The unspecified address, or one of several hosts: multicast or broadcast.
    #[error("which is not the address of one host")]
    NotOneHost,
}

impl FromStr for HostPort {
    type Err = ParseHostPortError;

    fn from_str(text: &str) -> Result<Self, ParseHostPortError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err(ParseHostPortError::Malformed),
                _ if is_not_one_host(address.ip()) => Err(ParseHostPortError::NotOneHost),
                _ => Ok(Self::Address(address)),
            };
        }
        // For the report: an IPv6 address without a port has colons, too.
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_ok() || is_host_name(text) {
            return Err(ParseHostPortError::WithoutPort);
        }
        let (host, port) = text.rsplit_once(':').ok_or(ParseHostPortError::Malformed)?;
        let port = parse_digits(port).filter(|port| *port > 0);
        match port {
            Some(port) if is_host_name(host) => Ok(Self::Name(host.to_ascii_lowercase(), port)),
            _ => Err(ParseHostPortError::Malformed),
        }
    }
}

/// Whether the IP address is unspecified, multicast or broadcast.
fn is_not_one_host(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    address.is_unspecified() || address.is_multicast() || is_broadcast
}

impl HostPort {
    /// Whether it is in `own`, addresses of this machine. A name is not resolved.
    pub(crate) fn is_one_of(&self, own: &[SocketAddr]) -> bool {
        let Self::Address(address) = self else {
            return false;
        };
        let ip = address.ip().to_canonical();
        own.iter().any(|own| {
            let own_ip = own.ip().to_canonical();
            // A gateway on the unspecified address also has the machine's other addresses, which the file does not
            // show.
            let is_here = own_ip == ip || own_ip.is_unspecified() && ip.is_loopback();
            own.port() == address.port() && is_here
        })
    }
}

impl Display for HostPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Name(host, port) => write!(formatter, "{host}:{port}"),
        }
    }
}

/// Whether `host` consists of labels of letters, digits, hyphens and underscores (RFC 1123 section 2.1; container names
/// have underscores). The last label is not a number: that would be a malformed IP address.
fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    host.len() <= 253
        && host.split('.').all(is_label)
        && !host
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Reads the address of a converter; `None` if there is none.
pub(super) fn converter(
    section: &mut Section<'_>,
    own: &[SocketAddr],
) -> Read<Option<BackendAddress>> {
    const CONVERTER: &str = "an IP address and port, or a host name and port, without TLS";
    let Some(value) = section.find("converter", CONVERTER) else {
        return Ok(None);
    };
    let read = address(&value, CONVERTER, own)?;
    if read.1 {
        return Err(value.invalid(CONVERTER));
    }
    value.set(shown(&read));
    Ok(Some(read.0))
}

/// Reads `backend` or `backends`. No address may be in `own`, where the gateway itself listens.
pub(super) fn addresses(section: &mut Section<'_>, own: &[SocketAddr]) -> Read<WrittenAddresses> {
    let single = section.find("backend", ALLOWED);
    let list = json!({ "type": "array", "minItems": 1, "items": { "type": "string" } });
    section.describe("backends", ALLOWED_LIST, list);
    let several = section.find("backends", ALLOWED_LIST);
    section.describe_item("backends", |item| table_address(item, own));
    match (single, several) {
        (Some(value), None) => {
            let address = address(&value, ALLOWED, own)?;
            value.set(shown(&address));
            Ok(WrittenAddresses {
                are_https: address.1,
                all: vec![address.0],
            })
        }
        (None, Some(value)) => several_addresses(&value, own),
        (None, None) => Err(section.missing("backend", ALLOWED)),
        (Some(_), Some(_)) => {
            let allowed = "backend, for one address, or backends, for several";
            Err(section.problem("backends", "both backend and backends", allowed))
        }
    }
}

/// Parses `value`, and refuses addresses in `own`. The weight is 1.
fn address(value: &Value<'_>, allowed: &str, own: &[SocketAddr]) -> Read<WrittenAddress> {
    let Some(text) = value.as_str() else {
        return Err(value.invalid_unshown(allowed));
    };
    let without = |(scheme, is_https)| Some((text.strip_prefix(scheme)?, is_https));
    let scheme = SCHEMES.into_iter().find_map(without);
    let (text, is_https) = scheme.unwrap_or((text, false));
    let (why, allowed) = match text.parse::<HostPort>() {
        Ok(host_port) if !host_port.is_one_of(own) => {
            let address = BackendAddress {
                host_port,
                weight: 1,
                tls: None,
            };
            return Ok((address, is_https));
        }
        Ok(_) => {
            let why = ", where the gateway itself listens".to_owned();
            (why, ALLOWED_OTHER)
        }
        Err(ParseHostPortError::Malformed) => (String::new(), allowed),
        Err(why) => (format!(", {why}"), allowed),
    };
    Err(value.problem(&format!("{}{why}", value.shown()), allowed))
}

fn several_addresses(value: &Value<'_>, own: &[SocketAddr]) -> Read<WrittenAddresses> {
    let items = value.items().filter(|items| !items.is_empty());
    let items = items.ok_or_else(|| value.invalid_unshown(ALLOWED_LIST))?;
    let results: Vec<_> = items.iter().map(|item| item_address(item, own)).collect();
    // All problems at once: these of the addresses that are valid.
    let valid = || {
        items
            .iter()
            .zip(&results)
            .filter_map(|(item, result)| Some((item, result.as_ref().ok()?)))
    };
    let known = valid().map(|(item, (address, _))| (item, &address.host_port));
    let is_unique = check_unique(known, "each address once; set its weight instead");
    let are_https = valid().any(|(_, (_, is_https))| *is_https);
    let is_alike = valid().all(|(_, (_, is_https))| *is_https == are_https);
    let is_alike = if is_alike {
        Ok(())
    } else {
        let allowed = "addresses that all begin with https://, or none of them";
        Err(value.problem("addresses with and without TLS", allowed))
    };
    let addresses = results.into_iter().collect::<Read<Vec<_>>>()?;
    is_unique.and(is_alike)?;
    let shown: Vec<_> = addresses.iter().map(shown).collect();
    value.set(format!("[{}]", shown.join(", ")));
    let all = addresses.into_iter().map(|(address, _)| address).collect();
    Ok(WrittenAddresses { all, are_https })
}

fn item_address(item: &Value<'_>, own: &[SocketAddr]) -> Read<WrittenAddress> {
    if !item.is_table() {
        return address(item, ALLOWED_ITEM, own);
    }
    item.section(|section| table_address(section, own))
}

fn table_address(section: &mut Section<'_>, own: &[SocketAddr]) -> Read<WrittenAddress> {
    let address = match section.find("address", ALLOWED) {
        Some(value) => address(&value, ALLOWED_ITEM, own),
        None => Err(section.missing("address", ALLOWED_ITEM)),
    };
    let weight = section.number("weight", 1..=MAX_WEIGHT, 1);
    let (mut address, is_https) = address?;
    address.weight = weight?;
    Ok((address, is_https))
}

/// An address as written in the file; the weight only if it is not 1.
fn shown((address, is_https): &WrittenAddress) -> String {
    let (scheme, host_port) = (if *is_https { "https://" } else { "" }, &address.host_port);
    match address.weight {
        1 => format!("\"{scheme}{host_port}\""),
        weight => format!("{{ address = \"{scheme}{host_port}\", weight = {weight} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_port_is_an_address_or_a_name_with_a_port() {
        for text in [
            "127.0.0.1:7001",
            "[::1]:7001",
            "localhost:7001",
            "login-b:1",
            "login_b:65535",
            "v1.login.example.:80",
            "7.example:80",
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), text);
        }
        let host_port = "Login:7001".parse::<HostPort>().unwrap();
        assert_eq!(host_port, HostPort::Name("login".to_owned(), 7001));
    }

    #[test]
    fn anything_else_is_rejected() {
        for text in [
            "",
            ":7001",
            "localhost",
            "localhost:",
            "localhost:0",
            "127.0.0.1:0",
            "localhost:65536",
            "localhost:+7001",
            "127.0.0.1",
            "127.0.0.1.7:80",
            "999.0.0.1:80",
            "::1:80",
            "a b:80",
            "-a:80",
            "a..b:80",
            "user:hush@host:80",
            "http://host:80",
            "h\u{f6}st:80",
        ] {
            assert!(text.parse::<HostPort>().is_err(), "{text}");
        }
        assert!(
            format!("{}:80", "a".repeat(64))
                .parse::<HostPort>()
                .is_err()
        );
        for text in ["127.0.0.1", "::1:80", "[::1]", "login"] {
            let error = text.parse::<HostPort>().unwrap_err();
            assert_eq!(error, ParseHostPortError::WithoutPort, "{text}");
        }
        for text in [
            "0.0.0.0:80",
            "[::]:80",
            "[::ffff:0.0.0.0]:80",
            "224.0.0.1:80",
            "[ff02::1]:80",
            "255.255.255.255:80",
        ] {
            let error = text.parse::<HostPort>().unwrap_err();
            assert_eq!(error, ParseHostPortError::NotOneHost, "{text}");
        }
    }
}
