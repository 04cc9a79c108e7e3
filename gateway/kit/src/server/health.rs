//! Health check of a running program, for `signpost health` and `login-v1 health`: a container needs no HTTP client.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    str::FromStr,
    time::Duration,
};

use crate::{
    config::shared_keys::Outgoing,
    reload::control::{self, Verb},
};
use anyhow::Context;
use http::StatusCode;

/// Timeout of the request. Longer than `/readyz` waits for the store, so that its response arrives.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the query for the address. The program answers immediately, unless it is reloading.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(2);
/// Limit on the response: more than any of `/readyz`.
const MAX_ANSWER_BYTES: usize = 64 * 1024;

/// Where a program serves `/readyz`. `Display` is an origin: `http://127.0.0.1:8081`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthAddress {
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// Whether it speaks TLS there.
    pub is_tls: bool,
}

/// A response of `/readyz`.
#[derive(Debug)]
pub struct Health {
    /// Whether the program can serve: status 200.
    pub is_ready: bool,
    /// The response body.
    pub body: String,
}

impl From<SocketAddr> for HealthAddress {
    fn from(listen: SocketAddr) -> Self {
        Self {
            listen,
            is_tls: false,
        }
    }
}

impl fmt::Display for HealthAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(formatter, "{scheme}://{}", self.listen)
    }
}

impl FromStr for HealthAddress {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (scheme, listen) = text.split_once("://").context("no scheme")?;
        Ok(Self {
            listen: listen.parse()?,
            is_tls: scheme == "https",
        })
    }
}

/// Checks the program running with `file`.
///
/// The program reports its own address, since the file may have changed. If it does not, `from_file` returns one.
///
/// # Errors
///
/// The connection fails, or there is no response; or `from_file` fails.
pub async fn check_program(
    file: &Path,
    from_file: impl FnOnce() -> anyhow::Result<HealthAddress>,
) -> anyhow::Result<Health> {
    let reported = control::send_within(file, Verb::HealthAddress, ADDRESS_TIMEOUT);
    let reported = reported.ok().and_then(|reply| reply.text.parse().ok());
    let address: HealthAddress = match reported {
        Some(address) => address,
        None => from_file()?,
    };
    let url = format!("{}/readyz", connectable(address));
    fetch(&url).await.context(url)
}

/// The address to connect to: loopback for a program that listens on all addresses.
fn connectable(address: HealthAddress) -> HealthAddress {
    let ip = match address.listen.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    HealthAddress {
        listen: SocketAddr::new(ip, address.listen.port()),
        ..address
    }
}

async fn fetch(url: &str) -> anyhow::Result<Health> {
    // Neither a proxy nor a redirect may lead the check to another program, whose 200 would count.
    let client = Outgoing::default()
        .client()?
        .timeout(ANSWER_TIMEOUT)
        // It is an address of this machine, which no certificate need name, and the request holds no secret.
        .tls_danger_accept_invalid_certs(true)
        .tls_certs_only([])
        .build()?;
    let response = client.get(url).send().await;
    let mut response = response.map_err(reqwest::Error::without_url)?;
    let is_ready = response.status() == StatusCode::OK;
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.context("no response")? {
        body.extend_from_slice(&piece);
        // The status decides. Another program at this address could send for ever.
        if body.len() > MAX_ANSWER_BYTES {
            break;
        }
    }
    let body = String::from_utf8_lossy(&body).trim_end().to_owned();
    Ok(Health { is_ready, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_on_all_addresses_is_checked_on_loopback() {
        for (listen, expected) in [
            ("http://0.0.0.0:7001", "http://127.0.0.1:7001"),
            ("https://[::]:7001", "https://[::1]:7001"),
            ("https://127.0.0.2:8081", "https://127.0.0.2:8081"),
        ] {
            assert_eq!(connectable(listen.parse().unwrap()).to_string(), expected);
        }
        assert!("127.0.0.1:8081".parse::<HealthAddress>().is_err());
    }
}
