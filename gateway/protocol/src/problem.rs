//! Error codes, their status, and the body that carries them: RFC 9457 problem details. CONTRACT 7.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    language::Language,
    request_id::RequestId,
    text::{find, text},
};

mod about;

pub use self::about::About;

/// The media type of a problem's body.
pub const MEDIA_TYPE: &str = "application/problem+json";

codes! {
    /// What went wrong, as a stable word that a client can switch on.
    pub enum ProblemCode {
        /// The request target is not a path and query of RFC 3986, or there is not exactly one valid `Host`. Arguments:
        /// see [`Malformed`](crate::malformed::Malformed).
        TargetInvalid = "target_invalid", BAD_REQUEST, No;
        /// A backend may take the path for another one. Arguments: the same.
        TargetAmbiguous = "target_ambiguous", BAD_REQUEST, No;
        /// A broken escape in a query or form, or bytes that are not UTF-8. Arguments: the same.
        ParamsMalformed = "params_malformed", BAD_REQUEST, No;
        /// More parameters than allowed.
        ParamsTooMany = "params_too_many", BAD_REQUEST, No;
        /// A required parameter is missing. Argument: `name`.
        ParamMissing = "param_missing", BAD_REQUEST, No;
        /// A parameter's value is not one it can have. Arguments: `name`, `rule`, `allowed`;
        /// the rules are the variants of the text.
        ParamInvalid = "param_invalid", BAD_REQUEST, No;
        /// Two `time`, two `sign`, or a parameter of a callback twice. Argument: `name`.
        ParamDuplicated = "param_duplicated", BAD_REQUEST, No;
        /// A convention header twice. Argument: `name`.
        HeaderDuplicated = "header_duplicated", BAD_REQUEST, No;
        /// A GET with a body.
        BodyNotAllowed = "body_not_allowed", BAD_REQUEST, No;
        /// No application header in multi-application mode. Argument: `name`, the header's.
        AppMissing = "app_missing", BAD_REQUEST, No;
        /// The version in the header does not exist. Argument: `versions`.
        VersionUnknown = "version_unknown", BAD_REQUEST, No;
        /// The header, the host or the path's prefix name different versions. Argument: `placed`.
        VersionContradictory = "version_contradictory", BAD_REQUEST, No;
        /// `time` is not milliseconds since the epoch.
        TimeInvalid = "time_invalid", BAD_REQUEST, No;
        /// Another browser began or confirmed the login.
        LoginMismatch = "login_mismatch", BAD_REQUEST, NewLogin;
        /// No credential. Argument: `name`, the header's; also of the next two.
        AuthorizationMissing = "authorization_missing", UNAUTHORIZED, LogIn;
        /// The credential is unknown, expired, revoked, or another application's.
        AuthorizationInvalid = "authorization_invalid", UNAUTHORIZED, LogIn;
        /// What the header has is no credential.
        AuthorizationMalformed = "authorization_malformed", UNAUTHORIZED, No;
        /// Parameters, but no `time`.
        TimeMissing = "time_missing", FORBIDDEN, No;
        /// `time` is too far from the gateway's clock. Argument: `window`, seconds.
        TimeOutOfWindow = "time_out_of_window", FORBIDDEN, Yes;
        /// Parameters, but no `sign`; or a request that must be signed without parameters.
        SignMissing = "sign_missing", FORBIDDEN, No;
        /// The signature does not match the parameters and the key.
        SignMismatch = "sign_mismatch", FORBIDDEN, No;
        /// A browser prefetches a page of a login.
        PrefetchRefused = "prefetch_refused", FORBIDDEN, Yes;
        /// A signature, a credential or a form by plain HTTP.
        HttpsRequired = "https_required", FORBIDDEN, No;
        /// The application is disabled.
        AppDisabled = "app_disabled", FORBIDDEN, No;
        /// The user denied the login at the provider.
        LoginDenied = "login_denied", FORBIDDEN, NewLogin;
        /// The browser is not in the network where the login was begun.
        NetworkMismatch = "network_mismatch", FORBIDDEN, NewLogin;
        /// The return address does not have a registered origin.
        ReturnToNotAllowed = "return_to_not_allowed", FORBIDDEN, No;
        /// The request to a backend lacks the gateway's secret.
        GatewayRequired = "gateway_required", FORBIDDEN, No;
        /// No application has that ident.
        AppNotFound = "app_not_found", NOT_FOUND, No;
        /// No endpoint has that path.
        NotFound = "not_found", NOT_FOUND, No;
        /// No such login, or another application's.
        LoginUnknown = "login_unknown", NOT_FOUND, NewLogin;
        /// Neither GET nor POST, or not the method of the path. Arguments: `methods`, `scope` (`gateway` or `path`).
        MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED, No;
        /// Head or body did not arrive in time.
        RequestTimeout = "request_timeout", REQUEST_TIMEOUT, Yes;
        /// The same signature was used already.
        RequestReplayed = "request_replayed", CONFLICT, Yes;
        /// The login is not finished yet.
        LoginPending = "login_pending", CONFLICT, Yes;
        /// A second callback, or a ticket that was used already.
        LoginUsed = "login_used", CONFLICT, NewLogin;
        /// The idempotency key was used for other content.
        IdempotencyConflict = "idempotency_conflict", CONFLICT, No;
        /// The version is past its sunset. Argument: `versions`, or `none`.
        VersionRetired = "version_retired", GONE, No;
        /// The login expired before it was finished.
        LoginExpired = "login_expired", GONE, NewLogin;
        /// The body is larger than allowed. Argument: `limit`, bytes.
        BodyTooLarge = "body_too_large", PAYLOAD_TOO_LARGE, No;
        /// The query is longer than allowed. Argument: `limit`, bytes.
        UriTooLong = "uri_too_long", URI_TOO_LONG, No;
        /// A body of a kind that is not accepted. Arguments, if others than forms are: `kind`, `allowed`.
        ContentTypeUnsupported = "content_type_unsupported", UNSUPPORTED_MEDIA_TYPE, No;
        /// Too many requests, or too many logins in progress.
        RateLimited = "rate_limited", TOO_MANY_REQUESTS, Yes;
        /// The head is larger than allowed.
        HeadersTooLarge = "headers_too_large", REQUEST_HEADER_FIELDS_TOO_LARGE, No;
        /// A bug or failure of Signpost itself.
        Internal = "internal", INTERNAL_SERVER_ERROR, Yes;
        /// `Upgrade` asks for another protocol.
        UpgradeNotSupported = "upgrade_not_supported", NOT_IMPLEMENTED, No;
        /// The version's backend refused or closed the connection.
        BackendUnreachable = "backend_unreachable", BAD_GATEWAY, Yes;
        /// A change between two versions does not apply. Argument: `change`, its name.
        BridgeFailed = "bridge_failed", BAD_GATEWAY, No;
        /// The provider's response is not valid.
        ProviderFailed = "provider_failed", BAD_GATEWAY, NewLogin;
        /// There is no room for a body.
        SpoolFull = "spool_full", SERVICE_UNAVAILABLE, Yes;
        /// No backend of the version is healthy.
        NoHealthyBackend = "no_healthy_backend", SERVICE_UNAVAILABLE, Yes;
        /// The version is switched off for a while, before its sunset. Argument: `versions`, or `none`.
        VersionBrownout = "version_brownout", SERVICE_UNAVAILABLE, Yes;
        /// The store cannot be reached.
        StoreUnavailable = "store_unavailable", SERVICE_UNAVAILABLE, Yes;
        /// The version's backend did not answer in time.
        BackendTimeout = "backend_timeout", GATEWAY_TIMEOUT, Yes;
        /// A stop of the gateway cut the request off.
        GatewayStopping = "gateway_stopping", GATEWAY_TIMEOUT, Yes;
        /// The provider did not answer in time.
        ProviderTimeout = "provider_timeout", GATEWAY_TIMEOUT, NewLogin;
    }
}

