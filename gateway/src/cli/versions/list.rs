//! `signpost versions list`: what the file says of each version, and what the running gateway knows of its backends.
//! `conf/guides/versions.md` has the members of the JSON.

use std::{io, mem, path::PathBuf, process::ExitCode, sync::Arc};

use serde::Serialize;
use signpost_kit::{
    clock::{Clock, SystemClock, Timestamp},
    command::print_line,
    reload::control::{Reply, Verb, send},
};

use crate::{
    cli::table::{print_table, printable},
    config::{
        AfterSunset, Backend, Config, Part, ServedVersion, Stage, Upstream, Versions, rfc3339,
    },
    upstream::routing::status::{AddressHealth, AddressStatus, BackendStatus, GatewayStatus},
};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ListArguments {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = "conf/gateway.toml")]
    config: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The whole output.
#[derive(Debug, Serialize)]
struct Listing {
    /// `running`, `none` or `unknown`.
    gateway: &'static str,
    /// Whether a reload would change the running gateway's configuration; `None` if none runs.
    differs: Option<bool>,
    versions: Vec<ListedVersion>,
}

#[derive(Debug, Serialize)]
struct ListedVersion {
    version: String,
    is_default: bool,
    /// `current`, `deprecated`, `brownout`, `past_sunset` or `retired`.
    stage: &'static str,
    deprecated: Option<String>,
    sunset: Option<String>,
    /// `serve` or `gone`; `None` without a sunset.
    after_sunset: Option<&'static str>,
    link: Option<String>,
    /// Those that are not over, the next one first.
    brownouts: Vec<ListedBrownout>,
    backends: Vec<ListedBackend>,
}

#[derive(Debug, Serialize)]
struct ListedBrownout {
    start: String,
    end: String,
}

#[derive(Debug, Serialize)]
struct ListedBackend {
    backend: String,
    /// `own`, `canary` or `route`.
    part: &'static str,
    /// The share of the requests that no route takes; `None` for a route.
    percent: Option<u8>,
    /// The path; `None` unless it is a route's.
    path: Option<String>,
    addresses: Vec<AddressStatus>,
    /// The share, for people: each version has 100 % of its own requests.
    #[serde(skip)]
    share: Option<String>,
}

/// What the running gateway knows: `None` if none runs with this file. The error is why it could not be asked, for people.
pub(super) type Running = Result<Option<GatewayStatus>, String>;

