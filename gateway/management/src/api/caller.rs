//! Who calls: the holder of a token, whose role decides which calls it may make.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    extract::{ConnectInfo, FromRequestParts, RawPathParams, Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, header, request::Parts};
use signpost_kit::clock::Timestamp;
use signpost_protocol::language::Language;
use signpost_proxy::{AppDirectory, AppState};
use signpost_store::{StoreError, tables::audit};
use tokio::sync::Mutex;
use zeroize::Zeroizing;

use super::{
    ApiError, Shared,
    body::{MAX_BODY_BYTES, body_timeout, check_content_type, read},
    failures::Failure,
    problem::Code,
};
use crate::administration::{
    logins::{AccountName, Logins},
    tokens::{Role, Token},
};
use crate::operations::{self, role_for};

/// Time from one look at the store to the next for a stream, or for an account that has signed in: what has ended ends within 1 s.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(400);

/// The caller of a call that was allowed.
#[derive(Clone)]
pub(super) struct Caller {
    pub token: Token,
    /// From where.
    pub address: SocketAddr,
    /// When the call began.
    pub at: Timestamp,
    /// The login that takes the place of the token.
    pub signed_in: Option<SignedIn>,
    /// Through what: `api` or `console`.
    face: &'static str,
}

/// What a user of the console has signed in with.
#[derive(Clone)]
pub(crate) enum Proof {
    /// A token's text: the session ends with the token.
    Token(Zeroizing<String>),
    /// An account of the login service.
    Account(SignedIn),
}

/// Who has signed in to the console by an account, and not with a token. Only the console has it.
#[derive(Clone)]
pub(crate) struct SignedIn {
    /// Tells accounts apart; below 0, as no token's number is.
    pub id: i64,
    /// The actor.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// When it has signed in.
    pub at: Timestamp,
    /// When that ends.
    pub until: Timestamp,
    /// The account.
    pub account: AccountName,
    /// When the store last said that its login was not ended, and the newest row of the audit when it was first asked.
    pub checked: Arc<Mutex<Option<(Instant, i64)>>>,
}

impl SignedIn {
    /// Checks that its login would still be valid, had the console not ended it: the application is active, and no operator has
    /// ended the account's logins since. The store is asked once in [`CHECK_INTERVAL`].
    pub(super) async fn check(&self, api: &Shared) -> Result<(), ApiError> {
        let mut checked = self.checked.lock().await;
        let begun = Instant::now();
        let known = match *checked {
            Some((at, _)) if at.elapsed() < CHECK_INTERVAL => return Ok(()),
            Some((_, known)) => known,
            None => audit::newest_id(api.store()).await?,
        };
        let gateway = api.current.load_full();
        if let (AppDirectory::Multi(apps), Some(ident)) = (&gateway.policy.apps, api.console) {
            let found = apps.find(ident).await;
            let app = found.map_err(|_| StoreError::Busy)?;
            if app.is_none_or(|app| app.state != AppState::Active)
                || Logins::new(api.store().clone())
                    .were_ended(&self.account, ident, self.at, known)
                    .await?
            {
                return Err(Code::TokenInvalid.into());
            }
        }
        *checked = Some((begun, known));
        Ok(())
    }

    /// What stands for its token.
    fn token(&self, now: Timestamp) -> Token {
        Token {
            id: self.id,
            name: self.name.clone(),
            role: self.role,
            created_at: self.at,
            created_by: self.name.clone(),
            expires_at: self.until,
            last_used_at: Some(now),
            revoked_at: None,
        }
    }
}

impl Caller {
    /// The caller of the call's operation.
    pub(super) fn of_operation(&self, language: Language) -> operations::Caller {
        operations::Caller {
            actor: self.token.name.clone(),
            origin: self.origin(),
            role: self.token.role,
            at: self.at,
            language,
            token: Some(self.token.clone()),
        }
    }

