//! `signpost call`: signs a request, sends it, prints the response. For trying out a gateway by hand.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use reqwest::{Client, RequestBuilder, Response, header, redirect};
use signpost_kit::secret::SecretSource;
use signpost_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    sign::{AppKey, SignProfile},
};
use url::Url;

use super::{
    print_error, print_line,
    sign::{SignRules, signed, with_time},
    source::{read_key, read_secret},
};
use crate::config::{Applications, Config};

/// Timeout of the request; longer than the longest long poll.
const TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Debug, clap::Args)]
pub(super) struct CallArguments {
    /// GET or POST.
    method: String,
    /// The path, for example "/login".
    path: String,
    /// Unencoded parameters: sent in the query of a GET, in the form of a POST.
    #[arg(value_name = "KEY=VALUE")]
    params: Vec<String>,
    /// Take prefix, address, sign profile and, in single-application mode, the key from this gateway configuration.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The gateway's address [default: http://127.0.0.1:8080].
    #[arg(long)]
    url: Option<Url>,
    /// The prefix of the convention headers [default: Acme].
    #[arg(long)]
    prefix: Option<Prefix>,
    /// The application's ident.
    #[arg(long)]
    app: Option<String>,
    /// The application's key, as env:NAME or file:PATH [default: env:SIGNPOST_APP_KEY].
    #[arg(long, value_name = "SOURCE")]
    key: Option<SecretSource>,
    /// The version to request.
    #[arg(long, value_name = "NAME")]
    version: Option<String>,
    /// The language of error texts: en, zh-CN, zh-TW, ja or ko.
    #[arg(long)]
    language: Option<String>,
    /// The user's credential, as env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE")]
    authorization: Option<SecretSource>,
    #[command(flatten)]
    rules: SignRules,
    /// Also print the response's headers.
    #[arg(short, long)]
    include: bool,
}

/// The gateway to call, and how to sign for it.
struct CallTarget {
    names: HeaderNames,
    url: Url,
    profile: SignProfile,
    key: Option<AppKey>,
}

pub(super) async fn run(arguments: CallArguments) -> anyhow::Result<ExitCode> {
    let target = call_target(&arguments)?;
    let request = request(&arguments, target)?;
    let response = request.send().await.context("cannot call the gateway")?;
    show(response, arguments.include).await
}

fn call_target(arguments: &CallArguments) -> anyhow::Result<CallTarget> {
    let derive = |prefix: &Prefix| HeaderNames::new(prefix, &HeaderOverrides::default());
    let default_prefix: Prefix = "Acme".parse()?;
    let base = match &arguments.config {
        Some(file) => {
            let config = Config::load(file)?;
            let key = match config.applications {
                Applications::Single(key) => Some(key),
                Applications::Multi(_) => None,
            };
            let profile = config.sign.profile;
            CallTarget {
                names: config.headers,
                url: config.public_url.to_url(),
                profile,
                key,
            }
        }
        None => CallTarget {
            names: derive(&default_prefix)?,
            url: Url::parse("http://127.0.0.1:8080")?,
            profile: SignProfile::default(),
            key: None,
        },
    };
    Ok(CallTarget {
        names: arguments.prefix.as_ref().map_or(Ok(base.names), derive)?,
        url: arguments.url.clone().unwrap_or(base.url),
        profile: arguments.rules.profile(base.profile),
        key: base.key,
    })
}

/// The address of the request, without parameters.
fn url(arguments: &CallArguments, target: &CallTarget) -> anyhow::Result<Url> {
    if !arguments.path.starts_with('/') || arguments.path.contains(['?', '#']) {
        bail!(
            "'{}': the path must begin with '/' and have no query; give parameters as KEY=VALUE",
            arguments.path
        );
    }
    let url = target.url.join(&arguments.path).context("the path")?;
    if url.origin() != target.url.origin() {
        bail!(
            "'{}' points to another host than {}",
            arguments.path,
            target.url
        );
    }
    Ok(url)
}

fn request(arguments: &CallArguments, target: CallTarget) -> anyhow::Result<RequestBuilder> {
    // Fails only if a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT)
        .no_proxy()
        .build()?;
    let mut url = url(arguments, &target)?;
    let method = arguments.method.to_ascii_uppercase();
    let has_params = !arguments.params.is_empty() || method == "POST";
    let signed = if has_params {
        let key = match (&arguments.key, target.key) {
            (Some(source), _) => read_key(source)?,
            (None, Some(key)) => key,
            (None, None) => read_key(&SecretSource::from("env:SIGNPOST_APP_KEY"))?,
        };
        let unsigned = with_time(&arguments.params)?;
        Some(signed(
            &unsigned,
            &target.profile,
            &key,
            &method,
            url.path(),
        )?)
    } else {
        None
    };
    let mut request = match method.as_str() {
        "GET" => {
            url.set_query(signed.as_deref());
            client.get(url)
        }
        "POST" => client
            .post(url)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(signed.unwrap_or_default()),
        other => bail!("'{other}': the method must be GET or POST"),
    };
    let given = [
        (&target.names.app, &arguments.app),
        (&target.names.version, &arguments.version),
        (&target.names.language, &arguments.language),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    if let Some(source) = &arguments.authorization {
        let credential = read_secret(source, "--authorization", "credential")?;
        request = request.header(&target.names.authorization, credential.expose());
    }
    Ok(request)
}

async fn show(response: Response, with_headers: bool) -> anyhow::Result<ExitCode> {
    let status = response.status();
    print_error(&status.to_string());
    for (name, value) in response.headers() {
        if with_headers || name == header::LOCATION {
            print_error(&format!(
                "{name}: {}",
                String::from_utf8_lossy(value.as_bytes())
            ));
        }
    }
    let body = response
        .bytes()
        .await
        .context("the response was incomplete")?;
    match serde_json::from_slice::<serde_json::Value>(&body) {
        Ok(json) => print_line(&serde_json::to_string_pretty(&json)?),
        Err(_) => print_line(&String::from_utf8_lossy(&body)),
    }
    Ok(if status.is_success() || status.is_redirection() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
