//! What a version's document, `GET /openapi.json`, says of an endpoint: by hand what the signature of its handler does not say,
//! and by its type the response.
//!
//! ```
//! use login::{Endpoints, LoginError, Version, description::{Operation, number}, request::Parameters};
//!
//! # struct V9;
//! impl Version for V9 {
//!     // …
//! #   const NAME: &'static str = "v9"; type Settings = (); type State = ();
//!     fn endpoints() -> Endpoints<Self> {
//!         Endpoints::new().get("/roll", roll).described(
//!             Operation::new("Rolls dice.")
//!                 .required("dice", number(1..=MAX_DICE), "How many.")
//!                 .returns::<Vec<u8>>(),
//!         )
//!     }
//! }
//!
//! const MAX_DICE: u64 = 9;
//!
//! async fn roll(parameters: Parameters) -> Result<axum::Json<Vec<u8>>, LoginError> {
//!     let dice = parameters.number("dice", 1..=MAX_DICE)?;
//!     let dice = dice.ok_or(LoginError::ParamMissing { name: "dice" })?;
//!     Ok(axum::Json((0..dice).map(|_| 4).collect()))
//! }
//!
//! // In a test of the version:
//! login::testing::description::<V9>();
//! ```

use std::{collections::BTreeSet, ops::RangeInclusive};

use serde_json::{Value, json};
use utoipa::{
    ToSchema,
    openapi::{RefOr, Schema},
};

use super::views::View;
use crate::error::{LoginError, ParamRule};

/// What the document says of an endpoint.
#[derive(Default)]
#[must_use]
pub struct Operation {
    pub(super) summary: String,
    /// The name and the schema of each.
    pub(super) parameters: Vec<(&'static str, Value)>,
    pub(super) required: Vec<&'static str>,
    /// Whether it needs a signature: a parameter is required, or it is said so.
    pub(super) is_signed: bool,
    /// Whether one of its optional parameters is sent. No `oneOf` says which: few generators of clients read it.
    pub(super) needs_any: bool,
    /// Which of these a request has, besides its signature.
    pub(super) security: Vec<Value>,
    /// The schema of the response.
    pub(super) response: Value,
    pub(super) schemas: Vec<(String, RefOr<Schema>)>,
    /// Status and code of each problem.
    pub(super) problems: BTreeSet<(u16, &'static str)>,
    /// Whether it redirects, and has pages.
    pub(super) is_for_browsers: bool,
}

impl Operation {
    /// An endpoint without parameters; `summary` is what it does, in a sentence.
    pub fn new(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            security: vec![json!({})],
            ..Self::default()
        }
    }

    /// It takes an [`AuthenticatedUser`](crate::request::AuthenticatedUser).
    pub fn user(self) -> Self {
        let mut operation = self.optional_user();
        // The alternative without a credential.
        operation.security.remove(0);
        operation.problem(LoginError::AuthorizationMissing)
    }

    /// It takes an `Option<AuthenticatedUser>`.
    pub fn optional_user(mut self) -> Self {
        self.security.push(json!({ "credential": [] }));
        self.problem(LoginError::AuthorizationMalformed)
            .problem(LoginError::AuthorizationInvalid)
    }

    /// It must be signed, although each of its parameters can be absent.
    pub fn signed(mut self) -> Self {
        self.is_signed = true;
        self
    }

    /// It takes exactly one of several parameters, which are optional; if none is sent, `first` is missed.
    pub(super) fn one_of_optional(mut self, first: &'static str) -> Self {
        self.needs_any = true;
        self.signed()
            .problem(LoginError::ParamMissing { name: first })
    }

    /// It has a required parameter. [`number`], [`text`] and [`pattern`] say what is allowed.
    pub fn required(self, name: &'static str, allowed: Value, about: impl Into<String>) -> Self {
        let mut operation = self.optional(name, allowed, about).signed();
        operation.required.push(name);
        operation.problem(LoginError::ParamMissing { name })
    }

    /// It has an optional parameter.
    pub fn optional(
        mut self,
        name: &'static str,
        mut allowed: Value,
        about: impl Into<String>,
    ) -> Self {
        allowed["description"] = about.into().into();
        self.parameters.push((name, allowed));
        let rule = ParamRule::Once;
        self.problem(LoginError::ParamInvalid { name, rule })
    }

    /// Its response is the JSON of `R`.
    pub fn returns<R: ToSchema>(mut self) -> Self {
        R::schemas(&mut self.schemas);
        let schema = json!(R::schema());
        self.response = if schema["type"] == "object" {
            self.schemas.push((R::name().into(), R::schema()));
            json!({ "$ref": format!("#/components/schemas/{}", R::name()) })
        } else {
            schema
        };
        self
    }

    /// Its response is what this function of the version writes.
    pub(super) fn writes<T, R: View>(self, _: impl FnOnce(T) -> R) -> Self {
        self.returns::<R>()
    }

    /// It can fail with this problem. Problems that any request can have need not be named, and neither do problems of its
    /// parameters and of the user.
    pub fn problem(mut self, problem: impl Into<LoginError>) -> Self {
        let problem = problem.into();
        self.problems
            .insert((problem.status().as_u16(), problem.code()));
        self
    }

    /// It can fail with each of these.
    pub(super) fn problems<const N: usize>(self, problems: [LoginError; N]) -> Self {
        problems.into_iter().fold(self, Self::problem)
    }

    /// It redirects a browser, or shows it a page.
    pub(super) fn for_browsers(mut self) -> Self {
        self.is_for_browsers = true;
        self
    }
}

/// What [`Parameters::number`](crate::request::Parameters::number) allows.
#[must_use]
pub fn number(range: RangeInclusive<u64>) -> Value {
    json!({ "type": "integer", "minimum": range.start(), "maximum": range.end() })
}

/// What [`Parameters::text`](crate::request::Parameters::text) allows.
#[must_use]
pub fn text(max_bytes: usize) -> Value {
    json!({ "type": "string", "maxLength": max_bytes })
}

/// Texts that match a regular expression as a whole.
#[must_use]
pub fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{pattern}$") })
}
