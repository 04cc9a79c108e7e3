//! `signpost login`: logs in by polling, and stores the credential for `signpost call --login`. With `--user` it is the
//! browser, too, at the sandbox provider only. It reads the members of the login service's default responses. CONTRACT 8.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, IsTerminal as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use qrcode::{EcLevel, QrCode, render::unicode::Dense1x2};
use reqwest::{Client, Error, Response, StatusCode, header};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::time::{Instant, sleep};
use url::{Host, Url, form_urlencoded};

use super::{
    call::{CallTarget, GatewayOptions},
    connect::send,
    print_error, print_line,
    table::printable,
};

/// How long a call waits for the login's end.
const WAIT: Duration = Duration::from_secs(30);
/// Limit of a response that is shown, in characters.
const MAX_SHOWN: usize = 2000;

#[derive(Debug, clap::Args)]
pub(super) struct LoginArguments {
    #[command(flatten)]
    gateway: GatewayOptions,
    /// Confirm as this user of the sandbox provider, for example ada; any other provider is refused. Without it, open the
    /// address that is printed.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Store the credential in this file, and not where `call --login` finds it. Only its owner can read it.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the credential, and store it nowhere.
    #[arg(long, conflicts_with = "output")]
    print: bool,
}

pub(super) async fn run(arguments: LoginArguments) -> anyhow::Result<ExitCode> {
    let (target, client) = arguments.gateway.target()?;
    let path = match arguments.output {
        Some(path) => Some(path),
        None if arguments.print => None,
        None => Some(own_file(&target)?),
    };
    // Before the login: a path that cannot be written costs none.
    let file = path.map(CredentialFile::create).transpose()?;
    let begun = json_of("/login", post(&target, &client, "/login", &[]).await?)?;
    let authorize_url: Url = text(&begun, "authorize_url")?.parse()?;
    if !["http", "https"].contains(&authorize_url.scheme()) {
        bail!("the response's authorize_url is no address of a page");
    }
    match &arguments.user {
        Some(user) => Browser::new(client.clone(), &authorize_url)
            .log_in(authorize_url, user)
            .await
            .with_context(|| format!("cannot log in as {user}"))?,
        None => invite(&authorize_url, text(&begun, "user_code")?)?,
    }
    let checked = wait_for_end(&target, &client, &begun).await?;
    let status = text(&checked, "status")?;
    if status != "complete" {
        let reason = checked["reason"]
            .as_str()
            .unwrap_or("it was not confirmed in time");
        bail!("the login is {}: {}", printable(status), printable(reason));
    }
    let credential = text(&checked["login"], "authorization")?;
    match file {
        Some(file) => {
            let path = file.path.clone();
            file.write(credential)?;
            print_error(&format!("The credential is in {}", path.display()));
        }
        None => print_line(credential),
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks for the login's status until it has one, or should have. CONTRACT 8 and 10.
async fn wait_for_end(
    target: &CallTarget,
    client: &Client,
    begun: &Value,
) -> anyhow::Result<Value> {
    let seconds = |name: &str, default, max| {
        let seconds = begun[name].as_u64().unwrap_or(default);
        Duration::from_secs(seconds.clamp(1, max))
    };
    let (pause, lifetime) = (seconds("interval", 2, 60), seconds("expires_in", 600, 3600));
    let token = format!("token={}", text(begun, "token")?);
    let params = [token, format!("wait={}", WAIT.as_secs())];
    let began = Instant::now();
    loop {
        let asked = Instant::now();
        let response = post(target, client, "/check", &params).await?;
        if !is_to_repeat(response.0) {
            let checked = json_of("/check", response)?;
            if checked["status"] != "pending" {
                return Ok(checked);
            }
        }
        if began.elapsed() > lifetime {
            bail!("the login was not confirmed in time");
        }
        // It did not wait: too many wait, or a backend stops.
        if asked.elapsed() < WAIT / 2 {
            sleep(pause).await;
        }
    }
}

/// Whether the same call can succeed later. CONTRACT 7.
fn is_to_repeat(status: StatusCode) -> bool {
    [408, 429, 502, 503, 504].contains(&status.as_u16())
}

/// Asks the person to open the address: in a terminal by a QR code, too.
fn invite(address: &Url, user_code: &str) -> anyhow::Result<()> {
    if io::stderr().is_terminal() {
        print_error(&qr_code(address.as_str())?);
    }
    let user_code = printable(user_code);
    print_error(&format!(
        "Open {address}\nand compare the code: {user_code}"
    ));
    Ok(())
}

/// A QR code in half blocks: two modules, one above the other, are a character. Its colours are the palette's own black and white, which
/// no theme of a terminal changes, so that it has them on dark and on light ones.
fn qr_code(text: &str) -> anyhow::Result<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L)?;
    let code = code.render::<Dense1x2>();
    let rows = code.build();
    let rows = rows
        .lines()
        .map(|row| format!("\x1b[38;5;16;48;5;231m{row}\x1b[0m"));
    Ok(rows.collect::<Vec<_>>().join("\n"))
}

/// Sends a signed POST, and returns status and body.
async fn post(
    target: &CallTarget,
    client: &Client,
    path: &str,
    params: &[String],
) -> anyhow::Result<(StatusCode, String)> {
    let request = target.request(client, ("POST", path), params, None)?;
    let response = send(request).await?;
    let status = response.status();
    let body = response.text().await.map_err(Error::without_url);
    let body = body.context("the response was incomplete")?;
    Ok((status, body))
}

