//! Both formats, and the cells.

use std::{fmt, sync::Arc, thread, time::Duration};

use http::{HeaderMap, HeaderValue, header};

use super::{
    Family, Kind, Metrics, NO_LABELS, Scrape,
    cells::{Buckets, Counters, Histogram},
    process,
};

struct Example<'h>(&'h Histogram);

impl Example<'_> {
    fn write(&self, scrape: &mut Scrape<'_>) -> fmt::Result {
        let family = |name, kind, labels| Family {
            name,
            kind,
            labels,
            help: "What it says",
        };
        let calls = [(["ok"], 2_u64), (["a \"b\" \\ \n c"], 1)];
        scrape.numbers(family("calls_total", Kind::Counter, &["result"]), calls)?;
        scrape.number(family("open", Kind::Gauge, &[]), Some(1.5))?;
        scrape.number(family("empty", Kind::Gauge, &[]), None::<u64>)?;
        let seconds = family("seconds", Kind::Histogram, &[]);
        scrape.histogram(seconds, [(NO_LABELS, self.0.observed())])?;
        scrape.info(family("build_info", Kind::Info, &["version"]), ["1"])
    }
}

const SHORT: Buckets = Buckets {
    bounds: &[500, 1_000],
    units_per_second: 1e3,
};

fn scraped(accept: &'static str) -> (String, String) {
    let histogram = Histogram::new(SHORT);
    for value in [499, 500, 1_000, 4_000] {
        histogram.observe(value);
    }
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    let response = Metrics::default()
        .with(move |scrape| Example(&histogram).write(scrape))
        .response(&headers);
    let format = response.headers()[header::CONTENT_TYPE].to_str().unwrap();
    (format.to_owned(), response.into_body())
}

#[test]
fn a_scraper_without_a_preference_gets_prometheus_text() {
    let (format, body) = scraped("*/*");
    assert_eq!(format, "text/plain; version=0.0.4; charset=utf-8");
    let expected = "# HELP calls_total What it says\n\
                    # TYPE calls_total counter\n\
                    calls_total{result=\"ok\"} 2\n\
                    calls_total{result=\"a \\\"b\\\" \\\\ \\n c\"} 1\n\
                    # HELP open What it says\n\
                    # TYPE open gauge\n\
                    open 1.5\n\
                    # HELP empty What it says\n\
                    # TYPE empty gauge\n\
                    # HELP seconds What it says\n\
                    # TYPE seconds histogram\n\
                    seconds_sum 5.999\n\
                    seconds_count 4\n\
                    seconds_bucket{le=\"0.5\"} 2\n\
                    seconds_bucket{le=\"1.0\"} 3\n\
                    seconds_bucket{le=\"+Inf\"} 4\n\
                    # HELP build_info What it says\n\
                    # TYPE build_info gauge\n\
                    build_info{version=\"1\"} 1\n";
    assert_eq!(body, expected);
}

#[test]
fn open_metrics_is_for_scrapers_that_name_it() {
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let (format, body) = scraped(accept);
    assert_eq!(
        format,
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(body.contains("# TYPE calls counter\ncalls_total{result=\"ok\"} 2\n"));
    assert!(body.contains("# TYPE build info\nbuild_info{version=\"1\"} 1\n"));
    assert!(body.ends_with("# EOF\n"));
    for other in ["application/openmetrics-text;q=0", "text/plain", ""] {
        assert!(scraped(other).0.starts_with("text/plain"), "{other}");
    }
}

#[test]
fn additions_of_many_threads_are_all_counted() {
    let counted = Arc::new((Counters::new(1), Counters::new(40)));
    let threads = (0..100).map(|_| {
        let counted = Arc::clone(&counted);
        thread::spawn(move || {
            for index in 0..40 {
                counted.1.add(index, index as u64);
                counted.0.add(0, 1);
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    assert_eq!(counted.0.value(0), 4_000);
    for index in 0..40 {
        assert_eq!(counted.1.value(index), 100 * index as u64);
    }
}

#[test]
fn a_duration_is_in_the_bucket_whose_bound_it_does_not_exceed() {
    let histogram = Histogram::new(Buckets::DURATION);
    for micros in [10, 11, 60_000_001] {
        histogram.observe_duration(Duration::from_micros(micros));
    }
    histogram.observe_duration(Duration::MAX);
    let observed = histogram.observed();
    assert_eq!(observed.buckets[0], (0.000_01, 1));
    assert_eq!(observed.buckets[1], (0.000_025, 1));
    assert_eq!(observed.buckets.last(), Some(&(f64::INFINITY, 2)));
}

#[test]
fn every_value_is_in_the_first_bucket_that_reaches_it() {
    const ONE: Buckets = Buckets {
        bounds: &[0],
        units_per_second: 1.0,
    };
    for buckets in [Buckets::DURATION, SHORT, ONE] {
        let powers = (0..64).map(|digits| 1_u64 << digits);
        let near = |one: u64| [one.saturating_sub(1), one, one + 1];
        let values = powers.chain(buckets.bounds.iter().copied()).flat_map(near);
        for value in values.chain([u64::MAX]) {
            let histogram = Histogram::new(buckets);
            histogram.observe(value);
            let observed = histogram.observed();
            let bucket = observed.buckets.iter().position(|(_, count)| *count == 1);
            let expected = buckets.bounds.partition_point(|bound| *bound < value);
            assert_eq!(bucket, Some(expected), "{value} in {buckets:?}");
            assert_eq!(observed.sum, value as f64 / buckets.units_per_second);
        }
    }
}

#[test]
fn the_process_is_read() {
    let body = Metrics::default()
        .with(|scrape| process::write(scrape, "signpost", "1.2.3"))
        .response(&HeaderMap::new())
        .into_body();
    let value = |name: &str| -> f64 {
        let line = body.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {body}"))
            .trim()
            .parse()
            .unwrap()
    };
    assert!(body.contains("signpost_build_info{program=\"signpost\",version=\"1.2.3\"} 1\n"));
    assert!(value("process_resident_memory_bytes ") > 1e6);
    assert!(value("process_open_fds ") >= 3.0);
    assert!(value("process_threads ") >= 1.0);
    assert!(value("process_cpu_seconds_total ") >= 0.0);
    assert!(value("process_start_time_seconds ") > 1.7e9);
}
