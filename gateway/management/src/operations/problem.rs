//! What went wrong in a call: RFC 9457 problem details, in the caller's language.

use std::{borrow::Cow, fmt, time::Duration};

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use signpost_protocol::{codes, language::Language, problem::MEDIA_TYPE, text::text};
use signpost_proxy::AppStoreError;
use signpost_store::StoreError;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type},
};

use crate::administration::{
    apps::AdministrationError, logins::LogoutError, rules::BrokenRule, tokens::TokenError,
};

/// `Retry-After` while the store does not answer.
const STORE_RETRY: Duration = Duration::from_secs(1);

codes! {
    /// The kind of a problem, as a stable word.
    pub enum Code {
        /// A value is not one that it can have. Arguments: `name`, `allowed`.
        ParamInvalid = "param_invalid", BAD_REQUEST;
        /// Query or body cannot be read. Argument: `problem`.
        RequestMalformed = "request_malformed", BAD_REQUEST;
        /// A change without any setting.
        NothingToChange = "nothing_to_change", BAD_REQUEST;
        /// No token.
        TokenMissing = "token_missing", UNAUTHORIZED;
        /// The token is unknown, has ended or was revoked.
        TokenInvalid = "token_invalid", UNAUTHORIZED;
        /// The token's role does not allow the call. Arguments: `role`, `needed`.
        RoleInsufficient = "role_insufficient", FORBIDDEN;
        /// A page of another site calls.
        CrossSite = "cross_site", FORBIDDEN;
        /// No application has that ident.
        AppNotFound = "app_not_found", NOT_FOUND;
        /// No account has that provider and username.
        AccountNotFound = "account_not_found", NOT_FOUND;
        /// No token has that number.
        TokenNotFound = "token_not_found", NOT_FOUND;
        /// No backend with that name has that address. The member `known` has the names, or the backend's addresses.
        AddressNotFound = "address_not_found", NOT_FOUND;
        /// No endpoint has that path.
        NotFound = "not_found", NOT_FOUND;
        /// Not the method of the path. Argument: `methods`.
        MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED;
        /// The body did not arrive in time. Argument: `seconds`.
        RequestTimeout = "request_timeout", REQUEST_TIMEOUT;
        /// An application has that ident.
        AppTaken = "app_taken", CONFLICT;
        /// A live token has that name.
        TokenTaken = "token_taken", CONFLICT;
        /// Another request came before with the same idempotency key.
        IdempotencyConflict = "idempotency_conflict", CONFLICT;
        /// The same request runs, or was interrupted.
        IdempotencyUnfinished = "idempotency_unfinished", CONFLICT;
        /// The key before the last rotation is still valid. Argument: `minutes`.
        OverlapRunning = "overlap_running", CONFLICT;
        /// No other address of the backend would be left.
        LastAddress = "last_address", CONFLICT;
        /// There is no draining to end.
        NotDrained = "not_drained", CONFLICT;
        /// The change was decided upon another revision. Argument: `revision`, the present one; also a member.
        RevisionStale = "revision_stale", PRECONDITION_FAILED;
        /// The body is larger than allowed. Argument: `limit`, bytes.
        BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE;
        /// The body has another content type. Arguments: `kind` (`api`), `allowed`.
        ContentTypeUnsupported = "content_type_unsupported", UNSUPPORTED_MEDIA_TYPE;
        /// The file has problems: the member `problems` lists them.
        ImportInvalid = "import_invalid", UNPROCESSABLE_ENTITY;
        /// The configuration file has problems: the member `problems` lists them.
        ConfigInvalid = "config_invalid", UNPROCESSABLE_ENTITY;
        /// The report has too many applications.
        ReportTooLarge = "report_too_large", UNPROCESSABLE_ENTITY;
        /// The change names no revision.
        RevisionMissing = "revision_missing", PRECONDITION_REQUIRED;
        /// Too many calls, or too many failed ones.
        RateLimited = "rate_limited", TOO_MANY_REQUESTS;
        /// A bug or failure of Signpost itself.
        Internal = "internal", INTERNAL_SERVER_ERROR;
        /// The store cannot be reached.
        StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE;
        /// The gateway has handed over to a new process.
        GatewayStopping = "gateway_stopping", SERVICE_UNAVAILABLE;
    }
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let words = Self::ALL.iter().map(|code| code.as_str());
        let schema = ObjectBuilder::new().schema_type(Type::String);
        schema.enum_values(Some(words)).into()
    }
}

