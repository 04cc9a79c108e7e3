//! The console: the face of [operations](crate::operations) in a browser, beside the API on the management listener.
//! `conf/guides/management-api.md`.
//!
//! It decides nothing and reads no table. Each page runs operations, with the token or the account that its user has signed
//! in with, and in the turns of the [API](crate::api)'s calls. The operations decide what a role may do, what a change needs
//! and what a problem says. Pages are written by the server, and their forms work without a script.
//!
//! | module | subject |
//! | --- | --- |
//! | [`session`] | who has signed in |
//! | [`account`] | signing in by the login service |
//! | [`visitor`] | a signed-in user, and the operations that they run |
//! | [`failure`] | what a page says when an operation fails |
//! | [`fields`] | the fields of a form |
//! | [`page`] | the frame of every page, and the texts |
//! | [`parts`] | tables, times, forms |
//! | [`links`] | paths with their parameters |
//! | [`layers`] | headers of each response; requests of other sites |
//! | [`traffic`] | the chart of the last hour |
//! | [`shadows`] | on the page of versions: who serves whose clients, and what differs |
//! | `sign_in`, `overview`, `apps`, `logins`, `versions`, `retirement`, `doctor`, `live`, `audit`, `settings` | the pages |

mod account;
mod apps;
mod audit;
mod doctor;
mod failure;
mod fields;
mod layers;
mod links;
mod live;
mod logins;
mod overview;
mod page;
mod parts;
mod retirement;
mod session;
mod settings;
mod shadows;
mod sign_in;
mod traffic;
mod versions;
mod visitor;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use axum::{
    Router,
    extract::{Request, State},
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use moka::sync::Cache;
use signpost_protocol::app::AppIdent;
use signpost_proxy::Gateway;
use tower::ServiceExt;

pub use self::account::Accounts;
use self::{failure::Failure, page::Reader, session::Sessions};
use crate::api::{self, Api};

/// Names that are kept, and for how long.
const MAX_NAMES: u64 = 1000;
const NAME_LIFETIME: Duration = Duration::from_secs(10);

/// The state that pages share.
struct Console {
    /// The management API, with all its layers.
    api: Router,
    /// Runs operations.
    operations: Arc<Api>,
    sessions: Sessions,
    /// Signs users in by the login service; `None` if they need a token.
    accounts: Option<Accounts>,
    /// Names of applications, as pages have shown them lately; `None` if there was none.
    names: Cache<AppIdent, Option<String>>,
    /// The gateway with the current configuration.
    current: Arc<ArcSwap<Gateway>>,
}

type Shared = Arc<Console>;

/// The console's pages, and behind them `api`, which gets the paths that are its own.
pub fn router(
    api: &Arc<Api>,
    accounts: Option<Accounts>,
    current: &Arc<ArcSwap<Gateway>>,
) -> Router {
    let console = Arc::new(Console {
        api: api::router(api),
        operations: Arc::clone(api),
        sessions: Sessions::default(),
        accounts,
        names: Cache::builder()
            .max_capacity(MAX_NAMES)
            .time_to_live(NAME_LIFETIME)
            .build(),
        current: Arc::clone(current),
    });
    // Each form has a key.
    let forms = Router::new()
        .route("/apps/new", get(apps::new_form).post(apps::create))
        .route(
            "/apps/import",
            get(apps::transfer::form).post(apps::transfer::import),
        )
        .route("/apps/{ident}/{change}", post(apps::change::change))
        .route("/logins", get(logins::form).post(logins::end))
        .route("/versions/{change}", post(versions::change))
        .route(
            "/settings/tokens",
            get(settings::tokens::list).post(settings::tokens::create),
        )
        .route(
            "/settings/tokens/{id}/revoke",
            post(settings::tokens::revoke),
        )
        .route(
            "/settings/reload",
            get(settings::check).post(settings::reload),
        )
        .route_layer(from_fn_with_state(Arc::clone(&console), layers::once));
    let routes = Router::new()
        .merge(forms)
        .route("/", get(overview::show))
        .route("/sign-in", get(sign_in::form).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route(account::BEGIN, get(account::begin))
        .route(account::RETURN, get(account::come_back))
        .route("/apps", get(apps::list))
        .route("/apps/{ident}", get(apps::show))
        .route("/versions", get(versions::show))
        .route(retirement::PATH, get(retirement::show))
        .route("/doctor", get(doctor::form).post(doctor::examine))
        .route("/doctor/{id}", get(doctor::rejection))
        .route("/live", get(live::show))
        .route("/live/stream", get(live::stream))
        .route("/audit", get(audit::list))
        .route("/settings", get(settings::show))
        .route(page::STYLE_PATH, get(page::style))
        .route(page::SCRIPT_PATH, get(page::script))
        .fallback(other)
        .with_state(Arc::clone(&console));
    // Outside, since only the whole router adds the methods of a path.
    Router::new()
        .fallback_service(routes)
        .layer(from_fn_with_state(console, layers::around))
}

/// Whether a path is the API's.
fn is_of_api(path: &str) -> bool {
    path.starts_with("/api/") || path.starts_with("/problems/")
}

/// What is no page: the API, or nothing.
async fn other(State(console): State<Shared>, request: Request) -> Response {
    if is_of_api(request.uri().path()) {
        return console.api.clone().oneshot(request).await.into_response();
    }
    let reader = Reader::of_session(&console.sessions, request.headers());
    Failure::not_found(reader).into_response()
}

#[cfg(test)]
mod both_stores;
