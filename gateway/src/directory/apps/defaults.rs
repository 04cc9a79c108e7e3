//! Applications whose default version is not in service.

use signpost_protocol::version::Version;
use signpost_store::{Store, tables::applications};

use super::store::UnusableDefault;
use crate::config::Versions;

/// Limit of applications that a warning about their default versions names.
pub(super) const MAX_NAMED_DEFAULTS: usize = 10;

/// Applications whose default version is not in `known`: as many as a warning names, and one more.
pub(super) async fn unusable_defaults(
    database: &Store,
    known: &[Version],
) -> anyhow::Result<Vec<UnusableDefault>> {
    let limit = MAX_NAMED_DEFAULTS + 1;
    let found = applications::with_other_defaults(database, known, limit).await?;
    let unusable = found.into_iter().map(|app| UnusableDefault {
        ident: app.ident,
        version: app.settings.default_version.unwrap_or_default(),
    });
    Ok(unusable.collect())
}

/// Warnings that name applications whose default version is not in service: unknown, or retired.
#[must_use]
pub(crate) fn default_version_warnings(
    found: &[UnusableDefault],
    versions: &Versions,
) -> Vec<String> {
    let is_known = |app: &&UnusableDefault| versions.named(app.version.as_bytes()).is_some();
    let (retired, unknown): (Vec<_>, Vec<_>) = found.iter().partition(is_known);
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
    let warning = |(apps, why): (Vec<&UnusableDefault>, &str)| {
        let named = (!apps.is_empty()).then(|| named(&apps))?;
        Some(format!(
            "applications whose default version {why}: {named}; to change it: signpost app update IDENT \
             --default-version NAME, or --no-default-version"
        ))
    };
    warnings.into_iter().filter_map(warning).collect()
}

/// The first applications, with their default versions.
fn named(found: &[&UnusableDefault]) -> String {
    let named: Vec<String> = found
        .iter()
        .take(MAX_NAMED_DEFAULTS)
        .map(|app| format!("{} ({})", app.ident, app.version))
        .collect();
    let more = if found.len() > named.len() {
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
        let found = |count: usize| -> Vec<UnusableDefault> {
            (0..count)
                .map(|number| UnusableDefault {
                    ident: format!("app-{number}"),
                    version: "v9".to_owned(),
                })
                .collect()
        };
        let versions = crate::config::tests::versions("[versions.v1]\nbackend = '127.0.0.1:1'\n");
        let warnings = |found: &[UnusableDefault]| default_version_warnings(found, &versions);
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
        both.push(UnusableDefault {
            ident: "shop".to_owned(),
            version: "v1".to_owned(),
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