impl ToSchema for Code {}

impl Problem {
    /// What is wrong with each line of a file, or with each of its keys; empty of most problems.
    pub(crate) fn lines(&self) -> Vec<ProblemLine> {
        let lines = self.members.get("problems").cloned();
        lines.map_or_else(Vec::new, |lines| {
            serde_json::from_value(lines).unwrap_or_default()
        })
    }
}

/// An item of the member `problems`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum ProblemLine {
    /// Of a file of applications.
    Text(String),
    /// Of a configuration.
    OfKey {
        line: Option<u64>,
        key: String,
        text: String,
    },
}

/// A problem: the body of each response that is no success.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The path of the page about the code.
    r#type: &'static str,
    /// The code's text, in the language of the response.
    pub title: String,
    /// The status of the response.
    status: u16,
    /// The code: what a program looks at.
    pub code: Code,
    /// What to do about it, in the language of the response.
    pub detail: String,
    /// The id of the call, as in the header `X-Request-Id`.
    pub request_id: String,
    /// What a code adds, for example the present `revision`.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    members: Map<String, Value>,
}

/// Marks a response whose call surely changed nothing, so that the same call can succeed later.
#[derive(Clone)]
pub(crate) struct Unchanged;

/// What went wrong. The [API](crate::api) makes a [`Problem`] of it: a handler does not know the language.
#[derive(Debug)]
pub(crate) struct ApiError {
    code: Code,
    arguments: Vec<(&'static str, Cow<'static, str>)>,
    members: Map<String, Value>,
    retry_after: Option<Duration>,
    /// Whether its response is [`Unchanged`].
    is_unchanged: bool,
    /// For the log.
    cause: Option<anyhow::Error>,
}

/// As a terminal shows it.
impl fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = self.problem(Language::En, "", None);
        formatter.write_str(&problem.detail)
    }
}

impl std::error::Error for ApiError {}

impl From<Code> for ApiError {
    fn from(code: Code) -> Self {
        Self {
            code,
            arguments: Vec::new(),
            members: Map::new(),
            retry_after: None,
            is_unchanged: matches!(code, Code::RateLimited | Code::GatewayStopping),
            cause: None,
        }
    }
}

impl ApiError {
    /// A value that is not one of those that `allowed` describes.
    pub(crate) fn invalid(name: impl Into<Cow<'static, str>>, allowed: impl ToString) -> Self {
        let allowed = allowed.to_string();
        Self::from(Code::ParamInvalid)
            .arg("name", name)
            .arg("allowed", allowed)
    }

    /// The code.
    #[cfg(test)]
    pub(crate) const fn code(&self) -> Code {
        self.code
    }

    /// With an argument of the detail.
    pub(crate) fn arg(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.arguments.push((name, value.into()));
        self
    }

    /// With a further member.
    pub(crate) fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// With the time after which the same call can succeed.
    pub(crate) const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// A failure of Signpost itself.
    pub(crate) fn internal(cause: impl Into<anyhow::Error>) -> Self {
        Self {
            cause: Some(cause.into()),
            ..Code::Internal.into()
        }
    }

    /// Logs a failure of Signpost itself.
    pub(crate) fn log(&self, request_id: &str) {
        if let Some(cause) = &self.cause {
            let code = self.code.as_str();
            tracing::error!(
                request.id = request_id,
                code,
                cause = format!("{cause:#}"),
                "a call of the management API failed"
            );
        }
    }

