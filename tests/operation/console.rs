//! The console in a real browser.

use std::{env, fs, path::PathBuf};

use end_to_end::{
    clock::now_ms,
    documents::root,
    real_browser::{Key, RealBrowser},
    recording_backend::RecordingBackend,
    signed_client::http_client,
    signer::{Profile, Values},
    stack::Stack,
    store::StoreKind,
    waiting::until,
};
use serde_json::{Value, json};

/// What the page is wider than the screen by, and the texts that are cut off outside of what scrolls.
const OVERFLOW: &str = "const page = document.documentElement;\
    return [innerWidth, page.scrollWidth - page.clientWidth];";

/// The texts of tables that are wider than what they scroll in.
const HIDDEN: &str = "return [...document.querySelectorAll('.scroll')]\
    .filter((part) => part.scrollWidth > part.clientWidth).map((part) => part.innerText)";

/// What reaches beyond the screen.
const TOO_WIDE: &str = "const { clientWidth } = document.documentElement;\
    const all = [...document.querySelectorAll('main *')];\
    const wide = all.filter(one => one.getBoundingClientRect().right > clientWidth && !one.closest('.scroll'));\
    return wide.map(one => one.outerHTML.slice(0, 200));";

/// A gateway with the console, some applications, and a browser that has signed in.
struct Console {
    stack: Stack,
    browser: RealBrowser,
    _backend: RecordingBackend,
}

impl Console {
    async fn start() -> Self {
        Self::start_with("").await
    }

    /// The same, with further tables in the gateway's file.
    async fn start_with(tables: &str) -> Self {
        let backend = RecordingBackend::start().await;
        let keys = format!(
            "[management.api]\n[management.console]\n\
             [versions.v1]\ndeprecated = \"2026-09-01\"\nsunset = \"2099-03-01\"\n{tables}"
        );
        let stack = Stack::builder().multi().gateway(&keys);
        let stack = stack.in_front_of(&backend).start().await;
        let console = Self {
            browser: RealBrowser::start("en").await,
            stack,
            _backend: backend,
        };
        let token = console.stack.create_token("admin");
        console.open("/apps").await;
        console.browser.wait_for_text("signpost token create").await;
        console.tab_to("[name=token]").await;
        console.browser.enter(&token).await;
        console.browser.press(&[Key::Enter]).await;
        console.browser.wait_for_text("Search").await;
        console
    }

    async fn open(&self, path: &str) {
        let address = self.stack.addresses().management;
        self.browser.open(&format!("http://{address}{path}")).await;
    }

    /// Moves the focus by the keyboard to the next element of a selector.
    async fn tab_to(&self, selector: &str) {
        let script = format!("return document.activeElement.matches('{selector}')");
        for _ in 0..100 {
            self.browser.press(&[Key::Tab]).await;
            if self.browser.run(&script).await == json!(true) {
                return;
            }
        }
        panic!("no tab stop is {selector}: {}", self.browser.text().await);
    }

    /// The path of the shown page.
    async fn path(&self) -> String {
        let path = self.browser.run("return location.pathname").await;
        path.as_str().unwrap().to_owned()
    }

    /// What axe-core finds on the shown page.
    async fn found_by_axe(&self) -> Value {
        if env::var_os("SIGNPOST_TEST_WITHOUT_FRAMEWORKS").is_some() {
            return json!([]);
        }
        // Once for each page: it has half a megabyte.
        if self.browser.run("return !window.axe").await == json!(true) {
            let axe = root().join("target/examples/axe/node_modules/axe-core/axe.min.js");
            self.browser.run(&fs::read_to_string(axe).unwrap()).await;
        }
        let run = "return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => \
                   [id, ...nodes.map(({ target, failureSummary }) => [target, failureSummary])]))";
        self.browser.run(run).await
    }

