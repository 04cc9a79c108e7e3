//! The thread that sends copies, and has them compared.

use std::{io, sync::Arc, time::Duration};

use signpost_kit::clock::{Clock, SystemClock};
use signpost_protocol::{
    header::{REFUSED_SHADOW, X_GATEWAY_REFUSED},
    problem::ProblemCode,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
};

use super::{
    CopyResult, Shadows,
    compare::{Compared, compare, compare_with_itself},
    copied::{Copied, NotCopied},
    send::{CopyRequest, NoClient},
};
use crate::{
    config::Timeouts,
    convert::Converted,
    phases::{
        backend_headers::write_account, bridge::response::converts,
        identify_account::check_credential,
    },
    request::recorder::WholeResponse,
    upstream::backend::upstream::BackendClient,
};

/// Timeouts of copies: shorter than the timeouts of requests, since no client waits.
const TIMEOUTS: Timeouts = Timeouts {
    connect: Duration::from_secs(2),
    forward: Duration::from_secs(5),
    // The whole copy has a limit, too.
    response: Duration::from_secs(60),
    // Timeouts of the clients' side, which copies do not have.
    head: Duration::ZERO,
    body: Duration::ZERO,
    idle: Duration::ZERO,
    send: Duration::ZERO,
};

/// Starts the thread. Returns where copies go.
pub(super) fn start(shadows: Arc<Shadows>) -> io::Result<mpsc::UnboundedSender<Copied>> {
    // Bounded by the places for copies.
    let (sender, receiver) = mpsc::unbounded_channel();
    // Comparing takes a processor for a while: not on the thread that drives connections.
    let runtime = Builder::new_current_thread()
        .enable_all()
        // One comparison at a time: they must not take the processors from clients' requests.
        .max_blocking_threads(1)
        .thread_name("shadow-compare")
        .build()?;
    let thread = std::thread::Builder::new().name("shadow".to_owned());
    thread.spawn(move || run(&runtime, receiver, shadows))?;
    Ok(sender)
}

fn run(runtime: &Runtime, mut copies: mpsc::UnboundedReceiver<Copied>, shadows: Arc<Shadows>) {
    let copier = Arc::new(Copier {
        client: BackendClient::new(&TIMEOUTS),
        shadows,
    });
    runtime.block_on(async {
        while let Some(copied) = copies.recv().await {
            // A task each: a slow response must not hold up the copies behind it. The places bound their number.
            let copier = Arc::clone(&copier);
            tokio::spawn(async move { copier.take(copied).await });
        }
    });
}

/// What copies need.
struct Copier {
    client: BackendClient,
    shadows: Arc<Shadows>,
}

impl Copier {
    /// Sends a copy, and has the responses compared.
    async fn take(&self, mut copied: Copied) {
        let counts = &self.shadows.counts;
        add_account(&mut copied).await;
        self.convert(&mut copied).await;
        let outcome = match &copied.copy {
            Err(not_copied) => Err(not_copied.clone()),
            Ok(request) => match self.send(request, &copied).await {
                None => Err(NotCopied::Nothing),
                Some(response) => match response.value(X_GATEWAY_REFUSED.as_str()) {
                    Some(why) if why == REFUSED_SHADOW.as_bytes() => {
                        let (entry, now) = (&copied.entry, SystemClock.now());
                        let mut tallies = self.shadows.tallies();
                        tallies.change(entry, now, |tally| tally.refused += 1);
                        return counts.count(CopyResult::Refused);
                    }
                    // Of the gateway's secret.
                    Some(_) => Err(NotCopied::Rejected(ProblemCode::GatewayRequired)),
                    None => self.converted(&copied, response).await,
                },
            },
        };
        let again = match &copied.again {
            None => None,
            Some(request) => self.send(request, &copied).await,
        };
        // A refusal is no response of the version, so it shows nothing about noise.
        let again = again.filter(|again| again.value(X_GATEWAY_REFUSED.as_str()).is_none());
        let shadows = Arc::clone(&self.shadows);
        let comparing = move || add(&shadows, &copied, outcome, again);
        // It panics only by a bug, and the next copy is compared nevertheless.
        let _ = tokio::task::spawn_blocking(comparing).await;
    }

