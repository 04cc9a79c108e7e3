//! Descriptions of the library's endpoints for the `OpenAPI` document. CONTRACT 8.

use serde_json::{Value, json};
use signpost_protocol::challenge::Challenge;

use super::{results::MAX_WAIT_SECONDS, user::MAX_DATA_BYTES};
use crate::{
    error::LoginError,
    http::{
        Version,
        description::{Operation, number, pattern, text},
    },
    records::events::{EventName, IdempotencyKey},
};

const TICKET: &str = "[A-Za-z0-9_-]{43}";
const TOKEN: &str = r"[A-Za-z0-9._-]{1,32}\.[A-Za-z0-9_-]{43}";

/// Describes `GET /login`.
pub(crate) fn login<V: Version>() -> Operation {
    provider(Operation::new("Each step of a login in a browser. Without `state` a login by redirect begins."))
        .optional("return_to", json!({ "type": "string", "format": "uri" }), "Where the login ends, with `ticket` or `error` in its query; required for a browser. Its origin is registered.")
        .optional("code_challenge", pattern(Challenge::PATTERN), "Base64url of the SHA-256 of `code_verifier`, without which `ticket` is worth nothing then.")
        .optional("code_challenge_method", pattern("S256"), "Of `code_challenge`; also if it is absent.")
        .optional("app", any_text(), "The application, if the header is absent.")
        .optional("state", pattern(TOKEN), "The login, as `authorize_url` and the provider's redirect have it.")
        .optional("confirm", any_text(), "A link of the page.")
        .optional("code", any_text(), "The provider's.")
        .optional("error", any_text(), "The provider's.")
        .optional("iss", any_text(), "The provider's.")
        .problem(LoginError::NO_PROVIDER)
        .for_browsers()
        .writes(V::login_result)
        .problem(LoginError::NO_RETURN_TO)
        .problem(LoginError::ReturnToNotAllowed)
        .problem(LoginError::LoginMismatch)
        .problem(LoginError::NetworkMismatch)
        .problems(OUTCOMES)
}

/// Why a login has no result.
const OUTCOMES: [LoginError; 6] = [
    LoginError::LoginUnknown,
    LoginError::LoginUsed,
    LoginError::LoginExpired,
    LoginError::LoginDenied,
    LoginError::ProviderFailed,
    LoginError::ProviderTimeout,
];

/// Describes `POST /login`.
pub(crate) fn begin_polling<V: Version>() -> Operation {
    provider(Operation::new(
        "Begins a login by polling: show `user_code`, and open `authorize_url`.",
    ))
    .signed()
    .writes(V::polling_login)
}

fn provider(operation: Operation) -> Operation {
    let about =
        "The provider. If it is absent, and there are several and no default, the user chooses.";
    let passed_on = "Goes on to a provider that is configured so; otherwise ignored.";
    operation
        .optional("provider", pattern("[a-z0-9_-]{1,32}"), about)
        .optional("prompt", any_text(), passed_on)
        .optional("login_hint", any_text(), passed_on)
}

fn any_text() -> Value {
    json!({ "type": "string" })
}

/// Describes `/check`.
pub(crate) fn check<V: Version>() -> Operation {
    Operation::new("The status of a login by polling, for every known token.")
        .required("token", pattern(TOKEN), "`token` of `POST /login`.")
        .optional(
            "wait",
            number(0..=MAX_WAIT_SECONDS),
            "Seconds to wait for another status than `pending`.",
        )
        .writes(V::check)
        .problem(LoginError::LoginUnknown)
}

/// Describes `POST /user/login`.
pub(crate) fn user_login<V: Version>() -> Operation {
    Operation::new("The result of a login, by `ticket` once, or by `token`.")
        .optional(
            "ticket",
            pattern(TICKET),
            "Of a login by redirect, from the query of `return_to`.",
        )
        .optional(
            "code_verifier",
            pattern(Challenge::VERIFIER_PATTERN),
            "Of the login's `code_challenge`, beside `ticket`.",
        )
        .optional(
            "token",
            pattern(TOKEN),
            "Of a login by polling; instead of `ticket`.",
        )
        .one_of_optional("ticket")
        .writes(V::login_result)
        .problem(LoginError::LoginPending)
        .problems(OUTCOMES)
}

/// Describes `POST /user/renew`.
pub(crate) fn user_renew<V: Version>() -> Operation {
    Operation::new(
        "A new credential in the place of the request's. A repetition returns the same one.",
    )
    .user()
    .writes(V::renewed)
}

/// Describes `POST /user/logout`.
pub(crate) fn user_logout<V: Version>() -> Operation {
    Operation::new("Ends the login, and all its credentials.")
        .user()
        .writes(|(): ()| V::logged_out())
}

/// Describes `GET /user`.
pub(crate) fn user<V: Version>() -> Operation {
    Operation::new("The account.").user().writes(V::account)
}

/// Describes `POST /event/send`.
pub(crate) fn event_send<V: Version>() -> Operation {
    Operation::new("Stores an event with the account.")
        .user()
        .required("event", pattern(EventName::PATTERN), "Its name.")
        .optional(
            "data",
            text(MAX_DATA_BYTES),
            "At most so many bytes of UTF-8, without U+0000.",
        )
        .optional(
            "idempotency_key",
            pattern(IdempotencyKey::PATTERN),
            "A repetition with the same key stores nothing.",
        )
        .writes(V::sent_event)
        .problem(LoginError::IdempotencyConflict)
}

/// Describes `GET /openapi.json`.
pub(crate) fn openapi() -> Operation {
    Operation::new("This document. A version that another one serves over a bridge has none.")
        .returns::<Value>()
        .problem(LoginError::NotFound { slip: None })
}
