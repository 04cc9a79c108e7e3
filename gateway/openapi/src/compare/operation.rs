//! Compares an operation: its parameters, the body of its requests, its responses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Comparison, ITSELF, Operation, variables};
use crate::{
    document::Document,
    finding::Step,
    schema::{ARRAY, Schema},
    schemas::{
        Direction::{self, Request, Response},
        hint,
    },
};

const FORM: &str = "application/x-www-form-urlencoded";

impl<'d> Comparison<'d> {
    pub(super) fn compare_operations(&mut self, old: Operation<'d>, new: Operation<'d>) {
        let flags = [old, new].map(|operation| &operation.value["deprecated"]);
        self.became(ITSELF, flags, "deprecated", false);
        self.compare_security(old, new);
        self.compare_parameters(&parameters(old), &parameters(new));
        self.compare_request([old, new].map(|one| one.document.member(one.value, "requestBody")));
        self.compare_responses(old, new);
    }

    fn compare_parameters(&mut self, olds: &Parameters<'d>, news: &Parameters<'d>) {
        let mut taken = Vec::new();
        for (key, old) in olds {
            let place = format!("parameter {} {}", key.0, name(old));
            if let Some(new) = news.get(key) {
                self.compare_parameter([old, new], key.0, &place);
                continue;
            }
            let fresh = || news.iter().filter(|(other, _)| !olds.contains_key(*other));
            let is_same = |other: &str| other.eq_ignore_ascii_case(&key.1);
            if let Some((other, _)) = fresh().find(|(other, _)| is_same(&other.1)) {
                self.explain(&place, "parameter-moved", true, other.0);
                taken.push(other);
                continue;
            }
            self.add(&place, "parameter-removed", true);
            let in_query = |other: &str| other == "query" && key.0 == "query";
            let mut alike = fresh().filter(|(other, _)| in_query(other.0));
            let mut alike = alike
                .by_ref()
                .filter(|(_, new)| hint::is_alike(name(old), name(new)));
            if let Some((other, new)) = alike.next().filter(|_| alike.next().is_none()) {
                let keys = [("rename", name(old).into()), ("to", name(new).into())];
                self.hint("request", &keys);
                taken.push(other);
            }
        }
        for (key, new) in news.iter().filter(|(key, _)| !olds.contains_key(*key)) {
            // What a path has, clients send, whether the old document says so or not.
            let is_needed = new["required"] == true && key.0 != "path" && !taken.contains(&key);
            let kind = match is_needed {
                true => "required-parameter-added",
                false => "parameter-added",
            };
            let place = format!("parameter {} {}", key.0, name(new));
            self.add(&place, kind, is_needed);
            let value = hint::only_value(&Schema::new(self.schemas.new, &[&new["schema"]]));
            if let Some(value) = value.filter(|_| is_needed && key.0 == "query") {
                let keys = [("default", name(new).into()), ("value", text(value))];
                self.hint("request", &keys);
            }
        }
    }

