//! Keys of the hash rules: requests with the same key go to the same address.

use std::net::IpAddr;

use crate::{config::Balance, directory::apps::App};

/// The key of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HashKey<'r> {
    /// No key: all requests are equal.
    None,
    /// The application's ident.
    App(&'r str),
    /// The client's address, in its IPv6 form.
    Client([u8; 16]),
}

impl<'r> HashKey<'r> {
    /// The key of a request of `app`, sent by `client`. A callback has no application, so its key is the client.
    #[must_use]
    pub(crate) fn new(balance: Balance, app: Option<&'r App>, client: IpAddr) -> Self {
        let by_client = || {
            Self::Client(match client {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            })
        };
        match (balance, app) {
            (Balance::RoundRobin | Balance::LeastConnections, _) => Self::None,
            (Balance::HashApp, Some(app)) => match &app.ident {
                Some(ident) => Self::App(ident.as_str()),
                None => Self::None,
            },
            (Balance::HashApp, None) | (Balance::HashClient, _) => by_client(),
        }
    }

    /// The bytes to hash.
    #[must_use]
    pub(crate) const fn as_bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::App(ident) => ident.as_bytes(),
            Self::Client(address) => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::apps::directory::AppDirectory;

    #[test]
    fn the_key_depends_on_the_balancing_rule() {
        let key = "4283fefc63f0cd0e873a0000c6d07ef7".parse().unwrap();
        let AppDirectory::Single(single) = AppDirectory::single(key) else {
            unreachable!()
        };
        let ident = "abcdefghijklmnopqrstuvwx";
        let app = App {
            ident: Some(ident.parse().unwrap()),
            ..(*single).clone()
        };
        let client = "192.0.2.7".parse().unwrap();
        let mapped = "::ffff:192.0.2.7".parse().unwrap();
        let key = |balance, app, client| HashKey::new(balance, app, client).as_bytes().to_vec();
        let by_client = key(Balance::HashClient, Some(&app), client);
        assert_eq!(by_client.len(), 16);
        assert_eq!(key(Balance::HashClient, None, mapped), by_client);
        assert_eq!(key(Balance::HashApp, Some(&app), client), ident.as_bytes());
        assert_eq!(key(Balance::HashApp, Some(&*single), client), b"");
        assert_eq!(key(Balance::HashApp, None, client), by_client);
        assert_eq!(key(Balance::RoundRobin, Some(&app), client), b"");
    }
}