    /// Makes the pictures that the documents show: `conf/guides/pictures` has copies.
    async fn keep_readme_pictures(&self) {
        let minute = now_ms() / 60_000;
        // What another gateway has counted in its hour: more than a test has time for.
        let minutes = (0..60).map(|number| {
            let (rising, falling) = (90 + 7 * number + number % 7 * 9, 400 - 5 * number + number % 5 * 11);
            json!({ "at": minute - 60 + number, "counted": {
                "versions": { "v1": [falling, number % 3, 0], "v2": [rising, number % 4, u8::from(number == 41) * 25] },
                "problems": { "sign_mismatch": number % 3, "time_out_of_window": number % 4, "backend_timeout": u8::from(number == 41) * 25 },
            } })
        });
        let hour = json!(minutes.collect::<Vec<_>>()).to_string();
        let id = "01".repeat(16);
        let id = match self.stack.store().kind() {
            StoreKind::Sqlite => format!("x'{id}'"),
            StoreKind::Postgres => format!("'\\x{id}'"),
        };
        let row = format!("INSERT INTO gateways (id, traffic, seen_at) VALUES ({id}, '{hour}', 0)");
        self.stack.store().query(&row);
        let apps =
            ["Mobile app", "Partner sync"].map(|name| self.stack.create_application(name, &[]));
        for (number, app) in apps.iter().enumerate() {
            let client = self.stack.client_of(app);
            for call in 0..30 - 20 * number {
                let call = client.get("/orders").param("id", &call.to_string());
                call.version(if number == 0 { "v2" } else { "v1" })
                    .send()
                    .await;
            }
        }
        self.open("/versions").await;
        until("the requests to be counted", || async {
            self.browser.reload().await;
            let text = self.browser.text().await;
            text.contains("30 requests").then_some(())
        })
        .await;
        for (page, path) in [("overview", "/"), ("versions", "/versions")] {
            self.open(path).await;
            self.browser.show_as(1280, false).await;
            keep_picture(&self.browser, &format!("readme-{page}")).await;
        }
    }

    /// Checks that the shown page fits each screen, and keeps pictures of it, if there is a folder for them.
    async fn look_at(&self, name: &str, language: &str) {
        let browser = &self.browser;
        // What is folded must fit, too.
        browser
            .run("document.querySelectorAll('details').forEach(one => one.open = true)")
            .await;
        for width in [360, 1280] {
            browser.show_as(width, false).await;
            let widths = browser.run(OVERFLOW).await;
            let wide = browser.run(TOO_WIDE).await;
            assert_eq!(widths, json!([width, 0]), "{name} in {language}: {wide}");
            // On a wide screen no table scrolls: what can be done stands in its last column.
            let hidden = browser.run(HIDDEN).await;
            assert!(
                width < 1280 || hidden == json!([]),
                "{name} in {language}: {hidden}"
            );
            for is_dark in [false, true] {
                // What axe-core finds does not depend on the language.
                if language == "en" {
                    browser.show_as(width, is_dark).await;
                    let found = self.found_by_axe().await;
                    assert_eq!(found, json!([]), "{name}: {width}, {is_dark}");
                }
                if pictures().is_none() {
                    continue;
                }
                browser.show_as(width, is_dark).await;
                let colours = if is_dark { "dark" } else { "light" };
                let picture = format!("console-{name}-{language}-{width}-{colours}");
                keep_whole_picture(browser, &picture).await;
            }
        }
    }

    /// Lets a further application send a request that is rejected, and returns its id.
    async fn reject_a_request(&self) -> String {
        let path = self.path().await;
        let app = self.stack.create_application("Wrong & Sons", &[]);
        let wrong = self
            .stack
            .client_of(&app)
            .with_key("00112233445566778899aabbccddeeff");
        let call = wrong
            .get("/orders/of/a/long/path/that/a/client/has")
            .param("id", "4711");
        let problem = call.send().await.problem(403, "sign_mismatch");
        self.open(&path).await;
        problem["request_id"].as_str().unwrap().to_owned()
    }

    /// Creates an application by the keyboard alone, and shows it.
    async fn create(&self, name: &str) {
        self.open("/apps").await;
        self.tab_to("a[href=\"/apps/new\"]").await;
        self.browser.press(&[Key::Enter]).await;
        self.browser.wait_for_text("1 to 64 characters").await;
        self.tab_to("[name=name]").await;
        self.browser.enter(name).await;
        self.browser.press(&[Key::Enter]).await;
        self.browser.wait_for_text("was created").await;
        self.tab_to("a[href^=\"/apps/\"]:not([href=\"/apps\"])")
            .await;
        self.browser.press(&[Key::Enter]).await;
        self.browser.wait_for_text("Change settings").await;
    }
}

