//! `signpost gateways`: the gateways of the store.

use std::process::ExitCode;

use serde_json::json;
use signpost_management::reports::gateways::{GatewayState, ListedGateway, list};
use signpost_proxy::{Config, rfc3339};
use signpost_store::Store;

use super::{
    CommonOptions, many, print_line,
    table::{print_table, printable, printable_json},
};

/// Of a configuration's hash, people see the beginning.
const SHOWN_HASH: usize = 12;

pub(super) async fn run(common: CommonOptions) -> anyhow::Result<ExitCode> {
    let config = Config::load(&common.config)?;
    many(
        &config,
        &common.config,
        "its gateway writes no row to the store",
    )?;
    let all = list(&Store::open(&config.store).await?).await?;
    if common.json {
        print_line(&printable_json(&json!(all).to_string()));
        return Ok(ExitCode::SUCCESS);
    }
    let heads = [
        "HOST",
        "PROCESS",
        "RELEASE",
        "STARTED",
        "STATE",
        "CONFIGURATION",
        "LOADED",
    ];
    print_table(heads, all.iter().map(cells));
    for one in all.iter().filter(|one| one.is_alive) {
        let GatewayState {
            host,
            process,
            readiness,
            ..
        } = &one.state;
        if readiness != "ready" {
            print_line(&printable(&format!("\n{host} {process}: {readiness}")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn cells(one: &ListedGateway) -> [String; 7] {
    let state = &one.state;
    let hash = state.config.get(..SHOWN_HASH).unwrap_or_default();
    [
        state.host.clone(),
        state.process.to_string(),
        state.release.clone(),
        state.started_at.clone(),
        match (one.is_alive, state.is_ready) {
            (true, true) => "ready".to_owned(),
            (true, false) => "not ready".to_owned(),
            (false, _) => format!("gone since {}", rfc3339(one.seen_at)),
        },
        match one.differs {
            true => format!("{hash} (differs)"),
            false => hash.to_owned(),
        },
        match state.is_reload_rejected {
            true => format!("{}, a later reload was rejected", state.loaded_at),
            false => state.loaded_at.clone(),
        },
    ]
}
