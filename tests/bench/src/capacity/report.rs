//! The results: as Markdown, and as raw figures.

mod table;
#[cfg(test)]
mod tests;

use std::{env, fmt::Write as _, fs, path::Path};

use anyhow::Context;
use serde::Serialize;

use self::table::{Table, grouped, mebibytes, three_digits};
use super::{
    disk::Disk,
    effort::Effort,
    growth::Growth,
    plan::{Cell, StepCell},
    store::Server,
    work::Operation,
};
use crate::{
    load::workers::Served,
    machine::{self, Machine},
    progress::print_line,
    usage::LOAD,
};

/// The results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// The machine of the run.
    pub machine: Machine,
    /// Whether it was a `--quick` run, whose figures mean nothing.
    pub is_quick: bool,
    /// The disk of the stores.
    pub disk: Disk,
    /// How much was measured.
    pub effort: Effort,
    /// The operations, by store and number of accounts.
    pub cells: Vec<Cell>,
    /// Each request of a login alone, by store.
    pub steps: Vec<StepCell>,
    /// The gateway, by store and number of applications.
    pub growth: Vec<Growth>,
    /// Duration of the run in seconds.
    pub seconds: u64,
}

/// Describes the machine and the programs of the run.
///
/// # Errors
///
/// When `/proc` cannot be read.
pub fn machine(server: Option<&Server>) -> anyhow::Result<Machine> {
    let mut machine = machine::describe()?;
    machine
        .versions
        .retain(|version| version.starts_with("rustc"));
    machine
        .versions
        .push(format!("SQLite {}", rusqlite::version()));
    let version = server.map(|server| format!("Postgres {}", server.version));
    machine.versions.extend(version);
    machine.command = command(env::args().skip(1));
    Ok(machine)
}

/// Writes `capacity.md` and `capacity.json` into a folder.
///
/// # Errors
///
/// When they cannot be written.
pub fn write(results: &Results, folder: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    let raw = serde_json::to_string_pretty(results)? + "\n";
    fs::write(folder.join("capacity.json"), raw).with_context(context)?;
    fs::write(folder.join("capacity.md"), markdown(results)).with_context(context)?;
    Ok(print_line(&format!(
        "written to {}/capacity.{{md,json}}",
        folder.display()
    ))?)
}

/// All tables, as Markdown.
pub fn markdown(results: &Results) -> String {
    let mut text = head(results);
    for operation in Operation::ALL {
        text += &operation_table(results, operation);
    }
    text += &processors(results);
    text += &steps(results);
    text += &growth(results);
    text
}

fn head(results: &Results) -> String {
    let (machine, effort) = (&results.machine, &results.effort);
    let mut text = String::from("# Capacity of one machine\n\n");
    if results.is_quick {
        text += "**Measured with --quick: these figures mean nothing.**\n\n";
    }
    let _ = writeln!(
        text,
        "`{}`, {}, in {} s. {} × {}, {}, Linux {}. {}.\n",
        machine.command,
        machine.date,
        results.seconds,
        machine.processors,
        machine.processor,
        machine.system,
        machine.kernel,
        machine.versions.join(", ")
    );
    let _ = writeln!(
        text,
        "One gateway, one v1, the sandbox provider and the Postgres server, if any, share these processors with the load. \
         Programs have their default configuration, with access log, except for the limits on logins and callbacks. HTTP over \
         loopback, keep-alive connections, signed requests. {} are in flight at once, each followed by the next as soon as it \
         is answered, so latencies are those of a fully used machine. Each cell is measured for {} s, after a warm-up of {} s. \
         Every response is checked: an unexpected one fails the run.\n",
        effort.workers,
        effort.measured.as_secs_f64(),
        effort.warm_up.as_secs_f64()
    );
    let _ = writeln!(
        text,
        "Both stores are durable: SQLite with `synchronous = FULL`, Postgres with `fsync`, `full_page_writes` and \
         `synchronous_commit` on and otherwise defaults, over loopback without TLS. A flush of 4 KiB takes {} µs on this \
         disk.\n",
        three_digits(results.disk.flush_us)
    );
    text
}

