//! Measures what one machine serves, by store and by size. `scripts/capacity` calls it.

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bench::{
    capacity::{
        disk::Disk,
        effort::Effort,
        plan::{self, Place},
        report::{self, Results},
        store::{Kind, Server},
    },
    progress::say,
};
use clap::Parser;

/// Measures what one machine serves, by store and by size.
#[derive(Debug, Parser)]
struct Arguments {
    /// The stores, with a comma between. Default: both.
    #[arg(long, value_delimiter = ',')]
    stores: Vec<Kind>,
    /// How long a cell is measured.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// How long a cell warms up before.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=600))]
    warm_up_seconds: u64,
    /// Requests or logins that are under way at once.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    workers: u16,
    /// Measures little, to see whether everything works: the figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// The folder of `signpost`, `login-v1` and `sandbox-provider`. Default: the one that this program is in.
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Where the results are written. Default: tests/bench/results, and with --quick nowhere.
    #[arg(long)]
    results: Option<PathBuf>,
}

impl Arguments {
    fn effort(&self) -> Effort {
        let workers = usize::from(self.workers);
        if self.quick {
            return Effort::quick(workers);
        }
        let warm_up = Duration::from_secs(self.warm_up_seconds);
        Effort::full(workers, warm_up, Duration::from_secs(self.seconds))
    }

    fn stores(&self) -> Vec<Kind> {
        let is_chosen = |kind: &Kind| self.stores.is_empty() || self.stores.contains(kind);
        Kind::ALL.into_iter().filter(is_chosen).collect()
    }

    fn programs(&self) -> anyhow::Result<PathBuf> {
        let own = env::current_exe()?;
        let beside = own.parent().context("a program is in a folder")?;
        Ok(self.binaries.clone().unwrap_or_else(|| beside.to_owned()))
    }
}

fn main() -> ExitCode {
    match execute(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where it cannot be said, the exit code still tells.
            let _ = say(&format!("capacity: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn execute(arguments: &Arguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let (effort, stores) = (arguments.effort(), arguments.stores());
    let programs = arguments.programs()?;
    let disk = Disk::measure()?;
    let server = stores.contains(&Kind::Postgres).then(Server::prepare);
    let server = server.transpose()?;
    let place = Place {
        programs: &programs,
        server: server.as_ref(),
    };
    let (mut cells, mut growth) = (Vec::new(), Vec::new());
    for &store in &stores {
        cells.extend(plan::operations(store, &effort, &place)?);
    }
    for &store in &stores {
        growth.extend(plan::growth(store, &effort, &place)?);
    }
    ensure!(!cells.is_empty(), "nothing was measured");
    let results = Results {
        machine: report::machine(server.as_ref())?,
        is_quick: arguments.quick,
        disk,
        effort,
        cells,
        growth,
        seconds: started.elapsed().as_secs(),
    };
    write!(io::stdout(), "{}", report::markdown(&results))?;
    let folder = match (&arguments.results, arguments.quick) {
        (Some(folder), _) => folder.clone(),
        (None, true) => return Ok(()),
        (None, false) => PathBuf::from("tests/bench/results"),
    };
    report::write(&results, &folder)
}
