//! Who may call this service. CONTRACT 9.

use std::net::SocketAddr;

use gateway_protocol::sign::KeyStrength;
use http::HeaderValue;

use super::{SecretText, problems::Problems};
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
pub struct GatewaySecret(SecretText);

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
    pub(super) fn read(
        secret: Option<String>,
        without_gateway: Option<bool>,
        listen: Option<SocketAddr>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let is_loopback = listen.is_none_or(|address| address.ip().is_loopback());
        match (secret, without_gateway.unwrap_or(false)) {
            (Some(_), true) => {
                problems.add(
                    "without_gateway",
                    "true, beside a gateway_secret",
                    "one of the two",
                );
                None
            }
            (Some(source), false) => {
                let text = SecretText::read("gateway_secret", &source, problems)?;
                if let Err(weak) = KeyStrength::of(text.expose()) {
                    let allowed = "a random text of at least 128 bits, of openssl rand -hex 32 say: env:NAME, file:PATH, or the secret itself";
                    problems.add("gateway_secret", &format!("a weak secret: {weak}"), allowed);
                    return None;
                }
                Some(Self::Secret(GatewaySecret(text)))
            }
            (None, _) if !is_loopback => {
                let allowed = "the gateway's secret, since \"listen\" is not a loopback address: env:NAME, file:PATH, or the secret itself";
                problems.add("gateway_secret", "nothing", allowed);
                None
            }
            (None, true) => Some(Self::Absent),
            (None, false) => Some(Self::Loopback),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "4283fefc63f0cd0e873a0000c6d07ef7";

    fn gateway(secret: Option<&str>, without: Option<bool>, listen: &str) -> Option<Gateway> {
        let listen = listen.parse().ok();
        Gateway::read(
            secret.map(str::to_owned),
            without,
            listen,
            &mut Problems::default(),
        )
    }

    #[test]
    fn beyond_loopback_there_is_no_start_without_the_secret() {
        assert!(matches!(
            gateway(None, None, "127.0.0.1:1"),
            Some(Gateway::Loopback)
        ));
        assert!(matches!(
            gateway(None, None, "[::1]:1"),
            Some(Gateway::Loopback)
        ));
        assert!(gateway(None, None, "0.0.0.0:1").is_none());
        assert!(gateway(None, Some(true), "0.0.0.0:1").is_none());
        assert!(gateway(Some(SECRET), Some(true), "127.0.0.1:1").is_none());
        assert!(matches!(
            gateway(Some(SECRET), None, "0.0.0.0:1"),
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
            let mut problems = Problems::default();
            let read = Gateway::read(Some(weak.to_owned()), None, None, &mut problems);
            assert!(read.is_none(), "{weak}");
            let told = crate::config::ConfigProblems::from(problems).to_string();
            assert!(
                told.contains("gateway_secret: found a weak secret"),
                "{told}"
            );
            assert!(weak.len() < 2 || !told.contains(weak), "{told}");
        }
    }

    #[test]
    fn only_the_secret_itself_will_do() {
        let Some(Gateway::Secret(secret)) = gateway(Some(SECRET), None, "0.0.0.0:1") else {
            panic!("a secret was given");
        };
        assert!(secret.is(Some(&HeaderValue::from_static(SECRET))));
        for wrong in [
            None,
            Some(HeaderValue::from_static("")),
            Some(HeaderValue::from_static(&SECRET[1..])),
        ] {
            assert!(!secret.is(wrong.as_ref()));
        }
    }
}
