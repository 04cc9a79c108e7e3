//! Identifies the account of a request, on routes that ask for one. CONTRACT 9.

use std::{net::IpAddr, sync::Arc};

use signpost_kit::clock::Timestamp;
use signpost_protocol::credential::{Credential, CredentialHash};

use super::{admit::Admitted, route::RoutedRequest};
use crate::{
    config::AccountCheck,
    directory::accounts::{Account, CredentialClaims, directory::AccountDirectory},
    request::{Headers, rejection::Rejection},
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
    headers: &(impl Headers + ?Sized),
    accounts: Option<&AccountDirectory>,
    now: impl FnOnce() -> Timestamp,
) -> Result<RequestAccount, Rejection> {
    let rules = routed.route().backend().account;
    if !rules.passes_authorization {
        admitted.withhold_authorization();
    }
    let index = match (rules.check, admitted.authorization) {
        (AccountCheck::None, _) | (AccountCheck::Optional, None) => {
            return Ok(RequestAccount(None));
        }
        (AccountCheck::Required, None) => return Err(Rejection::AuthorizationMissing),
        (AccountCheck::Optional | AccountCheck::Required, Some(index)) => index,
    };
    let accounts = accounts.ok_or(Rejection::Internal("the store is not open".into()))?;
    let sent = headers.each().nth(usize::from(index));
    let sent = sent.map_or(&b""[..], |(_, value)| value);
    let now = now();
    if let Some(claims) = accounts.cached(sent) {
        return valid(claims, routed, now);
    }
    let Ok(hash) = Credential::try_from(sent).map(|sent| sent.hash()) else {
        return Err(Rejection::AuthorizationMalformed);
    };
    // Boxed, and no more than that is held meanwhile: a connection has no room for what it rarely needs.
    Box::pin(look_up(hash, routed, admitted.origin.client, accounts, now)).await
}

async fn look_up(
    hash: CredentialHash,
    routed: &RoutedRequest,
    client: IpAddr,
    accounts: &AccountDirectory,
    now: Timestamp,
) -> Result<RequestAccount, Rejection> {
    match accounts.find(hash, client, now).await {
        Ok(Some(claims)) => valid(claims, routed, now),
        Ok(None) => Err(Rejection::AuthorizationInvalid),
        Err(cause) => Err(Rejection::StoreUnavailable(Box::new(cause))),
    }
}

/// The account, if its credential is of the request's application and has not expired. The clock decides, not the cache:
/// an entry may be older than the credential's end.
fn valid(
    claims: Arc<CredentialClaims>,
    routed: &RoutedRequest,
    now: Timestamp,
) -> Result<RequestAccount, Rejection> {
    // A callback has no application. It takes no route, so its credential is not checked.
    let app = routed.app().map(|app| app.id);
    if app == Some(claims.application) && claims.expires_at > now {
        Ok(RequestAccount(Some(claims)))
    } else {
        Err(Rejection::AuthorizationInvalid)
    }
}

#[cfg(test)]
mod tests;