pub(super) fn run(arguments: &ListArguments) -> anyhow::Result<ExitCode> {
    let config = Config::load(&arguments.config)?;
    let running = running(send(&arguments.config, Verb::Status));
    let listing = Listing::new(&config.versions, &running, SystemClock.now());
    if arguments.json {
        print_line(&serde_json::to_string(&listing)?);
    } else {
        listing.print(&running);
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the gateway's reply to [`Verb::Status`].
pub(super) fn running(reply: anyhow::Result<Reply>) -> Running {
    let reply = match reply {
        Ok(reply) if reply.is_success => reply.text,
        Ok(reply) => return Err(reply.text),
        Err(error) => {
            // Nobody listens on the command's socket.
            let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
            return match kind {
                Some(io::ErrorKind::ConnectionRefused) => Ok(None),
                _ => Err(format!("{error:#}")),
            };
        }
    };
    let status = serde_json::from_str(&reply);
    status.map_err(|error| format!("its response is malformed: {error}"))
}

impl Listing {
    fn new(versions: &Versions, running: &Running, now: Timestamp) -> Self {
        let (gateway, status) = match running {
            Ok(Some(status)) => ("running", Some(status)),
            Ok(None) => ("none", None),
            Err(_) => ("unknown", None),
        };
        let known = status.map_or(&[][..], |status| &status.backends);
        let listed = |version: &Arc<ServedVersion>| {
            let is_default = version.name() == versions.default().name();
            ListedVersion::new(version, is_default, known, now)
        };
        Self {
            gateway,
            differs: status.map(|status| status.differs),
            versions: versions.iter().map(listed).collect(),
        }
    }

    fn print(&self, running: &Running) {
        let versions = self.versions.iter();
        print_table(VERSION_HEADS, versions.clone().map(ListedVersion::row));
        print_line("");
        let mut backends: Vec<&ListedBackend> = Vec::new();
        for backend in versions.flat_map(|version| &version.backends) {
            // Several versions share a common route's.
            if backends.iter().all(|one| one.backend != backend.backend) {
                backends.push(backend);
            }
        }
        print_table(
            BACKEND_HEADS,
            backends.into_iter().flat_map(ListedBackend::rows),
        );
        match running {
            Ok(Some(_)) => {}
            Ok(None) => print_line("\nhealth: unknown, no gateway runs with this file"),
            Err(problem) => {
                let problem = problem.replace('\n', " ");
                print_line(&format!("\nhealth: unknown, {}", printable(&problem)));
            }
        }
        if self.differs == Some(true) {
            print_line(
                "\nThe running gateway has another configuration than this file: signpost check --diff shows the changes, \
                 signpost reload applies them",
            );
        }
    }
}

const VERSION_HEADS: [&str; 7] = [
    "VERSION",
    "STAGE",
    "DEPRECATED",
    "SUNSET",
    "THEN",
    "NEXT BROWN-OUT",
    "LINK",
];
const BACKEND_HEADS: [&str; 5] = ["BACKEND", "SHARE", "ADDRESS", "HEALTH", "IN FLIGHT"];

fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

impl ListedVersion {
    fn new(
        version: &ServedVersion,
        is_default: bool,
        known: &[BackendStatus],
        now: Timestamp,
    ) -> Self {
        let life_cycle = version.life_cycle();
        let sunset = life_cycle.and_then(|one| one.sunset);
        let after_sunset = life_cycle.map(|one| match one.after_sunset {
            AfterSunset::Serve => "serve",
            AfterSunset::Gone => "gone",
        });
        let brownouts = life_cycle.into_iter().flat_map(|one| &one.brownouts);
        let brownouts = brownouts
            .filter(|brownout| now < brownout.end)
            .map(|brownout| ListedBrownout {
                start: rfc3339(brownout.start),
                end: rfc3339(brownout.end),
            });
        Self {
            version: version.name().to_string(),
            is_default,
            stage: stage_name(version.stage(now)),
            deprecated: life_cycle.and_then(|one| one.deprecated).map(rfc3339),
            sunset: sunset.map(rfc3339),
            after_sunset: after_sunset.filter(|_| sunset.is_some()),
            link: life_cycle
                .and_then(|one| one.link.as_deref())
                .map(str::to_owned),
            brownouts: brownouts.collect(),
            backends: version
                .backends()
                .map(|backend| ListedBackend::new(version, backend, known))
                .collect(),
        }
    }

    fn row(&self) -> [String; VERSION_HEADS.len()] {
        let next = self.brownouts.first();
        let next = next.map(|brownout| format!("{} to {}", brownout.start, brownout.end));
        [
            format!(
                "{}{}",
                self.version,
                if self.is_default { " (default)" } else { "" }
            ),
            self.stage.replace('_', " "),
            or_dash(self.deprecated.as_deref()),
            or_dash(self.sunset.as_deref()),
            or_dash(self.after_sunset),
            or_dash(next.as_deref()),
            or_dash(self.link.as_deref()),
        ]
    }
}

impl ListedBackend {
    fn new(version: &ServedVersion, backend: &Backend, known: &[BackendStatus]) -> Self {
        let name = backend.name.to_string();
        let status = known.iter().find(|status| status.backend == name);
        let (part, path) = match &backend.name.part {
            Part::Own => ("own", None),
            Part::Canary(_) => ("canary", None),
            Part::Route(path) | Part::CommonRoute { path, .. } => ("route", Some(path.to_string())),
        };
        let percent = version.share(backend);
        let share = percent.map(|percent| match percent {
            100 => format!("all of {}", version.name()),
            _ => format!("{percent} % of {}", version.name()),
        });
        Self {
            backend: name,
            part,
            percent,
            path,
            share,
            addresses: match status {
                Some(status) => status.addresses.clone(),
                None => configured(&backend.upstream),
            },
        }
    }

    /// A row for each address; one if there is none. The share is that of all addresses, so only the first row has it.
    fn rows(&self) -> Vec<[String; BACKEND_HEADS.len()]> {
        let mut share = or_dash(self.share.as_deref());
        let mut row = |address: &str, health: &str, in_flight: Option<usize>| {
            let in_flight = in_flight.map(|number| number.to_string());
            [
                self.backend.clone(),
                mem::take(&mut share),
                address.to_owned(),
                health.to_owned(),
                or_dash(in_flight.as_deref()),
            ]
        };
        if self.addresses.is_empty() {
            return vec![row("-", "no address was resolved", None)];
        }
        let rows = self.addresses.iter();
        rows.map(|one| row(&one.address, one.health.as_str(), one.in_flight))
            .collect()
    }
}

const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Current => "current",
        Stage::Deprecated => "deprecated",
        Stage::Brownout { .. } => "brownout",
        Stage::PastSunset => "past_sunset",
        Stage::Retired => "retired",
    }
}

