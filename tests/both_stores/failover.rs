//! A primary that fails over to another server, under a load of logins and signed calls: none of these calls fails, and
//! nothing that was acknowledged is lost.
//!
//! Each run has a primary and its standby, and three faults. With `SIGNPOST_TEST_FAILOVERS=50` the servers are three under
//! Patroni, with `HAProxy` before version 1, and there are so many faults: of each kind in turn.

use std::{
    env,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    crowd::{Crowd, Damage},
    namespaces,
    postgres::{PostgresCluster, PostgresServer},
    program::Program,
    signed_client::fetch,
    stack::{Stack, StackBuilder},
    store::StoreKind,
    waiting::until_within,
};
use tokio::task::spawn_blocking;

use crate::store_faults::{Steady, login_begins, rejections_are_clear};

const FAILOVERS: &str = "SIGNPOST_TEST_FAILOVERS";
/// Set for the test once more, in a network namespace of its own.
const IN_NAMESPACE: &str = "SIGNPOST_TEST_IN_NAMESPACE";
/// Timeout of what the servers do by themselves: to elect a primary, or to copy another server.
const SERVERS_TIMEOUT: Duration = Duration::from_secs(90);
/// Limit for the first login after another server takes writes, and an allowance for two processors that tests share.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(5 + 15);
const NAME: &str = "failover::logins_go_on_at_another_primary_and_signed_calls_do_not_notice";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logins_go_on_at_another_primary_and_signed_calls_do_not_notice() {
    if !StoreKind::Postgres
        .is_chosen("the test has servers of its own, whichever store the run uses")
    {
        return;
    }
    let count = env::var(FAILOVERS).ok();
    let count = count.map(|count| count.parse().expect("it is a number"));
    match count {
        None => survives(Pair::start, 3).await,
        Some(count) if env::var_os(IN_NAMESPACE).is_some() => {
            survives(|| Patroni::start(true), count).await;
        }
        // Only there can a node be cut off.
        Some(_) if namespaces::may_be_created(&["--net"]) => {
            spawn_blocking(once_more_in_a_namespace).await.unwrap();
        }
        Some(count) => survives(|| Patroni::start(false), count).await,
    }
}

fn once_more_in_a_namespace() {
    let mut command = Command::new("unshare");
    command.args([
        "--net",
        "sh",
        "-c",
        "ip link set lo up && exec \"$0\" \"$@\"",
    ]);
    command.arg(env::current_exe().expect("this program has a path"));
    command.args(["--exact", "--nocapture", NAME]);
    let status = command.env(IN_NAMESPACE, "1").status();
    assert!(status.expect("util-linux has it").success());
}

/// With the default timeouts. All logins come from one address.
fn builder() -> StackBuilder {
    let limits = "[limits]\ncallbacks_per_second = 100000\ncallbacks_burst = 1000000";
    Stack::builder().multi().backends(limits)
}

/// Servers of which one takes writes.
trait Servers: Send + Sync + 'static {
    fn builder(&self) -> StackBuilder;

    /// The kinds of faults.
    fn kinds(&self) -> &'static [&'static str];

    /// Harms the primary, and waits until another server takes writes.
    fn harm(&self, kind: &str);

    /// Ends the harm, and waits until the next fault can come.
    fn heal(&self, kind: &str);
}

async fn survives<S: Servers>(start: impl FnOnce() -> S + Send + 'static, faults: usize) {
    let servers = Arc::new(spawn_blocking(start).await.unwrap());
    let stack = servers
        .builder()
        .gateway("stale_seconds = 3600")
        .start()
        .await;
    let application = stack.create_application("one", &[]);
    let client = stack.client_of(&application);
    let steady = Steady::start(&client).await;
    let crowd = Crowd::start(&stack, 4, Some(&application));
    let mut damage = Vec::new();
    for number in 0..faults {
        crowd.wait_for_new_logins().await;
        let kind = servers.kinds()[number % servers.kinds().len()];
        let from = Instant::now();
        run(&servers, move |servers| servers.harm(kind)).await;
        let promoted = from.elapsed();
        let what = format!("a login after {kind}");
        until_within(LOGIN_TIMEOUT, &what, || login_begins(&client)).await;
        report(number, kind, promoted, from.elapsed());
        run(&servers, move |servers| servers.heal(kind)).await;
        let until = Instant::now() + LOGIN_TIMEOUT;
        damage.push(Damage { from, until });
    }
    crowd.wait_for_new_logins().await;
    let record = crowd.finish().await;
    let steady = steady.stop().await;
    assert!(steady.done("steady") > faults);
    let lost = steady.failed_outside(&[]);
    assert!(lost.is_empty(), "{lost:#?}");
    let lost = record.failed_outside(&damage);
    assert!(lost.is_empty(), "{lost:#?}");
    rejections_are_clear(&record);
    record.assert_matches_store(stack.store(), &[Steady::USER]);
    is_ready_everywhere(&stack).await;
}

