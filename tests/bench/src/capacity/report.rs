//! What was measured: as Markdown, and as raw figures.

mod table;
#[cfg(test)]
mod tests;

use std::{env, fmt::Write as _, fs, path::Path};

use anyhow::Context;
use serde::Serialize;

use self::table::{Table, grouped, mebibytes, three_digits};
use super::{
    disk::Disk, effort::Effort, growth::Growth, plan::Cell, store::Server, work::Operation,
};
use crate::{
    machine::{self, Machine},
    progress::say,
    usage::LOAD,
};

/// All that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Results {
    /// What it was measured on.
    pub machine: Machine,
    /// Whether little was measured, so that the figures mean nothing.
    pub is_quick: bool,
    /// The disk that the stores were on.
    pub disk: Disk,
    /// How much was measured.
    pub effort: Effort,
    /// Operations, store by store, by accounts.
    pub cells: Vec<Cell>,
    /// The gateway, store by store, by applications.
    pub growth: Vec<Growth>,
    /// How long it all took.
    pub seconds: u64,
}

/// What it is measured on, and with.
///
/// # Errors
///
/// `/proc` is not there.
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

/// Writes both files.
///
/// # Errors
///
/// They cannot be written.
pub fn write(results: &Results, folder: &Path) -> anyhow::Result<()> {
    let context = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder).with_context(context)?;
    let raw = serde_json::to_string_pretty(results)? + "\n";
    fs::write(folder.join("capacity.json"), raw).with_context(context)?;
    fs::write(folder.join("capacity.md"), markdown(results)).with_context(context)?;
    Ok(say(&format!(
        "written: {}/capacity.{{md,json}}",
        folder.display()
    ))?)
}

/// The tables.
pub fn markdown(results: &Results) -> String {
    let mut text = head(results);
    for operation in Operation::ALL {
        text += &operation_table(results, operation);
    }
    text += &processors(results);
    text += &growth(results);
    text
}

fn head(results: &Results) -> String {
    let (machine, effort) = (&results.machine, &results.effort);
    let mut text = String::from("# Capacity of one machine\n\n");
    if results.is_quick {
        text +=
            "**A quick pass, to see whether everything works: these figures mean nothing.**\n\n";
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
        "One gateway, one v1 and the sandbox provider, and for Postgres its server, share these processors with the load. \
         Programs are configured as they come (access lines are written), but for the limits on logins and callbacks. HTTP over \
         loopback, kept-alive connections, signed requests. {} are under way at once, each followed by the next as soon as it \
         is answered, so latencies are those of a machine that is fully used; {} s of each cell count, after {} s of \
         warm-up. Every answer is checked: one that is not as it should be fails the run.\n",
        effort.workers,
        effort.measured.as_secs_f64(),
        effort.warm_up.as_secs_f64()
    );
    let _ = writeln!(
        text,
        "Both stores are durable: SQLite with `synchronous = FULL`, Postgres with `fsync`, `full_page_writes` and \
         `synchronous_commit` on, and otherwise as it comes, without TLS on loopback. A flush of 4 KiB takes {} µs on this \
         disk.\n",
        three_digits(results.disk.flush_us)
    );
    text
}

fn operation_table(results: &Results, operation: Operation) -> String {
    let explanation = match operation {
        Operation::Login => {
            "Whole polling logins of people who have an account, picked from all: `POST /login`, the page, its button, the \
             provider's page and its Allow, the callback, and the `/check` that gives the credential. That is seven \
             requests of clients, and two that v1 sends to the provider. Latency is that of the whole."
        }
        Operation::Check => {
            "`POST /check` without `wait`, of 1000 pending logins in turn. Each asks the store."
        }
        Operation::Event => {
            "`POST /event/send` with a credential and 44 bytes of `data`: each event is stored before it is answered. \
             Up to 10,000 people in turn."
        }
    };
    let mut table = Table::new(&["store", "accounts", "a second", "p50, ms", "p99, ms"], 1);
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

fn processors(results: &Results) -> String {
    let names = ["gateway", "v1", "provider", "Postgres", LOAD];
    let mut columns = vec!["", "store", "accounts"];
    columns.extend(names);
    columns.push("processors busy");
    let mut table = Table::new(&columns, 2);
    for cell in Operation::ALL
        .into_iter()
        .flat_map(|operation| of(results, operation))
    {
        let served = &cell.served;
        let microseconds = |name: &str| {
            let usage = served.cpu.iter().find(|usage| usage.name == name);
            let of_step = |seconds: f64| seconds * 1e6 / served.steps as f64;
            usage.map_or_else(String::new, |usage| three_digits(of_step(usage.seconds)))
        };
        let mut row = vec![
            cell.operation.title().to_owned(),
            cell.store.title().to_owned(),
            grouped(cell.accounts),
        ];
        row.extend(names.map(microseconds));
        row.push(three_digits(served.processors()));
        table.row(row);
    }
    format!(
        "## Who uses the processors\n\nMicroseconds on a processor for each login, check or event, user and kernel time, \
         by process; and how many of the {} processors all of them kept busy. Where those are far from all busy, the store's \
         flushes are what is waited for.\n\n{table}\n",
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
        "requests a second",
        "p50, ms",
        "p99, ms",
        "gateway, µs each",
    ];
    let mut table = Table::new(&columns, 1);
    for growth in &results.growth {
        let served = &growth.served;
        let gateway = served.cpu.iter().find(|usage| usage.name == "gateway");
        let of_step = |seconds: f64| seconds * 1e6 / served.steps as f64;
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
            gateway.map_or_else(String::new, |usage| three_digits(of_step(usage.seconds))),
        ]);
    }
    format!(
        "## Applications\n\nThe gateway in multi-application mode: from its start to `/readyz` (the median of {}), its \
         resident memory then, and after {look_ups} signed requests of so many callers in turn. It remembers 10,000 \
         applications (`cache_entries`): with more callers than that it asks the store each time.\n\n{table}",
        results.effort.starts
    )
}

fn of(results: &Results, operation: Operation) -> impl Iterator<Item = &Cell> {
    let cells = results.cells.iter();
    cells.filter(move |cell| cell.operation == operation)
}

/// The script's call, without what only says where something is on this machine.
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
