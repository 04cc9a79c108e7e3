//! Requests as browsers describe them in JSON.

use serde_json::{Deserializer, Value};

use super::{ParsePastedError, Pasted, unread};

/// The type of a text that `fetch` sends if it is told none.
const TEXT: &str = "text/plain;charset=UTF-8";

/// What stands behind `fetch(`: the address, and options as JSON.
pub(super) fn fetch(call: &str) -> Result<Pasted, ParsePastedError> {
    let of = |part: &str, error: &dyn std::fmt::Display| unread(format!("{part}: {error}"));
    let mut values = Deserializer::from_str(call).into_iter::<String>();
    let address = values.next().unwrap_or_else(|| Ok(String::new()));
    let address = address.map_err(|error| of("fetch(", &error))?;
    let rest = call[values.byte_offset()..].trim_start();
    let mut options = match rest.strip_prefix(',') {
        Some(rest) => Deserializer::from_str(rest).into_iter::<Value>(),
        None => Deserializer::from_str("").into_iter(),
    };
    let options = options.next().unwrap_or(Ok(Value::Null));
    let options = options.map_err(|error| of("fetch(…, {", &error))?;
    let mut headers = Vec::new();
    for (name, value) in options["headers"].as_object().into_iter().flatten() {
        let value = value
            .as_str()
            .ok_or_else(|| unread(format!("headers.{name}")))?;
        headers.push((name.clone(), value.to_owned()));
    }
    if !matches!(options["headers"], Value::Null | Value::Object(_)) {
        return Err(unread("headers"));
    }
    let body = match &options["body"] {
        Value::Null => "",
        Value::String(body) => body,
        _ => return Err(unread("body")),
    };
    let is_type = |(name, _): &(String, _)| name.eq_ignore_ascii_case("content-type");
    if !body.is_empty() && !headers.iter().any(is_type) {
        headers.push(("content-type".to_owned(), TEXT.to_owned()));
    }
    let method = options["method"].as_str().unwrap_or("GET");
    Pasted::made(method, &address, &headers, body)
}

/// The first request of a HAR, or one of its requests.
pub(super) fn har(text: &str) -> Result<Pasted, ParsePastedError> {
    let har: Value = serde_json::from_str(text).map_err(|error| unread(error.to_string()))?;
    let entries = har["log"]["entries"].as_array();
    let entry = entries.and_then(|entries| entries.first()).unwrap_or(&har);
    let request = match &entry["request"] {
        Value::Null => entry,
        request => request,
    };
    let text = |value: &Value, part: &str| match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(unread(part)),
    };
    let mut headers = Vec::new();
    for header in request["headers"].as_array().into_iter().flatten() {
        let name = text(&header["name"], "headers[].name")?;
        // What HTTP/2 has in place of the request line.
        if !name.starts_with(':') {
            headers.push((name, text(&header["value"], "headers[].value")?));
        }
    }
    let body = match &request["postData"] {
        Value::Null => String::new(),
        posted => text(&posted["text"], "postData.text")?,
    };
    let (method, url) = (
        text(&request["method"], "method")?,
        text(&request["url"], "url")?,
    );
    let mut pasted = Pasted::made(&method, &url, &headers, &body)?;
    pasted.hides_body = body.is_empty();
    let others = entries.map_or(0, |entries| entries.len().saturating_sub(1));
    if others > 0 {
        pasted
            .noticed
            .push(("doctor_unread", format!("log.entries[1..={others}]")));
    }
    Ok(pasted)
}
