//! The developer's card: an application's rules, and a first call that can be pasted into a shell. Never a key.

use serde::Serialize;
use serde_json::{Value, json};
use signpost_kit::{
    clock::{Clock, SystemClock, Timestamp},
    config::origin::Origin,
};
use signpost_protocol::{
    app::AppIdent,
    header::HeaderNames,
    param::Params,
    sign::{SignAlgorithm, SignCarrier, SignCover, SignProfile, canonical_for_display},
};
use signpost_proxy::{Config, Extension, Gateway, ServedVersion, Stage, Versions};
use utoipa::ToSchema;

use super::{Context, Face, Operation, Output, Result, apps, input::Nothing};
use crate::{
    administration::{rules::ProfileChoice, summary::AppSummary},
    doctor::samples::{Call, CodeSample, LANGUAGES, quoted, settings_of, shell},
};

/// The pairs of the first call for bash, as the shell expands them.
const PAIRS: &str = "demo=hello+world&time=${now}";

/// The application that a card describes; by default the only one, in single-application mode.
#[derive(Debug, Default)]
pub struct Subject {
    ident: Option<String>,
    /// Its own sign profile.
    profile: Option<SignProfile>,
    default_version: Option<String>,
    return_to: Vec<String>,
    extensions: Vec<Extension>,
}

impl From<&AppSummary> for Subject {
    fn from(app: &AppSummary) -> Self {
        Self {
            ident: Some(app.ident.clone()),
            profile: app.sign_profile.clone(),
            default_version: app.default_version.clone(),
            return_to: app.return_to.clone(),
            extensions: app.extensions.clone(),
        }
    }
}

/// What a developer of the application's clients must know.
#[derive(Serialize, ToSchema)]
pub struct Card {
    /// Where clients call the gateway.
    pub address: String,
    /// Names of the convention headers; that of the application only if there are several.
    pub headers: Vec<String>,
    /// The versions.
    pub versions: Vec<CardVersion>,
    /// The presets of sign profiles that have these rules.
    #[schema(value_type = Vec<String>)]
    pub presets: Vec<&'static str>,
    /// The rules of its signatures.
    #[schema(value_type = Object)]
    pub sign_profile: SignProfile,
    /// How far `time` may be from the gateway's clock, in seconds.
    pub window_seconds: u64,
    /// Origins that a login may return to.
    pub return_to: Vec<String>,
    /// Origins whose pages may call.
    pub cors_origins: Vec<String>,
    /// A first call: lines for bash, which read the key from the file `app.key`.
    pub first_call: Vec<String>,
    /// The same as a command; null if no options of it say the rules.
    pub command: Option<String>,
    /// The same by each client library.
    pub code: Vec<CodeSample>,
}

impl Output for Card {}

/// A version on a card.
#[derive(Serialize, ToSchema)]
pub struct CardVersion {
    /// Its name.
    pub version: String,
    /// Whether it serves the application's requests that name none.
    pub is_default: bool,
    /// Whether it is retired.
    pub is_retired: bool,
}

/// What a gateway says to all of its applications.
pub struct Hosting<'g> {
    names: &'g HeaderNames,
    versions: &'g Versions,
    address: &'g Origin,
    profile: &'g SignProfile,
    window_seconds: u64,
    cors_origins: Vec<String>,
    is_multi: bool,
    /// Without a path of callbacks, no login service is behind it.
    has_logins: bool,
    now: Timestamp,
}

impl<'g> Hosting<'g> {
    /// What this configuration says.
    #[must_use]
    pub fn of_config(config: &'g Config) -> Self {
        let cors = config.cors.as_ref();
        Self {
            names: &config.headers,
            versions: &config.versions,
            address: &config.public_url,
            profile: &config.sign.profile,
            window_seconds: config.sign.window.duration().as_secs(),
            cors_origins: cors.map_or_else(Vec::new, |cors| cors.origins.texts()),
            is_multi: config.has_many_applications(),
            has_logins: config.sign.has_callbacks(),
            now: SystemClock.now(),
        }
    }

    fn of_gateway(gateway: &'g Gateway) -> Self {
        let (policy, sign) = (&gateway.policy, gateway.policy.verifier.config());
        let cors = policy.rules.cors.as_ref();
        Self {
            names: &policy.rules.admission.names,
            versions: &policy.backends.versions,
            address: &policy.rules.public_url,
            profile: &sign.profile,
            window_seconds: sign.window.duration().as_secs(),
            cors_origins: cors.map_or_else(Vec::new, |cors| cors.origins().texts()),
            // A management API is of many.
            is_multi: true,
            has_logins: sign.has_callbacks(),
            now: gateway.state.clock.now(),
        }
    }

