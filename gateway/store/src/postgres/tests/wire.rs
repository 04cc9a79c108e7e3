//! A proxy to the server that can be blocked silently: no byte passes, and connections stay open.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::*;

/// Forwards bytes in both directions unless it is blocked.
struct Wire {
    address: SocketAddr,
    is_blocked: watch::Sender<bool>,
    /// Number of accepted connections.
    accepted: watch::Receiver<usize>,
}

impl Wire {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let is_blocked = watch::Sender::new(false);
        let blocked = is_blocked.subscribe();
        let (count, accepted) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                count.send_modify(|count| *count += 1);
                let (near_in, near_out) = near.into_split();
                let (far_in, far_out) = TcpStream::connect(server).await.unwrap().into_split();
                tokio::spawn(pass(near_in, far_out, blocked.clone()));
                tokio::spawn(pass(far_in, near_out, blocked.clone()));
            }
        });
        Self {
            address,
            is_blocked,
            accepted,
        }
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut is_blocked: watch::Receiver<bool>,
) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if is_blocked.wait_for(|blocked| !blocked).await.is_err()
            || to.write_all(&buffer[..length]).await.is_err()
        {
            break;
        }
    }
}

async fn through_a_wire(store: &TestStore) -> (PostgresDatabase, Wire) {
    let mut config = server(store).config().clone();
    let wire = Wire::to(SocketAddr::from(([127, 0, 0, 1], config.get_ports()[0]))).await;
    let mut through = Config::new();
    through
        .host("127.0.0.1")
        .port(wire.address.port())
        .user(config.get_user().unwrap())
        .password(config.get_password().unwrap())
        .dbname(config.get_dbname().unwrap());
    config = through;
    let address = PostgresAddress::from_config(config);
    let database = PostgresDatabase::open(&address, &with_heartbeat(), PROGRAM)
        .await
        .unwrap();
    (database, wire)
}

#[tokio::test]
async fn calls_to_a_silent_server_time_out_and_its_connections_are_closed() {
    let store = TestStore::postgres();
    let (database, wire) = through_a_wire(&store).await;
    database.session().await.unwrap();
    wire.is_blocked.send_replace(true);
    let began = Instant::now();
    let session = database.session().await.unwrap();
    let error = session.query("SELECT 1", &[]).await.unwrap_err();
    assert!(matches!(error, StoreError::TimedOut), "{error}");
    drop(session);
    // No connection is left, and none can be opened.
    let error = database.session().await.unwrap_err();
    assert!(matches!(error, StoreError::Busy), "{error}");
    // A statement, and a wait for a connection: 20.5 s on an idle machine.
    assert!(began.elapsed() < 2 * MAX_WAIT);
    wire.is_blocked.send_replace(false);
    let session = database.session().await.unwrap();
    session.query("SELECT 1", &[]).await.unwrap();
}

/// As a primary that is frozen, or whose machine is: its kernel still accepts connections.
#[tokio::test]
async fn of_several_hosts_one_that_accepts_and_does_not_answer_is_passed_over() {
    let store = TestStore::postgres();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let real = server(&store).config().clone();
    let mut both = Config::new();
    for port in [silent.local_addr().unwrap().port(), real.get_ports()[0]] {
        both.host("127.0.0.1").port(port);
    }
    both.user(real.get_user().unwrap())
        .password(real.get_password().unwrap())
        .dbname(real.get_dbname().unwrap());
    let address = PostgresAddress::from_config(both);
    let database = PostgresDatabase::open(&address, &settings(), PROGRAM)
        .await
        .unwrap();
    silent.accept().await.unwrap();
    // Later connections begin with the host that answered.
    let (one, _two) = (database.session().await, database.session().await.unwrap());
    one.unwrap().query("SELECT 1", &[]).await.unwrap();
    let tried = tokio::time::timeout(Duration::from_millis(50), silent.accept()).await;
    tried.expect_err("the silent host was tried again");
}

#[tokio::test]
async fn an_opening_that_gets_no_answer_after_it_has_connected_times_out() {
    let store = TestStore::postgres();
    let (database, wire) = through_a_wire(&store).await;
    let (mut client, _) = database.connect().await.unwrap();
    wire.is_blocked.send_replace(true);
    let limit = Duration::from_millis(100);
    let migrated = migrate::migrate(&mut client, "a", &SIGNPOST, PROGRAM, limit);
    let migrated = tokio::time::timeout(MAX_WAIT, migrated).await;
    let error = migrated.expect("it times out").unwrap_err();
    assert!(error.is_unavailable(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_detects_a_silent_server() {
    let store = TestStore::postgres();
    let (database, mut wire) = through_a_wire(&store).await;
    let (sender, changes) = std::sync::mpsc::channel();
    let clock: changes::Clock = Arc::new(Duration::default);
    let on_change = move |change| sender.send(change).unwrap();
    let _watch = changes::watch(&database, clock, on_change).unwrap();
    let before = *wire.accepted.borrow_and_update();
    wire.is_blocked.send_replace(true);
    let reconnected = wire.accepted.wait_for(|count| *count > before);
    let reconnected = tokio::time::timeout(MAX_WAIT, reconnected).await;
    drop(reconnected.expect("it reconnects").unwrap());
    wire.is_blocked.send_replace(false);
    for expected in [crate::Change::Lost, crate::Change::Restored] {
        assert_eq!(changes.recv_timeout(MAX_WAIT).unwrap(), expected);
    }
}
