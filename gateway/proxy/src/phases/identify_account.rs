//! Identifies the account of a request, on routes that ask for one. CONTRACT 9.

use std::{net::IpAddr, sync::Arc};

use signpost_kit::clock::Timestamp;
use signpost_protocol::{app::AppId, credential::Credential};

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

/// Checks the credential of a routed request, if its route asks for that. `accounts` is `None` only if no route asks for
/// accounts.
///
/// # Errors
///
/// The credential is missing or invalid, or the store is unavailable.
pub(crate) async fn identify_account(
    routed: &RoutedRequest,
    admitted: &Admitted<'_>,
    headers: &(impl Headers + ?Sized),
    accounts: Option<&AccountDirectory>,
    now: impl FnOnce() -> Timestamp,
) -> Result<RequestAccount, Rejection> {
    // A callback has no application, and its login no account yet.
    let check = match routed.verified().callback() {
        Some(_) => AccountCheck::None,
        None => routed.route().backend().account.check,
    };
    let index = match (check, admitted.authorization) {
        (AccountCheck::None, _) | (AccountCheck::Optional, None) => {
            return Ok(RequestAccount(None));
        }
        (AccountCheck::Required, None) => return Err(Rejection::AuthorizationMissing),
        (AccountCheck::Optional | AccountCheck::Required, Some(index)) => index,
    };
    let accounts = accounts.ok_or(Rejection::Internal("the store is not open".into()))?;
    let sent = headers.each().nth(usize::from(index));
    let sent = sent.map_or(&b""[..], |(_, value)| value);
    let app = routed.app().map(|app| app.id);
    let claims = check_credential(sent, app, admitted.origin.client, accounts, now()).await?;
    Ok(RequestAccount(Some(claims)))
}

/// What a credential, as a client of an application sent it, proves.
///
/// # Errors
///
/// It is invalid, or the store is unavailable.
pub(crate) async fn check_credential(
    sent: &[u8],
    app: Option<AppId>,
    client: IpAddr,
    accounts: &AccountDirectory,
    now: Timestamp,
) -> Result<Arc<CredentialClaims>, Rejection> {
    // As it was sent: most credentials were checked a moment ago, and are not decoded again.
    let claims = match accounts.cached(sent) {
        Some(claims) => claims,
        None => {
            let Ok(credential) = Credential::try_from(sent) else {
                return Err(Rejection::AuthorizationMalformed);
            };
            // Boxed: a connection has no room for what it rarely needs.
            let lookup = Box::pin(accounts.find(credential.hash(), client, now)).await;
            let claims = lookup.map_err(|cause| Rejection::StoreUnavailable(Box::new(cause)))?;
            claims.ok_or(Rejection::AuthorizationInvalid)?
        }
    };
    // The clock decides, not the cache: an entry may be older than the credential's end.
    // The same problem for another application's credential as for an unknown one: it must not tell that the credential
    // exists.
    let is_valid = app == Some(claims.application) && claims.expires_at > now;
    is_valid
        .then_some(claims)
        .ok_or(Rejection::AuthorizationInvalid)
}

#[cfg(test)]
mod tests;
