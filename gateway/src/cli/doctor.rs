//! `signpost doctor`: examines a request that a client has sent, and prints what is wrong with it, and how it is right.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, bail};
use clap::builder::PossibleValuesParser;
use serde_json::json;
use signpost_kit::server::descriptors::Descriptors;
use signpost_management::{
    administration::audit,
    doctor::{
        Findings, KEY, Patient, Step, StepState,
        paste::Pasted,
        samples::{LANGUAGES, name_of},
        string::request_of_string,
        without_keys,
    },
};
use signpost_protocol::{
    language::Language,
    sign::{SignAlgorithm, SignProfile},
};
use signpost_proxy::{
    App, AppDirectory, Gateway,
    program::{CachedApps, State, open_store},
};
use signpost_store::tables::audit::add;

use super::{
    author::Why,
    language, print_error, print_line,
    sign::{AppOptions, key_of_environment},
    table::{print_table, printable, printable_json},
};

/// Limit of what is pasted, in bytes.
const MAX_INPUT: u64 = 256 * 1024;
/// Stands for the key in what is printed.
const SHOWN_KEY: &str = "•••";

#[derive(Debug, clap::Args)]
pub(super) struct DoctorArguments {
    /// The file with the request: as it is sent; a command of curl or PowerShell, or output of curl -v; fetch(…); a HAR; or a URL. With
    /// --sign, the string that the client has hashed.
    /// Default: standard input.
    file: Option<PathBuf>,
    /// The string that the client has hashed, or whose HMAC it has computed, in this file: shows where it begins to differ.
    #[arg(long, value_name = "FILE")]
    canonical: Option<PathBuf>,
    /// The client's signature of the string in FILE, if there is no request.
    #[arg(long, value_name = "HEX", conflicts_with = "canonical")]
    sign: Option<String>,
    /// Show the right request only in this language, or as a curl command; repeatable.
    #[arg(long = "in", value_name = "LANGUAGE", value_parser = PossibleValuesParser::new(
        LANGUAGES.iter().map(|one| one.word).chain(["curl"])
    ))]
    languages: Vec<String>,
    /// The language of the texts.
    #[arg(long, default_value = "en", value_parser = language())]
    language: Language,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    app: AppOptions,
    #[command(flatten)]
    why: Why,
}

pub(super) async fn run(arguments: DoctorArguments) -> anyhow::Result<ExitCode> {
    let mut config = arguments.app.gateway()?;
    let stored = match arguments.app.stored(&config) {
        Some(multi) => Some(open_store(&config, multi).await?),
        None => None,
    };
    let apps = match &stored {
        Some((_, apps)) => AppDirectory::Multi(CachedApps::new(Arc::new(apps.clone()), 1)),
        None => AppDirectory::single(match arguments.app.known_key(&config)? {
            Some(key) => key,
            None => key_of_environment().context("neither --config nor --key is given")?,
        }),
    };
    config.sign.profile = arguments.app.rules.apply_to(config.sign.profile);
    let state = State::new(&apps, Descriptors::raise_limit());
    let gateway = Gateway::new(config, apps, state)?;
    let language = arguments.language;
    let input = read_input(arguments.file.as_deref())?;
    let named = arguments.app.app.as_deref();
    let own = match (&arguments.sign, arguments.canonical.as_deref()) {
        (Some(_), _) => Some(input.clone()),
        (None, file) => file.map(read_file).transpose()?,
    };
    let own = own.map(|own| without_line_end(&own).to_owned());
    let pasted = match (&arguments.sign, &own) {
        (Some(sign), Some(own)) => request_of(own, sign, &gateway, named).await?,
        _ => input.parse().context("the input; allowed")?,
    };
    let patient = Patient {
        gateway: &gateway,
        language,
        pasted,
        app: named,
        own,
        // The string does not determine the request.
        may_sign: &|_| arguments.sign.is_none(),
    };
    let (findings, app) = patient.examine().await;
    let ident = app.as_ref().and_then(|app| app.ident.as_ref());
    if let (Some(_), Some((store, _)), Some(ident)) = (&findings.signed, stored, ident) {
        let (author, at) = (arguments.why.author(), gateway.state.clock.now());
        let row = audit::of_signing(ident.as_str(), &findings.method, &findings.path, author, at);
        // A signature is shown only if its row was written.
        add(&store, row).await?;
    }
    if arguments.json {
        print_line(&printable_json(&json!(findings).to_string()));
    } else {
        show(&findings, &arguments.languages);
    }
    // Without the body, the signature was not checked.
    let is_body_unseen = findings.remarks.iter().any(|remark| remark.code == "body");
    let is_right = !findings.has(StepState::Wrong) && !is_body_unseen;
    Ok(ExitCode::from(u8::from(!is_right)))
}

