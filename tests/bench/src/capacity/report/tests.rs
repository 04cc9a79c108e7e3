use std::time::Duration;

use super::*;
use crate::{
    capacity::{login::Step, store::Kind},
    usage::Usage,
};

fn served(steps: u64) -> Served {
    Served {
        steps,
        seconds: 5.0,
        p50_ms: 1.25,
        p99_ms: 40.5,
        cpu: vec![
            Usage {
                name: "gateway",
                seconds: 2.0,
            },
            Usage {
                name: LOAD,
                seconds: 4.0,
            },
        ],
    }
}

fn results() -> Results {
    Results {
        machine: Machine {
            processor: "A processor".to_owned(),
            processors: 2,
            kernel: "6".to_owned(),
            system: "A system".to_owned(),
            versions: vec!["rustc 1".to_owned()],
            date: "a day".to_owned(),
            command: "scripts/capacity".to_owned(),
        },
        is_quick: false,
        disk: Disk { flush_us: 123.4 },
        effort: Effort::full(32, Duration::from_secs(1), Duration::from_secs(5)),
        cells: vec![Cell {
            operation: Operation::Event,
            store: Kind::Sqlite,
            accounts: 1_000_000,
            served: served(20_000),
        }],
        steps: vec![StepCell {
            step: Step::Callback,
            store: Kind::Postgres,
            served: served(10_000),
        }],
        growth: vec![Growth {
            store: Kind::Postgres,
            applications: 10_000,
            start_ms: 55.5,
            idle_kib: 20 * 1024,
            calling: 10_000,
            served: served(100_000),
            served_kib: 30 * 1024,
        }],
        seconds: 61,
    }
}

#[test]
fn every_figure_is_in_its_table() {
    let text = markdown(&results());
    for line in [
        "`scripts/capacity`, a day, in 61 s. 2 × A processor, A system, Linux 6. rustc 1.",
        "| SQLite | 1,000,000 | 4,000 | 1.25 | 40.5 |",
        "| `/event/send` | SQLite | 1,000,000 | 100 |  |  |  | 200 | 1.20 |",
        "| the callback | Postgres | 200 |  |  |  | 400 | 600 |",
        "| Postgres | 10,000 | 55.5 | 20.0 | 10,000 | 30.0 | 20,000 | 1.25 | 40.5 | 20.0 |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("mean nothing"));
    let quick = Results {
        is_quick: true,
        ..results()
    };
    assert!(markdown(&quick).contains("mean nothing"));
}

#[test]
fn the_command_names_no_folders() {
    let arguments = "--quick --binaries some/where --results=there --seconds 3";
    let arguments = arguments.split(' ').map(str::to_owned);
    assert_eq!(command(arguments), "scripts/capacity --quick --seconds 3");
}

#[test]
fn figures_are_grouped_and_rounded() {
    for (number, text) in [
        (7, "7"),
        (999, "999"),
        (1000, "1,000"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(grouped(number), text);
    }
    for (figure, text) in [(0.123, "0.12"), (12.34, "12.3"), (1234.5, "1,235")] {
        assert_eq!(three_digits(figure), text);
    }
}
