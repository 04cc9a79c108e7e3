//! Bodies that strangers send: the memory and the room of a gateway have bounds, and all of it comes back.

use std::{fs, net::Ipv4Addr};

use end_to_end::{
    folder::Folder,
    metrics::Scrape,
    program::Program,
    raw_connection::{RawConnection, RawResponse, request},
    raw_http2::{END_STREAM, RawHttp2, Reaction, fields, frame, headers, kind},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::Stack,
    waiting::until,
};
use reqwest::Method;
use tokio::task::JoinSet;

const MIB: usize = 1024 * 1024;

/// The room has a share of 4 MiB for each network, and bodies have up to 1 GiB.
const SETTINGS: &str = "[sign]
carrier = 'both'
[spool]
folder = '$SPOOL'
bytes = 16777216
[versions.v1]
methods = ['GET', 'PUT']
bodies = 'any'
max_body = 1073741824
[[listen]]
address = '$LISTEN'
protocols = ['http/1.1', 'h2c']
";

struct Setup {
    stack: Stack,
    folder: Folder,
    backend: RecordingBackend,
}

impl Setup {
    async fn start(settings: &str) -> Self {
        let (backend, folder) = (RecordingBackend::start().await, Folder::create());
        let spool = folder.path().to_str().unwrap();
        let stack = Stack::builder()
            .in_front_of(&backend)
            .gateway(&SETTINGS.replace("$SPOOL", spool))
            .gateway(settings)
            .start()
            .await;
        Self {
            stack,
            folder,
            backend,
        }
    }

    /// The head of a signed PUT of `body`, with these lines.
    fn head(&self, target: &str, body: &[u8], lines: &[&str]) -> Vec<u8> {
        let call = self
            .stack
            .client()
            .call(Method::PUT, target)
            .signed_head(body);
        let (target, signed) = call;
        let signed = signed
            .iter()
            .map(|(name, value)| format!("{name}: {value}"));
        let signed: Vec<_> = signed.collect();
        let lines: Vec<_> = lines
            .iter()
            .copied()
            .chain(signed.iter().map(String::as_str))
            .collect();
        request("PUT", &target, &lines, b"")
    }

    fn whole(&self, target: &str, body: &[u8]) -> Vec<u8> {
        let length = format!("Content-Length: {}", body.len());
        [&self.head(target, body, &[&length]), body].concat()
    }

    /// The bytes that bodies have: memory and room.
    async fn taken(&self) -> [usize; 2] {
        let scrape = Scrape::of(self.stack.addresses().management).await;
        ["memory", "spool"].map(|place| {
            let bytes = scrape.value("signpost_body_bytes", &[("where", place)]);
            bytes.expect("the family has both") as usize
        })
    }

    async fn wait_for(&self, taken: [usize; 2]) {
        until(&format!("{taken:?} to be taken"), || async {
            (self.taken().await == taken).then_some(())
        })
        .await;
    }

    /// Files have no names, whatever becomes of them.
    fn assert_no_file(&self) {
        assert_eq!(fs::read_dir(self.folder.path()).unwrap().count(), 0);
    }

    async fn connect(&self, client: usize) -> RawConnection {
        let [.., high, low] = client.to_be_bytes();
        let source = Ipv4Addr::new(127, 1, high, low);
        RawConnection::open_from(source.into(), self.stack.addresses().gateway).await
    }
}

fn assert_is_full(response: Option<RawResponse>) {
    let response = response.unwrap();
    assert_eq!(
        response.code().as_deref(),
        Some("spool_full"),
        "{}",
        response.head
    );
    assert_eq!(response.status, 503);
    let retry = response.header("retry-after").unwrap();
    assert!(retry.parse::<u32>().unwrap() >= 1);
}

