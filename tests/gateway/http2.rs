//! HTTP/2 at the gateway, without TLS by prior knowledge: the same rules as for HTTP/1.1.

mod cases;
mod floods;
mod shared_connection;
mod strictness;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use end_to_end::{
    http2_client::{Http2Client, is_refused},
    program::Program,
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    stack::Stack,
    waiting::until,
};
use http::Request;

/// A listener for both protocols.
const LISTEN: &str = "[[listen]]\naddress = \"$LISTEN\"\nprotocols = [\"http/1.1\", \"h2c\"]\n";

async fn stack(config: &str) -> (Stack, RecordingBackend) {
    let backend = RecordingBackend::start().await;
    let stack = Stack::builder()
        .in_front_of(&backend)
        .gateway(&format!("{LISTEN}{config}"))
        .start()
        .await;
    (stack, backend)
}

async fn client(stack: &Stack) -> Http2Client {
    Http2Client::open(stack.addresses().gateway).await
}

fn request(method: &str, target: &str) -> http::request::Builder {
    let uri = format!("http://gateway.example{target}");
    Request::builder().method(method).uri(uri)
}

#[tokio::test]
async fn requests_reach_the_backend_byte_for_byte() {
    let (stack, backend) = stack("[versions.v1]\npaths = 'as_sent'\n").await;
    let client = client(&stack).await;
    let signer = stack.client();
    let get = signer
        .get("/a%2Fb;c/%7E")
        .param("x", "a b+c")
        .header("X-Kept", "1");
    let response = client.send(&get).await.unwrap();
    assert_eq!((response.status, response.code()), (200, None));
    assert_eq!(response.body, b"{\"recorded\":true}");
    assert!(response.fields.contains_key("date"));
    assert!(response.fields.contains_key("x-request-id"));
    assert!(!response.fields.contains_key("connection"));
    let post = signer.post("/form").param("field", "ü&=");
    assert_eq!(client.send(&post).await.unwrap().status, 200);
    // Both protocols are on one listener, and the backend sees no difference.
    assert_eq!(get.send().await.status, 200);
    let requests = backend.requests();
    let targets: Vec<_> = requests.iter().map(|one| &one.target).collect();
    assert_eq!(targets, [&get.parts().0, &post.parts().0, &get.parts().0]);
    assert_eq!(requests[1].body, post.parts().1.as_bytes());
    assert_eq!(requests[0].value("host"), Some("gateway.example"));
    assert_eq!(requests[0].value("x-kept"), Some("1"));
    assert_eq!(requests[0].value("x-forwarded-proto"), Some("http"));
    assert_eq!(requests[0].value("transfer-encoding"), None);
}

#[tokio::test]
async fn a_body_without_a_length_and_one_after_100_continue_arrive() {
    let (stack, backend) = stack("").await;
    let client = client(&stack).await;
    let signer = stack.client();
    let call = signer.post("/form").param("a", &"1".repeat(40_000));
    let (target, form) = call.parts();
    for expect in [None, Some("100-continue")] {
        let mut request =
            request("POST", &target).header("content-type", "application/x-www-form-urlencoded");
        if let Some(expect) = expect {
            request = request.header("expect", expect);
        }
        let request = request.body(()).unwrap();
        let response = client.send_request(request, form.clone().into_bytes());
        assert_eq!(response.await.unwrap().status, 200, "{expect:?}");
    }
    for request in backend.requests() {
        assert_eq!(request.body, form.as_bytes());
        let length = form.len().to_string();
        assert_eq!(request.value("content-length"), Some(&*length));
    }
}

#[tokio::test]
async fn requests_of_one_connection_are_served_at_the_same_time() {
    let (stack, backend) = stack("").await;
    let client = client(&stack).await;
    let delay = Duration::from_secs(5);
    backend.behave(Behaviour::responding(Delivery::After(delay)));
    let signer = stack.client();
    let (one, other) = (signer.get("/one"), signer.get("/other"));
    let calls = (0..50).flat_map(|_| [client.send(&one), client.send(&other)]);
    // One after another, few would arrive while this waits for the last one.
    let arrive = backend.request_number(100);
    let (responses, _) = tokio::join!(join_all(calls.collect()), arrive);
    for response in responses {
        assert_eq!(response.unwrap().status, 200);
    }
    assert_eq!(backend.requests().len(), 100);
}

