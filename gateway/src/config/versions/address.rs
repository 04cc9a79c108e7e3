//! The addresses of a version's backend, and what they weigh.

use std::{
    fmt::{self, Display},
    net::{IpAddr, SocketAddr},
    str::FromStr,
};

use signpost_kit::config::{Invalid, Read, Section, Value};

const ALLOWED: &str = "an IP address and a port, or a host's name and a port, for example \"127.0.0.1:7001\" or \
                       \"login:7001\"";
const ALLOWED_ITEM: &str = "an IP address and a port, or a host's name and a port, with or without a weight, for example \
                            \"127.0.0.1:7001\" or { address = \"login:7001\", weight = 2 }";
const ALLOWED_OTHER: &str = "the address of a backend";
const ALLOWED_LIST: &str = "a list of addresses, for example [\"10.0.0.1:7001\", { address = \"login:7001\", weight = 2 }]";
const HEAVIEST: u16 = 100;

/// One of the addresses of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackendAddress {
    /// Where it is.
    pub place: Place,
    /// Its share of the requests, compared with the others'. 1 to 100, default 1.
    pub weight: u16,
}

/// Where something listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// At an IP address and a port.
    Address(SocketAddr),
    /// At every address that the name has, and a port.
    Name(String, u16),
}

/// It is no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParsePlaceError {
    /// Neither an address nor a name, or with a port that there is not.
    #[error("no address and no host's name")]
    Malformed,
    /// An address or a name alone.
    #[error("which has no port")]
    WithoutPort,
    /// The unspecified address, or one of many: nobody can be connected to there.
    #[error("where nobody can be connected to")]
    NoOnes,
}

impl FromStr for Place {
    type Err = ParsePlaceError;

    fn from_str(text: &str) -> Result<Self, ParsePlaceError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return match address.port() {
                0 => Err(ParsePlaceError::Malformed),
                _ if is_no_ones(address.ip()) => Err(ParsePlaceError::NoOnes),
                _ => Ok(Self::Address(address)),
            };
        }
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_ok() || is_host_name(text) {
            return Err(ParsePlaceError::WithoutPort);
        }
        let (host, port) = text.rsplit_once(':').ok_or(ParsePlaceError::Malformed)?;
        let port = port.parse().ok().filter(|port| *port > 0);
        match port {
            Some(port) if is_host_name(host) => Ok(Self::Name(host.to_ascii_lowercase(), port)),
            _ => Err(ParsePlaceError::Malformed),
        }
    }
}

/// Whether there is nobody in particular.
fn is_no_ones(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    address.is_unspecified() || address.is_multicast() || is_broadcast
}

impl Place {
    /// Whether it is one of these addresses of this machine. A name is not looked up.
    pub(crate) fn is_one_of(&self, own: &[SocketAddr]) -> bool {
        let Self::Address(address) = self else {
            return false;
        };
        let ip = address.ip().to_canonical();
        own.iter().any(|own| {
            let own_ip = own.ip().to_canonical();
            let is_here = own_ip == ip || own_ip.is_unspecified() && ip.is_loopback();
            own.port() == address.port() && is_here
        })
    }
}

impl Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(formatter),
            Self::Name(host, port) => write!(formatter, "{host}:{port}"),
        }
    }
}

impl Display for BackendAddress {
    /// As it can be written in the file; the weight only if it is not 1.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { place, weight: 1 } => write!(formatter, "\"{place}\""),
            Self { place, weight } => {
                write!(formatter, "{{ address = \"{place}\", weight = {weight} }}")
            }
        }
    }
}

/// Labels of letters, digits, hyphens and underscores (RFC 1123 section 2.1; container names have underscores). The
/// last is no number: that would be an IP address gone wrong.
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

