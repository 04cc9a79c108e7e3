//! The events, as clients read them.

use axum::body::BodyDataStream;
use futures_util::StreamExt;
use signpost_store::tables::audit::{self, Action, Audit, Entry};
use tokio::time::timeout;

use super::*;
use crate::api::streams::{MAX_STREAMS, MAX_STREAMS_OF_TOKEN};

const LONG: Duration = Duration::from_secs(30);

/// A stream that a client reads.
struct Received {
    body: BodyDataStream,
    text: String,
}

/// An event: its id and its data.
type Read = (String, Value);

impl Received {
    /// The next event with data; `None` at the end.
    async fn next(&mut self) -> Option<Read> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let mut lines = event.lines();
                    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                };
                let found = field("data").map(|data| {
                    assert_eq!(field("event"), Some("audit"));
                    let id = field("id").unwrap().to_owned();
                    (id, serde_json::from_str(data).unwrap())
                });
                self.text = rest.to_owned();
                if found.is_some() {
                    return found;
                }
            }
            let piece = timeout(LONG, self.body.next()).await.unwrap()?.unwrap();
            self.text += std::str::from_utf8(&piece).unwrap();
        }
    }

    /// The subjects of the next events.
    async fn subjects(&mut self, number: usize) -> Vec<String> {
        let mut subjects = Vec::new();
        for _ in 0..number {
            let (_, data) = self.next().await.unwrap();
            subjects.push(data["subject"].as_str().unwrap().to_owned());
        }
        subjects
    }
}

impl Scene {
    /// Opens a stream that continues after an event.
    async fn events(&self, token: &str, last: Option<&str>) -> Result<Received, Called> {
        let last: Vec<_> = last
            .map(|last| ("last-event-id", last))
            .into_iter()
            .collect();
        let request = request("GET", "/api/v1/events", token, &last, Body::empty());
        let response = self.respond(request).await;
        if response.status() != StatusCode::OK {
            return Err(Called::read(response).await);
        }
        assert_eq!(
            response.headers()[header::CONTENT_TYPE],
            "text/event-stream"
        );
        Ok(Received {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        })
    }
}

/// Adds a row for each subject, as any gateway or command would.
async fn write(store: &Store, subjects: impl Iterator<Item = String>) {
    let entry = |subject| Entry {
        subject,
        revision: 1,
        changes: r#"{"name":[null,"x"]}"#.to_owned(),
    };
    let audit = Audit {
        at: SystemClock.now(),
        author: author(),
        action: Action::CreateApp,
        entries: subjects.map(entry).collect(),
    };
    audit::add(store, audit).await.unwrap();
}

async fn write_one(store: &Store, subject: &str) {
    write(store, [subject.to_owned()].into_iter()).await;
}

/// Writes a row with this id: on Postgres, it may be committed after higher ones.
async fn write_at(store: &Store, id: i64) {
    let insert = "INSERT INTO audit (id, at, actor, origin, action, subject, revision, changes) \
                  VALUES ($1, 1, 'ada', 'test', 'app.update', $2, 1, '{}')";
    let values = signpost_store::values![id, format!("row {id}")];
    store.execute(insert, values).await.unwrap();
}

#[tokio::test]
async fn every_stream_gets_what_any_gateway_writes() {
    let test_store = TestStore::chosen();
    let (scene, other) = (Scene::new(&test_store).await, Scene::new(&test_store).await);
    let viewer = scene.token(Role::Viewer).await;
    let mut streams = Vec::new();
    for scene in [&scene, &scene, &other] {
        streams.push(scene.events(&viewer, None).await.unwrap());
    }
    write_one(&scene.store, "a").await;
    write_one(&other.store, "b").await;
    let listed = scene.get("/api/v1/audit?limit=2", &viewer).await;
    for stream in &mut streams {
        for listed in [&listed.body["items"][1], &listed.body["items"][0]] {
            let (id, data) = stream.next().await.unwrap();
            assert_eq!(&data, listed);
            assert_eq!(id, data["id"].to_string());
        }
    }
}

#[tokio::test]
async fn a_stream_continues_after_the_last_event() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    // More than a page.
    write(
        &scene.store,
        (0..1200).map(|number| format!("old {number}")),
    )
    .await;
    let mut stream = scene.events(&viewer, Some("0")).await.unwrap();
    let (mut expected, mut after) = (vec!["the viewer".to_owned()], String::new());
    expected.extend((0..1200).map(|number| format!("old {number}")));
    let mut found = Vec::new();
    for _ in 0..700 {
        let (id, data) = stream.next().await.unwrap();
        found.push(data["subject"].as_str().unwrap().to_owned());
        after = id;
    }
    drop(stream);
    let mut stream = scene.events(&viewer, Some(&after)).await.unwrap();
    found.extend(stream.subjects(501).await);
    assert_eq!(found, expected);
    write_one(&scene.store, "new").await;
    assert_eq!(stream.subjects(1).await, ["new"]);
    for malformed in ["x", "", "-1", "5,6"] {
        let called = scene.events(&viewer, Some(malformed)).await;
        assert_eq!(called.err().unwrap().code(), "param_invalid", "{malformed}");
    }
}