    /// Method, path and JSON of a first call. A path of the API itself is not known here; its root is what is likeliest there.
    fn first_call(
        &self,
        carrier: SignCarrier,
        version: &ServedVersion,
    ) -> (&'static str, &'static str, Option<Value>) {
        if self.has_logins {
            return ("POST", "/login", None);
        }
        match carrier != SignCarrier::Parameters && version.takes_json() {
            true => ("POST", "/", Some(json!({ "demo": "hello world" }))),
            false => ("GET", "/", None),
        }
    }
}

pub(super) fn all<F: Face>(face: F) -> F {
    face.add(&CARD)
}

/// Shows an application's card.
pub const CARD: Operation<AppIdent, Nothing, Card> = Operation::read(
    "/api/v1/apps/{ident}/card",
    "Shows what the developers of an application's clients must know, and a first call that is signed by its rules.",
    |context, ident, _| Box::pin(card(context, ident)),
);

async fn card(context: &Context, ident: AppIdent) -> Result<Card> {
    let app = (apps::SHOW.run)(context, ident, Nothing {}).await?;
    let hosting = Hosting::of_gateway(context.gateway());
    Ok(Card::new(hosting, Subject::from(&app), None))
}

impl Card {
    /// The card of an application. `address` is the gateway's, if `public_url` is not what its clients use.
    #[must_use]
    pub fn new(hosting: Hosting<'_>, subject: Subject, address: Option<&Origin>) -> Self {
        let (names, versions) = (hosting.names, hosting.versions);
        let own = subject.default_version.as_deref().unwrap_or_default();
        let default = versions.named(own.as_bytes());
        let default = default.unwrap_or_else(|| versions.default());
        let profile = subject.profile.unwrap_or(hosting.profile.clone());
        let address = address.unwrap_or(hosting.address).to_string();
        let (method, path, json) = hosting.first_call(profile.carrier, default);
        let mut settings = Vec::new();
        settings.extend(subject.ident.as_ref().map(|ident| ("app", json!(ident))));
        settings.push(("version", json!(default.name().as_str())));
        settings.extend(settings_of(names, &profile));
        let call = Call {
            address: &address,
            settings: &settings,
            method,
            path,
            pairs: &[],
            json: json.as_ref(),
            credential: None,
        };
        let convention = [&names.version, &names.language, &names.authorization];
        let convention = hosting
            .is_multi
            .then_some(&names.app)
            .into_iter()
            .chain(convention);
        let sent = curl_headers(names, subject.ident.as_deref(), default.name().as_str());
        let presets = presets(&profile);
        Self {
            headers: convention.map(|name| names.spelled(name)).collect(),
            versions: card_versions(versions, default, &subject.extensions, hosting.now),
            window_seconds: hosting.window_seconds,
            return_to: subject.return_to,
            cors_origins: hosting.cors_origins,
            first_call: match json.is_some() || profile.carrier == SignCarrier::Headers {
                true => first_call_in_headers(names, &profile, &call, &sent),
                false => first_call(&profile, &call, &sent),
            },
            command: presets
                .first()
                .and_then(|preset| command(&profile, preset, &call)),
            code: LANGUAGES
                .iter()
                .map(|language| language.code(&call))
                .collect(),
            presets,
            sign_profile: profile,
            address,
        }
    }
}

/// Signs `$text` with `$key`.
const HMAC: &str = "sign=$(key=$key text=$text python3 -c 'import hmac, os; \
     print(hmac.digest(os.environb[b\"key\"], os.environb[b\"text\"], \"sha256\").hex())')";

/// curl's options for the headers of the convention.
fn curl_headers(names: &HeaderNames, app: Option<&str>, version: &str) -> String {
    let app = app.map(|ident| (&names.app, ident));
    let sent = app.into_iter().chain([(&names.version, version)]);
    let sent = sent.map(|(name, value)| {
        let field = format!("{}: {value}", names.spelled(name));
        format!("-H {}", quoted(&field))
    });
    sent.collect::<Vec<_>>().join(" ")
}

fn card_versions(
    versions: &Versions,
    default: &ServedVersion,
    extensions: &[Extension],
    now: Timestamp,
) -> Vec<CardVersion> {
    let on_card = |version: &ServedVersion| {
        let is_extended = |one: &Extension| one.version == **version.name() && now < one.until;
        CardVersion {
            version: version.name().to_string(),
            is_default: version.name() == default.name(),
            is_retired: version.stage(now) == Stage::Retired && !extensions.iter().any(is_extended),
        }
    };
    versions.iter().map(|version| on_card(version)).collect()
}

/// A preset says nothing about algorithm, cover and replay.
fn presets(profile: &SignProfile) -> Vec<&'static str> {
    let has_rules = |name: &&str| {
        SignProfile::preset(name).is_some_and(|preset| {
            ProfileChoice::from_preset(preset).apply_to(profile.clone()) == *profile
        })
    };
    SignProfile::PRESETS.into_iter().filter(has_rules).collect()
}

