//! `signpost versions list`: what the file says of each version, and what the running gateway knows of its backends.

use std::{io, mem, path::PathBuf, process::ExitCode};

use serde::Serialize;
use signpost_kit::{
    clock::{Clock, SystemClock, Timestamp},
    command::print_line,
    reload::control::{Reply, Verb, send},
};
use signpost_management::reports::versions::{ListedBackend, ListedDates, ListedVersion};
use signpost_proxy::{Config, Versions, program::GatewayStatus};

use crate::cli::table::{print_table, printable};

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
        Self {
            gateway,
            differs: status.map(|status| status.differs),
            versions: ListedVersion::all(versions, known, now),
        }
    }

    fn print(&self, running: &Running) {
        let versions = self.versions.iter();
        let rows = versions.clone().flat_map(version_rows);
        print_table(VERSION_HEADS, rows);
        print_line("");
        let mut backends: Vec<(&str, &ListedBackend)> = Vec::new();
        // A backend is shown with its own version.
        let (bridged, own): (Vec<_>, Vec<_>) = versions.partition(|one| one.bridge.is_some());
        for version in own.into_iter().chain(bridged) {
            for backend in &version.backends {
                // Several versions share a common route's.
                if backends
                    .iter()
                    .all(|(_, one)| one.backend != backend.backend)
                {
                    backends.push((&version.version, backend));
                }
            }
        }
        let backends = backends.into_iter();
        let rows = backends.flat_map(|(version, backend)| backend_rows(version, backend));
        print_table(BACKEND_HEADS, rows);
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
const BACKEND_HEADS: [&str; 6] = [
    "BACKEND",
    "SHARE",
    "RESPONSES",
    "ADDRESS",
    "HEALTH",
    "IN FLIGHT",
];

fn or_dash(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

/// A row for the version, and one for each path with dates of its own.
fn version_rows(version: &ListedVersion) -> Vec<[String; VERSION_HEADS.len()]> {
    let is_default = if version.is_default { " (default)" } else { "" };
    let to = |what: &str, version: &Option<String>| {
        let version = version.as_ref();
        version.map_or_else(String::new, |version| format!(", {what} {version}"))
    };
    let (bridge, shadow) = (
        to("bridge to", &version.bridge),
        to("shadow", &version.shadow),
    );
    let name = format!("{}{is_default}{bridge}{shadow}", version.version);
    let mut rows = vec![dates_row(name, &version.dates)];
    for one in &version.endpoints {
        let name = format!("{} {}", version.version, one.endpoint);
        rows.push(dates_row(name, &one.dates));
    }
    rows
}

fn dates_row(name: String, dates: &ListedDates) -> [String; VERSION_HEADS.len()] {
    let next = dates.brownouts.first();
    let next = next.map(|brownout| format!("{} to {}", brownout.start, brownout.end));
    [
        name,
        dates.stage.replace('_', " "),
        or_dash(dates.deprecated.as_deref()),
        or_dash(dates.sunset.as_deref()),
        or_dash(dates.after_sunset),
        or_dash(next.as_deref()),
        or_dash(dates.link.as_deref()),
    ]
}

/// A row for each address, or one row if there is none. Share and responses cover all addresses, so only the first row
/// has them: each version has 100 % of its own requests.
fn backend_rows(version: &str, backend: &ListedBackend) -> Vec<[String; BACKEND_HEADS.len()]> {
    let share = backend.percent.map(|percent| match percent {
        100 => format!("all of {version}"),
        _ => format!("{percent} % of {version}"),
    });
    let mut share = or_dash(share.as_deref());
    let responses = Some(backend.shown_responses()).filter(|shown| !shown.is_empty());
    let mut responses = or_dash(responses.as_deref());
    let mut row = |address: &str, health: &str, in_flight: Option<usize>| {
        let in_flight = in_flight.map(|number| number.to_string());
        [
            backend.backend.clone(),
            mem::take(&mut share),
            mem::take(&mut responses),
            address.to_owned(),
            health.to_owned(),
            or_dash(in_flight.as_deref()),
        ]
    };
    if backend.addresses.is_empty() {
        return vec![row("-", "no address was resolved", None)];
    }
    let rows = backend.addresses.iter();
    rows.map(|one| row(&one.address, one.health.as_str(), one.in_flight))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use signpost_proxy::{AddressHealth, AddressStatus, BackendStatus, testing::versions};

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
            "bridge": null,
            "shadow": null,
            "link": "https://acme.example/v2",
            "brownouts": [
                { "start": "2026-12-01T10:00:00Z", "end": "2026-12-01T11:00:00Z" },
                { "start": "2026-12-08T10:00:00Z", "end": "2026-12-08T12:00:00Z" },
            ],
            "endpoints": [],
            "backends": [{
                "backend": "v1",
                "part": "own",
                "percent": 100,
                "path": null,
                "addresses": [
                    { "address": "127.0.0.1:1", "health": "unknown", "in_flight": null },
                    { "address": "login:2", "health": "unknown", "in_flight": null },
                ],
                "responses": {},
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
            responses: [("5xx".to_owned(), 7)].into(),
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
        let responses = &listed["versions"][0]["backends"][0]["responses"];
        assert_eq!(*responses, serde_json::json!({ "5xx": 7 }));
        // The running gateway does not have this backend yet.
        let address = &listed["versions"][1]["backends"][0]["addresses"][0];
        assert_eq!(address["health"], "unknown");
    }
}
