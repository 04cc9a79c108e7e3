//! Identifies the account of a request, on routes that ask for one. CONTRACT 9.

use std::{net::IpAddr, sync::Arc};

use gateway_protocol::credential::Credential;
use signpost_kit::clock::Timestamp;

use super::{
    admit::{Admitted, SentCredential},
    route::RoutedRequest,
};
use crate::{
    accounts::{Account, CredentialClaims, directory::AccountDirectory},
    config::AccountCheck,
    rejection::Rejection,
};

/// The account of a request, if the gateway has checked one; only [`identify_account`] creates one.
#[derive(Debug)]
pub(crate) struct RequestAccount(Option<Arc<CredentialClaims>>);

impl RequestAccount {
    /// The account; `None` if the route asks for none, or the request has no credential and needs none.
    #[must_use]
    pub(crate) fn account(&self) -> Option<&Account> {
        self.0.as_deref().map(|claims| &claims.account)
    }
}

/// Checks the credential of a routed request, if its route asks for that, and withholds it from a backend that does not
/// get it. `accounts` is `None` only if no route asks for accounts.
///
/// # Errors
///
/// The credential is missing or invalid, or the store is unavailable.
pub(crate) async fn identify_account(
    routed: &RoutedRequest,
    admitted: &mut Admitted<'_>,
    accounts: Option<&AccountDirectory>,
    now: impl FnOnce() -> Timestamp,
) -> Result<RequestAccount, Rejection> {
    let rules = routed.route().backend.account;
    if !rules.passes_authorization {
        admitted.withhold_authorization();
    }
    let sent = match (rules.check, admitted.authorization) {
        (AccountCheck::None, _) | (AccountCheck::Optional, None) => {
            return Ok(RequestAccount(None));
        }
        (AccountCheck::Required, None) => return Err(Rejection::AuthorizationMissing),
        (AccountCheck::Optional | AccountCheck::Required, Some(sent)) => sent,
    };
    let client = admitted.origin.client;
    let accounts = accounts.ok_or(Rejection::Internal("the store is not open".into()))?;
    let claims = find(sent, client, accounts, now()).await?;
    // A callback has no application. It takes no route, so its credential is not checked.
    let claims =
        claims.filter(|claims| routed.app().is_some_and(|app| app.id == claims.application));
    match claims {
        Some(claims) => Ok(RequestAccount(Some(claims))),
        None => Err(Rejection::AuthorizationInvalid),
    }
}

/// What a credential proves at this time; `None` if it is not valid.
async fn find(
    sent: SentCredential<'_>,
    client: IpAddr,
    accounts: &AccountDirectory,
    now: Timestamp,
) -> Result<Option<Arc<CredentialClaims>>, Rejection> {
    let claims = match accounts.cached(sent.value) {
        Some(claims) => Some(claims),
        None => {
            let Ok(hash) = Credential::try_from(sent.value).map(|sent| sent.hash()) else {
                return Ok(None);
            };
            // Boxed: a connection has no room for what it rarely needs.
            Box::pin(accounts.find(hash, client, now))
                .await
                .map_err(|cause| Rejection::StoreUnavailable(Box::new(cause)))?
        }
    };
    // The clock decides, not the cache: an entry may be older than the credential's end.
    Ok(claims.filter(|claims| claims.expires_at > now))
}

#[cfg(test)]
mod tests;