/// The JSON of a response, which must be a success.
fn json_of(path: &str, (status, body): (StatusCode, String)) -> anyhow::Result<Value> {
    if !status.is_success() {
        let said: String = body.chars().take(MAX_SHOWN).collect();
        bail!("POST {path}: {status}\n{}", printable(&said));
    }
    serde_json::from_str(&body).with_context(|| format!("POST {path}: the response is no JSON"))
}

fn text<'a>(members: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    let value = members[name].as_str();
    value.with_context(|| format!("the response has no {name}: is this version a login service, and with its default names?"))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Where `call --login` finds the credential, in a folder that only its owner can read.
fn own_file(target: &CallTarget) -> anyhow::Result<PathBuf> {
    let path = target.credential_file()?;
    if let Some(folder) = path.parent() {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        created.with_context(|| cannot_write(folder))?;
    }
    Ok(path)
}

/// The file for the credential. What it has stays until there is one: then it is replaced. A device or a pipe is written to.
struct CredentialFile {
    path: PathBuf,
    kind: FileKind,
}

enum FileKind {
    /// Of its owner only, in the same folder.
    New(NamedTempFile),
    Device(File),
}

impl CredentialFile {
    fn create(path: PathBuf) -> anyhow::Result<Self> {
        let create = || {
            let is_device = fs::metadata(&path).is_ok_and(|found| !found.is_file());
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            io::Result::Ok(match is_device {
                true => FileKind::Device(OpenOptions::new().write(true).open(&path)?),
                false => FileKind::New(NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?),
            })
        };
        let kind = create().with_context(|| cannot_write(&path))?;
        Ok(Self { path, kind })
    }

    fn write(self, credential: &str) -> anyhow::Result<()> {
        let Self { path, kind } = self;
        let write = || match kind {
            FileKind::Device(mut file) => writeln!(file, "{credential}"),
            FileKind::New(mut file) => {
                writeln!(file, "{credential}")?;
                file.persist(&path).map(drop).map_err(|error| error.error)
            }
        };
        write().with_context(|| cannot_write(&path))
    }
}

/// A browser with the gateway's cookies.
struct Browser {
    client: Client,
    gateway: url::Origin,
    cookies: Vec<(String, String)>,
}

impl Browser {
    fn new(client: Client, authorize_url: &Url) -> Self {
        Self {
            client,
            gateway: authorize_url.origin(),
            cookies: Vec::new(),
        }
    }

    /// Presses the button of the login's page, allows the login as `user`, and goes back.
    async fn log_in(&mut self, authorize_url: Url, user: &str) -> anyhow::Result<()> {
        let page = self.open(authorize_url.clone()).await?;
        let page = page.text().await?;
        let (_, after) = page
            .split_once("confirm=")
            .context("its page has no button")?;
        let end = after.find(|one: char| !one.is_ascii_alphanumeric() && !"-_".contains(one));
        let mut confirmed = authorize_url;
        let confirm = &after[..end.unwrap_or(after.len())];
        confirmed.query_pairs_mut().append_pair("confirm", confirm);
        let provider = redirect(&self.open(confirmed).await?)?;
        let callback = self.allow(provider, user).await?;
        if callback.origin() != self.gateway {
            bail!(
                "the provider redirects to {}, not to the gateway",
                callback.origin().ascii_serialization()
            );
        }
        let done = self.open(callback).await?.status();
        if !done.is_success() {
            bail!("the gateway rejects the callback: {done}");
        }
        Ok(())
    }

    /// At the sandbox provider: submits its form. Returns the address that it redirects to.
    async fn allow(&self, mut page: Url, user: &str) -> anyhow::Result<Url> {
        let name = page.origin().ascii_serialization();
        let refused = format!("{name} is not the sandbox provider: log in without --user");
        match page.host() {
            // As browsers do.
            Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost") => {
                page.set_host(Some("127.0.0.1"))?;
            }
            Some(Host::Ipv4(address)) if address.is_loopback() => {}
            Some(Host::Ipv6(address)) if address.is_loopback() => {}
            _ => bail!("{refused}"),
        }
        let counts = send(self.client.get(page.join("/_sandbox/counts")?)).await?;
        let counts: Option<Value> = counts.json().await.ok();
        if !counts.is_some_and(|counts| counts["decide"].is_u64()) {
            bail!("{refused}");
        }
        let field = if user.contains(':') { "other" } else { "user" };
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(page.query_pairs());
        form.extend_pairs([(field, user), ("decision", "allow")]);
        page.set_query(None);
        let request = self.client.post(page).body(form.finish());
        let decided = send(request).await?;
        redirect(&decided).context("the sandbox has no such user")
    }

    /// Opens an address of the gateway.
    async fn open(&mut self, url: Url) -> anyhow::Result<Response> {
        let mut request = self.client.get(url).header(header::ACCEPT, "text/html");
        if !self.cookies.is_empty() {
            let pairs = self
                .cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"));
            request = request.header(header::COOKIE, pairs.collect::<Vec<_>>().join("; "));
        }
        let response = send(request).await?;
        for set in response.headers().get_all(header::SET_COOKIE) {
            let pair = set.to_str()?.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.retain(|(one, _)| one != name);
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        Ok(response)
    }
}

fn redirect(response: &Response) -> anyhow::Result<Url> {
    let location = response.headers().get(header::LOCATION);
    let location =
        location.with_context(|| format!("{} instead of a redirect", response.status()))?;
    Ok(response.url().join(location.to_str()?)?)
}
