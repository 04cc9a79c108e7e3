//! The program `bench`: arguments, order of the measurements, exit code.

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context, ensure};
use clap::{Args, Parser, Subcommand};

use bench::{
    case::Case,
    contestant::{Contestant, Environment},
    fleet::Fleet,
    instructions, machine, memory,
    progress::print_line,
    ramp,
    report::{self, Results},
    rounds::{self, Effort},
    train,
};

/// Measures Signpost side by side with other proxies, on this machine.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Proves that all contestants do the work, then measures them.
    Run(Run),
    /// Only proves that all contestants do the work.
    Prove(Choice),
    /// Runs the cases with instrumented programs, which write their profile when they exit.
    Train(Choice),
}

#[derive(Debug, Args)]
struct Choice {
    /// Cases, separated by commas. Default: all.
    #[arg(long, value_delimiter = ',')]
    cases: Vec<Case>,
    /// Contestants, separated by commas. Default: all, but Signpost's further configurations.
    #[arg(long, value_delimiter = ',')]
    contestants: Vec<Contestant>,
    /// Folder of `signpost` and `bare-pingora`. Default: the folder of this program.
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Worker threads of each contestant. Several threads share both processors with the load and the backend.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Folder of the other proxies' configurations.
    #[arg(long, default_value = "tests/bench/contestants")]
    configurations: PathBuf,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    choice: Choice,
    /// Number of interleaved rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measures briefly, only to check that everything works: the figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Measures only throughput, latency and processor time at 10 to 100 % of load: nginx, `HAProxy` and Signpost, in W1
    /// and W2 unless others are named.
    #[arg(long)]
    ramp: bool,
    /// Does not count instructions (callgrind).
    #[arg(long)]
    no_instructions: bool,
    /// Does not measure memory.
    #[arg(long)]
    no_memory: bool,
    /// Folder for the results. Default: tests/bench/results, or its folder N-threads with several threads; with --quick
    /// no results are written.
    #[arg(long)]
    results: Option<PathBuf>,
}

impl Choice {
    fn cases(&self) -> Vec<Case> {
        let is_chosen = |case: &Case| self.cases.is_empty() || self.cases.contains(case);
        Case::ALL.into_iter().filter(is_chosen).collect()
    }

    fn contestants(&self) -> Vec<Contestant> {
        let chosen = &self.contestants;
        let is_chosen = |one: &Contestant| match chosen.is_empty() {
            true => one.is_default(),
            false => chosen.contains(one),
        };
        Contestant::ALL.into_iter().filter(is_chosen).collect()
    }

    fn environment(&self) -> anyhow::Result<Environment> {
        let own = env::current_exe()?;
        let beside = own.parent().context("a program is in a folder")?;
        Ok(Environment {
            binaries: self.binaries.clone().unwrap_or_else(|| beside.to_owned()),
            configurations: self.configurations.clone(),
            threads: self.threads,
        })
    }
}

fn main() -> ExitCode {
    match execute(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If it cannot be printed, the exit code still reports the failure.
            let _ = print_line(&format!("bench: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    machine::prepare()?;
    match command {
        Command::Run(run) => measure(&run),
        Command::Prove(choice) => {
            let environment = choice.environment()?;
            let mut fleet = Fleet::new(&environment)?;
            fleet.start_all(&environment, &choice.contestants(), &choice.cases())?;
            fleet.stop_all()?;
            Ok(print_line("all contestants do the work")?)
        }
        Command::Train(choice) => {
            let is_chosen = |one: &Contestant| {
                matches!(one, Contestant::Signpost | Contestant::BarePingora)
                    && (choice.contestants.is_empty() || choice.contestants.contains(one))
            };
            let contestants: Vec<_> = Contestant::ALL.into_iter().filter(is_chosen).collect();
            train::train(&choice.environment()?, &contestants)
        }
    }
}

fn measure(run: &Run) -> anyhow::Result<()> {
    ensure!(run.rounds > 0, "--rounds: found 0; allowed: 1 or more");
    let started = Instant::now();
    let (mut cases, mut contestants) = (run.choice.cases(), run.choice.contestants());
    if run.ramp && run.choice.cases.is_empty() {
        cases = ramp::CASES.into();
    }
    if run.ramp && run.choice.contestants.is_empty() {
        contestants = ramp::CONTESTANTS.into();
    }
    let environment = run.choice.environment()?;
    let effort = if run.quick {
        Effort::quick(run.rounds)
    } else {
        Effort::full(run.rounds)
    };
    print_line("starting the contestants and proving that they do the work")?;
    let mut fleet = Fleet::new(&environment)?;
    fleet.start_all(&environment, &contestants, &cases)?;
    let series = if run.ramp {
        Vec::new()
    } else {
        rounds::measure(&fleet, &contestants, &cases, &effort)?
    };
    let memory = if run.no_memory || run.ramp {
        Vec::new()
    } else {
        memory::measure(&fleet, &environment, &contestants, &cases, &effort)?
    };
    let instructions = if run.no_instructions || run.ramp {
        Vec::new()
    } else {
        instructions::count(&fleet, &environment, &contestants, &cases, &effort)?
    };
    let ramp = if run.ramp {
        ramp::measure(&fleet, &contestants, &cases, &effort)?
    } else if run.quick {
        // Enough to check that it works.
        let in_ramp = |one: &Contestant| ramp::CONTESTANTS.contains(one);
        let some: Vec<_> = contestants.iter().copied().filter(in_ramp).collect();
        cases.retain(|case| ramp::CASES.contains(case));
        ramp::measure(&fleet, &some, &cases, &effort)?
    } else {
        Vec::new()
    };
    fleet.stop_all()?;
    let results = Results {
        machine: machine::describe()?,
        is_quick: run.quick,
        threads: run.choice.threads,
        effort,
        series,
        instructions,
        memory,
        ramp,
        seconds: started.elapsed().as_secs(),
    };
    write!(io::stdout(), "{}", report::markdown(&results))?;
    let folder = match (&run.results, run.quick) {
        (Some(folder), _) => folder.clone(),
        (None, true) => return Ok(()),
        (None, false) if run.choice.threads == 1 => PathBuf::from("tests/bench/results"),
        (None, false) => PathBuf::from(format!(
            "tests/bench/results/{}-threads",
            run.choice.threads
        )),
    };
    report::write(&results, &folder)
}
