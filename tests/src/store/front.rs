//! What stands between the programs and a Postgres store: a pooler, or a proxy that takes abilities away.

use std::{
    env,
    fmt::Debug,
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use url::Url;

use crate::{
    folder::Folder,
    port::free_address,
    postgres::{LimitedEngine, Session},
    waiting::WAIT_TIMEOUT,
};

/// What the programs reach their Postgres through. Tests reach it directly.
#[derive(Clone, Debug)]
pub enum Front {
    /// Several servers, of which one takes writes: `HOST:PORT,HOST:PORT`.
    Hosts(String),
    /// `PgBouncer` with this `pool_mode`.
    PgBouncer(&'static str),
    /// A [`LimitedEngine`].
    Limited,
}

/// Environment variable with the front of a test run on Postgres: `session` and `transaction` are modes of `PgBouncer`.
pub const FRONT: &str = "SIGNPOST_TEST_FRONT";

impl Front {
    /// The front that this run uses, if any.
    ///
    /// # Panics
    ///
    /// When the environment variable has another value.
    #[must_use]
    pub fn chosen() -> Option<Self> {
        match env::var(FRONT).as_deref() {
            Err(_) => None,
            Ok("session") => Some(Self::PgBouncer("session")),
            Ok("transaction") => Some(Self::PgBouncer("transaction")),
            Ok("limited") => Some(Self::Limited),
            Ok(other) => panic!("{FRONT}: found {other:?}; allowed: session, transaction, limited"),
        }
    }

    /// Starts it before the database with this address. Returns what keeps it running, and the address for the programs.
    pub(super) fn start(&self, database: &str, password: &str) -> (Box<dyn Running>, String) {
        match self {
            Self::Hosts(hosts) => (Box::new(()), with_hosts(database, hosts)),
            Self::PgBouncer(mode) => {
                let pooler = PgBouncer::start(database, password, mode);
                let host = format!("127.0.0.1:{}", pooler.port);
                (Box::new(pooler), with_hosts(database, &host))
            }
            Self::Limited => {
                let server: Url = database.parse().expect("it names one server");
                let server = server.socket_addrs(|| None).expect("it names a port")[0];
                let engine = LimitedEngine::start(server);
                let host = engine.address().to_string();
                // What is encrypted cannot be changed.
                let address = with_hosts(database, &host) + "?sslmode=disable";
                (Box::new(engine), address)
            }
        }
    }
}

/// What keeps a front running until it is dropped.
pub(super) trait Running: Debug + Send + Sync {}
impl Running for () {}
impl Running for PgBouncer {}
impl Running for LimitedEngine {}

/// The address with other hosts. A `Url` has only one.
fn with_hosts(database: &str, hosts: &str) -> String {
    let (login, rest) = database.split_once('@').expect("it names a role");
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    format!("{login}@{hosts}{path}")
}

/// A running `PgBouncer`. It is killed when this is dropped.
#[derive(Debug)]
struct PgBouncer {
    child: Child,
    port: u16,
    folder: Folder,
}

impl PgBouncer {
    fn start(database: &str, password: &str, mode: &str) -> Self {
        let server: Url = database.parse().expect("it names one server");
        let folder = Folder::create();
        let port = free_address().port();
        let role = server.username();
        folder.write("users.txt", &format!("\"{role}\" \"{password}\"\n"));
        let (host, at) = (server.host_str(), server.port());
        let settings = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = plain\nauth_file = {folder}/users.txt\npool_mode = {mode}\n\
             max_client_conn = 500\ndefault_pool_size = 60\nserver_login_retry = 0.5\nlogfile = {folder}/log\n",
            host.expect("it names a server"),
            at.expect("it names a port"),
            folder = folder.path().display(),
        );
        let file = folder.write("pgbouncer.ini", &settings);
        let mut command = Command::new("pgbouncer");
        command.arg("--quiet").arg(file);
        command.env("PATH", "/usr/sbin:/usr/bin:/bin");
        // It refuses to run as root.
        let nobody = 65534;
        if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            let open = fs::Permissions::from_mode(0o777);
            fs::set_permissions(folder.path(), open).expect("its owner may change the mode");
            command.gid(nobody).uid(nobody);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn();
        let child = child.expect("pgbouncer is installed: scripts/prerequisites test installs it");
        let pooler = Self {
            child,
            port,
            folder,
        };
        pooler.wait_until_ready(&with_hosts(database, &format!("127.0.0.1:{port}")));
        pooler
    }

    fn wait_until_ready(&self, address: &str) {
        let start = Instant::now();
        while let Err(error) = Session::try_open(address) {
            let log = fs::read_to_string(self.folder.path().join("log"));
            assert!(start.elapsed() < WAIT_TIMEOUT, "{error:?}: {log:?}");
            thread::yield_now();
        }
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
