//! `signpost call`: signs a request, sends it, prints the answer. What a person tries things with.

#![allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    rustdoc::invalid_html_tags,
    reason = "these comments are the help that a terminal shows"
)]

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use gateway_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    sign::{AppKey, SignProfile},
};
use reqwest::{Client, RequestBuilder, Response, header, redirect};
use signpost_kit::secret::SecretSource;
use url::Url;

use super::{
    key::KeySource,
    print_error, print_line,
    sign::{SignRules, signed, with_time},
};
use crate::config::{Applications, Config};

/// Longer than the longest long poll.
const PATIENCE: Duration = Duration::from_secs(90);

#[derive(Debug, clap::Args)]
pub(super) struct CallArguments {
    /// GET or POST.
    method: String,
    /// The path, "/login" say.
    path: String,
    /// Parameters, not yet encoded: in the query of a GET, in the form of a POST.
    #[arg(value_name = "KEY=VALUE")]
    params: Vec<String>,
    /// Take prefix, address, sign profile and, in single-application mode, the key from the gateway's file.
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
    /// The application's key: env:NAME or file:PATH [default: env:SIGNPOST_APP_KEY].
    #[arg(long, value_name = "SOURCE")]
    key: Option<KeySource>,
    /// The version to ask for.
    #[arg(long, value_name = "NAME")]
    version: Option<String>,
    /// The language of texts.
    #[arg(long)]
    language: Option<String>,
    /// The user's credential: env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE")]
    authorization: Option<String>,
    #[command(flatten)]
    rules: SignRules,
    /// Also print the answer's headers.
    #[arg(short, long)]
    include: bool,
}

/// What is known of the gateway.
struct Known {
    names: HeaderNames,
    url: Url,
    profile: SignProfile,
    key: Option<AppKey>,
}

pub(super) async fn run(arguments: CallArguments) -> anyhow::Result<ExitCode> {
    let known = known(&arguments)?;
    let request = request(&arguments, known)?;
    let response = request
        .send()
        .await
        .context("the gateway does not answer")?;
    show(response, arguments.include).await
}

fn known(arguments: &CallArguments) -> anyhow::Result<Known> {
    let derive = |prefix: &Prefix| HeaderNames::new(prefix, &HeaderOverrides::default());
    let usual_prefix: Prefix = "Acme".parse()?;
    let usual = match &arguments.config {
        Some(file) => {
            let config = Config::load(file)?;
            let key = match config.applications {
                Applications::Single(key) => Some(key),
                Applications::Multi(_) => None,
            };
            let profile = config.sign.profile;
            Known {
                names: config.headers,
                url: config.public_url.to_url(),
                profile,
                key,
            }
        }
        None => Known {
            names: derive(&usual_prefix)?,
            url: Url::parse("http://127.0.0.1:8080")?,
            profile: SignProfile::default(),
            key: None,
        },
    };
    Ok(Known {
        names: arguments.prefix.as_ref().map_or(Ok(usual.names), derive)?,
        url: arguments.url.clone().unwrap_or(usual.url),
        profile: arguments.rules.profile(usual.profile),
        key: usual.key,
    })
}

fn request(arguments: &CallArguments, known: Known) -> anyhow::Result<RequestBuilder> {
    // What it holds is the process's own choice of cryptography; a second choice is no error here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .redirect(redirect::Policy::none())
        .timeout(PATIENCE)
        .no_proxy()
        .build()?;
    if !arguments.path.starts_with('/') || arguments.path.contains(['?', '#']) {
        bail!(
            "'{}': a path begins with '/'; parameters follow as KEY=VALUE",
            arguments.path
        );
    }
    let mut url = known.url.join(&arguments.path).context("the path")?;
    if url.origin() != known.url.origin() {
        bail!(
            "'{}' leads to another host than {}",
            arguments.path,
            known.url
        );
    }
    let method = arguments.method.to_ascii_uppercase();
    let has_params = !arguments.params.is_empty() || method == "POST";
    let signed = if has_params {
        let key = match (&arguments.key, known.key) {
            (Some(source), _) => source.clone().read()?,
            (None, Some(key)) => key,
            (None, None) => "env:SIGNPOST_APP_KEY".parse::<KeySource>()?.read()?,
        };
        let unsigned = with_time(&arguments.params)?;
        Some(signed(
            &unsigned,
            &known.profile,
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
        other => bail!("'{other}': the methods are GET and POST"),
    };
    let given = [
        (known.names.app(), &arguments.app),
        (known.names.version(), &arguments.version),
        (known.names.language(), &arguments.language),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    if let Some(source) = &arguments.authorization {
        let source = SecretSource::from(source.as_str());
        if let SecretSource::Literal(_) = source {
            bail!("--authorization takes env:NAME or file:PATH, never the credential itself");
        }
        let credential = source.read().context("--authorization")?;
        request = request.header(known.names.authorization(), credential.expose());
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
    let body = response.bytes().await.context("the answer broke off")?;
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