/// The addresses under `backend` or `backends`. None may be one of `own`, where the gateway itself listens.
pub(super) fn addresses(
    section: &mut Section<'_>,
    own: &[SocketAddr],
) -> Read<Vec<BackendAddress>> {
    match (section.find("backend"), section.find("backends")) {
        (Some(value), None) => {
            let place = place(&value, ALLOWED, own)?;
            value.set(format!("\"{place}\""));
            Ok(vec![BackendAddress { place, weight: 1 }])
        }
        (None, Some(value)) => several_addresses(&value, own),
        (None, None) => Err(section.missing("backend", ALLOWED)),
        (Some(_), Some(_)) => {
            let allowed = "backend, for one address, or backends, for several";
            Err(section.problem("backends", "both backend and backends", allowed))
        }
    }
}

/// The place that `value` is; none of `own`.
fn place(value: &Value<'_>, allowed: &str, own: &[SocketAddr]) -> Read<Place> {
    let Some(text) = value.as_str() else {
        return Err(value.invalid_unshown(allowed));
    };
    let (why, allowed) = match text.parse::<Place>() {
        Ok(place) if !place.is_one_of(own) => return Ok(place),
        Ok(_) => (
            ", where the gateway itself listens".to_owned(),
            ALLOWED_OTHER,
        ),
        Err(ParsePlaceError::Malformed) => (String::new(), allowed),
        Err(why) => (format!(", {why}"), allowed),
    };
    Err(value.problem(&format!("{}{why}", value.shown()), allowed))
}

fn several_addresses(value: &Value<'_>, own: &[SocketAddr]) -> Read<Vec<BackendAddress>> {
    let items = value.items().filter(|items| !items.is_empty());
    let items = items.ok_or_else(|| value.invalid_unshown(ALLOWED_LIST))?;
    let mut addresses: Vec<BackendAddress> = Vec::with_capacity(items.len());
    let mut is_valid = true;
    for item in &items {
        match item_address(item, own) {
            Ok(address) if addresses.iter().any(|known| known.place == address.place) => {
                let found = format!("\"{}\" once more", address.place);
                let _ = item.problem(&found, "each address once; a weight makes it count more");
                is_valid = false;
            }
            Ok(address) => addresses.push(address),
            Err(Invalid) => is_valid = false,
        }
    }
    let shown: Vec<_> = addresses.iter().map(BackendAddress::to_string).collect();
    value.set(format!("[{}]", shown.join(", ")));
    is_valid.then_some(addresses).ok_or(Invalid)
}

fn item_address(item: &Value<'_>, own: &[SocketAddr]) -> Read<BackendAddress> {
    if !item.is_table() {
        let place = place(item, ALLOWED_ITEM, own)?;
        return Ok(BackendAddress { place, weight: 1 });
    }
    item.section(|section| {
        let found = match section.find("address") {
            Some(address) => place(&address, ALLOWED_ITEM, own),
            None => Err(section.missing("address", ALLOWED_ITEM)),
        };
        let weight = section.number("weight", 1..=HEAVIEST, 1);
        Ok(BackendAddress {
            place: found?,
            weight: weight?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_or_a_name_with_a_port() {
        for text in [
            "127.0.0.1:7001",
            "[::1]:7001",
            "localhost:7001",
            "login-b:1",
            "login_b:65535",
            "v1.login.example.:80",
            "7.example:80",
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        let place = "Login:7001".parse::<Place>().unwrap();
        assert_eq!(place, Place::Name("login".to_owned(), 7001));
    }

    #[test]
    fn anything_else_is_none() {
        for text in [
            "",
            ":7001",
            "localhost",
            "localhost:",
            "localhost:0",
            "127.0.0.1:0",
            "localhost:65536",
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
            assert!(text.parse::<Place>().is_err(), "{text}");
        }
        assert!(format!("{}:80", "a".repeat(64)).parse::<Place>().is_err());
        for text in ["127.0.0.1", "::1:80", "[::1]", "login"] {
            let error = text.parse::<Place>().unwrap_err();
            assert_eq!(error, ParsePlaceError::WithoutPort, "{text}");
        }
        for text in [
            "0.0.0.0:80",
            "[::]:80",
            "[::ffff:0.0.0.0]:80",
            "224.0.0.1:80",
            "[ff02::1]:80",
            "255.255.255.255:80",
        ] {
            let error = text.parse::<Place>().unwrap_err();
            assert_eq!(error, ParsePlaceError::NoOnes, "{text}");
        }
    }
}
