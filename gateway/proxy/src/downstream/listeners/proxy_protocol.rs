//! The PROXY protocol, versions 1 and 2: a balancer tells the client's address before its first byte.
//!
//! Source: The PROXY protocol, versions 1 & 2 (`proxy-protocol.txt` of `HAProxy`), sections 2.1 and 2.2.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use memchr::memchr;
use tokio::{io::AsyncReadExt, net::TcpStream};

const V2_SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Longest header of version 1, in bytes with its line end.
const MAX_V1: usize = 107;
/// Limit of a header of version 2 behind its first 16 bytes: addresses and TLVs. Balancers send less than 300.
const MAX_V2: usize = 2048;
/// The TLV about the TLS connection that the balancer ended, and its flag that there was one.
const PP2_TYPE_SSL: u8 = 0x20;
const PP2_CLIENT_SSL: u8 = 0x01;

/// What a PROXY header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The client's address; `None` if the balancer speaks for itself, as in its health checks.
    pub client: Option<IpAddr>,
    /// Whether the client spoke TLS with the balancer.
    pub is_tls: bool,
}

/// Why a connection has no valid PROXY header.
#[derive(Debug, thiserror::Error)]
pub enum ProxyHeaderError {
    /// The connection ended or failed.
    #[error("the connection ended within its PROXY header")]
    Ended(#[from] io::Error),
    /// It does not begin with a header, or with a malformed one.
    #[error("the connection does not begin with a valid PROXY header")]
    Malformed,
}

/// Reads the header from the connection, and no byte behind it.
///
/// # Errors
///
/// The connection ended, or does not begin with a valid header.
pub async fn read_header(stream: &mut TcpStream) -> Result<ProxyHeader, ProxyHeaderError> {
    let mut start = [0; V2_SIGNATURE.len()];
    // Takes no byte of the client: the shortest header, `PROXY UNKNOWN` and its line end, has 15.
    stream.read_exact(&mut start).await?;
    if start == V2_SIGNATURE {
        return read_v2(stream).await;
    }
    let mut line = [0; MAX_V1];
    line[..start.len()].copy_from_slice(&start);
    let mut length = start.len();
    if !line.starts_with(b"PROXY ") {
        return Err(ProxyHeaderError::Malformed);
    }
    loop {
        // Peeked first: what follows the line belongs to the client.
        let available = stream.peek(&mut line[length..]).await?;
        // The line is full, or the connection has ended.
        if available == 0 {
            return Err(ProxyHeaderError::Malformed);
        }
        let end = memchr(b'\n', &line[length..length + available]);
        let taken = end.map_or(available, |end| end + 1);
        stream.read_exact(&mut line[length..length + taken]).await?;
        length += taken;
        if end.is_some() {
            return parse_v1(&line[..length]).ok_or(ProxyHeaderError::Malformed);
        }
    }
}

async fn read_v2(stream: &mut TcpStream) -> Result<ProxyHeader, ProxyHeaderError> {
    let mut fixed = [0; 4];
    stream.read_exact(&mut fixed).await?;
    let [version_and_command, family, high, low] = fixed;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MAX_V2 {
        return Err(ProxyHeaderError::Malformed);
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    parse_v2(version_and_command, family, &rest).ok_or(ProxyHeaderError::Malformed)
}

/// Parses a line of version 1, with its line end.
fn parse_v1(line: &[u8]) -> Option<ProxyHeader> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix("\r\n")?;
    let mut words = line.split(' ');
    let (_, family) = (words.next()?, words.next()?);
    if family == "UNKNOWN" {
        return Some(ProxyHeader::default());
    }
    let (client, server) = (words.next()?, words.next()?);
    let is_port = |word: &str| {
        word.parse::<u16>()
            // Section 2.1: no leading zeros. `parse` takes these, and a `+`.
            .is_ok_and(|port| port.to_string() == word)
    };
    let has_ports = is_port(words.next()?) && is_port(words.next()?) && words.next().is_none();
    let client = match family {
        "TCP4" => {
            // Not used, but checked: what is half a header was not written by a balancer.
            server.parse::<Ipv4Addr>().ok()?;
            IpAddr::V4(client.parse().ok()?)
        }
        "TCP6" => {
            server.parse::<Ipv6Addr>().ok()?;
            IpAddr::V6(client.parse().ok()?)
        }
        _ => return None,
    };
    has_ports.then_some(ProxyHeader {
        client: Some(client),
        is_tls: false,
    })
}

/// Parses version 2 behind the signature: command, family, and the addresses with the TLVs.
fn parse_v2(version_and_command: u8, family: u8, rest: &[u8]) -> Option<ProxyHeader> {
    let (client, tlvs) = match (version_and_command, family) {
        // LOCAL: the addresses, if any, are ignored.
        (0x20, _) => return Some(ProxyHeader::default()),
        // Unspecified, and Unix sockets: there is no address of the client's.
        (0x21, 0x00) => (None, rest),
        (0x21, 0x31) => (None, rest.get(216..)?),
        (0x21, 0x11) => {
            let (addresses, tlvs) = rest.split_at_checked(12)?;
            let client = <[u8; 4]>::try_from(&addresses[..4]).ok()?;
            (Some(IpAddr::from(client)), tlvs)
        }
        (0x21, 0x21) => {
            let (addresses, tlvs) = rest.split_at_checked(36)?;
            let client = <[u8; 16]>::try_from(&addresses[..16]).ok()?;
            (Some(IpAddr::from(client)), tlvs)
        }
        _ => return None,
    };
    Some(ProxyHeader {
        client,
        is_tls: has_tls(tlvs)?,
    })
}

/// Whether the TLVs say that the client spoke TLS; `None` if they are malformed.
fn has_tls(mut tlvs: &[u8]) -> Option<bool> {
    let mut is_tls = false;
    while !tlvs.is_empty() {
        let (&[kind, high, low], rest) = tlvs.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (value, rest) = rest.split_at_checked(length)?;
        if kind == PP2_TYPE_SSL {
            is_tls = value.first()? & PP2_CLIENT_SSL != 0;
        }
        tlvs = rest;
    }
    Some(is_tls)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncWriteExt, net::TcpListener, time::timeout};

