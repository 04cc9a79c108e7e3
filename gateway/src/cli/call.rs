//! `signpost call`: signs a request, sends it, prints the response. For trying out a gateway by hand.

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use reqwest::{Client, RequestBuilder, Response, header};
use signpost_kit::secret::SecretSource;
use signpost_protocol::{
    header::{HeaderNames, HeaderOverrides, Prefix},
    sign::{AppKey, SignProfile, signed},
};
use url::Url;

use super::{
    connect::ConnectOptions,
    print_error, print_line,
    sign::{SignRules, with_time},
    source::{read_key, read_secret},
};
use crate::config::{Applications, Config};

/// The variable with the application's key, if neither `--key` nor the configuration has it.
const KEY_VARIABLE: &str = "SIGNPOST_APP_KEY";

#[derive(Debug, clap::Args)]
pub(super) struct CallArguments {
    /// GET or POST.
    method: String,
    /// The path, for example "/login".
    path: String,
    /// Unencoded parameters: sent in the query of a GET, in the form of a POST.
    #[arg(value_name = "KEY=VALUE")]
    params: Vec<String>,
    #[command(flatten)]
    gateway: GatewayOptions,
    /// The language of error texts: en, zh-CN, zh-TW, ja or ko.
    #[arg(long)]
    language: Option<String>,
    /// The user's credential, as env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE")]
    authorization: Option<SecretSource>,
    /// Also print the response's headers.
    #[arg(short, long)]
    include: bool,
}

/// Options of the commands that call a gateway.
#[derive(Debug, clap::Args)]
pub(super) struct GatewayOptions {
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
    #[command(flatten)]
    connect: ConnectOptions,
    #[command(flatten)]
    rules: SignRules,
}

/// The gateway to call, and how to sign for it.
pub(super) struct CallTarget {
    names: HeaderNames,
    url: Url,
    profile: SignProfile,
    key: Option<AppKey>,
    app: Option<String>,
    version: Option<String>,
}

pub(super) async fn run(arguments: CallArguments) -> anyhow::Result<ExitCode> {
    let (target, client) = arguments.gateway.target()?;
    let (method, path) = (&arguments.method, &arguments.path);
    let mut request = target.request(&client, method, path, &arguments.params)?;
    if let Some(language) = &arguments.language {
        request = request.header(&target.names.language, language);
    }
    if let Some(source) = &arguments.authorization {
        let credential = read_secret(source, "--authorization", "credential")?;
        request = request.header(&target.names.authorization, credential.expose());
    }
    let response = request.send().await.context("cannot call the gateway")?;
    show(response, arguments.include).await
}

impl GatewayOptions {
    /// The gateway, and a client that connects to it.
    pub(super) fn target(&self) -> anyhow::Result<(CallTarget, Client)> {
        let derive = |prefix: &Prefix| HeaderNames::new(prefix, &HeaderOverrides::default());
        let key = self.key.as_ref().map(read_key).transpose()?;
        let (names, url, profile, own_key) = match &self.config {
            Some(file) => {
                let config = Config::load(file)?;
                let own_key = match config.applications {
                    Applications::Single(key) => Some(key),
                    Applications::Multi(_) => None,
                };
                let url = config.public_url.to_url();
                (config.headers, url, config.sign.profile, own_key)
            }
            None => (
                derive(&"Acme".parse()?)?,
                Url::parse("http://127.0.0.1:8080")?,
                SignProfile::default(),
                None,
            ),
        };
        let url = self.url.clone().unwrap_or(url);
        let client = self.connect.client(&url)?;
        let target = CallTarget {
            names: self.prefix.as_ref().map_or(Ok(names), derive)?,
            url,
            profile: self.rules.profile(profile),
            key: key.or(own_key),
            app: self.app.clone(),
            version: self.version.clone(),
        };
        Ok((target, client))
    }
}

impl CallTarget {
    /// The address of a request, without parameters.
    fn url(&self, path: &str) -> anyhow::Result<Url> {
        if !path.starts_with('/') || path.contains(['?', '#']) {
            bail!(
                "'{path}': the path must begin with '/' and have no query; give parameters as KEY=VALUE"
            );
        }
        let url = self.url.join(path).context("the path")?;
        if url.origin() != self.url.origin() {
            bail!("'{path}' points to another host than {}", self.url);
        }
        Ok(url)
    }

    /// A request; signed, if it has parameters, is a POST, or the key is known.
    pub(super) fn request(
        &self,
        client: &Client,
        method: &str,
        path: &str,
        params: &[String],
    ) -> anyhow::Result<RequestBuilder> {
        let mut url = self.url(path)?;
        let method = method.to_ascii_uppercase();
        let must_sign = !params.is_empty() || method == "POST";
        let read;
        let key = match &self.key {
            Some(key) => Some(key),
            None if must_sign || env::var_os(KEY_VARIABLE).is_some() => {
                read = read_key(&SecretSource::Env(KEY_VARIABLE.into()))?;
                Some(&read)
            }
            None => None,
        };
        let sign = |key| {
            let (target, unsigned) = ((&*method, url.path()), with_time(params)?);
            signed(&self.profile, key, target, &unsigned).context("the parameters")
        };
        let signed = key.map(sign).transpose()?;
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
            (&self.names.app, &self.app),
            (&self.names.version, &self.version),
        ];
        for (name, value) in given {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        Ok(request)
    }
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