/// A request that is rebuilt from its string to sign and its signature.
async fn request_of(
    own: &str,
    sign: &str,
    gateway: &Gateway,
    app: Option<&str>,
) -> anyhow::Result<Pasted> {
    let patient = Patient {
        gateway,
        language: Language::En,
        pasted: "/".parse()?,
        app,
        own: None,
        may_sign: &|_| false,
    };
    let verifier = &gateway.policy.verifier;
    let (own, profile) = match patient.examine().await {
        (_, Some(app)) => {
            let profile = verifier.profile_of(&app);
            (of_app(own, &app, profile)?, profile.clone())
        }
        (_, None) => (own.to_owned(), verifier.config().profile.clone()),
    };
    Ok(request_of_string(&own, sign, &profile)?)
}

/// A string that the client has hashed with the application's key. It contains the key unless that is the HMAC's.
fn of_app(own: &str, app: &App, profile: &SignProfile) -> anyhow::Result<String> {
    let without = without_keys(own, app);
    if profile.algorithm == SignAlgorithm::Md5 && !without.contains(KEY) {
        bail!("the string has not this application's key: another key was hashed, or none");
    }
    Ok(without)
}

fn read_input(file: Option<&Path>) -> anyhow::Result<String> {
    match file {
        Some(file) if file != Path::new("-") => read_file(file),
        _ => {
            let input = io::stdin();
            if input.is_terminal() {
                print_error("Paste it, then press Enter and Ctrl-D.");
            }
            read(input).context("standard input")
        }
    }
}

fn read_file(file: &Path) -> anyhow::Result<String> {
    let opened = File::open(file).map_err(anyhow::Error::from);
    let content = opened.and_then(read);
    content.with_context(|| format!("cannot read {}", file.display()))
}

fn read(source: impl Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    source.take(MAX_INPUT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_INPUT {
        bail!("it is longer than {MAX_INPUT} bytes");
    }
    // As a program shows what it has hashed.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A file ends with a line break, and not the string in it. That one was hashed is found by the search for the mistake.
fn without_line_end(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Prints it for people.
fn show(findings: &Findings, languages: &[String]) {
    let text = |text: &str| printable(text).replace(KEY, SHOWN_KEY);
    print_line(&text(&format!("{} {}", findings.method, findings.path)));
    for step in &findings.steps {
        show_step(step);
    }
    for remark in &findings.remarks {
        print_line(&format!("  note   {}", printable(&remark.text)));
    }
    if !findings.params.is_empty() {
        print_line("\nParameters, sorted as they are signed:");
        let rows = findings.params.iter().map(|param| {
            let is_signed = if param.is_signed { "yes" } else { "no" };
            [
                param.key.clone(),
                param.value.clone(),
                param.sent.clone(),
                is_signed.to_owned(),
            ]
        });
        print_table(["NAME", "VALUE", "AS SENT", "SIGNED"], rows);
    }
    if let Some(canonical) = &findings.canonical {
        print_line("\nString to sign:");
        canonical
            .split('\n')
            .for_each(|line| print_line(&text(line)));
    }
    if let Some(difference) = &findings.difference {
        print_line(&format!(
            "\nYour string differs after {} bytes:",
            difference.at
        ));
        print_line(&format!("  it has     {}", text(&difference.found)));
        print_line(&format!("  right is   {}", text(&difference.expected)));
    }
    if let Some(signed) = &findings.signed {
        print_line(&format!("\nRight, at this time: sign={}", signed.sign));
        let is_shown = |word: &str| languages.is_empty() || languages.iter().any(|one| one == word);
        if is_shown("curl") {
            print_line(&text(&signed.curl));
        }
        for sample in signed
            .code
            .iter()
            .filter(|sample| is_shown(sample.language))
        {
            print_line(&format!(
                "\n{}:",
                name_of(sample.language).unwrap_or_default()
            ));
            sample
                .code
                .lines()
                .for_each(|line| print_line(&printable(&line.replace('\t', "    "))));
        }
    }
}

fn show_step(step: &Step) {
    let name = json!(step.step);
    let name = name.as_str().unwrap_or_default();
    let state = match step.state {
        StepState::Ok => return print_line(&format!("  ok     {name}")),
        StepState::Wrong => "WRONG",
        StepState::Old => "old  ",
    };
    let Some(problem) = &step.problem else {
        return print_line(&format!("  {state}  {name}: 400"));
    };
    let cause = step
        .hint
        .as_ref()
        .map_or(String::new(), |hint| format!(" ({hint})"));
    print_line(&format!(
        "  {state}  {name}: {} {}{cause}",
        problem.code.status().as_u16(),
        problem.code.as_str()
    ));
    let said = [
        Some(&problem.title),
        Some(&problem.detail),
        problem.hint.as_ref(),
    ];
    for said in said.into_iter().flatten().filter(|said| !said.is_empty()) {
        print_line(&format!("         {}", printable(said)));
    }
}
