//! A night of incidents: what the commands, the API and the console say of each, so that an operator finds the cause.

use std::fs;

use end_to_end::{
    port::free_address,
    program::{Program, output_text},
    recording_backend::{Behaviour, Delivery, RecordingBackend},
    signed_client::http_client,
    stack::{Application, Stack},
    waiting::until,
};
use reqwest::header::{COOKIE, SET_COOKIE};
use serde_json::{Value, json};

/// Two gateways; v1 has a canary that gets all of its requests, and `v2` is used by clients.
struct Night {
    stack: Stack,
    own: RecordingBackend,
    canary: RecordingBackend,
    token: String,
    cookie: String,
    shop: Application,
}

impl Night {
    async fn begin() -> Self {
        let (own, canary) = (
            RecordingBackend::start().await,
            RecordingBackend::start().await,
        );
        let keys = format!(
            "unknown = 'reject'\n[management.api]\n[management.console]\n\
             [[versions.v1.canaries]]\nname = 'next'\npercent = 100\nbackend = '{}'\n",
            canary.address()
        );
        let stack = Stack::builder().in_front_of(&own).multi().gateway(&keys);
        let other = "[limits]\nparams = 77\n";
        let stack = stack
            .several(Program::Gateway, 2)
            .only(Program::Gateway.number(1), other);
        let stack = stack.start().await;
        let token = stack.create_token("admin");
        let shop = stack.create_application("The shop", &[]);
        let mut night = Self {
            stack,
            own,
            canary,
            token,
            cookie: String::new(),
            shop,
        };
        let form = [("token", &*night.token), ("to", "/")];
        let signed_in = http_client()
            .post(night.console("/sign-in"))
            .form(&form)
            .send()
            .await
            .unwrap();
        let cookie = signed_in.headers()[SET_COOKIE].to_str().unwrap();
        night.cookie = cookie.split(';').next().unwrap().to_owned();
        night
    }

    fn console(&self, path: &str) -> String {
        format!("http://{}{path}", self.stack.addresses().management)
    }

    /// The text of a page of the console, without its tags.
    async fn page(&self, path: &str) -> String {
        let page = http_client()
            .get(self.console(path))
            .header(COOKIE, &self.cookie);
        let page = page.send().await.unwrap().text().await.unwrap();
        let texts = page
            .split('<')
            .filter_map(|part| Some(part.split_once('>')?.1));
        let text = texts.collect::<Vec<_>>().concat();
        text.replace("&quot;", "\"").replace("&amp;", "&")
    }

    async fn api(&self, path: &str) -> Value {
        let answered = self.stack.get_api(0, path, &self.token).await;
        answered.json().await.unwrap()
    }

    fn command(&self, arguments: &[&str]) -> String {
        output_text(&self.stack.command(arguments))
    }

    /// Waits until each face says all words: the command, the API's path, the console's page.
    async fn said(&self, command: &[&str], (path, page): (&str, &str), words: &[&str]) {
        until(
            &format!("{command:?}, {path}, {page} to say {words:?}"),
            || async {
                let faces = [
                    self.command(command),
                    self.api(path).await.to_string(),
                    self.page(page).await,
                ];
                let all = faces
                    .iter()
                    .all(|face| words.iter().all(|word| face.contains(word)));
                all.then_some(())
            },
        )
        .await;
    }

    /// A request that fails, by its id.
    async fn explained(&self, id: &str, words: &[&str]) {
        let (path, page) = (format!("rejections/{id}"), format!("/doctor/{id}"));
        self.said(&["explain", id], (&path, &page), words).await;
    }
}

fn id_of(problem: &Value) -> &str {
    problem["request_id"].as_str().unwrap()
}

