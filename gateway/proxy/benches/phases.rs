//! Benchmarks of the phases with lookups, without a network: the application, the replay memory, the route.
//!
//! Run `cargo bench -p signpost-proxy --bench phases`. The preparation of a call is not measured.

use std::{
    net::IpAddr,
    path::Path,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
};

use async_trait::async_trait;
use divan::{Bencher, black_box};
use signpost_kit::clock::{SystemClock, Timestamp};
use signpost_protocol::{
    app::{AppId, AppIdent},
    credential::{Credential, CredentialHash},
    param::Params,
    sign::{Sign, SignTime, Window},
};
use signpost_proxy::measured::{
    Account, AccountDirectory, AccountStore, App, AppState, AppStore, AppStoreError, Attempts,
    Balancer, CachedApps, Config, CredentialClaims, HeaderSign, Method, Placed, RawHeaders,
    ReplayLimits, ReplayMemory, Target, VerifiedRequest, Verifier, Versions, Wanted, route,
};
use signpost_store::StoreError;

const NOW: u64 = 1_732_104_000_000;

const CONFIG: &str = "
prefix = 'Acme'
application.key = '4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb'
versions.v1.backend = '127.0.0.1:7001'
versions.v2.backend = '127.0.0.1:7002'
";

fn main() {
    divan::main();
}

/// Lookup of a cached application among 10,000.
#[divan::bench(threads = [1, 2])]
fn application(bencher: Bencher<'_, '_>) {
    const RECORDS: u64 = 10_000;
    let apps = CachedApps::new(Arc::new(EveryIdent), RECORDS);
    for number in 0..RECORDS {
        found(&apps, ident(number));
    }
    let next = AtomicU64::new(0);
    bencher
        .with_inputs(|| ident(random(next.fetch_add(1, Ordering::Relaxed)) % RECORDS))
        .bench_values(|ident| found(&apps, ident));
}

/// The lookup of what a credential proves, as sent: one of 1,000 that are in use.
#[divan::bench(threads = [1, 2])]
fn account(bencher: Bencher<'_, '_>) {
    const CREDENTIALS: u64 = 1_000;
    let accounts = AccountDirectory::with_store(Arc::new(EveryAccount), 1, Arc::new(SystemClock));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be created");
    let client = IpAddr::from([127, 0, 0, 1]);
    for number in 0..CREDENTIALS {
        let hash = credential(number).hash();
        let found = runtime.block_on(accounts.find(hash, client, Timestamp::from_millis(0)));
        found.expect("the store has every account");
    }
    let next = AtomicU64::new(0);
    bencher
        .with_inputs(|| credential(next.fetch_add(1, Ordering::Relaxed) % CREDENTIALS).encode())
        .bench_values(|sent| accounts.cached(black_box(sent.as_bytes())));
}

/// Insertion of a signature among this many live ones of the same application; on average, one expires per insertion.
#[divan::bench(args = [1_000, 60_000, 1_000_000], threads = [1, 2])]
fn replay_of_one_application(bencher: Bencher<'_, '_>, live: u64) {
    replay(bencher, live, 1);
}

/// The same, spread over 10,000 applications.
#[divan::bench(args = [60_000, 1_000_000], threads = [1, 2])]
fn replay_of_10_000_applications(bencher: Bencher<'_, '_>, live: u64) {
    replay(bencher, live, 10_000);
}

fn replay(bencher: Bencher<'_, '_>, live: u64, apps: u64) {
    let memory = ReplayMemory::new();
    let limits = ReplayLimits {
        window: Window::default(),
        entries_per_app: 10_000_000,
    };
    let next = AtomicU64::new(0);
    // Clients' clocks are up to a second slow.
    let call = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let now = NOW + number * 60_000 / live;
        let random = random(number);
        let app = i64::try_from(random % apps).unwrap_or_default();
        let time = now - random / apps % 1_000;
        let at = SignTime::from_millis;
        (AppId::new(app), sign(number), at(time), at(now))
    };
    let insert = |(app, sign, time, now)| memory.insert(app, black_box(&sign), time, limits, now);
    // In a test run, a few are enough.
    let filled_with = if std::env::args().any(|argument| argument == "--bench") {
        live
    } else {
        10
    };
    for _ in 0..filled_with {
        let _ = insert(call());
    }
    bencher.with_inputs(call).bench_values(insert);
}

