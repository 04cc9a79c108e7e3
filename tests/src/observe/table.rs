//! The tables of metrics in `conf/observe/README.md`.

use std::collections::BTreeSet;

use super::read;

/// A metric of the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Documented {
    /// Its name, as in Prometheus' text format.
    pub name: String,
    /// Its type in that format, where an `info` is a gauge.
    pub kind: String,
    /// The names of its labels.
    pub labels: BTreeSet<String>,
    /// The programs that serve it.
    pub owner: Owner,
}

/// Which programs serve a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The gateway.
    Gateway,
    /// Every program of the login service.
    LoginService,
    /// All of them.
    Every,
}

/// All metrics of the tables, in their order.
///
/// # Panics
///
/// When a row is malformed, or a name occurs twice.
#[must_use]
pub fn documented() -> Vec<Documented> {
    parse(&read("README.md"))
}

fn parse(text: &str) -> Vec<Documented> {
    let mut owner = None;
    let mut all: Vec<Documented> = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix('#') {
            owner = owner_of(heading.trim_start_matches('#').trim());
        } else if let (Some(owner), Some(row)) = (owner, line.strip_prefix("| `")) {
            let metric = parse_row(row, owner);
            let is_new = all.iter().all(|other| other.name != metric.name);
            assert!(is_new, "{} is documented twice", metric.name);
            all.push(metric);
        }
    }
    all
}

/// The owner of the metrics below a heading; `None` if there are none.
fn owner_of(heading: &str) -> Option<Owner> {
    if heading.ends_with(", at the gateway") {
        return Some(Owner::Gateway);
    }
    match heading {
        "Every program" => Some(Owner::Every),
        "Login service" => Some(Owner::LoginService),
        _ => None,
    }
}

/// Reads a row behind the quote before its name.
fn parse_row(row: &str, owner: Owner) -> Documented {
    let (name, rest) = row.split_once("` | ").expect("a name ends in a quote");
    let mut cells = rest.splitn(3, '|').map(str::trim);
    let (kind, labels) = (cells.next().unwrap_or_default(), cells.next());
    let labels = labels.expect("a cell for labels follows the type");
    assert!(
        ["counter", "gauge", "histogram", "info"].contains(&kind),
        "{name}: {kind}"
    );
    let labels = labels
        .split(',')
        .map(|label| label.trim().trim_matches('`'));
    Documented {
        name: name.to_owned(),
        kind: if kind == "info" { "gauge" } else { kind }.to_owned(),
        labels: labels
            .filter(|label| !label.is_empty())
            .map(str::to_owned)
            .collect(),
        owner,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Observability

| subject | where |
| --- | --- |
| `no` | metric |

### Requests, at the gateway

| name | type | labels | what |
| --- | --- | --- | --- |
| `a_total` | counter | `b`, `c` | text with `d` |
| `e_seconds` | histogram | | text |

### Every program

| `f_info` | info | `g` | text |

## Dashboard

| `no` | metric |
";

    #[test]
    fn rows_are_read_below_their_heading() {
        let all = parse(TEXT);
        let names: Vec<_> = all.iter().map(|metric| &*metric.name).collect();
        assert_eq!(names, ["a_total", "e_seconds", "f_info"]);
        assert_eq!(all[0].labels, ["b", "c"].map(str::to_owned).into());
        assert!(all[1].labels.is_empty());
        assert_eq!((&*all[2].kind, all[2].owner), ("gauge", Owner::Every));
        assert_eq!(all[0].owner, Owner::Gateway);
    }

    #[test]
    fn every_program_has_documented_metrics() {
        let all = documented();
        for owner in [Owner::Gateway, Owner::LoginService, Owner::Every] {
            let count = all.iter().filter(|metric| metric.owner == owner).count();
            assert!(count > 4, "{owner:?}: {count}");
        }
    }
}
