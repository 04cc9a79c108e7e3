//! The JSON documents of converters. conf/guides/bridges.md describes them.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use super::Conversion;
use crate::{
    phases::bridge::response::is_json,
    request::recorder::{WholeResponse, media_type},
    wire::syntax::field::{HOP_BY_HOP, NameAndValue},
};

/// Headers by their names in lower case; the values of several lines are joined.
type Fields = BTreeMap<String, String>;

/// A request: what a converter returns of it.
#[derive(Serialize, Deserialize)]
pub(super) struct RequestDocument<'d> {
    #[serde(borrow)]
    pub(super) method: Cow<'d, str>,
    #[serde(borrow)]
    pub(super) path: Cow<'d, str>,
    #[serde(borrow)]
    pub(super) query: Cow<'d, str>,
    pub(super) headers: Fields,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<&'d RawValue>,
}

/// What a converter gets beside the request.
#[derive(Serialize)]
struct Sent<'d> {
    #[serde(flatten)]
    request: RequestDocument<'d>,
    backend: Backend,
}

/// How to call the other version.
#[derive(Serialize)]
struct Backend {
    version: String,
    addresses: Vec<String>,
    headers: Fields,
}

/// A response.
#[derive(Serialize, Deserialize)]
pub(super) struct ResponseDocument<'d> {
    pub(super) status: u16,
    pub(super) headers: Fields,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<&'d RawValue>,
}

/// The request that it belongs to, as the converter got that.
#[derive(Serialize)]
struct SentResponse<'d> {
    #[serde(flatten)]
    response: ResponseDocument<'d>,
    request: Option<&'d RawValue>,
}

/// What a converter returned.
pub(super) fn read<'d, T: Deserialize<'d>>(bytes: &'d [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|_| "it returned no document".to_owned())
}

impl RequestDocument<'_> {
    /// The document of a request with these fields.
    pub(super) fn write(
        conversion: &Conversion,
        (path, query): (&str, &str),
        fields: &[NameAndValue<'_>],
        body: &[u8],
    ) -> Result<Box<RawValue>, String> {
        let (shown, others): (Vec<_>, Vec<_>) = fields
            .iter()
            .partition(|field| conversion.is_shown(**field));
        let is_of_backend = |(name, _): &NameAndValue<'_>| {
            let is = |known: &&[u8]| name.eq_ignore_ascii_case(known);
            !HOP_BY_HOP.iter().any(is) && !is(&&b"host"[..])
        };
        let others: Vec<_> = others.into_iter().filter(is_of_backend).collect();
        let shown = joined(&shown);
        let body = value(&shown, body)?;
        let backend = &conversion.backend;
        let scheme = if backend.upstream.has_tls() {
            "https"
        } else {
            "http"
        };
        let addresses = backend.upstream.addresses.iter();
        let addresses = addresses.map(|address| format!("{scheme}://{}", address.host_port));
        let sent = Sent {
            request: RequestDocument {
                method: conversion.method.as_str().into(),
                path: path.into(),
                query: query.into(),
                headers: shown,
                body: body.as_deref(),
            },
            backend: Backend {
                version: conversion.other.name().to_string(),
                addresses: addresses.collect(),
                headers: joined(&others),
            },
        };
        to_raw_value(&sent).map_err(|_| "the request is no document".into())
    }
}

impl ResponseDocument<'_> {
    /// The document of a response.
    pub(super) fn write(
        conversion: &Conversion,
        response: &WholeResponse,
    ) -> Result<Box<RawValue>, String> {
        let fields = response.fields.iter();
        let fields = fields.map(|(name, value)| (&**name, &**value));
        let fields: Vec<_> = fields.filter(|field| conversion.is_shown(*field)).collect();
        let headers = joined(&fields);
        let body = value(&headers, &response.body)?;
        let sent = SentResponse {
            response: ResponseDocument {
                status: response.status,
                headers,
                body: body.as_deref(),
            },
            request: conversion.sent.as_deref(),
        };
        to_raw_value(&sent).map_err(|_| "the response is no document".into())
    }
}

fn joined(fields: &[NameAndValue<'_>]) -> Fields {
    let mut joined = Fields::new();
    for (name, value) in fields {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = String::from_utf8_lossy(value);
        let of_name = joined.entry(name).or_default();
        if !of_name.is_empty() {
            of_name.push_str(", ");
        }
        of_name.push_str(&value);
    }
    joined
}

/// Whether a body is JSON by these headers.
fn has_json(headers: &Fields) -> bool {
    let mut headers = headers.iter();
    let content_type = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    content_type.is_some_and(|(_, value)| is_json(&media_type(value.as_bytes())))
}

/// A body in a document: JSON as it is, another one as a string.
fn value(headers: &Fields, body: &[u8]) -> Result<Option<Box<RawValue>>, String> {
    if body.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(body).map_err(|_| "the body is not text".to_owned())?;
    let value = match has_json(headers) {
        true => serde_json::from_str(text).map_err(|_| "the body is not JSON".to_owned())?,
        false => to_raw_value(text).map_err(|_| "the body is not text".to_owned())?,
    };
    Ok(Some(value))
}

/// The bytes of a body that a converter returned.
pub(super) fn body(headers: &Fields, body: Option<&RawValue>) -> Result<Vec<u8>, String> {
    match body {
        None => Ok(Vec::new()),
        Some(json) if has_json(headers) => Ok(json.get().as_bytes().to_vec()),
        Some(text) => {
            let text: Result<String, _> = serde_json::from_str(text.get());
            let text = text.map_err(|_| "it returned a body that its content-type does not fit");
            Ok(text?.into_bytes())
        }
    }
}

/// Names and values.
type ReturnedFields = Vec<(Vec<u8>, Vec<u8>)>;

/// The fields that a converter returned.
pub(super) fn fields(conversion: &Conversion, headers: &Fields) -> Result<ReturnedFields, String> {
    // In any case of letters: with two of them, it would be left to readers which one counts.
    let mut names = BTreeSet::new();
    let field = |(name, value): (&String, &String)| {
        let name: HeaderName = name.parse().map_err(|_| "it returned a malformed header")?;
        if !names.insert(name.as_str().to_owned()) {
            return Err(format!("it returned the header {name} twice"));
        }
        let value = HeaderValue::from_str(value);
        let value = value.map_err(|_| format!("it returned a malformed header {name}"))?;
        match conversion.may_change(name.as_str().as_bytes()) {
            true => Ok((name.as_str().as_bytes().to_vec(), value.as_bytes().to_vec())),
            false => Err(format!(
                "it returned the header {name}, which it may not change"
            )),
        }
    };
    headers.iter().map(field).collect()
}
