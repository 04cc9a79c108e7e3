//! Sign Doctor and the gateway get the same bytes: both reject them with the same problem, or both accept them.

use end_to_end::{
    clock::now_ms, recording_backend::RecordingBackend, signer::md5_hex, stack::Stack,
};
use serde_json::{Value, json};

const RULES: &str = "unknown = 'reject'\n[management.api]\n[sign]\nalways_signed = ['GET /signed']\n[limits]\nbody_bytes = 200\nquery_bytes = 300\nheaders = 12\nparams = 6\n[timeouts]\nhead_seconds = 5\nbody_seconds = 1\n";
const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// A request, and the code of its problem: empty for a 400 without a body, `None` if it is accepted.
type Case = (&'static str, Vec<u8>, Option<&'static str>);

struct Requests {
    app: String,
    key: String,
}

impl Requests {
    /// Pairs with the present time and their signature.
    fn signed(&self, pairs: &str) -> String {
        let pairs = format!("{pairs}&time={}", now_ms());
        let sign = md5_hex(&format!("{pairs}{}", self.key));
        format!("{pairs}&sign={sign}")
    }

    fn get(&self, target: &str, headers: &str) -> Vec<u8> {
        let app = &self.app;
        format!("GET {target} HTTP/1.1\r\nHost: a\r\nAcme-X-App: {app}\r\n{headers}\r\n").into()
    }

    fn post(&self, headers: &str, body: &str) -> Vec<u8> {
        let app = &self.app;
        format!("POST /e HTTP/1.1\r\nHost: a\r\nAcme-X-App: {app}\r\n{headers}\r\n{body}").into()
    }

    fn form(&self, body: &str) -> Vec<u8> {
        self.post(&format!("{FORM}Content-Length: {}\r\n", body.len()), body)
    }

    fn chunked(&self, body: &str) -> Vec<u8> {
        self.post(&format!("{FORM}Transfer-Encoding: chunked\r\n"), body)
    }

    fn accepted(&self) -> Vec<Case> {
        let pairs = self.signed("a=1");
        let chunks = format!("{:X};x=y\r\n{pairs}\r\n0\r\nT: u\r\n\r\n", pairs.len());
        let version_in_case = "acme-x-version: V1\r\n";
        vec![
            ("no parameters", self.get("/user", ""), None),
            (
                "signed",
                self.get(&format!("/user?{}", self.signed("a=1")), ""),
                None,
            ),
            (
                "an unusual path",
                self.get("/%75ser", version_in_case),
                None,
            ),
            ("a form", self.form(&self.signed("a=%20&b=")), None),
            ("chunks", self.chunked(&chunks), None),
            (
                "chunks without a byte",
                self.post("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"),
                None,
            ),
            (
                "an empty line ahead",
                [b"\r\n", &*self.get("/user", "")].concat(),
                None,
            ),
            (
                "HTTP/1.0",
                String::from_utf8(self.get("/user", ""))
                    .unwrap()
                    .replacen("1.1", "1.0", 1)
                    .into(),
                None,
            ),
            (
                "a page of the gateway",
                self.get("/problems/app_missing", ""),
                None,
            ),
        ]
    }

