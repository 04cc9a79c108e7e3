//! Reads `bridge`, and the changes between two versions. CONTRACT 5.

use std::ops::RangeInclusive;

use signpost_bridge::{Container, JsonPath, Operation, ParsePathError};
use signpost_kit::config::{Invalid, Read, Section};
use signpost_protocol::{
    sign::{SIGN, TIME},
    version::Version,
};

use super::{
    Reading,
    changes::{Change, Changes, RequestChange},
};
use crate::config::{
    path_pattern::PathPattern,
    readers::{self, check_unique, path},
};

/// Limit of `[[versions.NAME.changes]]`.
const MAX_CHANGES: usize = 256;
/// Limit of the steps of a change.
const MAX_STEPS: usize = 64;
/// Limit of the copies among them: each can double what is sent.
const MAX_COPY_STEPS: usize = 4;
/// The keys that say more of a step.
const COMPANIONS: [&str; 4] = ["to", "value", "values", "in"];
const NAME: &str = "1 to 64 of a-z0-9_, for example \"display_name\"";
const STATUS: &str = "statuses of three digits, or \"2xx\", \"3xx\", \"4xx\", \"5xx\"";
const VALUE: &str = "a string of at most 1024 bytes, a whole number, true or false";
/// Limit of a value, in bytes: each place of a body can get it.
const MAX_VALUE: usize = 1024;
const ONE_KEY: &str = "one key that says what a step does";
const VALUES: &str = "texts \"FROM=TO\"";
const PARAMETER: &str = "the name of a parameter, decoded, but not \"time\" or \"sign\"";

/// Reads the name of the version whose backends serve the requests.
pub(super) fn read_bridge(section: &mut Section<'_>) -> Read<Option<Version>> {
    section.optional("bridge", "another version, which has a backend of its own")
}

/// Reads the changes of a version; `None` if there are none.
pub(super) fn read_changes(
    section: &mut Section<'_>,
    is_used: bool,
    reading: &mut Reading<'_>,
) -> Read<Option<Changes>> {
    const KEY: &str = "changes";
    let changes = section.tables(KEY, MAX_CHANGES, read_change)?;
    let names = changes.iter().map(|(value, change)| (value, &change.name));
    check_unique(names, "each name once")?;
    let changes: Vec<_> = changes.into_iter().map(|(_, change)| change).collect();
    if !changes.is_empty() && !is_used {
        reading.has_no_effect(section, KEY, "the version has neither bridge nor shadow");
    }
    Ok((!changes.is_empty()).then(|| Changes::new(changes)))
}

fn read_change(section: &mut Section<'_>) -> Read<Change> {
    let name = section.required_by("name", NAME, change_name);
    let method = readers::method(section);
    let allowed = format!("at least one of {}", PathPattern::ALLOWED);
    let paths = section.list("paths", &[], &allowed, |text| text.parse().ok());
    let paths: Read<Vec<PathPattern>> = match paths {
        Ok(paths) if paths.is_empty() => Err(section.missing("paths", &allowed)),
        paths => paths,
    };
    let statuses = section.list("status", &["2xx"], STATUS, statuses);
    let types = "types of content, for example \"text/html\"";
    let pass_types = section.list("pass_types", &[], types, content_type);
    let request = section.tables("request", MAX_STEPS, read_request_step);
    let response = section.tables("response", MAX_STEPS, read_response_step);
    let (request, response) = (request?, response?);
    let of_request = request
        .iter()
        .map(|(_, step)| matches!(step, RequestChange::Copy { .. }));
    check_copies(section, "request", of_request)?;
    let is_copy = |step: &ResponseStep| matches!(step, ResponseStep::Body(Operation::Copy { .. }));
    check_copies(
        section,
        "response",
        response.iter().map(|(_, step)| is_copy(step)),
    )?;
    let mut operations = Vec::new();
    let mut status = None;
    for (value, step) in response {
        match step {
            ResponseStep::Body(operation) => operations.push(operation),
            ResponseStep::Status(to) if status.is_none() => status = Some(to),
            ResponseStep::Status(to) => {
                let found = format!("{to} as a second status");
                return Err(value.problem(&found, "one status in a change"));
            }
        }
    }
    let change = Change {
        name: name?,
        method: method?,
        paths: paths?.into(),
        statuses: statuses?.into(),
        pass_types: pass_types?.into(),
        request: request.into_iter().map(|(_, step)| step).collect(),
        response: operations.into(),
        status,
    };
    if change.request.is_empty() && change.response.is_empty() && change.status.is_none() {
        return Err(section.missing("response", "steps of request, of response, or of both"));
    }
    Ok(change)
}

