//! Applications in multi-application mode, created by `signpost app create`.

use std::process::Output;

use serde_json::Value;

use super::Stack;
use crate::signed_client::SignedClient;

/// An application with its key.
#[derive(Clone, Debug)]
pub struct Application {
    /// The ident that clients send.
    pub ident: String,
    /// The key that clients sign with.
    pub key: String,
}

impl Stack {
    /// Creates an application, with additional arguments of `signpost app create`.
    ///
    /// # Panics
    ///
    /// When the command fails.
    pub fn create_application(&self, name: &str, further: &[&str]) -> Application {
        let mut arguments = vec!["app", "create", name, "--json"];
        arguments.extend(further);
        let created = printed_json(&self.command(&arguments));
        let member = |name: &str| {
            let value = created[name].as_str();
            value
                .unwrap_or_else(|| panic!("no {name} in {created}"))
                .to_owned()
        };
        Application {
            ident: member("ident"),
            key: member("key"),
        }
    }

    /// A client of an application.
    #[must_use]
    pub fn client_of(&self, application: &Application) -> SignedClient {
        self.client_of_at(application, 0)
    }

    /// A client of an application, of one of several gateways.
    #[must_use]
    pub fn client_of_at(&self, application: &Application, number: usize) -> SignedClient {
        self.client_at(number)
            .with_key(&application.key)
            .with_app(&application.ident)
    }
}

/// The JSON that a command printed.
///
/// # Panics
///
/// When the command failed.
pub(super) fn printed_json(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&output.stdout)))
}
