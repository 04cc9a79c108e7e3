//! Serves a request, from its received head to its finished response: calls the phases in the contract's order.
//!
//! A [`Gateway`] is the [`Policy`] of one configuration beside the [`State`] of the process. Each step is a function in
//! its own file: `receive`, `forward`, `relay`, `respond`, `record`, `copy`.

mod accepted;
mod backends;
mod challenge;
mod convert;
mod copy;
pub(crate) mod examine;
mod forward;
mod listener;
mod policy;
pub(crate) mod receive;
mod record;
mod relay;
pub(crate) mod request;
mod respond;
mod state;
#[cfg(test)]
pub(crate) mod tests;

use std::{net::SocketAddr, sync::Arc, time::Duration};

pub(crate) use self::listener::Listener;
pub use self::policy::Policy;
pub(crate) use self::respond::{UnparsedHead, reject_bad_head};
pub use self::state::{State, VersionEnd};
use self::{
    challenge::match_challenge,
    forward::forward,
    receive::receive,
    request::Received,
    respond::{
        Failed, redirect_to_https, reject, serve_challenge, serve_own_page, serve_preflight,
    },
};
use crate::{
    config::Config,
    directory::apps::directory::AppDirectory,
    phases::{
        cors::is_preflight,
        origin::{Peer, came_otherwise, client_address},
        own_page::match_own_page,
    },
    request::{Head, client::Client},
    tls::{LoadedCertificate, Tls},
};

/// Serves requests by one configuration, and is immutable. A reload creates another gateway. Requests in flight finish
/// with the gateway that they began with.
pub struct Gateway {
    /// What the configuration says.
    pub policy: Policy,
    /// State that outlives a reload.
    pub state: Arc<State>,
}

impl Gateway {
    /// The first gateway of a process.
    ///
    /// # Errors
    ///
    /// The gateway's secret is not a valid header value.
    pub fn new(config: Config, apps: AppDirectory, state: State) -> anyhow::Result<Self> {
        let policy = Policy::new(config, apps, &state, None)?;
        Ok(Self {
            policy,
            state: Arc::new(state),
        })
    }

    /// The gateway that replaces this one after a reload.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn with_config(&self, config: Config, apps: AppDirectory) -> anyhow::Result<Self> {
        Ok(Self {
            policy: Policy::new(config, apps, &self.state, Some(&self.policy))?,
            // Shared, not copied: requests that began with the former configuration still count here.
            state: Arc::clone(&self.state),
        })
    }

    /// TLS of all listeners, with their addresses.
    pub fn tls(&self) -> impl Iterator<Item = (SocketAddr, &Arc<Tls>)> {
        let listeners = self.policy.listeners.iter();
        let clients =
            listeners.filter_map(|listener| Some((listener.address, listener.tls.as_ref()?)));
        // The management listener outlives configurations, but its certificates expire, too.
        let management = self.state.management_tls.iter();
        clients.chain(management.map(|(address, tls)| (*address, tls)))
    }

    /// The certificates of all listeners.
    pub fn certificates(&self) -> impl Iterator<Item = LoadedCertificate> {
        let all = self.tls();
        all.flat_map(|(_, tls)| tls.loaded().certificates.clone())
    }

    /// Cached applications and credentials are used for this long after the store's change feed was lost.
    pub fn set_stale(&self, stale: Duration) {
        self.policy.apps.set_stale(stale);
        if let Some(accounts) = self.state.accounts.get() {
            accounts.directory.set_stale(stale);
        }
    }
}

/// Serves a request whose head was read. When this returns, the response was sent or aborted.
pub(crate) async fn serve<C: Client>(gateway: &Gateway, head: &Head, peer: &Peer, client: &mut C) {
    let rules = &gateway.policy.rules;
    // Created before anything is judged: a rejected request also has an id in its response, and an access line.
    let mut request = Received::new(
        gateway,
        head.method(),
        head.target(),
        head,
        peer,
        client.protocol(),
    );
    // Before the redirect: authorities ask by plain HTTP. RFC 8555 section 8.3.
    if let Some(name) = match_challenge(request.target.path)
        && let Some(webroot) = gateway.policy.acme_webroot(peer)
    {
        let serving = serve_challenge(gateway, webroot, name, peer, &mut request, client);
        return Box::pin(serving).await;
    }
    if peer.connection.redirects_to_https
        && !came_otherwise(peer, head, &rules.admission.trusted_proxies)
    {
        // Boxed, as the others here: a connection has no room for what it rarely needs.
        return Box::pin(redirect_to_https(gateway, peer, &mut request, client)).await;
    }
    if let Some(cors) = &rules.cors
        // Without the phases: a browser sends a preflight without application and signature. CONTRACT 2.
        && is_preflight(head.method(), head.body(), head)
    {
        return Box::pin(serve_preflight(gateway, cors, peer, &mut request, client)).await;
    }
    if let Some(page) = match_own_page(head, request.target) {
        return Box::pin(serve_own_page(gateway, page, peer, &mut request, client)).await;
    }
    match receive(gateway, peer, &mut request, client).await {
        Ok(accepted) => forward(gateway, &mut request, &accepted, client).await,
        Err(rejected) => {
            // The step that rejected the request has returned early, so its span is still open.
            request.timing.end_step();
            // Trusted proxies determine the client even if the request was not admitted.
            request.client = client_address(peer, head, &rules.admission.trusted_proxies);
            let failed = Failed {
                learnt: rejected.learnt(),
                quotas: rejected.quotas,
                ..Failed::default()
            };
            reject(gateway, &mut request, failed, &rejected.rejection, client).await;
        }
    }
}