    use super::*;

    fn header(client: &str, is_tls: bool) -> ProxyHeader {
        ProxyHeader {
            client: Some(client.parse().unwrap()),
            is_tls,
        }
    }

    #[test]
    fn version_1_has_families_addresses_and_ports() {
        for (line, found) in [
            (
                "PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n",
                Some(header("192.0.2.7", false)),
            ),
            (
                "PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n",
                Some(header("2001:db8::7", false)),
            ),
            ("PROXY UNKNOWN\r\n", Some(ProxyHeader::default())),
            (
                "PROXY UNKNOWN ff::1 ff::2 1 2\r\n",
                Some(ProxyHeader::default()),
            ),
            ("PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\n", None),
            ("PROXY TCP4 192.0.2.7 10.0.0.1 56324\r\n", None),
            ("PROXY TCP4 192.0.2.7 10.0.0.1 56324 443 1\r\n", None),
            ("PROXY TCP4 192.0.2.7 10.0.0.1 65536 443\r\n", None),
            ("PROXY TCP4 192.0.2.7 10.0.0.1 +1 443\r\n", None),
            ("PROXY TCP4 192.0.2.7 10.0.0.1 01 443\r\n", None),
            ("PROXY TCP4  192.0.2.7 10.0.0.1 1 443\r\n", None),
            ("PROXY TCP4 2001:db8::7 10.0.0.1 1 443\r\n", None),
            ("PROXY TCP6 192.0.2.7 10.0.0.1 1 443\r\n", None),
            ("PROXY TCP5 192.0.2.7 10.0.0.1 1 443\r\n", None),
            ("PROXY tcp4 192.0.2.7 10.0.0.1 1 443\r\n", None),
        ] {
            assert_eq!(parse_v1(line.as_bytes()), found, "{line:?}");
        }
    }