#[tokio::test]
async fn rows_that_are_committed_late_are_neither_missed_nor_repeated() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let mut stream = scene.events(&viewer, None).await.unwrap();
    for id in [102, 104, 105] {
        write_at(&scene.store, id).await;
    }
    // They are held for a while, since others may come before them.
    assert_eq!(stream.subjects(2).await, ["row 102", "row 104"]);
    let (last, _) = stream.next().await.unwrap();
    assert_eq!(last, "105,2-101,103");
    drop(stream);
    write_at(&scene.store, 103).await;
    write_at(&scene.store, 106).await;
    let mut stream = scene.events(&viewer, Some(&last)).await.unwrap();
    assert_eq!(stream.subjects(2).await, ["row 103", "row 106"]);
    write_at(&scene.store, 50).await;
    let (last, data) = stream.next().await.unwrap();
    assert_eq!(
        (&*last, &data["subject"]),
        ("106,2-49,51-101", &json!("row 50"))
    );
}

#[tokio::test]
async fn there_is_a_limit_on_streams() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let mut streams = Vec::new();
    let check_refused = |called: Called| {
        let refused = (called.status.as_u16(), called.code());
        assert_eq!(refused, (429, "rate_limited"));
        assert_eq!(called.headers[header::RETRY_AFTER], "5");
    };
    for number in 0..MAX_STREAMS / MAX_STREAMS_OF_TOKEN {
        let token = scene
            .token_of(&format!("viewer {number}"), Role::Viewer)
            .await;
        for _ in 0..MAX_STREAMS_OF_TOKEN {
            streams.push(scene.events(&token, None).await.unwrap());
        }
        check_refused(scene.events(&token, None).await.err().unwrap());
    }
    let other = scene.token(Role::Viewer).await;
    check_refused(scene.events(&other, None).await.err().unwrap());
    streams.pop();
    assert!(scene.events(&other, None).await.is_ok());
}

#[tokio::test]
async fn the_id_of_an_event_that_is_no_more_hides_nothing() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    // As after a restore of an older backup.
    let mut stream = scene.events(&viewer, Some("1000,5-7")).await.unwrap();
    write_one(&scene.store, "new").await;
    let (id, data) = stream.next().await.unwrap();
    assert_eq!((&*id, &data["subject"]), ("2", &json!("new")));
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let (viewer, admin) = (
        scene.token(Role::Viewer).await,
        scene.token(Role::Admin).await,
    );
    let old = (0..500).map(|number| number.to_string());
    write(&scene.store, old).await;
    let mut ended = scene.events(&viewer, None).await.unwrap();
    let mut slow = scene.events(&viewer, Some("0")).await.unwrap();
    assert!(slow.next().await.is_some());
    let mut other = scene.events(&admin, None).await.unwrap();
    let id = scene.tokens.list(None, 1).await.unwrap().0[0].id;
    scene
        .tokens
        .revoke(id, author(), SystemClock.now())
        .await
        .unwrap();
    while ended.next().await.is_some() {}
    // There is always an event for this client.
    let (mut interval, mut sent) = (tokio::time::interval(Duration::from_millis(100)), 1);
    while slow.next().await.is_some() {
        interval.tick().await;
        sent += 1;
    }
    assert!(sent < 500, "{sent}");
    write_one(&scene.store, "later").await;
    assert_eq!(other.subjects(2).await, ["the viewer", "later"]);
}

#[tokio::test]
async fn a_slow_client_is_cut_off_and_can_continue() {
    let test_store = TestStore::chosen();
    let scene = Scene::new(&test_store).await;
    let viewer = scene.token(Role::Viewer).await;
    let mut slow = scene.events(&viewer, Some("1")).await.unwrap();
    let mut fast = scene.events(&viewer, None).await.unwrap();
    write_one(&scene.store, "first").await;
    let (last, _) = slow.next().await.unwrap();
    let names: Vec<_> = (0..2600).map(|number| number.to_string()).collect();
    write(&scene.store, names.iter().cloned()).await;
    assert_eq!(fast.subjects(2601).await[1..], names);
    assert_eq!(slow.next().await, None);
    let mut again = scene.events(&viewer, Some(&last)).await.unwrap();
    assert_eq!(again.subjects(2600).await, names);
}
