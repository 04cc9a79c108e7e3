//! A real Prometheus with the files of `conf/observe`, which scrapes the programs of a test.

use std::{
    fs::{self, File},
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{
    folder::Folder, observe, port::free_address, signed_client::http_client, waiting::within,
};

/// A running Prometheus. When dropped, it is killed.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: Folder,
}

impl Prometheus {
    /// Starts it with `prometheus.yml` and `alerts.yml`: with these targets, and a scrape every second.
    ///
    /// # Panics
    ///
    /// When it does not become ready.
    pub async fn start(gateways: &[SocketAddr], login_services: &[SocketAddr]) -> Self {
        for _ in 0..MAX_TRIES {
            let mut prometheus = Self::spawn(gateways, login_services);
            let url = prometheus.url("/-/ready");
            let is_ready = within(START_TIMEOUT, || async {
                let response = http_client().get(&url).send().await;
                response.is_ok_and(|one| one.status() == 200).then_some(())
            });
            if is_ready.await.is_some() && prometheus.is_running() {
                return prometheus;
            }
            let log = prometheus.log();
            assert!(log.contains("address already in use"), "{log}");
        }
        panic!("a port was in use {MAX_TRIES} times in a row");
    }

    fn spawn(gateways: &[SocketAddr], login_services: &[SocketAddr]) -> Self {
        let (folder, address) = (Folder::create(), free_address());
        folder.write("prometheus.yml", &configuration(gateways, login_services));
        folder.write("alerts.yml", &observe::read("alerts.yml"));
        let log = File::create(folder.path().join("prometheus.log"));
        let log = log.expect("a log can be written");
        let data = folder.path().join("data");
        let child = Command::new("prometheus")
            .arg("--config.file=prometheus.yml")
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a file has a second handle"))
            .stderr(log)
            .spawn()
            .expect("scripts/prerequisites test installs Prometheus");
        Self {
            child,
            address,
            folder,
        }
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("prometheus.log")).unwrap_or_default()
    }

    /// Evaluates an expression now. Returns the series, or the error.
    ///
    /// # Errors
    ///
    /// What Prometheus says of the expression, also a warning.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>, String> {
        let call = http_client().post(self.url("/api/v1/query"));
        let response = call.form(&[("query", expression)]).send().await;
        let response = response.expect("Prometheus answers").json::<Value>().await;
        let response = response.expect("its responses are JSON");
        let warnings = response["warnings"].as_array().map_or(0, Vec::len);
        if response["status"] != "success" || warnings > 0 {
            return Err(response.to_string());
        }
        Ok(match &response["data"]["result"] {
            Value::Array(series) if response["data"]["resultType"] == "vector" => series.clone(),
            _ => Vec::new(),
        })
    }

    /// The value of an expression that has one series; `None` if it has none.
    ///
    /// # Panics
    ///
    /// When the expression is wrong, or has several series.
    pub async fn value(&self, expression: &str) -> Option<f64> {
        let series = self.query(expression).await;
        let series = series.unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert!(series.len() < 2, "{expression}: {series:?}");
        let value = series.first()?["value"][1].as_str()?;
        value.parse().ok()
    }

    /// Data of its API, for example of `rules` or `targets`.
    ///
    /// # Panics
    ///
    /// When it does not answer.
    pub async fn data(&self, path: &str) -> Value {
        let call = http_client().get(self.url(&format!("/api/v1/{path}")));
        let response = call.send().await.expect("Prometheus answers");
        let response = response
            .json::<Value>()
            .await
            .expect("its responses are JSON");
        response["data"].clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Fails only if it has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `prometheus.yml` with other targets and intervals.
fn configuration(gateways: &[SocketAddr], login_services: &[SocketAddr]) -> String {
    let mut written = [targets(gateways), targets(login_services)].into_iter();
    let file = observe::read("prometheus.yml").replace("interval: 15s", "interval: 1s");
    let mut text = String::new();
    for line in file.lines() {
        if line.trim() == "static_configs:" {
            let targets = written.next().expect("the file has two jobs");
            text += &format!("{line}\n      - targets: {targets}\n");
        } else if !line.trim_start().starts_with("- targets: ") {
            text += &format!("{line}\n");
        }
    }
    assert!(written.next().is_none(), "{file}");
    text
}

fn targets(addresses: &[SocketAddr]) -> String {
    let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    format!("{addresses:?}")
}

/// Attempts to start on free ports, as of a stack.
const MAX_TRIES: usize = 5;

const START_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
