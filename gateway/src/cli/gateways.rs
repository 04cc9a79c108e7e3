//! `signpost gateways`: the gateways of the store.

use signpost_management::{
    operations::{gateways::LIST, input::NamedPage},
    reports::gateways::ListedGateway,
};
use signpost_proxy::{Config, rfc3339};
use std::process::ExitCode;

use super::{
    CommonOptions,
    operation::on_many,
    print_line,
    table::{print_list, printable, printable_lines},
};

/// Of a configuration's hash, people see the beginning.
const SHOWN_HASH: usize = 12;

pub(super) async fn run(common: CommonOptions) -> anyhow::Result<ExitCode> {
    let config = Config::load(&common.config)?;
    let because = "its gateway writes no row to the store";
    let context = on_many(&config, &common.config, because).await?;
    let all = (LIST.run)(&context, (), NamedPage::ALL).await?.items;
    print_list(&all, HEADS, cells, common.json);
    if common.json {
        return Ok(ExitCode::SUCCESS);
    }
    for gateway in all.iter().filter(|gateway| gateway.is_alive) {
        let state = &gateway.state;
        if state.readiness != "ready" {
            let line = format!("\n{}: {}", state.name(), state.readiness);
            print_line(&printable_lines(&line));
        }
        if gateway.differs {
            let keys = gateway.different_keys.join(", ");
            print_line(&printable(&format!("{} differs in {keys}", state.name())));
        }
    }
    Ok(ExitCode::SUCCESS)
}

const HEADS: [&str; 8] = [
    "HOST",
    "PROCESS",
    "ADDRESS",
    "RELEASE",
    "STARTED",
    "STATE",
    "CONFIGURATION",
    "LOADED",
];

fn cells(gateway: &ListedGateway) -> [String; HEADS.len()] {
    let state = &gateway.state;
    let hash = state.config.get(..SHOWN_HASH).unwrap_or_default();
    [
        state.host.clone(),
        state.process.to_string(),
        state.addresses.join(" "),
        state.release.clone(),
        state.started_at.clone(),
        match (gateway.is_alive, state.is_ready) {
            (true, true) => "ready".to_owned(),
            (true, false) => "not ready".to_owned(),
            (false, _) => format!("gone since {}", rfc3339(gateway.seen_at)),
        },
        match gateway.differs {
            true => format!("{hash} (differs)"),
            false => hash.to_owned(),
        },
        match state.is_reload_rejected {
            true => format!("{}, a later reload was rejected", state.loaded_at),
            false => state.loaded_at.clone(),
        },
    ]
}
