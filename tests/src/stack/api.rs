//! The management API of a stack's gateways.

use serde_json::Value;

use super::{Stack, application::printed_json};
use crate::{program::Program, signed_client::http_client};

impl Stack {
    /// Creates a token with this role, and returns its text.
    ///
    /// # Panics
    ///
    /// When the command fails.
    #[must_use]
    pub fn create_token(&self, role: &str) -> String {
        self.create_named_token(role, role)
    }

    /// Creates a token with this name and role, and returns its text.
    ///
    /// # Panics
    ///
    /// When the command fails.
    #[must_use]
    pub fn create_named_token(&self, name: &str, role: &str) -> String {
        let create = ["token", "create", "--name", name, "--role", role, "--json"];
        let created = printed_json(&self.command(&create));
        created["token"].as_str().expect("a token").to_owned()
    }

    /// The URL of a path at one of several gateways.
    #[must_use]
    pub fn api_url(&self, number: usize, path: &str) -> String {
        let gateway = Program::Gateway.number(number);
        let address = self.addresses().management_of(gateway);
        format!("http://{address}/api/v1/{path}")
    }

    /// Sends a GET of this path to one of several gateways, and returns the response, whatever its status.
    ///
    /// # Panics
    ///
    /// When there is no response.
    pub async fn get_api(&self, number: usize, path: &str, token: &str) -> reqwest::Response {
        let request = http_client().get(self.api_url(number, path));
        let response = request.bearer_auth(token).send().await;
        response.expect("the gateway responds")
    }

    /// Calls one of several gateways successfully: by POST, if there is a body.
    ///
    /// # Panics
    ///
    /// When the call fails.
    pub async fn call_api(
        &self,
        number: usize,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> reqwest::Response {
        let response = match body {
            None => self.get_api(number, path, token).await,
            Some(body) => {
                let request = http_client().post(self.api_url(number, path)).json(&body);
                let response = request.bearer_auth(token).send().await;
                response.expect("the gateway responds")
            }
        };
        assert!(response.status().is_success(), "{response:?}");
        response
    }
}