/// The folder for pictures, to be looked at. They take longer than all that is checked.
fn pictures() -> Option<PathBuf> {
    env::var_os("SIGNPOST_PICTURES").map(PathBuf::from)
}

/// Keeps a picture of the page.
async fn keep_picture(browser: &RealBrowser, name: &str) {
    if let Some(folder) = pictures() {
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.png"));
        fs::write(file, browser.picture().await).unwrap();
    }
}

/// The same of the whole page, which is higher than the screen.
async fn keep_whole_picture(browser: &RealBrowser, name: &str) {
    browser.show_whole().await;
    keep_picture(browser, name).await;
}

#[tokio::test]
async fn an_application_is_created_rotated_and_deleted_by_the_keyboard() {
    let console = Console::start().await;
    console.create("Keyboard & Co").await;
    let path = console.path().await;
    let browser = &console.browser;
    for (change, shown) in [
        ("rotate", "has a new key"),
        ("delete", "The application was deleted."),
    ] {
        console.open(&path).await;
        let form = format!("form[action$=\"/{change}\"]");
        console
            .tab_to(&format!("details:has({form}) > summary"))
            .await;
        browser.press(&[Key::Enter]).await;
        if change == "delete" {
            console.tab_to("[name=confirm]").await;
            browser.enter("Keyboard & Co").await;
        }
        console.tab_to(&format!("{form} button")).await;
        browser.press(&[Key::Enter]).await;
        browser.wait_for_text(shown).await;
    }
    // Its own session is over as well, once it has signed out.
    console.tab_to("form[action=\"/sign-out\"] button").await;
    browser.press(&[Key::Enter]).await;
    browser.wait_for_text("You are signed out.").await;
    console.open(&path).await;
    assert_eq!(console.path().await, "/sign-in");
}

#[tokio::test]
async fn every_page_fits_each_screen_in_english_and_axe_finds_nothing() {
    every_page_fits("en").await;
}

#[tokio::test]
async fn every_page_fits_each_screen_in_simplified_chinese() {
    every_page_fits("zh-CN").await;
}

#[tokio::test]
async fn every_page_fits_each_screen_in_traditional_chinese() {
    every_page_fits("zh-TW").await;
}

#[tokio::test]
async fn every_page_fits_each_screen_in_japanese() {
    every_page_fits("ja").await;
}

#[tokio::test]
async fn every_page_fits_each_screen_in_korean() {
    every_page_fits("ko").await;
}

