//! `signpost sign`: signs parameters as a query or form body.

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use signpost_kit::{
    clock::{Clock, SystemClock},
    secret::SecretSource,
};
use signpost_protocol::{
    param::Params,
    sign::{ReplayPolicy, SignAlgorithm, SignCover, SignProfile, canonical_for_display, signed},
};

use super::{print_error, print_line, source::read_key};
use crate::directory::apps::rules::ProfileChoice;

#[derive(Debug, clap::Args)]
pub(super) struct SignArguments {
    #[command(flatten)]
    rules: SignRules,
    /// The application's key, as env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE", default_value = "env:SIGNPOST_APP_KEY")]
    key: SecretSource,
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

/// Options that choose a sign profile.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct SignRules {
    /// The preset of the sign profile.
    #[arg(long, value_parser = preset())]
    preset: Option<SignProfile>,
    /// The hash algorithm; a preset does not change it.
    #[arg(long, value_parser = word::<SignAlgorithm>(["md5", "hmac-sha256"]))]
    algorithm: Option<SignAlgorithm>,
    /// What is signed: the parameters, or also method and path; a preset does not change it.
    #[arg(long, value_parser = word::<SignCover>(["parameters", "request"]))]
    cover: Option<SignCover>,
    /// Whether the gateway accepts a repeated request; does not change the signature.
    #[arg(long, value_parser = word::<ReplayPolicy>(["allow", "reject"]))]
    replay: Option<ReplayPolicy>,
}

/// Reads one of these words, as in a sign profile's file.
fn word<T>(words: [&'static str; 2]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| serde_json::from_value::<T>(word.into()))
}

impl SignRules {
    /// The chosen settings.
    pub(super) fn choice(&self) -> ProfileChoice {
        ProfileChoice {
            preset: self.preset.clone(),
            algorithm: self.algorithm,
            cover: self.cover,
            replay: self.replay,
        }
    }

    /// The chosen profile, based on `base`.
    pub(super) fn profile(&self, base: SignProfile) -> SignProfile {
        self.choice().apply_to(base)
    }
}

pub(super) fn run(arguments: &SignArguments) -> anyhow::Result<ExitCode> {
    let profile = arguments.rules.profile(SignProfile::default());
    let key = read_key(&arguments.key)?;
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

fn preset() -> impl TypedValueParser<Value = SignProfile> {
    PossibleValuesParser::new(SignProfile::PRESETS)
        .try_map(|name| SignProfile::preset(&name).ok_or("no such preset"))
}
