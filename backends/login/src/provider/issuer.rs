//! What an OpenID provider publishes about itself: its discovery document and its keys, fetched and kept up to date.
//!
//! One task for each issuer fetches both: at the start, every hour, and when a request asks for it, at most once in
//! [`MIN_INTERVAL`], whatever clients do. Requests never fetch. After a failed fetch, what was fetched before stays in use.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{Request, header::ACCEPT};
use signpost_kit::log::once_a_minute::OnceAMinute;
use signpost_openid::{Discovery, Keys, MAX_DOCUMENT, discovery_url};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::{sleep, timeout},
};
use url::Url;

use super::{
    ProviderFault,
    http_client::{HttpClient, is_json},
};

/// Timeout of the document and the keys together.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a fetch, at least.
const MIN_INTERVAL: Duration = Duration::from_secs(5);
/// After this time both are fetched again.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
/// After a failed fetch, the next one comes earlier.
const RETRY: Duration = Duration::from_secs(60);

/// The discovery document and the keys that it names.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(super) discovery: Discovery,
    pub(super) keys: Keys,
}

/// An issuer, and the task that fetches what it publishes. The task ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Issuer {
    fetched: watch::Receiver<Fetched>,
    wanted: Arc<Notify>,
    task: AbortHandle,
}

/// What the task has fetched.
#[derive(Clone, Debug, Default)]
struct Fetched {
    /// The number of fetches.
    fetches: u64,
    metadata: Option<Arc<Metadata>>,
    /// When the last fetch failed, and why.
    fault: Option<(Instant, String)>,
}

impl Issuer {
    /// Starts the task.
    pub(super) fn start(issuer: String, http: HttpClient) -> Self {
        let (sender, fetched) = watch::channel(Fetched::default());
        let wanted = Arc::new(Notify::new());
        let task = tokio::spawn(keep(issuer, http, sender, Arc::clone(&wanted)));
        Self {
            fetched,
            wanted,
            task: task.abort_handle(),
        }
    }

    /// Returns the latest documents; waits for the first ones.
    ///
    /// # Errors
    ///
    /// They could never be fetched.
    pub(super) async fn metadata(&self) -> Result<Arc<Metadata>, ProviderFault> {
        let now = self.fetched.borrow().clone();
        match (now.metadata, now.fault) {
            (Some(metadata), _) => Ok(metadata),
            // The next fetch would not come soon: fail now.
            (None, Some((at, fault))) if at.elapsed() < MIN_INTERVAL => {
                Err(ProviderFault::Fetched(fault))
            }
            (None, _) => self.after_fetch(now.fetches).await,
        }
    }

    /// Returns the documents after another fetch, which comes within [`MIN_INTERVAL`].
    ///
    /// # Errors
    ///
    /// As [`Self::metadata`].
    pub(super) async fn fetched_again(&self) -> Result<Arc<Metadata>, ProviderFault> {
        let fetches = self.fetched.borrow().fetches;
        self.after_fetch(fetches).await
    }

    async fn after_fetch(&self, fetches: u64) -> Result<Arc<Metadata>, ProviderFault> {
        // The permit of `Notify` is one, however many requests ask.
        if fetches > 0 {
            self.wanted.notify_one();
        }
        let mut fetched = self.fetched.clone();
        let next = fetched.wait_for(|fetched| fetched.fetches > fetches).await;
        let Ok(next) = next.map(|next| next.clone()) else {
            return Err(ProviderFault::Fetched("the service is stopping".to_owned()));
        };
        match (next.metadata, next.fault) {
            (Some(metadata), _) => Ok(metadata),
            (None, Some((_, fault))) => Err(ProviderFault::Fetched(fault)),
            (None, None) => Err(ProviderFault::TooSlow),
        }
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(
    issuer: String,
    http: HttpClient,
    fetched: watch::Sender<Fetched>,
    wanted: Arc<Notify>,
) {
    let failures = OnceAMinute::new();
    loop {
        let result = fetch(&issuer, &http).await;
        if let Err(fault) = &result
            && let Some(fetches) = failures.count(Instant::now())
        {
            let fault = fault.line();
            tracing::warn!(
                issuer,
                fault,
                fetches,
                "cannot fetch what the OpenID provider publishes"
            );
        }
        let pause = if result.is_ok() { LIFETIME } else { RETRY };
        fetched.send_modify(|fetched| {
            fetched.fetches += 1;
            match result {
                Ok(metadata) => {
                    (fetched.metadata, fetched.fault) = (Some(Arc::new(metadata)), None)
                }
                Err(fault) => fetched.fault = Some((Instant::now(), fault.line())),
            }
        });
        sleep(MIN_INTERVAL).await;
        let _ = timeout(pause, wanted.notified()).await;
    }
}

/// Fetches the discovery document of an issuer, and the keys.
///
/// # Errors
///
/// One of both cannot be fetched or used.
pub(super) async fn fetch(issuer: &str, http: &HttpClient) -> Result<Metadata, ProviderFault> {
    let both = async {
        let url = discovery_url(issuer).map_err(ProviderFault::Issuer)?;
        let document = document(http, &url, "discovery document").await?;
        let discovery = Discovery::parse(&document, issuer).map_err(ProviderFault::Discovery)?;
        let keys = self::document(http, &discovery.jwks_uri, "keys").await?;
        let keys = Keys::parse(&keys).map_err(ProviderFault::Keys)?;
        Ok(Metadata { discovery, keys })
    };
    let both = timeout(FETCH_TIMEOUT, both).await;
    both.map_err(|_| ProviderFault::TooSlow)?
}

async fn document(
    http: &HttpClient,
    url: &Url,
    document: &'static str,
) -> Result<Vec<u8>, ProviderFault> {
    let request = Request::get(url.as_str())
        .header(ACCEPT, "application/json")
        .body(Vec::new())
        .expect("a parsed URL is a valid target");
    let response = http.send(request, MAX_DOCUMENT).await?;
    let status = response.status().as_u16();
    if status != 200 {
        return Err(ProviderFault::DocumentStatus { document, status });
    }
    if !is_json(response.headers()) {
        return Err(ProviderFault::DocumentType { document });
    }
    Ok(response.into_body())
}
