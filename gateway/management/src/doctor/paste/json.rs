//! Requests as browsers describe them in JSON.

use serde_json::Value;

use super::{ParsePastedError, Pasted, unread};

/// What stands behind `fetch(`: the address, and options as JSON.
pub(super) fn fetch(call: &str) -> Result<Pasted, ParsePastedError> {
    let arguments = call
        .rsplit_once(')')
        .map_or(call, |(arguments, _)| arguments);
    let call = parsed(&format!("[{arguments}]"))?;
    let mut options = call[1].clone();
    let has_type = options["headers"].as_object().is_some_and(|headers| {
        headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("content-type"))
    });
    if options["body"].is_string() && !has_type {
        options["headers"]["content-type"] = "text/plain;charset=UTF-8".into();
    }
    let method = options["method"].as_str().unwrap_or("GET");
    request(method, &call[0], &options["headers"], &options["body"])
}

/// The first request of a HAR, or one of its requests.
pub(super) fn har(text: &str) -> Result<Pasted, ParsePastedError> {
    let har = parsed(text)?;
    let first = &har["log"]["entries"][0]["request"];
    let of_entry = [first, &har["request"]]
        .into_iter()
        .find(|found| found.is_object());
    let sent = of_entry.unwrap_or(&har);
    let method = sent["method"].as_str().ok_or_else(|| unread("method"))?;
    let posted = &sent["postData"];
    if posted.is_object() && !posted["text"].is_string() {
        return Err(unread("postData.text"));
    }
    let mut pasted = request(method, &sent["url"], &sent["headers"], &posted["text"])?;
    pasted.hides_body = posted.is_null();
    if har["log"]["entries"][1].is_object() {
        pasted
            .noticed
            .push(("doctor_unread", "log.entries[1]…".to_owned()));
    }
    Ok(pasted)
}

fn parsed(text: &str) -> Result<Value, ParsePastedError> {
    serde_json::from_str(text).map_err(|error| unread(format!("JSON: {error}")))
}

fn request(
    method: &str,
    url: &Value,
    headers: &Value,
    body: &Value,
) -> Result<Pasted, ParsePastedError> {
    let text = |value: &Value, part: &str| match value {
        Value::String(text) => Ok(text.clone()),
        _ => Err(unread(part)),
    };
    let mut fields = Vec::new();
    for (name, value) in headers.as_object().into_iter().flatten() {
        fields.push((name.clone(), text(value, name)?));
    }
    for field in headers.as_array().into_iter().flatten() {
        fields.push((
            text(&field["name"], "headers")?,
            text(&field["value"], "headers")?,
        ));
    }
    // What HTTP/2 has in place of the request line.
    fields.retain(|(name, _)| !name.starts_with(':'));
    let body = if body.is_null() {
        String::new()
    } else {
        text(body, "body")?
    };
    Pasted::made(method, &text(url, "url")?, &fields, &body)
}
