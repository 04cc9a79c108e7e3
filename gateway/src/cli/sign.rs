//! `signpost sign`: signs parameters as a query or form body.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, anyhow};
use http::HeaderName;
use signpost_kit::{
    clock::{Clock, SystemClock},
    secret::SecretSource,
};
use signpost_management::administration::rules::ProfileChoice;
use signpost_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    param::Params,
    sign::{
        AppKey, BodyHash, SignCarrier, SignProfile, SignedHead, TIME, canonical_for_display,
        sign_head, signed,
    },
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
    #[command(flatten)]
    body: BodyOptions,
    /// Unencoded parameters.
    #[arg(value_name = "KEY=VALUE")]
    params: Vec<String>,
}

/// A body that is no form.
#[derive(Debug, clap::Args)]
pub(super) struct BodyOptions {
    /// A JSON body, signed in headers.
    #[arg(long, value_name = "TEXT", conflicts_with = "body")]
    json: Option<String>,
    /// A file with a body, signed in headers.
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// The type of --body [default: application/octet-stream].
    #[arg(long, value_name = "TYPE", requires = "body")]
    content_type: Option<String>,
}

impl BodyOptions {
    /// The body and its type, if there is one.
    pub(super) fn read(&self) -> anyhow::Result<Option<(Vec<u8>, String)>> {
        if let Some(json) = &self.json {
            serde_json::from_str::<serde_json::Value>(json).context("--json is no JSON")?;
            return Ok(Some((
                json.clone().into_bytes(),
                "application/json".to_owned(),
            )));
        }
        let Some(file) = &self.body else {
            return Ok(None);
        };
        let body = fs::read(file).with_context(|| format!("--body {}", file.display()))?;
        let content_type = self.content_type.as_deref();
        let content_type = content_type.unwrap_or("application/octet-stream");
        Ok(Some((body, content_type.to_owned())))
    }
}

/// A signature in headers.
pub(super) struct SignedHeaders {
    /// The headers, with their names.
    pub headers: Vec<(HeaderName, String)>,
    /// What was signed, with <APP_KEY> in place of the key.
    text: String,
}

/// Signs a request in headers: method, target and body.
pub(super) fn sign_in_headers(
    (names, profile): (&HeaderNames, &SignProfile),
    key: &AppKey,
    (method, target): (&str, &str),
    body: &[u8],
) -> anyhow::Result<SignedHeaders> {
    let time = SystemClock.now().as_millis().to_string();
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| anyhow!("no random bytes: {error}"))?;
    let nonce = hex::encode(random);
    let head = SignedHead {
        method,
        target,
        time: time.as_bytes(),
        nonce: nonce.as_bytes(),
    };
    let (algorithm, body) = (profile.header_algorithm(), BodyHash::of(body));
    let sign = sign_head(algorithm, key, head, &body).to_hex();
    let text = head.for_display(algorithm, &body);
    let headers = [
        (&names.time, time),
        (&names.sign, sign),
        (&names.nonce, nonce),
    ];
    let headers = headers.map(|(name, value)| (name.clone(), value));
    Ok(SignedHeaders {
        headers: headers.to_vec(),
        text,
    })
}

/// The profile of a request with this body and method: only headers sign what is no form.
pub(super) fn carrier_for(
    mut profile: SignProfile,
    method: &str,
    has_body: bool,
) -> anyhow::Result<SignProfile> {
    let needs_headers = has_body || !matches!(method, "GET" | "POST");
    match profile.carrier {
        SignCarrier::Parameters if needs_headers => Err(anyhow!(
            "only headers sign a {method} or a body that is no form; give --carrier headers, or both"
        )),
        SignCarrier::Both if !needs_headers => {
            profile.carrier = SignCarrier::Parameters;
            Ok(profile)
        }
        _ => Ok(profile),
    }
}

pub(super) fn run(arguments: &SignArguments) -> anyhow::Result<ExitCode> {
    let config = arguments.app.gateway()?;
    let profile = arguments.app.rules.apply_to(config.sign.profile.clone());
    let key = match arguments.app.known_key(&config)? {
        Some(key) => key,
        None => key_of_environment()?,
    };
    let (method, body) = (
        arguments.method.to_ascii_uppercase(),
        arguments.body.read()?,
    );
    let profile = carrier_for(profile, &method, body.is_some())?;
    if profile.carrier != SignCarrier::Parameters {
        return print_headers(arguments, (&config.headers, &profile), &key, (method, body));
    }
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

/// Prints the headers that sign a request.
fn print_headers(
    arguments: &SignArguments,
    (names, profile): (&HeaderNames, &SignProfile),
    key: &AppKey,
    (method, body): (String, Option<(Vec<u8>, String)>),
) -> anyhow::Result<ExitCode> {
    let query = encoded(&arguments.params)?;
    let target = match &*query {
        "" => arguments.path.clone(),
        query => format!("{}?{query}", arguments.path),
    };
    let body = body.map_or_else(Vec::new, |(body, _)| body);
    let signed = sign_in_headers((names, profile), key, (&method, &target), &body)?;
    if arguments.canonical {
        print_error(&signed.text);
    }
    for (name, value) in &signed.headers {
        print_line(&format!("{}: {value}", names.spelled(name)));
    }
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
    let is_time = |param: &String| param.split('=').next() == Some(TIME);
    let time = format!("{TIME}={}", SystemClock.now().as_millis());
    let time = (!params.iter().any(is_time)).then_some(time);
    encoded(&[params, time.as_slice()].concat())
}

/// Encodes the parameters.
pub(super) fn encoded(params: &[String]) -> anyhow::Result<String> {
    let mut encoded = url::form_urlencoded::Serializer::new(String::new());
    for param in params {
        let (key, value) = param
            .split_once('=')
            .ok_or_else(|| anyhow!("'{param}': a parameter must be KEY=VALUE"))?;
        encoded.append_pair(key, value);
    }
    Ok(encoded.finish())
}