    fn compare_parameter(&mut self, both: [&'d Value; 2], within: &str, place: &str) {
        let flags = |key| both.map(|parameter| &parameter[key]);
        self.became(place, flags("required"), "parameter-became-required", true);
        self.became(place, flags("deprecated"), "deprecated", false);
        let contents = both.map(|parameter| parameter["content"].as_object()?.iter().next());
        let is_list = Schema::new(self.schemas.old, &[&both[0]["schema"]]).types() >= ARRAY;
        let [before, after] = both.map(|parameter| {
            let default = match within {
                "query" | "cookie" => "form",
                _ => "simple",
            };
            let style = parameter["style"].as_str().unwrap_or(default);
            // Only lists and objects are written in several ways.
            let explode = parameter["explode"].as_bool().unwrap_or(style == "form");
            (style, is_list && explode)
        });
        if before != after || contents[0].map(|one| one.0) != contents[1].map(|one| one.0) {
            self.add(place, "parameter-serialization-changed", true);
        }
        let mut schemas = flags("schema");
        for (schema, content) in schemas.iter_mut().zip(contents) {
            *schema = content.map_or(*schema, |(_, media)| &media["schema"]);
        }
        let start = self.report.findings.len();
        self.compare_schemas(Request, contents[0].is_none(), schemas, place);
        let default = hint::only_value(&Schema::new(self.schemas.old, &[schemas[0]]));
        for finding in &mut self.report.findings[start..] {
            let is_default = finding.kind == "default-changed" && within == "query";
            let value = default.filter(|_| is_default);
            let keys = |value| vec![("default", name(both[0]).into()), ("value", text(value))];
            let step = value.map(|value| Step {
                list: "request",
                keys: keys(value),
            });
            finding.steps = step.into_iter().collect();
        }
    }

    fn compare_request(&mut self, both: [&'d Value; 2]) {
        let place = "request body";
        let flags = both.map(|body| &body["required"]);
        match both.map(Value::is_object) {
            [false, false] => {}
            [false, true] => self.add(place, "request-body-added", flags[1] == true),
            [true, false] => self.add(place, "request-body-removed", true),
            [true, true] => {
                self.became(place, flags, "request-body-became-required", true);
                self.compare_content(Request, both, place);
            }
        }
    }

    fn compare_content(&mut self, direction: Direction, [old, new]: [&'d Value; 2], place: &str) {
        let olds = media_types(self.schemas.old, old);
        let news = media_types(self.schemas.new, new);
        for (kind, media) in &olds {
            let place = match &**kind {
                "application/json" => place.to_owned(),
                kind => format!("{place} ({kind})"),
            };
            let is_special = |other: &str| direction == Response && covers(kind, other);
            let fits = |other: &str| covers(other, kind) || is_special(other);
            let same = news.get_key_value(kind);
            let Some((other, new)) = same.or_else(|| news.iter().find(|(other, _)| fits(other)))
            else {
                self.add(&place, "media-type-removed", true);
                continue;
            };
            if direction == Response && other != kind && !is_special(other) {
                self.add(&place, "media-type-widened", true);
            }
            let start = self.report.findings.len();
            // Whether numbers and texts differ in it. A range can be JSON.
            let is_json = kind.ends_with("json") || kind.contains('*');
            let schemas = [&media["schema"], &new["schema"]];
            self.compare_schemas(direction, !is_json, schemas, &place);
            for finding in &mut self.report.findings[start..] {
                let is_form = kind == FORM;
                finding
                    .steps
                    .retain_mut(|step| if is_form { step.is_for_form() } else { is_json });
            }
        }
    }

    fn compare_responses(&mut self, old: Operation<'d>, new: Operation<'d>) {
        let [olds, news] = [old, new].map(|one| {
            let responses = one.document.members(one.value, "responses");
            responses.collect::<BTreeMap<_, _>>()
        });
        let is_success = |status: &str| status.starts_with(['1', '2', '3']);
        let only = |all: &BTreeMap<&'d str, &'d Value>, others: &BTreeMap<&str, &Value>| {
            let is_fresh = |status: &str| is_success(status) && !others.contains_key(status);
            let mut fresh = all.iter().filter(|(status, _)| is_fresh(status));
            let first = fresh.next().map(|(status, response)| (*status, *response));
            first.filter(|_| fresh.next().is_none())
        };
        let replaced = only(&olds, &news).and(only(&news, &olds));
        for (status, response) in &olds {
            let place = format!("response {status}");
            let class = format!("{}XX", &status.get(..1).unwrap_or_default());
            let same = [status, &*class, "default"]
                .into_iter()
                .find_map(|key| news.get(key));
            let start = self.report.findings.len();
            match (same, replaced) {
                (Some(other), _) => self.compare_response([response, other], &place),
                (None, _) if !is_success(status) => self.add(&place, "error-status-removed", false),
                (None, None) => self.add(&place, "success-status-removed", true),
                (None, Some((other, new))) => {
                    self.explain(&place, "success-status-removed", true, other);
                    if let Ok(status) = status.parse::<u16>() {
                        self.hint("response", &[("status", status.into())]);
                    }
                    self.compare_response([response, new], &place);
                }
            }
            for finding in &mut self.report.findings[start..] {
                finding.status = Some((*status).to_owned());
            }
        }
    }

    fn compare_response(&mut self, both: [&'d Value; 2], place: &str) {
        self.compare_content(Response, both, place);
        let headers = |document: &'d Document, of| {
            let all = document.members(of, "headers");
            let all = all.map(|(name, header)| (name.to_ascii_lowercase(), (name, header)));
            all.collect::<BTreeMap<_, _>>()
        };
        let mut news = headers(self.schemas.new, both[1]);
        for (key, (name, old)) in headers(self.schemas.old, both[0]) {
            let place = format!("{place} header {name}");
            let Some((_, new)) = news.remove(&key) else {
                self.add(&place, "header-removed", true);
                continue;
            };
            let flags = [new, old].map(|header| &header["required"]);
            self.became(&place, flags, "header-became-optional", true);
            self.compare_schemas(Response, true, [&old["schema"], &new["schema"]], &place);
        }
    }
}

/// Parameters by where they are sent, and their names; those of a path by their order.
type Parameters<'d> = BTreeMap<(&'d str, String), &'d Value>;

fn parameters(of: Operation<'_>) -> Parameters<'_> {
    let variables = variables(of.path);
    let lists = [of.item, of.value].map(|value| of.document.member(value, "parameters"));
    let mut all = Parameters::new();
    // Those of the operation replace those of the path.
    for parameter in lists.into_iter().filter_map(Value::as_array).flatten() {
        let parameter = of.document.follow(parameter);
        let (within, name) = (
            parameter["in"].as_str().unwrap_or_default(),
            name(parameter),
        );
        let key = match (within, variables.iter().position(|one| *one == name)) {
            ("path", Some(at)) => format!("{at:04}"),
            ("header", _) => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        };
        // Others describe these three.
        if within != "header" || !matches!(&*key, "accept" | "content-type" | "authorization") {
            all.insert((within, key), parameter);
        }
    }
    all
}

fn name(parameter: &Value) -> &str {
    parameter["name"].as_str().unwrap_or_default()
}

/// The value of a parameter.
fn text(value: &Value) -> Value {
    value
        .as_str()
        .map_or_else(|| value.to_string().into(), Value::from)
}

/// Types of content, in lower case, without parameters.
fn media_types<'d>(document: &'d Document, of: &'d Value) -> BTreeMap<String, &'d Value> {
    let essence = |kind: &str| {
        kind.split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    };
    document
        .members(of, "content")
        .map(|(kind, media)| (essence(kind), media))
        .collect()
}

/// Whether a range such as `text/*` has a type.
fn covers(range: &str, kind: &str) -> bool {
    let start = range.strip_suffix('*').filter(|start| start.ends_with('/'));
    range == "*/*" || start.is_some_and(|start| kind.starts_with(start))
}
