//! The TLS files of the listeners: when their certificates expire, and whether the last change was read. The kit writes
//! the metrics of reloads.

use std::{collections::BTreeMap, fmt};

use signpost_kit::{clock::Timestamp, families, metrics::Scrape};

use crate::{serve::Gateway, tls::Validity};

families! {
    EXPIRY = "signpost_certificate_expiry_timestamp_seconds", Gauge, ["file"],
        "When the certificate of a listener expires, in seconds since the epoch. A replaced file shows once the \
         gateway has read it.";
    NOT_BEFORE = "signpost_certificate_not_before_timestamp_seconds", Gauge, ["file"],
        "When that certificate began to be valid, in seconds since the epoch. Alerts go by the part of the lifetime \
         that is left.";
    FILES_READ = "signpost_tls_files_last_reload_successful", Gauge, ["listener"],
        "1 if the TLS files of a listener were read when they last changed; 0 if they were rejected: the old ones \
         stay in use. A listener without TLS has no sample.";
}

/// Writes the families. If listeners share a file, its sample shows the certificate that expires first.
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
        let seconds = |validity| time(validity).as_millis() as f64 / 1e3;
        let files = files.iter();
        scrape.numbers(
            family,
            files.map(|(file, validity)| ([file], seconds(validity))),
        )
    };
    write(EXPIRY, |validity| validity.expires)?;
    write(NOT_BEFORE, |validity| validity.begins)?;
    let listeners = gateway.tls();
    let read =
        listeners.map(|(address, tls)| ([address.to_string()], u64::from(!tls.is_rejected())));
    scrape.numbers(FILES_READ, read)
}
