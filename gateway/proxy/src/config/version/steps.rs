//! Reads the steps of changes: the closed list. CONTRACT 5.

use http::{HeaderName, HeaderValue};
use serde_json::json;
use signpost_bridge::{Container, Effect, JsonPath, Operation, Otherwise, ParsePathError};
use signpost_kit::config::{Invalid, Read, Section, Value};
use signpost_protocol::{
    header::HeaderNames,
    sign::{SIGN, TIME},
};

use super::changes::{HeaderChange, ParamEffect, RequestChange, may_change};
use crate::config::readers::path;

/// The keys that say more of a step.
const COMPANIONS: [&str; 5] = ["to", "value", "values", "else", "in"];
const VALUE: &str = "a string, a number, true or false, a list or a table, of at most 1024 bytes";
/// Limit of a value, in bytes: each place of a body can get it.
const MAX_VALUE: usize = 1024;
const ONE_KEY: &str = "one key that says what a step does";
const VALUES: &str = "texts \"FROM=TO\"";
const ELSE: &str = "\"keep\", or what other values become";
const HEADER: &str =
    "a header, but not of the connection, the gateway, a login or the form of a body";
const TEMPLATE: &str = "the beginning of a path, for example \"/user\" or \"/orders/{id}\"";
const PARAMETER: &str = "the name of a parameter, decoded, but not \"time\" or \"sign\"";

/// Reports the keys of a step that what it does has no use for.
fn check_companions(section: &Section<'_>, key: &str, wanted: &[&str]) -> Read<()> {
    let mut unwanted = COMPANIONS.into_iter().filter(|key| !wanted.contains(key));
    match unwanted.find(|key| section.has(key)) {
        None => Ok(()),
        Some(unwanted) => {
            let allowed = match wanted {
                [] => "no other key".to_owned(),
                wanted => wanted.join(", "),
            };
            Err(section.problem(unwanted, &format!("it beside {key}"), &allowed))
        }
    }
}

/// One step of a change of a response.
pub(super) enum ResponseStep {
    Body(Operation),
    Header(HeaderChange),
    Status(u16),
}

/// A kind of step: the key that names it, the keys that it needs beside that, and what it does.
type StepKind<T> = (
    &'static str,
    &'static [&'static str],
    fn(&Beside<'_, '_>) -> Read<T>,
);

/// The closed list of steps of a request; `path` is one more.
const REQUEST_STEPS: [StepKind<ParamEffect>; 6] = [
    ("rename", &["to"], |beside| {
        let to = beside.to_as(PARAMETER, parameter)?;
        Ok(ParamEffect::Rename { to })
    }),
    ("copy", &["to"], |beside| {
        let to = beside.to_as(PARAMETER, parameter)?;
        Ok(ParamEffect::Copy { to })
    }),
    ("remove", &[], |_| Ok(ParamEffect::Remove)),
    ("default", &["value"], |beside| {
        let value = beside.value()?.into();
        Ok(ParamEffect::Default { value })
    }),
    ("constant", &["value"], |beside| {
        let value = beside.value()?.into();
        Ok(ParamEffect::Constant { value })
    }),
    ("map", &["values", "else"], |beside| {
        let (values, otherwise) = (beside.values()?.into(), beside.otherwise.clone());
        Ok(ParamEffect::Map { values, otherwise })
    }),
];

