//! An application's row, read.

use gateway_protocol::app::AppId;
use signpost_store::StoredRow;

use super::Application;
use crate::config::Origin;

/// What a login needs of an application.
pub(super) const COLUMNS: &str = "name, state, return_to_origins";

pub(super) fn application_from_row<R: StoredRow>(
    id: AppId,
    row: &R,
) -> Result<Application, R::Error> {
    let origins = origins_of(row.text("return_to_origins")?);
    Ok(Application {
        id,
        name: row.text("name")?.to_owned(),
        is_active: row.text("state")? == "active",
        return_to: origins.ok_or_else(|| R::unknown("return_to_origins"))?,
    })
}

/// An origin that only an older release took, `https://*` for example, is left out: no address was ever of it.
fn origins_of(json: &str) -> Option<Vec<Origin>> {
    let origins: Vec<String> = serde_json::from_str(json).ok()?;
    let parsed = origins.iter().filter_map(|origin| origin.parse().ok());
    Some(parsed.collect())
}