/// The addresses in the file: nothing is known of their health.
fn configured(upstream: &Upstream) -> Vec<AddressStatus> {
    let unknown = |address: String| AddressStatus {
        address,
        health: AddressHealth::Unknown,
        in_flight: None,
    };
    let addresses = upstream.addresses.iter();
    addresses
        .map(|address| unknown(address.host_port.to_string()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::versions;

    /// 2026-11-01T00:00:00Z.
    const NOW: Timestamp = Timestamp::from_millis(1_793_491_200_000);

    const TWO: &str = "default_version = 'v2'\n\
        [versions.v1]\nbackends = ['127.0.0.1:1', 'login:2']\ndeprecated = '2026-10-01'\nsunset = '2027-01-01'\n\
        after_sunset = 'gone'\nlink = 'https://acme.example/v2'\n\
        brownouts = ['2026-12-08T10:00:00Z/PT2H', '2026-10-01T10:00:00Z/PT1H', '2026-12-01T10:00:00Z/PT1H']\n\
        [versions.v2]\nbackend = '127.0.0.1:3'\n\
        [[versions.v2.canaries]]\nname = 'next'\npercent = 5\nbackend = '127.0.0.1:4'\n\
        [[versions.v2.canaries]]\nname = 'later'\npercent = 10\nbackend = '127.0.0.1:5'\n\
        [[versions.v2.routes]]\npath = '/orders/'\nbackend = '127.0.0.1:6'\n\
        [[routes]]\npath = '/stock/**'\nversions = ['v2']\nbackend = '127.0.0.1:7'\n";

    fn json(running: Running) -> serde_json::Value {
        let listing = Listing::new(&versions(TWO), &running, NOW);
        serde_json::to_value(&listing).unwrap()
    }

    #[test]
    fn without_a_gateway_the_file_is_listed() {
        let listed = json(Ok(None));
        assert_eq!(listed["gateway"], "none");
        assert_eq!(listed["differs"], serde_json::Value::Null);
        let one = &listed["versions"][0];
        let expected = serde_json::json!({
            "version": "v1",
            "is_default": false,
            "stage": "deprecated",
            "deprecated": "2026-10-01T00:00:00Z",
            "sunset": "2027-01-01T00:00:00Z",
            "after_sunset": "gone",
            "link": "https://acme.example/v2",
            "brownouts": [
                { "start": "2026-12-01T10:00:00Z", "end": "2026-12-01T11:00:00Z" },
                { "start": "2026-12-08T10:00:00Z", "end": "2026-12-08T12:00:00Z" },
            ],
            "backends": [{
                "backend": "v1",
                "part": "own",
                "percent": 100,
                "path": null,
                "addresses": [
                    { "address": "127.0.0.1:1", "health": "unknown", "in_flight": null },
                    { "address": "login:2", "health": "unknown", "in_flight": null },
                ],
            }],
        });
        assert_eq!(*one, expected);
        let two = &listed["versions"][1];
        assert_eq!(two["is_default"], true);
        assert_eq!(two["stage"], "current");
        assert_eq!(two["after_sunset"], serde_json::Value::Null);
        let backends = two["backends"].as_array().unwrap();
        let shown = backends.iter().map(|one| {
            let [name, part, percent, path] =
                ["backend", "part", "percent", "path"].map(|member| one[member].to_string());
            format!("{name} {part} {percent} {path}")
        });
        let expected = [
            r#""v2" "own" 85 null"#,
            r#""v2 (canary next)" "canary" 5 null"#,
            r#""v2 (canary later)" "canary" 10 null"#,
            r#""v2 /orders/" "route" null "/orders/""#,
            r#""/stock/** (v2)" "route" null "/stock/**""#,
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_health_is_that_of_the_running_gateway() {
        let addresses = vec![AddressStatus {
            address: "127.0.0.1:1".to_owned(),
            health: AddressHealth::Unhealthy,
            in_flight: Some(3),
        }];
        let backends = vec![BackendStatus {
            backend: "v1".to_owned(),
            addresses,
            leaving: 0,
        }];
        let listed = json(Ok(Some(GatewayStatus {
            backends,
            differs: true,
        })));
        assert_eq!(listed["gateway"], "running");
        assert_eq!(listed["differs"], true);
        let address = &listed["versions"][0]["backends"][0]["addresses"][0];
        assert_eq!(address["health"], "unhealthy");
        assert_eq!(address["in_flight"], 3);
        // The running gateway does not have this backend yet.
        let address = &listed["versions"][1]["backends"][0]["addresses"][0];
        assert_eq!(address["health"], "unknown");
    }
}
