//! `signpost versions shift`: moves a version to another address without a failed request, and undoes that if a step fails.

mod edit;
mod file;

use std::{future::Future, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context, anyhow, bail};
use signpost_kit::{
    command::print_line,
    reload::control::{Reply, Verb, send, send_to_user},
    server::signals::StopSignals,
};
use signpost_protocol::version::Version;
use signpost_proxy::{
    AddressHealth, Backend, BackendStatus, Config, Part, ServedVersion, Upstream,
    program::{BackendAddress, HostPort, probe_address as probe},
};
use tokio::{
    net::TcpStream,
    signal::unix::{Signal, SignalKind, signal},
    time::{sleep, timeout},
};

use self::{
    edit::{Moved, only_address, with_address},
    file::EditedFile,
};
use super::{configured, list::running};

/// Pause between two questions.
const INTERVAL: Duration = Duration::from_millis(200);
/// Timeout of a connection to an address that has no health checks.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// What a request may take, beside the reading of its form, until it is sent.
const MARGIN: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ShiftArguments {
    /// The version, for example v3.
    version: Version,
    /// Its new address: an IP address and a port, for example 127.0.0.1:7013; with https:// in front if the old one has it.
    address: String,
    /// Move this route of the version alone: its path, as the file has it.
    #[arg(long, value_name = "PATH")]
    route: Option<String>,
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
    /// The user that the gateway runs as, by name or number, if root moves the version: only a process of that user is
    /// trusted. Default: the command's user.
    #[arg(long, value_name = "USER", value_parser = user_id)]
    user: Option<u32>,
    /// How long the new address may take to be healthy; then, how long requests to the old addresses may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

pub(super) async fn run(arguments: &ShiftArguments) -> anyhow::Result<ExitCode> {
    let mut file = EditedFile::read(&arguments.config)?;
    let mut interruption = Interruption::new()?;
    let moved = tokio::select! {
        moved = move_version(arguments, &mut file) => moved,
        () = interruption.wait() => Err(anyhow!("interrupted")),
    };
    match moved {
        Ok(left) => {
            for (address, user) in &left.used {
                arguments.say(&format!(
                    "{address} is still used by {user}: do not stop its process"
                ));
            }
            if !left.free.is_empty() {
                end(arguments, &left, &mut interruption).await?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if file.is_changed() => Err(error.context(undo(arguments, &mut file))),
        Err(error) => Err(error.context("not moved: nothing was changed")),
    }
}

/// Waits until the old addresses that nothing uses have no request, and says so.
async fn end(
    arguments: &ShiftArguments,
    left: &Left,
    interruption: &mut Interruption,
) -> anyhow::Result<()> {
    let free = left.free.join(", ");
    let drained = tokio::select! {
        drained = wait_until_idle(arguments, left) => drained,
        () = interruption.wait() => Err(anyhow!("interrupted")),
    };
    drained.with_context(|| {
        let version = &arguments.version;
        format!("{version} has moved, but requests to {free} may be in flight: do not stop its process yet")
    })?;
    arguments.say(&format!(
        "{free} has no request of this gateway in flight: its process can be stopped; with several gateways, run this at \
         each first"
    ));
    Ok(())
}

/// Restores the file and reloads it. Returns what came of that.
fn undo(arguments: &ShiftArguments, file: &mut EditedFile) -> String {
    let path = arguments.config.display();
    if let Err(why) = file.restore() {
        return format!("not moved, and {path} is not restored: {why:#}");
    }
    match reload(arguments) {
        Ok(()) => format!("not moved: {path} is restored and reloaded"),
        Err(why) => format!(
            "not moved: {path} is restored, but not reloaded: {why:#}; run signpost reload --config {path}"
        ),
    }
}

/// The addresses that the version has left.
struct Left {
    /// Those that no backend of this gateway has.
    free: Vec<String>,
    /// Those that another backend has, with its name.
    used: Vec<(String, String)>,
    /// How long a request may take until it is sent, and so counted: its form is still read.
    until_counted: Duration,
}

impl Left {
    /// Sorts the addresses by the configuration after the move.
    fn new(addresses: &[BackendAddress], config: &Config) -> Self {
        let mut left = Self {
            free: Vec::new(),
            used: Vec::new(),
            until_counted: config.timeouts.body + MARGIN,
        };
        for BackendAddress { host_port, .. } in addresses {
            let mut backends = config.versions.backends();
            let user = backends.find(|backend| {
                let mut addresses = backend.upstream.addresses.iter();
                addresses.any(|one| one.host_port == *host_port)
            });
            match user {
                Some(user) => left
                    .used
                    .push((host_port.to_string(), user.name.to_string())),
                None => left.free.push(host_port.to_string()),
            }
        }
        left
    }
}

/// The signals that end the command.
struct Interruption(StopSignals, Signal);

impl Interruption {
    fn new() -> std::io::Result<Self> {
        Ok(Self(StopSignals::listen()?, signal(SignalKind::hangup())?))
    }

    /// Waits for one of them.
    async fn wait(&mut self) {
        tokio::select! {
            () = self.0.next() => {}
            _ = self.1.recv() => {}
        }
    }
}

/// Moves the version. Returns its old addresses, which then get no new request of it.
async fn move_version(arguments: &ShiftArguments, file: &mut EditedFile) -> anyhow::Result<Left> {
    let (version, new) = (&arguments.version, &arguments.address);
    let path = arguments.config.display();
    let config = Config::load(&arguments.config)?;
    let served = configured(&config, &arguments.config, version)?;
    let upstream = &arguments.backend_of(served)?.upstream;
    let host_port = host_port(new)?;
    if upstream
        .addresses
        .iter()
        .any(|one| one.host_port == host_port)
    {
        bail!("{version} has the address {new} already");
    }
    match running(arguments.send(Verb::Status)).map_err(|error| anyhow!(error))? {
        None => bail!("no gateway runs with {path}"),
        Some(status) if status.differs => bail!(
            "the running gateway has another configuration than {path}: signpost check --diff shows the changes; reload \
             or undo them first"
        ),
        Some(_) => {}
    }
    let old: Vec<_> = upstream
        .addresses
        .iter()
        .map(|one| one.host_port.to_string())
        .collect();
    let old = old.join(", ");
    let both = with_address(file.original(), arguments.moved(), new)?;
    let next = file.check(&both)?;
    let served = next.versions.iter().find(|one| **one.name() == *version);
    let served = served.context("the changed file has the version")?;
    let next = arguments.backend_of(served)?.upstream.clone();
    let within = Duration::from_secs(arguments.timeout);
    wait(within, "does not answer its health check", || {
        is_up(&next, &host_port)
    })
    .await
    .with_context(|| new.clone())?;
    arguments.say(&format!("{new} is up"));
    file.write(&both)?;
    reload(arguments)?;
    arguments.say(&format!("added {new} beside {old}, reloaded"));
    wait(within, "is not healthy for the gateway", || async {
        let backend = status(arguments)?;
        let address = host_port.to_string();
        let found = backend.addresses.iter().find(|one| one.address == address);
        let expected = match next.checks {
            Some(_) => AddressHealth::Healthy,
            None => AddressHealth::Unchecked,
        };
        Ok(found.is_some_and(|one| one.health == expected))
    })
    .await
    .with_context(|| new.clone())?;
    arguments.say(&format!("{new} is healthy"));
    let only = only_address(file.original(), arguments.moved(), new)?;
    let left = Left::new(&upstream.addresses, &file.check(&only)?);
    file.write(&only)?;
    reload(arguments)?;
    arguments.say(&format!("removed {old}, reloaded"));
    Ok(left)
}

/// Waits until no request to an address that the version no longer has is in flight.
async fn wait_until_idle(arguments: &ShiftArguments, left: &Left) -> anyhow::Result<()> {
    let (seconds, free) = (left.until_counted.as_secs(), left.free.join(", "));
    arguments.say(&format!(
        "requests whose form is still read may go to {free}: waiting {seconds} s (body_seconds and 2 s)"
    ));
    sleep(left.until_counted).await;
    let within = Duration::from_secs(arguments.timeout);
    wait(within, "there are still requests", || async {
        Ok(status(arguments)?.leaving == 0)
    })
    .await
}

impl ShiftArguments {
    fn send(&self, verb: Verb) -> anyhow::Result<Reply> {
        match self.user {
            Some(user) => send_to_user(&self.config, verb, user),
            None => send(&self.config, verb),
        }
    }

    fn moved(&self) -> Moved<'_> {
        Moved {
            version: &self.version,
            route: self.route.as_deref(),
        }
    }

    /// The backend that moves.
    fn backend_of<'v>(&self, version: &'v ServedVersion) -> anyhow::Result<&'v Arc<Backend>> {
        let Some(path) = &self.route else {
            return Ok(version.own());
        };
        let mut backends = version.backends();
        let found = backends
            .find(|one| matches!(&one.name.part, Part::Route(own) if own.to_string() == *path));
        found.with_context(|| format!("{} has no route {path} of its own", self.version))
    }

    fn say(&self, step: &str) {
        print_line(&format!("{}: {step}", self.version));
    }
}

