//! The PROXY protocol. Source: `proxy-protocol.txt` of `HAProxy`, sections 2.1 and 2.2, CONTRACT 2.

use std::net::IpAddr;

use super::head::{is_ipv4, is_ipv6};

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    /// The client's address; `None` if the balancer speaks for itself, or the address is of another kind.
    pub client: Option<IpAddr>,
    /// Whether the client spoke TLS with the balancer.
    pub is_tls: bool,
    /// Its bytes.
    pub length: usize,
}

/// Reads the header that `input` begins with; `None` if it is missing, incomplete or malformed.
pub fn read(input: &[u8]) -> Option<Header> {
    match input.strip_prefix(b"\r\n\r\n\0\r\nQUIT\n") {
        Some(rest) => version_2(rest),
        None => version_1(input),
    }
}

/// A line of at most 107 bytes.
fn version_1(input: &[u8]) -> Option<Header> {
    let length = input.iter().take(107).position(|&byte| byte == b'\n')? + 1;
    let line = std::str::from_utf8(&input[..length]).ok()?;
    let words = line
        .strip_prefix("PROXY ")?
        .strip_suffix("\r\n")?
        .split(' ');
    let is_port =
        |word: &str| word.len() <= 5 && (0..=65_535).any(|port: u32| port.to_string() == word);
    let client = match words.collect::<Vec<_>>()[..] {
        // What follows is ignored.
        ["UNKNOWN", ..] => None,
        [family, client, server, from, to] if is_port(from) && is_port(to) => {
            let is_valid = match family {
                "TCP4" => is_ipv4(client) && is_ipv4(server),
                "TCP6" => is_ipv6(client.as_bytes()) && is_ipv6(server.as_bytes()),
                _ => false,
            };
            Some(client.parse().ok().filter(|_| is_valid)?)
        }
        _ => return None,
    };
    Some(Header {
        client,
        is_tls: false,
        length,
    })
}

/// Version and command, family, length, addresses, TLVs.
fn version_2(input: &[u8]) -> Option<Header> {
    let [command, family, high, low, rest @ ..] = input else {
        return None;
    };
    let length = usize::from(*high) * 256 + usize::from(*low);
    let rest = rest.get(..length).filter(|_| length <= 2048)?;
    let length = 16 + length;
    // The addresses of clients and servers by their bytes, with the ports.
    let (address, addresses) = match (command, family) {
        (0x20, _) => {
            return Some(Header {
                client: None,
                is_tls: false,
                length,
            });
        }
        (0x21, 0x00) => (0, 0),
        (0x21, 0x11) => (4, 12),
        (0x21, 0x21) => (16, 36),
        (0x21, 0x31) => (0, 216),
        _ => return None,
    };
    let (mut tlvs, mut is_tls) = (rest.get(addresses..)?, false);
    while let [kind, rest @ ..] = tlvs {
        let [high, low, rest @ ..] = rest else {
            return None;
        };
        let value = rest.get(..usize::from(*high) * 256 + usize::from(*low))?;
        if *kind == 0x20 {
            is_tls = value.first()? % 2 == 1;
        }
        tlvs = &rest[value.len()..];
    }
    let client = match address {
        4 => <[u8; 4]>::try_from(&rest[..4]).ok().map(IpAddr::from),
        16 => <[u8; 16]>::try_from(&rest[..16]).ok().map(IpAddr::from),
        _ => None,
    };
    Some(Header {
        client,
        is_tls,
        length,
    })
}
