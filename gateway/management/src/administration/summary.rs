//! An application as operators describe and see it.

use serde::Serialize;
use serde_json::json;
use signpost_kit::{clock::Timestamp, config::origin::Origin};
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};
use signpost_proxy::{AppState, Extension, OwnRate, as_rfc3339};
use utoipa::ToSchema;

use super::rules::AppName;

/// A new application.
#[derive(Clone, Debug)]
pub struct NewApp {
    /// The ident that its clients send.
    pub ident: AppIdent,
    /// The key that its clients sign with.
    pub key: AppKey,
    /// The display name; shown on the page of a polling login.
    pub name: AppName,
    /// Its own sign profile; `None`: the gateway's.
    pub profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub return_to: Vec<Origin>,
    /// The version for requests that name none.
    pub default_version: Option<Version>,
    /// Its own rate limit; `None`: the gateway's.
    pub rate_limit: Option<OwnRate>,
    /// The versions that it may use longer than their life cycles say.
    pub extensions: Vec<Extension>,
    /// Whether its requests are accepted.
    pub state: AppState,
    /// The time of its creation.
    pub created_at: Timestamp,
}

/// An application as shown to operators, without its key and internal id.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AppSummary {
    /// The ident that its clients send.
    pub ident: String,
    /// The display name.
    pub name: String,
    /// `active` or `disabled`.
    pub state: String,
    /// When it was created.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Its own sign profile, if it has one.
    #[schema(value_type = Option<Object>)]
    pub sign_profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub return_to: Vec<String>,
    /// The version for requests that name none.
    pub default_version: Option<String>,
    /// Its own rate limit: "100/200" (a second, at once), or "unlimited".
    #[schema(value_type = Option<String>)]
    pub rate_limit: Option<OwnRate>,
    /// Until when it may use versions that end: "v1=2027-03-01T00:00:00Z".
    #[schema(value_type = Vec<String>)]
    pub extensions: Vec<Extension>,
    /// The end of the previous key's validity.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) previous_key_until: Option<Timestamp>,
    /// 1 for a new one, and one more after each change.
    pub revision: i64,
}

/// Members of an application that an import does not read.
const NOT_EXPORTED: [&str; 3] = ["created_at", "previous_key_until", "revision"];

impl AppSummary {
    /// What an import reads once it has a key, in JSON.
    pub fn exported(&self) -> String {
        let mut line = json!(self);
        if let Some(members) = line.as_object_mut() {
            members.retain(|name, _| !NOT_EXPORTED.contains(&name.as_str()));
        }
        line.to_string()
    }
}