/// The call as `signpost call` makes it. It has no option for a header of another name.
fn command(profile: &SignProfile, preset: &str, call: &Call<'_>) -> Option<String> {
    let word = |name: &str| {
        let mut settings = call.settings.iter();
        let (_, value) = settings.find(|(setting, _)| *setting == name)?;
        value.as_str()
    };
    if call
        .settings
        .iter()
        .any(|(name, _)| *name == "header_names")
    {
        return None;
    }
    let json = call.json.map(ToString::to_string);
    let (carrier, algorithm) = signed_by(profile, json.is_some());
    let options = [
        ("prefix", word("prefix")),
        ("app", word("app")),
        ("key", Some("file:app.key")),
        (
            "preset",
            (preset != SignProfile::PRESETS[0]).then_some(preset),
        ),
        ("algorithm", algorithm),
        ("carrier", carrier),
        (
            "cover",
            (profile.cover == SignCover::Request).then_some("request"),
        ),
        ("version", word("version")),
        ("json", json.as_deref()),
    ];
    let options = options
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let options: String = options
        .map(|(name, value)| format!(" --{name} {}", shell(value)))
        .collect();
    Some(format!(
        "signpost call --url {}{options} {} {}",
        shell(call.address),
        call.method,
        call.path
    ))
}

/// The options `carrier` and `algorithm`. In headers the command signs by the stronger algorithm.
const fn signed_by(
    profile: &SignProfile,
    has_json: bool,
) -> (Option<&'static str>, Option<&'static str>) {
    match (profile.carrier, profile.algorithm) {
        (SignCarrier::Headers, SignAlgorithm::Md5) => (Some("headers"), Some("md5")),
        (SignCarrier::Headers, SignAlgorithm::HmacSha256) => (Some("headers"), None),
        (SignCarrier::Both, _) if has_json => (Some("both"), None),
        (_, SignAlgorithm::HmacSha256) => (None, Some("hmac-sha256")),
        (_, SignAlgorithm::Md5) => (None, None),
    }
}

/// The call for bash. `headers` are the curl options that set the convention headers.
///
/// Other users can see the command line of a process, so no process gets the key there: `printf` is the shell's own, and
/// OpenSSL, which takes an HMAC's key as an argument only, is not used.
fn first_call(profile: &SignProfile, call: &Call<'_>, headers: &str) -> Vec<String> {
    let params = Params::parse(b"", PAIRS.as_bytes(), usize::MAX);
    let params = params.expect("two pairs can be read");
    let canonical = canonical_for_display(profile, call.method, call.path, &params);
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
        SignAlgorithm::HmacSha256 => HMAC,
    };
    let url = quoted(&format!("{}{}", call.address, call.path));
    let curl = match call.method {
        "GET" => format!("curl {headers} {url}\"?$pairs&sign=$sign\""),
        _ => format!("curl -d \"$pairs&sign=$sign\" {headers} {url}"),
    };
    vec![
        "key=$(cat app.key)".to_owned(),
        "now=$(date +%s%3N)".to_owned(),
        format!("pairs=\"{PAIRS}\""),
        format!("text={head}\"{pairs}\""),
        sign.to_owned(),
        curl,
    ]
}

/// The same, signed in headers.
fn first_call_in_headers(
    names: &HeaderNames,
    profile: &SignProfile,
    call: &Call<'_>,
    headers: &str,
) -> Vec<String> {
    let body = call.json.map(ToString::to_string).unwrap_or_default();
    let sign = match profile.header_algorithm() {
        SignAlgorithm::Md5 => "sign=$(printf '%s\\n%s' \"$text\" \"$key\" | md5sum | cut -c 1-32)",
        SignAlgorithm::HmacSha256 => HMAC,
    };
    let [time, sign_header, _] = names.of_signature().map(|name| names.spelled(name));
    let (method, path) = (call.method, call.path);
    let sent = match call.json {
        Some(_) => " -H 'Content-Type: application/json' --data-raw \"$body\"",
        None => "",
    };
    let url = quoted(&format!("{}{path}", call.address));
    vec![
        "key=$(cat app.key)".to_owned(),
        "now=$(date +%s%3N)".to_owned(),
        format!("body={}", quoted(&body)),
        "hash=$(printf %s \"$body\" | sha256sum | cut -c 1-64)".to_owned(),
        format!("text=$'{method}\\n{path}\\n'\"$now\"$'\\n\\n'\"$hash\""),
        sign.to_owned(),
        format!(
            "curl -X {method} {headers} -H \"{time}: $now\" -H \"{sign_header}: $sign\"{sent} {url}"
        ),
    ]
}
