//! The example APIs of JSON, as they are, behind the gateway: `FastAPI`, Django, Express, Go's net/http. CONTRACT 2, 3, 5.

use std::{fs, net::SocketAddr};

use end_to_end::{
    documents::root,
    folder::Folder,
    framework::{self, Server},
    http2_client::Http2Client,
    port::free_address,
    response::Response,
    signed_client::{Call, SignedClient},
    signer::sha256_hex,
    stack::Stack,
    waiting::WAIT_TIMEOUT,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

#[tokio::test]
async fn an_api_of_fastapi_moves_behind_the_gateway_as_it_is() {
    moves("fastapi", Protocol::Http1).await;
}

#[tokio::test]
async fn an_api_of_django_moves_behind_the_gateway_as_it_is() {
    moves("django", Protocol::Http1).await;
}

#[tokio::test]
async fn an_api_of_express_moves_behind_the_gateway_as_it_is() {
    moves("express", Protocol::Http1).await;
}

#[tokio::test]
async fn an_api_of_go_moves_behind_the_gateway_as_it_is() {
    moves("go", Protocol::Http1).await;
}

#[tokio::test]
async fn clients_of_http2_call_an_api_of_fastapi() {
    moves("fastapi", Protocol::Http2).await;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

/// The gateway's settings in the examples' documentation, with this backend.
fn settings(backend: SocketAddr) -> String {
    let text = fs::read_to_string(root().join("backends/examples/README.md")).unwrap();
    let settings = text.split("```toml\n").nth(1).unwrap();
    let settings = settings.split("```").next().unwrap();
    assert_eq!(settings.matches("127.0.0.1:8000").count(), 2);
    settings.replace("127.0.0.1:8000", &backend.to_string())
}

async fn moves(framework: &str, protocol: Protocol) {
    let (folder, address) = (Folder::create(), free_address());
    let Some(command) = framework::example("api", framework, address, folder.path()) else {
        return;
    };
    let _server = Server::start(command, address, "/orders/0").await;
    let stack = Stack::builder()
        .in_front_of_address(address)
        .gateway(&settings(address))
        .gateway("[[listen]]\naddress = \"$LISTEN\"\nprotocols = [\"http/1.1\", \"h2c\"]\n");
    let stack = stack.start().await;
    let http2 = match protocol {
        Protocol::Http1 => None,
        Protocol::Http2 => Some(Http2Client::open(stack.addresses().gateway).await),
    };
    let api = Api {
        client: stack.client(),
        http2,
    };
    api.assert_reads_json().await;
    api.assert_takes_an_upload().await;
    api.assert_serves_parts().await;
    api.assert_streams_events().await;
}

/// The API, as its clients call it.
struct Api {
    client: SignedClient,
    http2: Option<Http2Client>,
}

impl Api {
    fn call(&self, method: Method, path: &str) -> Call<'_> {
        self.client.call(method, &format!("/api{path}"))
    }

    /// A GET or HEAD, signed by parameters, which the API does not get.
    fn get(&self, path: &str) -> Call<'_> {
        self.call(Method::GET, path).signed()
    }

    async fn send(&self, call: Call<'_>) -> Response {
        let Some(http2) = &self.http2 else {
            return call.send().await;
        };
        let response = http2.send(&call).await.unwrap();
        Response {
            status: StatusCode::from_u16(response.status).unwrap(),
            headers: response.fields,
            body: response.body,
        }
    }

    /// The response to a call that succeeds with this status.
    async fn answered(&self, call: Call<'_>, status: u16) -> Response {
        let response = self.send(call).await;
        assert_eq!(response.status, status, "{}", response.summary());
        response
    }

    async fn assert_reads_json(&self) {
        let body = json!({ "name": "张 \u{1f600}", "price": 1.5, "tags": [], "sign": "mine" });
        let read = |method: &Method, query: &str, body: &Value| {
            let method = method.as_str();
            json!({ "method": method, "path": "/orders/5", "query": query, "body": body })
        };
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let call = self.call(method.clone(), "/orders/5").query("b", "2 3");
            // Of a signature in headers, `time` is the API's own.
            let call = call.query("time", "noon").json(&body);
            let response = self.answered(call, 200).await;
            let expected = read(&method, "b=2%203&time=noon", &body);
            assert_eq!(response.json(), expected);
        }
        for method in [Method::GET, Method::DELETE] {
            let call = self.call(method.clone(), "/orders/5").body("", "");
            let response = self.answered(call, 200).await;
            assert_eq!(response.json(), read(&method, "", &Value::Null));
        }
        let call = self.get("/orders/5").param("b", "2 3").param("a", "");
        let response = self.answered(call, 200).await;
        let expected = read(&Method::GET, "b=2%203&a=", &Value::Null);
        assert_eq!(response.json(), expected);
        self.answered(self.get("/orders/5"), 200).await;
        let wrong = self.call(Method::PUT, "/orders/5").json(&body);
        let response = self.send(wrong.sign_given(&"0".repeat(64))).await;
        response.problem(403, "sign_mismatch");
        let unsigned = self.call(Method::GET, "/orders/5").unsigned();
        self.send(unsigned).await.problem(403, "sign_missing");
    }

    async fn assert_takes_an_upload(&self) {
        let body = upload();
        let put = |path: &str| {
            let call = self.call(Method::PUT, path);
            call.body("application/octet-stream", body.clone())
        };
        let wrong = put("/files/a").sign_given(&"0".repeat(64));
        self.send(wrong).await.problem(403, "sign_mismatch");
        self.answered(self.get("/files/a"), 404).await;
        let response = self.answered(put("/files/a"), 200).await;
        assert_eq!(response.json(), json!({ "sha256": sha256_hex(&body) }));
    }

    async fn assert_serves_parts(&self) {
        let body = upload();
        let whole = self.answered(self.get("/files/a"), 200).await;
        assert!(whole.body == body, "{} bytes", whole.body.len());
        let tag = whole.header("etag").unwrap();
        let head = self.call(Method::HEAD, "/files/a").body("", "");
        let head = self.answered(head, 200).await;
        let length = body.len().to_string();
        for response in [&whole, &head] {
            assert_eq!(response.header("content-length"), Some(&*length));
            assert_eq!(response.header("etag"), Some(tag));
        }
        assert!(head.body.is_empty());
        let same = self.get("/files/a").header("If-None-Match", tag);
        let same = self.answered(same, 304).await;
        assert_eq!((same.header("etag"), &*same.body), (Some(tag), &b""[..]));
        let other = self.get("/files/a").header("If-None-Match", "\"other\"");
        self.answered(other, 200).await;
        let part = self
            .get("/files/a")
            .header("Range", "bytes=1000000-1000009");
        let part = self.answered(part, 206).await;
        let expected = format!("bytes 1000000-1000009/{length}");
        assert_eq!(part.header("content-range"), Some(&*expected));
        assert_eq!(part.body, body[1_000_000..=1_000_009]);
    }

    /// The API sends an event only once it was published, and that happens when the one before has arrived.
    async fn assert_streams_events(&self) {
        let mut events = Events::open(self).await;
        events.wait_for(": open\n\n").await;
        for number in 1..=3 {
            let event = json!({ "number": number });
            let publish = self.call(Method::POST, "/events").json(&event);
            self.answered(publish, 204).await;
            let data = events.wait_for("}\n\n").await;
            let data = data.rsplit("data: ").next().unwrap().trim();
            assert_eq!(serde_json::from_str::<Value>(data).unwrap(), event);
        }
    }
}