fn operation_table(results: &Results, operation: Operation) -> String {
    let explanation = match operation {
        Operation::Login => {
            "Whole polling logins of people who have an account, spread over all: `POST /login`, the page, its button, the \
             provider's page and its Allow, the callback, and the `/check` that returns the credential. That is seven \
             requests of clients, and two that v1 sends to the provider. Latency is that of the whole login."
        }
        Operation::Check => {
            "`POST /check` without `wait`, for 1000 pending logins in turn. Each reads the store."
        }
        Operation::Event => {
            "`POST /event/send` with a credential and 44 bytes of `data`: each event is stored before it is answered. \
             Up to 10,000 people in turn."
        }
    };
    let mut table = Table::new(
        &["store", "accounts", "per second", "p50, ms", "p99, ms"],
        1,
    );
    for cell in of(results, operation) {
        table.row([
            cell.store.title().to_owned(),
            grouped(cell.accounts),
            three_digits(cell.served.a_second()),
            three_digits(cell.served.p50_ms),
            three_digits(cell.served.p99_ms),
        ]);
    }
    let title = match operation {
        Operation::Login => "Logins",
        Operation::Check => "Checks",
        Operation::Event => "Events",
    };
    format!("## {title}\n\n{explanation}\n\n{table}\n")
}

/// The processes, in the order of the tables.
const PROCESSES: [&str; 5] = ["gateway", "v1", "provider", "Postgres", LOAD];

/// What a step costs a process.
fn microseconds(served: &Served, name: &str) -> String {
    let usage = served.cpu.iter().find(|usage| usage.name == name);
    let of_step = |seconds: f64| seconds * 1e6 / served.steps as f64;
    usage.map_or_else(String::new, |usage| three_digits(of_step(usage.seconds)))
}

/// Each request of a login alone.
fn steps(results: &Results) -> String {
    let mut columns = vec!["", "store"];
    columns.extend(PROCESSES);
    columns.push("sum");
    let mut table = Table::new(&columns, 2);
    for cell in &results.steps {
        let mut row = vec![cell.step.title().to_owned(), cell.store.title().to_owned()];
        row.extend(PROCESSES.map(|name| microseconds(&cell.served, name)));
        let all: f64 = cell.served.cpu.iter().map(|usage| usage.seconds).sum();
        row.push(three_digits(all * 1e6 / cell.served.steps as f64));
        table.row(row);
    }
    format!(
        "## The requests of a login\n\nMicroseconds of each request alone: {} logins, which all take one step before the first \
         takes the next.\n\n{table}\n",
        results.effort.stepping
    )
}

fn processors(results: &Results) -> String {
    let mut columns = vec!["", "store", "accounts"];
    columns.extend(PROCESSES);
    columns.push("processors busy");
    let mut table = Table::new(&columns, 2);
    for cell in Operation::ALL
        .into_iter()
        .flat_map(|operation| of(results, operation))
    {
        let mut row = vec![
            cell.operation.title().to_owned(),
            cell.store.title().to_owned(),
            grouped(cell.accounts),
        ];
        row.extend(PROCESSES.map(|name| microseconds(&cell.served, name)));
        row.push(three_digits(cell.served.processors()));
        table.row(row);
    }
    format!(
        "## Processor time\n\nMicroseconds of user and kernel time for each login, check or event, by process, and how many of \
         the {} processors they kept busy. If that is far from all, the load waits for the store's flushes.\n\n{table}\n",
        results.machine.processors
    )
}

fn growth(results: &Results) -> String {
    let look_ups = grouped(results.effort.look_ups);
    let columns = [
        "store",
        "applications",
        "start, ms",
        "idle, MiB",
        "callers",
        "served, MiB",
        "requests per second",
        "p50, ms",
        "p99, ms",
        "gateway, µs each",
    ];
    let mut table = Table::new(&columns, 1);
    for growth in &results.growth {
        let served = &growth.served;
        table.row([
            growth.store.title().to_owned(),
            grouped(growth.applications),
            three_digits(growth.start_ms),
            mebibytes(growth.idle_kib),
            grouped(growth.calling),
            mebibytes(growth.served_kib),
            three_digits(served.a_second()),
            three_digits(served.p50_ms),
            three_digits(served.p99_ms),
            microseconds(served, "gateway"),
        ]);
    }
    format!(
        "## Applications\n\nThe gateway in multi-application mode: from its start until `/readyz` is 200 (the median of {}), its \
         resident memory then, and after {look_ups} signed requests of the callers in turn. It caches 10,000 \
         applications (`cache_entries`): with more callers it reads the store for each request.\n\n{table}",
        results.effort.starts
    )
}

fn of(results: &Results, operation: Operation) -> impl Iterator<Item = &Cell> {
    let cells = results.cells.iter();
    cells.filter(move |cell| cell.operation == operation)
}

/// The call of `scripts/capacity`, without options that name folders of this machine.
fn command(mut arguments: impl Iterator<Item = String>) -> String {
    let mut command = "scripts/capacity".to_owned();
    while let Some(argument) = arguments.next() {
        match argument.split('=').next() {
            Some("--binaries" | "--results") => {
                if !argument.contains('=') {
                    arguments.next();
                }
            }
            _ => {
                command.push(' ');
                command += &argument;
            }
        }
    }
    command
}
