//! `conf/observe/dashboard.json`.

use serde_json::Value;

use super::read;

/// A panel of the dashboard.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// The unit of its values, as Grafana names it.
    pub unit: String,
    /// Its queries.
    pub queries: Vec<Query>,
}

/// A query of a panel.
#[derive(Clone, Debug)]
pub struct Query {
    /// The `PromQL` expression that Prometheus evaluates.
    pub expression: String,
    /// How a series is named, with `{{label}}`.
    pub legend: String,
}

impl Query {
    /// The expression with values for Grafana's variables.
    #[must_use]
    pub fn filled_in(&self) -> String {
        self.expression
            .replace("$__rate_interval", "5m")
            .replace("$__range", "1h")
            .replace("$instance", ".*")
    }

    /// The labels in the legend.
    #[must_use]
    pub fn legend_labels(&self) -> Vec<&str> {
        let parts = self.legend.split("{{").skip(1);
        parts
            .filter_map(|part| part.split("}}").next())
            .map(str::trim)
            .collect()
    }
}

/// The panels with queries, in their order, then the annotations that have one. Also the titles of the rows.
///
/// # Panics
///
/// When the file is not JSON, or a panel lacks a member.
#[must_use]
pub fn dashboard() -> (Vec<Panel>, Vec<String>) {
    let file: Value = serde_json::from_str(&read("dashboard.json")).expect("it is JSON");
    let all = file["panels"].as_array().expect("it has panels");
    let (rows, panels): (Vec<_>, Vec<_>) = all.iter().partition(|panel| panel["type"] == "row");
    let annotations = file["annotations"]["list"].as_array();
    let annotations = annotations.into_iter().flatten();
    let annotations = annotations.filter(|annotation| annotation["expr"].is_string());
    let annotations = annotations.map(|annotation| Panel {
        title: text(&annotation["name"]),
        description: text(&annotation["titleFormat"]),
        unit: "none".to_owned(),
        queries: vec![Query {
            expression: text(&annotation["expr"]),
            legend: text(&annotation["textFormat"]),
        }],
    });
    let panels = panels.into_iter().map(panel).chain(annotations).collect();
    let rows = rows.into_iter().map(|row| text(&row["title"])).collect();
    (panels, rows)
}

fn panel(panel: &Value) -> Panel {
    let targets = panel["targets"].as_array().expect("a panel has targets");
    let is_heatmap = panel["type"] == "heatmap";
    let unit = match &panel["fieldConfig"]["defaults"]["unit"] {
        // A heatmap's unit is the unit of its axis.
        Value::Null if is_heatmap => &panel["options"]["yAxis"]["unit"],
        unit => unit,
    };
    Panel {
        title: text(&panel["title"]),
        description: text(&panel["description"]),
        unit: text(unit),
        queries: targets
            .iter()
            .map(|target| Query {
                expression: text(&target["expr"]),
                legend: text(&target["legendFormat"]),
            })
            .collect(),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