/// Reports too many copies among the steps.
fn check_copies(section: &Section<'_>, key: &str, steps: impl Iterator<Item = bool>) -> Read<()> {
    let copies = steps.filter(|is_copy| *is_copy).count();
    if copies > MAX_COPY_STEPS {
        let allowed = format!("at most {MAX_COPY_STEPS} of them in a change");
        return Err(section.problem(key, &format!("{copies} steps with copy"), &allowed));
    }
    Ok(())
}

/// Reports the keys of a step that what it does has no use for.
fn check_companions(section: &Section<'_>, key: &str, wanted: &[&str]) -> Read<()> {
    let mut unwanted = COMPANIONS.into_iter().filter(|one| !wanted.contains(one));
    match unwanted.find(|one| section.has(one)) {
        None => Ok(()),
        Some(one) => {
            let allowed = match wanted {
                [] => "no other key".to_owned(),
                wanted => wanted.join(", "),
            };
            Err(section.problem(one, &format!("it beside {key}"), &allowed))
        }
    }
}

fn change_name(text: &str) -> Option<Box<str>> {
    let is_valid = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    ((1..=64).contains(&text.len()) && text.bytes().all(is_valid)).then(|| text.into())
}

fn content_type(text: &str) -> Option<Box<str>> {
    let is_valid = |byte: u8| byte.is_ascii_graphic() && byte != b';' && byte != b',';
    let is_type = text.contains('/') && text.bytes().all(is_valid);
    is_type.then(|| text.to_ascii_lowercase().into())
}

/// `404`, or `4xx` for all of a class.
fn statuses(text: &str) -> Option<RangeInclusive<u16>> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|one| (2..=5).contains(one))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let status: u16 = text.parse().ok().filter(|one| (200..=599).contains(one))?;
    Some(status..=status)
}

/// One step of a change of a response.
enum ResponseStep {
    Body(Operation),
    Status(u16),
}