    /// Whether its call surely changed nothing.
    pub(crate) const fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// The response in this language. `allowed` is the path's method, if it has not the call's.
    pub(crate) fn render(
        &self,
        language: Language,
        request_id: &str,
        allowed: Option<&str>,
    ) -> Response {
        self.log(request_id);
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE)),
            (
                header::CONTENT_LANGUAGE,
                HeaderValue::from_static(language.tag()),
            ),
        ];
        let status = self.code.status();
        let problem = self.problem(language, request_id, allowed);
        let mut response = (status, headers, axum::Json(problem)).into_response();
        if self.is_unchanged {
            response.extensions_mut().insert(Unchanged);
        }
        let headers = response.headers_mut();
        if let Some(wait) = self.retry_after {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        if let Some(methods) = allowed {
            headers.extend(HeaderValue::from_str(methods).map(|allow| (header::ALLOW, allow)));
        }
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"management\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// The problem in this language.
    pub(crate) fn problem(
        &self,
        language: Language,
        request_id: &str,
        allowed: Option<&str>,
    ) -> Problem {
        let id = self.code.as_str();
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|(name, value)| (*name, &**value));
        let methods = allowed.map(|methods| ("methods", methods));
        let arguments: Vec<_> = arguments.chain(methods).collect();
        Problem {
            r#type: self.code.type_uri(),
            title: text(language, id, &[]),
            status: self.code.status().as_u16(),
            code: self.code,
            detail: text(language, &format!("{id}.detail"), &arguments),
            request_id: request_id.to_owned(),
            members: self.members.clone(),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        if error.is_transient() {
            tracing::debug!(cause = %error.in_short(), "the management API cannot reach the store");
            return Self {
                // No statement began. A handler returns it only if none that changes something had ended before.
                is_unchanged: matches!(error, StoreError::Busy),
                ..Self::from(Code::StoreUnavailable).retry_after(STORE_RETRY)
            };
        }
        Self::internal(error)
    }
}

impl From<AppStoreError> for ApiError {
    fn from(error: AppStoreError) -> Self {
        match error {
            AppStoreError::Store(error) => error.into(),
            AppStoreError::Unknown(_) => Code::AppNotFound.into(),
            AppStoreError::Seal(_) | AppStoreError::Malformed(_) => Self::internal(error),
        }
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::Name => Self::invalid("name", "1 to 64 characters that can be seen"),
            TokenError::End => Self::invalid("days", "1 to 366"),
            TokenError::Taken => Code::TokenTaken.into(),
            TokenError::Unknown => Code::TokenNotFound.into(),
            TokenError::NoRandomness => Self::internal(error),
            TokenError::Store(error) => error.into(),
        }
    }
}

impl From<LogoutError> for ApiError {
    fn from(error: LogoutError) -> Self {
        match error {
            LogoutError::UnknownAccount => Code::AccountNotFound.into(),
            LogoutError::UnknownApp(_) => Code::AppNotFound.into(),
            LogoutError::Store(error) => error.into(),
        }
    }
}

impl From<AdministrationError> for ApiError {
    fn from(error: AdministrationError) -> Self {
        match error {
            AdministrationError::Rule(BrokenRule::UnknownVersion { known }) => {
                Self::invalid("default_version", known)
            }
            AdministrationError::Rule(BrokenRule::Extension { allowed }) => {
                Self::invalid("extend", allowed)
            }
            AdministrationError::Rule(rule @ BrokenRule::TooManyOrigins) => {
                Self::invalid("return_to", rule)
            }
            AdministrationError::NothingToChange => Code::NothingToChange.into(),
            AdministrationError::OverlapTooLong => Self::invalid("overlap_hours", "0 to 720"),
            AdministrationError::Overlapping { minutes } => {
                Self::from(Code::OverlapRunning).arg("minutes", minutes.to_string())
            }
            AdministrationError::Stale { present } => Self::from(Code::RevisionStale)
                .arg("revision", present.to_string())
                .member("revision", present),
            AdministrationError::Taken(_) => Code::AppTaken.into(),
            AdministrationError::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use signpost_protocol::text::find;

    use super::*;

    #[test]
    fn only_what_surely_changed_nothing_can_be_repeated_with_its_key() {
        for (error, expected) in [
            (ApiError::from(Code::RateLimited), true),
            (Code::GatewayStopping.into(), true),
            (StoreError::Busy.into(), true),
            (StoreError::TimedOut.into(), false),
            (StoreError::Disconnected.into(), false),
            (StoreError::Interrupted.into(), false),
            (Code::RevisionStale.into(), false),
        ] {
            let response = error.render(Language::En, "", None);
            let is_unchanged = response.extensions().get::<Unchanged>().is_some();
            assert_eq!(is_unchanged, expected, "{error:?}");
        }
    }

    #[test]
    fn every_code_has_title_and_detail_in_every_language() {
        for language in Language::ALL {
            for code in Code::ALL {
                let title = code.as_str().to_owned();
                for id in [format!("{title}.detail"), title] {
                    assert!(
                        find(language, &id, &[]).is_some(),
                        "{id} in {}",
                        language.tag()
                    );
                }
            }
        }
    }
}
