//! Who may call this service. CONTRACT 9.

use std::net::SocketAddr;

use http::HeaderValue;
use signpost_kit::{
    config::{Read, SECRET, Section, shared_keys},
    secret::Secret,
};

use crate::secret::is_same;

/// How a request proves that it comes from the gateway.
#[derive(Clone, Debug)]
pub enum Gateway {
    /// By the shared secret.
    Secret(GatewaySecret),
    /// By reaching a loopback address.
    Loopback,
    /// Not at all: there is none. Requests are unverified and belong to the single application.
    Absent,
}

/// The secret that the gateway and its backends share.
#[derive(Clone, Debug)]
pub struct GatewaySecret(Secret);

impl GatewaySecret {
    /// Whether a header's value is the secret, in constant time.
    #[must_use]
    pub fn is(&self, value: Option<&HeaderValue>) -> bool {
        is_same(
            value.map_or(b"", HeaderValue::as_bytes),
            self.0.expose().as_bytes(),
        )
    }
}

impl Gateway {
    /// Reads `gateway_secret` and `without_gateway`; `listen` is none if that setting is invalid.
    pub(super) fn read(root: &mut Section<'_>, listen: Option<SocketAddr>) -> Read<Self> {
        let secret = shared_keys::gateway_secret(root);
        let without_gateway = root.flag("without_gateway", false)?;
        let is_loopback = listen.is_none_or(|address| address.ip().is_loopback());
        match secret? {
            Some(_) if without_gateway => {
                let found = "true, beside a gateway_secret";
                Err(root.problem("without_gateway", found, "one of the two"))
            }
            Some(secret) => Ok(Self::Secret(GatewaySecret(secret))),
            None if !is_loopback => {
                let allowed = format!(
                    "the gateway's secret, since listen is not a loopback address: {SECRET}"
                );
                Err(root.missing("gateway_secret", &allowed))
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
    fn beyond_loopback_there_is_no_start_without_the_secret() {
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
            Some(Gateway::Secret(_))
        ));
    }

    #[test]
    fn a_weak_secret_is_refused_and_not_told() {
        for weak in [
            "s",
            "hunter2hunter2",
            "4283fefc63f0cd0e873a0000c6d07ef",
            &"ab".repeat(40),
        ] {
            let told = read(Some(weak), false, "127.0.0.1:1")
                .unwrap_err()
                .to_string();
            assert!(
                told.contains("gateway_secret: found a weak secret"),
                "{told}"
            );
            assert!(weak.len() < 2 || !told.contains(weak), "{told}");
        }
    }

    #[test]
    fn only_the_secret_itself_will_do() {
        let Some(Gateway::Secret(secret)) = gateway(Some(RANDOM), false, "0.0.0.0:1") else {
            panic!("a secret was given");
        };
        assert!(secret.is(Some(&HeaderValue::from_static(RANDOM))));
        for wrong in [
            None,
            Some(HeaderValue::from_static("")),
            Some(HeaderValue::from_static(&RANDOM[1..])),
        ] {
            assert!(!secret.is(wrong.as_ref()));
        }
    }
}
