//! The interface of a store of applications.

use async_trait::async_trait;
use serde::{Serialize, Serializer};
use serde_json::json;
use signpost_kit::clock::Timestamp;
use signpost_protocol::{
    app::AppIdent,
    sign::{AppKey, SignProfile},
    version::Version,
};
use utoipa::ToSchema;

use super::{
    App, AppState,
    rules::{AppName, Origin},
    seal::SealError,
};
use crate::config::{OwnRate, rfc3339};

/// A new application.
#[derive(Clone, Debug)]
pub(crate) struct NewApp {
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
    /// Whether its requests are accepted.
    pub state: AppState,
    /// The time of its creation.
    pub created_at: Timestamp,
}

/// An application as shown to operators, without its key and internal id.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct AppSummary {
    /// The ident that its clients send.
    pub(crate) ident: String,
    /// The display name.
    pub(crate) name: String,
    /// `active` or `disabled`.
    pub(crate) state: String,
    /// When it was created.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Timestamp,
    /// Its own sign profile, if it has one.
    #[schema(value_type = Option<Object>)]
    pub(crate) sign_profile: Option<SignProfile>,
    /// Origins that a login may return to.
    pub(crate) return_to: Vec<String>,
    /// The version for requests that name none.
    pub(crate) default_version: Option<String>,
    /// Its own rate limit: "100/200" (a second, at once), or "unlimited".
    #[schema(value_type = Option<String>)]
    pub(crate) rate_limit: Option<OwnRate>,
    /// The end of the previous key's validity.
    #[serde(serialize_with = "as_rfc3339")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) previous_key_until: Option<Timestamp>,
    /// 1 for a new one, and one more after each change.
    pub(crate) revision: i64,
}

/// Members of an application that an import does not read.
const NOT_EXPORTED: [&str; 3] = ["created_at", "previous_key_until", "revision"];

impl AppSummary {
    /// What an import reads once it has a key, in JSON.
    pub(crate) fn exported(&self) -> String {
        let mut line = json!(self);
        if let Some(members) = line.as_object_mut() {
            members.retain(|name, _| !NOT_EXPORTED.contains(&name.as_str()));
        }
        line.to_string()
    }
}

pub(crate) fn as_rfc3339<S: Serializer>(
    time: &(impl Copy + Into<Option<Timestamp>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time: Option<Timestamp> = (*time).into();
    time.map(rfc3339).serialize(serializer)
}

/// Where requests find their applications.
#[async_trait]
pub trait AppStore: Send + Sync {
    /// Finds an application, and opens its keys.
    ///
    /// # Errors
    ///
    /// The store is unavailable, the master key does not open the keys, or the record is malformed.
    async fn find(&self, ident: AppIdent) -> Result<Option<App>, AppStoreError>;
}

/// Why a store's operation failed.
#[derive(Debug, thiserror::Error)]
pub enum AppStoreError {
    /// The store is unavailable or overloaded.
    #[error("the store is unavailable")]
    Store(#[from] signpost_store::StoreError),
    /// A key cannot be opened: the master key is wrong, or the record was changed.
    #[error("an application's key cannot be decrypted")]
    Seal(#[from] SealError),
    /// No application has that ident.
    #[error("no application has the ident {0}")]
    Unknown(AppIdent),
    /// A record holds a value that no release writes.
    #[error("an application's record is malformed: {0}")]
    Malformed(&'static str),
}
