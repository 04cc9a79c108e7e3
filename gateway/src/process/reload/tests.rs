//! What a reload frees, keeps and refuses.

use signpost_proxy::{
    measured::Balancer,
    testing::{MINIMAL, gateway, load},
};
use std::sync::Weak;

use super::*;

/// A configuration with two versions; each number gives another one.
fn config(number: usize) -> Config {
    let backends = format!(
        "backends = ['127.0.0.1:{}', '127.0.0.2:7001', 'localhost:{}']\nhealth = {{ interval_seconds = 3600 }}",
        7000 + number,
        7000 + number
    );
    let text = MINIMAL.replace("backend = '127.0.0.1:7001'", &backends);
    let more = format!(
        "[versions.v2]\nbackends = ['127.0.0.1:1', '127.0.0.1:2']\n[limits]\nparams = {}\n",
        100 + number
    );
    load(&format!("{text}{more}")).unwrap()
}

pub(super) fn reload(first: Config) -> GatewayReload {
    let store_settings = first.store.clone();
    let listeners = Listeners::unused(&first);
    let gateway = gateway(first);
    GatewayReload {
        current: Arc::new(ArcSwap::from_pointee(gateway)),
        monitor: Mutex::default(),
        log: Logging::unused(),
        listeners: Arc::new(listeners),
        store: None,
        store_settings,
        upgrade: Upgrade {
            new_process: NewProcess::new(Path::new("gateway.toml")).unwrap(),
            management: watch::Sender::new(Phase::Serving),
            handed_over: Arc::default(),
            replying: OnceLock::new(),
        },
    }
}

/// The balancer of the version with this number.
fn balancer(reload: &GatewayReload, number: usize) -> Arc<Balancer> {
    let gateway = reload.current.load();
    let target = gateway.policy.backends.targets().nth(number);
    Arc::clone(target.unwrap().balancer.as_ref().unwrap())
}

#[tokio::test]
async fn what_a_reload_replaces_is_freed() {
    let reload = reload(config(0));
    let mut gateways: Vec<Weak<Gateway>> = Vec::new();
    let mut balancers: Vec<Weak<Balancer>> = Vec::new();
    let unchanged = Arc::downgrade(&balancer(&reload, 1));
    for number in 1..=50 {
        gateways.push(Arc::downgrade(&reload.current.load_full()));
        balancers.push(Arc::downgrade(&balancer(&reload, 0)));
        reload.apply(config(number)).await.unwrap();
    }
    // Tasks that were aborted end at their next turn.
    tokio::task::yield_now().await;
    let left = gateways.iter().filter(|one| one.strong_count() > 0).count();
    assert_eq!(left, 0, "of the old gateways");
    let left = balancers
        .iter()
        .filter(|one| one.strong_count() > 0)
        .count();
    assert_eq!(left, 0, "of the old balancers");
    // The unchanged balancer is still in use, and monitored once.
    let unchanged = unchanged.upgrade().unwrap();
    assert!(Arc::ptr_eq(&unchanged, &balancer(&reload, 1)));
    assert_eq!(reload.current.load().policy.generation, 50);
}

#[tokio::test]
async fn a_backend_is_refused_at_the_address_of_the_running_management() {
    let first = config(0);
    let management = first.management.settings.listen.to_string();
    let reload = reload(first);
    // The file moves management, which takes effect after an upgrade.
    let moved = MINIMAL.replace("127.0.0.1:7001", &management);
    let moved = format!("{moved}[management]\nlisten = '127.0.0.1:9'\n");
    let error = reload.apply(load(&moved).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("versions.v1"), "{error}");
    assert_eq!(reload.current.load().policy.generation, 0);
}