    fn heads(&self) -> Vec<Case> {
        let bare = |lines: &str| format!("GET /user HTTP/1.1\r\n{lines}\r\n").into_bytes();
        let app = format!("Acme-X-App: {}\r\n", self.app);
        let many = "X: y\r\n".repeat(20);
        let long = format!("/user?a={}", "1".repeat(400));
        let upper = self.app.to_uppercase();
        let in_case = if upper == self.app {
            self.app.to_lowercase()
        } else {
            upper
        };
        vec![
            ("no application", bare("Host: a\r\n"), Some("app_missing")),
            (
                "an ident in another case",
                bare(&format!("Host: a\r\nAcme-X-App: {in_case}\r\n")),
                Some("app_not_found"),
            ),
            (
                "a malformed ident",
                bare("Host: a\r\nAcme-X-App: a b\r\n"),
                Some("app_not_found"),
            ),
            (
                "an unknown ident",
                bare("Host: a\r\nAcme-X-App: unknown\r\n"),
                Some("app_not_found"),
            ),
            (
                "two applications",
                bare(&format!("Host: a\r\n{app}{app}")),
                Some("header_duplicated"),
            ),
            ("no Host", bare(&app), Some("target_invalid")),
            (
                "two Hosts",
                bare(&format!("Host: a\r\nHost: a\r\n{app}")),
                Some("target_invalid"),
            ),
            (
                "a malformed Host",
                bare(&format!("Host: a b\r\n{app}")),
                Some("target_invalid"),
            ),
            (
                "absolute form",
                self.get("http://a/user", ""),
                Some("target_invalid"),
            ),
            (
                "absolute form of another host",
                self.get("http://other.example/user", ""),
                Some("target_invalid"),
            ),
            (
                "a space in the target",
                self.get("/a b", ""),
                Some("target_invalid"),
            ),
            (
                "a bad escape in the path",
                self.get("/%zz", ""),
                Some("target_invalid"),
            ),
            (
                "a bad escape in the query",
                self.get("/user?a=%zz", ""),
                Some("params_malformed"),
            ),
            (
                "an ambiguous path",
                self.get("/a//b", ""),
                Some("target_ambiguous"),
            ),
            ("a long query", self.get(&long, ""), Some("uri_too_long")),
            (
                "many headers",
                self.get("/user", &many),
                Some("headers_too_large"),
            ),
            (
                "an unknown version",
                self.get("/user", "Acme-X-Version: v9\r\n"),
                Some("version_unknown"),
            ),
            (
                "two versions",
                self.get("/user", "Acme-X-Version: v1\r\nAcme-X-Version: v1\r\n"),
                Some("header_duplicated"),
            ),
            (
                "an upgrade",
                self.get("/user", "Connection: upgrade\r\nUpgrade: websocket\r\n"),
                Some("upgrade_not_supported"),
            ),
            (
                "a space before the colon",
                self.get("/user", "X : y\r\n"),
                Some(""),
            ),
            (
                "a folded header",
                self.get("/user", "X: y\r\n z\r\n"),
                Some(""),
            ),
            ("a line feed alone", self.get("/user", "X: y\n"), Some("")),
            (
                "no version of HTTP",
                b"GET /user\r\nHost: a\r\n\r\n".to_vec(),
                Some(""),
            ),
            (
                "HTTP/1.2",
                b"GET /user HTTP/1.2\r\nHost: a\r\n\r\n".to_vec(),
                Some(""),
            ),
            (
                "another method",
                b"PUT /user HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
                Some("method_not_allowed"),
            ),
            (
                "a method in lower case",
                b"get /user HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
                Some("method_not_allowed"),
            ),
            (
                "an incomplete head",
                b"GET /user HTTP/1.1\r\nHost: a\r\n".to_vec(),
                Some("request_timeout"),
            ),
        ]
    }

    fn bodies(&self) -> Vec<Case> {
        let pairs = self.signed("a=1");
        let large = format!("a={}", "1".repeat(300));
        let length = |length: &str| format!("{FORM}Content-Length: {length}\r\n");
        let json = "Content-Type: application/json\r\nContent-Length: 2\r\n";
        let charset =
            "Content-Type: application/x-www-form-urlencoded; charset=gbk\r\nContent-Length: 3\r\n";
        let both = format!("{FORM}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
        let chunk = |size: &str| format!("{size}\r\n{pairs}\r\n0\r\n\r\n");
        vec![
            (
                "JSON",
                self.post(json, "{}"),
                Some("content_type_unsupported"),
            ),
            (
                "another charset",
                self.post(charset, "a=1"),
                Some("content_type_unsupported"),
            ),
            (
                "no content type",
                self.post("Content-Length: 3\r\n", "a=1"),
                Some("content_type_unsupported"),
            ),
            (
                "an encoded body",
                self.post(
                    &format!("{FORM}Content-Encoding: gzip\r\nContent-Length: 3\r\n"),
                    "a=1",
                ),
                Some("content_type_unsupported"),
            ),
            (
                "a GET with a body",
                [&*self.get("/user", "Content-Length: 3\r\n"), b"a=1"].concat(),
                Some("body_not_allowed"),
            ),
            (
                "a GET with chunks",
                [
                    &*self.get("/user", "Transfer-Encoding: chunked\r\n"),
                    b"1\r\na\r\n0\r\n\r\n",
                ]
                .concat(),
                Some("body_not_allowed"),
            ),
            ("a large body", self.form(&large), Some("body_too_large")),
            (
                "large chunks",
                self.chunked(&format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len())),
                Some("body_too_large"),
            ),
            ("two lengths", self.post(&length("3, 4"), "a=1"), Some("")),
            ("length and chunks", self.post(&both, "0\r\n\r\n"), Some("")),
            ("a size that is none", self.chunked(&chunk("z")), Some("")),
            ("a size too small", self.chunked(&chunk("1")), Some("")),
            (
                "chunks without an end",
                self.chunked(&format!("{:x}\r\n{pairs}\r\n", pairs.len())),
                Some("request_timeout"),
            ),
            (
                "a body cut off",
                self.post(&length("90"), &pairs),
                Some("request_timeout"),
            ),
            (
                "a bad escape in the form",
                self.form("a=%zz"),
                Some("params_malformed"),
            ),
            (
                "many parameters",
                self.form(&self.signed("a=1&b=1&c=1&d=1&e=1")),
                Some("params_too_many"),
            ),
        ]
    }

