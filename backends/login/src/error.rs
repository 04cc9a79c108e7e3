//! All errors of a request, grouped by who causes them, and their problem codes.

pub mod problem;

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use signpost_protocol::{log_text, malformed::Malformed, problem::ProblemCode, version::Version};
use signpost_store::StoreError;

use crate::{error::problem::OwnProblem, records::logins::FailureReason};

macro_rules! login_errors {
    ($($(#[doc = $doc:literal])* $name:ident $({ $($field:tt)* })? = $message:literal $(, $argument:expr)?;)*) => {
        /// An error that is returned as a problem. The message is for the log; clients get the text of the code.
        #[derive(Debug, thiserror::Error)]
        pub enum LoginError {
            $($(#[doc = $doc])* #[error($message $(, $argument)?)] $name $({ $($field)* })?,)*
            /// A problem that only this version has; usually the client's.
            #[error("{}", .0.code)]
            Own(&'static OwnProblem),
            /// The store is locked, full or unavailable.
            #[error("the store is unavailable")]
            Store(#[from] Arc<StoreError>),
        }

        impl LoginError {
            /// The problem of the response.
            pub(crate) fn kind(&self) -> ProblemKind {
                match self {
                    $(Self::$name { .. } => ProblemKind::Shared(ProblemCode::$name),)*
                    Self::Own(problem) => ProblemKind::Own(problem),
                    Self::Store(_) => ProblemKind::Shared(ProblemCode::StoreUnavailable),
                }
            }
        }
    };
}

// Each is named as the code of its problem.
login_errors! {
    // The client's.
    /// No endpoint has this path.
    NotFound {
        /// The mistake that explains it, if found.
        slip: Option<PathSlip>,
    } = "no such endpoint";
    /// The endpoint does not allow this method.
    MethodNotAllowed = "the endpoint does not allow this method";
    /// An invalid percent-encoding or invalid UTF-8; a gateway rejects such requests.
    ParamsMalformed {
        /// Where.
        at: Box<Malformed>,
    } = "the parameters are malformed: {at}";
    /// More parameters than a gateway forwards.
    ParamsTooMany = "too many parameters";
    /// The body is larger than a gateway forwards, or was not received whole.
    BodyTooLarge = "the body is too large or incomplete";
    /// The body was not received within the timeout.
    RequestTimeout {
        /// Time within which the body must be received.
        limit: Duration,
    } = "the body was not received within {} s", limit.as_secs();
    /// The body is not a form.
    ContentTypeUnsupported = "the body is not a form";
    /// A GET with a body.
    BodyNotAllowed = "a GET with a body";
    /// A required parameter is missing.
    ParamMissing {
        /// Name of the missing parameter.
        name: &'static str,
    } = "the parameter {name} is missing";
    /// A parameter has an invalid value, or appears twice.
    ParamInvalid {
        /// Name of the invalid parameter.
        name: &'static str,
        /// The rule that its value breaks.
        rule: ParamRule,
    } = "the parameter {name} is invalid";
    /// A convention header appears twice.
    HeaderDuplicated {
        /// Name of the header.
        name: String,
    } = "the header {name} appears twice";
    /// The endpoint requires a signature, and the request has none: it has no parameters.
    SignMissing = "the request is not signed";
    /// The credential is missing.
    AuthorizationMissing = "the credential is missing";
    /// What the header has is no credential.
    AuthorizationMalformed = "the credential is malformed";
    /// The credential is unknown, expired, revoked, or another application's.
    AuthorizationInvalid = "the credential is invalid";
    /// Another browser began or confirmed the login, or `iss` is another provider's.
    LoginMismatch = "the login belongs to another browser or provider";
    /// The browser is not in the network where the login was begun, and the configuration requires it.
    NetworkMismatch = "the login was begun in another network";
    /// The idempotency key names an event with other content.
    IdempotencyConflict = "the idempotency key was used with other content";
    /// The login is unknown, another application's, or expired long ago.
    LoginUnknown = "no such login";
    /// The client asked for the result before the login was finished.
    LoginPending = "the login is still pending";
    /// A second callback, or a redeemed ticket.
    LoginUsed = "the login was already used";
    /// The login was not finished, or its outcome not claimed, in time.
    LoginExpired = "the login has expired";
    /// The user denied access at the provider, or cancelled the login on its page.
    LoginDenied = "the login was denied at the provider";
    /// `return_to` is malformed, or its origin is not registered for the application.
    ReturnToNotAllowed = "return_to is not allowed";
    /// Too many logins of this application, or callbacks of this client's network. CONTRACT 8.
    RateLimited {
        /// The limit, for the log.
        limit: &'static str,
        /// Seconds until the next request is allowed.
        retry_after: u64,
    } = "the limit {limit} is exceeded";

    // The operator's.
    /// The gateway's secret, or a header that the gateway always sends, is missing or invalid.
    GatewayRequired = "the request does not come from the gateway";
    /// The application was deleted while the request was in flight.
    AppNotFound = "unknown application";
    /// The application was disabled while a request or a login was in flight.
    AppDisabled = "the application is disabled";

    // The provider's.
    /// The provider was unavailable or sent an invalid response. The cause was logged where it happened.
    ProviderFailed = "the provider failed";
    /// The provider did not respond within 10 s.
    ProviderTimeout = "the provider timed out";

    // Ours.
    /// A bug, or a configuration that changed during a login.
    Internal {
        /// What went wrong.
        what: &'static str,
    } = "internal: {what}";
}

/// What a parameter must be; each rule is a variant of the text of `param_invalid`.
#[derive(Debug)]
pub enum ParamRule {
    /// It may appear only once.
    Once,
    /// Only one of these parameters may be sent.
    OnlyOne(&'static str),
    /// At most this many bytes, without null characters.
    MaxBytes(usize),
    /// One of these values: names, a range or a pattern, the same in every language.
    Values(String),
}

impl ParamRule {
    /// The variant of the text, and the values that the text allows.
    pub(crate) fn text_args(&self) -> (&'static str, String) {
        match self {
            Self::Once => ("once", "1".to_owned()),
            Self::OnlyOne(names) => ("only_one", (*names).to_owned()),
            Self::MaxBytes(limit) => ("text", limit.to_string()),
            Self::Values(values) => ("values", values.clone()),
        }
    }
}

impl From<&'static OwnProblem> for LoginError {
    fn from(problem: &'static OwnProblem) -> Self {
        Self::Own(problem)
    }
}

impl From<StoreError> for LoginError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl LoginError {
    /// A browser's login without `return_to`: no program would get its result.
    pub(crate) const NO_RETURN_TO: Self = Self::ParamMissing { name: "return_to" };
    /// Several providers are configured, the request names none, and there is no page on which a user chooses one.
    pub(crate) const NO_PROVIDER: Self = Self::ParamMissing { name: "provider" };

    /// More than one of the parameters `names` was sent.
    pub(crate) fn only_one(name: &'static str, names: &'static str) -> Self {
        let rule = ParamRule::OnlyOne(names);
        Self::ParamInvalid { name, rule }
    }

    /// The problem code of the response. CONTRACT 7.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.kind() {
            ProblemKind::Shared(code) => code.as_str(),
            ProblemKind::Own(problem) => problem.code,
        }
    }

    /// The name of the response's hint, if it has one: the key of its text.
    pub(crate) const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotFound { slip: Some(slip) } => Some(slip.hint),
            _ => None,
        }
    }

    /// The limit that the request exceeds.
    pub(crate) const fn limit(&self) -> Option<&'static str> {
        match self {
            Self::RateLimited { limit, .. } => Some(limit),
            _ => None,
        }
    }

    /// The status of the response. CONTRACT 7.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self.kind() {
            ProblemKind::Shared(code) => code.status(),
            ProblemKind::Own(problem) => problem.status,
        }
    }
}