    /// Has a converter change the request.
    async fn convert(&self, copied: &mut Copied) {
        let (Some(conversion), Ok(request)) = (&mut copied.conversion, &mut copied.copy) else {
            return;
        };
        let sent = (&*request.headers, &*request.body);
        let mut no_client = NoClient::default();
        let converting = conversion.request(&self.client, sent, &mut no_client);
        match converting.await {
            Ok(Converted { head, body, method }) => {
                (request.headers, request.body, request.method) = (head, body, method);
            }
            Err(rejection) => copied.copy = Err(rejection.into()),
        }
    }

    /// Has a converter change the response, if it changes such responses.
    async fn converted(
        &self,
        copied: &Copied,
        response: WholeResponse,
    ) -> Result<WholeResponse, NotCopied> {
        let of_request = (copied.method, &*copied.path);
        let conversion = copied.conversion.as_ref().filter(|_| {
            let changes = copied.changes.as_deref();
            changes.is_some_and(|changes| converts(changes, of_request, &response))
        });
        let Some(conversion) = conversion else {
            return Ok(response);
        };
        let mut no_client = NoClient::default();
        let converting = conversion.response(&self.client, response, &mut no_client);
        converting.await.map_err(NotCopied::from)
    }

    async fn send(&self, request: &CopyRequest, copied: &Copied) -> Option<WholeResponse> {
        let from = (copied.app.as_deref(), copied.client);
        request.send(&self.client, from, copied.lasted).await
    }
}

/// Adds the account that the other version asks for, and the copy's own version does not. Without one, the other version
/// rejects the request.
async fn add_account(copied: &mut Copied) {
    let Some(given) = copied.credential.take() else {
        return;
    };
    let (client, accounts, now) = (copied.client, &given.accounts, SystemClock.now());
    let checked = check_credential(&given.sent, Some(given.app), client, accounts, now).await;
    match (checked, &mut copied.copy) {
        (Ok(claims), Ok(request)) => {
            write_account(&claims.account, given.rules, &mut request.headers);
        }
        (Err(rejection), copy) => *copy = Err(rejection.into()),
        (Ok(_), Err(_)) => {}
    }
}

/// Compares the responses, and adds up what differs.
fn add(
    shadows: &Shadows,
    copied: &Copied,
    outcome: Result<WholeResponse, NotCopied>,
    again: Option<WholeResponse>,
) {
    let noise = again.and_then(|again| compare_with_itself(copied, &again));
    if noise.is_some() {
        shadows.counts.count(CopyResult::Noise);
    }
    let is_failed = matches!(outcome, Err(NotCopied::Nothing));
    let pair = match compare(copied, outcome) {
        Compared::Pair(pair) => pair,
        Compared::Rejected => return shadows.counts.count(CopyResult::Skipped),
        Compared::Not => {
            let now = SystemClock.now();
            let mut tallies = shadows.tallies();
            tallies.change(&copied.entry, now, |tally| tally.uncompared += 1);
            return shadows.counts.count(CopyResult::Skipped);
        }
    };
    let app = copied.app.as_ref().and_then(|app| app.ident.as_ref());
    let added = shadows.tallies().add(
        &copied.entry,
        SystemClock.now(),
        (&pair, noise.as_ref()),
        app.map(|ident| ident.as_str()),
    );
    match added {
        Some(is_different) => shadows.counts.count(match is_different {
            _ if is_failed => CopyResult::Failed,
            true => CopyResult::Different,
            false => CopyResult::Equal,
        }),
        None => {
            shadows.counts.count(CopyResult::Dropped);
            shadows.warn_full();
        }
    }
}
