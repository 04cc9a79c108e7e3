//! `signpost sign`: signs parameters as a query or form body.

use std::{path::PathBuf, process::ExitCode};

use anyhow::{Context, anyhow};
use signpost_kit::{
    clock::{Clock, SystemClock},
    secret::SecretSource,
};
use signpost_management::administration::rules::ProfileChoice;
use signpost_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    param::Params,
    sign::{AppKey, canonical_for_display, signed},
};
use signpost_proxy::{Config, MultiApplications, program::Applications};

use super::{print_error, print_line, source::read_key};

/// The variable with the application's key, if neither `--key` nor the configuration has it.
pub(super) const KEY_VARIABLE: &str = "SIGNPOST_APP_KEY";

#[derive(Debug, clap::Args)]
pub(super) struct SignArguments {
    #[command(flatten)]
    app: AppOptions,
    /// The method, if the profile covers the request.
    #[arg(long, default_value = "GET")]
    method: String,
    /// The path, if the profile covers the request.
    #[arg(long, default_value = "/")]
    path: String,
    /// Also print the canonical string, with <APP_KEY> in place of the key.
    #[arg(long)]
    canonical: bool,
    /// Unencoded parameters.
    #[arg(value_name = "KEY=VALUE")]
    params: Vec<String>,
}

pub(super) fn run(arguments: &SignArguments) -> anyhow::Result<ExitCode> {
    let config = arguments.app.gateway()?;
    let profile = arguments.app.rules.apply_to(config.sign.profile.clone());
    let key = match arguments.app.known_key(&config)? {
        Some(key) => key,
        None => key_of_environment()?,
    };
    let unsigned = with_time(&arguments.params)?;
    if arguments.canonical {
        let params = Params::parse(unsigned.as_bytes(), b"", usize::MAX)?;
        let canonical =
            canonical_for_display(&profile, &arguments.method, &arguments.path, &params);
        print_error(&String::from_utf8_lossy(&canonical));
    }
    let target = (&*arguments.method, &*arguments.path);
    print_line(&signed(&profile, &key, target, &unsigned).context("the parameters")?);
    Ok(ExitCode::SUCCESS)
}

/// Options that name an application and its gateway.
#[derive(Debug, clap::Args)]
pub(super) struct AppOptions {
    /// Take prefix, address, sign profile and, in single-application mode, the key from this gateway configuration.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The prefix of the convention headers [default: Acme].
    #[arg(long)]
    prefix: Option<Prefix>,
    /// The application's ident.
    #[arg(long)]
    pub app: Option<String>,
    /// The application's key, as env:NAME or file:PATH [default: env:SIGNPOST_APP_KEY].
    #[arg(long, value_name = "SOURCE")]
    key: Option<SecretSource>,
    #[command(flatten)]
    pub rules: ProfileChoice,
}

impl AppOptions {
    /// The gateway's configuration: the file's, or the defaults. `--prefix` prevails.
    pub(super) fn gateway(&self) -> anyhow::Result<Config> {
        let mut config = match &self.config {
            Some(file) => Config::load(file)?,
            None => Config::of_client()?,
        };
        if let Some(prefix) = &self.prefix {
            config.headers = HeaderNames::new(prefix, &HeaderOverrides::default())?;
        }
        Ok(config)
    }

    /// The application's key: from the option, or else from the configuration in single-application mode.
    pub(super) fn known_key(&self, config: &Config) -> anyhow::Result<Option<AppKey>> {
        match (&self.key, &config.applications) {
            (Some(source), _) => read_key(source).map(Some),
            (None, Applications::Single(key)) if self.config.is_some() => Ok(Some(key.clone())),
            (None, _) => Ok(None),
        }
    }

    /// The settings of the stored applications, unless an option gives the key.
    pub(super) fn stored<'c>(&self, config: &'c Config) -> Option<&'c MultiApplications> {
        match &config.applications {
            Applications::Multi(multi) if self.key.is_none() => Some(multi),
            _ => None,
        }
    }
}

/// The key in the environment.
pub(super) fn key_of_environment() -> anyhow::Result<AppKey> {
    read_key(&SecretSource::Env(KEY_VARIABLE.into()))
}

/// Encodes the parameters, and adds `time` unless present.
pub(super) fn with_time(params: &[String]) -> anyhow::Result<String> {
    let mut encoded = url::form_urlencoded::Serializer::new(String::new());
    let mut has_time = false;
    for param in params {
        let (key, value) = param
            .split_once('=')
            .ok_or_else(|| anyhow!("'{param}': a parameter must be KEY=VALUE"))?;
        has_time |= key == signpost_protocol::sign::TIME;
        encoded.append_pair(key, value);
    }
    if !has_time {
        encoded.append_pair(
            signpost_protocol::sign::TIME,
            &SystemClock.now().as_millis().to_string(),
        );
    }
    Ok(encoded.finish())
}