/// Shows every page in a language.
async fn every_page_fits(language: &str) {
    let console = Console::start_with(
        "[versions.v1.shadow]\nto = \"v2\"\npaths = [\"/orders\"]\n[versions.v0]\nbridge = \"v2\"\n",
    )
    .await;
    let long = "A name with sixty-four characters, as long as a name may be: yes";
    console.create("Shop").await;
    let rejected = format!("/doctor/{}", console.reject_a_request().await);
    let stack = &console.stack;
    let created = stack.command(&["token", "create", "--role", "operator", "--name", long]);
    assert!(created.status.success(), "{created:?}");
    console.create(long).await;
    let app = console.path().await;
    let pages = [
        ("overview", "/"),
        ("apps", "/apps"),
        ("app", &app),
        ("new-app", "/apps/new"),
        ("import", "/apps/import"),
        ("versions", "/versions"),
        ("retirement", "/versions/retirement?version=v1"),
        ("doctor", "/doctor"),
        ("rejected", &rejected),
        ("live", "/live"),
        ("audit", "/audit"),
        ("settings", "/settings"),
        ("reload", "/settings/reload"),
        ("tokens", "/settings/tokens"),
        ("logins", "/logins"),
        ("not-found", "/nothing"),
        ("sign-in", "/sign-in"),
    ];
    let browser = &console.browser;
    browser.prefer(language).await;
    for (name, path) in pages {
        console.open(path).await;
        assert_eq!(browser.language().await, language, "{path}");
        console.look_at(name, language).await;
    }
    // What forms show, of which the first signs out.
    for (name, path, filled_in) in [
        ("created", "/apps/new", "form.elements.name.value = 'Third'"),
        (
            "created-token",
            "/settings/tokens",
            "form.elements.token_name.value = 'Third'",
        ),
        (
            "findings",
            "/doctor",
            "form.elements.request.value = '/user?a=%20b&time=1&sign=2'",
        ),
        (
            "refused",
            "/logins",
            "form.elements.provider.value = form.elements.username.value = 'none'",
        ),
    ] {
        console.open(path).await;
        let send = format!(
            "const form = document.querySelector('main form[action=\"{path}\"]'); {filled_in}; form.submit()"
        );
        browser.run(&send).await;
        let is_shown = "return document.readyState === 'complete' && !!document.querySelector(\
            '[data-copy=key], [data-copy=token], #found, .problem')";
        until(name, || async {
            (browser.try_run(is_shown).await.ok()? == json!(true)).then_some(())
        })
        .await;
        console.look_at(name, language).await;
    }
    let errors = browser.console_errors().await;
    let errors: Vec<_> = errors.iter().filter(|line| !line.contains("404")).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[tokio::test]
async fn requests_are_shown_as_they_come_and_a_rejected_one_is_explained() {
    let console = Console::start().await;
    let app = console.stack.create_application("The shop", &[]);
    let client = console.stack.client_of(&app);
    let browser = &console.browser;
    console.open("/").await;
    browser.wait_for_text("No request has come").await;
    // The page shows them by itself.
    let call = client.get("/orders").param("id", "hidden-4711");
    assert_eq!(call.send().await.status, 200);
    browser.wait_for_text("Up to 1 requests a minute").await;

    console.open("/live").await;
    browser
        .wait_for_text("requests appear here as they end")
        .await;
    client
        .get("/orders")
        .param("id", "hidden-4711")
        .send()
        .await;
    let shown = browser.wait_for_text("GET /orders").await;
    let other = "00112233445566778899aabbccddeeff";
    let wrong = client.with_key(other);
    let call = wrong.get("/cart").param("id", "hidden-4711");
    let rejected = call.send().await;
    let problem = rejected.problem(403, "sign_mismatch");
    let live = browser.wait_for_text("The signature does not match").await;
    // Its row has the application's name, and seconds of the reader's zone.
    let row = browser.run("return document.querySelector('[data-stream] tbody tr').innerText");
    let row = row.await.as_str().unwrap().to_owned();
    assert!(row.contains("The shop") && row.contains("UTC"), "{row}");
    for text in [shown, live] {
        assert!(!text.contains("hidden-4711"), "{text}");
    }
    let id = problem["request_id"].as_str().unwrap();
    console.open(&format!("/doctor/{id}")).await;
    let text = browser.wait_for_text("GET /cart").await;
    assert!(text.contains(&app.ident), "{text}");

    // A client that signs decoded values; and what would have been right.
    let decoding = client.with_profile(Profile {
        values: Values::Decoded,
        ..Profile::default()
    });
    let call = decoding
        .get("/orders")
        .param("name", "Ada L")
        .param("id", "4711");
    console.tab_to("[name=request]").await;
    let sent = format!("curl '{}' -H 'Acme-X-App: {}'", call.url(), app.ident);
    browser.enter(&sent).await;
    console.tab_to("form[action=\"/doctor\"] button").await;
    browser.press(&[Key::Enter]).await;
    let found = browser
        .wait_for_text("The gateway rejects this request.")
        .await;
    assert!(found.contains("Decoded values were signed"), "{found}");
    let right = browser
        .run("return document.getElementById('right-request').textContent")
        .await;
    // The address is the pasted request's.
    let target = right
        .as_str()
        .unwrap()
        .split('\'')
        .nth(1)
        .unwrap()
        .to_owned();
    assert!(target.starts_with(&console.stack.url("/")), "{target}");
    let call = http_client().get(&target);
    let response = call.header("Acme-X-App", &app.ident).send().await.unwrap();
    assert_eq!(response.status(), 200, "{target}");
    if pictures().is_some() {
        browser.show_as(1280, false).await;
        keep_picture(browser, "readme-doctor").await;
        console.keep_readme_pictures().await;
    }
}

/// The sandbox provider's identifier of its user ada.
const ADA: &str = "{fdee430d-40bd-57de-eac1-86cd9790033d}";

/// Opens the console, and lets the sandbox's first user log in.
async fn sign_in_by_account(stack: &Stack, browser: &RealBrowser) {
    let address = stack.addresses().management;
    browser.open(&format!("http://{address}/sign-in")).await;
    browser.click("a[href=\"/sign-in/account\"]").await;
    browser.wait_for_text("Sign in to the sandbox").await;
    browser.click("button[value=allow]").await;
}

#[tokio::test]
async fn an_account_that_the_file_allows_signs_in_by_the_login_service() {
    let start = async |username: &str| {
        let keys = format!(
            "[management.api]\n[management.console]\napplication = \"console\"\n\
             [management.console.accounts.Ada]\nprovider = \"bitbucket\"\nusername = \"{username}\"\nrole = \"operator\"\n"
        );
        let stack = Stack::builder().multi().gateway(&keys).start().await;
        let origin = format!("http://{}", stack.addresses().management);
        let app = json!({
            "ident": "console", "key": "00112233445566778899aabbccddeeff", "name": "Console", "return_to": [origin],
        });
        let file = stack.folder().join("console.jsonl");
        fs::write(&file, format!("{app}\n")).unwrap();
        let imported = stack.command(&["app", "import", &file.display().to_string()]);
        assert!(imported.status.success(), "{imported:?}");
        stack
    };
    let browser = RealBrowser::start("en").await;
    let stack = start(ADA).await;
    sign_in_by_account(&stack, &browser).await;
    let page = browser.wait_for_text("What needs attention").await;
    assert!(page.contains("Ada · operator"), "{page}");
    let address = stack.addresses().management;
    browser.open(&format!("http://{address}/apps/new")).await;
    browser.click("[name=name]").await;
    browser.enter("By an account").await;
    browser.press(&[Key::Enter]).await;
    browser.wait_for_text("was created").await;
    let audit = stack.command(&["audit", "--json", "--actor", "Ada"]);
    let audit = String::from_utf8_lossy(&audit.stdout).into_owned();
    assert!(audit.contains("console 127.0.0.1"), "{audit}");
    // Its login has ended: no credential of it is valid.
    let credentials = stack
        .store()
        .query("SELECT count(*) FROM credentials WHERE revoked_at IS NULL");
    assert_eq!(credentials.number(), 0);
    // What another browser has begun, this one does not finish.
    browser
        .open(&format!(
            "http://{address}/sign-in/return?state=00&ticket=x"
        ))
        .await;
    browser.wait_for_text("begun in another browser").await;

    let stack = start("{another-user}").await;
    sign_in_by_account(&stack, &browser).await;
    let page = browser.wait_for_text("may not sign in").await;
    assert!(page.contains(ADA), "{page}");
}

#[tokio::test]
async fn times_are_shown_in_the_readers_zone_and_a_page_is_light() {
    let console = Console::start().await;
    console.create("Shop").await;
    let browser = &console.browser;
    let zone = browser
        .run("return Intl.DateTimeFormat().resolvedOptions().timeZone")
        .await;
    assert_ne!(zone, Value::Null);
    // Once, with its seconds and its zone; that of UTC is its title.
    let text = until("a time", || async {
        let time = browser.run(
            "const time = document.querySelector('time'); return time.title && [time.textContent, time.title]",
        );
        let time = time.await;
        Some((time[0].as_str()?.to_owned(), time[1].as_str()?.to_owned()))
    })
    .await;
    let (text, title) = (text.0.replace('\u{a0}', " "), text.1);
    assert_eq!(text.matches(':').count(), 2, "{text}");
    assert!(
        text.ends_with("M UTC") && title.ends_with("UTC"),
        "{text}: {title}"
    );
    let bytes = "const entries = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];\
                 return entries.reduce((sum, entry) => sum + entry.decodedBodySize, 0)";
    let bytes = browser.run(bytes).await;
    assert!(
        bytes
            .as_u64()
            .is_some_and(|bytes| bytes > 0 && bytes < 100 * 1024),
        "{bytes}"
    );
}
