//! Tokens of the management API.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use signpost_protocol::parse_digits;
use utoipa::ToSchema;

use super::{
    Context, Face, Input, Kind, Operation, Output, Parameter, Result, Target,
    input::{List, Nothing, PageInput, Text, Why},
    problem::Code,
};
use crate::administration::{
    rules::Reason,
    tokens::{NewToken, Role, Token},
};

/// Days for which a token is valid, if none are named.
const DEFAULT_DAYS: u64 = 90;

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&LIST).add(&WHOAMI).add(&CREATE).add(&REVOKE)
}

impl Output for Token {}

/// A new token, and its text, which is shown only once.
#[derive(Serialize, ToSchema)]
pub struct WithSecret {
    /// The token.
    pub token: Token,
    /// What its user sends as `Authorization: Bearer`.
    pub secret: String,
}

impl Output for WithSecret {}

/// The number of a token.
#[derive(Args, Clone, Copy, Debug)]
pub struct TokenId {
    /// The token's number: token list has it.
    pub id: i64,
}

impl Target for TokenId {
    const PARAMETER: Option<Parameter> = Some(("id", <i64 as utoipa::PartialSchema>::schema));

    fn read(text: &str) -> Result<Self, Code> {
        let id = parse_digits(text).ok_or(Code::TokenNotFound)?;
        Ok(Self { id })
    }
}

/// Shows the token of this call.
pub const WHOAMI: Operation<(), Nothing, Token> = Operation::read(
    "/api/v1/whoami",
    "Shows the token of this call.",
    |context, target, input| Box::pin(whoami(context, target, input)),
);

async fn whoami(context: &Context, (): (), _: Nothing) -> Result<Token> {
    let token = context.caller.token.clone();
    Ok(token.expect("a call is made with a token"))
}

/// Lists the tokens.
pub const LIST: Operation<(), PageInput, List<Token>> = Operation::read(
    "/api/v1/tokens",
    "Lists the tokens, also those that are no longer valid, oldest first.",
    |context, target, input| Box::pin(list(context, target, input)),
);

async fn list(context: &Context, (): (), input: PageInput) -> Result<List<Token>> {
    let tokens = context.tokens();
    let page = tokens.list(input.after(), input.limit.into()).await?;
    Ok(List::new(page, |token| token.id.to_string()))
}

/// A token to create.
#[derive(Args, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTokenInput {
    /// Its name, which the audit has as the actor: 1 to 64 characters. No other live token has it.
    #[arg(long)]
    #[schema(min_length = 1, max_length = 64)]
    pub name: String,
    /// What it may do.
    #[arg(
        long,
        help = "What it may do: viewer (see everything but secrets), operator (also change applications, drain, reload) or admin (also manage tokens)"
    )]
    pub role: Role,
    /// Days for which it is valid.
    #[arg(long, default_value = "90", value_parser = clap::value_parser!(u64).range(1..=366))]
    #[schema(minimum = 1, maximum = 366, default = 90)]
    pub days: Option<u64>,
    /// Why, for the audit: up to 200 characters.
    #[arg(long, value_name = "TEXT")]
    #[schema(value_type = Option<String>)]
    pub reason: Option<Text<Reason>>,
}

impl Input for NewTokenInput {}

/// Creates a token.
pub const CREATE: Operation<(), NewTokenInput, WithSecret> = Operation::of(
    (Kind::Create, Role::Admin),
    "/api/v1/tokens/create",
    "Creates a token. Its text is shown in this response only.",
    |context, target, input| Box::pin(create(context, target, input)),
);

async fn create(context: &Context, (): (), input: NewTokenInput) -> Result<WithSecret> {
    let at = context.caller.at;
    let days = input.days.unwrap_or(DEFAULT_DAYS);
    let new = NewToken {
        name: input.name,
        role: input.role,
        expires_at: at.plus(Duration::from_secs(days.saturating_mul(24 * 60 * 60))),
    };
    let author = context.author(input.reason);
    let (token, secret) = context.tokens().create(new, author, at).await?;
    let secret = secret.expose().to_owned();
    Ok(WithSecret { token, secret })
}

/// Revokes a token.
pub const REVOKE: Operation<TokenId, Why, Token> = Operation::of(
    (Kind::Change, Role::Admin),
    "/api/v1/tokens/{id}/revoke",
    "Revokes a token: every gateway rejects it at once.",
    |context, target, input| Box::pin(revoke(context, target, input)),
);

async fn revoke(context: &Context, TokenId { id }: TokenId, why: Why) -> Result<Token> {
    let author = context.author(why.reason);
    let tokens = context.tokens();
    Ok(tokens.revoke(id, author, context.caller.at).await?)
}
