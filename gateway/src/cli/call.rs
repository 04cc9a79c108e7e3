//! `signpost call`: signs a request, sends it, prints the response. For trying out a gateway by hand.

use std::{
    env,
    io::{self, IsTerminal as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context, bail};
use reqwest::{Client, Error, Method, RequestBuilder, Response, header};
use signpost_kit::secret::{Secret, SecretSource};
use signpost_protocol::{
    header::HeaderNames,
    sign::{AppKey, SignCarrier, SignProfile, signed},
};
use url::Url;

use super::{
    connect::{ConnectOptions, send},
    print_error, print_line,
    sign::{
        AppOptions, BodyOptions, KEY_VARIABLE, carrier_for, encoded, key_of_environment,
        sign_in_headers, with_time,
    },
    source::read_secret,
    table::printable,
};

/// The type of a form.
const FORM: &str = "application/x-www-form-urlencoded";

#[derive(Debug, clap::Args)]
pub(super) struct CallArguments {
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    method: String,
    /// The path, for example "/login".
    path: String,
    /// Unencoded parameters: sent in the query, or in the form of a POST without another body.
    #[arg(value_name = "KEY=VALUE")]
    params: Vec<String>,
    #[command(flatten)]
    body: BodyOptions,
    #[command(flatten)]
    gateway: GatewayOptions,
    /// The language of error texts: en, zh-CN, zh-TW, ja or ko.
    #[arg(long)]
    language: Option<String>,
    /// The user's credential, as env:NAME or file:PATH.
    #[arg(long, value_name = "SOURCE")]
    authorization: Option<SecretSource>,
    /// With the credential that `signpost login` has stored for this gateway and application.
    #[arg(long, conflicts_with = "authorization")]
    login: bool,
    /// Also print the response's headers.
    #[arg(short, long)]
    include: bool,
}

/// Options of the commands that call a gateway.
#[derive(Debug, clap::Args)]
pub(super) struct GatewayOptions {
    #[command(flatten)]
    app: AppOptions,
    /// The gateway's address [default: http://127.0.0.1:8080].
    #[arg(long)]
    url: Option<Url>,
    /// The version to request.
    #[arg(long, value_name = "NAME")]
    version: Option<String>,
    #[command(flatten)]
    connect: ConnectOptions,
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
    let body = arguments.body.read()?;
    let mut request = target.request(&client, (method, path), &arguments.params, body)?;
    if let Some(language) = &arguments.language {
        request = request.header(&target.names.language, language);
    }
    let credential = match &arguments.authorization {
        Some(source) => Some(read_secret(source, "--authorization", "credential")?),
        None if arguments.login => Some(target.kept_credential()?),
        None => None,
    };
    if let Some(credential) = credential {
        request = request.header(&target.names.authorization, credential.expose());
    }
    show(send(request).await?, arguments.include).await
}

impl GatewayOptions {
    /// The gateway, and a client that connects to it.
    pub(super) fn target(&self) -> anyhow::Result<(CallTarget, Client)> {
        let config = self.app.gateway()?;
        let key = self.app.known_key(&config)?;
        let url = self
            .url
            .clone()
            .unwrap_or_else(|| config.public_url.to_url());
        let client = self.connect.client(&url)?;
        let target = CallTarget {
            names: config.headers,
            url,
            profile: self.app.rules.apply_to(config.sign.profile),
            key,
            app: self.app.app.clone(),
            version: self.version.clone(),
        };
        Ok((target, client))
    }
}

impl CallTarget {
    /// Where `signpost login` stores the credential for this gateway and application.
    pub(super) fn credential_file(&self) -> anyhow::Result<PathBuf> {
        let folder = |name| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let states =
            folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
        let states = states
            .context("neither XDG_STATE_HOME nor HOME is set: where is the credential stored?")?;
        let (scheme, host) = (self.url.scheme(), self.url.host_str().unwrap_or_default());
        let port = self.url.port_or_known_default().unwrap_or_default();
        let app = self
            .app
            .as_ref()
            .map_or(String::new(), |app| format!("+{app}"));
        // What an IPv6 address or a wrong ident can have is no part of a file's name.
        let is_plain = |one: char| one.is_ascii_alphanumeric() || "._+-".contains(one);
        let name = format!("{scheme}+{host}+{port}{app}").replace(|one| !is_plain(one), "_");
        Ok(states.join("signpost").join(name))
    }

    fn kept_credential(&self) -> anyhow::Result<Secret> {
        let file = self.credential_file()?;
        let source = SecretSource::File(file.clone());
        source.read().with_context(|| {
            format!(
                "--login: {} has no credential; signpost login stores one",
                file.display()
            )
        })
    }

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

    /// A request; signed, if it has parameters or a body, is no GET, or the key is known.
    pub(super) fn request(
        &self,
        client: &Client,
        (method, path): (&str, &str),
        params: &[String],
        body: Option<(Vec<u8>, String)>,
    ) -> anyhow::Result<RequestBuilder> {
        let url = self.url(path)?;
        let method = method.to_ascii_uppercase();
        let method: Method = method.parse().with_context(|| format!("'{method}'"))?;
        let must_sign = !params.is_empty() || body.is_some() || method != Method::GET;
        let key = match &self.key {
            Some(key) => Some(key.clone()),
            None if must_sign || env::var_os(KEY_VARIABLE).is_some() => Some(key_of_environment()?),
            None => None,
        };
        let profile = carrier_for(self.profile.clone(), method.as_str(), body.is_some())?;
        let mut request = match key {
            None => client.request(method, url),
            Some(key) if profile.carrier == SignCarrier::Parameters => {
                self.signed_in_parameters(client, &key, (method, url), params)?
            }
            Some(key) => {
                let signing = (&key, &profile);
                self.signed_in_headers(client, signing, (method, url), params, body)?
            }
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

impl CallTarget {
    fn signed_in_parameters(
        &self,
        client: &Client,
        key: &AppKey,
        (method, mut url): (Method, Url),
        params: &[String],
    ) -> anyhow::Result<RequestBuilder> {
        let target = (method.as_str(), url.path());
        let signed = signed(&self.profile, key, target, &with_time(params)?);
        let signed = signed.context("the parameters")?;
        if method == Method::GET {
            url.set_query(Some(&signed));
            return Ok(client.get(url));
        }
        Ok(client
            .post(url)
            .header(header::CONTENT_TYPE, FORM)
            .body(signed))
    }

    fn signed_in_headers(
        &self,
        client: &Client,
        (key, profile): (&AppKey, &SignProfile),
        (method, mut url): (Method, Url),
        params: &[String],
        body: Option<(Vec<u8>, String)>,
    ) -> anyhow::Result<RequestBuilder> {
        let pairs = encoded(params)?;
        let body = match body {
            None if method == Method::POST && !pairs.is_empty() => {
                Some((pairs.into_bytes(), FORM.to_owned()))
            }
            body => {
                url.set_query((!pairs.is_empty()).then_some(&pairs));
                body
            }
        };
        let bytes = body.as_ref().map_or(&b""[..], |(bytes, _)| bytes);
        let target = &url[url::Position::BeforePath..];
        let target = (method.as_str(), target);
        let signed = sign_in_headers((&self.names, profile), key, target, bytes)?;
        let mut request = client.request(method, url.clone());
        for (name, value) in signed.headers {
            request = request.header(name, value);
        }
        if let Some((bytes, content_type)) = body {
            request = request
                .header(header::CONTENT_TYPE, content_type)
                .body(bytes);
        }
        Ok(request)
    }
}

async fn show(response: Response, with_headers: bool) -> anyhow::Result<ExitCode> {
    let status = response.status();
    print_error(&status.to_string());
    // What a gateway sends must not command a terminal.
    let is_terminal = io::stdout().is_terminal();
    let shown = |text: &str| match is_terminal {
        true => text.lines().map(printable).collect::<Vec<_>>().join("\n"),
        false => text.to_owned(),
    };
    for (name, value) in response.headers() {
        if with_headers || name == header::LOCATION {
            let value = String::from_utf8_lossy(value.as_bytes());
            print_error(&format!("{name}: {}", printable(&value)));
        }
    }
    let body = response.bytes().await.map_err(Error::without_url);
    let body = body.context("the response was incomplete")?;
    match serde_json::from_slice::<serde_json::Value>(&body) {
        Ok(json) => print_line(&shown(&serde_json::to_string_pretty(&json)?)),
        Err(_) => print_line(&shown(&String::from_utf8_lossy(&body))),
    }
    Ok(if status.is_success() || status.is_redirection() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