    #[test]
    fn version_2_has_commands_families_and_tlvs() {
        let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 220, 4, 1, 187];
        let mut v6 = [0; 36];
        v6[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        let with = |addresses: &[u8], tlvs: &[u8]| [addresses, tlvs].concat();
        let tls = [0x20, 0, 5, 1, 0, 0, 0, 0];
        let no_tls = [0x20, 0, 5, 0, 0, 0, 0, 0];
        let other = [0x04, 0, 2, 0, 0];
        for (command, family, rest, found) in [
            (0x21, 0x11, v4.to_vec(), Some(header("192.0.2.7", false))),
            (0x21, 0x11, with(&v4, &tls), Some(header("192.0.2.7", true))),
            (
                0x21,
                0x11,
                with(&v4, &no_tls),
                Some(header("192.0.2.7", false)),
            ),
            (
                0x21,
                0x11,
                with(&with(&v4, &other), &tls),
                Some(header("192.0.2.7", true)),
            ),
            (0x21, 0x21, v6.to_vec(), Some(header("2001:db8::", false))),
            (0x20, 0x00, vec![], Some(ProxyHeader::default())),
            (0x20, 0x11, v4.to_vec(), Some(ProxyHeader::default())),
            (0x21, 0x00, vec![], Some(ProxyHeader::default())),
            (0x21, 0x31, vec![0; 216], Some(ProxyHeader::default())),
            (0x21, 0x31, vec![0; 215], None),
            (0x21, 0x11, v4[..11].to_vec(), None),
            (0x21, 0x21, v6[..35].to_vec(), None),
            (0x21, 0x12, v4.to_vec(), None),
            (0x22, 0x11, v4.to_vec(), None),
            (0x11, 0x11, v4.to_vec(), None),
            (0x21, 0x11, with(&v4, &[0x20, 0]), None),
            (0x21, 0x11, with(&v4, &[0x20, 0, 1]), None),
            (0x21, 0x11, with(&v4, &[0x20, 0, 0]), None),
        ] {
            assert_eq!(
                parse_v2(command, family, &rest),
                found,
                "{command:x} {family:x} {rest:?}"
            );
        }
    }

    /// Sends the pieces one after the other, and returns the header and what remains on the connection.
    async fn read(pieces: &[&[u8]]) -> (Result<ProxyHeader, ProxyHeaderError>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut balancer = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        let sent = async {
            for piece in pieces {
                balancer.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            balancer.shutdown().await.unwrap();
        };
        let read = async {
            let header = timeout(Duration::from_secs(20), read_header(&mut stream))
                .await
                .unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap();
            (header, rest)
        };
        tokio::join!(sent, read).1
    }

    #[tokio::test]
    async fn no_byte_behind_the_header_is_read() {
        let line = b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\nGET / HTTP/1.1\r\n";
        let mut v2 = V2_SIGNATURE.to_vec();
        v2.extend([0x21, 0x11, 0, 12, 192, 0, 2, 7, 10, 0, 0, 1, 220, 4, 1, 187]);
        v2.extend(b"GET / HTTP/1.1\r\n");
        for bytes in [&line[..], &v2] {
            for size in [1, 5, 13, bytes.len()] {
                let pieces: Vec<_> = bytes.chunks(size).collect();
                let (header, rest) = read(&pieces).await;
                assert_eq!(header.unwrap().client, Some("192.0.2.7".parse().unwrap()));
                assert_eq!(rest, b"GET / HTTP/1.1\r\n");
            }
        }
    }

    #[tokio::test]
    async fn anything_else_is_rejected() {
        let long = [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat();
        let huge = [&V2_SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
        for bytes in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"PROXY",
            b"PROXY TCP4 1",
            &long,
            &huge,
            b"",
        ] {
            let (header, _) = read(&[bytes]).await;
            assert!(header.is_err(), "{bytes:?}");
        }
    }
}
