//! The developer's card: an application's rules, and a first call that can be pasted into a shell. Never a key.

use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::{
    clock::{Clock, SystemClock},
    config::origin::Origin,
};
use signpost_management::administration::summary::AppSummary;
use signpost_protocol::{
    param::Params,
    sign::{SignAlgorithm, SignProfile, canonical_for_display},
};
use signpost_proxy::{
    Config, ServedVersion, Stage,
    program::{AllowedOrigins, Applications, OriginPattern},
};

use crate::cli::{print_line, table::printable};

/// The form of the first call, as the shell expands it.
const FORM: &str = "demo=hello+world&time=${now}";
/// The path of the first call: at a login service it begins a login.
const PATH: &str = "/login";

/// The application that a card describes; by default the only one, in single-application mode.
#[derive(Debug, Default)]
pub(super) struct Subject {
    ident: Option<String>,
    /// Its own sign profile.
    profile: Option<SignProfile>,
    default_version: Option<String>,
    return_to: Vec<String>,
}

impl From<&AppSummary> for Subject {
    fn from(app: &AppSummary) -> Self {
        Self {
            ident: Some(app.ident.clone()),
            profile: app.sign_profile.clone(),
            default_version: app.default_version.clone(),
            return_to: app.return_to.clone(),
        }
    }
}

/// What a developer of the application's clients must know.
#[derive(Debug, Serialize)]
pub(super) struct Card {
    address: String,
    /// Names of the convention headers, `app` only in multi-application mode.
    headers: Vec<String>,
    versions: Vec<CardVersion>,
    /// All presets with these rules.
    presets: Vec<&'static str>,
    sign_profile: SignProfile,
    window_seconds: u64,
    return_to: Vec<String>,
    cors_origins: Vec<String>,
    /// Lines for bash.
    first_call: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CardVersion {
    version: String,
    /// Whether it serves the application's requests that name none.
    is_default: bool,
    is_retired: bool,
}

impl Card {
    /// The card of an application by this configuration. `address` is the gateway's, if `public_url` is not what its
    /// clients use.
    pub(super) fn new(config: &Config, subject: Subject, address: Option<&Origin>) -> Self {
        let names = &config.headers;
        let is_multi = matches!(config.applications, Applications::Multi(_));
        let own = subject.default_version.as_deref().unwrap_or_default();
        let versions = &config.versions;
        let default = versions.named(own.as_bytes());
        let default = default.unwrap_or_else(|| versions.default());
        let profile = subject.profile.unwrap_or(config.sign.profile.clone());
        let address = address.unwrap_or(&config.public_url).to_string();
        let app = subject.ident.map(|ident| (&names.app, ident));
        let version = (&names.version, default.name().to_string());
        let headers = app.into_iter().chain([version]);
        let headers = headers.map(|(name, value)| format!("{}: {value}", names.spelled(name)));
        let headers: Vec<_> = headers
            .map(|header| format!("-H {}", quoted(&header)))
            .collect();
        let url = quoted(&format!("{address}{PATH}"));
        let call = format!("{} {url}", headers.join(" "));
        let convention = [&names.version, &names.language, &names.authorization];
        let convention = is_multi.then_some(&names.app).into_iter().chain(convention);
        Self {
            headers: convention.map(|name| names.spelled(name)).collect(),
            versions: card_versions(config, default),
            presets: presets(&profile),
            window_seconds: config.sign.window.duration().as_secs(),
            return_to: subject.return_to,
            cors_origins: cors_origins(config),
            first_call: first_call(&profile, &call),
            sign_profile: profile,
            address,
        }
    }

