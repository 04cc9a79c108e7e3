//! A copied request, and the response that its client got.

use std::{net::IpAddr, sync::Arc, time::Duration};

use signpost_protocol::{app::AppId, problem::ProblemCode};

use super::{CopyPlace, send::CopyRequest};
use crate::{
    config::{AccountRules, Changes, Shadow},
    convert::Conversion,
    directory::{accounts::directory::AccountDirectory, apps::App},
    request::{Method, recorder::WholeResponse, rejection::Rejection},
};

/// A copied request. It has all that it needs: the request itself has ended.
pub struct Copied {
    /// What of its version is copied and compared.
    pub shadow: Arc<Shadow>,
    /// Between which versions, and by which entry.
    pub entry: Entry,
    /// What changes the request and the response, if changes are configured.
    pub changes: Option<Arc<Changes>>,
    /// Its method.
    pub method: Method,
    /// Its path, as the client sent it.
    pub path: String,
    /// Its application.
    pub app: Option<Arc<App>>,
    /// Its client's address.
    pub client: IpAddr,
    /// How long it took until its client had the response.
    pub lasted: Duration,
    /// What a converter does for it.
    pub conversion: Option<Conversion>,
    /// The copy; or why there is none.
    pub copy: Result<CopyRequest, NotCopied>,
    /// The credential whose account the other version gets.
    pub credential: Option<GivenCredential>,
    /// The same request to its own version, if that is asked again.
    pub again: Option<CopyRequest>,
    /// The response that the client got.
    pub response: WholeResponse,
    /// Its place among all copies.
    pub _place: CopyPlace,
}

// Prints no content, which includes credentials.
signpost_protocol::hide_in_debug!(Copied);

/// Why there is no response of the other version.
#[derive(Clone, Debug)]
pub enum NotCopied {
    /// The change of this name does not apply: why, without a value.
    NotChanged(Box<str>, String),
    /// The other version rejects such requests.
    Rejected(ProblemCode),
    /// It gave none in time; or there was nothing to compare it with.
    Nothing,
}

impl From<Rejection> for NotCopied {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::BridgeFailed { change, why } => Self::NotChanged(change, why),
            other => Self::Rejected(other.code().unwrap_or(ProblemCode::Internal)),
        }
    }
}

/// A credential that the gateway has not checked: its request's own version does not ask for it.
pub struct GivenCredential {
    /// As the client sent it.
    pub sent: Vec<u8>,
    /// The application of the request.
    pub app: AppId,
    /// Where it is looked up.
    pub accounts: Arc<AccountDirectory>,
    /// What its backend gets of the account.
    pub rules: AccountRules,
}

signpost_protocol::hide_in_debug!(GivenCredential);

/// What tallies are added up by, beside the hour.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The version of the client.
    pub version: String,
    /// The version that gets the copies.
    pub to: String,
    /// The method and the paths, for example `GET /orders/`.
    pub route: String,
    /// The digest of the changes that were applied; empty without changes.
    pub changes: String,
}
