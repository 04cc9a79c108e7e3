//! Signing in by the login service, with an account that the configuration allows. The console is a client of the gateway as any
//! other: it logs its user in by a redirect, exchanges the ticket, and ends the login at once. CONTRACT 8.
//!
//! | what | limit |
//! | --- | --- |
//! | exchanges at once; further ones are refused | 2 |
//! | failed exchanges of a client network | 10 at once, then 1 a second |
//! | time of a call | 10 s |
//! | time from the beginning of a sign-in to its end | 10 min |

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use axum::{
    extract::{ConnectInfo, RawQuery, State},
    response::{AppendHeaders, IntoResponse, Redirect, Response},
};
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header, uri::Authority};
use maud::{Markup, html};
use reqwest::{Client, RequestBuilder};
use ring::digest;
use serde::Deserialize;
use serde_json::Value;
use signpost_kit::{
    clock::Timestamp,
    config::{origin::Origin, shared_keys::Outgoing},
    log::once_a_minute::OnceAMinute,
    server::management::text as text_of,
};
use signpost_protocol::{
    app::AppIdent,
    challenge::Challenge,
    cookies::CONSOLE_SIGN_IN,
    sign::{TIME, signed},
};
use signpost_proxy::{App, AppDirectory, AppState, ConsoleAccount, ConsoleSettings};
use tokio::sync::Semaphore;
use url::{Url, form_urlencoded};

use super::{
    Console, Shared,
    failure::{Failure, Page},
    links::parameter,
    page::{Reader, page},
    session::{LIFETIME, Proof, Session, cookie, random_id, value},
};
use crate::{
    administration::{logins::AccountName, printable::printable},
    api::{FailedAttempt, Failures, SignedIn},
};

/// Where a sign-in begins, and where the login service sends the browser back to.
pub(super) const BEGIN: &str = "/sign-in/account";
pub(super) const RETURN: &str = "/sign-in/return";

/// Of the cookie. It is `Lax`: the browser comes back from another site.
const BEGIN_LIFETIME: Duration = Duration::from_secs(10 * 60);

const MAX_EXCHANGES: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(10);
/// Limit of a response.
const MAX_RESPONSE: usize = 16 * 1024;

/// Who may sign in by the login service, and how.
pub struct Accounts {
    application: AppIdent,
    provider: Option<String>,
    allowed: Vec<ConsoleAccount>,
    /// Of the management listener.
    scheme: &'static str,
    client: Client,
    exchanges: Semaphore,
    failures: Failures,
    /// Lines about calls that failed.
    logged: OnceAMinute,
}

/// An account as the login result has it: `type` in v1, `provider` since.
#[derive(Deserialize)]
struct Account {
    username: String,
    #[serde(alias = "type")]
    provider: String,
}

/// Why a sign-in is refused.
enum Refused {
    /// A sentence that says what to do.
    Because(&'static str),
    /// The account is not allowed.
    Account(Account),
}

impl Accounts {
    /// `None` if the configuration names no application.
    ///
    /// # Errors
    ///
    /// The client for the exchange cannot be created.
    pub fn new(settings: ConsoleSettings, has_tls: bool) -> anyhow::Result<Option<Self>> {
        let Some(application) = settings.application else {
            return Ok(None);
        };
        let client = Outgoing::default().client()?.timeout(TIMEOUT);
        let what = "sign-ins to the console by the login service failed";
        Ok(Some(Self {
            application,
            provider: settings.provider,
            allowed: settings.accounts,
            scheme: if has_tls { "https" } else { "http" },
            client: client.build().context("management.console.application")?,
            exchanges: Semaphore::new(MAX_EXCHANGES),
            failures: Failures::new(Instant::now(), what),
            logged: OnceAMinute::new(),
        }))
    }

