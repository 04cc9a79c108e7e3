//! Runs an operation in this process, without a gateway, on the store that the configuration names.

use std::path::Path;

use clap::Args;
use signpost_kit::clock::{Clock, SystemClock};
use signpost_management::{
    administration::{apps::Administration, rules::Rules, tokens::Role},
    operations::{Caller, Context, Input, Operation, Output, Target},
};
use signpost_protocol::language::Language;
use signpost_proxy::{Config, StoredApps, program::open_store};
use signpost_store::Store;

use super::{CommonOptions, author, many};

/// What an operation is told, and where its store is.
#[derive(Debug, Args)]
pub(super) struct Told<I: Args> {
    #[command(flatten)]
    pub input: I,
    #[command(flatten)]
    pub common: CommonOptions,
}

/// Runs an operation on the applications of the configured store.
pub(super) async fn on_apps<T: Target, I: Input, O: Output>(
    operation: &Operation<T, I, O>,
    target: T,
    input: I,
    common: &CommonOptions,
) -> anyhow::Result<O> {
    let context = with_keys(&Config::load(&common.config)?, common).await?;
    Ok((operation.run)(&context, target, input).await?)
}

/// The same without the applications' keys.
pub(super) async fn on_store<T: Target, I: Input, O: Output>(
    operation: &Operation<T, I, O>,
    target: T,
    input: I,
    common: &CommonOptions,
) -> anyhow::Result<O> {
    let config = Config::load(&common.config)?;
    let because = "nothing is changed by commands";
    let context = on_many(&config, &common.config, because).await?;
    Ok((operation.run)(&context, target, input).await?)
}

/// What operations are done with that open no key, on the store of many applications: `because` says why of many.
pub(super) async fn on_many(
    config: &Config,
    file: &Path,
    because: &str,
) -> anyhow::Result<Context> {
    many(config, file, because)?;
    Ok(of_store(Store::open(&config.store).await?))
}

/// Opens the configured store of applications.
pub(super) async fn configured_store(
    config: &Config,
    common: &CommonOptions,
) -> anyhow::Result<StoredApps> {
    let because = "replace [application] with [applications] to manage many";
    let multi = many(config, &common.config, because)?;
    Ok(open_store(config, multi).await?.1)
}

/// What operations are done with that open the applications' keys.
pub(super) async fn with_keys(config: &Config, common: &CommonOptions) -> anyhow::Result<Context> {
    let apps = configured_store(config, common).await?;
    let context = of_store(apps.database().clone());
    Ok(Context {
        apps: Some(Administration::new(apps, Rules::from_config(config))),
        ..context
    })
}

/// What operations are done with that open no key.
pub(super) fn of_store(store: Store) -> Context {
    let caller = Caller {
        actor: author::actor(),
        origin: author::origin(),
        // Who can read the store's configuration can do everything.
        role: Role::Admin,
        at: SystemClock.now(),
        language: Language::En,
        token: None,
    };
    Context {
        caller,
        store,
        apps: None,
        running: None,
    }
}
