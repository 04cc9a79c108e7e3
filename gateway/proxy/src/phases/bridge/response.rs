//! Changes the response of the other version into one of the request's version. CONTRACT 5.

use std::{
    net::IpAddr,
    sync::{Arc, LazyLock},
};

use signpost_bridge::apply;
use tokio::sync::Semaphore;

use crate::{
    config::{Change, Changes, HeaderChange},
    limits::places::{Place, Places},
    request::{
        Method, is_named,
        recorder::{WholeResponse, media_type},
        rejection::Rejection,
    },
};

/// Limit of a body that is changed, in bytes: it is held until it is complete.
pub(crate) const MAX_BODY: usize = 256 * 1024;

/// Limit of the responses of a process that are held, from their heads until they are changed; and of the changed ones with
/// a body above [`SMALL_BODY`] that wait for their clients.
pub(crate) const MAX_HELD: usize = 1024;

/// A changed body up to this waits for its client as any other response does.
const SMALL_BODY: usize = 64 * 1024;

/// A body above this is changed on a thread of its own: it takes milliseconds, in which the thread serves others.
const LARGE_BODY: usize = 16 * 1024;

static HELD: LazyLock<Arc<Places>> = LazyLock::new(|| Places::new(MAX_HELD));
static WAITING: LazyLock<Arc<Places>> = LazyLock::new(|| Places::new(MAX_HELD));

/// The place of a response, until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _place: Place,
}

impl Held {
    /// Begins to hold a response; `None` if too many are held, or too many of the client's network.
    pub(crate) fn begin(client: IpAddr) -> Option<Self> {
        let _place = HELD.take(client)?;
        Some(Self { _place })
    }

    /// The response is changed, to a body of this length: the place is free, and a large body has one of those that wait. If
    /// the network has its share of these, the body keeps this place.
    pub(crate) fn changed(self, length: usize, client: IpAddr) -> Option<Self> {
        (length > SMALL_BODY).then(|| match WAITING.take(client) {
            Some(_place) => Self { _place },
            None => self,
        })
    }
}

/// As [`change_response`], without holding up the thread for a large body.
///
/// # Errors
///
/// As there.
pub(crate) async fn change_held(
    changes: &Arc<Changes>,
    (method, path): (Method, &str),
    response: WholeResponse,
) -> Result<WholeResponse, Rejection> {
    /// As many threads change bodies at a time.
    static THREADS: Semaphore = Semaphore::const_new(2);
    if response.body.len() <= LARGE_BODY {
        return change_response(changes, (method, path), response);
    }
    // The semaphore is never closed.
    let _turn = THREADS.acquire().await;
    let (changes, path) = (Arc::clone(changes), path.to_owned());
    let change = move || change_response(&changes, (method, &path), response);
    let changed = tokio::task::spawn_blocking(change).await;
    changed.unwrap_or_else(|_| {
        Err(Rejection::Internal(
            "a change of a response panicked".into(),
        ))
    })
}

/// Limit of a changed body, in bytes: copies can make it larger.
pub(crate) const MAX_CHANGED: usize = 4 * MAX_BODY;

/// Fields that are about the body as it was.
const OF_BODY: [&str; 7] = [
    "accept-ranges",
    "content-digest",
    "content-md5",
    "digest",
    "etag",
    "last-modified",
    "repr-digest",
];

/// Fields that are about a body at all.
const OF_ANY_BODY: [&str; 2] = ["content-encoding", "content-type"];

/// Whether a response with this status and type of content is changed.
#[must_use]
pub(crate) fn applies(
    changes: &Changes,
    (method, path): (Method, &str),
    status: u16,
    content_type: &[u8],
) -> bool {
    let content_type = media_type(content_type);
    let mut of_response = applying(changes, (method, path), status, &content_type);
    of_response.next().is_some()
}

/// Whether the converter of a request changes this whole response.
pub(crate) fn converts(
    changes: &Changes,
    (method, path): (Method, &str),
    response: &WholeResponse,
) -> bool {
    let converter = changes.converter(method, path);
    converter.is_some_and(|(change, _)| {
        let is_whole = response.is_complete && !response.is_too_large;
        is_whole
            && change.changes_status(response.status)
            && !change.passes_type(&response.content_type())
    })
}

