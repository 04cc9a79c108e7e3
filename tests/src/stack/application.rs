//! Applications of a stack with many, made by the command line as an operator makes them.

use std::process::Output;

use serde_json::Value;

use super::Stack;
use crate::signed_client::SignedClient;

/// An application, with the key that was shown once.
#[derive(Clone, Debug)]
pub struct Application {
    /// What clients send.
    pub ident: String,
    /// What clients sign with.
    pub key: String,
}

impl Stack {
    /// Makes an application, with further arguments of `signpost app create`.
    ///
    /// # Panics
    ///
    /// When the command fails.
    pub fn create_application(&self, name: &str, further: &[&str]) -> Application {
        let mut arguments = vec!["app", "create", name, "--json"];
        arguments.extend(further);
        let created = succeed(&self.command(&arguments));
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

    /// A client of an application, at one of several gateways.
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
fn succeed(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {error}", output.status);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&output.stdout)))
}
