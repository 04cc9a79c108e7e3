//! Clients of a service under test, their requests, and the responses.

use std::{future::IntoFuture, pin::Pin, sync::Arc};

use axum::body::{Body, to_bytes};
use http::{HeaderMap, Request, header::CONTENT_TYPE};
use serde_json::Value;
use signpost_protocol::{
    app::AppId,
    header::{X_GATEWAY_APP, X_GATEWAY_APP_ID},
};
use tokio::sync::OnceCell;
use url::form_urlencoded::Serializer;

use super::TestService;
use crate::records::accounts::User;

const FORM: &str = "application/x-www-form-urlencoded";

/// Limit of a response's body: far above what an endpoint answers.
const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A client of the service: a copy of an application.
#[derive(Clone)]
pub struct TestClient<'s> {
    service: &'s TestService,
    /// The ident; `None` for the single application.
    application: Option<String>,
    login: Option<Arc<TestLogin>>,
}

struct TestLogin {
    user: User,
    /// The credential, from the first request on.
    authorization: OnceCell<String>,
}

impl<'s> TestClient<'s> {
    pub(super) fn new(service: &'s TestService, user: Option<User>) -> Self {
        let login = |user| TestLogin {
            user,
            authorization: OnceCell::new(),
        };
        Self {
            service,
            application: None,
            login: user.map(login).map(Arc::new),
        }
    }

    /// The same user in another application: a login of its own.
    #[must_use]
    pub fn of_application(&self, ident: &str) -> Self {
        let user = self.login.as_ref().map(|login| login.user.clone());
        Self {
            application: Some(ident.to_owned()),
            ..Self::new(self.service, user)
        }
    }

    /// A GET. `target` can have a query.
    pub fn get(&self, target: &str) -> TestRequest<'s> {
        self.request("GET", target, String::new())
    }

    /// A POST with a form.
    pub fn post<const N: usize>(&self, path: &str, form: [(&str, &str); N]) -> TestRequest<'s> {
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        self.request("POST", path, form)
    }

    fn request(&self, method: &'static str, target: &str, form: String) -> TestRequest<'s> {
        TestRequest {
            client: self.clone(),
            method,
            target: target.to_owned(),
            is_signed: !form.is_empty() || target.contains('?'),
            form,
            headers: Vec::new(),
        }
    }

    async fn application_id(&self) -> AppId {
        match &self.application {
            Some(ident) => self.service.application(ident).await,
            None => AppId::SINGLE,
        }
    }

    async fn authorization(&self, application: AppId) -> Option<&str> {
        let login = self.login.as_ref()?;
        let log_in = || self.service.log_in(&login.user, application);
        Some(login.authorization.get_or_init(log_in).await)
    }
}

/// A request, which `.await` sends. One with parameters is signed, as a gateway accepts no other.
#[must_use]
pub struct TestRequest<'s> {
    client: TestClient<'s>,
    method: &'static str,
    target: String,
    form: String,
    is_signed: bool,
    headers: Vec<(&'static str, String)>,
}

impl<'s> TestRequest<'s> {
    /// Signs it, though it has no parameters.
    pub fn signed(mut self) -> Self {
        self.is_signed = true;
        self
    }

    /// Does not sign it, though it has parameters, as on the gateway's `sign.callback_paths`.
    pub fn unsigned(mut self) -> Self {
        self.is_signed = false;
        self
    }

    /// Adds a header, for example `acme-x-language`.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    async fn send(self) -> TestResponse {
        let mut target = self.target;
        if self.is_signed {
            // The service trusts the gateway, which has verified it.
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str("time=1&sign=verified");
        }
        let mut request = Request::builder().method(self.method).uri(target);
        let application = self.client.application_id().await;
        request = request.header(X_GATEWAY_APP_ID, application.get());
        if let Some(ident) = &self.client.application {
            request = request.header(X_GATEWAY_APP, ident);
        }
        let service = self.client.service.service();
        if let Some(authorization) = self.client.authorization(application).await {
            request = request.header(&service.config().headers.authorization, authorization);
        }
        if !self.form.is_empty() {
            request = request.header(CONTENT_TYPE, FORM);
        }
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(self.form)).expect("a valid target");
        let routes = self.client.service.routes();
        let (parts, body) = routes.serve(request).await.into_parts();
        let body = to_bytes(body, MAX_BODY_BYTES).await.expect("a short body");
        TestResponse {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: String::from_utf8(body.into()).expect("text"),
        }
    }
}

impl<'s> IntoFuture for TestRequest<'s> {
    type Output = TestResponse;
    type IntoFuture = Pin<Box<dyn Future<Output = TestResponse> + Send + 's>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// The response to a request.
#[derive(Debug)]
pub struct TestResponse {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: String,
}

impl TestResponse {
    /// The body, parsed.
    ///
    /// # Panics
    ///
    /// It is not JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.body);
        parsed.unwrap_or_else(|_| panic!("not JSON: {} {}", self.status, self.body))
    }

    /// The code of the problem; empty if it is none.
    ///
    /// # Panics
    ///
    /// As [`Self::json`].
    #[must_use]
    pub fn problem(&self) -> String {
        let code = self.json()["code"].as_str().map(str::to_owned);
        code.unwrap_or_default()
    }
}