label_enum! {
    /// Whether the same call can succeed later, and the key of the text that says so. CONTRACT 7.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Retry {
        /// It fails again.
        No = "page_problem_retry.no",
        /// It can succeed, after `Retry-After` if the response has one.
        Yes = "page_problem_retry.yes",
        /// Another login can.
        NewLogin = "page_problem_retry.new-login",
        /// It can once the user has logged in.
        LogIn = "page_problem_retry.log-in",
    }
}

/// One problem, as in the response body: `{"type","title","status","code","detail","hint"?,"request_id",…}`.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    r#type: &'static str,
    /// The short text, the same for every problem of this code.
    pub title: String,
    status: u16,
    /// The code.
    pub code: ProblemCode,
    /// The longer text: what to do about it.
    pub detail: String,
    /// A hint, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The address of a page about the problem, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The id of the request.
    pub request_id: String,
    #[serde(flatten)]
    members: Map<String, Value>,
    /// The language of the texts.
    #[serde(skip)]
    pub language: Language,
}

impl Problem {
    /// Creates a problem in `language`, with a detail without arguments.
    #[must_use]
    pub fn new(code: ProblemCode, language: Language, request_id: &str) -> Self {
        Self {
            r#type: code.type_uri(),
            title: text(language, code.as_str(), &[]),
            status: code.status().as_u16(),
            code,
            detail: detail_of(code, language, &[]),
            hint: None,
            link: None,
            request_id: request_id.to_owned(),
            members: Map::new(),
            language,
        }
    }

