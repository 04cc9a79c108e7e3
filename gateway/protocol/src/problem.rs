//! Error codes, their status, and the body that carries them: RFC 9457 problem details. CONTRACT 7.

use std::sync::OnceLock;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{language::Language, request_id::RequestId, text::text};

/// The media type of a problem's body.
pub const MEDIA_TYPE: &str = "application/problem+json";

macro_rules! problem_codes {
    ($($(#[doc = $doc:literal])* $variant:ident = $code:literal, $status:ident;)*) => {
        /// What went wrong, as a stable word that a client can switch on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ProblemCode {
            $($(#[doc = $doc])* $variant,)*
        }

        impl ProblemCode {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word in the body's `code`, which is also the key of its texts.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The status that an answer with this code has.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }
        }
    };
}

problem_codes! {
    /// The request target is not a path and query of RFC 3986, or there is not exactly one valid `Host`.
    TargetInvalid = "target_invalid", BAD_REQUEST;
    /// A broken escape in a query or form, or bytes that are not UTF-8.
    ParamsMalformed = "params_malformed", BAD_REQUEST;
    /// More parameters than allowed.
    ParamsTooMany = "params_too_many", BAD_REQUEST;
    /// A parameter that is needed is not there. Argument: `name`.
    ParamMissing = "param_missing", BAD_REQUEST;
    /// A parameter's value is not one it can have. Arguments: `name`, `allowed`.
    ParamInvalid = "param_invalid", BAD_REQUEST;
    /// Two `time` or two `sign`. Argument: `name`.
    ParamDuplicated = "param_duplicated", BAD_REQUEST;
    /// A convention header twice. Argument: `name`.
    HeaderDuplicated = "header_duplicated", BAD_REQUEST;
    /// A GET with a body.
    BodyNotAllowed = "body_not_allowed", BAD_REQUEST;
    /// No application header in multi-application mode. Argument: `name`, the header's.
    AppMissing = "app_missing", BAD_REQUEST;
    /// The version header names none of the versions. Argument: `versions`.
    VersionUnknown = "version_unknown", BAD_REQUEST;
    /// `time` is not milliseconds since the epoch.
    TimeInvalid = "time_invalid", BAD_REQUEST;
    /// The browser is not the one that began or confirmed the login.
    LoginMismatch = "login_mismatch", BAD_REQUEST;
    /// No credential.
    AuthorizationMissing = "authorization_missing", UNAUTHORIZED;
    /// The credential is unknown, expired, ended, or another application's.
    AuthorizationInvalid = "authorization_invalid", UNAUTHORIZED;
    /// Parameters, but no `time`.
    TimeMissing = "time_missing", FORBIDDEN;
    /// `time` is too far from the gateway's clock. Argument: `window`, seconds.
    TimeOutOfWindow = "time_out_of_window", FORBIDDEN;
    /// Parameters, but no `sign`; or a request that must be signed without parameters.
    SignMissing = "sign_missing", FORBIDDEN;
    /// The sign is not the one that the parameters and the key make.
    SignMismatch = "sign_mismatch", FORBIDDEN;
    /// The application is switched off.
    AppDisabled = "app_disabled", FORBIDDEN;
    /// The person said no at the provider.
    LoginDenied = "login_denied", FORBIDDEN;
    /// The address to return to is not of a registered origin.
    ReturnToNotAllowed = "return_to_not_allowed", FORBIDDEN;
    /// A backend was called without the gateway's secret.
    GatewayRequired = "gateway_required", FORBIDDEN;
    /// No application of that ident.
    AppNotFound = "app_not_found", NOT_FOUND;
    /// Nothing at that path.
    NotFound = "not_found", NOT_FOUND;
    /// No such login, or another application's.
    LoginUnknown = "login_unknown", NOT_FOUND;
    /// Neither GET nor POST, or not the one that the path takes.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED;
    /// Head or body took too long.
    RequestTimeout = "request_timeout", REQUEST_TIMEOUT;
    /// The same sign a second time.
    RequestReplayed = "request_replayed", CONFLICT;
    /// The login is not finished yet.
    LoginPending = "login_pending", CONFLICT;
    /// A second callback, or a spent ticket.
    LoginUsed = "login_used", CONFLICT;
    /// The version is past its sunset.
    VersionRetired = "version_retired", GONE;
    /// The login took too long.
    LoginExpired = "login_expired", GONE;
    /// The form is larger than allowed. Argument: `limit`, bytes.
    BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE;
    /// The query is longer than allowed. Argument: `limit`, bytes.
    UriTooLong = "uri_too_long", URI_TOO_LONG;
    /// A body that is not a UTF-8 form.
    ContentTypeUnsupported = "content_type_unsupported", UNSUPPORTED_MEDIA_TYPE;
    /// Too many requests, or too many logins under way.
    RateLimited = "rate_limited", TOO_MANY_REQUESTS;
    /// The head is larger than allowed.
    HeadersTooLarge = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE;
    /// Our fault.
    Internal = "internal", INTERNAL_SERVER_ERROR;
    /// The version's backend refused, or closed, the connection.
    BackendUnreachable = "backend_unreachable", BAD_GATEWAY;
    /// The provider answered something else than it should.
    ProviderFailed = "provider_failed", BAD_GATEWAY;
    /// No backend of the version is healthy.
    NoHealthyBackend = "no_healthy_backend", SERVICE_UNAVAILABLE;
    /// The store cannot be reached.
    StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE;
    /// The version's backend did not answer in time.
    BackendTimeout = "backend_timeout", GATEWAY_TIMEOUT;
    /// The provider did not answer in time.
    ProviderTimeout = "provider_timeout", GATEWAY_TIMEOUT;
}

/// One problem as it is answered: `{"type","title","status","code","detail","hint"?,"request_id",…}`.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    r#type: &'static str,
    title: String,
    status: u16,
    #[serde(serialize_with = "code_as_word")]
    code: ProblemCode,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    request_id: String,
    #[serde(flatten)]
    members: Map<String, Value>,
    #[serde(skip)]
    language: Language,
}

impl Problem {
    /// A problem in `language`, its detail without arguments.
    #[must_use]
    pub fn new(code: ProblemCode, language: Language, request_id: &str) -> Self {
        Self {
            r#type: "about:blank",
            title: text(language, code.as_str(), &[]),
            status: code.status().as_u16(),
            code,
            detail: detail_of(code, language, &[]),
            hint: None,
            request_id: request_id.to_owned(),
            members: Map::new(),
            language,
        }
    }

    /// Puts arguments into the detail; each code's documentation names those it takes.
    #[must_use]
    pub fn detail_args(mut self, args: &[(&str, &str)]) -> Self {
        self.detail = detail_of(self.code, self.language, args);
        self
    }

    /// Adds a hint, already localized.
    #[must_use]
    pub fn hint(mut self, hint: String) -> Self {
        self.hint = Some(hint);
        self
    }

    /// Adds a member of its own, `server_time` say.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> ProblemCode {
        self.code
    }

    /// The language of the texts.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// The short text, the same for every problem of this code.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The longer text: what to do about it.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The hint, if there is one.
    #[must_use]
    pub fn hinted(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The id of the request that had it.
    #[must_use]
    pub fn request_id(&self) -> &str {
        &self.request_id
    }

    /// The body.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings, numbers and JSON values always serialize")
    }
}

/// The body of a problem of which only the request is particular: what [`Problem::to_json`] makes of one
/// without arguments, hint and members. All but the request's id is made once, since whoever rejects many
/// requests rejects them for the same reason.
#[must_use]
pub fn plain_json(code: ProblemCode, language: Language, request_id: &RequestId) -> Vec<u8> {
    const LANGUAGES: usize = Language::ALL.len();
    static MADE: [[OnceLock<Vec<u8>>; LANGUAGES]; ProblemCode::ALL.len()] =
        [const { [const { OnceLock::new() }; LANGUAGES] }; ProblemCode::ALL.len()];
    // The request's id comes last, and has no characters to escape.
    const END: &[u8] = b"\"}";
    let made = MADE[code as usize][language as usize].get_or_init(|| {
        let mut json = Problem::new(code, language, "").to_json();
        json.truncate(json.len() - END.len());
        json
    });
    [made, request_id.as_str().as_bytes(), END].concat()
}

fn detail_of(code: ProblemCode, language: Language, args: &[(&str, &str)]) -> String {
    text(language, &format!("{}.detail", code.as_str()), args)
}

fn code_as_word<S: serde::Serializer>(
    code: &ProblemCode,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_the_members_of_the_contract_in_its_language() {
        let problem = Problem::new(ProblemCode::ParamMissing, Language::En, "r-1")
            .detail_args(&[("name", "token")])
            .hint("look again".to_owned())
            .member("server_time", 5);
        let body: Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!(body["type"], "about:blank");
        assert_eq!(body["status"], 400);
        assert_eq!(body["code"], "param_missing");
        assert!(body["detail"].as_str().unwrap().contains("token"), "{body}");
        assert_eq!(body["hint"], "look again");
        assert_eq!(body["request_id"], "r-1");
        assert_eq!(body["server_time"], 5);
    }

    #[test]
    fn without_a_hint_there_is_no_such_member() {
        let body = Problem::new(ProblemCode::NotFound, Language::Ja, "r").to_json();
        assert!(
            serde_json::from_slice::<Value>(&body)
                .unwrap()
                .get("hint")
                .is_none()
        );
    }

    #[test]
    fn a_plain_problem_is_the_same_made_once_or_anew() {
        for language in Language::ALL {
            for &code in ProblemCode::ALL {
                for id in ["r-1", "r-2"] {
                    let anew = Problem::new(code, language, id).to_json();
                    assert_eq!(plain_json(code, language, &id.parse().unwrap()), anew);
                }
            }
        }
    }

    #[test]
    fn every_code_has_title_and_detail_in_every_language() {
        for language in Language::ALL {
            for code in ProblemCode::ALL {
                for id in [
                    code.as_str().to_owned(),
                    format!("{}.detail", code.as_str()),
                ] {
                    assert!(
                        crate::text::exists(language, &id),
                        "{} in {}",
                        id,
                        language.tag()
                    );
                }
            }
        }
    }
}
