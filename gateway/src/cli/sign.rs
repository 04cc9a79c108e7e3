//! `signpost sign`: signs parameters as a query or form body.

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::{
    param::Params,
    sign::{canonical_for_display, signed},
};

use super::{
    call::{AppOptions, key_of_environment},
    print_error, print_line,
};

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
