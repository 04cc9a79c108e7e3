//! `signpost token …`: manages the tokens of the management API.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::json;
use signpost_management::{
    administration::tokens::Token,
    operations::{
        input::{PageInput, Why},
        tokens::{self, NewTokenInput, TokenId},
    },
};
use signpost_proxy::rfc3339;

use super::{
    operation::{Told, on_store},
    print_error, print_line,
    table::{print_list, printable, printable_json},
};

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Create a token. It is printed only once.
    Create(Told<NewTokenInput>),
    /// List the tokens, also those that are no longer valid, oldest first, by pages.
    List(Told<PageInput>),
    /// Revoke a token: every gateway rejects it at once.
    Revoke(Revoke),
}

#[derive(Debug, Args)]
pub(super) struct Revoke {
    #[command(flatten)]
    token: TokenId,
    #[command(flatten)]
    told: Told<Why>,
}

pub(super) async fn run(command: TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::Create(create) => self::create(create).await?,
        TokenCommand::List(Told { input, common }) => {
            let page = on_store(&tokens::LIST, (), input, &common).await?;
            print(&page.items, common.json);
            if let Some(next) = page.next {
                print_error(&format!("more tokens follow: --after {next}"));
            }
        }
        TokenCommand::Revoke(Revoke { token, told }) => {
            let Told { input, common } = told;
            let revoked = on_store(&tokens::REVOKE, token, input, &common).await?;
            print(&[revoked], common.json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn create(Told { input, common }: Told<NewTokenInput>) -> anyhow::Result<()> {
    let new = on_store(&tokens::CREATE, (), input, &common).await?;
    let token = &new.token;
    if common.json {
        let mut members = json!(token);
        members["token"] = json!(new.secret);
        print_line(&printable_json(&members.to_string()));
    } else {
        print_line(&new.secret);
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

fn print(tokens: &[Token], is_json: bool) {
    let heads = [
        "ID", "NAME", "ROLE", "CREATED", "BY", "END", "LAST USE", "REVOKED",
    ];
    let cells = |token: &Token| {
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
    };
    print_list(tokens, heads, cells, is_json);
}
