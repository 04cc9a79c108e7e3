//! Tests of the reports, on invented results.

use std::time::Duration;

use super::{
    Results, chart, markdown,
    targets::{self, Verdict},
};
use crate::{
    case::Case,
    contestant::Contestant,
    instructions::Instructions,
    machine::Machine,
    memory::Memory,
    ramp::Step,
    rounds::{Effort, Sample, Series},
};

fn series(contestant: Contestant, case: Case, cpu: [f64; 3]) -> Series {
    let sample = |cpu_us| Sample {
        cpu_us,
        a_second: 20_000.0,
        p50_us: 100.0,
        p99_us: 900.0,
    };
    Series {
        case,
        contestant,
        requests: 1000,
        rate: 5000,
        samples: cpu.map(sample).into(),
    }
}

fn counted(contestant: Contestant, case: Case, count: f64) -> Instructions {
    Instructions {
        contestant,
        case,
        count,
    }
}

fn results() -> Results {
    let (own, bare, nginx, lua) = (
        Contestant::Signpost,
        Contestant::BarePingora,
        Contestant::NginxMap,
        Contestant::NginxLua,
    );
    Results {
        machine: Machine {
            processor: "a <processor>".to_owned(),
            processors: 2,
            kernel: "6.1".to_owned(),
            system: "Debian".to_owned(),
            versions: vec!["nginx 1.22.1".to_owned()],
            date: "2026-11-21 12:00 UTC".to_owned(),
            command: "scripts/bench".to_owned(),
        },
        is_quick: false,
        effort: Effort {
            rounds: 3,
            closed: Duration::from_secs(2),
            ..Effort::full(3)
        },
        threads: 1,
        series: vec![
            series(bare, Case::W1, [20.0, 10.0, 90.0]),
            series(own, Case::W1, [14.0, 13.0, 23.0]),
            series(bare, Case::W2, [20.0; 3]),
            series(lua, Case::W2, [20.0; 3]),
            series(own, Case::W2, [15.0; 3]),
            series(nginx, Case::W11, [40.0; 3]),
            series(own, Case::W11, [44.0; 3]),
        ],
        instructions: vec![
            counted(bare, Case::W2, 50_000.0),
            counted(own, Case::W2, 59_001.0),
        ],
        memory: vec![Memory {
            contestant: own,
            case: Case::W1,
            idle_kib: 18 * 1024,
            connected: vec![(1000, 40 * 1024), (10_000, 255 * 1024)],
        }],
        ramp: vec![Step {
            percent: 90,
            series: series(nginx, Case::W2, [30.0, 25.0, 35.0]),
        }],
        seconds: 61,
    }
}

#[test]
fn targets_are_compared_with_medians() {
    let targets = targets::all(&results());
    let verdict = |start: &str| {
        let mut all = targets.iter();
        all.find(|target| target.what.starts_with(start))
            .map(targets::Target::verdict)
    };
    // Medians 14 and 20, in spite of the outliers: exactly at the limit, which counts as met.
    assert_eq!(verdict("W1"), Some(Verdict::Met));
    assert_eq!(
        verdict("W2: CPU per request, against nginx + Lua"),
        Some(Verdict::Met)
    );
    assert_eq!(
        verdict("W2: CPU per request, against nginx, map"),
        Some(Verdict::NotMeasured)
    );
    assert_eq!(verdict("W3"), Some(Verdict::NotMeasured));
    assert_eq!(verdict("W9"), Some(Verdict::NotMeasured));
    assert_eq!(verdict("W11"), Some(Verdict::Missed));
    assert_eq!(verdict("resident with 10,000"), Some(Verdict::Missed));
    assert_eq!(verdict("resident when idle"), Some(Verdict::Aim));
}

#[test]
fn tables_have_figures_ratios_and_stars() {
    let text = markdown(&results());
    for line in [
        "| bare pingora | 20.0 (1.00) | 20.0\\* (1.00) |  |",
        "| nginx, map |  |  | 40.0\\* (1.00) |",
        "| nginx + Lua, verifying |  | 20.0 (1.00) |  |",
        "| Signpost | 14.0 (0.70) | 15.0 (0.75) | 44.0 (1.10) |",
        "| W11 | W2 over HTTP/2 | 16, 8 streams each |",
        "| Signpost | 59.0k |",
        "| Signpost | W1, HTTP | 18.0 | 40.0 | 255 |",
        "W1 5000/s, W2 5000/s, W11 5000/s.",
        "| W2 | 90 % | 5000 | nginx, map\\* | 20000 | 100 | 900 | 60 |",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
}

#[test]
fn the_chart_has_a_bar_for_each_figure() {
    let chart = chart::svg(&results());
    assert_eq!(chart.matches("<rect").count(), 1 + 7);
    assert!(chart.contains("a &lt;processor>"));
    assert!(chart.contains("bare pingora *"));
}
