//! A user who has signed in, and calls of the API on their behalf.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::{Body, to_bytes},
    extract::{ConnectInfo, FromRequestParts, Request},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header, request::Parts};
use serde_json::Value;
use signpost_kit::clock::Timestamp;
use tower::ServiceExt;

use super::{
    Shared,
    failure::Failure,
    links::to_sign_in,
    page::Reader,
    session::{Proof, Session},
};
use crate::{
    api::{self, ApiError, FromConsole, IDEMPOTENCY_KEY},
    operations::{Input, Kind, Operation, Output, Target},
};

/// A user who has signed in.
pub(super) struct Visitor {
    /// How pages are written for them.
    pub reader: Reader,
    console: Shared,
    session: Arc<Session>,
    address: SocketAddr,
    /// Why its form may not change anything.
    refused: Option<Arc<ApiError>>,
}

/// Why a form may not change anything, if it came before with other contents, or still runs.
#[derive(Clone)]
pub(super) struct Refused(pub Option<Arc<ApiError>>);

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, console: &Shared) -> Result<Self, Response> {
        let session = console.sessions.find(&parts.headers);
        let address = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        match session.zip(address) {
            Some((session, address)) => Ok(Self {
                reader: Reader::new(&parts.headers, &session),
                console: Arc::clone(console),
                session,
                address: address.0,
                refused: parts
                    .extensions
                    .get()
                    .and_then(|Refused(error)| error.clone()),
            }),
            None => Err(to_sign_in(&parts.method, &parts.uri)),
        }
    }
}

/// A value that the API has to change something.
pub(super) struct Change<'c> {
    /// The path, from `/api/v1` on.
    pub path: &'c str,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: Bytes,
    /// Of the form: a form that is sent twice changes something once.
    pub key: &'c str,
}

impl Visitor {
    /// The gateway's clock.
    pub(super) fn now(&self) -> Timestamp {
        self.console.current.load().state.clock.now()
    }

    /// Runs an operation for them, with the guards of a call of the API.
    pub(super) async fn run<T: Target, I: Input, O: Output>(
        &self,
        operation: &'static Operation<T, I, O>,
        target: T,
        input: I,
    ) -> Result<O, Failure> {
        if let (Kind::Change | Kind::Create, Some(error)) = (operation.route.kind, &self.refused) {
            return Err(self.failed(error));
        }
        let api = &self.console.operations;
        let who = (
            self.session.proof.clone(),
            self.address,
            self.reader.language,
        );
        let done = api::run_for(api, operation, who, (target, input)).await;
        done.map_err(|error| self.failed(&error))
    }

    /// Runs an operation by a form, whose input may not be readable.
    pub(super) async fn submit<T: Target, I: Input, O: Output>(
        &self,
        operation: &'static Operation<T, I, O>,
        target: T,
        input: Result<I, ApiError>,
    ) -> Result<O, Failure> {
        let input = input.map_err(|error| self.refused(&error))?;
        self.run(operation, target, input).await
    }

    fn failed(&self, error: &ApiError) -> Failure {
        let id = self.console.current.load().state.ids.next();
        error.log(id.as_str());
        Failure::of_call(error, id.as_str(), self.reader.clone())
    }

    /// The target that a path names.
    pub(super) fn target<T: Target>(&self, text: &str) -> Result<T, Failure> {
        T::read(text).map_err(|code| Failure::of_error(&code.into(), self.reader.clone()))
    }

    /// The failure of an input that cannot be read.
    pub(super) fn refused(&self, error: &ApiError) -> Failure {
        Failure::of_error(error, self.reader.clone())
    }

    /// Reads something of the API. `path` begins with `/api/v1`.
    pub(super) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(self.request(Method::GET, path, Body::empty())?)
            .await
    }

    /// The response of the API to a GET, as it comes: a stream.
    pub(super) async fn open(&self, path: &str) -> Result<Response, Failure> {
        let request = self.request(Method::GET, path, Body::empty())?;
        let Ok(response) = self.console.api.clone().oneshot(request).await;
        Ok(response)
    }

    /// Changes something by a JSON body.
    pub(super) async fn post(&self, path: &str, body: &Value, key: &str) -> Result<Value, Failure> {
        let body = body.to_string().into();
        let content_type = "application/json";
        self.change(Change {
            path,
            content_type,
            body,
            key,
        })
        .await
    }

    /// Changes something.
    pub(super) async fn change(&self, change: Change<'_>) -> Result<Value, Failure> {
        if let Some(error) = &self.refused {
            return Err(self.failed(error));
        }
        let mut request = self.request(Method::POST, change.path, Body::from(change.body))?;
        let headers = request.headers_mut();
        let content_type = HeaderValue::from_static(change.content_type);
        headers.insert(header::CONTENT_TYPE, content_type);
        if !change.key.is_empty() {
            let key = HeaderValue::from_str(change.key);
            let key = key.map_err(|_| Failure::internal(self.reader.clone()))?;
            headers.insert(HeaderName::from_static(IDEMPOTENCY_KEY), key);
        }
        self.call(request).await
    }

    fn request(&self, method: Method, path: &str, body: Body) -> Result<Request, Failure> {
        let proof = &self.session.proof;
        let request = request(method, path, body, proof, &self.reader, self.address);
        request.map_err(|_| Failure::internal(self.reader.clone()))
    }

    async fn call(&self, request: Request) -> Result<Value, Failure> {
        call(&self.console, request, &self.reader).await
    }
}

/// A call of the API with what a session has signed in with.
pub(super) fn request(
    method: Method,
    path: &str,
    body: Body,
    proof: &Proof,
    reader: &Reader,
    address: SocketAddr,
) -> Result<Request, http::Error> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT_LANGUAGE, reader.language.tag())
        .extension(ConnectInfo(address))
        .extension(FromConsole);
    let request = match proof {
        Proof::Token(token) => {
            let mut bearer = HeaderValue::try_from(format!("Bearer {}", **token))?;
            bearer.set_sensitive(true);
            request.header(header::AUTHORIZATION, bearer)
        }
        Proof::Account(signed_in) => request.extension(signed_in.clone()),
    };
    request.body(body)
}

/// Calls the API.
pub(super) async fn call(
    console: &Shared,
    request: Request,
    reader: &Reader,
) -> Result<Value, Failure> {
    let Ok(response) = console.api.clone().oneshot(request).await;
    let status = response.status();
    // A page of the API's list, or what it has made for this call: both are bounded there.
    let bytes = to_bytes(response.into_body(), usize::MAX).await;
    let bytes = bytes.map_err(|_| Failure::internal(reader.clone()))?;
    let value = serde_json::from_slice(&bytes).unwrap_or_default();
    match status {
        StatusCode::OK | StatusCode::CREATED => Ok(value),
        _ => Err(Failure::new(status, value, reader.clone())),
    }
}