#[divan::bench]
fn the_route(bencher: Bencher<'_, '_>) {
    let (versions, verifier) = prepared();
    bencher
        .with_inputs(|| verified(&verifier))
        .bench_values(|verified| {
            let wanted = Wanted {
                method: Method::Get,
                version: black_box(b"v2"),
                placed: Placed::default(),
                headers: None,
                target: Target {
                    path: "/orders",
                    ..Target::default()
                },
                client: [127, 0, 0, 1].into(),
            };
            let now = || Timestamp::from_millis(NOW.cast_signed());
            route(verified, wanted, &versions, now, |_| true)
        });
}

/// Choice of one of five healthy addresses, and the end of the request.
#[divan::bench(args = ["round-robin", "least-connections", "hash-client"], threads = [1, 2])]
fn an_address(bencher: Bencher<'_, '_>, balance: &str) {
    let several = format!(
        "versions.v1.balance = '{balance}'\nversions.v1.backends = ['127.0.0.1:1', '127.0.0.1:2', \
         '127.0.0.1:3', '127.0.0.1:4', '127.0.0.1:5']"
    );
    let text = CONFIG.replace("versions.v1.backend = '127.0.0.1:7001'", &several);
    let versions = load(&text, &format!("{balance}.toml")).versions;
    let balancer = Balancer::new(versions.default().own(), None).expect("there are several");
    let resolved = pin!(balancer.resolve()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(resolved.is_ready());
    let next = AtomicU64::new(0);
    bencher.bench(|| {
        let key = next.fetch_add(1, Ordering::Relaxed).to_le_bytes();
        balancer.choose(black_box(&key), &mut Attempts::default())
    });
}

fn load(text: &str, name: &str) -> Config {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, text).expect("cargo made the folder");
    Config::load(&file).expect("a good configuration")
}

fn prepared() -> (Versions, Verifier) {
    let config = load(CONFIG, "phases.toml");
    (config.versions, Verifier::new(config.sign))
}

fn verified(verifier: &Verifier) -> VerifiedRequest {
    let target = Target {
        path: "/",
        ..Target::default()
    };
    let now = SignTime::from_millis(NOW);
    let (params, headers) = (Params::default(), RawHeaders(b""));
    let headers = (&headers, HeaderSign::NONE);
    let verified = verifier.verify(app(0), Method::Get, target, &params, headers, now);
    verified.expect("it has no parameters")
}

/// `SplitMix64`: the same on every run.
fn random(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A different signature for each number, in no order.
fn sign(number: u64) -> Sign {
    let halves = [random(number), random(!number)];
    let bytes: Vec<u8> = halves.iter().flat_map(|half| half.to_be_bytes()).collect();
    Sign::from_hex(hex::encode(bytes).as_bytes()).expect("32 hex digits")
}

fn credential(number: u64) -> Credential {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&random(number).to_be_bytes());
    Credential::from_bytes(bytes)
}

fn ident(number: u64) -> AppIdent {
    let ident = format!("ident{:019}", random(number) >> 4);
    ident.parse().expect("24 letters and digits")
}

fn app(id: i64) -> Arc<App> {
    let key = "4283fefc63f0cd0e873a0000c6d07ef7b77e90d3593ad699fc1f7cd5bb2e35cb";
    Arc::new(App {
        id: AppId::new(id),
        ident: None,
        state: AppState::Active,
        key: key.parse().expect("a key"),
        previous_key: None,
        profile: None,
        default_version: None,
        rate_limit: None,
        extensions: Box::default(),
    })
}

/// Polls once: the store answers immediately.
fn found(apps: &CachedApps, ident: AppIdent) -> Option<Arc<App>> {
    let mut finding = pin!(apps.find(ident));
    match finding
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(found) => found.ok().flatten(),
        Poll::Pending => None,
    }
}

/// A store with an account for every credential.
struct EveryAccount;

#[async_trait]
impl AccountStore for EveryAccount {
    async fn find(
        &self,
        _: CredentialHash,
        _: Timestamp,
    ) -> Result<Option<CredentialClaims>, StoreError> {
        Ok(Some(CredentialClaims {
            account: Account::new(7, "{fdee430d-0000-0000-0000-000000000000}", "bitbucket"),
            application: AppId::SINGLE,
            expires_at: Timestamp::from_millis(i64::MAX),
        }))
    }
}

/// A store with an application for every ident.
struct EveryIdent;

#[async_trait]
impl AppStore for EveryIdent {
    async fn find(&self, _: AppIdent) -> Result<Option<App>, AppStoreError> {
        Ok(Some((*app(1)).clone()))
    }
}