    /// Sets the arguments of the detail; each code's documentation lists its arguments.
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

    /// Adds the address of a page about the problem: `http` or `https`.
    #[must_use]
    pub fn link(mut self, link: String) -> Self {
        self.link = Some(link);
        self
    }

    /// Adds a further member, for example `server_time`.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The title on a page: the code's `.page-title` text if it has one, since `title` speaks to developers.
    #[must_use]
    pub fn page_title(&self) -> String {
        let title = self.own_text("page-title");
        title.unwrap_or_else(|| self.title.clone())
    }

    /// The detail on a page: the code's `.page` text if it has one, since a person in a browser did not write the
    /// request.
    #[must_use]
    pub fn page_detail(&self) -> String {
        self.own_text("page").unwrap_or_else(|| self.detail.clone())
    }

    /// What a page says to the application's maker: the code's `.developer` text, otherwise `detail`, and the hint.
    /// `None` if the page's detail has it all.
    #[must_use]
    pub fn developer_detail(&self) -> Option<String> {
        let detail = self.own_text("developer");
        let detail = detail.or_else(|| self.own_text("page").map(|_| self.detail.clone()));
        let texts: Vec<String> = detail.into_iter().chain(self.hint.clone()).collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    }

    fn own_text(&self, attribute: &str) -> Option<String> {
        let id = format!("{}.{attribute}", self.code.as_str());
        find(self.language, &id, &[])
    }

    /// The response body, in JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings, numbers and JSON values always serialize")
    }
}

/// The body of a problem without arguments, hint and members, equal to [`Problem::to_json`].
///
/// Everything but the request's id is cached per code and language, since mass rejections have the same code.
#[must_use]
pub fn plain_json(code: ProblemCode, language: Language, request_id: &RequestId) -> Vec<u8> {
    const LANGUAGES: usize = Language::ALL.len();
    static CACHE: [[OnceLock<Vec<u8>>; LANGUAGES]; ProblemCode::ALL.len()] =
        [const { [const { OnceLock::new() }; LANGUAGES] }; ProblemCode::ALL.len()];
    // The request's id comes last, and has no characters to escape.
    const END: &[u8] = b"\"}";
    let start = CACHE[code as usize][language as usize].get_or_init(|| {
        let mut json = Problem::new(code, language, "").to_json();
        json.truncate(json.len() - END.len());
        json
    });
    [start, request_id.as_str().as_bytes(), END].concat()
}

