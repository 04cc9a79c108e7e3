//! Reads `bridge`, and the changes between two versions. CONTRACT 5.

use std::{ops::RangeInclusive, sync::Arc};

use signpost_bridge::{Effect, Operation};
use signpost_kit::config::{Invalid, Read, Section, Value};
use signpost_protocol::{parse_digits, version::Version};

use super::{
    Reading,
    backend::{AccountRules, BackendName, Part, Upstream},
    changes::{Change, Changes, Converter, HeaderChange, ParamEffect, RequestChange},
    steps::{ResponseStep, read_body_step, read_request_step, read_response_step},
};
use crate::config::readers::{self, check_unique};

/// Limit of `[[versions.NAME.changes]]`.
const MAX_CHANGES: usize = 256;
/// Limit of the steps of a change.
const MAX_STEPS: usize = 64;
/// Limit of the copies among them: each can double what is sent.
const MAX_COPY_STEPS: usize = 4;
const NAME: &str = "1 to 64 of a-z0-9_, for example \"display_name\"";
const STATUS: &str = "statuses of three digits, or \"2xx\", \"3xx\", \"4xx\", \"5xx\"";
const TYPES: &str = "types of content, for example \"text/html\"";

/// Reads the name of the version whose backends serve the requests.
pub(super) fn read_bridge(section: &mut Section<'_>) -> Read<Option<Version>> {
    section.optional("bridge", "another version, which has a backend of its own")
}

/// Reads the changes of a version; `None` if there are none.
pub(super) fn read_changes(
    section: &mut Section<'_>,
    (version, is_used): (Option<&Version>, bool),
    reading: &mut Reading<'_>,
) -> Read<Option<Changes>> {
    const KEY: &str = "changes";
    let changes = section.tables(KEY, MAX_CHANGES, |change| {
        read_change(change, version, reading)
    })?;
    let names = changes.iter().map(|(value, change)| (value, &change.name));
    check_unique(names, "each name once")?;
    let changes: Vec<_> = changes.into_iter().map(|(_, change)| change).collect();
    if !changes.is_empty() && !is_used {
        reading.has_no_effect(section, KEY, "the version has neither bridge nor shadow");
    }
    Ok((!changes.is_empty()).then(|| Changes::new(changes)))
}

fn read_change(
    section: &mut Section<'_>,
    version: Option<&Version>,
    reading: &mut Reading<'_>,
) -> Read<Change> {
    let name = section.required_by("name", NAME, change_name);
    let method = readers::method(section);
    let paths = readers::paths(section);
    let statuses = section.list("status", &["2xx"], STATUS, statuses);
    let pass_types = section.list("pass_types", &[], TYPES, content_type);
    let names = reading.gateway.names;
    let request = section.tables("request", MAX_STEPS, |step| read_request_step(step, names));
    let body = section.tables("request_body", MAX_STEPS, read_body_step);
    let response = section.tables("response", MAX_STEPS, |step| {
        read_response_step(step, names)
    });
    let converter = Upstream::converter(section, reading);
    let (request, body, response) = (request?, body?, response?);
    let has_steps = !(request.is_empty() && body.is_empty() && response.is_empty());
    let is_copy = |step: &RequestChange| match step {
        RequestChange::Param { effect, .. } => matches!(effect, ParamEffect::Copy { .. }),
        _ => false,
    };
    check_copies(section, "request", &request, is_copy)?;
    let is_copy = |step: &Operation| matches!(step.effect, Effect::Copy { .. });
    check_copies(section, "request_body", &body, is_copy)?;
    let is_copy = |step: &ResponseStep| matches!(step, ResponseStep::Body(step) if is_copy(step));
    check_copies(section, "response", &response, is_copy)?;
    let (operations, headers, status) = split_response(response)?;
    let (name, converter) = (name?, converter?.zip(version));
    let change = Change {
        converter: converter.map(|(upstream, version)| {
            let backend = BackendName {
                version: Some(Arc::new(version.clone())),
                part: Part::Converter(name.clone()),
            };
            let backend = reading.add(backend, upstream, AccountRules::ROUTE, None);
            Converter { backend }
        }),
        name,
        method: method?,
        paths: paths?.into(),
        statuses: statuses?.into(),
        pass_types: pass_types?.into(),
        request: request.into_iter().map(|(_, step)| step).collect(),
        request_body: body.into_iter().map(|(_, step)| step).collect(),
        response: operations,
        status,
        headers,
    };
    check_steps(section, has_steps)?;
    Ok(change)
}

/// Reports a change with neither steps nor a converter, or with both.
fn check_steps(section: &Section<'_>, has_steps: bool) -> Read<()> {
    match (has_steps, section.has("converter")) {
        (false, false) => {
            let allowed = "steps of request, request_body or response, or a converter";
            Err(section.missing("response", allowed))
        }
        (true, true) => {
            let allowed = "either steps, or a converter";
            Err(section.problem("converter", "it beside steps", allowed))
        }
        _ => Ok(()),
    }
}

/// What the steps of a response do with its body, its headers and its status.
type SplitResponse = (Box<[Operation]>, Box<[HeaderChange]>, Option<u16>);

fn split_response(steps: Vec<(Value<'_>, ResponseStep)>) -> Read<SplitResponse> {
    let (mut operations, mut headers, mut status) = (Vec::new(), Vec::new(), None);
    for (value, step) in steps {
        match step {
            ResponseStep::Body(operation) => operations.push(operation),
            ResponseStep::Header(header) => headers.push(header),
            ResponseStep::Status(to) if status.is_none() => status = Some(to),
            ResponseStep::Status(to) => {
                let second = format!("{to} as a second status");
                return Err(value.problem(&second, "one status in a change"));
            }
        }
    }
    Ok((operations.into(), headers.into(), status))
}

/// Reports too many copies among the steps.
fn check_copies<T>(
    section: &Section<'_>,
    key: &str,
    steps: &[(Value<'_>, T)],
    is_copy: impl Fn(&T) -> bool,
) -> Read<()> {
    let copies = steps.iter().filter(|(_, step)| is_copy(step)).count();
    if copies > MAX_COPY_STEPS {
        let allowed = format!("at most {MAX_COPY_STEPS} of them in a change");
        return Err(section.problem(key, &format!("{copies} steps with copy"), &allowed));
    }
    Ok(())
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
        let class: u16 = parse_digits(class).filter(|class| (2..=5).contains(class))?;
        return Some(class * 100..=class * 100 + 99);
    }
    let status: u16 = parse_digits(text).filter(|status| (200..=599).contains(status))?;
    Some(status..=status)
}

/// The keys of a version with a backend, which one with a bridge cannot have.
const OF_BACKENDS: [&str; 12] = [
    "backend",
    "backends",
    "balance",
    "gateway_secret",
    "idle_seconds",
    "sticky_by",
    "health",
    "tls",
    "canaries",
    "account",
    "pass_authorization",
    "pass_profile",
];

/// Reports the keys that a version with a bridge has no backend for.
pub(super) fn check_no_backend(section: &mut Section<'_>) -> Read<()> {
    let mut result = Ok(());
    for key in OF_BACKENDS {
        // Looked for, each key counts as known: otherwise it would be reported as unknown, too.
        if let Some(value) = section.find(key, "") {
            result = Err::<(), Invalid>(
                value.problem("it beside bridge", "either bridge, or a backend"),
            );
        }
    }
    result
}