/// A key that says what a step does, and the keys that it needs beside it.
type StepKey = (&'static str, &'static [&'static str]);

/// Reads the one of these keys that a step has, and its value.
fn read_step<T>(
    section: &mut Section<'_>,
    keys: &[StepKey],
    mut read: impl FnMut(&mut Section<'_>, &str) -> Read<Option<T>>,
) -> Read<Option<(StepKey, T)>> {
    let all: Vec<_> = keys
        .iter()
        .map(|key| Ok(read(section, key.0)?.map(|value| (*key, value))))
        .collect();
    let mut found = None;
    for one in all {
        let one: Option<(StepKey, T)> = one?;
        match (&found, one) {
            (_, None) => {}
            (None, one) => found = one,
            (Some((first, _)), Some((second, _))) => {
                let both = format!("it beside {}", first.0);
                return Err(section.problem(second.0, &both, ONE_KEY));
            }
        }
    }
    Ok(found)
}

/// Reports that a step has no key that says what it does.
fn no_step(section: &Section<'_>, keys: &[StepKey], others: &str) -> Invalid {
    let names: Vec<_> = keys.iter().map(|key| key.0).collect();
    section.missing(names[0], &format!("one of {others}{}", names.join(", ")))
}

fn read_request_step(section: &mut Section<'_>) -> Read<RequestChange> {
    const KEYS: [StepKey; 6] = [
        ("rename", &["to"]),
        ("copy", &["to"]),
        ("remove", &[]),
        ("default", &["value"]),
        ("constant", &["value"]),
        ("map", &["values"]),
    ];
    let from = section.optional_by(
        "path",
        "the beginning of a path, for example \"/user\"",
        path,
    );
    let step = read_step(section, &KEYS, |section, key| {
        section.optional_by(key, PARAMETER, parameter)
    });
    let to = section.optional_by("to", "the new name, or the new path", |text| {
        (!text.is_empty()).then(|| Box::<str>::from(text))
    });
    let value = section.find("value", "a string");
    let value = match &value {
        Some(value) => value
            .as_str()
            .map(Box::<str>::from)
            .ok_or_else(|| value.invalid("a string")),
        None => Ok("".into()),
    };
    let has_value = section.has("value");
    let values = section.list("values", &[], VALUES, pair);
    let (path_from, step, to, value, values) = (from?, step?, to?, value?, values?);
    let to = |section: &Section<'_>| {
        to.clone()
            .ok_or_else(|| section.missing("to", "the new name"))
    };
    if let Some(from) = path_from {
        check_companions(section, "path", &["to"])?;
        let to = to(section)?;
        // Otherwise what follows `from` would make an empty segment.
        let fits = from.ends_with('/') || !to.ends_with('/');
        let (Some(to), None, true) = (path(&to), step, fits) else {
            return Err(section.problem(
                "to",
                &format!("\"{to}\""),
                "a path, in a step of its own, with \"/\" at its end only if path has it",
            ));
        };
        let (from, to) = (from.into(), to.into());
        return Ok(RequestChange::Path { from, to });
    }
    let ((key, companions), name) = step.ok_or_else(|| no_step(section, &KEYS, "path, "))?;
    check_companions(section, key, companions)?;
    let new_name = |section: &Section<'_>| {
        let to = to(section)?;
        parameter(&to).ok_or_else(|| section.problem("to", &format!("\"{to}\""), PARAMETER))
    };
    let value = |section: &Section<'_>| match has_value {
        true => Ok(value.clone()),
        false => Err(section.missing("value", "a string")),
    };
    Ok(match key {
        "rename" => RequestChange::Rename {
            name,
            to: new_name(section)?,
        },
        "copy" => RequestChange::Copy {
            name,
            to: new_name(section)?,
        },
        "remove" => RequestChange::Remove { name },
        "default" => RequestChange::Default {
            name,
            value: value(section)?,
        },
        "constant" => RequestChange::Constant {
            name,
            value: value(section)?,
        },
        _ => RequestChange::Map {
            name,
            values: required_values(section, values)?,
        },
    })
}

