//! Health check of a running program, for `signpost health` and `login-v1 health`: a container needs no HTTP client.

use std::{
    io::{Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use anyhow::Context;

use crate::reload::control::{self, Verb};

/// Timeout of the connect and of each read. Longer than `/readyz` waits for the store, so that its response arrives.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the query for the address. The program answers immediately, unless it is reloading.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(2);
/// Limit on the response: more than any of `/readyz`.
const MAX_ANSWER_BYTES: u64 = 64 * 1024;

/// A response of `/readyz`.
#[derive(Debug)]
pub struct Health {
    /// Whether the program can serve: status 200.
    pub is_ready: bool,
    /// The response body.
    pub body: String,
}

/// Checks the program running with `file`.
///
/// The program reports its own address, since the file may have changed. If it does not, `from_file` returns one.
///
/// # Errors
///
/// The connection fails, or there is no response; or `from_file` fails.
pub fn check_program(
    file: &Path,
    from_file: impl FnOnce() -> anyhow::Result<SocketAddr>,
) -> anyhow::Result<Health> {
    let reported = control::send_within(file, Verb::HealthAddress, ADDRESS_TIMEOUT);
    let reported = reported.ok().and_then(|reply| reply.text.parse().ok());
    let listen = match reported {
        Some(address) => address,
        None => from_file()?,
    };
    let address = connectable(listen);
    let response = fetch(address).with_context(|| format!("http://{address}/readyz"))?;
    Ok(Health::from_response(&response))
}

impl Health {
    fn from_response(response: &str) -> Self {
        let (head, body) = response.split_once("\r\n\r\n").unwrap_or((response, ""));
        Self {
            is_ready: head.split(' ').nth(1) == Some("200"),
            body: body.trim_end().to_owned(),
        }
    }
}

/// The address to connect to: loopback for a program that listens on all addresses.
fn connectable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        one => one,
    };
    SocketAddr::new(ip, listen.port())
}

fn fetch(address: SocketAddr) -> anyhow::Result<String> {
    let mut connection =
        TcpStream::connect_timeout(&address, ANSWER_TIMEOUT).context("cannot connect")?;
    connection.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes())?;
    let mut response = String::new();
    connection
        .take(MAX_ANSWER_BYTES)
        .read_to_string(&mut response)
        .context("no response")?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_on_all_addresses_is_checked_on_loopback() {
        for (listen, expected) in [
            ("0.0.0.0:7001", "127.0.0.1:7001"),
            ("[::]:7001", "[::1]:7001"),
            ("127.0.0.2:8081", "127.0.0.2:8081"),
        ] {
            assert_eq!(connectable(listen.parse().unwrap()).to_string(), expected);
        }
    }

    #[test]
    fn only_200_is_ready() {
        let ready = Health::from_response("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"ready\"}");
        assert!(ready.is_ready && ready.body == "{\"status\":\"ready\"}");
        assert!(Health::from_response("HTTP/1.1 200 OK\r\nContent-Length: 6").is_ready);
        for response in [
            "HTTP/1.1 503 Service Unavailable\r\n\r\n{}",
            "HTTP/1.1",
            "",
            "200",
        ] {
            assert!(!Health::from_response(response).is_ready, "{response}");
        }
    }
}
