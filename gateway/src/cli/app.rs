//! `signpost app …`: manages the applications in the store of the running gateways.

mod card;
mod print;
mod transfer;

use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, Subcommand};
use serde_json::json;
use signpost_management::{
    administration::{rules::Origin, summary::AppSummary},
    operations::{
        Input, Operation, Output,
        apps::{self, Deleted},
        card::{Card, Hosting, Subject},
        input::{Decision, Nothing},
    },
};
use signpost_protocol::app::AppIdent;
use signpost_proxy::{Config, program::Applications, weaknesses};

use self::{
    print::{print_state, show, show_card, show_key, show_new, table},
    transfer::IMPORT_FILE,
};
use super::{
    CommonOptions,
    account::{AppLogout, log_out_app},
    operation::{Told, on_apps, with_keys},
    print_error, print_line,
};

#[derive(Debug, Subcommand)]
pub(super) enum AppCommand {
    /// Add an application. Its key is printed only once, with a card for its developers.
    Create(Box<Create>),
    /// Add all applications of a file, with existing idents and keys, or none.
    #[command(after_help = IMPORT_FILE)]
    Import(transfer::Import),
    /// Print all applications as JSON lines, which app import reads once each has a key: an export has none.
    Export(CommonOptions),
    /// Change an application. Options that are not given change nothing.
    Update(Box<OfApp<apps::Update>>),
    /// List applications, oldest first, by pages.
    List(Told<apps::Search>),
    /// Show one application, with a card for its developers: the rules of its requests, and a first call.
    Show(Show),
    /// Replace an application's key. The new key is printed only once; the old one stays valid for a while.
    Rotate(OfApp<apps::Rotation>),
    /// End the validity of the key before the last rotation now.
    EndOverlap(OfApp<Decision>),
    /// Reject an application's requests.
    Disable(OfApp<Decision>),
    /// Accept a disabled application's requests again.
    Enable(OfApp<Decision>),
    /// End all logins to an application: every gateway and login service rejects their credentials within a second.
    ///
    /// Its users can log in again, unless it is disabled. In single-application mode, the gateway's configuration file must
    /// name the store of the login service.
    Logout(AppLogout),
    /// Delete an application permanently.
    Delete(OfApp<Decision>),
}

/// An operation on one application.
#[derive(Debug, Args)]
pub(super) struct OfApp<I: Args> {
    /// The application's ident.
    ident: AppIdent,
    #[command(flatten)]
    told: Told<I>,
}

#[derive(Debug, Args)]
pub(super) struct Show {
    /// The application's ident; none in single-application mode.
    ident: Option<AppIdent>,
    #[command(flatten)]
    card: CardOptions,
    #[command(flatten)]
    common: CommonOptions,
}

#[derive(Debug, Args)]
struct CardOptions {
    /// The gateway's address on the card, for example "https://api.example.com". Default: public_url.
    #[arg(long, value_name = "URL")]
    address: Option<Origin>,
}

#[derive(Debug, Args)]
pub(super) struct Create {
    #[command(flatten)]
    card: CardOptions,
    #[command(flatten)]
    told: Told<apps::NewAppInput>,
}

pub(super) async fn run(command: AppCommand) -> anyhow::Result<ExitCode> {
    match command {
        AppCommand::Create(create) => self::create(*create).await?,
        AppCommand::Import(import) => transfer::import(import).await?,
        AppCommand::Export(common) => transfer::export(&common).await?,
        AppCommand::Update(update) => {
            let changes_profile = update.told.input.chooses_profile();
            let (app, is_json) = update.run(&apps::UPDATE).await?;
            if changes_profile {
                print_weaknesses(&app);
            }
            show(&app, None, is_json);
        }
        AppCommand::List(list) => self::list(list).await?,
        AppCommand::Show(show) => show_one(show).await?,
        AppCommand::Rotate(rotate) => {
            let (rotated, is_json) = rotate.run(&apps::ROTATE).await?;
            show_key(&rotated, is_json);
        }
        AppCommand::EndOverlap(end) => {
            let (app, is_json) = end.run(&apps::END_OVERLAP).await?;
            show(&app, None, is_json);
        }
        AppCommand::Disable(disable) => {
            let (app, is_json) = disable.run(&apps::DISABLE).await?;
            print_state(&app.ident, &app.state, is_json);
        }
        AppCommand::Enable(enable) => {
            let (app, is_json) = enable.run(&apps::ENABLE).await?;
            print_state(&app.ident, &app.state, is_json);
        }
        AppCommand::Logout(logout) => log_out_app(logout).await?,
        AppCommand::Delete(delete) => {
            let (Deleted { deleted }, is_json) = delete.run(&apps::DELETE).await?;
            print_state(&deleted, "deleted", is_json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl<I: Args + Input> OfApp<I> {
    /// Runs the operation on the configured store; and whether its output is printed as JSON.
    async fn run<O: Output>(
        self,
        operation: &Operation<AppIdent, I, O>,
    ) -> anyhow::Result<(O, bool)> {
        let Told { input, common } = self.told;
        let output = on_apps(operation, self.ident, input, &common).await?;
        Ok((output, common.json))
    }
}

async fn create(Create { card, told }: Create) -> anyhow::Result<()> {
    let Told { input, common } = told;
    let config = Config::load(&common.config)?;
    let context = with_keys(&config, &common).await?;
    let new = (apps::CREATE.run)(&context, (), input).await?;
    print_weaknesses(&new.app);
    let card = Card::new(
        Hosting::of_config(&config),
        Subject::from(&new.app),
        card.address.as_ref(),
    );
    show_new(&new, &card, common.json);
    Ok(())
}

async fn list(Told { input, common }: Told<apps::Search>) -> anyhow::Result<()> {
    let page = on_apps(&apps::LIST, (), input, &common).await?;
    if common.json {
        print_line(&json!(page.items).to_string());
    } else {
        table(&page.items);
    }
    if let Some(next) = page.next {
        print_error(&format!("more applications follow: --after {next}"));
    }
    Ok(())
}

async fn show_one(options: Show) -> anyhow::Result<()> {
    let config = Config::load(&options.common.config)?;
    let address = options.card.address.as_ref();
    let card = |subject| Card::new(Hosting::of_config(&config), subject, address);
    let Some(ident) = options.ident else {
        if matches!(config.applications, Applications::Multi(_)) {
            bail!("IDENT is missing: app list shows the applications and their idents");
        }
        show_card(&card(Subject::default()), options.common.json);
        return Ok(());
    };
    let context = with_keys(&config, &options.common).await?;
    let app = (apps::SHOW.run)(&context, ident, Nothing {}).await?;
    show(&app, Some(&card((&app).into())), options.common.json);
    Ok(())
}

fn print_weaknesses(app: &AppSummary) {
    for weakness in app.sign_profile.iter().flat_map(weaknesses) {
        print_error(&format!("warning: {weakness}"));
    }
}
