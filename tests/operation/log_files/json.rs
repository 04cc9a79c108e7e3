//! Lines in JSON: each is one flat object, whose message can be read alone.

use std::{collections::BTreeMap, fmt, fs};

use end_to_end::{
    logins::{log_in_by_polling, log_in_by_redirect},
    program::Program,
    raw_connection::request,
    stack::Stack,
    waiting::until,
};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::Value;

/// An object without duplicate keys, none of which has an object or a list.
struct Line(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Line;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a flat object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
                let mut line = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if value.is_object() || value.is_array() {
                        return Err(A::Error::custom(format!("{key} is not flat")));
                    }
                    if line.insert(key.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("{key} is there twice")));
                    }
                }
                Ok(Line(line))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// The lines of a log. A message is the event's text alone; an access line's says which request got which status.
fn lines(log: &str) -> Vec<Line> {
    let parse = |line: &str| {
        let parsed: Line =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for key in ["timestamp", "level", "target", "message"] {
            assert!(parsed.0.contains_key(key), "{key}: {line}");
        }
        let value = |key: &str| parsed.0.get(key).map(text);
        let message = text(&parsed.0["message"]);
        if parsed.0["target"] == "signpost::access" {
            let [method, path, status] =
                ["http.method", "http.path", "http.status_code"].map(|key| value(key).unwrap());
            assert_eq!(message, format!("answered {method} {path} with {status}"));
        }
        for key in parsed.0.keys() {
            assert!(!message.contains(&format!(" {key}=")), "{key}: {line}");
        }
        parsed
    };
    log.lines().map(parse).collect()
}

/// Waits until the gateway has logged this once more than `before`.
async fn logged_again(stack: &Stack, text: &str, before: &str) {
    let before = before.matches(text).count();
    until(&format!("one more line with {text}"), || async {
        let count = stack.log(Program::Gateway).matches(text).count();
        (count > before).then_some(())
    })
    .await;
}

/// Requests of all kinds, and events of operation.
async fn keep_busy(stack: &mut Stack) {
    let client = stack.client();
    log_in_by_redirect(&client, "ada").await;
    log_in_by_polling(&client, "grace").await;
    let anonymous = client.get("/user").version("v2").send().await;
    assert_eq!(anonymous.status, 401);
    let late = client.get("/x").param("a", "1").time("1732104000");
    late.send().await.problem(400, "time_invalid");
    let unreachable = client.get("/x").version("v3").send().await;
    unreachable.problem(502, "backend_unreachable");
    let mut connection = stack.raw().await;
    let quoted = request("BREW", "/quote\"and\\", &[], b"");
    connection.send(&quoted).await;
    assert!(connection.response().await.unwrap().status >= 400);
    for program in [Program::Gateway, Program::V1] {
        let valid = fs::read_to_string(stack.config(program)).unwrap();
        fs::write(stack.config(program), format!("unknown_key = 1\n{valid}")).unwrap();
        assert!(!stack.reload(program).status.success());
        fs::write(stack.config(program), &valid).unwrap();
        stack.configure(program, "threads = 7\n[shutdown]\ngrace_seconds = 9");
        assert!(stack.reload(program).status.success());
    }
    stack.running(Program::Gateway).reopen_logs();
    // One of two backends ends, and returns.
    let before = stack.log(Program::Gateway);
    stack.running(Program::V2).terminate();
    stack.wait_for_exit(Program::V2).await;
    logged_again(stack, "checks and is unhealthy", &before).await;
    stack.restart(Program::V2).await;
    logged_again(stack, "passes its checks again", &before).await;
}

#[tokio::test]
async fn each_line_is_a_flat_object_whose_message_can_be_read_alone() {
    let json = "[log]\nformat = \"json\"\nfilter = \"debug\"";
    let gateway = "[versions.v3]\nbackend = \"127.0.0.1:1\"\n\
                   [versions.v2.health]\ninterval_seconds = 1\nunhealthy_after = 1";
    let builder = Stack::builder().several(Program::V2, 2);
    let builder = builder.gateway(json).gateway(gateway).backends(json);
    let mut stack = builder.start().await;
    keep_busy(&mut stack).await;
    for program in [Program::Gateway, Program::V1, Program::V2] {
        stack.running(program).terminate();
        stack.wait_for_exit(program).await;
    }
    let gateway = lines(&stack.log(Program::Gateway));
    let access = |line: &&Line| line.0["target"] == "signpost::access";
    for line in gateway.iter().filter(access) {
        for key in [
            "request.id",
            "client.addr",
            "http.method",
            "http.path",
            "size_bytes",
            "duration_ms",
        ] {
            assert!(line.0.contains_key(key), "{key}");
        }
    }
    assert!(gateway.iter().filter(access).count() > 10);
    for program in [Program::V1, Program::V2] {
        let lines = lines(&stack.log(program));
        let has_id = |line: &&Line| line.0.contains_key("request.id");
        assert!(lines.iter().filter(access).all(|line| has_id(&line)));
        assert!(lines.iter().any(|line| access(&line)));
    }
}