#[tokio::test]
async fn each_incident_of_a_night_is_found_by_each_face() {
    let mut night = Night::begin().await;
    let client = night.stack.client_of(&night.shop);
    let call = |version: &str| {
        client
            .get("/orders")
            .param("id", "hidden-4711")
            .version(version)
    };

    // A canary passes for healthy, and answers only 500.
    night.canary.behave(Behaviour {
        head: "HTTP/1.1 500 Internal Server Error\r\n".to_owned(),
        ..Behaviour::default()
    });
    until("the canary to have answered", || async {
        call("v1").send().await;
        (!night.canary.requests().is_empty()).then_some(())
    })
    .await;
    night
        .said(
            &["versions", "list"],
            ("versions", "/versions"),
            &["v1 (canary next)", "5xx"],
        )
        .await;
    let metrics = http_client()
        .get(night.console("/metrics"))
        .send()
        .await
        .unwrap();
    let metrics = metrics.text().await.unwrap();
    let counted =
        "signpost_backend_responses_total{backend=\"v1 (canary next)\",status_class=\"5xx\"} ";
    let count = metrics.split(counted).nth(1).unwrap();
    assert!(!count.starts_with('0'), "{count}");

    // A backend hangs up: the client has an id only.
    night.own.behave(Behaviour::responding(Delivery::HangUp));
    let failed = call("v2").send().await;
    let problem = failed.problem(502, "backend_unreachable");
    let address = night.own.address().to_string();
    night
        .explained(
            id_of(&problem),
            &["backend_unreachable", &address, "the backend failed", "v2"],
        )
        .await;
    night.own.behave(Behaviour::default());

    // One customer has a wrong key since its deployment.
    let wrong = client.with_key(&"0".repeat(32));
    for _ in 0..3 {
        let rejected = wrong.get("/orders").param("id", "hidden-4711").send().await;
        let problem = rejected.problem(403, "sign_mismatch");
        let title = problem["title"].as_str().unwrap();
        night
            .explained(id_of(&problem), &[title, &night.shop.ident])
            .await;
    }
    until("the overview to name the customer", || async {
        let traffic = night.api("traffic").await;
        let counted = json!([{ "app": night.shop.ident, "requests": 3 }]);
        let page = night.page("/").await;
        (traffic["rejected_apps"] == counted && page.contains(&night.shop.ident)).then_some(())
    })
    .await;

    // A client asks for a version that does not exist.
    let unknown = call("2").send().await.problem(400, "version_unknown");
    night
        .explained(id_of(&unknown), &["version_unknown", "v1, v2"])
        .await;

    // Two gateways on one host, and one file that nobody has copied.
    let addresses = [0, 1].map(|number| {
        night
            .stack
            .addresses()
            .of(Program::Gateway.number(number))
            .to_string()
    });
    night
        .said(
            &["gateways"],
            ("gateways", "/"),
            &[&addresses[0], &addresses[1], "limits.params"],
        )
        .await;

    // Somebody wants to remove v2, which the shop has used; and then writes nonsense.
    let file = night.stack.config(Program::Gateway);
    let before = fs::read_to_string(&file).unwrap();
    let mut table: toml::Table = before.parse().unwrap();
    table["versions"].as_table_mut().unwrap().remove("v2");
    fs::write(&file, table.to_string()).unwrap();
    let said = "versions.v2: it is removed, and 1 applications have sent requests to it in the last 7 days";
    night
        .said(
            &["check", "--diff"],
            ("config/check", "/settings/reload"),
            &[said],
        )
        .await;
    fs::write(&file, before.replace("percent = 100", "percent = 1000")).unwrap();
    night
        .said(
            &["check", "--diff"],
            ("config/check", "/settings/reload"),
            &["percent", "1000"],
        )
        .await;
    assert!(!night.stack.reload(Program::Gateway).status.success());
    fs::write(&file, &before).unwrap();
    night
        .said(&["gateways"], ("gateways", "/"), &["reload"])
        .await;

    // The file is right, but no backend listens at the address.
    let unused = free_address().to_string();
    fs::write(&file, before.replace(&address, &unused)).unwrap();
    assert!(night.stack.reload(Program::Gateway).status.success());
    let problem = call("v2").send().await.problem(502, "backend_unreachable");
    night
        .explained(id_of(&problem), &["ConnectRefused", &unused])
        .await;
    night
        .said(
            &["versions", "list"],
            ("versions", "/versions"),
            &[&unused, "unreachable"],
        )
        .await;

    // Nothing of all this has a value of a parameter, or a secret.
    for face in [
        night.stack.log(Program::Gateway),
        night.page("/live").await,
        night.api("rejections").await.to_string(),
    ] {
        for secret in ["hidden-4711", &night.shop.key, &night.token] {
            assert!(!face.contains(secret), "{face}");
        }
    }
    night.stack.kill(Program::Gateway.number(1));
}