    /// Prints the card for people.
    pub(super) fn print(&self) {
        let version = |one: &CardVersion| {
            let marks = [
                (one.is_default, " (default)"),
                (one.is_retired, " (retired)"),
            ];
            let marks = marks.map(|(applies, mark)| if applies { mark } else { "" });
            format!("{}{}", one.version, marks.concat())
        };
        let versions: Vec<_> = self.versions.iter().map(version).collect();
        let digits = match self.sign_profile.algorithm {
            SignAlgorithm::Md5 => 32,
            SignAlgorithm::HmacSha256 => 64,
        };
        let mut rows = vec![
            ("address", self.address.clone()),
            ("headers", self.headers.join(", ")),
            ("versions", versions.join(", ")),
            ("preset", self.presets.join(", ")),
        ];
        let profile = json!(self.sign_profile);
        let settings = profile.as_object().into_iter().flatten();
        let settings = settings.map(|(name, value)| (name.as_str(), text(value)));
        rows.extend(settings);
        rows.extend([
            (
                "time",
                format!("UTC milliseconds, within {} s", self.window_seconds),
            ),
            ("sign", format!("{digits} hex digits")),
            ("return_to", self.return_to.join(", ")),
            ("cors_origins", self.cors_origins.join(", ")),
        ]);
        for (name, value) in rows {
            let value = if value.is_empty() { "none" } else { &value };
            print_line(&format!("{name:20}{}", printable(value)));
        }
        print_line(
            "\nA first call, for bash. The file app.key, which only you can read, has the key:\n",
        );
        self.first_call.iter().for_each(|line| print_line(line));
    }
}

/// As one word of a shell: origins and header names may have its special characters.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn text(setting: &Value) -> String {
    match setting {
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other
            .as_str()
            .map_or_else(|| other.to_string(), str::to_owned),
    }
}

fn card_versions(config: &Config, default: &ServedVersion) -> Vec<CardVersion> {
    let now = SystemClock.now();
    let version = |one: &ServedVersion| CardVersion {
        version: one.name().to_string(),
        is_default: one.name() == default.name(),
        is_retired: one.stage(now) == Stage::Retired,
    };
    config.versions.iter().map(|one| version(one)).collect()
}

/// A preset says nothing about algorithm, cover and replay.
fn presets(profile: &SignProfile) -> Vec<&'static str> {
    let has_rules = |name: &&str| {
        SignProfile::preset(name).is_some_and(|preset| {
            let SignProfile {
                algorithm,
                cover,
                replay,
                ..
            } = *profile;
            *profile
                == SignProfile {
                    algorithm,
                    cover,
                    replay,
                    ..preset
                }
        })
    };
    SignProfile::PRESETS.into_iter().filter(has_rules).collect()
}

fn cors_origins(config: &Config) -> Vec<String> {
    match config.cors.as_ref().map(|cors| &cors.origins) {
        None => Vec::new(),
        Some(AllowedOrigins::Any) => vec!["*".to_owned()],
        Some(AllowedOrigins::Listed(all)) => all.iter().map(OriginPattern::to_string).collect(),
    }
}

/// A POST that is signed by these rules. `call` is what curl gets besides the form.
///
/// Other users can see the command line of a process, so no process gets the key there: `printf` is the shell's own, and
/// OpenSSL, which takes an HMAC's key as an argument only, is not used.
fn first_call(profile: &SignProfile, call: &str) -> Vec<String> {
    let params = Params::parse(b"", FORM.as_bytes(), usize::MAX);
    let params = params.expect("a form of two pairs can be read");
    let canonical = canonical_for_display(profile, "POST", PATH, &params);
    let canonical = String::from_utf8_lossy(&canonical).replace("<APP_KEY>", "${key}");
    // With cover = "request", method and path are in front, each with a line feed.
    let (head, pairs) = canonical.rsplit_once('\n').unwrap_or(("", &canonical));
    let head = if head.is_empty() {
        String::new()
    } else {
        format!("$'{}\\n'", head.replace('\n', "\\n"))
    };
    let sign = match profile.algorithm {
        SignAlgorithm::Md5 => "sign=$(printf %s \"$text\" | md5sum | cut -c 1-32)",
        SignAlgorithm::HmacSha256 => {
            "sign=$(key=$key text=$text python3 -c 'import hmac, os; \
             print(hmac.digest(os.environb[b\"key\"], os.environb[b\"text\"], \"sha256\").hex())')"
        }
    };
    vec![
        "key=$(cat app.key)".to_owned(),
        "now=$(date +%s%3N)".to_owned(),
        format!("form=\"{FORM}\""),
        format!("text={head}\"{pairs}\""),
        sign.to_owned(),
        format!("curl -d \"$form&sign=$sign\" {call}"),
    ]
}
