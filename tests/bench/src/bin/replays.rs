//! The program `replays`: what `replay_scope = "all"` adds to a request, with several gateways on one Postgres.
//! `scripts/bench-replays` calls it.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use anyhow::{Context, anyhow};
use bench::{
    capacity::store::{Kind, Server, Store},
    case::Case,
    contestant::{Backend, Environment},
    keys::Keys,
    load::Load,
    process::{Process, RunMode},
    progress::print_line,
    requests::Requests,
    usage::Watched,
};
use clap::Parser;
use end_to_end::{folder::Folder, port::free_address};
use hdrhistogram::Histogram;

/// Connections to each gateway.
const CONNECTIONS: usize = 64;

/// Short, so that the store deletes expired signatures meanwhile: each round begins with new ones.
const WINDOW_SECONDS: u64 = 20;

/// Measures latencies of signed requests at a fixed rate, each from the moment at which it was due.
#[derive(Debug, Parser)]
struct Arguments {
    /// Requests a second to all gateways together, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "1000,2000,4000,6000")]
    rates: Vec<u64>,
    /// Duration of a round.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=15))]
    seconds: u64,
    /// Rounds of each scope and rate, alternating.
    #[arg(long, default_value_t = 2)]
    rounds: usize,
    /// Replay scopes, separated by a comma.
    #[arg(long, value_delimiter = ',', default_value = "gateway,all")]
    scopes: Vec<String>,
    /// Number of gateways.
    #[arg(long, default_value_t = 4)]
    gateways: usize,
    /// Folder of `signpost`. Default: the folder of this program.
    #[arg(long)]
    binaries: Option<PathBuf>,
}

/// The gateways of one configuration.
struct Gateways(Vec<(SocketAddr, Process, Folder)>);

impl Gateways {
    fn start(
        scope: &str,
        arguments: &Arguments,
        binaries: &Path,
        (store, backend, keys): (&str, SocketAddr, &Keys),
    ) -> anyhow::Result<Self> {
        let start = |_| {
            let (folder, listen, management) = (Folder::create(), free_address(), free_address());
            let file = folder.path().join("signpost.toml");
            let key = keys.single.expose();
            let config = format!(
                "prefix = \"Acme\"\nlisten = \"{listen}\"\nstore = \"{store}\"\nthreads = 1\n\n\
                 [application]\nkey = \"{key}\"\n\n[versions.v1]\nbackend = \"{backend}\"\n\n\
                 [versions.v2]\nbackend = \"{backend}\"\n\n\
                 [sign]\nreplay = \"reject\"\nreplay_scope = \"{scope}\"\nreplay_entries = 1000000\n\
                 window_seconds = {WINDOW_SECONDS}\n\n[connections]\nrequests = 1000000000\n\n\
                 [management]\nlisten = \"{management}\"\n\n[log]\naccess_sample = 0\n"
            );
            fs::write(&file, config)?;
            let program = binaries.join("signpost").display().to_string();
            let line = [
                program,
                "run".into(),
                "--config".into(),
                file.display().to_string(),
            ];
            let mut process = Process::start("a gateway", &line, folder.path(), RunMode::Anywhere)?;
            process.listens(listen)?;
            Ok((listen, process, folder))
        };
        (0..arguments.gateways)
            .map(start)
            .collect::<anyhow::Result<_>>()
            .map(Self)
    }

    /// Latencies in nanoseconds, and processor seconds by program.
    fn measure(
        &self,
        (rate, seconds): (u64, u64),
        keys: &Keys,
        others: &Watched,
    ) -> anyhow::Result<(Histogram<u64>, BTreeMap<&'static str, f64>)> {
        let rate = rate / self.0.len() as u64;
        let count = rate * seconds;
        let all: Vec<_> = (self.0.iter())
            .map(|_| Requests::new(Case::W6, count, keys))
            .collect::<anyhow::Result<_>>()?;
        let gateways = self
            .0
            .iter()
            .fold(others.clone(), |watched, (_, process, _)| {
                watched.and("gateways", process.id())
            });
        let before = gateways.look()?;
        let latencies = thread::scope(|scope| {
            let threads: Vec<_> = (self.0.iter().zip(&all))
                .map(|((address, ..), requests)| {
                    scope.spawn(move || {
                        Load::new(*address, CONNECTIONS, requests)?.open(count, rate)
                    })
                })
                .collect();
            let mut all = Histogram::new(3)?;
            for thread in threads {
                all.add(thread.join().map_err(|_| anyhow!("a load panicked"))??)?;
            }
            anyhow::Ok(all)
        })?;
        let mut used = BTreeMap::new();
        for (after, before) in gateways.look()?.iter().zip(&before) {
            *used.entry(after.name).or_default() += after.seconds - before.seconds;
        }
        Ok((latencies, used))
    }
}

fn main() -> ExitCode {
    match execute(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If it cannot be printed, the exit code still reports the failure.
            let _ = print_line(&format!("replays: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn execute(arguments: &Arguments) -> anyhow::Result<()> {
    let own = env::current_exe()?;
    let beside = own.parent().context("a program is in a folder")?;
    let binaries = arguments.binaries.as_deref().unwrap_or(beside);
    let server = Server::prepare()?;
    let store = Store::create(Kind::Postgres, Some(&server), Path::new(""))?;
    let keys = Keys::generate()?;
    let backend = Backend::start(&Environment {
        binaries: binaries.to_owned(),
        configurations: "tests/bench/contestants".into(),
        threads: 1,
    })?;
    let shared = (&*store.address, backend.v1, &keys);
    let scopes = arguments.scopes.iter().map(|scope| {
        let gateways = Gateways::start(scope, arguments, binaries, shared)?;
        anyhow::Ok((scope, gateways))
    });
    let scopes: Vec<_> = scopes.collect::<Result<_, _>>()?;
    let others = Watched::default()
        .and("Postgres", server.id)
        .and("backend", backend.process.id());
    let mut out = io::stdout();
    writeln!(
        out,
        "| requests/s | scope | p50 | p90 | p99 | p99.9 | CPU µs for each request |"
    )?;
    writeln!(out, "| ---: | --- | ---: | ---: | ---: | ---: | --- |")?;
    for &rate in &arguments.rates {
        for (scope, gateways) in scopes.iter().cycle().take(arguments.rounds * scopes.len()) {
            let round = (rate, arguments.seconds);
            let (latencies, used) = gateways.measure(round, &keys, &others)?;
            let at = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e6;
            let count = latencies.len() as f64;
            let used = used.iter();
            let used: Vec<_> = used
                .map(|(name, all)| format!("{name} {:.0}", all / count * 1e6))
                .collect();
            writeln!(
                out,
                "| {rate} | {scope} | {:.2} | {:.2} | {:.2} | {:.2} | {} |",
                at(0.5),
                at(0.9),
                at(0.99),
                at(0.999),
                used.join(", ")
            )?;
        }
    }
    Ok(())
}