    /// The account's entry in the configuration.
    fn find(&self, account: &Account) -> Option<&ConsoleAccount> {
        let mut allowed = self.allowed.iter();
        allowed.find(|one| one.provider == account.provider && one.username == account.username)
    }
}

/// Begins a login: leads the browser to the gateway.
pub(super) async fn begin(State(console): State<Shared>, uri: Uri, headers: HeaderMap) -> Page {
    let reader = Reader::of_request(&headers);
    let Some(accounts) = &console.accounts else {
        return Err(Failure::not_found(reader));
    };
    // The origin as a parser reads it, so that nothing else of what the client sent is signed.
    let Some(origin) = own_origin(accounts.scheme, &uri, &headers) else {
        let text = "the console needs to know its own address: send Host\n";
        return Ok(text_of(StatusCode::MISDIRECTED_REQUEST, text).into_response());
    };
    let verifier = random_id().map_err(|_| Failure::internal(reader.clone()))?;
    // The login's ticket serves this browser only. The challenge also says which sign-in comes back.
    let challenge = Challenge::of_verifier(&verifier).map(|challenge| challenge.encode());
    let challenge = challenge.ok_or_else(|| Failure::internal(reader.clone()))?;
    let return_to = format!("{origin}{RETURN}?state={challenge}");
    let app = match console.application(accounts).await {
        Ok(app) => app,
        Err(refused) => return Ok(refused_page(&reader, &refused)),
    };
    let mut pairs = vec![
        ("app", accounts.application.as_str()),
        ("return_to", &return_to),
        ("code_challenge", &challenge),
    ];
    pairs.extend(accounts.provider.as_deref().map(|name| ("provider", name)));
    let query = console.signed(&app, "GET", "/login", &pairs);
    let mut login = console.gateway("/login");
    login.set_query(Some(&query));
    let cookie = cookie(CONSOLE_SIGN_IN, &verifier, BEGIN_LIFETIME, "Lax");
    // When the browser comes back, it does not send the cookie of a session that it has had: it ends now.
    let ended = console.sessions.end(&headers);
    let cookies = AppendHeaders([(header::SET_COOKIE, cookie), (header::SET_COOKIE, ended)]);
    Ok((cookies, Redirect::to(login.as_str())).into_response())
}

/// The console's origin in its user's browser. A target in absolute form counts more than `Host`: RFC 9112 section 3.2.2.
fn own_origin(scheme: &str, uri: &Uri, headers: &HeaderMap) -> Option<Origin> {
    let host = || headers.get(header::HOST)?.to_str().ok();
    let host = uri.authority().map(Authority::as_str).or_else(host)?;
    format!("{scheme}://{host}").parse().ok()
}

/// The browser comes back from the login service: begins its session.
pub(super) async fn come_back(
    State(console): State<Shared>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Page {
    let reader = Reader::of_request(&headers);
    let Some(accounts) = &console.accounts else {
        return Err(Failure::not_found(reader));
    };
    let of = |name| parameter(query.as_deref(), name);
    let (state, ticket) = (of("state"), of("ticket"));
    // Before the login is asked for: what operators end from now on, ends the session.
    let at = console.current.load().state.clock.now();
    let verifier = value(&headers, CONSOLE_SIGN_IN).unwrap_or_default();
    let challenge = Challenge::of_verifier(verifier);
    let account = match challenge.is_some_and(|challenge| challenge.encode() == state) {
        true if ticket.is_empty() => Err(Refused::Because("console_account_failed")),
        true => {
            let pairs = [("ticket", &*ticket), ("code_verifier", verifier)];
            console.exchange(accounts, &pairs, address.ip()).await
        }
        false => Err(Refused::Because("console_account_other_browser")),
    };
    let allowed = account.and_then(|account| {
        let allowed = accounts.find(&account).cloned();
        allowed.ok_or(Refused::Account(account))
    });
    let mut response = match allowed {
        Ok(account) => signed_in(&console, &reader, account, at)?,
        Err(refused) => refused_page(&reader, &refused),
    };
    let removed = cookie(CONSOLE_SIGN_IN, "", Duration::ZERO, "Lax");
    response.headers_mut().append(header::SET_COOKIE, removed);
    Ok(response)
}

/// Begins a session. The browser sends its cookie only if a page of the console leads to the next one.
fn signed_in(console: &Console, reader: &Reader, account: ConsoleAccount, at: Timestamp) -> Page {
    let known = digest::digest(
        &digest::SHA256,
        format!("{}\0{}", account.provider, account.username).as_bytes(),
    );
    let number = known
        .as_ref()
        .first_chunk()
        .map_or(0, |bytes| i64::from_be_bytes(*bytes));
    tracing::info!(actor = %account.name, role = account.role.as_str(), "signed in to the console by an account");
    let session = Session {
        name: account.name.clone(),
        role: account.role,
        proof: Proof::Account(SignedIn {
            id: number | i64::MIN,
            name: account.name,
            role: account.role,
            at,
            until: at.plus(LIFETIME),
            account: AccountName {
                provider: account.provider,
                username: account.username,
            },
            checked: Arc::default(),
        }),
    };
    let cookie = console.sessions.begin(session);
    let cookie = cookie.map_err(|_| Failure::internal(reader.clone()))?;
    let content = html! {
        meta http-equiv="refresh" content="0;url=/";
        p { a href="/" { (reader.text("console_problem_back")) } }
    };
    let mut response = page(reader, None, &reader.text("console_sign_in"), &content);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response)
}

fn refused_page(reader: &Reader, refused: &Refused) -> Response {
    let text: Markup = match refused {
        Refused::Because(text) => html! { (reader.text(text)) },
        Refused::Account(account) => {
            let (provider, username) = (printable(&account.provider), printable(&account.username));
            let args = [("provider", &*provider), ("username", &username)];
            html! { (reader.tell("console_account_unknown", &args)) }
        }
    };
    let content = html! {
        p.problem role="alert" { (text) }
        p { a href="/sign-in" { (reader.text("console_sign_in")) } }
    };
    let page = page(reader, None, &reader.text("console_sign_in"), &content);
    (StatusCode::FORBIDDEN, page).into_response()
}

impl Console {
    /// The application by which users log in.
    async fn application(&self, accounts: &Accounts) -> Result<Arc<App>, Refused> {
        let refused = || Refused::Because("console_account_no_app");
        let gateway = self.current.load_full();
        let AppDirectory::Multi(apps) = &gateway.policy.apps else {
            return Err(refused());
        };
        let found = apps.find(accounts.application).await.ok().flatten();
        let active = found.filter(|app| app.state == AppState::Active);
        active.ok_or_else(refused)
    }

