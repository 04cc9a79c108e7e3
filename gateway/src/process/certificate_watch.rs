//! Watches the TLS files of the listeners: reads them again when they change, and warns before a certificate expires.

use std::{
    collections::HashMap,
    mem,
    net::SocketAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use signpost_kit::{clock::Timestamp, config::ReadFile};
use tokio::time::sleep;

use signpost_proxy::{Gateway, program::Tls};

/// Time between two checks of the files. A file that is half written is usually complete at the next one.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checks of the time that certificates have left.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Watches the TLS files of the current gateway's listeners.
pub(crate) struct CertificateWatch {
    current: Arc<ArcSwap<Gateway>>,
    /// By listener, the content at the last check, and at the last attempt to reload.
    checked: HashMap<SocketAddr, Checked>,
    warned: HashMap<PathBuf, Warned>,
}

/// The files of one listener.
#[derive(Clone)]
struct Checked {
    tls: Arc<Tls>,
    /// What the last check found.
    found: Vec<ReadFile>,
    /// What was read last, even if it could not be used: the same content is not tried again.
    tried: Vec<ReadFile>,
}

/// The last warning of a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Warned {
    expires: Timestamp,
    part: u32,
}

impl CertificateWatch {
    /// Watches the listeners of `current`.
    pub(crate) fn new(current: Arc<ArcSwap<Gateway>>) -> Self {
        Self {
            current,
            checked: HashMap::new(),
            warned: HashMap::new(),
        }
    }

    /// Never returns.
    pub(crate) async fn run(mut self) {
        let mut expiry_checked: Option<Instant> = None;
        loop {
            let is_changed = self.check_files().await;
            let is_due = expiry_checked.is_none_or(|at| at.elapsed() >= EXPIRY_INTERVAL);
            if is_changed || is_due {
                self.warn_of_expiry();
                expiry_checked = Some(Instant::now());
            }
            sleep(CHECK_INTERVAL).await;
        }
    }

    /// Reads the files that have changed and then stayed the same for one interval. Returns whether a listener has other
    /// certificates than at the last check.
    async fn check_files(&mut self) -> bool {
        let gateway = self.current.load_full();
        let mut is_changed = false;
        let mut known_listeners = mem::take(&mut self.checked);
        for (address, tls) in gateway.tls() {
            let known = known_listeners.remove(&address);
            // Another `Tls` comes from a reload of the configuration, which has just read the files.
            let checked = match known.filter(|known| Arc::ptr_eq(&known.tls, tls)) {
                Some(known) => check(known, &mut is_changed).await,
                None => {
                    is_changed = true;
                    let files = tls.loaded().files.clone();
                    Checked {
                        tls: Arc::clone(tls),
                        found: files.clone(),
                        tried: files,
                    }
                }
            };
            self.checked.insert(address, checked);
        }
        is_changed
    }

    /// Logs each certificate that expires soon: once for each part of its lifetime, and once more when it has expired.
    fn warn_of_expiry(&mut self) {
        let gateway = self.current.load_full();
        let now = gateway.state.clock.now();
        let mut warned = HashMap::new();
        for certificate in gateway.certificates() {
            let Some(part) = certificate.validity.warned_part(now) else {
                continue;
            };
            let last = Warned {
                expires: certificate.validity.expires,
                part,
            };
            if self.warned.get(&certificate.file) != Some(&last)
                && let Some(text) = certificate.expiry_warning(now)
            {
                tracing::warn!("{text}");
            }
            warned.insert(certificate.file, last);
        }
        // Certificates that are gone are forgotten with the old map.
        self.warned = warned;
    }
}

/// Reads the files again, and reloads TLS if they have changed and settled.
async fn check(known: Checked, is_changed: &mut bool) -> Checked {
    let mut checked = known.clone();
    // A file may be on a server that does not answer.
    let checking = tokio::task::spawn_blocking(move || {
        let now: Vec<_> = checked.found.iter().map(ReadFile::reread).collect();
        // Two equal reads in a row: certificate and key are written one after the other, and a pair that is read in
        // between does not match.
        let has_settled = now == checked.found && now != checked.tried;
        let is_reloaded = has_settled && reload(&checked.tls, &now);
        if has_settled {
            checked.tried.clone_from(&now);
        }
        checked.found = now;
        (checked, is_reloaded)
    });
    // If the check panicked, the next one begins with the same state.
    let (checked, is_reloaded) = checking.await.unwrap_or((known, false));
    *is_changed |= is_reloaded;
    checked
}

/// Reloads TLS, and logs the result.
fn reload(tls: &Tls, files: &[ReadFile]) -> bool {
    let names: Vec<_> = files
        .iter()
        .map(|file| file.path().display().to_string())
        .collect();
    let names = names.join(", ");
    match tls.reload() {
        Ok(()) => {
            tracing::info!(files = names, "TLS files reloaded");
            true
        }
        Err(cause) => {
            tracing::error!(%cause, "TLS files not reloaded, the old ones stay");
            false
        }
    }
}
