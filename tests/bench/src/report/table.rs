//! The tables, as Markdown that is also readable in a terminal.

use std::fmt::Write;

use super::{Results, targets};
use crate::{
    case::{Case, Transport},
    contestant::Contestant,
    instructions::TRACED_FACTOR,
    ramp::Step,
    rounds::{Sample, median},
};

/// All tables, as Markdown.
pub fn markdown(results: &Results) -> String {
    let mut text = String::from("# Side by side\n\n");
    if results.is_quick {
        text += "**Measured with --quick: these figures mean nothing.**\n\n";
    }
    text += &about(results);
    if !results.series.is_empty() {
        text += &cpu(results);
        text += &targets_table(results);
    }
    if !results.instructions.is_empty() {
        text += &instructions(results);
    }
    if !results.series.is_empty() {
        text += &throughput(results);
        text += &latency(results);
    }
    if !results.memory.is_empty() {
        text += &memory(results);
    }
    if !results.ramp.is_empty() {
        text += &ramp(results);
    }
    text
}

fn about(results: &Results) -> String {
    let machine = &results.machine;
    let cases: String = results
        .cases()
        .iter()
        .map(|case| format!("| {case} | {} | {} |\n", case.title(), connections(*case)))
        .collect();
    let effort = &results.effort;
    let (closed, open) = (effort.closed.as_secs_f64(), effort.open.as_secs_f64());
    let round = match results.series.is_empty() {
        true => String::new(),
        false => format!(
            "; in each, a closed loop of about {closed:.1} s, then {open:.1} s at a fixed rate"
        ),
    };
    format!(
        "`{}`, {}, in {} minutes. {} × {}, {}, Linux {}. {}.\n\n\
         {}. Loopback, keep-alive, access log off. Medians of {} interleaved rounds{round}. \
         Every response is checked. Before, every contestant was proven to do the work.\n\n\
         | case | load | connections |\n| --- | --- | --- |\n{cases}\n",
        machine.command,
        machine.date,
        results.seconds.div_ceil(60),
        machine.processors,
        machine.processor,
        machine.system,
        machine.kernel,
        machine.versions.join(", "),
        match results.threads {
            1 => "One worker thread on processor 0; load and backend on processor 1".to_owned(),
            threads => format!(
                "{threads} worker threads on processors 0 and 1, which load and backend share"
            ),
        },
        effort.rounds,
    )
}

/// The number of connections, and of concurrent requests on each if there are several.
fn connections(case: Case) -> String {
    match case.streams() {
        1 => case.connections().to_string(),
        streams => format!("{}, {streams} streams each", case.connections()),
    }
}

/// The proxy that the CPU of the others is compared with.
const fn reference(case: Case) -> Contestant {
    match case.transport() {
        Transport::Http => Contestant::BarePingora,
        Transport::Https | Transport::HttpsResumed | Transport::Http2 => Contestant::NginxMap,
    }
}

fn cpu(results: &Results) -> String {
    let mut text = String::from(
        "## CPU per request\n\n\
         Microseconds of processor time of the proxy's own processes (the kernel's `schedstat`, user and kernel time), \
         in the closed loop. In parentheses: the ratio to bare pingora; over TLS, to nginx. \\* forwards without \
         verifying.\n\n",
    );
    text += &grid(results, |contestant, case| {
        let own = results.cpu(contestant, case)?;
        let ratio = results
            .cpu(reference(case), case)
            .map(|reference| own / reference);
        let ratio = ratio
            .map(|ratio| format!(" ({ratio:.2})"))
            .unwrap_or_default();
        Some(format!(
            "{}{}{ratio}",
            three_digits(own),
            star(contestant, case)
        ))
    });
    text + &format!(
        "\nFigures vary between rounds by {:.1} % (the median of all; half of the distance between highest and lowest).\n\n",
        spread(results) * 100.0
    )
}

/// The median spread of the rounds, over contestants and cases, relative to their median.
fn spread(results: &Results) -> f64 {
    let spread = |figures: Vec<f64>| {
        let highest = figures.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = figures.iter().copied().fold(f64::INFINITY, f64::min);
        (highest - lowest) / 2.0 / median(figures)
    };
    let all = results.series.iter();
    median(
        all.map(|series| spread(series.samples.iter().map(|sample| sample.cpu_us).collect()))
            .collect(),
    )
}

fn targets_table(results: &Results) -> String {
    let mut text = String::from(
        "## Targets\n\n| figure | measured | limit | aim | |\n| --- | ---: | ---: | ---: | --- |\n",
    );
    for target in targets::all(results) {
        let write = |figure| target.unit.write(figure);
        let reached = target.reached.map_or_else(|| "–".to_owned(), write);
        let _ = writeln!(
            text,
            "| {} | {reached} | {} | {} | {} |",
            target.what,
            write(target.bound),
            write(target.aim),
            target.verdict().word()
        );
    }
    text + "\n"
}

fn instructions(results: &Results) -> String {
    let mut text = format!(
        "## Instructions per request\n\n\
         In user space, counted by callgrind over {} requests on four connections; with traces over {TRACED_FACTOR} times as \
         many. \\* forwards without verifying.\n\n",
        results.effort.counted
    );
    text += &grid(results, |contestant, case| {
        let own = results.instructions(contestant, case)?;
        Some(format!("{:.1}k{}", own / 1000.0, star(contestant, case)))
    });
    text + "\n"
}