async fn run<S: Servers>(servers: &Arc<S>, work: impl FnOnce(&S) + Send + 'static) {
    let servers = Arc::clone(servers);
    spawn_blocking(move || work(&servers)).await.unwrap();
}

#[expect(clippy::print_stderr, reason = "the figures of a long run")]
fn report(number: usize, kind: &str, promoted: Duration, login: Duration) {
    let beyond = login.saturating_sub(promoted);
    eprintln!(
        "{number:3} {kind:10} another primary after {promoted:.1?}, a login {beyond:.1?} later"
    );
}

/// Without a restart of a program.
async fn is_ready_everywhere(stack: &Stack) {
    for program in [Program::Gateway, Program::V1, Program::V2] {
        assert!(!stack.log(program).contains("panicked"), "{program}");
    }
    let url = format!("http://{}/readyz", stack.addresses().management);
    until_within(SERVERS_TIMEOUT, "the gateway to be ready", || async {
        let response = fetch(&url).await;
        (response.text() == "ready\n").then_some(())
    })
    .await;
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < SERVERS_TIMEOUT,
            "not within {SERVERS_TIMEOUT:?}: {what}"
        );
    }
}

/// A primary and its synchronous standby, which is promoted by hand.
struct Pair {
    servers: [PostgresServer; 2],
    primary: AtomicUsize,
}

impl Pair {
    fn start() -> Self {
        let first = PostgresServer::start();
        let second = first.standby();
        Self {
            servers: [first, second],
            primary: AtomicUsize::new(0),
        }
    }

    /// The primary, and the standby.
    fn by_role(&self) -> [&PostgresServer; 2] {
        let primary = self.primary.load(Ordering::Relaxed) % 2;
        [&self.servers[primary], &self.servers[1 - primary]]
    }
}

impl Servers for Pair {
    fn builder(&self) -> StackBuilder {
        let [first, second] = &self.servers;
        let (_, second) = second.address().split_once('@').expect("it names a role");
        let (host, _) = second.split_once('/').expect("it names a database");
        let address = first
            .address()
            .replace("/postgres", &format!(",{host}/postgres"));
        builder().on_servers(&format!("{address}?target_session_attrs=read-write"))
    }

    fn kinds(&self) -> &'static [&'static str] {
        &["kill", "freeze", "demote"]
    }

    fn harm(&self, kind: &str) {
        let [primary, standby] = self.by_role();
        match kind {
            "kill" => primary.kill(),
            "freeze" => primary.freeze(),
            _ => primary.stop(),
        }
        standby.promote();
        self.primary.fetch_add(1, Ordering::Relaxed);
    }

    fn heal(&self, _kind: &str) {
        let [primary, other] = self.by_role();
        other.follow(primary);
    }
}

/// Three servers under Patroni.
struct Patroni {
    cluster: PostgresCluster,
    /// The node that was harmed last.
    harmed: Mutex<String>,
    may_be_cut: bool,
}

impl Patroni {
    fn start(may_be_cut: bool) -> Self {
        Self {
            cluster: PostgresCluster::start(),
            harmed: Mutex::default(),
            may_be_cut,
        }
    }
}

impl Servers for Patroni {
    fn builder(&self) -> StackBuilder {
        let haproxy = "store = \"$DIRECT\"";
        builder()
            .on_cluster(&self.cluster)
            .program(Program::V1, haproxy)
    }

    fn kinds(&self) -> &'static [&'static str] {
        const KINDS: [&str; 5] = ["kill", "freeze", "switchover", "promote", "cut"];
        if self.may_be_cut { &KINDS } else { &KINDS[..4] }
    }

    fn harm(&self, kind: &str) {
        let primary = self.cluster.primary().expect("it is settled");
        match kind {
            "switchover" | "promote" => self.cluster.run(&[kind]),
            _ => self.cluster.run(&[kind, &primary]),
        };
        let is_another = || self.cluster.primary().is_some_and(|node| node != primary);
        wait_until("another primary", is_another);
        *self.harmed.lock().unwrap() = primary;
    }

    fn heal(&self, kind: &str) {
        let node = self.harmed.lock().unwrap().clone();
        let task = match kind {
            "kill" => "revive",
            // What Patroni's watchdog does to such a node, which would take the lock back.
            "freeze" => {
                self.cluster.run(&["kill", &node]);
                "revive"
            }
            "cut" => "join",
            _ => "settled",
        };
        if kind == "cut" {
            // Before, it could take the lock back, too.
            wait_until("the node to notice the cut", || {
                self.cluster.is_demoted(&node)
            });
        }
        if task != "settled" {
            self.cluster.run(&[task, &node]);
        }
        wait_until("a synchronous standby", || self.cluster.is_settled());
    }
}
