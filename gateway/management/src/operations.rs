//! What operators do: one list of operations. The [management API](crate::api), the commands and the
//! [console](crate::console) are its faces; they read an input, run the operation, and show its output. Everything else is
//! decided here.
//!
//! [`all`] has every operation that the API makes a route of by its type. Three routes are made by hand, in `api/routes.rs`:
//! the [import], whose body is a file, the export, whose response is one, and the stream of requests.
//!
//! # How an operation is added
//!
//! 1. In its subject's file here: a function, an [`Operation`] that says once how the API has it and who may, and a line in
//!    the file's `all`. Input and output are structs beside it, unless another operation has them already:
//!    - An [`Input`] derives `Deserialize` with `deny_unknown_fields`, `ToSchema`, and `clap::Args` if a command takes it. A
//!      value that is read from a text is a [`Text`]: the `FromStr` of its type says what is allowed, for all faces. What can
//!      be removed is an `Option` of a [`Change`](input::Change). A change has a `reason`, and a `revision` if its subject has
//!      revisions.
//!    - An [`Output`] derives `Serialize` and `ToSchema`. An error has a problem: `From` it for [`ApiError`].
//!    - What the audit says of a change is written in its statement: an [`Action`](signpost_store::tables::audit::Action).
//! 2. A command, if it has one: its variant in the subject's file of `cli`, which gives the input to `operation::on_apps`, or
//!    to `on_store` if no key is opened, and prints the output. What needs the configuration, too, or runs several
//!    operations takes its context from `with_keys` or `on_many`.
//! 3. A form or a page of the console, if it has one: in the subject's file of [`console`](crate::console). A page gives the
//!    input to `Visitor::run`, a form to `Visitor::submit`, which shows an input that cannot be read as a problem.
//!
//! Its texts are in the languages of the protocol (problems) and of the console. `gateway/openapi.json` shows what the API
//! says of it, and a test that its role is needed.

pub mod accounts;
pub mod apps;
pub mod audit;
pub mod backends;
pub mod card;
pub(crate) mod config;
pub(crate) mod doctor;
pub mod gateways;
pub mod import;
pub mod input;
pub(crate) mod problem;
pub(crate) mod requests;
pub mod tokens;
pub mod versions;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Serialize, de::DeserializeOwned};
use signpost_kit::{clock::Timestamp, reload::ReloadHandle, server::listener::UntilSent};
use signpost_protocol::{app::AppIdent, language::Language};
use signpost_proxy::{BackendStatus, Gateway, Versions};
use signpost_store::{Store, tables::audit::Author};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use self::{
    input::Text,
    problem::{ApiError, Code},
};
use crate::administration::{
    apps::{Administration, ChangeRequest},
    logins::Logins,
    rules::Reason,
    tokens::{Role, Token, Tokens},
};

/// Something that operators do to a target, with an input, and what comes of it.
pub struct Operation<T: 'static, I: 'static, O: 'static> {
    /// How the API has it, and who may.
    pub route: Route,
    /// Does it.
    pub run: Run<T, I, O>,
}

type Run<T, I, O> = for<'c> fn(&'c Context, T, I) -> BoxFuture<'c, Result<O>>;

/// How the API has an operation, and who may.
pub struct Route {
    /// Whether it reads, asks or changes.
    pub kind: Kind,
    /// The role that it needs; for a change of the console's own application, it is an admin.
    pub role: Role,
    /// The path, with the target's name in braces.
    pub path: &'static str,
    /// What it does, in the API's description.
    pub text: &'static str,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only reads: a GET, whose query is the input.
    Read,
    /// It only reads, of an input that no query can have: a POST.
    Ask,
    /// It changes something: a POST, which an idempotency key makes once.
    Change,
    /// The same, and a 201.
    Create,
}

impl<T, I, O> Operation<T, I, O> {
    /// What this role may do.
    pub(crate) const fn of(
        (kind, role): (Kind, Role),
        path: &'static str,
        text: &'static str,
        run: Run<T, I, O>,
    ) -> Self {
        let route = Route {
            kind,
            role,
            path,
            text,
        };
        Self { route, run }
    }

    /// What a viewer may read.
    pub(crate) const fn read(path: &'static str, text: &'static str, run: Run<T, I, O>) -> Self {
        Self::of((Kind::Read, Role::Viewer), path, text, run)
    }

    /// What an operator may change.
    pub(crate) const fn change(path: &'static str, text: &'static str, run: Run<T, I, O>) -> Self {
        Self::of((Kind::Change, Role::Operator), path, text, run)
    }
}

/// What an operation is told.
pub trait Input: DeserializeOwned + ToSchema + Send + 'static {
    /// The revision that a change was decided upon, if its subject has revisions: `If-Match` can name it, too.
    const REVISION: Option<fn(&mut Self) -> &mut Option<i64>> = None;
    /// Whether it is one of its token's few that run at once. A file's work has a bound of its own.
    const TAKES_TURN: bool = true;
}

/// What an operation says.
pub trait Output: Serialize + ToSchema + Send + 'static {
    /// Its revision, if it has one: the entity tag.
    const REVISION: Option<fn(&Self) -> i64> = None;
    /// Its path in the API, if it can be created: the `Location`.
    const LOCATION: Option<fn(&Self) -> String> = None;

    /// What is held until it is sent.
    fn held(&self) -> Option<UntilSent> {
        None
    }

    /// Its name in the API's description.
    fn schema_name() -> String {
        Self::name().into_owned()
    }

    /// Adds its schema, and what this names, to the API's description.
    fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Self::schemas(schemas);
        schemas.push((Self::schema_name(), Self::schema()));
    }
}

