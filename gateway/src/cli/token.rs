//! `signpost token …`: manages the tokens of the management API.

use std::{process::ExitCode, time::Duration};

use clap::{Args, Subcommand};
use serde_json::json;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_management::administration::{
    apps::MAX_PAGE,
    tokens::{NewToken, Role, Token, Tokens},
};
use signpost_proxy::rfc3339;

use super::{
    CommonOptions, audit,
    author::Why,
    print_error, print_line,
    table::{print_table, printable, printable_json},
};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Create a token. It is printed only once.
    Create(Create),
    /// List the tokens, also those that are no longer valid, oldest first, by pages.
    List(List),
    /// Revoke a token: every gateway rejects it at once.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub(super) struct Create {
    /// Its name, which the audit has as the actor: up to 64 characters.
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it may do: viewer (see everything but secrets), operator (also change applications, drain, reload) or admin
    /// (also manage tokens).
    #[arg(long, value_name = "ROLE")]
    role: Role,
    /// Days for which it is valid.
    #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(1..=366))]
    days: u64,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
pub(super) struct List {
    /// Maximum number of tokens.
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=MAX_PAGE as i64))]
    limit: u16,
    /// The next page: the number of the last token of the page before.
    #[arg(long, value_name = "ID")]
    after: Option<i64>,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    /// The token's number: token list has it.
    id: i64,
    #[command(flatten)]
    why: Why,
    #[command(flatten)]
    common: CommonOptions,
}

pub(super) async fn run(command: TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::Create(create) => self::create(create).await?,
        TokenCommand::List(list) => self::list(list).await?,
        TokenCommand::Revoke(revoke) => {
            let tokens = tokens(&revoke.common).await?;
            let revoked = tokens.revoke(revoke.id, revoke.why.author(), SystemClock.now());
            print(&[revoked.await?], revoke.common.json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(create: Create) -> anyhow::Result<()> {
    let at = SystemClock.now();
    let new = NewToken {
        name: create.name,
        role: create.role,
        expires_at: at.plus(Duration::from_secs(create.days * 24 * 60 * 60)),
    };
    let tokens = tokens(&create.common).await?;
    let (token, secret) = tokens.create(new, create.why.author(), at).await?;
    if create.common.json {
        let mut members = json!(token);
        members["token"] = json!(secret.expose());
        print_line(&printable_json(&members.to_string()));
    } else {
        print_line(secret.expose());
        print_error(&format!(
            "Token {} \"{}\" ({}) is valid until {}. It is shown only once: store it where only its user can read it.",
            token.id,
            printable(&token.name),
            token.role.as_str(),
            rfc3339(token.expires_at)
        ));
    }
    Ok(())
}

async fn list(list: List) -> anyhow::Result<()> {
    let tokens = tokens(&list.common).await?;
    let (tokens, has_more) = tokens.list(list.after, list.limit.into()).await?;
    print(&tokens, list.common.json);
    if let (true, Some(last)) = (has_more, tokens.last()) {
        print_error(&format!("more tokens follow: --after {}", last.id));
    }
    Ok(())
}

fn print(tokens: &[Token], is_json: bool) {
    if is_json {
        return print_line(&printable_json(&json!(tokens).to_string()));
    }
    let heads = [
        "ID", "NAME", "ROLE", "CREATED", "BY", "END", "LAST USE", "REVOKED",
    ];
    let rows = tokens.iter().map(|token| {
        [
            token.id.to_string(),
            token.name.clone(),
            token.role.as_str().to_owned(),
            rfc3339(token.created_at),
            token.created_by.clone(),
            rfc3339(token.expires_at),
            token.last_used_at.map_or_else(String::new, rfc3339),
            token.revoked_at.map_or_else(String::new, rfc3339),
        ]
    });
    print_table(heads, rows);
}

async fn tokens(common: &CommonOptions) -> anyhow::Result<Tokens> {
    audit::open(common).await.map(Tokens::new)
}
