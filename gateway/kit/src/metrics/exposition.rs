//! The response to a scrape: OpenMetrics 1.0 if the scraper accepts it, otherwise Prometheus' text format 0.0.4.

use std::collections::HashMap;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use prometheus_client::encoding::text;

use super::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

impl Metrics {
    /// Answers a scrape with these request headers.
    #[must_use]
    pub fn response(&self, headers: &HeaderMap) -> Response<String> {
        let mut body = String::new();
        if text::encode(&mut body, &self.0).is_err() {
            let mut failed = Response::new("the metrics cannot be written\n".to_owned());
            *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            return failed;
        }
        let format = if accepts_open_metrics(headers) {
            OPEN_METRICS
        } else {
            body = to_prometheus(&body);
            PROMETHEUS
        };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Whether a scraper takes OpenMetrics. Those that do name it; one that takes anything is better served with the older
/// format, which every tool reads.
fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter();
    let mut ranges = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    ranges.any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next() == Some("application/openmetrics-text");
        // Version 0.0.1, which older releases of Prometheus ask for, is a draft: they get the text format.
        is_named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "version=0.0.1"))
    })
}

/// Rewrites OpenMetrics as Prometheus' text format. There, a family is named as its samples, so that the names of
/// counters and infos get their suffix; an info is a gauge; and there is no end mark.
fn to_prometheus(open_metrics: &str) -> String {
    let types: HashMap<&str, &str> = open_metrics
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let mut out = String::with_capacity(open_metrics.len());
    for line in open_metrics.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            out.extend([line, "\n"]);
            continue;
        };
        let Some((keyword @ ("HELP" | "TYPE"), rest)) = comment.split_once(' ') else {
            continue;
        };
        let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let (suffix, text) = match types.get(name) {
            Some(&"counter") => ("_total", text),
            Some(&"info") if keyword == "TYPE" => ("_info", "gauge"),
            Some(&"info") => ("_info", text),
            _ => ("", text),
        };
        out.extend(["# ", keyword, " ", name, suffix, " ", text, "\n"]);
    }
    out
}
