//! Metrics of a program, read from its `/metrics` in Prometheus' text format 0.0.4.

use std::{collections::BTreeMap, net::SocketAddr};

use crate::signed_client::fetch;

/// What a program's `/metrics` said at one time.
#[derive(Clone, Debug, Default)]
pub struct Scrape {
    text: String,
    families: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

/// A line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its name, for example `signpost_requests_total`, or a histogram's with `_bucket`, `_sum` or `_count`.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its value.
    pub value: f64,
}

impl Scrape {
    /// Reads the metrics of the program that serves them at this address: the gateway at its management listener, a
    /// backend where it listens.
    ///
    /// # Panics
    ///
    /// When the response is not 200, or not in the text format.
    pub async fn of(address: SocketAddr) -> Self {
        let response = fetch(&format!("http://{address}/metrics")).await;
        assert_eq!(response.status, 200, "{}", response.text());
        Self::parse(&response.text())
    }

    /// Reads the text format.
    ///
    /// # Panics
    ///
    /// When a line is malformed, a family is declared twice, or a sample occurs twice.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut scrape = Self {
            text: text.to_owned(),
            ..Self::default()
        };
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(family) = line.strip_prefix("# TYPE ") {
                let (name, kind) = family.split_once(' ').expect("a type follows the name");
                let before = scrape.families.insert(name.to_owned(), kind.to_owned());
                assert!(before.is_none(), "{name} is declared twice");
            } else if !line.starts_with('#') {
                let sample = Sample::parse(line);
                let is_same =
                    |other: &Sample| (&other.name, &other.labels) == (&sample.name, &sample.labels);
                assert!(!scrape.samples.iter().any(is_same), "{line} occurs twice");
                scrape.samples.push(sample);
            }
        }
        scrape
    }

    /// The whole text, for the messages of failed tests.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The families and their types: `counter`, `gauge` or `histogram`. Names are as in the text, those of counters with
    /// `_total`.
    #[must_use]
    pub fn families(&self) -> &BTreeMap<String, String> {
        &self.families
    }

    /// All samples of this name that have these labels, and perhaps others.
    pub fn samples<'s>(
        &'s self,
        name: &'s str,
        labels: &'s [(&str, &str)],
    ) -> impl Iterator<Item = &'s Sample> {
        let samples = self.samples.iter();
        samples.filter(move |sample| sample.name == name && sample.has(labels))
    }

    /// The value of the sample with this name and exactly these labels, in any order; `None` if there is no such sample.
    #[must_use]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut samples = self.samples(name, labels);
        let sample = samples.find(|sample| sample.labels.len() == labels.len());
        sample.map(|sample| sample.value)
    }

    /// The sum of all samples of this name that have these labels, and perhaps others; 0 if there are none.
    #[must_use]
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.samples(name, labels);
        // Not `sum`, which is -0 for no samples.
        samples.fold(0.0, |sum, sample| sum + sample.value)
    }
}

impl Sample {
    fn has(&self, labels: &[(&str, &str)]) -> bool {
        let has = |(name, value): &(&str, &str)| {
            let own = self.labels.get(*name);
            own.is_some_and(|own| own == value)
        };
        labels.iter().all(has)
    }

    fn parse(line: &str) -> Self {
        let (name, labels, value) = match line.split_once('{') {
            Some((name, rest)) => {
                let (labels, rest) = parse_labels(rest);
                (name, labels, rest)
            }
            None => {
                let (name, rest) = line.split_once(' ').expect("a value follows the name");
                (name, BTreeMap::new(), rest)
            }
        };
        let value = value.trim().parse();
        Self {
            name: name.to_owned(),
            labels,
            value: value.unwrap_or_else(|_| panic!("not a number: {line}")),
        }
    }
}

/// Reads labels up to the closing brace. Returns them, and what follows.
fn parse_labels(mut rest: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(after) = rest.strip_prefix('}') {
            return (labels, after);
        }
        let (name, quoted) = rest.split_once("=\"").expect("a label has a quoted value");
        let mut value = String::new();
        let mut letters = quoted.char_indices();
        let end = loop {
            match letters.next().expect("a quote ends the value") {
                (at, '"') => break at,
                (_, '\\') => match letters.next().expect("a letter follows the backslash") {
                    (_, 'n') => value.push('\n'),
                    (_, letter) => value.push(letter),
                },
                (_, letter) => value.push(letter),
            }
        };
        let before = labels.insert(name.to_owned(), value);
        assert!(before.is_none(), "the label {name} occurs twice");
        rest = &quoted[end + 1..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# HELP signpost_requests_total Requests
# TYPE signpost_requests_total counter
signpost_requests_total{version="v1",status_class="2xx"} 3
signpost_requests_total{version="v2",status_class="2xx"} 4
signpost_requests_total{version="",status_class="4xx"} 1
# TYPE signpost_seconds histogram
signpost_seconds_bucket{le="0.5"} 1
signpost_seconds_bucket{le="+Inf"} 2
signpost_seconds_sum 1.5e0
signpost_seconds_count 2
# TYPE signpost_path gauge
signpost_path{path="a \"b\", {c}\\\n"} -1
"#;

    #[test]
    fn samples_are_found_by_their_labels() {
        let scrape = Scrape::parse(TEXT);
        let name = "signpost_requests_total";
        let of_v1 = [("status_class", "2xx"), ("version", "v1")];
        assert_eq!(scrape.value(name, &of_v1), Some(3.0));
        assert_eq!(scrape.value(name, &of_v1[1..]), None);
        assert_eq!(scrape.value(name, &[("version", "v3")]), None);
        assert_eq!(scrape.sum(name, &[("status_class", "2xx")]), 7.0);
        assert_eq!(scrape.sum(name, &[]), 8.0);
        assert_eq!(scrape.sum(name, &[("version", "v3")]), 0.0);
        assert_eq!(scrape.value("signpost_seconds_sum", &[]), Some(1.5));
        let infinite = scrape.value("signpost_seconds_bucket", &[("le", "+Inf")]);
        assert_eq!(infinite, Some(2.0));
        let escaped = scrape.value("signpost_path", &[("path", "a \"b\", {c}\\\n")]);
        assert_eq!(escaped, Some(-1.0));
        let families: Vec<_> = scrape.families().values().map(String::as_str).collect();
        assert_eq!(families, ["gauge", "counter", "histogram"]);
    }

    #[test]
    #[should_panic(expected = "occurs twice")]
    fn a_sample_must_not_occur_twice() {
        let _ = Scrape::parse("a{b=\"c\"} 1\na{b=\"c\"} 2\n");
    }
}