fn detail_of(code: ProblemCode, language: Language, args: &[(&str, &str)]) -> String {
    text(language, &format!("{}.detail", code.as_str()), args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_has_the_members_of_the_contract_in_its_language() {
        let problem = Problem::new(ProblemCode::ParamMissing, Language::En, "r-1")
            .detail_args(&[("name", "token")])
            .hint("look again".to_owned())
            .link("https://acme.example/v2".to_owned())
            .member("server_time", 5);
        let body: Value = serde_json::from_slice(&problem.to_json()).unwrap();
        assert_eq!(body["type"], "/problems/param_missing");
        assert_eq!(body["status"], 400);
        assert_eq!(body["code"], "param_missing");
        assert!(body["detail"].as_str().unwrap().contains("token"), "{body}");
        assert_eq!(body["hint"], "look again");
        assert_eq!(body["link"], "https://acme.example/v2");
        assert_eq!(body["request_id"], "r-1");
        assert_eq!(body["server_time"], 5);
    }

    #[test]
    fn without_a_hint_or_a_link_there_is_no_such_member() {
        let body = Problem::new(ProblemCode::NotFound, Language::Ja, "r").to_json();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(
            body.get("hint").is_none() && body.get("link").is_none(),
            "{body}"
        );
    }

    #[test]
    fn a_cached_plain_problem_equals_a_new_one() {
        for language in Language::ALL {
            for &code in ProblemCode::ALL {
                for id in ["r-1", "r-2"] {
                    let new = Problem::new(code, language, id).to_json();
                    assert_eq!(plain_json(code, language, &id.parse().unwrap()), new);
                }
            }
        }
    }

    #[test]
    fn the_contract_lists_every_code_with_its_status_and_retry() {
        let contract = include_str!("../CONTRACT.md");
        for code in ProblemCode::ALL {
            let (status, name) = (code.status().as_u16().to_string(), code.as_str());
            let mut rows = contract.lines().filter(|line| line.starts_with("| "));
            let is_row = |row: &&str| {
                let mut cells = row.split(" | ");
                let has =
                    |cell: Option<&str>, text: &str| cell.is_some_and(|cell| cell.contains(text));
                has(cells.next(), &status) && has(cells.next(), &format!("`{name}`"))
            };
            let row = rows.find(is_row).expect(name);
            let retry = match code.retry() {
                Retry::No => "no",
                Retry::Yes => "yes",
                Retry::NewLogin => "new login",
                Retry::LogIn => "log in",
            };
            let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            assert!(cell.starts_with(retry), "{name}: {retry} is not {cell}");
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
                        find(language, &id, &[]).is_some(),
                        "{} in {}",
                        id,
                        language.tag()
                    );
                }
            }
        }
    }

    #[test]
    fn a_page_has_its_own_detail_or_the_problems() {
        let args = [("name", "Acme-X-App")];
        let missing = Problem::new(ProblemCode::AppMissing, Language::En, "r").detail_args(&args);
        assert!(missing.detail.contains("header Acme-X-App"));
        assert_eq!(missing.page_title(), "This link does not work");
        assert!(
            missing
                .page_detail()
                .starts_with("The application created a link")
        );
        let developer = missing.developer_detail().unwrap();
        assert!(developer.contains("signed query parameter") && !developer.contains("Acme-X-App"));
        let other = Problem::new(ProblemCode::LoginDenied, Language::En, "r");
        assert_eq!(other.page_title(), other.title);
        assert_eq!(other.page_detail(), other.detail);
        assert_eq!(other.developer_detail(), None);
        let args = [("name", "token")];
        let missing = Problem::new(ProblemCode::ParamMissing, Language::En, "r").detail_args(&args);
        let hinted = missing.clone().hint("look again".to_owned());
        assert_eq!(
            hinted.developer_detail(),
            Some(format!("{} look again", missing.detail))
        );
    }

    #[test]
    fn no_page_mentions_a_header_or_lacks_an_argument() {
        const HEADER: [&str; 6] = ["header", "请求头", "响应头", "標頭", "ヘッダー", "헤더"];
        for language in Language::ALL {
            for &code in ProblemCode::ALL {
                let problem = Problem::new(code, language, "r");
                let shown = format!("{}: {}", problem.page_title(), problem.page_detail());
                let about = format!("{} in {}: {shown}", code.as_str(), language.tag());
                let lower = shown.to_lowercase();
                assert!(!HEADER.iter().any(|word| lower.contains(word)), "{about}");
                for own in ["page-title", "page", "developer"] {
                    let own = text(language, &format!("{}.{own}", code.as_str()), &[]);
                    assert!(!own.contains("{$") && !own.contains("page_"), "{about}");
                }
            }
        }
    }

    #[test]
    fn no_page_speaks_to_a_developer() {
        const WORDS: [&str; 28] = [
            "parameter",
            "signature",
            "signed",
            "ident",
            "endpoint",
            "query",
            "参数",
            "签名",
            "接口",
            "查询",
            "请求头",
            "參數",
            "簽章",
            "端點",
            "查詢",
            "パラメーター",
            "署名",
            "エンドポイント",
            "クエリ",
            "매개변수",
            "서명",
            "엔드포인트",
            "쿼리",
            "return_to",
            "\"time\"",
            "\"sign\"",
            "utc",
            "utf",
        ];
        for language in Language::ALL {
            for &code in ProblemCode::ALL {
                let problem = Problem::new(code, language, "r");
                let page = format!("{}: {}", problem.page_title(), problem.page_detail());
                let word = WORDS
                    .iter()
                    .find(|word| page.to_lowercase().contains(*word));
                assert_eq!(
                    word,
                    None,
                    "{} in {}: {page}",
                    code.as_str(),
                    language.tag()
                );
            }
        }
    }
}
