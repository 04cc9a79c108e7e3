//! A user who has signed in, and the operations that they run.

use std::{mem, net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    response::Response,
};
use http::request::Parts;
use signpost_kit::clock::Timestamp;
use signpost_protocol::app::AppIdent;

use super::{
    Shared,
    failure::{Failure, Page},
    fields::Fields,
    links::to_sign_in,
    page::Reader,
    parts::said,
    session::Session,
};
use crate::{
    api::{self, ApiError, RequestParams, Write},
    operations::{Input, Kind, Operation, Output, Target, apps, input::Nothing},
};

/// A user who has signed in.
pub(super) struct Visitor {
    /// How pages are written for them.
    pub reader: Reader,
    console: Shared,
    session: Arc<Session>,
    address: SocketAddr,
    /// Path and query of the request: the address of its form.
    form: String,
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
        let Some((session, address)) = session.zip(address) else {
            return Err(to_sign_in(&parts.method, &parts.uri));
        };
        let mut reader = Reader::new(&parts.headers, &session);
        reader.banner = said(&reader, parts.uri.query());
        let refused = parts.extensions.get();
        Ok(Self {
            reader,
            form: parts.uri.to_string(),
            console: Arc::clone(console),
            session,
            address: address.0,
            refused: refused.and_then(|Refused(error)| error.clone()),
        })
    }
}

impl Visitor {
    /// The gateway's clock.
    pub(super) fn now(&self) -> Timestamp {
        self.console.current.load().state.clock.now()
    }

    /// Runs an operation for them. It is authenticated and takes its turn like a call of the API.
    pub(super) async fn run<T: Target, I: Input, O: Output>(
        &self,
        operation: &'static Operation<T, I, O>,
        target: T,
        input: I,
    ) -> Result<O, Failure> {
        self.allowed(operation.route.kind)?;
        let api = &self.console.operations;
        let who = (
            self.session.proof.clone(),
            self.address,
            self.reader.language,
        );
        let done = api::run_for(api, operation, who, (target, input)).await;
        done.map_err(|error| self.failed(&error))
    }

    /// Checks that their role allows an operation: a form that would fail is not shown.
    pub(super) fn check<T: Target, I, O>(
        &self,
        operation: &Operation<T, I, O>,
        target: &T,
    ) -> Result<(), Failure> {
        let api = &self.console.operations;
        let needed = api.role_for(&operation.route, target.app());
        api::check_role(self.session.role, needed).map_err(|error| self.refused(&error))
    }

    /// Fails for a change if the form may not change anything.
    fn allowed(&self, kind: Kind) -> Result<(), Failure> {
        match (kind, &self.refused) {
            (Kind::Change | Kind::Create, Some(error)) => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    /// Runs an operation by a form, whose input may not be readable.
    pub(super) async fn submit<T: Target, I: Input, O: Output>(
        &self,
        operation: &'static Operation<T, I, O>,
        target: T,
        input: Result<I, ApiError>,
    ) -> Result<O, Failure> {
        self.allowed(operation.route.kind)?;
        let input = input.map_err(|error| self.refused(&error))?;
        self.run(operation, target, input).await
    }

    /// The page that follows what a form did; the form again if it was not accepted.
    pub(super) async fn or_again<F: Future<Output = Page>>(
        mut self,
        done: Page,
        fields: Fields,
        show: impl FnOnce(Self) -> F,
    ) -> Page {
        let failure = match done {
            Ok(page) => return Ok(page),
            Err(failure) => failure.of_input()?,
        };
        self.reader.banner = failure.banner();
        self.reader.kept = Some(Arc::new((mem::take(&mut self.form), fields.0)));
        Ok(failure.with_page(show(self).await?))
    }

    /// The name of an application, if it exists.
    pub(super) async fn app_name(&self, ident: &str) -> Option<String> {
        let target: AppIdent = ident.parse().ok()?;
        let names = &self.console.names;
        if let Some(name) = names.get(&target) {
            return name;
        }
        let app = self.run(&apps::SHOW, target, Nothing {}).await;
        let name = app.ok().map(|app| app.name);
        names.insert(target, name.clone());
        name
    }

    fn failed(&self, error: &ApiError) -> Failure {
        Failure::of_logged(&self.console, error, self.reader.clone())
    }

    /// The target that a path names.
    pub(super) fn target<T: Target>(&self, text: &str) -> Result<T, Failure> {
        T::read(text).map_err(|code| Failure::of_error(&code.into(), self.reader.clone()))
    }

    /// The failure of an input that cannot be read.
    pub(super) fn refused(&self, error: &ApiError) -> Failure {
        Failure::of_error(error, self.reader.clone())
    }

    /// The gateway's requests as the API streams them, each as `write` shows it.
    pub(super) async fn watch(&self, of: RequestParams, write: Write) -> Page {
        let who = (self.session.proof.clone(), self.address);
        let watched = api::watch_for(&self.console.operations, who, of, write).await;
        watched.map_err(|error| self.failed(&error))
    }
}
