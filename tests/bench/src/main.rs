//! Arguments in, exit code out.

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
    contestant::{Contestant, Places},
    field::Field,
    instructions, machine, memory,
    progress::say,
    report::{self, Results},
    rounds::{self, Effort},
    train,
};

/// Measures Signpost side by side with its peers, on this machine.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Proves that everybody does the work, and measures.
    Run(Run),
    /// Proves that everybody does the work.
    Prove(Choice),
    /// Runs the cases over instrumented programs, so that they write their profile.
    Train(Choice),
}

#[derive(Debug, Args)]
struct Choice {
    /// The cases, with commas between. Default: all.
    #[arg(long, value_delimiter = ',')]
    cases: Vec<Case>,
    /// The contestants, with commas between. Default: all.
    #[arg(long, value_delimiter = ',')]
    contestants: Vec<Contestant>,
    /// The folder of `signpost` and `bare-pingora`. Default: the one that this program is in.
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Worker threads of each contestant. With several, they share both processors with the load and the backend.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The folder of the peers' configurations.
    #[arg(long, default_value = "tests/bench/contestants")]
    configurations: PathBuf,
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    choice: Choice,
    /// Interleaved rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measures little, to see whether everything works: the figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// Leaves callgrind out.
    #[arg(long)]
    no_instructions: bool,
    /// Leaves memory out.
    #[arg(long)]
    no_memory: bool,
    /// Where the results are written. Default: tests/bench/results, with several threads a folder of its own there, and
    /// with --quick nowhere.
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
        let is_chosen = |one: &Contestant| chosen.is_empty() || chosen.contains(one);
        Contestant::ALL.into_iter().filter(is_chosen).collect()
    }

    fn places(&self) -> anyhow::Result<Places> {
        let own = env::current_exe()?;
        let beside = own.parent().context("a program is in a folder")?;
        Ok(Places {
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
            // Where it cannot be said, the exit code still tells.
            let _ = say(&format!("bench: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn execute(command: Command) -> anyhow::Result<()> {
    machine::prepare()?;
    match command {
        Command::Run(run) => measure(&run),
        Command::Prove(choice) => {
            let places = choice.places()?;
            let mut field = Field::new(&places)?;
            field.enter(&places, &choice.contestants(), &choice.cases())?;
            field.leave()?;
            Ok(say("everybody does the work")?)
        }
        Command::Train(choice) => {
            let proven = |one: &Contestant| {
                matches!(one, Contestant::Signpost | Contestant::BarePingora)
                    && (choice.contestants.is_empty() || choice.contestants.contains(one))
            };
            let contestants: Vec<_> = Contestant::ALL.into_iter().filter(proven).collect();
            train::train(&choice.places()?, &contestants)
        }
    }
}

fn measure(run: &Run) -> anyhow::Result<()> {
    ensure!(run.rounds > 0, "no rounds, no medians");
    let started = Instant::now();
    let (cases, contestants) = (run.choice.cases(), run.choice.contestants());
    let places = run.choice.places()?;
    let effort = if run.quick {
        Effort::quick(run.rounds)
    } else {
        Effort::full(run.rounds)
    };
    say("starting the contestants, and proving that they do the work")?;
    let mut field = Field::new(&places)?;
    field.enter(&places, &contestants, &cases)?;
    let series = rounds::measure(&field, &contestants, &cases, &effort)?;
    let memory = if run.no_memory {
        Vec::new()
    } else {
        memory::measure(&field, &places, &contestants, &effort)?
    };
    let instructions = if run.no_instructions {
        Vec::new()
    } else {
        instructions::count(&field, &places, &contestants, &cases, &effort)?
    };
    field.leave()?;
    let results = Results {
        machine: machine::describe()?,
        is_quick: run.quick,
        threads: run.choice.threads,
        effort,
        series,
        instructions,
        memory,
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