fn applying<'c>(
    changes: &'c Changes,
    (method, path): (Method, &'c str),
    status: u16,
    content_type: &'c str,
) -> impl Iterator<Item = &'c Change> {
    let changes = changes.of(method, path);
    changes.filter(move |change| change.changes_status(status) && !change.passes_type(content_type))
}

/// Changes a whole response. Only its body, its status and what is said of the body change.
///
/// # Errors
///
/// A change does not apply: the body is too large, encoded, or not JSON as the change expects it. It names the change.
pub(crate) fn change_response(
    changes: &Changes,
    request: (Method, &str),
    mut response: WholeResponse,
) -> Result<WholeResponse, Rejection> {
    let content_type = response.content_type();
    let status = response.status;
    let mut is_changed = false;
    for change in applying(changes, request, status, &content_type) {
        let changed = apply_change(change, &mut response, &content_type);
        is_changed |= changed.map_err(|why| Rejection::BridgeFailed {
            change: change.name.clone(),
            why,
        })?;
    }
    if is_changed {
        forget_body(&mut response);
    }
    Ok(response)
}

/// Removes what is said of the body before a change.
pub(crate) fn forget_body(response: &mut WholeResponse) {
    let is_one_of = |name: &[u8], fields: &[&str]| {
        let mut fields = fields.iter();
        fields.any(|field| name.eq_ignore_ascii_case(field.as_bytes()))
    };
    // A validator or a digest of the body before would let a client or a cache take the changed one for it.
    let has_body = response.has_body;
    response.fields.retain(|(name, _)| {
        !is_one_of(name, &OF_BODY) && (has_body || !is_one_of(name, &OF_ANY_BODY))
    });
}

/// Applies a change to a response. Returns whether its body is another one now; an error says why the change does not apply.
fn apply_change(
    change: &Change,
    response: &mut WholeResponse,
    content_type: &str,
) -> Result<bool, String> {
    // Even if only the status would change: of such a body, the recorder has kept nothing.
    if response.is_too_large {
        return Err(match response.is_refused {
            false => format!("the body is larger than {MAX_BODY} bytes"),
            true => format!(
                "{MAX_HELD} other responses wait to be changed, or a quarter of them for this network"
            ),
        });
    }
    let had_body = !response.body.is_empty();
    if let Some(status) = change.status {
        set_status(response, status);
    }
    for header in &change.headers {
        set_header(response, header);
    }
    // A change can be about the status alone; an empty body is no JSON to which steps could apply.
    if change.response.is_empty() || response.body.is_empty() {
        return Ok(had_body && response.body.is_empty());
    }
    let encoding = response.value("content-encoding");
    if encoding.is_some_and(|encoding| !encoding.eq_ignore_ascii_case(b"identity")) {
        return Err("the body has a Content-Encoding".to_owned());
    }
    if !is_json(content_type) {
        return Err("the body is not JSON by its Content-Type".to_owned());
    }
    let body = apply(&change.response, &response.body);
    response.body = body.map_err(|not_applied| not_applied.to_string())?;
    if response.body.len() > MAX_CHANGED {
        return Err(format!(
            "the changed body is larger than {MAX_CHANGED} bytes"
        ));
    }
    Ok(true)
}

/// Whether a type of content is JSON. RFC 6839 section 3.1.
#[must_use]
pub(crate) fn is_json(content_type: &str) -> bool {
    content_type == "application/json" || content_type.ends_with("+json")
}

/// Gives a header its value, or leaves it out.
pub(crate) fn set_header(response: &mut WholeResponse, change: &HeaderChange) {
    response
        .fields
        .retain(|(name, _)| !is_named(name, &change.name));
    let name = change.name.as_str().as_bytes().to_vec();
    let value = change.value.iter();
    response
        .fields
        .extend(value.map(|value| (name.clone(), value.as_bytes().to_vec())));
}

pub(crate) fn set_status(response: &mut WholeResponse, status: u16) {
    response.status = status;
    // The reason phrase belonged to another status.
    response.reason = Vec::new();
    response.has_body = !matches!(status, 204 | 304);
    if !response.has_body {
        response.body = Vec::new();
    }
}
