//! The program `capacity`: measures what one machine serves. `scripts/capacity` calls it.

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
        plan::{self, Environment},
        report::{self, Results},
        store::{Kind, Server},
        work::Operation,
    },
    progress::print_line,
};
use clap::Parser;

/// Measures what one machine serves, by kind and size of the store.
#[derive(Debug, Parser)]
struct Arguments {
    /// Stores, separated by a comma. Default: both.
    #[arg(long, value_delimiter = ',')]
    stores: Vec<Kind>,
    /// Operations to measure alone, separated by a comma. Default: all, and the gateway with applications.
    #[arg(long, value_delimiter = ',')]
    operations: Vec<Operation>,
    /// Measured time of each cell, in seconds.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Warm-up before it, in seconds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=600))]
    warm_up_seconds: u64,
    /// Requests or logins in flight at once.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    workers: u16,
    /// Measures briefly, only to check that everything works: the figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Folder of `signpost`, `login-v1` and `sandbox-provider`. Default: the folder of this program.
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Folder for the results. Default: tests/bench/results; with --quick no results are written.
    #[arg(long)]
    results: Option<PathBuf>,
}

impl Arguments {
    fn effort(&self) -> Effort {
        let workers = usize::from(self.workers);
        let warm_up = Duration::from_secs(self.warm_up_seconds);
        let mut effort = match self.quick {
            true => Effort::quick(workers),
            false => Effort::full(workers, warm_up, Duration::from_secs(self.seconds)),
        };
        if !self.operations.is_empty() {
            effort.operations.clone_from(&self.operations);
            effort.applications.clear();
        }
        effort
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
            // If it cannot be printed, the exit code still reports the failure.
            let _ = print_line(&format!("capacity: {error:#}"));
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
    let environment = Environment {
        programs: &programs,
        server: server.as_ref(),
    };
    let (mut cells, mut steps, mut growth) = (Vec::new(), Vec::new(), Vec::new());
    for &store in &stores {
        let (of_store, each) = plan::operations(store, &effort, &environment)?;
        cells.extend(of_store);
        steps.extend(each);
    }
    for &store in &stores {
        growth.extend(plan::growth(store, &effort, &environment)?);
    }
    ensure!(!cells.is_empty(), "nothing was measured");
    let results = Results {
        machine: report::machine(server.as_ref())?,
        is_quick: arguments.quick,
        disk,
        effort,
        cells,
        steps,
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
