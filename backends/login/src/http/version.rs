//! What differs by version.

use std::{convert::Infallible, sync::Arc};

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::{
    HandlerContext,
    endpoints::EndpointsOf,
    own::{OwnSettings, OwnState},
    views::{self, Check, LoginResult, PollingLogin, RenewedCredential, SentEvent, View},
};
use crate::records::{
    accounts::Account,
    own::{Migrations, Sweeps},
};

/// A version of the service: its name, its settings and state, its own endpoints, and the JSON of the library's. All else
/// is the same in all versions.
///
/// The last functions say how a response of the library's endpoints is written. Each has a default; a version has those
/// that differ, and returns any [`View`]: a type that derives serde's `Serialize` and utoipa's `ToSchema`. `signpost call`
/// and `signpost login` read the names of the defaults, and problems are the same in all versions.
pub trait Version: Sized + Send + Sync + 'static {
    /// The version's name, in lower case. Its tokens and states begin with it. CONTRACT 8.
    const NAME: &'static str;

    /// Its own keys, the table `[own]` of its file; `()` for none.
    type Settings: OwnSettings;

    /// What it remembers beyond a request, made once for a process; `()` for nothing.
    type State: OwnState<Self::Settings>;

    /// The migrations of its tables: [`migrations!`](crate::store::migrations) of `migrations/sqlite` and
    /// `migrations/postgres`. All names that they create begin with the version's and `_`: `v3_notes`. A migration that was
    /// released does not change.
    const MIGRATIONS: Migrations = &[];

    /// The number of the migration that programs need: releases that end before it no longer start. By default all
    /// migrations are additive, so that releases of before and after run side by side.
    const NEEDS: usize = 0;

    /// The tables of its own whose rows are deleted once their time has come.
    const SWEEPS: Sweeps = &[];

    /// The endpoints that only this version has.
    fn endpoints() -> Endpoints<Self> {
        Endpoints::new()
    }

    /// An account: the whole response to `GET /user`, and `account` in the result of a login.
    fn account(account: &Account) -> impl View {
        views::account(account)
    }

    /// The result of a login: the response to `POST /user/login` and to the callback of a redirect login without
    /// `return_to`, and `login` in the response to `/check`.
    fn login_result(result: &LoginResult) -> impl View {
        views::login_result(result, Self::account(&result.account))
    }

    /// The response to `/check`.
    fn check(check: &Check) -> impl View {
        views::check(check, check.login().map(Self::login_result))
    }

    /// The response to `POST /login`.
    fn polling_login(login: PollingLogin) -> impl View {
        login
    }

    /// The response to `POST /event/send`.
    fn sent_event(event: SentEvent) -> impl View {
        event
    }

    /// The response to `POST /user/renew`.
    fn renewed(renewed: RenewedCredential) -> impl View {
        renewed
    }

    /// The response to `POST /user/logout`.
    fn logged_out() -> impl View {
        views::Empty {}
    }
}

/// The endpoints of a version's own.
pub type Endpoints<V> = EndpointsOf<HandlerContext<V>>;

/// What a version has of its own, for a handler: an extractor.
pub struct Own<V: Version> {
    /// The settings of the configuration that serves the request.
    pub settings: Arc<V::Settings>,
    /// The version's state, which outlives a reload.
    pub state: Arc<V::State>,
}

impl<V: Version> Clone for Own<V> {
    fn clone(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            state: Arc::clone(&self.state),
        }
    }
}

impl<V: Version> FromRequestParts<HandlerContext<V>> for Own<V> {
    type Rejection = Infallible;

    async fn from_request_parts(
        _: &mut Parts,
        context: &HandlerContext<V>,
    ) -> Result<Self, Infallible> {
        Ok(context.own.clone())
    }
}