/// The problem of a response.
pub(crate) enum ProblemKind {
    /// One of the contract, with its texts.
    Shared(ProblemCode),
    /// One of the version.
    Own(&'static OwnProblem),
}

impl From<FailureReason> for LoginError {
    fn from(reason: FailureReason) -> Self {
        match reason {
            FailureReason::AccessDenied => Self::LoginDenied,
            FailureReason::ProviderFailed => Self::ProviderFailed,
            FailureReason::ProviderTimeout => Self::ProviderTimeout,
        }
    }
}

/// A common mistake in a path: the name of a version before it, although a header names that (CONTRACT 5); or a path that is
/// nearly a known one.
#[derive(Debug, PartialEq, Eq)]
pub struct PathSlip {
    /// The name of its hint: the key of its text.
    pub(crate) hint: &'static str,
    /// The version, as sent; empty if there is none.
    pub(crate) version: Box<str>,
    /// The right path, at most as long as a path in the log.
    pub(crate) path: Box<str>,
}

impl PathSlip {
    /// Recognises the name of this version, and of others as they are usually named: `v` and digits. A version does not
    /// know which others the gateway has. Otherwise a path of `known`, or of a page about a problem, which the gateway serves.
    pub(crate) fn of(path: &str, own: &Version, known: &[&'static str]) -> Option<Self> {
        Self::with_version(path, own).or_else(|| {
            let asked = plain(path);
            let is_similar = |path: &&str| path.len() > 1 && asked.ends_with(&*plain(path));
            let similar = known
                .iter()
                .copied()
                .filter(is_similar)
                .max_by_key(|path| path.len());
            let page = || ProblemCode::of_type_uri(&asked).map(ProblemCode::type_uri);
            similar.or_else(page).map(|path| Self {
                hint: "hint_path",
                version: "".into(),
                path: path.into(),
            })
        })
    }

    fn with_version(path: &str, own: &Version) -> Option<Self> {
        let (version, _) = path.strip_prefix('/')?.split_once('/')?;
        let is_numbered = |name: &str| {
            let digits = name.strip_prefix(['v', 'V']).unwrap_or_default();
            (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_version = version.eq_ignore_ascii_case(own.as_str()) || is_numbered(version);
        let rest = &path[1 + version.len()..];
        (is_version && rest.len() > 1).then(|| Self {
            hint: "hint_version_in_path",
            version: version.into(),
            path: log_text::path(rest).into(),
        })
    }
}

/// A path in lower case, without empty segments and an extension.
fn plain(path: &str) -> String {
    let path = path.to_ascii_lowercase();
    let segments = path.split('/').filter(|segment| !segment.is_empty());
    let plain = segments.fold(String::new(), |plain, segment| plain + "/" + segment);
    let end = plain
        .rfind('.')
        .filter(|end| plain.len() - end <= ".html".len());
    plain[..end.unwrap_or(plain.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use signpost_protocol::{language::Language, text::text};

    use super::*;

    #[test]
    fn every_rule_has_its_own_text_in_every_language() {
        let rules = [
            ParamRule::Once,
            ParamRule::OnlyOne("1"),
            ParamRule::MaxBytes(1),
            ParamRule::Values("1".to_owned()),
        ];
        for language in Language::ALL {
            let texts: BTreeSet<_> = rules
                .iter()
                .map(|rule| {
                    let (rule, allowed) = rule.text_args();
                    let args = [("name", "a"), ("rule", rule), ("allowed", &*allowed)];
                    text(language, "param_invalid.detail", &args)
                })
                .collect();
            assert_eq!(texts.len(), rules.len(), "{texts:?}");
        }
    }

    #[test]
    fn only_a_versions_name_before_a_path_is_recognised() {
        let own: Version = "beta".parse().unwrap();
        for (path, expected) in [
            ("/v1/login", Some(("v1", "/login"))),
            ("/V2/user/login", Some(("V2", "/user/login"))),
            ("/Beta/user", Some(("Beta", "/user"))),
            ("/v1", None),
            ("/v1/", None),
            ("/v/login", None),
            ("/v12345/login", None),
            ("/v1x/login", None),
            ("/x/v1/login", None),
            ("//v1/login", None),
            ("/gamma/login", None),
            ("/", None),
        ] {
            let expected = expected.map(|(version, path): (&str, &str)| PathSlip {
                hint: "hint_version_in_path",
                version: version.into(),
                path: path.into(),
            });
            assert_eq!(PathSlip::of(path, &own, &[]), expected, "{path}");
        }
        let long = format!("/v1/{}", "x".repeat(4000));
        let found = PathSlip::of(&long, &own, &[]);
        assert!(found.unwrap().path.len() < 600);
    }

    #[test]
    fn a_path_that_differs_little_from_a_known_one_names_it() {
        let own: Version = "v1".parse().unwrap();
        let known = ["/login", "/user", "/user/login", "/openapi.json"];
        for (path, expected) in [
            ("/user/", Some("/user")),
            ("//user", Some("/user")),
            ("/User", Some("/user")),
            ("/USER/LOGIN/", Some("/user/login")),
            ("/user//login", Some("/user/login")),
            ("/api/user/login", Some("/user/login")),
            ("/login.php", Some("/login")),
            ("/OpenAPI.json", Some("/openapi.json")),
            ("/problems/Not_Found", Some("/problems/not_found")),
            ("/problems/not_found/", Some("/problems/not_found")),
            ("/problems/unknown", None),
            ("/superuser", None),
            ("/users", None),
            ("/", None),
            ("", None),
        ] {
            let found = PathSlip::of(path, &own, &known);
            let found = found.as_ref().map(|found| (found.hint, &*found.path));
            assert_eq!(found, expected.map(|path| ("hint_path", path)), "{path}");
        }
    }
}