/// 20 MiB.
fn upload() -> Vec<u8> {
    (0..20_u32 << 20).map(|index| (index % 251) as u8).collect()
}

/// A stream of events, and what was read of it since the last one.
enum Events {
    Http1(reqwest::Response, String),
    Http2(h2::RecvStream, String),
}

impl Events {
    async fn open(api: &Api) -> Self {
        let call = api.get("/events");
        let (headers, events) = match &api.http2 {
            None => {
                let response = call.begin().await.unwrap();
                (
                    response.headers().clone(),
                    Self::Http1(response, String::new()),
                )
            }
            Some(http2) => {
                let (head, stream) = http2.begin_call(&call).await.unwrap().into_parts();
                (head.headers, Self::Http2(stream, String::new()))
            }
        };
        let media_type = headers["content-type"].to_str().unwrap();
        assert!(media_type.starts_with("text/event-stream"), "{media_type}");
        events
    }

    /// What arrives, up to this text.
    async fn wait_for(&mut self, end: &str) -> String {
        loop {
            let (Self::Http1(_, read) | Self::Http2(_, read)) = self;
            if let Some(at) = read.find(end) {
                return read.drain(..at + end.len()).collect();
            }
            let next = timeout(WAIT_TIMEOUT, self.next()).await;
            let piece = next.unwrap_or_else(|_| panic!("no {end:?} arrives"));
            let (Self::Http1(_, read) | Self::Http2(_, read)) = self;
            read.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    async fn next(&mut self) -> Vec<u8> {
        match self {
            Self::Http1(response, _) => response.chunk().await.unwrap().unwrap().to_vec(),
            Self::Http2(stream, _) => {
                let piece = stream.data().await.unwrap().unwrap();
                stream.flow_control().release_capacity(piece.len()).unwrap();
                piece.to_vec()
            }
        }
    }
}