fn throughput(results: &Results) -> String {
    let mut text = String::from(
        "## Requests per second\n\nIn the closed loop, where the load or the backend may be the limit.\n\n",
    );
    text += &grid(results, |contestant, case| {
        let own = results.median(contestant, case, |sample| sample.a_second)?;
        Some(format!("{own:.0}{}", star(contestant, case)))
    });
    text + "\n"
}

fn latency(results: &Results) -> String {
    let mut text = String::from(
        "## Latency at a fixed rate\n\n\
         p50 / p99 in microseconds, from the moment at which a request was due. The rate of a case is half of what the slowest \
         proxy serves in it.\n\n",
    );
    let rates: Vec<String> = results
        .cases()
        .iter()
        .filter_map(|case| {
            let mut proxies = results
                .series
                .iter()
                .filter(|series| series.contestant.is_proxy());
            let rate = proxies.find(|series| series.case == *case)?.rate;
            Some(format!("{case} {rate}/s"))
        })
        .collect();
    let _ = writeln!(text, "{}.\n", rates.join(", "));
    let quantile = |contestant, case, figure: fn(&Sample) -> f64| {
        results.median(contestant, case, figure).map(three_digits)
    };
    text += &grid(results, |contestant, case| {
        let half = quantile(contestant, case, |sample| sample.p50_us)?;
        let most = quantile(contestant, case, |sample| sample.p99_us)?;
        Some(format!("{half} / {most}"))
    });
    text + "\n"
}

fn memory(results: &Results) -> String {
    let mut text = String::from(
        "## Resident memory\n\nMiB (`VmRSS`, summed over processes) after a warm-up, without connections, and with idle connections that \
         have each served a request.\n\n| | | idle |",
    );
    for count in results.effort.idle {
        let _ = write!(text, " {count} connections |");
    }
    text += "\n| --- | --- | ---: | ---: | ---: |\n";
    let mebibytes = |kib: u64| three_digits(kib as f64 / 1024.0);
    for memory in &results.memory {
        let _ = write!(
            text,
            "| {} | {}, {} | {} |",
            memory.contestant.title(),
            memory.case,
            memory.case.transport().title(),
            mebibytes(memory.idle_kib)
        );
        for (_, kib) in &memory.connected {
            let _ = write!(text, " {} |", mebibytes(*kib));
        }
        text += "\n";
    }
    text
}

fn ramp(results: &Results) -> String {
    let mut text = format!(
        "## Ramp to saturation\n\n\
         Each contestant gets the same rates for {:.1} s. 100 % is the highest throughput of any of them in a closed loop. Latency \
         in microseconds, from the moment at which a request was due: once a contestant serves less than the rate, requests \
         wait. CPU is the processor time of the proxy's own processes, in per cent of one processor. \\* forwards without \
         verifying.\n\n\
         | | load | requests a second | | served a second | p50 | p99 | CPU % |\n\
         | --- | ---: | ---: | --- | ---: | ---: | ---: | ---: |\n",
        results.effort.open.as_secs_f64()
    );
    for Step { percent, series } in &results.ramp {
        let (case, contestant) = (series.case, series.contestant);
        let of_processor = series.median(|sample| sample.cpu_us * sample.a_second) / 10_000.0;
        let _ = writeln!(
            text,
            "| {case} | {percent} % | {} | {}{} | {:.0} | {} | {} | {of_processor:.0} |",
            series.rate,
            contestant.title(),
            star(contestant, case),
            series.median(|sample| sample.a_second),
            three_digits(series.median(|sample| sample.p50_us)),
            three_digits(series.median(|sample| sample.p99_us)),
        );
    }
    text + "\n"
}

/// A table with a row for each contestant and a column for each case, without empty rows and columns.
fn grid(results: &Results, cell: impl Fn(Contestant, Case) -> Option<String>) -> String {
    let contestants = results.contestants();
    let is_filled = |case: &Case| contestants.iter().any(|one| cell(*one, *case).is_some());
    let cases: Vec<Case> = results.cases().into_iter().filter(is_filled).collect();
    let mut text = String::from("| |");
    for case in &cases {
        let _ = write!(text, " {case} |");
    }
    text += "\n| --- |";
    text += &" ---: |".repeat(cases.len());
    text += "\n";
    for contestant in contestants {
        let cells: Vec<_> = cases.iter().map(|case| cell(contestant, *case)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(text, "| {} |", contestant.title());
        for cell in cells {
            let _ = write!(text, " {} |", cell.unwrap_or_default());
        }
        text += "\n";
    }
    text
}

fn star(contestant: Contestant, case: Case) -> &'static str {
    if case.is_signed() && !contestant.verifies() {
        "\\*"
    } else {
        ""
    }
}

/// Formats a figure with about three significant digits.
pub(super) fn three_digits(figure: f64) -> String {
    if figure < 9.995 {
        format!("{figure:.2}")
    } else if figure < 99.95 {
        format!("{figure:.1}")
    } else {
        format!("{figure:.0}")
    }
}