fn read_response_step(section: &mut Section<'_>) -> Read<ResponseStep> {
    const KEYS: [StepKey; 11] = [
        ("rename", &["to"]),
        ("move", &["to"]),
        ("copy", &["to"]),
        ("remove", &[]),
        ("default", &["value"]),
        ("constant", &["value"]),
        ("map", &["values"]),
        ("to_text", &[]),
        ("to_number", &[]),
        ("wrap", &["in"]),
        ("unwrap", &["in"]),
    ];
    let status = section.optional_number("status", &(200..=599));
    let step = read_step(section, &KEYS, |section, key| {
        section.optional::<JsonPath>(key, ParsePathError::ALLOWED)
    });
    let to = section.optional_by(
        "to",
        "a name in the same object; of move and copy a path",
        |text| (!text.is_empty()).then(|| text.to_owned()),
    );
    let within = section.optional_by(
        "in",
        "\"[]\", an array, or the name of an object's member",
        |text| {
            (!text.is_empty()).then(|| match text {
                "[]" => Container::Array,
                name => Container::Object(name.to_owned()),
            })
        },
    );
    let value = read_value(section);
    let values = section.list("values", &[], VALUES, pair);
    let (status, step) = (status?, step?);
    let (to, within, value, values) = (to?, within?, value?, values?);
    if let Some(status) = status {
        if step.is_some() {
            return Err(section.problem("status", "it beside another one", ONE_KEY));
        }
        check_companions(section, "status", &[])?;
        return Ok(ResponseStep::Status(status));
    }
    let ((key, companions), path) = step.ok_or_else(|| no_step(section, &KEYS, ""))?;
    check_companions(section, key, companions)?;
    let missing = |section: &Section<'_>, key: &str| section.missing(key, "what the step needs");
    let shown = path.to_string();
    let to_path = |section: &Section<'_>| -> Read<JsonPath> {
        let to = to.as_deref().ok_or_else(|| missing(section, "to"))?;
        to.parse()
            .map_err(|_| section.problem("to", &format!("\"{to}\""), ParsePathError::ALLOWED))
    };
    let operation = match key {
        "rename" => Operation::Rename {
            path,
            to: to.ok_or_else(|| missing(section, "to"))?,
        },
        "move" => Operation::Move {
            path,
            to: to_path(section)?,
        },
        "copy" => Operation::Copy {
            path,
            to: to_path(section)?,
        },
        "remove" => Operation::Remove { path },
        "default" => Operation::Default {
            path,
            value: value.ok_or_else(|| missing(section, "value"))?,
        },
        "constant" => Operation::Constant {
            path,
            value: value.ok_or_else(|| missing(section, "value"))?,
        },
        "to_text" => Operation::ToText { path },
        "to_number" => Operation::ToNumber { path },
        "unwrap" => Operation::Unwrap {
            path,
            within: within.ok_or_else(|| missing(section, "in"))?,
        },
        "wrap" => Operation::Wrap {
            path,
            within: within.ok_or_else(|| missing(section, "in"))?,
        },
        _ => {
            let values = required_values(section, values)?.into_vec().into_iter();
            let values = values.map(|(from, to)| (from.into(), json_text(&to)));
            Operation::Map {
                path,
                values: values.collect(),
            }
        }
    };
    match operation.check() {
        Ok(()) => Ok(ResponseStep::Body(operation)),
        Err(why) => Err(section.problem(key, &shown, why)),
    }
}

/// Reads `value` as JSON.
fn read_value(section: &mut Section<'_>) -> Read<Option<String>> {
    let Some(value) = section.find("value", VALUE) else {
        return Ok(None);
    };
    let text = value.as_str().filter(|text| text.len() <= MAX_VALUE);
    let text = text.map(json_text);
    let number = || value.as_integer().map(|number| number.to_string());
    let flag = || value.as_bool().map(|flag| flag.to_string());
    text.or_else(number)
        .or_else(flag)
        .map(Some)
        .ok_or_else(|| value.invalid(VALUE))
}

fn required_values<T>(section: &Section<'_>, values: Vec<T>) -> Read<Box<[T]>> {
    match values.is_empty() {
        true => Err(section.missing("values", VALUES)),
        false => Ok(values.into()),
    }
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

/// The keys of a version with a backend, which one with a bridge cannot have.
const OF_BACKENDS: [&str; 9] = [
    "backend",
    "backends",
    "balance",
    "gateway_secret",
    "idle_seconds",
    "sticky_by",
    "health",
    "tls",
    "canaries",
];

/// Reports the keys that a version with a bridge has no backend for.
pub(super) fn check_no_backend(section: &mut Section<'_>) -> Read<()> {
    let mut read = Ok(());
    for key in OF_BACKENDS {
        if let Some(value) = section.find(key, "") {
            read = Err::<(), Invalid>(
                value.problem("it beside bridge", "either bridge, or a backend"),
            );
        }
    }
    read
}
