//! How a request proves that it comes from the gateway. CONTRACT 9.

use std::net::SocketAddr;

use http::HeaderValue;
use signpost_kit::{
    config::{
        Read, SECRET, Section,
        shared_keys::{self, GATEWAY_SECRET},
    },
    secret::Secret,
};

use crate::secret::is_same;

/// The key of the second valid secret.
const NEXT: &str = "gateway_secret_next";

/// The proof that a request comes from the gateway.
#[derive(Clone, Debug)]
pub enum Gateway {
    /// The shared secret, and a second valid one while the first is replaced.
    Secret(Secret, Option<Secret>),
    /// Access to a loopback address is enough.
    Loopback,
    /// None, since there is no gateway. Requests are unverified and belong to the single application.
    Absent,
}

impl Gateway {
    /// Whether a request whose secret header has this value can be trusted; compared in constant time. Without a
    /// configured secret all can, since `listen` is a loopback address.
    pub(crate) fn trusts(&self, value: Option<&HeaderValue>) -> bool {
        match self {
            Self::Secret(secret, next) => {
                let value = value.map_or(b"".as_slice(), HeaderValue::as_bytes);
                let is = |secret: &Secret| is_same(value, secret.expose().as_bytes());
                // Always both, so that the time does not tell which one is valid.
                is(secret) | next.as_ref().is_some_and(is)
            }
            Self::Loopback | Self::Absent => true,
        }
    }

    /// Reads `gateway_secret`, `gateway_secret_next` and `without_gateway`; `listen` is `None` if that setting is invalid.
    pub(super) fn read(root: &mut Section<'_>, listen: Option<SocketAddr>) -> Read<Self> {
        let secret = shared_keys::gateway_secret(root, GATEWAY_SECRET);
        let next = shared_keys::gateway_secret(root, NEXT);
        let without_gateway = root.flag("without_gateway", false)?;
        // An invalid `listen` is reported by itself, and causes no second problem here.
        let is_loopback = listen.is_none_or(|address| address.ip().is_loopback());
        let (secret, next) = (secret?, next?);
        let mistake = match (&secret, &next) {
            (None, Some(_)) => Some("a secret without gateway_secret"),
            (Some(secret), Some(next)) if secret.expose() == next.expose() => {
                Some("the same secret")
            }
            _ => None,
        };
        if let Some(mistake) = mistake {
            let allowed = "a secret only beside gateway_secret, and another one";
            return Err(root.problem(NEXT, mistake, allowed));
        }
        match secret {
            Some(_) if without_gateway => {
                let both = "true together with a gateway_secret";
                Err(root.problem("without_gateway", both, "only one of the two"))
            }
            Some(secret) => Ok(Self::Secret(secret, next)),
            None if !is_loopback => {
                let allowed = format!(
                    "the gateway's secret, required because listen is not a loopback address: {SECRET}"
                );
                Err(root.missing(GATEWAY_SECRET, &allowed))
            }
            None if without_gateway => Ok(Self::Absent),
            None => Ok(Self::Loopback),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use signpost_kit::config::{ConfigError, parse};

    use super::*;

    const RANDOM: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

    fn read(secret: Option<&str>, without: bool, listen: &str) -> Result<Gateway, ConfigError> {
        let secret = secret.map(|secret| format!("gateway_secret = {secret:?}\n"));
        let text = format!(
            "{}without_gateway = {without}\n",
            secret.unwrap_or_default()
        );
        let listen = listen.parse().ok();
        let read = |root: &mut Section<'_>| Gateway::read(root, listen);
        parse(Path::new("v1.toml"), &text, read).map(|loaded| loaded.config)
    }

    fn gateway(secret: Option<&str>, without: bool, listen: &str) -> Option<Gateway> {
        read(secret, without, listen).ok()
    }

    #[test]
    fn beyond_loopback_the_secret_is_required() {
        assert!(matches!(
            gateway(None, false, "127.0.0.1:1"),
            Some(Gateway::Loopback)
        ));
        assert!(matches!(
            gateway(None, false, "[::1]:1"),
            Some(Gateway::Loopback)
        ));
        assert!(gateway(None, false, "0.0.0.0:1").is_none());
        assert!(gateway(None, true, "0.0.0.0:1").is_none());
        assert!(gateway(Some(RANDOM), true, "127.0.0.1:1").is_none());
        assert!(matches!(
            gateway(Some(RANDOM), false, "0.0.0.0:1"),
            Some(Gateway::Secret(..))
        ));
    }

    #[test]
    fn a_weak_secret_is_rejected_and_not_printed() {
        for weak in [
            "s",
            "hunter2hunter2",
            "4283fefc63f0cd0e873a0000c6d07ef",
            &"ab".repeat(40),
        ] {
            let message = read(Some(weak), false, "127.0.0.1:1")
                .unwrap_err()
                .to_string();
            assert!(
                message.contains("gateway_secret: found a weak secret"),
                "{message}"
            );
            assert!(weak.len() < 2 || !message.contains(weak), "{message}");
        }
    }

    #[test]
    fn only_the_exact_secret_is_accepted() {
        let gateway = gateway(Some(RANDOM), false, "0.0.0.0:1").unwrap();
        assert!(gateway.trusts(Some(&HeaderValue::from_static(RANDOM))));
        for wrong in [
            None,
            Some(HeaderValue::from_static("")),
            Some(HeaderValue::from_static(&RANDOM[1..])),
        ] {
            assert!(!gateway.trusts(wrong.as_ref()));
        }
    }

    #[test]
    fn while_the_secret_is_replaced_two_are_accepted() {
        const NEXT: &str = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
        let read = |text: &str| {
            let read = |root: &mut Section<'_>| Gateway::read(root, "0.0.0.0:1".parse().ok());
            parse(Path::new("v1.toml"), text, read).map(|loaded| loaded.config)
        };
        let both = format!("gateway_secret = '{RANDOM}'\ngateway_secret_next = '{NEXT}'\n");
        let gateway = read(&both).unwrap();
        assert!(!format!("{gateway:?}").contains(NEXT));
        for (secret, is_trusted) in [
            (RANDOM, true),
            (NEXT, true),
            ("", false),
            (&NEXT[1..], false),
        ] {
            let value = HeaderValue::from_static(secret);
            assert_eq!(gateway.trusts(Some(&value)), is_trusted, "{secret}");
        }
        for (text, found) in [
            (both.replace(NEXT, RANDOM), "found the same secret"),
            (both.replace(NEXT, "hunter2"), "found a weak secret"),
            (
                format!("gateway_secret_next = '{NEXT}'\n"),
                "found a secret without gateway_secret",
            ),
        ] {
            let message = read(&text).unwrap_err().to_string();
            let expected = format!("gateway_secret_next: {found}");
            assert!(message.contains(&expected), "{message}");
            assert!(!message.contains(NEXT), "{message}");
        }
    }
}
