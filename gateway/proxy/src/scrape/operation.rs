//! The TLS files of the listeners: when their certificates expire, and whether the last change was read. The kit writes
//! the metrics of reloads.

use std::{collections::BTreeMap, fmt};

use signpost_kit::{clock::Timestamp, families, metrics::Scrape};

use crate::{serve::Gateway, tls::Validity};

families! {
    EXPIRY = "signpost_certificate_expiry_timestamp_seconds",
        "When the certificate of a listener expires, in seconds since the epoch";
    NOT_BEFORE = "signpost_certificate_not_before_timestamp_seconds",
        "When that certificate began to be valid, in seconds since the epoch";
    FILES_READ = "signpost_tls_files_last_reload_successful",
        "1 if a listener's TLS files were read when they last changed, 0 if they were rejected";
}

/// Writes the families. Listeners may share a file: what was read of it is shown once, and as the one that expires first.
pub(super) fn write(gateway: &Gateway, scrape: &mut Scrape<'_>) -> fmt::Result {
    let mut files = BTreeMap::new();
    for loaded in gateway.tls().map(|(_, tls)| tls.loaded()) {
        for certificate in &loaded.certificates {
            let file = certificate.file.display().to_string();
            let first = files.entry(file).or_insert(certificate.validity);
            *first = certificate.validity.min(*first);
        }
    }
    let mut write = |family, time: fn(&Validity) -> Timestamp| {
        scrape.gauge(family, |add| {
            let mut files = files.iter();
            files.try_for_each(|(file, validity)| {
                let seconds = time(validity).as_millis() as f64 / 1e3;
                add(&[("file", file)], seconds)
            })
        })
    };
    write(EXPIRY, |validity| validity.expires)?;
    write(NOT_BEFORE, |validity| validity.begins)?;
    scrape.gauge(FILES_READ, |add| {
        gateway.tls().try_for_each(|(address, tls)| {
            let address = address.to_string();
            add(&[("listener", &address)], u64::from(!tls.is_rejected()))
        })
    })
}