/// The number of a user of this machine.
fn user_id(user: &str) -> Result<u32, String> {
    let users = || std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = || {
        users().lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(user)).then(|| fields.nth(1)?.parse().ok())?
        })
    };
    let number = user.parse().ok().or_else(found);
    number.ok_or_else(|| "/etc/passwd has no such user".to_owned())
}

/// Parses the new address: an IP address, since the gateway reports the state of those.
fn host_port(address: &str) -> anyhow::Result<HostPort> {
    let text = ["https://", "http://"]
        .iter()
        .find_map(|scheme| address.strip_prefix(scheme));
    match text.unwrap_or(address).parse() {
        Ok(host_port @ HostPort::Address(_)) => Ok(host_port),
        _ => bail!("{address:?} is not an IP address and a port, for example 127.0.0.1:7013"),
    }
}

/// Whether an address passes the version's health check; without checks, whether it accepts connections.
async fn is_up(upstream: &Upstream, host_port: &HostPort) -> anyhow::Result<bool> {
    let mut addresses = upstream.addresses.iter();
    let address = addresses.find(|one| one.host_port == *host_port);
    let endpoint = address.and_then(BackendAddress::endpoint);
    let endpoint = endpoint.context("the changed file has the address")?;
    Ok(match &upstream.checks {
        Some(checks) => probe(checks, &endpoint).await.is_ok(),
        None => {
            let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(endpoint.address)).await;
            connected.is_ok_and(|connected| connected.is_ok())
        }
    })
}