    /// As the audit has it.
    fn origin(&self) -> String {
        format!("{} {}", self.face, self.address.ip().to_canonical())
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // Every route with a handler that asks for it has a role.
        let missing = || {
            ApiError::internal(anyhow::anyhow!(
                "a route without a role asks for the caller"
            ))
        };
        parts.extensions.get().cloned().ok_or_else(missing)
    }
}

/// Passes on calls by tokens of at least this role, or of what the path's application needs, each in its turn.
pub(super) async fn require(
    State((api, role)): State<(Shared, Role)>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    let (mut head, body) = request.into_parts();
    let allowed = async {
        let proof = bearer(&head.headers).map(|token| Proof::Token(token.to_owned().into()));
        let params = RawPathParams::from_request_parts(&mut head, &()).await;
        let params = params.iter().flatten();
        let ident = params.filter(|(name, _)| *name == "ident");
        let ident = ident.last().and_then(|(_, value)| value.parse().ok());
        let role = role_for(api.console, ident, role);
        let caller = authenticate(&api, role, address, proof, "api").await?;
        let token = caller.token.id;
        head.extensions.insert(caller);
        // A file of an import is read later, by the one import that runs.
        if is_file(&head) {
            return Ok((Request::from_parts(head, body), None));
        }
        // A client that sends slowly takes no turn meanwhile.
        let body = read(body, MAX_BODY_BYTES, body_timeout(&api)).await?;
        let request = Request::from_parts(head, body.into());
        Ok((request, Some(api.turns.take(token).await?)))
    };
    match allowed.await {
        Ok((request, _turn)) => next.run(request).await,
        Err(error) => ApiError::into_response(error),
    }
}

/// Whether the body is no JSON: then it is a file, or rejected for its type.
pub(super) fn is_file(head: &Parts) -> bool {
    head.method == Method::POST
        && head.headers.contains_key(header::CONTENT_TYPE)
        && check_content_type(&head.headers, &["application/json"]).is_err()
}

/// The caller, if its role is enough.
pub(super) async fn authenticate(
    api: &Shared,
    needed: Role,
    address: SocketAddr,
    proof: Option<Proof>,
    face: &'static str,
) -> Result<Caller, ApiError> {
    let at = api.current.load().state.clock.now();
    let (token, signed_in) = match proof.ok_or(Code::TokenMissing)? {
        Proof::Account(signed_in) => {
            signed_in.check(api).await?;
            (signed_in.token(at), Some(signed_in))
        }
        Proof::Token(given) => (by_token(api, address, &given, at).await?, None),
    };
    check_role(token.role, needed)?;
    Ok(Caller {
        token,
        signed_in,
        address,
        at,
        face,
    })
}

/// Checks that a role is enough.
pub(crate) fn check_role(role: Role, needed: Role) -> Result<(), ApiError> {
    if role >= needed {
        return Ok(());
    }
    let error = ApiError::from(Code::RoleInsufficient).arg("role", role.as_str());
    Err(error.arg("needed", needed.as_str()))
}

/// The valid token of a call.
async fn by_token(
    api: &Shared,
    address: SocketAddr,
    given: &str,
    at: Timestamp,
) -> Result<Token, ApiError> {
    let lookup = api.tokens.authenticate(given, at);
    let client = address.ip().to_canonical();
    let token = api.failures.count(client, Instant::now(), lookup).await;
    token.map_err(|failure| match failure {
        Failure::Wrong => Code::TokenInvalid.into(),
        Failure::Limited(exceeded) => {
            ApiError::from(Code::RateLimited).retry_after(exceeded.retry_after)
        }
        Failure::NotFound(error) => error.into(),
    })
}

/// The token of the only `Authorization` field. RFC 6750 section 2.1.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut fields = headers.get_all(header::AUTHORIZATION).into_iter();
    let field = fields.next()?.to_str().ok()?;
    let (scheme, token) = field.split_once(' ')?;
    let is_only = fields.next().is_none();
    (is_only && scheme.eq_ignore_ascii_case("Bearer")).then(|| token.trim_matches(' '))
}