#[tokio::test]
async fn a_flood_of_uploads_takes_its_memory_and_its_room_alone() {
    const UPLOADS: usize = 160;
    const BODY: usize = 2 * MIB;
    let mut setup = Setup::start("spool.bytes = 67108864").await;
    let body: Vec<_> = (0..BODY).map(|index| (index % 251) as u8).collect();
    let running = setup.stack.running(Program::Gateway);
    let before = running.resident_kib();
    running.reset_peak();
    let mut uploads = JoinSet::new();
    for number in 0..UPLOADS {
        let mut connection = setup.connect(number).await;
        let bytes = setup.whole("/upload", &body);
        uploads.spawn(async move {
            connection.send(&bytes).await;
            connection.response().await
        });
    }
    let mut others = 0;
    let client = setup.stack.client();
    let mut passed = 0;
    while let Some(response) = uploads.join_next().await {
        let response = response.unwrap();
        match response.as_ref().map(|response| response.status) {
            Some(200) => passed += 1,
            // The client was still sending: it may see the close before the response.
            None => {}
            _ => assert_is_full(response),
        }
        // Meanwhile others are served.
        assert_eq!(client.get("/other").send().await.status, 200);
        others += 1;
    }
    assert!(passed > 0 && others == UPLOADS);
    let took = setup.stack.running(Program::Gateway).peak_kib() - before;
    // A place, what is read ahead, and connections: not the bodies, which have 320 MiB.
    let bound = (UPLOADS * 160 + 64 * 1024) as u64;
    assert!(took < bound, "{took} KiB of {bound}");
    setup.wait_for([0, 0]).await;
    setup.assert_no_file();
    let sizes = setup
        .backend
        .requests()
        .into_iter()
        .filter(|one| one.method == "PUT");
    assert_eq!(sizes.filter(|one| one.body == body).count(), passed);
}

#[tokio::test]
async fn a_flood_of_announced_bodies_takes_nothing_and_ends() {
    const CONNECTIONS: usize = 1500;
    let mut setup = Setup::start("").await;
    let running = setup.stack.running(Program::Gateway);
    let before = running.resident_kib();
    running.reset_peak();
    let mut waiting = JoinSet::new();
    for number in 0..CONNECTIONS {
        let mut connection = setup.connect(number).await;
        let length = "Content-Length: 1073741824";
        connection
            .send(&setup.head("/upload", b"", &[length]))
            .await;
        waiting.spawn(async move { connection.response().await });
    }
    assert_eq!(setup.taken().await, [0, 0]);
    // Each is below the smallest rate after five seconds.
    for response in waiting.join_all().await {
        assert_eq!(response.unwrap().status, 408);
    }
    let took = setup.stack.running(Program::Gateway).peak_kib() - before;
    assert!(took < 32 * CONNECTIONS as u64, "{took} KiB");
    assert_eq!(setup.backend.bytes(), 0);
}

#[tokio::test]
async fn a_full_room_is_told_and_comes_back() {
    let setup = Setup::start("").await;
    let mut holding = Vec::new();
    for client in 0..4 {
        let mut connection = setup.connect(client).await;
        let head = setup.head("/upload", b"", &["Content-Length: 8388608"]);
        connection
            .send(&[&head[..], &vec![7; 4 * MIB - 1]].concat())
            .await;
        holding.push(connection);
    }
    setup.wait_for([4 * 64 * 1024, 16 * MIB]).await;
    let body = vec![7; 100_000];
    let mut fifth = setup.connect(5).await;
    fifth.send(&setup.whole("/upload", &body)).await;
    assert_is_full(fifth.response().await);
    // What fits into memory needs no room.
    let mut small = setup.connect(6).await;
    small.send(&setup.whole("/small", &body[..60_000])).await;
    assert_eq!(small.response().await.unwrap().status, 200);
    drop(holding);
    setup.wait_for([0, 0]).await;
    let mut sixth = setup.connect(5).await;
    sixth.send(&setup.whole("/upload", &body)).await;
    assert_eq!(sixth.response().await.unwrap().status, 200);
    setup.assert_no_file();
}

#[tokio::test]
async fn a_folder_that_is_gone_is_told_once_and_harms_no_other_request() {
    let setup = Setup::start("").await;
    fs::remove_dir_all(setup.folder.path()).unwrap();
    let body = vec![7; 100_000];
    for client in 0..20 {
        let mut connection = setup.connect(client).await;
        connection.send(&setup.whole("/upload", &body)).await;
        assert_is_full(connection.response().await);
    }
    let client = setup.stack.client();
    let small = client.call(Method::PUT, "/small");
    assert_eq!(small.body("", "a").send().await.status, 200);
    setup.wait_for([0, 0]).await;
    let log = setup.stack.log_with(Program::Gateway, "No such file").await;
    let lines = log.lines().filter(|line| line.contains("No such file"));
    let lines: Vec<_> = lines
        .filter(|line| line.contains("ERROR") || line.contains("WARN"))
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
}