/// The running gateway's view of the version's own backend.
fn status(arguments: &ShiftArguments) -> anyhow::Result<BackendStatus> {
    let status = running(arguments.send(Verb::Status)).map_err(|error| anyhow!(error))?;
    let status = status.context("the gateway has ended")?;
    let name = match &arguments.route {
        Some(path) => format!("{} {path}", arguments.version),
        None => arguments.version.to_string(),
    };
    let mut backends = status.backends.into_iter();
    let found = backends.find(|backend| backend.backend == name);
    found.with_context(|| format!("the gateway has no backend {name}"))
}

fn reload(arguments: &ShiftArguments) -> anyhow::Result<()> {
    let reply = arguments.send(Verb::Reload)?;
    if !reply.is_success {
        bail!("{}", reply.text);
    }
    Ok(())
}

/// Asks until the result is true.
async fn wait<F: Future<Output = anyhow::Result<bool>>>(
    within: Duration,
    problem: &str,
    mut ask: impl FnMut() -> F,
) -> anyhow::Result<()> {
    let asking = async {
        while !ask().await? {
            sleep(INTERVAL).await;
        }
        Ok(())
    };
    match timeout(within, asking).await {
        Ok(asked) => asked,
        Err(_) => bail!("{problem} within {} s", within.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_or_numbered() {
        assert_eq!(user_id("root"), Ok(0));
        assert_eq!(user_id("4711"), Ok(4711));
        assert!(user_id("no such user").is_err());
    }

    #[test]
    fn the_new_address_is_an_ip_address_and_a_port() {
        for address in ["127.0.0.1:7013", "https://[::1]:7013"] {
            host_port(address).unwrap();
        }
        for address in ["login:7013", "127.0.0.1", "ftp://127.0.0.1:7013", ""] {
            assert!(host_port(address).is_err(), "{address}");
        }
    }
}
