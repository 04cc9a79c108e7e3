//! Applications whose default version is not in service.

use signpost_protocol::version::Version;
use signpost_store::{
    Store, StoreError,
    tables::applications::{PinnedApplication, with_other_defaults},
};

use crate::config::Versions;

/// Limit of applications that a warning about their default versions names.
pub(super) const MAX_NAMED_DEFAULTS: usize = 10;

/// Applications whose default version is not in `known`: as many as a warning names, and one more.
pub async fn unusable_defaults(
    database: &Store,
    known: &[Version],
) -> Result<Vec<PinnedApplication>, StoreError> {
    with_other_defaults(database, known, MAX_NAMED_DEFAULTS + 1).await
}

/// Warnings that name applications whose default version is not in service: unknown, or retired.
#[must_use]
pub fn default_version_warnings(pinned: &[PinnedApplication], versions: &Versions) -> Vec<String> {
    let is_known =
        |app: &&PinnedApplication| versions.named(app.default_version.as_bytes()).is_some();
    let (retired, unknown): (Vec<_>, Vec<_>) = pinned.iter().partition(is_known);
    let warnings = [
        (
            unknown,
            "has no [versions.NAME], so their requests go to default_version",
        ),
        (
            retired,
            "is retired, so their requests without a version get 410 version_retired",
        ),
    ];
    let warning = |(apps, why): (Vec<&PinnedApplication>, &str)| {
        let named = (!apps.is_empty()).then(|| named(&apps))?;
        Some(format!(
            "applications whose default version {why}: {named}; to change it: signpost app update IDENT \
             --default-version NAME, or --no-default-version"
        ))
    };
    warnings.into_iter().filter_map(warning).collect()
}

/// The first applications, with their default versions.
fn named(pinned: &[&PinnedApplication]) -> String {
    let named: Vec<String> = pinned
        .iter()
        .take(MAX_NAMED_DEFAULTS)
        .map(|app| format!("{} ({})", app.ident, app.default_version))
        .collect();
    let more = if pinned.len() > named.len() {
        ", and more"
    } else {
        ""
    };
    format!("{}{more}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_names_the_first_applications_and_mentions_more() {
        let found = |count: usize| -> Vec<PinnedApplication> {
            (0..count)
                .map(|number| PinnedApplication {
                    ident: format!("app-{number}"),
                    default_version: "v9".to_owned(),
                })
                .collect()
        };
        let versions = crate::config::tests::versions("[versions.v1]\nbackend = '127.0.0.1:1'\n");
        let warnings = |found: &[PinnedApplication]| default_version_warnings(found, &versions);
        assert!(warnings(&[]).is_empty());
        let one = &warnings(&found(1))[..];
        assert!(
            one[0].contains("app-0 (v9)") && !one[0].contains("more"),
            "{one:?}"
        );
        let many = &warnings(&found(MAX_NAMED_DEFAULTS + 1))[..];
        assert!(many[0].contains("app-9 (v9), and more"), "{many:?}");
        let mut both = found(1);
        // The store names it because it is retired.
        both.push(PinnedApplication {
            ident: "shop".to_owned(),
            default_version: "v1".to_owned(),
        });
        let both = warnings(&both);
        assert!(
            both[0].contains("app-0 (v9)") && !both[0].contains("shop"),
            "{both:?}"
        );
        assert!(
            both[1].contains("is retired") && both[1].contains("shop (v1)"),
            "{both:?}"
        );
    }
}
