//! Compares an operation: its parameters, the body of its requests, its responses.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Comparison, Operation, variables};
use crate::{
    document::Document,
    finding::{Action, List, Place},
    hint,
    schema::Schema,
    schemas::Direction::{self, Request, Response},
};

const FORM: &str = "application/x-www-form-urlencoded";

impl<'d> Comparison<'d> {
    pub(super) fn compare_operations(&mut self, old: Operation<'d>, new: Operation<'d>) {
        if new.value["deprecated"] == true && old.value["deprecated"] != true {
            self.add(Place::Operation, "deprecated", false, "is deprecated");
        }
        self.compare_security(old, new);
        self.compare_parameters(&parameters(old), &parameters(new));
        self.compare_request(
            old.document.member(old.value, "requestBody"),
            new.document.member(new.value, "requestBody"),
        );
        self.compare_responses(old, new);
    }

    fn compare_parameters(&mut self, olds: &Parameters<'d>, news: &Parameters<'d>) {
        let mut renamed = Vec::new();
        for ((within, key), old) in olds {
            let place = |path| Place::Parameter((*within).to_owned(), name(old).to_owned(), path);
            if let Some(new) = news.get(&(*within, key.clone())) {
                self.compare_parameter([old, new], *within, &place);
                continue;
            }
            let other = |(other, _): &&(&str, String)| {
                *other != *within && !olds.contains_key(&(*other, key.clone()))
            };
            let moved = news.keys().filter(|(_, other)| other == key).find(other);
            if let Some((other, _)) = moved {
                self.add(
                    place("$".to_owned()),
                    "parameter-moved",
                    true,
                    format!("is sent in {other}"),
                );
                renamed.push((*other, key.clone()));
                continue;
            }
            self.add(place("$".to_owned()), "parameter-removed", true, "is gone");
            let is_new = |(other, key): &(&str, String)| {
                other == within && !olds.contains_key(&(*other, key.clone()))
            };
            let mut fits = news.iter().filter(|(key, new)| {
                is_new(key) && *within == "query" && hint::is_alike(name(old), name(new))
            });
            if let Some((key, new)) = fits.next().filter(|_| fits.next().is_none()) {
                let (from, to) = (name(old), name(new).to_owned());
                self.hint(List::Request, from, Action::Rename(to));
                renamed.push((key.0, key.1.clone()));
            }
        }
        for (key, new) in news.iter().filter(|(key, _)| !olds.contains_key(*key)) {
            // What a path has, clients send, whether the old document says so or not.
            let is_required = new["required"] == true && key.0 != "path" && !renamed.contains(key);
            let place = Place::Parameter(key.0.to_owned(), name(new).to_owned(), "$".to_owned());
            let (kind, text) = match is_required {
                true => ("required-parameter-added", "is new and required"),
                false => ("parameter-added", "is new"),
            };
            self.add(place, kind, is_required, text);
            let schema = Schema::new(self.schemas.new, &[&new["schema"]]);
            if let Some(value) =
                hint::only_value(&schema).filter(|_| is_required && key.0 == "query")
            {
                self.hint(List::Request, name(new), Action::Default(value.clone()));
            }
        }
    }