/// A parameter of a path: its name, and its schema.
pub type Parameter = (&'static str, fn() -> RefOr<Schema>);

/// What an operation is done to, as a path names it: nothing, or something with a name.
pub trait Target: Sized + Send + 'static {
    /// The parameter of the path.
    const PARAMETER: Option<Parameter>;

    /// Reads the path's text. What cannot be a name is none of anything.
    fn read(text: &str) -> Result<Self, Code>;

    /// The application that it is.
    fn app(&self) -> Option<AppIdent> {
        None
    }
}

impl Target for () {
    const PARAMETER: Option<Parameter> = None;

    fn read(_: &str) -> Result<Self, Code> {
        Ok(())
    }
}

impl Target for AppIdent {
    const PARAMETER: Option<Parameter> = Some(("ident", String::schema));

    fn read(text: &str) -> Result<Self, Code> {
        text.parse().map_err(|_| Code::AppNotFound)
    }

    fn app(&self) -> Option<AppIdent> {
        Some(*self)
    }
}

/// What makes something of each operation, for example a route.
pub trait Face: Sized {
    /// Makes it of this one.
    fn add<T: Target, I: Input, O: Output>(self, operation: &'static Operation<T, I, O>) -> Self;
}

/// The list of all operations, but the [import](import::IMPORT).
pub fn all<F: Face>(face: F) -> F {
    let face = tokens::all(accounts::all(card::all(apps::all(face))));
    let face = versions::all(gateways::all(backends::all(face)));
    doctor::all(requests::all(config::all(audit::all(face))))
}

/// Why an operation fails. A terminal shows the error; the API turns it into a problem.
#[derive(Debug)]
pub struct OperationError {
    /// What a terminal shows.
    pub cause: anyhow::Error,
    problem: fn(anyhow::Error) -> ApiError,
}

/// What an operation returns, or why it cannot.
pub type Result<T, E = OperationError> = std::result::Result<T, E>;

impl<E> From<E> for OperationError
where
    E: std::error::Error + Send + Sync + Into<ApiError> + 'static,
{
    fn from(error: E) -> Self {
        Self {
            cause: anyhow::Error::new(error),
            problem: |cause| {
                cause
                    .downcast::<E>()
                    .map_or_else(ApiError::internal, E::into)
            },
        }
    }
}

impl From<OperationError> for ApiError {
    fn from(error: OperationError) -> Self {
        (error.problem)(error.cause)
    }
}

impl From<OperationError> for anyhow::Error {
    fn from(error: OperationError) -> Self {
        error.cause
    }
}

/// Who does something, when, and what with. A running gateway makes one for each call, a command for itself.
pub struct Context {
    /// Who calls.
    pub caller: Caller,
    /// The store.
    pub store: Store,
    /// Its applications; `None` in a command that opens no keys.
    pub apps: Option<Administration>,
    /// `None` in a command.
    pub running: Option<Running>,
}

/// Who does something, from where, and when.
#[derive(Clone)]
pub struct Caller {
    /// The token's or the account's name, or the system's user.
    pub actor: String,
    /// As the audit has it: through what, and from which address or computer.
    pub origin: String,
    /// What the caller may do.
    pub role: Role,
    /// When the call came.
    pub at: Timestamp,
    /// In what language problems are told.
    pub language: Language,
    /// Of a call; a command has none.
    pub token: Option<Token>,
}

/// The gateway whose management listener was called.
pub struct Running {
    /// With the present configuration.
    pub gateway: Arc<Gateway>,
    /// Reloads the configuration.
    pub reload: ReloadHandle,
    /// The application by which the console signs its users in.
    pub console: Option<AppIdent>,
}

/// The role that something about an application needs, of what needs this role. Who changes the console's own, or signs for it,
/// can sign in as any of its users: that is an admin's.
pub(crate) fn role_for(console: Option<AppIdent>, ident: Option<AppIdent>, role: Role) -> Role {
    match ident.is_some() && ident == console && role > Role::Viewer {
        true => Role::Admin,
        false => role,
    }
}

impl Context {
    /// The author of a change.
    pub fn author(&self, reason: Option<Text<Reason>>) -> Author {
        let Caller { actor, origin, .. } = self.caller.clone();
        Author {
            actor,
            origin,
            reason: reason.map(|Text(reason)| reason.into()),
        }
    }

    /// A change of something that has revisions.
    pub fn change(&self, revision: Option<i64>, reason: Option<Text<Reason>>) -> ChangeRequest {
        ChangeRequest {
            author: self.author(reason),
            at: self.caller.at,
            revision,
        }
    }

    /// The store's applications.
    pub fn apps(&self) -> &Administration {
        let apps = self.apps.as_ref();
        apps.expect("a command that changes applications opens their keys")
    }

    /// The gateway that was called.
    fn running(&self) -> &Running {
        let running = self.running.as_ref();
        running.expect("a command asks no gateway")
    }

    fn gateway(&self) -> &Gateway {
        &self.running().gateway
    }

    /// The versions that it serves.
    fn versions(&self) -> &Versions {
        &self.gateway().policy.backends.versions
    }

    /// What it knows of their backends.
    fn backends(&self) -> Vec<BackendStatus> {
        self.gateway().policy.backends.status()
    }

    /// The tokens of the management API.
    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.store.clone())
    }

    /// The logins that operators end.
    pub fn logins(&self) -> Logins {
        Logins::new(self.store.clone())
    }
}