/// The closed list of steps of a body.
const BODY_STEPS: [StepKind<Effect>; 13] = [
    ("rename", &["to"], |beside| {
        let to = beside.to()?.to_owned();
        Ok(Effect::Rename { to })
    }),
    ("move", &["to"], |beside| {
        let to = beside.to_as(ParsePathError::ALLOWED, |to| to.parse().ok())?;
        Ok(Effect::Move { to })
    }),
    ("copy", &["to"], |beside| {
        let to = beside.to_as(ParsePathError::ALLOWED, |to| to.parse().ok())?;
        Ok(Effect::Copy { to })
    }),
    ("remove", &[], |_| Ok(Effect::Remove)),
    ("remove_null", &[], |_| Ok(Effect::RemoveNull)),
    ("default_null", &[], |_| {
        let value = "null".to_owned();
        Ok(Effect::Default { value })
    }),
    ("default", &["value"], |beside| {
        let value = beside.value()?.to_owned();
        Ok(Effect::Default { value })
    }),
    ("constant", &["value"], |beside| {
        let value = beside.value()?.to_owned();
        Ok(Effect::Constant { value })
    }),
    ("map", &["values", "else"], |beside| {
        let values = beside.values()?.iter();
        let values = values.map(|(from, to)| (from.to_string(), json_text(to)));
        let (values, otherwise) = (values.collect(), beside.otherwise.clone());
        Ok(Effect::Map { values, otherwise })
    }),
    ("to_text", &[], |_| Ok(Effect::ToText)),
    ("to_number", &[], |_| Ok(Effect::ToNumber)),
    ("wrap", &["in"], |beside| {
        let within = beside.within()?;
        Ok(Effect::Wrap { within })
    }),
    ("unwrap", &["in"], |beside| {
        let within = beside.within()?;
        Ok(Effect::Unwrap { within })
    }),
];

/// What a step has beside the key that says what it does.
struct Beside<'s, 'd> {
    section: &'s Section<'d>,
    to: Option<String>,
    within: Option<Container>,
    value: Option<String>,
    values: Vec<(Box<str>, Box<str>)>,
    otherwise: Otherwise,
    /// What is allowed where `to` is missing, and where `value` or `in` is.
    allowed: [&'static str; 2],
}

impl Beside<'_, '_> {
    fn to(&self) -> Read<&str> {
        let missing = || self.section.missing("to", self.allowed[0]);
        self.to.as_deref().ok_or_else(missing)
    }

    fn to_as<T>(&self, allowed: &str, parse: impl Fn(&str) -> Option<T>) -> Read<T> {
        let to = self.to()?;
        let invalid = || self.section.problem("to", &format!("\"{to}\""), allowed);
        parse(to).ok_or_else(invalid)
    }

    fn value(&self) -> Read<&str> {
        let missing = || self.section.missing("value", self.allowed[1]);
        self.value.as_deref().ok_or_else(missing)
    }

    fn values(&self) -> Read<&[(Box<str>, Box<str>)]> {
        match &*self.values {
            [] => Err(self.section.missing("values", VALUES)),
            values => Ok(values),
        }
    }

