//! Faults of the provider's responses, for users whose names ask for them.

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

/// A fault of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The correct answer, but far too late.
    Slow,
    /// A response that begins immediately and stalls: one byte a second.
    Dribbled,
    /// 500 with an HTML page.
    ServerError,
    /// 200 with the content type of JSON, but HTML.
    NotJson,
    /// The correct answer, with the content type of HTML.
    WrongType,
    /// 200 with JSON, without its most important field.
    FieldMissing,
    /// 200 with JSON, with an object in its most important field.
    FieldNotText,
    /// A redirect to a path that responds correctly. A caller that follows it would succeed; `elsewhere` counts it.
    Redirect,
    /// The correct answer, in more than 1 MiB.
    TooLarge,
    /// The connection is closed without a response.
    Closed,
    /// The code is rejected (RFC 6749 section 5.2).
    Refused,
}

impl Fault {
    /// The faults of the token endpoint.
    pub const AT_TOKEN: [Self; 11] = [
        Self::Slow,
        Self::Dribbled,
        Self::ServerError,
        Self::NotJson,
        Self::WrongType,
        Self::FieldMissing,
        Self::FieldNotText,
        Self::Redirect,
        Self::TooLarge,
        Self::Closed,
        Self::Refused,
    ];
    /// The faults of the profile endpoint.
    pub const AT_PROFILE: [Self; 10] = [
        Self::Slow,
        Self::Dribbled,
        Self::ServerError,
        Self::NotJson,
        Self::WrongType,
        Self::FieldMissing,
        Self::FieldNotText,
        Self::Redirect,
        Self::TooLarge,
        Self::Closed,
    ];

    /// Its name, as part of user names.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Dribbled => "dribbled",
            Self::ServerError => "500",
            Self::NotJson => "not-json",
            Self::WrongType => "wrong-type",
            Self::FieldMissing => "field-missing",
            Self::FieldNotText => "field-not-text",
            Self::Redirect => "redirect",
            Self::TooLarge => "too-large",
            Self::Closed => "closed",
            Self::Refused => "refused",
        }
    }

    /// Its description on the page, after "Token" or "Profile".
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Slow => "response is late",
            Self::Dribbled => "response stalls",
            Self::ServerError => "response is 500",
            Self::NotJson => "response is not JSON",
            Self::WrongType => "response has the content type of HTML",
            Self::FieldMissing => "response lacks its field",
            Self::FieldNotText => "response has an object in its field",
            Self::Redirect => "response is a redirect",
            Self::TooLarge => "response is over 1 MiB",
            Self::Closed => "connection is closed",
            Self::Refused => "request is rejected",
        }
    }

    /// Applies this fault to a correct answer.
    ///
    /// `field` is its most important member.
    pub async fn spoil(
        self,
        mut correct: Value,
        field: &str,
        peer: &PeerSocket,
        settings: &Settings,
    ) -> Response {
        match self {
            Self::Slow => {
                tokio::time::sleep(settings.slowness).await;
                Json(correct).into_response()
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
            Self::WrongType => axum::response::Html(correct.to_string()).into_response(),
            Self::FieldMissing => {
                if let Some(members) = correct.as_object_mut() {
                    members.remove(field);
                }
                Json(correct).into_response()
            }
            Self::Dribbled => {
                peer.dribble(settings.slowness).await;
                StatusCode::OK.into_response()
            }
            Self::FieldNotText => {
                correct[field] = json!({ "value": correct[field] });
                Json(correct).into_response()
            }
            Self::Redirect => {
                let elsewhere = [(header::LOCATION, "/_sandbox/elsewhere")];
                (StatusCode::FOUND, elsewhere, Json(correct)).into_response()
            }
            Self::TooLarge => {
                if let Some(members) = correct.as_object_mut() {
                    members.insert("padding".to_owned(), Value::from("x".repeat(TOO_LARGE)));
                }
                Json(correct).into_response()
            }
            Self::Closed => {
                peer.close();
                StatusCode::OK.into_response()
            }
            // The token endpoint words it in its provider's form.
            Self::Refused => StatusCode::BAD_REQUEST.into_response(),
        }
    }
}

/// Just over the largest answer that a client should read: 1 MiB.
const TOO_LARGE: usize = 1024 * 1024 + 1024;

/// A second handle of a caller's connection, so that a handler can close it without a response.
#[derive(Clone, Debug, Default)]
pub struct PeerSocket(Option<Arc<TcpStream>>);

impl PeerSocket {
    /// Sends a head, then a byte a second until `duration` has passed, and closes the connection.
    async fn dribble(&self, duration: Duration) {
        let Some(mut socket) = self.0.as_deref() else {
            return;
        };
        let mut piece: &[u8] =
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{";
        let start = Instant::now();
        while start.elapsed() < duration && socket.write_all(piece).is_ok() {
            piece = b" ";
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.close();
    }

    fn close(&self) {
        if let Some(socket) = &self.0 {
            // Fails if the peer has closed it already, which is just as good.
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