#[tokio::test]
async fn a_client_that_leaves_in_any_phase_leaves_nothing() {
    let setup = Setup::start("sign.window_seconds = 300").await;
    setup.backend.behave(Behaviour::responding(Delivery::Never));
    let body = vec![7; 2 * MIB];
    let whole = setup.whole("/upload", &body);
    let head = whole.len() - body.len();
    let small = setup.whole("/small", &body[..40_000]);
    for (bytes, taken) in [
        (&whole[..head - 1], [0, 0]),
        (&whole[..head], [0, 0]),
        (&whole[..head + 10_000], [0, 0]),
        (&whole[..head + 40_000], [64 * 1024, 0]),
        (&whole[..head + 100_000], [64 * 1024, MIB]),
        (&whole[..whole.len() - 1], [64 * 1024, 2 * MIB]),
        // Forwarded: the backend does not answer.
        (&whole[..], [0, 2 * MIB]),
        (&small[..], [64 * 1024, 0]),
    ] {
        let mut connection = setup.connect(1).await;
        connection.send(bytes).await;
        setup.wait_for(taken).await;
        drop(connection);
        setup.wait_for([0, 0]).await;
    }
    setup.assert_no_file();
}

#[tokio::test]
async fn an_upload_ends_with_its_time() {
    // Before, the smallest rate would have allowed a stranger hours: it had sent enough at once.
    for (toml, length) in [
        ("timeouts.body_seconds = 15", 100_000),
        // What is remembered must be whole while its signature could come again.
        (
            "sign.window_seconds = 15\nsign.replay = 'reject'",
            4_000_000,
        ),
    ] {
        let setup = Setup::start(toml).await;
        let mut stalling = setup.connect(1).await;
        let length = format!("Content-Length: {length}");
        let head = setup.head("/upload", b"", &[&length]);
        stalling.send(&[&head[..], &vec![7; 90_000]].concat()).await;
        setup.wait_for([64 * 1024, MIB]).await;
        let response = stalling.response().await.unwrap();
        assert_eq!(response.code().as_deref(), Some("request_timeout"));
        setup.wait_for([0, 0]).await;
    }
}

#[tokio::test]
async fn streams_of_one_connection_have_the_share_of_its_network() {
    const STREAMS: u32 = 60;
    let setup = Setup::start("timeouts.body_seconds = 60").await;
    let body = vec![7; MIB];
    let names: Vec<_> = (0..STREAMS)
        .map(|index| (1 + 2 * index, format!("/{index}")))
        .collect();
    let mut heads = Vec::new();
    for (stream, target) in &names {
        let (_, signed) = setup
            .stack
            .client()
            .call(Method::PUT, target)
            .signed_head(&body);
        let signed = signed
            .iter()
            .map(|(name, value)| (name.to_lowercase(), value));
        let signed: Vec<_> = signed.collect();
        let further: Vec<_> = signed
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect();
        heads.extend(headers(*stream, 0, &fields("PUT", target, &further)));
    }
    let mut client = RawHttp2::open(setup.stack.addresses().gateway).await;
    client.send(&heads).await;
    // As much as the windows allow without an update: the bodies of a few streams.
    let piece = vec![7; 15_000];
    for _ in 0..4 {
        for (stream, _) in names.iter().take(17) {
            client.send(&frame(kind::DATA, 0, *stream, &piece)).await;
        }
    }
    setup.wait_for([17 * 64 * 1024, 0]).await;
    let other = setup.stack.client().get("/other").send().await;
    assert_eq!(other.status, 200);
    drop(client);
    setup.wait_for([0, 0]).await;
    // A stream whose body has another length than it says.
    let mut client = RawHttp2::open(setup.stack.addresses().gateway).await;
    let mut stream = 1;
    for (said, ends) in [
        (10, 9),
        (10, 11),
        (0, 1),
        (70_000, 69_999),
        (70_000, 70_001),
    ] {
        let (_, signed) = setup
            .stack
            .client()
            .call(Method::PUT, "/length")
            .signed_head(&body[..ends]);
        let said = format!("{said}");
        let mut further = vec![("content-length".to_owned(), said)];
        further.extend(
            signed
                .into_iter()
                .map(|(name, value)| (name.to_lowercase(), value)),
        );
        let further: Vec<_> = further
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect();
        client
            .send(&headers(stream, 0, &fields("PUT", "/length", &further)))
            .await;
        let pieces: Vec<_> = body[..ends].chunks(16_000).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let flags = if index + 1 == pieces.len() {
                END_STREAM
            } else {
                0
            };
            client.send(&frame(kind::DATA, flags, stream, piece)).await;
        }
        let reaction = client.reaction(stream).await;
        assert!(
            !matches!(reaction, Reaction::Response(200, _)),
            "{ends}: {reaction:?}"
        );
        stream += 2;
    }
    let arrived = setup.backend.requests();
    assert!(
        arrived.iter().all(|one| one.target == "/other"),
        "{arrived:?}"
    );
    setup.wait_for([0, 0]).await;
}