    /// Pairs with time and signature, as a query or a form.
    fn signed(&self, app: &App, method: &str, path: &str, pairs: &[(&str, &str)]) -> String {
        let gateway = self.current.load();
        let time = gateway.state.clock.now().as_millis().to_string();
        let mut encoded = form_urlencoded::Serializer::new(String::new());
        let unsigned = encoded
            .extend_pairs(pairs)
            .append_pair(TIME, &time)
            .finish();
        let profile = gateway.policy.verifier.profile_of(app);
        let signed = signed(profile, &app.key, (method, path), &unsigned);
        signed.expect("the pairs were encoded here")
    }

    /// The address of a path at the gateway, as its clients call it.
    fn gateway(&self, path: &str) -> Url {
        let mut url = self.current.load().policy.rules.public_url.to_url();
        url.set_path(path);
        url
    }

    /// Exchanges a ticket for the account, by the verifier of the browser's cookie, and ends its login. A client without a session
    /// can send a wrong ticket.
    async fn exchange(
        &self,
        accounts: &Accounts,
        pairs: &[(&str, &str)],
        client: IpAddr,
    ) -> Result<Account, Refused> {
        let busy = || Refused::Because("console_account_busy");
        let exchanged = async {
            let _place = accounts.exchanges.try_acquire().map_err(|_| busy())?;
            let app = self.application(accounts).await?;
            let form = self.signed(&app, "POST", "/user/login", pairs);
            let login = self.call(accounts, "/user/login", Sent::Form(form)).await;
            Ok(login)
        };
        let failures = &accounts.failures;
        let login = failures.count(client.to_canonical(), Instant::now(), exchanged);
        let login = login.await.map_err(|failure| match failure {
            FailedAttempt::Wrong => Refused::Because("console_account_failed"),
            FailedAttempt::Limited(_) => busy(),
            FailedAttempt::NotFound(refused) => refused,
        })?;
        if let Some(credential) = login["authorization"].as_str() {
            // If the logout fails, the credential expires: it was not passed on.
            let _ = self
                .call(accounts, "/user/logout", Sent::Credential(credential))
                .await;
        }
        let account = Account::deserialize(&login["account"]);
        account.map_err(|_| Refused::Because("console_account_failed"))
    }

    /// Calls the gateway; `None` if it does not answer with a success.
    async fn call(&self, accounts: &Accounts, path: &str, sent: Sent<'_>) -> Option<Value> {
        let gateway = self.current.load_full();
        let names = &gateway.policy.rules.admission.names;
        let request = accounts.client.post(self.gateway(path));
        let request = request.header(&names.app, accounts.application.as_str());
        let request = match sent {
            Sent::Form(form) => request
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(form),
            Sent::Credential(credential) => {
                let mut value = HeaderValue::try_from(credential).ok()?;
                value.set_sensitive(true);
                request.header(&names.authorization, value)
            }
        };
        match read(request).await {
            Ok(body) => Some(body),
            Err(cause) => {
                if let Some(times) = accounts.logged.count(Instant::now()) {
                    tracing::warn!(
                        cause,
                        path,
                        times,
                        "the console's call of the gateway at public_url failed"
                    );
                }
                None
            }
        }
    }
}

/// What a call of the gateway sends.
enum Sent<'s> {
    Form(String),
    Credential(&'s str),
}

/// The JSON of a success; otherwise what was wrong, without a secret.
async fn read(request: RequestBuilder) -> Result<Value, String> {
    let no_response = |error: reqwest::Error| error.without_url().to_string();
    let mut response = request.send().await.map_err(no_response)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(no_response)? {
        body.extend_from_slice(&piece);
        if body.len() > MAX_RESPONSE {
            return Err("a response of more than 16 KiB".to_owned());
        }
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    match status.is_success() {
        true => Ok(body),
        false => Err(format!(
            "{status} {}",
            printable(body["code"].as_str().unwrap_or_default())
        )),
    }
}
