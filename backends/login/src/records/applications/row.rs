//! Reads applications from rows.

use signpost_protocol::app::AppId;
use signpost_store::StoredRow;

use super::Application;
use crate::config::Origin;

/// The columns for [`application_from_row`].
pub(super) const COLUMNS: &str = "name, state, return_to_origins";

pub(super) fn application_from_row<R: StoredRow>(
    id: AppId,
    row: &R,
) -> Result<Application, R::Error> {
    let origins = parse_origins(row.text("return_to_origins")?);
    Ok(Application {
        id,
        name: row.text("name")?.to_owned(),
        is_active: row.text("state")? == "active",
        return_to: origins.ok_or_else(|| R::unknown("return_to_origins"))?,
    })
}

fn parse_origins(json: &str) -> Option<Vec<Origin>> {
    let origins: Vec<String> = serde_json::from_str(json).ok()?;
    origins.iter().map(|origin| origin.parse().ok()).collect()
}