    fn within(&self) -> Read<Container> {
        let missing = || self.section.missing("in", self.allowed[1]);
        self.within.clone().ok_or_else(missing)
    }
}

/// Reads the key that says what a step does, and its value.
fn read_step<S, T>(
    section: &mut Section<'_>,
    kinds: &'static [StepKind<T>],
    mut reader: impl FnMut(&mut Section<'_>, &str) -> Read<Option<S>>,
) -> Read<Option<(&'static StepKind<T>, S)>> {
    // All keys are read before the first problem ends this.
    let steps: Vec<_> = kinds
        .iter()
        .map(|kind| Ok(reader(section, kind.0)?.map(|value| (kind, value))))
        .collect();
    let steps: Vec<_> = steps
        .into_iter()
        .filter_map(Result::transpose)
        .collect::<Read<_>>()?;
    if let [(first, _), (second, _), ..] = &*steps {
        return Err(section.problem(second.0, &format!("it beside {}", first.0), ONE_KEY));
    }
    Ok(steps.into_iter().next())
}

/// Reports that a step has no key that says what it does.
fn no_step<T>(section: &Section<'_>, kinds: &[StepKind<T>], others: &str) -> Invalid {
    let names: Vec<_> = kinds.iter().map(|kind| kind.0).collect();
    section.missing(names[0], &format!("one of {others}{}", names.join(", ")))
}

/// Reads a step for a header; `None` if the step is another one.
fn read_header_step(
    section: &mut Section<'_>,
    names: Option<&HeaderNames>,
) -> Read<Option<HeaderChange>> {
    let name = |text: &str| {
        let name: HeaderName = text.parse().ok()?;
        let is_own = names.is_some_and(|names| !may_change(names, name.as_str().as_bytes()));
        (!is_own).then_some(name)
    };
    let set = section.optional_by("set_header", HEADER, name);
    let removed = section.optional_by("remove_header", HEADER, name);
    let (key, name, companions) = match (set?, removed?) {
        (Some(_), Some(_)) => {
            return Err(section.problem("remove_header", "it beside set_header", ONE_KEY));
        }
        (Some(name), None) => ("set_header", name, &["value"][..]),
        (None, Some(name)) => ("remove_header", name, &[][..]),
        (None, None) => return Ok(None),
    };
    let others = ["path", "status"].into_iter();
    let others = others.chain(BODY_STEPS.iter().map(|kind| kind.0));
    for other in others {
        if section.has(other) {
            let _ = section.find(other, "");
            return Err(section.problem(key, &format!("it beside {other}"), ONE_KEY));
        }
    }
    check_companions(section, key, companions)?;
    let value = match key {
        "set_header" => {
            let value = section.find("value", "a string");
            let value = value.ok_or_else(|| section.missing("value", "a string"))?;
            let text = value.as_str().filter(|text| text.len() <= MAX_VALUE);
            let header = text.and_then(|text| HeaderValue::from_str(text).ok());
            Some(header.ok_or_else(|| value.invalid("a string, as a header can have it"))?)
        }
        _ => None,
    };
    Ok(Some(HeaderChange { name, value }))
}

/// A path, or its beginning, with `{NAME}` for a whole segment: readers could understand `/a{b}` differently.
fn template(text: &str) -> Option<String> {
    let (mut names, mut plain) = (Vec::new(), Vec::new());
    for segment in text.split('/') {
        let name = segment.strip_prefix('{');
        let Some(name) = name.and_then(|name| name.strip_suffix('}')) else {
            plain.push(segment);
            continue;
        };
        parameter(name).filter(|_| !names.contains(&name) && !name.contains(['{', '}']))?;
        names.push(name);
        plain.push("x");
    }
    let plain = plain.join("/");
    let compared = path(&plain).filter(|_| !plain.contains(['{', '}']))?;
    match names.is_empty() {
        true => Some(compared),
        false => (compared == plain).then(|| text.to_owned()),
    }
}

pub(super) fn read_request_step(
    section: &mut Section<'_>,
    names: Option<&HeaderNames>,
) -> Read<RequestChange> {
    if let Some(header) = read_header_step(section, names)? {
        return Ok(RequestChange::Header(header));
    }
    let from = section.optional_by("path", TEMPLATE, template);
    let step = read_step(section, &REQUEST_STEPS, |section, key| {
        section.optional_by(key, PARAMETER, parameter)
    });
    let to = section.optional_by("to", "the new name, or the new path", not_empty);
    let value = read_value(section, "a string", |value| {
        value.as_str().map(str::to_owned)
    });
    let values = section.list("values", &[], VALUES, pair);
    let otherwise = read_otherwise(section, |value| value.as_str().map(str::to_owned));
    let (from, step) = (from?, step?);
    let beside = Beside {
        to: to?,
        within: None,
        value: value?,
        values: values?,
        otherwise: otherwise?,
        allowed: ["the new name", "a string"],
        section,
    };
    if let Some(from) = from {
        check_companions(section, "path", &["to"])?;
        let allowed = "a path, in a step of its own, with \"/\" at its end only if path has it";
        let to = beside.to_as(allowed, |to| {
            // Otherwise what follows `from` would make an empty segment.
            let fits = from.ends_with('/') || !to.ends_with('/');
            template(to).filter(|_| fits && step.is_none())
        })?;
        let (from, to) = (from.into(), to.into());
        return Ok(RequestChange::Path { from, to });
    }
    let ((key, companions, effect), name) =
        step.ok_or_else(|| no_step(section, &REQUEST_STEPS, "path, "))?;
    check_companions(section, key, companions)?;
    let effect = effect(&beside)?;
    Ok(RequestChange::Param { name, effect })
}

pub(super) fn read_response_step(
    section: &mut Section<'_>,
    names: Option<&HeaderNames>,
) -> Read<ResponseStep> {
    if let Some(header) = read_header_step(section, names)? {
        return Ok(ResponseStep::Header(header));
    }
    let status = section.optional_number("status", &(200..=599));
    if !matches!(status, Ok(Some(_))) {
        return read_body_step(section).map(ResponseStep::Body);
    }
    let beside = BODY_STEPS.into_iter().find(|(key, ..)| section.has(key));
    if let Some((key, ..)) = beside {
        // Looked for, the key counts as known.
        let _ = section.find(key, "");
        return Err(section.problem("status", "it beside another one", ONE_KEY));
    }
    check_companions(section, "status", &[])?;
    status.map(|status| ResponseStep::Status(status.unwrap_or_default()))
}

/// Reads a step of the body of a request or a response.
pub(super) fn read_body_step(section: &mut Section<'_>) -> Read<Operation> {
    let step = read_step(section, &BODY_STEPS, |section, key| {
        section.optional::<JsonPath>(key, ParsePathError::ALLOWED)
    });
    let allowed = "a name in the same object; of move and copy a path";
    let to = section.optional_by("to", allowed, not_empty);
    let allowed = "\"[]\", an array; \"[0]\", its first item; or the name of an object's member";
    let within = section.optional_by("in", allowed, container);
    section.describe("value", VALUE, json!({}));
    let value = read_value(section, VALUE, json_value);
    let values = section.list("values", &[], VALUES, pair);
    section.describe("else", ELSE, json!({}));
    let otherwise = read_otherwise(section, json_value);
    let step = step?;
    let beside = Beside {
        to: to?,
        within: within?,
        value: value?,
        values: values?,
        otherwise: otherwise?,
        allowed: ["what the step needs"; 2],
        section,
    };
    let ((key, companions, effect), path) =
        step.ok_or_else(|| no_step(section, &BODY_STEPS, ""))?;
    check_companions(section, key, companions)?;
    let shown = path.to_string();
    let effect = effect(&beside)?;
    let operation = Operation { path, effect };
    match operation.check() {
        Ok(()) => Ok(operation),
        Err(why) => Err(section.problem(key, &shown, why)),
    }
}

fn read_value(
    section: &mut Section<'_>,
    allowed: &str,
    reader: impl Fn(&Value<'_>) -> Option<String>,
) -> Read<Option<String>> {
    let Some(value) = section.find("value", allowed) else {
        return Ok(None);
    };
    reader(&value)
        .map(Some)
        .ok_or_else(|| value.invalid(allowed))
}

/// Reads `else`: what happens to a value that `values` does not have.
fn read_otherwise(
    section: &mut Section<'_>,
    reader: impl Fn(&Value<'_>) -> Option<String>,
) -> Read<Otherwise> {
    match section.find("else", ELSE) {
        None => Ok(Otherwise::Fail),
        Some(value) if value.as_str() == Some("keep") => Ok(Otherwise::Keep),
        Some(value) => {
            let read = reader(&value).map(Otherwise::Value);
            read.ok_or_else(|| value.invalid(ELSE))
        }
    }
}

/// `value` as JSON.
fn json_value(value: &Value<'_>) -> Option<String> {
    let json = value.to_json()?.to_string();
    let length = value.as_str().map_or(json.len(), str::len);
    (length <= MAX_VALUE).then_some(json)
}

fn not_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn container(text: &str) -> Option<Container> {
    not_empty(text).map(|name| match &*name {
        "[]" => Container::Array,
        "[0]" => Container::First,
        _ => Container::Object(name),
    })
}

fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn pair(text: &str) -> Option<(Box<str>, Box<str>)> {
    let (from, to) = text.split_once('=')?;
    Some((from.into(), to.into()))
}

/// What signs a request is no parameter that a change may touch.
fn parameter(text: &str) -> Option<Box<str>> {
    (!text.is_empty() && !matches!(text, TIME | SIGN)).then(|| text.into())
}
