//! The console in a real browser.

use std::{fs, path::PathBuf};

use end_to_end::{
    real_browser::{Key, RealBrowser},
    recording_backend::RecordingBackend,
    stack::Stack,
    waiting::until,
};
use serde_json::{Value, json};

const LANGUAGES: [&str; 5] = ["en", "zh-CN", "zh-TW", "ja", "ko"];

/// What the page is wider than the screen by, and the texts that are cut off outside of what scrolls.
const OVERFLOW: &str = "const page = document.documentElement;\
    return [innerWidth, page.scrollWidth - page.clientWidth];";

/// A gateway with the console, some applications, and a browser that has signed in.
struct Console {
    stack: Stack,
    browser: RealBrowser,
}

impl Console {
    async fn start() -> Self {
        let backend = RecordingBackend::start().await;
        let keys = "[management.api]\n[management.console]\n";
        let stack = Stack::builder().multi().gateway(keys);
        let stack = stack.in_front_of(&backend).start().await;
        let console = Self {
            browser: RealBrowser::start("en").await,
            stack,
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

/// Where the pictures of the pages are kept.
fn pictures() -> PathBuf {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/pictures"));
    fs::create_dir_all(&folder).unwrap();
    folder
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
async fn every_page_fits_each_screen_in_every_language_light_and_dark() {
    let console = Console::start().await;
    let long = "A name with sixty-four characters, as long as a name may be: yes";
    console.create("Shop").await;
    console.create(long).await;
    let app = console.path().await;
    let pages = [
        ("overview", "/"),
        ("apps", "/apps"),
        ("app", &app),
        ("new-app", "/apps/new"),
        ("import", "/apps/import"),
        ("versions", "/versions"),
        ("audit", "/audit"),
        ("settings", "/settings"),
        ("reload", "/settings/reload"),
        ("tokens", "/settings/tokens"),
        ("not-found", "/nothing"),
        ("sign-in", "/sign-in"),
    ];
    let (browser, folder) = (&console.browser, pictures());
    for language in LANGUAGES {
        browser.prefer(language).await;
        for (name, path) in pages {
            console.open(path).await;
            assert_eq!(browser.language().await, language, "{path}");
            // What is folded must fit, too.
            browser
                .run("document.querySelectorAll('details').forEach(one => one.open = true)")
                .await;
            for (width, is_dark) in [(360, false), (1280, true), (1280, false), (360, true)] {
                browser.show_as(width, is_dark).await;
                let widths = browser.run(OVERFLOW).await;
                assert_eq!(widths, json!([width, 0]), "{name} in {language}");
                // Machines for tests have no fonts of the other languages.
                if language != "en" || is_dark == (width == 360) {
                    continue;
                }
                let file = format!("console-{name}-{width}.png");
                fs::write(folder.join(file), browser.picture().await).unwrap();
            }
        }
    }
    let errors = browser.console_errors().await;
    let errors: Vec<_> = errors.iter().filter(|line| !line.contains("404")).collect();
    assert!(errors.is_empty(), "{errors:?}");
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
    let text = until("a time", || async {
        let time = browser
            .run("return document.querySelector('time').textContent")
            .await;
        time.as_str()
            .filter(|time| time.ends_with("UTC)"))
            .map(str::to_owned)
    })
    .await;
    assert!(text.contains(" ("), "{text}");
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
