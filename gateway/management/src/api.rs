//! The management API, `/api/v1` on the management listener: operators' actions over HTTP. `conf/guides/management-api.md`.
//!
//! It only translates: [`operations`](crate::operations) and [`administration`](crate::administration) decide what is
//! allowed, as for the commands. It never runs on a worker's thread.

mod apps;
mod body;
mod caller;
mod failures;
mod idempotency;
mod layers;
mod openapi;
mod operation;
mod requests;
mod routes;
mod streams;
mod turns;

use std::{sync::Arc, time::Instant};

use arc_swap::ArcSwap;
use axum::Router;
use signpost_kit::reload::ReloadHandle;
use signpost_protocol::{app::AppIdent, language::Language};
use signpost_proxy::{Gateway, StoredApps};
use signpost_store::Store;

use self::{caller::Caller, streams::Streams, turns::Turns};
use crate::{
    administration::{
        apps::Administration,
        rules::Rules,
        tokens::{Role, Tokens},
    },
    operations::{Context, Route, Running, role_for},
};

/// The state that handlers share.
pub struct Api {
    apps: StoredApps,
    /// Who may call.
    tokens: Tokens,
    /// Attempts with wrong tokens.
    failures: Failures,
    /// The calls that run.
    turns: Turns,
    /// The gateway with the current configuration.
    current: Arc<ArcSwap<Gateway>>,
    /// Reloads the configuration.
    reload: ReloadHandle,
    /// The streams that run.
    streams: Streams,
    /// The application by which the console signs its users in.
    console: Option<AppIdent>,
}

pub use self::caller::CHECK_INTERVAL;
pub(crate) use self::problem::{ApiError, Code, Unchanged};
pub(crate) use self::{
    body::{MAX_BODY_BYTES, read as read_body},
    caller::{Proof, SignedIn, check_role},
    failures::{Failure as FailedAttempt, Failures},
    idempotency::form_once,
    layers::{allowed_methods, is_cross_site, until_stop},
    operation::{run_for, watch_for},
    requests::{RequestParams, Write},
};
use crate::operations::problem;

type Shared = Arc<Api>;

impl Api {
    /// The API of a running gateway. `console` is the application of its console.
    pub fn new(
        apps: StoredApps,
        current: &Arc<ArcSwap<Gateway>>,
        reload: ReloadHandle,
        console: Option<AppIdent>,
    ) -> Self {
        let store = apps.database();
        Self {
            tokens: Tokens::new(store.clone()),
            failures: Failures::new(
                Instant::now(),
                "wrong tokens were sent to the management API",
            ),
            streams: Streams::default(),
            turns: Turns::new(),
            apps,
            current: Arc::clone(current),
            reload,
            console,
        }
    }

    fn store(&self) -> &Store {
        self.apps.database()
    }

    /// The role that an operation on this application needs.
    pub(crate) fn role_for(&self, route: &Route, app: Option<AppIdent>) -> Role {
        role_for(self.console, app, route.role)
    }

    /// What an operation of this call is done with.
    fn context(&self, caller: &Caller, language: Language) -> Context {
        let mut apps = self.administration();
        let role = caller.token.role;
        let is_reserved = |ident: &_| role < role_for(self.console, Some(*ident), Role::Operator);
        apps.reserved = self.console.filter(is_reserved);
        Context {
            caller: caller.of_operation(language),
            store: self.store().clone(),
            apps: Some(apps),
            running: Some(Running {
                gateway: self.current.load_full(),
                reload: self.reload.clone(),
                console: self.console,
            }),
        }
    }

    /// The administration of applications, by the rules of the current configuration.
    fn administration(&self) -> Administration {
        let gateway = self.current.load();
        let (versions, sign) = (
            &gateway.policy.backends.versions,
            gateway.policy.verifier.config(),
        );
        let rules = Rules {
            versions: versions.names_in_service(gateway.state.clock.now()),
            configured: versions.names(),
            gateway_profile: sign.profile.clone(),
            allows_weak_keys: sign.allows_weak_keys,
        };
        Administration::new(self.apps.clone(), rules)
    }
}

/// The routes, with all layers around them.
pub fn router(api: &Arc<Api>) -> Router {
    let (routes, document) = routes::all(api);
    layers::around(openapi::add_to(routes, document), Arc::clone(api))
}

#[cfg(test)]
pub(crate) mod both_stores;
