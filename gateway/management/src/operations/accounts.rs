//! Users, as far as operators end their logins.

use clap::Args;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    Context, Face, Input, Operation, Result,
    input::{KnownIdent, Text},
};
use crate::administration::{
    logins::{AccountName, EndedLogins},
    rules::Reason,
};

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LOGOUT)
}

/// Whose logins are ended.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountLogout {
    /// The provider's name in the configuration of the login service: an account's `provider`, in v1 its `type`.
    pub provider: String,
    /// The account's `username`.
    pub username: String,
    /// Only logins to the application with this ident.
    #[arg(long, value_name = "IDENT")]
    #[schema(value_type = Option<String>)]
    pub app: Option<KnownIdent>,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for AccountLogout {}

/// Ends all logins of an account.
pub const LOGOUT: Operation<(), AccountLogout, EndedLogins> = Operation::change(
    "/api/v1/accounts/logout",
    "Ends all logins of an account, or only those to an application: every gateway and login service rejects their \
         credentials within a second. The user can log in again.",
    |context, target, input| Box::pin(logout(context, target, input)),
);

async fn logout(context: &Context, (): (), input: AccountLogout) -> Result<EndedLogins> {
    let name = AccountName {
        provider: input.provider,
        username: input.username,
    };
    let app = input.app.map(|KnownIdent(ident)| ident);
    let (author, at) = (context.author(input.reason), context.caller.at);
    let logins = context.logins();
    Ok(logins.end_of_account(&name, app, author, at).await?)
}