    fn compare_parameter(
        &mut self,
        [old, new]: [&'d Value; 2],
        within: &str,
        place: &dyn Fn(String) -> Place,
    ) {
        let itself = || place("$".to_owned());
        match (old["required"] == true, new["required"] == true) {
            (false, true) => self.add(itself(), "parameter-became-required", true, "is required"),
            (true, false) => self.add(itself(), "parameter-became-optional", false, "is optional"),
            _ => {}
        }
        if new["deprecated"] == true && old["deprecated"] != true {
            self.add(itself(), "deprecated", false, "is deprecated");
        }
        let form = |parameter: &'d Value| {
            let default = if matches!(within, "query" | "cookie") {
                "form"
            } else {
                "simple"
            };
            let style = parameter["style"].as_str().unwrap_or(default);
            let explode = parameter["explode"].as_bool().unwrap_or(style == "form");
            (style, explode, content(parameter).map(|(kind, _)| kind))
        };
        let ((style, explode, kind), (new_style, new_explode, new_kind)) = (form(old), form(new));
        // Only lists and objects are written in several ways.
        let types = Schema::new(self.schemas.old, &[&old["schema"]]).types();
        let differs = style != new_style || explode != new_explode && types >= crate::schema::ARRAY;
        if kind != new_kind || differs {
            self.add(
                itself(),
                "parameter-serialization-changed",
                true,
                "its values are written in another way",
            );
        }
        let schema = |parameter: &'d Value| {
            content(parameter).map_or(&parameter["schema"], |(_, media)| &media["schema"])
        };
        let before = self.report.findings.len();
        self.compare_schemas(Request, kind.is_none(), [schema(old), schema(new)], place);
        for finding in &mut self.report.findings[before..] {
            finding.steps.clear();
        }
        let is_default = |kind: &str| matches!(kind, "default-changed" | "default-removed");
        let changed = self.report.findings[before..]
            .iter()
            .any(|finding| is_default(&finding.kind));
        let value = hint::only_value(&Schema::new(self.schemas.old, &[schema(old)]));
        if let Some(value) = value.filter(|_| changed && within == "query") {
            self.hint(List::Request, name(old), Action::Default(value.clone()));
        }
    }

    fn compare_request(&mut self, old: &'d Value, new: &'d Value) {
        let place = || Place::RequestBody(String::new(), String::new());
        let is_required = new["required"] == true;
        match (old.is_object(), new.is_object()) {
            (false, false) => return,
            (false, true) if is_required => {
                return self.add(place(), "request-body-added", true, "is new and required");
            }
            (false, true) => return self.add(place(), "request-body-added", false, "is new"),
            (true, false) => return self.add(place(), "request-body-removed", true, "is gone"),
            (true, true) => {}
        }
        match (old["required"] == true, is_required) {
            (false, true) => self.add(place(), "request-body-became-required", true, "is required"),
            (true, false) => self.add(
                place(),
                "request-body-became-optional",
                false,
                "is optional",
            ),
            _ => {}
        }
        let before = self.report.findings.len();
        self.compare_content(Request, [old, new], &|kind, path| {
            Place::RequestBody(kind, path)
        });
        for finding in &mut self.report.findings[before..] {
            // The fields of a form are parameters.
            if matches!(&finding.place, Place::RequestBody(kind, _) if kind == FORM) {
                finding.steps.retain_mut(|step| {
                    step.list = List::Request;
                    step.at.drain(.."$.".len().min(step.at.len()));
                    matches!(step.action, Action::Rename(_) | Action::Default(_))
                        && !step.at.contains(['.', '['])
                });
            }
        }
    }

    fn compare_content(
        &mut self,
        direction: Direction,
        [old, new]: [&'d Value; 2],
        place: &dyn Fn(String, String) -> Place,
    ) {
        let (olds, news) = (
            media_types(self.schemas.old, old),
            media_types(self.schemas.new, new),
        );
        for (kind, media) in &olds {
            let itself = || place(kind.clone(), String::new());
            let other = news.get(kind).or_else(|| {
                let mut all = news.iter();
                all.find(|(other, _)| {
                    covers(other, kind) || direction == Response && covers(kind, other)
                })
                .map(|(_, media)| media)
            });
            let Some(other) = other else {
                self.add(
                    itself(),
                    "media-type-removed",
                    true,
                    format!("{kind} is gone"),
                );
                continue;
            };
            if direction == Response
                && !news.contains_key(kind)
                && !news.keys().any(|other| covers(kind, other))
            {
                self.add(
                    itself(),
                    "media-type-widened",
                    true,
                    format!("{kind} can be another type"),
                );
            }
            let schemas = [&media["schema"], &other["schema"]];
            self.compare_schemas(direction, !is_json(kind), schemas, |path| {
                place(kind.clone(), path)
            });
        }
        for kind in news.keys().filter(|kind| !olds.contains_key(*kind)) {
            self.add(
                place(kind.clone(), String::new()),
                "media-type-added",
                false,
                format!("{kind} is new"),
            );
        }
    }

    fn compare_responses(&mut self, old: Operation<'d>, new: Operation<'d>) {
        let olds: BTreeMap<_, _> = old.document.members(old.value, "responses").collect();
        let news: BTreeMap<_, _> = new.document.members(new.value, "responses").collect();
        let is_success = |status: &str| status.starts_with(['1', '2', '3']);
        let only_new = |all: &BTreeMap<&'d str, &'d Value>, others: &BTreeMap<&str, &Value>| {
            let mut fresh = all
                .iter()
                .filter(|(status, _)| is_success(status) && !others.contains_key(*status));
            let first = fresh.next().map(|(status, response)| (*status, *response));
            first.filter(|_| fresh.next().is_none())
        };
        for (status, response) in &olds {
            let class = format!("{}XX", &status.get(..1).unwrap_or_default());
            let same = news
                .get(status)
                .or_else(|| news.get(&*class))
                .or_else(|| news.get("default"));
            let place = |kind, path| Place::Response((*status).to_owned(), kind, path);
            let itself = || place(String::new(), String::new());
            if let Some(other) = same {
                self.compare_response(status, [response, other], &place);
                continue;
            }
            if !is_success(status) {
                self.add(itself(), "error-status-removed", false, "is gone");
                continue;
            }
            let replaced = only_new(&olds, &news).and(only_new(&news, &olds));
            let text =
                replaced.map_or_else(|| "is gone".to_owned(), |(other, _)| format!("→ {other}"));
            self.add(itself(), "success-status-removed", true, text);
            if let Some((_, other)) = replaced {
                if let Ok(status) = status.parse() {
                    self.hint(List::Response, "", Action::Status(status));
                }
                self.compare_response(status, [response, other], &place);
            }
        }
        for status in news.keys().filter(|status| !olds.contains_key(*status)) {
            let place = Place::Response((*status).to_owned(), String::new(), String::new());
            self.add(place, "status-added", false, "is new");
        }
    }

    fn compare_response(
        &mut self,
        status: &str,
        [old, new]: [&'d Value; 2],
        place: &dyn Fn(String, String) -> Place,
    ) {
        self.compare_content(Response, [old, new], place);
        let headers = |document: &'d Document, of| {
            let all = document
                .members(of, "headers")
                .map(|(name, header)| (name.to_ascii_lowercase(), (name, header)));
            all.collect::<BTreeMap<_, _>>()
        };
        let mut news = headers(self.schemas.new, new);
        for (key, (name, old)) in headers(self.schemas.old, old) {
            let place = || Place::Header(status.to_owned(), name.to_owned());
            let Some((_, new)) = news.remove(&key) else {
                self.add(place(), "header-removed", true, "is gone");
                continue;
            };
            if old["required"] == true && new["required"] != true {
                self.add(place(), "header-became-optional", true, "is optional");
            }
            self.compare_schemas(Response, true, [&old["schema"], &new["schema"]], |_| {
                place()
            });
        }
        for (name, _) in news.into_values() {
            self.add(
                Place::Header(status.to_owned(), name.to_owned()),
                "header-added",
                false,
                "is new",
            );
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
        let within = parameter["in"].as_str().unwrap_or_default();
        let name = name(parameter);
        let key = match within {
            "path" => variables
                .iter()
                .position(|one| *one == name)
                .map_or_else(|| name.to_owned(), |at| format!("{at:04}")),
            "header" => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        };
        // Others describe these three.
        let is_ignored =
            within == "header" && matches!(&*key, "accept" | "content-type" | "authorization");
        if !is_ignored {
            all.insert((within, key), parameter);
        }
    }
    all
}

fn name(parameter: &Value) -> &str {
    parameter["name"].as_str().unwrap_or_default()
}

/// The type of content of a parameter that has one.
fn content(parameter: &Value) -> Option<(&str, &Value)> {
    let (kind, media) = parameter["content"].as_object()?.iter().next()?;
    Some((kind, media))
}

/// Types of content, in lower case, without parameters.
fn media_types<'d>(document: &'d Document, of: &'d Value) -> BTreeMap<String, &'d Value> {
    let all = document.members(of, "content");
    all.map(|(kind, media)| {
        (
            kind.split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase(),
            media,
        )
    })
    .collect()
}

/// Whether a range such as `text/*` has a type.
fn covers(range: &str, kind: &str) -> bool {
    range == "*/*"
        || range
            .strip_suffix('*')
            .is_some_and(|start| start.ends_with('/') && kind.starts_with(start))
}

/// Whether numbers and texts differ in it. A range can be JSON.
fn is_json(kind: &str) -> bool {
    kind.ends_with("json") || kind.contains('*')
}
