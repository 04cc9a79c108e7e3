//! What an OpenID provider publishes about itself: its discovery document and its keys, fetched and kept up to date.
//!
//! One task for each issuer fetches both: at the start, every hour, and when a request asks for it, at most once in
//! [`Pace::interval`]. Requests never fetch. If a fetch fails, the previous documents stay in use.

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

/// Timeout of the document and the keys together. With the pause before it, a callback has time left for its other calls.
const FETCH_TIMEOUT: Duration = Duration::from_secs(4);

/// How often an issuer is asked.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// Pause after a fetch, at least.
    interval: Duration,
    /// After this time both are fetched again.
    lifetime: Duration,
    /// The same after a failed fetch.
    retry: Duration,
}

/// CONTRACT 8 of backends.
const PACE: Pace = Pace {
    interval: Duration::from_secs(5),
    lifetime: Duration::from_secs(60 * 60),
    retry: Duration::from_secs(60),
};

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
    /// Why the last fetch failed, if it did.
    fault: Option<Arc<ProviderFault>>,
}

impl Issuer {
    /// Starts the task.
    pub(super) fn start(issuer: String, http: HttpClient) -> Self {
        Self::with(issuer, http, PACE)
    }

    fn with(issuer: String, http: HttpClient, pace: Pace) -> Self {
        let (sender, fetched) = watch::channel(Fetched::default());
        let wanted = Arc::new(Notify::new());
        let task = tokio::spawn(keep(issuer, http, sender, Arc::clone(&wanted), pace));
        Self {
            fetched,
            wanted,
            task: task.abort_handle(),
        }
    }

    /// Returns the latest documents; waits for the first fetch.
    ///
    /// # Errors
    ///
    /// They could never be fetched.
    pub(super) async fn metadata(&self) -> Result<Arc<Metadata>, ProviderFault> {
        let now = self.fetched.borrow().clone();
        match (now.metadata, now.fault) {
            (Some(metadata), _) => Ok(metadata),
            // Anyone can cause this: while an issuer is down, no request waits for it. The task fetches again.
            (None, Some(fault)) => {
                self.wanted.notify_one();
                Err(ProviderFault::Fetched(fault))
            }
            (None, _) => self.after_fetch(now.fetches).await,
        }
    }

    /// Returns documents that were fetched after `old`: the present ones, or the next fetch's, which comes within
    /// [`Pace::interval`].
    ///
    /// # Errors
    ///
    /// As [`Self::metadata`].
    pub(super) async fn newer_than(
        &self,
        old: &Arc<Metadata>,
    ) -> Result<Arc<Metadata>, ProviderFault> {
        let now = self.fetched.borrow().clone();
        match now.metadata {
            Some(metadata) if !Arc::ptr_eq(&metadata, old) => Ok(metadata),
            _ => self.after_fetch(now.fetches).await,
        }
    }

