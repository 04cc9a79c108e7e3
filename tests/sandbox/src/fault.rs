//! How the provider misbehaves, for the users that ask for it.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    os::fd::AsFd,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::connect_info::Connected,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    serve::IncomingStream,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Settings;

/// What goes wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The right answer, but far too late.
    Slow,
    /// An answer that begins at once and never gets on.
    Dribbled,
    /// 500 with an HTML page.
    ServerError,
    /// 200, labelled as JSON, which it is not.
    NotJson,
    /// 200 and JSON, without the one field that matters.
    FieldMissing,
    /// 200 and JSON, with an object in the one field that matters.
    FieldNotText,
    /// A redirect to an address that answers well: following it would go unnoticed.
    Redirect,
    /// The right answer, with more than 1 MiB around it.
    TooLarge,
    /// The connection ends without an answer.
    Closed,
    /// The code is refused as RFC 6749 section 5.2 says.
    Refused,
}

impl Fault {
    /// Those that the token endpoint knows.
    pub const AT_TOKEN: [Self; 10] = [
        Self::Slow,
        Self::Dribbled,
        Self::ServerError,
        Self::NotJson,
        Self::FieldMissing,
        Self::FieldNotText,
        Self::Redirect,
        Self::TooLarge,
        Self::Closed,
        Self::Refused,
    ];
    /// Those that the profile endpoint knows.
    pub const AT_PROFILE: [Self; 9] = [
        Self::Slow,
        Self::Dribbled,
        Self::ServerError,
        Self::NotJson,
        Self::FieldMissing,
        Self::FieldNotText,
        Self::Redirect,
        Self::TooLarge,
        Self::Closed,
    ];

    /// As in the users' names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Dribbled => "dribbled",
            Self::ServerError => "500",
            Self::NotJson => "not-json",
            Self::FieldMissing => "field-missing",
            Self::FieldNotText => "field-not-text",
            Self::Redirect => "redirect",
            Self::TooLarge => "too-large",
            Self::Closed => "closed",
            Self::Refused => "refused",
        }
    }

    /// As on the page.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Slow => "comes late",
            Self::Dribbled => "never gets on",
            Self::ServerError => "fails with 500",
            Self::NotJson => "is not JSON",
            Self::FieldMissing => "lacks its field",
            Self::FieldNotText => "has an object for its field",
            Self::Redirect => "redirects",
            Self::TooLarge => "is over 1 MiB",
            Self::Closed => "hangs up",
            Self::Refused => "is refused",
        }
    }

    /// The answer that this fault makes of an honest one.
    ///
    /// `field` is the member that a client needs most.
    pub async fn spoil(
        self,
        mut honest: Value,
        field: &str,
        peer: &PeerSocket,
        settings: &Settings,
    ) -> Response {
        match self {
            Self::Slow => {
                tokio::time::sleep(settings.slowness).await;
                Json(honest).into_response()
            }
            Self::ServerError => {
                let page = "<!doctype html><title>500</title><p>Something went wrong.";
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    axum::response::Html(page),
                )
                    .into_response()
            }
            Self::NotJson => {
                let json_label = [(header::CONTENT_TYPE, "application/json")];
                (json_label, "<!doctype html><title>Not JSON</title>").into_response()
            }
            Self::FieldMissing => {
                if let Some(members) = honest.as_object_mut() {
                    members.remove(field);
                }
                Json(honest).into_response()
            }
            Self::Dribbled => {
                peer.dribble(settings.slowness).await;
                StatusCode::OK.into_response()
            }
            Self::FieldNotText => {
                honest[field] = json!({ "value": honest[field] });
                Json(honest).into_response()
            }
            Self::Redirect => {
                let elsewhere = [(header::LOCATION, "/_sandbox/elsewhere")];
                (StatusCode::FOUND, elsewhere, Json(honest)).into_response()
            }
            Self::TooLarge => {
                if let Some(members) = honest.as_object_mut() {
                    members.insert("padding".to_owned(), Value::from("x".repeat(TOO_LARGE)));
                }
                Json(honest).into_response()
            }
            Self::Closed => {
                peer.close();
                StatusCode::OK.into_response()
            }
            Self::Refused => {
                let refusal = json!({
                    "error": "invalid_grant",
                    "error_description": "The specified code is not valid.",
                });
                (StatusCode::BAD_REQUEST, Json(refusal)).into_response()
            }
        }
    }
}

/// Just over what a client may be asked to read: 1 MiB.
const TOO_LARGE: usize = 1024 * 1024 + 1024;

/// A second handle on a caller's connection, so that a handler can hang up without an answer.
#[derive(Clone, Debug)]
pub struct PeerSocket(Option<Arc<TcpStream>>);

impl PeerSocket {
    /// Sends a head, then a byte a second, and hangs up in the end.
    async fn dribble(&self, how_long: Duration) {
        let Some(mut socket) = self.0.as_deref() else {
            return;
        };
        let mut piece: &[u8] =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";
        let start = Instant::now();
        while start.elapsed() < how_long && socket.write_all(piece).is_ok() {
            piece = b" ";
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.close();
    }

    fn close(&self) {
        if let Some(socket) = &self.0 {
            // Fails when the peer was faster, which is as good.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Connected<IncomingStream<'_, TcpListener>> for PeerSocket {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        let handle = stream.io().as_fd().try_clone_to_owned();
        Self(handle.ok().map(|handle| Arc::new(TcpStream::from(handle))))
    }
}
