//! Clients that send a request and reset the connection: store calls hold a bounded amount of resources (#9).

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use end_to_end::{
    logins::{credential, log_in_by_polling},
    program::Program,
    signed_client::{Call, SignedClient},
    stack::Stack,
    waiting::{WAIT_TIMEOUT, until},
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

/// How long another process holds the store's lock, and how long the flood continues afterwards. A SQLite call waits
/// 5 s for the lock; a Postgres statement times out after 3 s.
const LOCKED: Duration = Duration::from_secs(4);
const UNLOCKED: Duration = Duration::from_secs(3);
/// Concurrent connections of the flood.
const CLIENTS: usize = 60;
/// Pause between two requests of the client that must be served meanwhile.
const PAUSE: Duration = Duration::from_millis(20);
/// SQLite's pool: four connections, each with a blocking thread and up to three files. Postgres uses sockets only.
/// Twice the threads, since the runtime may start one while another has just finished its work.
const MAX_FURTHER_THREADS: usize = 2 * 4;
const MAX_FURTHER_FILES: usize = 4 * 3;
/// The gateway's idle connections, and a Postgres pool.
const MAX_IDLE_SOCKETS: usize = CLIENTS + 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_requests_leak_no_resources_of_the_store() {
    let statements = "[postgres]\nstatement_seconds = 3";
    let mut stack = Stack::builder().backends(statements).start().await;
    let client = stack.client();
    let login = log_in_by_polling(&client, "ada").await;
    let credential = credential(&login);
    let process = Process(stack.running(Program::V1).id());
    let before = process.usage();

    let flood = Flood::start(stack.addresses().gateway, &client, credential);
    let mut largest = before;
    // Cancelled calls would pile up while they wait for the lock.
    let lock = stack.store().lock();
    let start = Instant::now();
    while start.elapsed() < LOCKED {
        largest = largest.max(process.usage());
        tokio::time::sleep(PAUSE).await;
    }
    drop(lock);
    let unlocked = Instant::now();
    let mut durations = Vec::new();
    while unlocked.elapsed() < UNLOCKED || durations.len() < 10 {
        let sent = Instant::now();
        event(&client, credential).send().await.ok();
        durations.push(sent.elapsed());
        largest = largest.max(process.usage());
        tokio::time::sleep(PAUSE).await;
    }
    let resets = flood.stop().await;

    durations.sort();
    let slowest = durations[durations.len() - 1];
    let figures = format!(
        "{resets} requests reset; {before:?}, during the flood {largest:?}; {} events stored meanwhile, median {:?}, \
         slowest {slowest:?}",
        durations.len(),
        durations[durations.len() / 2],
    );
    eprintln!("{figures}");
    assert!(resets > 100, "no flood: {figures}");
    assert!(slowest < WAIT_TIMEOUT, "{figures}");
    assert!(
        largest.threads <= before.threads + MAX_FURTHER_THREADS,
        "{figures}"
    );
    assert!(
        largest.files <= before.files + MAX_FURTHER_FILES,
        "{figures}"
    );
    // Reset connections are closed, and unused blocking threads end after 10 s.
    until("threads, files and sockets to be released", || async {
        let now = process.usage();
        let is_as_before = now.threads <= before.threads + MAX_FURTHER_THREADS
            && now.files <= before.files + MAX_FURTHER_FILES
            && now.sockets <= before.sockets + MAX_IDLE_SOCKETS;
        is_as_before.then_some(())
    })
    .await;
    event(&client, credential).send().await.ok();
}

/// A store write without a rate limit.
fn event<'c>(client: &'c SignedClient, credential: &str) -> Call<'c> {
    let event = client.post("/event/send").param("event", "flood");
    event.authorization(credential)
}

/// Clients that each send a signed request, which writes or reads the store, and reset the connection a moment later.
struct Flood {
    is_stopped: Arc<AtomicBool>,
    clients: JoinSet<usize>,
}

impl Flood {
    fn start(gateway: SocketAddr, client: &SignedClient, credential: &str) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let (client, credential) = (client.clone(), credential.to_owned());
            let is_stopped = Arc::clone(&is_stopped);
            clients.spawn(async move {
                let mut sent = 0;
                while !is_stopped.load(Ordering::Relaxed) {
                    let turn = number + sent;
                    let unknown = format!("v1.{turn:043}");
                    let call = match turn % 3 {
                        0 => client.post("/login").signed(),
                        1 => client.post("/check").param("token", &unknown),
                        _ => event(&client, &credential),
                    };
                    // On a busy machine, a debug build needs part of this pause to reach the store at all.
                    let pause = Duration::from_millis(turn as u64 * 7 % 40);
                    // At its connection limit, the gateway refuses the connection.
                    let _ = send_and_reset(gateway, &call.bytes(&[]), pause).await;
                    sent += 1;
                }
                sent
            });
        }
        Self {
            is_stopped,
            clients,
        }
    }

    /// Stops the flood and returns the number of its requests.
    async fn stop(self) -> usize {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.clients.join_all().await.into_iter().sum()
    }
}

async fn send_and_reset(
    gateway: SocketAddr,
    request: &[u8],
    pause: Duration,
) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(gateway).await?;
    stream.set_zero_linger()?;
    stream.write_all(request).await?;
    tokio::time::sleep(pause).await;
    Ok(())
}

/// Resources of a process, from proc(5).
#[derive(Clone, Copy, Debug)]
struct Usage {
    threads: usize,
    /// All descriptors but sockets.
    files: usize,
    sockets: usize,
}

impl Usage {
    fn max(self, other: Self) -> Self {
        Self {
            threads: self.threads.max(other.threads),
            files: self.files.max(other.files),
            sockets: self.sockets.max(other.sockets),
        }
    }
}

struct Process(u32);

impl Process {
    fn usage(&self) -> Usage {
        let entries = |name: &str| {
            let folder = fs::read_dir(format!("/proc/{}/{name}", self.0));
            folder.expect("a running process has this").flatten()
        };
        // A descriptor that was closed meanwhile has no target.
        let targets = entries("fd").filter_map(|entry| fs::read_link(entry.path()).ok());
        let (sockets, files): (Vec<_>, Vec<_>) =
            targets.partition(|target| target.to_string_lossy().starts_with("socket:"));
        Usage {
            threads: entries("task").count(),
            files: files.len(),
            sockets: sockets.len(),
        }
    }
}