/// Waits for all at once.
async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *done = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_large_response_arrives_whole() {
    let (stack, backend) = stack("").await;
    let body: Vec<u8> = (0..3_000_000_u32)
        .map(|number| number.to_le_bytes()[0])
        .collect();
    backend.behave(Behaviour {
        body: body.clone(),
        ..Behaviour::default()
    });
    let client = client(&stack).await;
    let response = client.send(&stack.client().get("/large")).await.unwrap();
    assert!(response.body == body, "{}", response.body.len());
    assert_eq!(response.fields["content-length"], "3000000");
}

#[tokio::test]
async fn a_response_that_breaks_off_is_no_response() {
    let (stack, backend) = stack("").await;
    backend.behave(Behaviour::responding(Delivery::BreakOff));
    let client = client(&stack).await;
    let error = client.send(&stack.client().get("/x")).await.unwrap_err();
    assert_eq!(error.reason(), Some(h2::Reason::INTERNAL_ERROR));
}

#[tokio::test]
async fn rejections_have_their_usual_responses_and_the_connection_goes_on() {
    let (stack, backend) = stack("").await;
    let client = client(&stack).await;
    let signer = stack.client();
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for (method, target, body, status, code) in [
        ("PUT", "/x", "", 405, "method_not_allowed"),
        ("PUT", "/x", "a=1", 405, "method_not_allowed"),
        ("GET", "/x", "a=1", 400, "body_not_allowed"),
        ("GET", "/x?a=%zz", "", 400, "params_malformed"),
        ("GET", "/x%2Fy", "", 400, "target_ambiguous"),
        ("GET", "/x?a=1", "", 403, "time_missing"),
        ("POST", "/x", "a=1", 403, "time_missing"),
    ] {
        let mut request = request(method, target);
        if method == "POST" {
            request = request.header(form[0].0, form[0].1);
        }
        let response = client.send_request(request.body(()).unwrap(), body.into());
        let response = response.await.unwrap();
        let found = (response.status, response.code());
        assert_eq!(found, (status, Some(code.to_owned())), "{method} {target}");
    }
    let large = "a".repeat(70_000);
    let request = request("POST", "/x").header(form[0].0, form[0].1);
    let response = client.send_request(request.body(()).unwrap(), large.into());
    let response = response.await.unwrap();
    assert_eq!(
        (response.status, response.code().as_deref()),
        (413, Some("body_too_large"))
    );
    assert_eq!(backend.recorded(), []);
    assert_eq!(client.send(&signer.get("/x")).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_reload_counts_from_the_next_stream_of_an_open_connection() {
    let (stack, _backend) = stack("").await;
    let client = client(&stack).await;
    let signer = stack.client();
    let call = signer.get("/x").query("a", &"1".repeat(100));
    assert_eq!(client.send(&call).await.unwrap().status, 200);
    stack.configure(
        Program::Gateway,
        &format!(
            "{}[limits]\nquery_bytes = 64\n",
            LISTEN.replace("$LISTEN", &stack.addresses().gateway.to_string())
        ),
    );
    let reloaded = stack.reload(Program::Gateway);
    assert!(reloaded.status.success(), "{reloaded:?}");
    let response = client.send(&call).await.unwrap();
    assert_eq!(
        (response.status, response.code().as_deref()),
        (414, Some("uri_too_long"))
    );
}

#[tokio::test]
async fn a_stop_loses_no_request() {
    let (mut stack, backend) = stack("[shutdown]\ndrain_delay_seconds = 1\n").await;
    let delay = Duration::from_millis(20);
    backend.behave(Behaviour::responding(Delivery::After(delay)));
    let address = stack.addresses().gateway;
    let signer = stack.client();
    let busy = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let (signer, busy) = (signer.clone(), Arc::clone(&busy));
            tokio::spawn(async move {
                let client = Http2Client::open(address).await;
                let mut answered = 0;
                // Until the GOAWAY. Every request that it did not refuse has a response.
                while !client.is_closed().await {
                    match client.send(&signer.get("/x")).await {
                        Ok(response) => assert_eq!(response.status, 200),
                        Err(error) if is_refused(&error) => break,
                        Err(error) => panic!("after {answered}: {error}"),
                    }
                    answered += 1;
                    if answered == 5 {
                        busy.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    until("all clients to be busy", || async {
        (busy.load(Ordering::Relaxed) == tasks.len()).then_some(())
    })
    .await;
    stack.running(Program::Gateway).terminate();
    for task in tasks {
        task.await.unwrap();
    }
    until("the gateway ends", || {
        let ended = stack.running(Program::Gateway).exit_status();
        async move { ended }
    })
    .await;
}
