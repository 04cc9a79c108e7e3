//! How `call` and `login` connect: to which address, and which certificates they trust.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use anyhow::{Context, bail};
use reqwest::{Certificate, Client, Error, RequestBuilder, Response};
use signpost_kit::config::shared_keys::Outgoing;
use signpost_protocol::parse_digits;
use signpost_store::pem;
use url::{Host, Url};

/// Timeout of a request; longer than the longest long poll.
const TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Debug, clap::Args)]
pub(super) struct ConnectOptions {
    /// Connect to ADDRESS for this host name and port; repeatable; as curl's option of this name.
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    resolve: Vec<Resolved>,
    /// Trust the authorities in this PEM file, and no others; as curl's --cacert.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// `HOST:PORT:ADDRESS`, where an IPv6 address may be in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Resolved {
    host: String,
    address: SocketAddr,
}

impl FromStr for Resolved {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (host, rest) = text.split_once(':')?;
            let (port, address) = rest.split_once(':')?;
            let bare = address.strip_prefix('[');
            let bare = bare.map_or(Some(address), |rest| rest.strip_suffix(']'))?;
            let address: IpAddr = bare.parse().ok()?;
            let port = parse_digits(port).filter(|port| *port > 0)?;
            match Host::parse(host).ok()? {
                Host::Domain(host) => Some(Self {
                    host,
                    address: (address, port).into(),
                }),
                _ => None,
            }
        };
        parse().ok_or("allowed: a host name, a port and an IP address, as api.test:443:127.0.0.1")
    }
}

impl ConnectOptions {
    /// A client for this gateway, which follows no redirect.
    ///
    /// # Errors
    ///
    /// The file has no certificates, or no `--resolve` is for the gateway.
    pub(super) fn client(&self, gateway: &Url) -> anyhow::Result<Client> {
        let resolved = self.resolved(gateway);
        if !self.resolve.is_empty() && resolved.is_none() {
            bail!("--resolve: no HOST:PORT is that of {gateway}");
        }
        let mut client = Outgoing::default().client()?.timeout(TIMEOUT);
        if let Some(Resolved { host, address }) = resolved {
            client = client.resolve(host, *address);
        }
        if let Some(file) = &self.ca {
            let found = certificates(file).with_context(|| format!("--ca {}", file.display()))?;
            client = client.tls_certs_only(found);
        }
        Ok(client.build()?)
    }

    /// The last `--resolve` for the gateway's host and port. reqwest distinguishes hosts only, and would use the port of another
    /// entry.
    fn resolved(&self, gateway: &Url) -> Option<&Resolved> {
        let port = gateway.port_or_known_default();
        self.resolve
            .iter()
            .rev()
            .find(|one| gateway.host_str() == Some(&one.host) && port == Some(one.address.port()))
    }
}

/// Sends a request. The error has no address: its query is a signature, or a secret of a login.
pub(super) async fn send(request: RequestBuilder) -> anyhow::Result<Response> {
    let response = request.send().await.map_err(Error::without_url);
    response.context("cannot call the gateway")
}

fn certificates(file: &Path) -> anyhow::Result<Vec<Certificate>> {
    let found = pem::certificates(&fs::read(file)?)?.into_iter();
    let found = found.map(|one| Certificate::from_der(&one));
    Ok(found.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_hosts_addresses_the_one_for_the_port_counts() {
        let addresses = ["api.test:443:10.0.0.1", "api.test:8443:10.0.0.2"];
        let options = ConnectOptions {
            resolve: addresses.map(|text| text.parse().unwrap()).into(),
            ca: None,
        };
        for (url, expected) in [
            ("https://api.test", Some("10.0.0.1:443")),
            ("https://api.test:8443", Some("10.0.0.2:8443")),
            ("https://api.test:9443", None),
        ] {
            let found = options.resolved(&url.parse().unwrap());
            let expected = expected.map(|text| text.parse().unwrap());
            assert_eq!(found.map(|one| one.address), expected, "{url}");
        }
    }

    #[test]
    fn a_host_name_a_port_and_an_address_are_read() {
        for (text, host, address) in [
            ("api.test:443:127.0.0.1", "api.test", "127.0.0.1:443"),
            ("API.test:8443:::1", "api.test", "[::1]:8443"),
            ("api.test:8443:[::1]", "api.test", "[::1]:8443"),
        ] {
            let expected = Resolved {
                host: host.to_owned(),
                address: address.parse().unwrap(),
            };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "api.test",
            "api.test:443",
            "api.test:443:localhost",
            "api.test:0:127.0.0.1",
            "api.test:+443:127.0.0.1",
            "127.0.0.1:443:127.0.0.2",
            "api.test:443:[::1",
            ":443:127.0.0.1",
        ] {
            assert!(text.parse::<Resolved>().is_err(), "{text}");
        }
    }
}
