//! Compares the response that a client got with another version's.

use std::{borrow::Cow, io::Read, time::Instant};

use flate2::read::{GzDecoder, ZlibDecoder};
use signpost_bridge::{Comparison, Kind};
use signpost_kit::log::once_a_minute::OnceAMinute;

use super::{
    MAX_BODY,
    copied::{Copied, NotCopied},
};
use crate::{
    phases::bridge::response::{change_response, is_json},
    request::{recorder::WholeResponse, rejection::Rejection},
};

/// Limit of a body once it is decompressed, in bytes.
const MAX_DECODED: u64 = 4 * MAX_BODY as u64;

/// Limit of a shape, in characters.
const MAX_SHAPE: usize = 128;

/// What was compared.
pub(super) enum Compared {
    /// What differs.
    Pair(Comparison),
    /// Nothing: a response is too large, incomplete, or encoded in an unknown way.
    Not,
    /// Nothing: both versions reject the request by the same status, and no copy was sent.
    Rejected,
}

/// Compares the outcome of a copy with the response that the client got.
pub(super) fn compare(copied: &Copied, outcome: Result<WholeResponse, NotCopied>) -> Compared {
    let original = &copied.response;
    if !is_whole(original) {
        return Compared::Not;
    }
    let not = |pair: Option<Comparison>| pair.map_or(Compared::Not, Compared::Pair);
    let (change, why) = match (outcome, &copied.changes) {
        (Ok(response), _) if !is_whole(&response) => return Compared::Not,
        (Ok(response), None) => return not(compare_whole(copied, &response)),
        (Ok(response), Some(changes)) => {
            match change_response(changes, (copied.method, &copied.path), response) {
                Ok(changed) => return not(compare_whole(copied, &changed)),
                Err(Rejection::BridgeFailed { change, why }) => (change, why),
                Err(_) => return Compared::Not,
            }
        }
        (Err(NotCopied::Nothing), _) => return missing(original.status, "no response"),
        (Err(NotCopied::Rejected(code)), _) if code.status() == original.status => {
            return Compared::Rejected;
        }
        (Err(NotCopied::Rejected(code)), _) => return missing(original.status, code.as_str()),
        (Err(NotCopied::NotChanged(change, why)), _) => (change, why),
    };
    log_not_applied(copied, &change, &why);
    let mut pair = Comparison::default();
    pair.add(&format!("change {change}"), Kind::Type, ["", cut(&why)]);
    Compared::Pair(pair)
}

fn log_not_applied(copied: &Copied, change: &str, why: &str) {
    static LINES: OnceAMinute = OnceAMinute::new();
    if let Some(copies) = LINES.count(Instant::now()) {
        tracing::warn!(
            copies,
            version = copied.entry.version,
            route = copied.entry.route,
            "changes do not apply to copies of requests, the last one {change}: {why}"
        );
    }
}

/// The other version gave no response.
fn missing(status: u16, why: &str) -> Compared {
    let mut pair = Comparison::default();
    pair.add("response", Kind::Missing, [&status.to_string(), why]);
    Compared::Pair(pair)
}

/// Compares two responses of the version itself.
pub(super) fn compare_with_itself(copied: &Copied, again: &WholeResponse) -> Option<Comparison> {
    let original = &copied.response;
    // Another status is a failure, which would make everything noise.
    let is_alike = is_whole(original) && is_whole(again) && original.status == again.status;
    is_alike.then(|| compare_whole(copied, again)).flatten()
}

const fn is_whole(response: &WholeResponse) -> bool {
    response.is_complete && !response.is_too_large
}

fn compare_whole(copied: &Copied, response: &WholeResponse) -> Option<Comparison> {
    let original = &copied.response;
    let (here, there) = (decoded(original)?, decoded(response)?);
    let types = [original.content_type(), response.content_type()];
    let are_json = types.iter().all(|content_type| is_json(content_type));
    let mut pair = match are_json && !(here.is_empty() && there.is_empty()) {
        true => signpost_bridge::compare(&here, &there, &copied.shadow.ignore),
        false => {
            let mut pair = Comparison::default();
            let shapes = [&here, &there].map(|body| format!("{} bytes", body.len()));
            add_if(&mut pair, "body", here != there, &shapes);
            pair
        }
    };
    let statuses = [original, response].map(|response| response.status.to_string());
    add_if(&mut pair, "status", statuses[0] != statuses[1], &statuses);
    add_if(&mut pair, "content-type", types[0] != types[1], &types);
    for name in &copied.shadow.headers {
        compare_header(&mut pair, name.as_str(), original, response);
    }
    Some(pair)
}

/// Notes what was compared, and whether it differs.
fn add_if(pair: &mut Comparison, path: &str, differs: bool, shapes: &[String; 2]) {
    match differs {
        true => {
            let [here, there] = shapes.each_ref().map(|shape| cut(shape));
            pair.add(path, Kind::Value, [here, there]);
        }
        false => pair.see(path),
    }
}

/// The beginning of a shape: a type of content is a backend's text.
fn cut(shape: &str) -> &str {
    let end = shape.char_indices().nth(MAX_SHAPE);
    end.map_or(shape, |(end, _)| &shape[..end])
}

fn compare_header(
    pair: &mut Comparison,
    name: &str,
    original: &WholeResponse,
    response: &WholeResponse,
) {
    let values = |response: &WholeResponse| {
        let fields = response.fields.iter();
        let named = fields.filter(|(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
        named.map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let [here, there] = [values(original), values(response)];
    let kind = match (here.is_empty(), there.is_empty()) {
        _ if here == there => return pair.see(&format!("header {name}")),
        (false, true) => Kind::Missing,
        (true, false) => Kind::Extra,
        _ => Kind::Value,
    };
    let shape = |values: &[Vec<u8>]| match values {
        [] => "absent".to_owned(),
        values => format!("string({})", values.iter().map(Vec::len).sum::<usize>()),
    };
    pair.add(
        &format!("header {name}"),
        kind,
        [&shape(&here), &shape(&there)],
    );
}

/// The body without its encoding; `None` if that is not known, or the body is too large.
fn decoded(response: &WholeResponse) -> Option<Cow<'_, [u8]>> {
    let encoding = response.value("content-encoding").unwrap_or(b"identity");
    if encoding.eq_ignore_ascii_case(b"identity") || response.body.is_empty() {
        return Some(Cow::Borrowed(&response.body));
    }
    let body = &response.body[..];
    let decoder: Box<dyn Read + '_> = match &*encoding.to_ascii_lowercase() {
        b"gzip" => Box::new(GzDecoder::new(body)),
        // RFC 9110 section 8.4.1.2: HTTP's `deflate` has the zlib format.
        b"deflate" => Box::new(ZlibDecoder::new(body)),
        b"br" => Box::new(brotli::Decompressor::new(body, 4096)),
        _ => return None,
    };
    let mut decoded = Vec::new();
    decoder
        // A small body can decompress to gigabytes. The byte beyond the limit tells too large a body from one that just
        // fits.
        .take(MAX_DECODED + 1)
        .read_to_end(&mut decoded)
        .ok()?;
    (decoded.len() as u64 <= MAX_DECODED).then_some(Cow::Owned(decoded))
}