    fn signatures(&self) -> Vec<Case> {
        let with = |pairs: &str| self.get(&format!("/user?{pairs}"), "");
        let now = now_ms();
        let (ahead, past) = (now + 3_600_000, now - 180_000);
        let at = |time: i64| {
            let pairs = format!("a=1&time={time}");
            format!("{pairs}&sign={}", md5_hex(&format!("{pairs}{}", self.key)))
        };
        vec![
            ("no time", with("a=1&sign=0a"), Some("time_missing")),
            ("seconds", with(&at(now / 1000)), Some("time_invalid")),
            (
                "two times",
                with(&format!("{}&time=1", at(now))),
                Some("param_duplicated"),
            ),
            (
                "a time to come",
                with(&at(ahead)),
                Some("time_out_of_window"),
            ),
            (
                "an old request",
                with(&at(past)),
                Some("time_out_of_window"),
            ),
            (
                "no sign",
                with(&format!("a=1&time={now}")),
                Some("sign_missing"),
            ),
            (
                "two signs",
                with(&format!("{}&sign=1", at(now))),
                Some("param_duplicated"),
            ),
            (
                "another sign",
                with(&format!("a=1&time={now}&sign={}", "0a".repeat(16))),
                Some("sign_mismatch"),
            ),
            (
                "no sign where one is asked for",
                self.get("/signed", ""),
                Some("sign_missing"),
            ),
            (
                "a form without its length",
                self.post(FORM, &self.signed("a=1")),
                None,
            ),
        ]
    }
}

/// The problem that the gateway has, as in [`Case`].
async fn problem_of_gateway(stack: &Stack, bytes: &[u8]) -> Option<String> {
    let mut connection = stack.raw().await;
    connection.send(bytes).await;
    let response = connection.response().await.expect("an answer");
    match response.status {
        200 => None,
        _ => Some(response.code().unwrap_or_default()),
    }
}

#[tokio::test]
async fn what_the_gateway_rejects_the_doctor_rejects_and_nothing_else() {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .multi()
        .in_front_of(&backend)
        .gateway(RULES);
    let stack = stack.start().await;
    let token = stack.create_token("viewer");
    let app = stack.create_application("shop", &[]);
    let requests = Requests {
        app: app.ident,
        key: app.key,
    };
    let groups = [
        Requests::accepted,
        Requests::heads,
        Requests::bodies,
        Requests::signatures,
    ];
    let mut wrong = Vec::new();
    // Each group is signed when its turn comes, since a signature is valid for a minute.
    for (name, bytes, expected) in groups.into_iter().flat_map(|group| group(&requests)) {
        let of_gateway = problem_of_gateway(&stack, &bytes).await;
        let request = json!({ "request": String::from_utf8(bytes).unwrap() });
        let found = stack.call_api(0, "doctor", &token, Some(request)).await;
        let found: Value = found.json().await.unwrap();
        let steps = found["steps"].as_array().unwrap();
        let failed = steps.iter().find(|step| step["state"] != "ok");
        let of_doctor = failed.map(|step| step["problem"]["code"].as_str().unwrap_or_default());
        if (of_gateway.as_deref(), of_doctor) != (expected, expected) {
            wrong.push(format!("{name}: the gateway {of_gateway:?}, the doctor {of_doctor:?}, expected {expected:?}"));
        }
        // Only age is no fault.
        let is_old = failed.is_some_and(|step| step["state"] == "old");
        assert_eq!(is_old, name == "an old request", "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