    async fn after_fetch(&self, fetches: u64) -> Result<Arc<Metadata>, ProviderFault> {
        // The permit of `Notify` is one, however many requests ask.
        if fetches > 0 {
            self.wanted.notify_one();
        }
        let mut fetched = self.fetched.clone();
        let next = fetched.wait_for(|fetched| fetched.fetches > fetches).await;
        let Ok(next) = next.map(|next| next.clone()) else {
            return Err(ProviderFault::NothingPublished);
        };
        match (next.metadata, next.fault) {
            (Some(metadata), _) => Ok(metadata),
            (None, Some(fault)) => Err(ProviderFault::Fetched(fault)),
            (None, None) => Err(ProviderFault::NothingPublished),
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
    pace: Pace,
) {
    let (mut logged, mut failures) = (String::new(), OnceAMinute::new());
    loop {
        let result = fetch(&issuer, &http).await;
        if let Err(fault) = &result {
            let fault = fault.line();
            // A new fault does not wait for the next minute: an operator who has fixed one sees the next.
            if fault != logged {
                (logged, failures) = (fault, OnceAMinute::new());
            }
            if let Some(fetches) = failures.count(Instant::now()) {
                tracing::warn!(
                    issuer,
                    fault = logged,
                    fetches,
                    "cannot fetch what the OpenID provider publishes"
                );
            }
        }
        let pause = match &result {
            Ok(_) => pace.lifetime,
            Err(_) => pace.retry,
        };
        fetched.send_modify(|fetched| {
            fetched.fetches += 1;
            match result {
                Ok(metadata) => {
                    (fetched.metadata, fetched.fault) = (Some(Arc::new(metadata)), None)
                }
                Err(fault) => fetched.fault = Some(Arc::new(fault)),
            }
        });
        // However often requests ask: who begins logins must not make this service call the provider.
        sleep(pace.interval).await;
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
        let document = document(http, &url, "its discovery document").await?;
        let discovery = Discovery::parse(&document, issuer).map_err(ProviderFault::Discovery)?;
        let keys = self::document(http, &discovery.jwks_uri, "its keys").await?;
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use axum::{Router, response::IntoResponse, routing::get};
    use http::{StatusCode, header::CONTENT_TYPE};
    use serde_json::json;
    use signpost_openid::testing::key_set;

    use super::*;

    const JSON: [(http::HeaderName, &str); 1] = [(CONTENT_TYPE, "application/json")];

    /// An issuer that can be made to fail, and counts what is fetched.
    struct Published {
        issuer: String,
        fails: Arc<AtomicBool>,
        fetches: Arc<AtomicUsize>,
    }

    impl Published {
        async fn start() -> Self {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let issuer = format!("http://{}", listener.local_addr().unwrap());
            let (fails, fetches) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
            let document = json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/a"),
                "token_endpoint": format!("{issuer}/t"),
                "jwks_uri": format!("{issuer}/keys"),
            });
            let (failing, counted) = (Arc::clone(&fails), Arc::clone(&fetches));
            let discovery = async move || {
                counted.fetch_add(1, Ordering::SeqCst);
                match failing.load(Ordering::SeqCst) {
                    true => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                    false => (JSON, document.to_string()).into_response(),
                }
            };
            let keys = async || (JSON, key_set()).into_response();
            let app = Router::new()
                .route("/.well-known/openid-configuration", get(discovery))
                .route("/keys", get(keys));
            tokio::spawn(async move { axum::serve(listener, app).await });
            Self {
                issuer,
                fails,
                fetches,
            }
        }

        fn kept(&self, pace: Pace) -> Issuer {
            let _ = rustls::crypto::ring::default_provider().install_default();
            Issuer::with(
                self.issuer.clone(),
                HttpClient::new(&Default::default()).unwrap(),
                pace,
            )
        }

        fn count(&self) -> usize {
            self.fetches.load(Ordering::SeqCst)
        }
    }

    fn pace(interval: u64, others: u64) -> Pace {
        Pace {
            interval: Duration::from_millis(interval),
            lifetime: Duration::from_millis(others),
            retry: Duration::from_millis(others),
        }
    }

    #[tokio::test]
    async fn a_failed_fetch_keeps_what_was_fetched_before() {
        let published = Published::start().await;
        let issuer = published.kept(pace(1, 10));
        issuer.metadata().await.unwrap();
        published.fails.store(true, Ordering::SeqCst);
        let mut fetched = issuer.fetched.clone();
        let failed = fetched.wait_for(|fetched| fetched.fault.is_some()).await;
        assert!(failed.unwrap().metadata.is_some());
        let old = issuer.metadata().await.unwrap();
        let same = issuer.newer_than(&old).await.unwrap();
        assert!(Arc::ptr_eq(&same, &old));
    }

    #[tokio::test]
    async fn it_recovers_by_itself_and_fails_soon_until_then() {
        let published = Published::start().await;
        published.fails.store(true, Ordering::SeqCst);
        let issuer = published.kept(pace(200, 60_000));
        // No request waits for another fetch.
        for _ in 0..100 {
            let fault = issuer.metadata().await.unwrap_err();
            assert!(fault.to_string().contains("500"), "{fault}");
        }
        assert_eq!(published.count(), 1);
        published.fails.store(false, Ordering::SeqCst);
        let mut fetched = issuer.fetched.clone();
        let well = fetched.wait_for(|fetched| fetched.metadata.is_some()).await;
        assert!(well.is_ok());
        issuer.metadata().await.unwrap();
        assert_eq!(published.count(), 2);
    }

    #[tokio::test]
    async fn however_many_ask_and_leave_the_fetches_are_few() {
        let published = Published::start().await;
        let issuer = Arc::new(published.kept(pace(200, 60_000)));
        let old = issuer.metadata().await.unwrap();
        let asking: Vec<_> = (0..1000)
            .map(|index| {
                let (issuer, old) = (Arc::clone(&issuer), Arc::clone(&old));
                tokio::spawn(async move {
                    // Half of them leave at once.
                    let wait = Duration::from_millis(if index % 2 == 0 { 1 } else { 60_000 });
                    timeout(wait, issuer.newer_than(&old)).await
                })
            })
            .collect();
        let mut answered = 0;
        for task in asking {
            answered += usize::from(matches!(task.await.unwrap(), Ok(Ok(_))));
        }
        assert!(answered >= 500, "{answered}");
        assert!(
            (2..=3).contains(&published.count()),
            "{}",
            published.count()
        );
        drop(issuer);
    }
}
