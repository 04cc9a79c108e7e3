//! Clients that send a request and reset the connection at once: what the store's calls hold stays bounded (#9).

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
    waiting::until,
};
use tokio::{io::AsyncWriteExt, net::TcpStream, task::JoinSet};

/// How long another process holds the store's lock, and how long the flood goes on then.
const LOCKED: Duration = Duration::from_secs(2);
const UNLOCKED: Duration = Duration::from_secs(3);
/// Connections that the flood has open at once.
const CLIENTS: usize = 60;
/// Between two requests of the client that is to be served meanwhile.
const PAUSE: Duration = Duration::from_millis(20);
/// SQLite: four pooled connections and one that watches, of up to three files each. Postgres has sockets only.
const MAX_STORE_FILES: usize = 5 * 3;
/// The store's four blocking threads, and as many for whatever else blocks (DNS, files).
const MAX_FURTHER_THREADS: usize = 8;
/// One per client at the gateway, some that are just being closed, and the pool of a Postgres.
const MAX_FURTHER_SOCKETS: usize = 3 * CLIENTS + 16;
/// Far more than a call takes, on two processors that many tests share.
const IN_TIME: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_reset_leave_nothing_behind_in_the_store() {
    let mut stack = Stack::start().await;
    let client = stack.client();
    let login = log_in_by_polling(&client, "ada").await;
    let credential = credential(&login);
    let process = Process(stack.running(Program::V1).id());
    let before = process.usage();

    let flood = Flood::start(stack.addresses().gateway, &client, credential);
    let mut largest = before;
    // Work that waits is where cancelled calls would pile up.
    let lock = stack.store().lock();
    let start = Instant::now();
    while start.elapsed() < LOCKED {
        largest = largest.max(process.usage());
        tokio::time::sleep(PAUSE).await;
    }
    drop(lock);
    let mut durations = Vec::new();
    while start.elapsed() < LOCKED + UNLOCKED {
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
    assert!(slowest < IN_TIME, "{figures}");
    let bound = before.plus(Usage {
        threads: MAX_FURTHER_THREADS,
        files: MAX_STORE_FILES,
        sockets: MAX_FURTHER_SOCKETS,
    });
    assert_eq!(largest.max(bound), bound, "{figures}");
    // Blocking threads that have nothing to do end after 10 s, connections of the gateway some time later.
    let afterwards = Usage {
        sockets: usize::MAX,
        ..before.plus(Usage {
            threads: 4,
            files: MAX_STORE_FILES,
            sockets: 0,
        })
    };
    until("threads and files to be as before", || async {
        (process.usage().max(afterwards) == afterwards).then_some(())
    })
    .await;
    event(&client, credential).send().await.ok();
}

/// A write of the store's that nobody refuses, however many there are.
fn event<'c>(client: &'c SignedClient, credential: &str) -> Call<'c> {
    let event = client.post("/event/send").param("event", "flood");
    event.authorization(credential)
}

/// Many who send a signed request, a write or a read of the store's, and reset the connection a moment later.
struct Flood {
    is_over: Arc<AtomicBool>,
    clients: JoinSet<usize>,
}

impl Flood {
    fn start(gateway: SocketAddr, client: &SignedClient, credential: &str) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            let (client, credential) = (client.clone(), credential.to_owned());
            let is_over = Arc::clone(&is_over);
            clients.spawn(async move {
                let mut sent = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let turn = number + sent;
                    let unknown = format!("v1.{turn:043}");
                    let call = match turn % 3 {
                        0 => client.post("/login").signed(),
                        1 => client.post("/check").param("token", &unknown),
                        _ => event(&client, &credential),
                    };
                    // A debug build on a busy machine needs some of that to get to the store at all.
                    let pause = Duration::from_millis(turn as u64 * 7 % 40);
                    // A gateway that is full refuses the connection.
                    let _ = send_and_reset(gateway, &call.bytes(&[]), pause).await;
                    sent += 1;
                }
                sent
            });
        }
        Self { is_over, clients }
    }

    /// How many requests there were.
    async fn stop(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
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

/// What a process has, by proc(5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    fn plus(self, further: Self) -> Self {
        Self {
            threads: self.threads + further.threads,
            files: self.files + further.files,
            sockets: self.sockets + further.sockets,
        }
    }
}

struct Process(u32);

impl Process {
    fn usage(&self) -> Usage {
        let entries = |what: &str| {
            let folder = fs::read_dir(format!("/proc/{}/{what}", self.0));
            folder.expect("a running process has this").flatten()
        };
        let is_socket = |entry: &fs::DirEntry| {
            // It may be closed by now.
            fs::read_link(entry.path())
                .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        };
        let (sockets, files): (Vec<_>, Vec<_>) = entries("fd").partition(is_socket);
        Usage {
            threads: entries("task").count(),
            files: files.len(),
            sockets: sockets.len(),
        }
    }
}
